# Written by tests/support/stubs.py from the table in schedules.py; do not edit it.
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
