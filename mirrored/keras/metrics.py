"""Keras' names of metrics, as ``mr.keras.metrics``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training.metrics import MSE as MSE
from mirrored.training.metrics import Accuracy as Accuracy
from mirrored.training.metrics import BinaryAccuracy as BinaryAccuracy
from mirrored.training.metrics import CategoricalAccuracy as CategoricalAccuracy
from mirrored.training.metrics import Mean as Mean
from mirrored.training.metrics import MeanSquaredError as MeanSquaredError
from mirrored.training.metrics import Metric as Metric
from mirrored.training.metrics import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from mirrored.training.metrics import binary_crossentropy as binary_crossentropy
from mirrored.training.metrics import categorical_crossentropy as categorical_crossentropy
from mirrored.training.metrics import get as get
from mirrored.training.metrics import mean_squared_error as mean_squared_error
from mirrored.training.metrics import mse as mse
from mirrored.training.metrics import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)

_public_module("tf.keras.metrics", __name__)
