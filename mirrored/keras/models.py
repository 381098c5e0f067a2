"""Keras' names of models, as ``mr.keras.models``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.models",
    __name__,
    {
        "mirrored.training": "Model Sequential",
        "mirrored.training.cloning": "clone_model",
        "mirrored.training.files.model_files": "load_model save_model model_from_json",
    },
)
