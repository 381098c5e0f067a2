"""Keras' names for what this library has, as ``mr.keras``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored._name_scope import keras_name_scope as _name_scope
from mirrored.devices import device as device
from mirrored.graph import SymbolicTensor as KerasTensor
from mirrored.layers import Input as Input
from mirrored.layers import Layer as Layer
from mirrored.layers.initializers import Initializer as Initializer
from mirrored.layers.policy import DTypePolicy as DTypePolicy
from mirrored.layers.regularizers import Regularizer as Regularizer
from mirrored.optim import Optimizer as Optimizer
from mirrored.training import Model as Model
from mirrored.training import Sequential as Sequential
from mirrored.training.losses import Loss as Loss
from mirrored.training.metrics import Metric as Metric
from mirrored.version import _KERAS

if _typing.TYPE_CHECKING:
    from mirrored.keras import activations as activations
    from mirrored.keras import backend as backend
    from mirrored.keras import callbacks as callbacks
    from mirrored.keras import config as config
    from mirrored.keras import constraints as constraints
    from mirrored.keras import datasets as datasets
    from mirrored.keras import initializers as initializers
    from mirrored.keras import layers as layers
    from mirrored.keras import losses as losses
    from mirrored.keras import metrics as metrics
    from mirrored.keras import mixed_precision as mixed_precision
    from mirrored.keras import models as models
    from mirrored.keras import ops as ops
    from mirrored.keras import optimizers as optimizers
    from mirrored.keras import random as random
    from mirrored.keras import regularizers as regularizers
    from mirrored.keras import saving as saving
    from mirrored.keras import tree as tree
    from mirrored.keras import utils as utils
    from mirrored.keras import wrappers as wrappers
    from mirrored.keras_functions.keras_variable import Variable as Variable
    from mirrored.keras_functions.settings import version as version

__all__ = [
    "DTypePolicy",
    "Initializer",
    "Input",
    "KerasTensor",
    "Layer",
    "Loss",
    "Metric",
    "Model",
    "Optimizer",
    "Regularizer",
    "Sequential",
    "Variable",
    "activations",
    "backend",
    "callbacks",
    "config",
    "constraints",
    "datasets",
    "device",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "name_scope",
    "ops",
    "optimizers",
    "random",
    "regularizers",
    "saving",
    "tree",
    "utils",
    "version",
    "wrappers",
]

__version__ = _KERAS
name_scope = _name_scope

_LATE = {
    "mirrored.keras": (
        "activations backend callbacks config constraints datasets initializers layers losses "
        "metrics mixed_precision models ops optimizers random regularizers saving tree utils "
        "wrappers"
    ),
    "mirrored.keras_functions.keras_variable": "Variable",
    "mirrored.keras_functions.settings": "version",
}
_public_module("tf.keras", __name__, _LATE)
