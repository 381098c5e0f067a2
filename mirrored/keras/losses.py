"""Keras' names of losses, as ``mr.keras.losses``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training.loss_functions import binary_crossentropy as binary_crossentropy
from mirrored.training.loss_functions import categorical_crossentropy as categorical_crossentropy
from mirrored.training.loss_functions import mean_squared_error as MSE
from mirrored.training.loss_functions import mean_squared_error as mean_squared_error
from mirrored.training.loss_functions import mean_squared_error as mse
from mirrored.training.loss_functions import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from mirrored.training.losses import BinaryCrossentropy as BinaryCrossentropy
from mirrored.training.losses import CategoricalCrossentropy as CategoricalCrossentropy
from mirrored.training.losses import Loss as Loss
from mirrored.training.losses import MeanSquaredError as MeanSquaredError
from mirrored.training.losses import Reduction as Reduction
from mirrored.training.losses import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from mirrored.training.losses import get as get

__all__ = [
    "MSE",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Loss",
    "MeanSquaredError",
    "Reduction",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "get",
    "mean_squared_error",
    "mse",
    "sparse_categorical_crossentropy",
]

_public_module("tf.keras.losses", __name__)
