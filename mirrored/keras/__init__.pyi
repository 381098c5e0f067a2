# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.version import _KERAS as _KERAS
__version__ = _KERAS
from mirrored.layers.policy import DTypePolicy as DTypePolicy
from mirrored.layers.initializers import Initializer as Initializer
from mirrored.layers import Input as Input
from mirrored.graph import SymbolicTensor as _SymbolicTensor
KerasTensor = _SymbolicTensor
from mirrored.layers import Layer as Layer
from mirrored.training.losses import Loss as Loss
from mirrored.training.metrics import Metric as Metric
from mirrored.training import Model as Model
from mirrored.optim import Optimizer as Optimizer
from mirrored.layers.regularizers import Regularizer as Regularizer
from mirrored.training import Sequential as Sequential
from mirrored.keras_functions.keras_variable import Variable as Variable
from mirrored.keras import activations as activations
from mirrored.keras import backend as backend
from mirrored.keras import callbacks as callbacks
from mirrored.keras import config as config
from mirrored.keras import constraints as constraints
from mirrored.keras import datasets as datasets
from mirrored.devices import device as device
from mirrored.keras import initializers as initializers
from mirrored.keras import layers as layers
from mirrored.keras import losses as losses
from mirrored.keras import metrics as metrics
from mirrored.keras import mixed_precision as mixed_precision
from mirrored.keras import models as models
from mirrored._naming import keras_name_scope as _keras_name_scope
name_scope = _keras_name_scope
from mirrored.keras import ops as ops
from mirrored.keras import optimizers as optimizers
from mirrored.keras import random as random
from mirrored.keras import regularizers as regularizers
from mirrored.keras import saving as saving
from mirrored.keras import tree as tree
from mirrored.keras import utils as utils
from mirrored.keras_functions.backend import version as version
from mirrored.keras import wrappers as wrappers
