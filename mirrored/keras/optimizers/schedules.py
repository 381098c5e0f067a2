"""Keras' names of learning rates that change, as ``mr.keras.optimizers.schedules``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.optim.schedules import CosineDecay as CosineDecay
from mirrored.optim.schedules import CosineDecayRestarts as CosineDecayRestarts
from mirrored.optim.schedules import ExponentialDecay as ExponentialDecay
from mirrored.optim.schedules import InverseTimeDecay as InverseTimeDecay
from mirrored.optim.schedules import LearningRateSchedule as LearningRateSchedule
from mirrored.optim.schedules import PiecewiseConstantDecay as PiecewiseConstantDecay
from mirrored.optim.schedules import PolynomialDecay as PolynomialDecay
from mirrored.optim.schedules import deserialize as deserialize
from mirrored.optim.schedules import serialize as serialize

_public_module("tf.keras.optimizers.schedules", __name__)
