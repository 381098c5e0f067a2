"""Keras' names of models, as ``mr.keras.models``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.training import Model as Model
from mirrored.training import Sequential as Sequential

if _typing.TYPE_CHECKING:
    from mirrored.training.cloning import clone_model as clone_model
    from mirrored.training.files.model_files import load_model as load_model
    from mirrored.training.files.model_files import save_model as save_model
    from mirrored.training.files.model_json import model_from_json as model_from_json

_LATE = {
    "mirrored.training.cloning": "clone_model",
    "mirrored.training.files.model_files": "load_model save_model",
    "mirrored.training.files.model_json": "model_from_json",
}
_public_module("tf.keras.models", __name__, _LATE)
