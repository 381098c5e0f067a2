"""Keras' names for what this library has, as ``mr.keras``.

An alias module without logic of its own.
"""

from mirrored import layers as layers
from mirrored import optim as optim
from mirrored.keras import backend as backend
from mirrored.layers import Input as Input
from mirrored.layers import activations as activations
from mirrored.layers import initializers as initializers
from mirrored.layers import regularizers as regularizers
from mirrored.training import Model as Model
from mirrored.training import Sequential as Sequential
from mirrored.training import callbacks as callbacks
from mirrored.training import losses as losses
from mirrored.training import metrics as metrics

optimizers = optim
