"""Keras' names of losses, as ``mr.keras.losses``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training.losses import MSE as MSE
from mirrored.training.losses import BinaryCrossentropy as BinaryCrossentropy
from mirrored.training.losses import CategoricalCrossentropy as CategoricalCrossentropy
from mirrored.training.losses import Loss as Loss
from mirrored.training.losses import MeanSquaredError as MeanSquaredError
from mirrored.training.losses import Reduction as Reduction
from mirrored.training.losses import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from mirrored.training.losses import binary_crossentropy as binary_crossentropy
from mirrored.training.losses import categorical_crossentropy as categorical_crossentropy
from mirrored.training.losses import get as get
from mirrored.training.losses import mean_squared_error as mean_squared_error
from mirrored.training.losses import mse as mse
from mirrored.training.losses import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)

_public_module("tf.keras.losses", __name__)
