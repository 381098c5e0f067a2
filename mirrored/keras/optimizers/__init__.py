"""Keras' names of optimizers, as ``mr.keras.optimizers``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.optim import SGD as SGD
from mirrored.optim import Adam as Adam
from mirrored.optim import Optimizer as Optimizer
from mirrored.optim import deserialize as deserialize
from mirrored.optim import get as get
from mirrored.optim import serialize as serialize

if _typing.TYPE_CHECKING:
    from mirrored.keras.optimizers import schedules as schedules
    from mirrored.optim import Adadelta as Adadelta
    from mirrored.optim import Adafactor as Adafactor
    from mirrored.optim import Adagrad as Adagrad
    from mirrored.optim import Adamax as Adamax
    from mirrored.optim import AdamW as AdamW
    from mirrored.optim import Ftrl as Ftrl
    from mirrored.optim import Lamb as Lamb
    from mirrored.optim import Lion as Lion
    from mirrored.optim import LossScaleOptimizer as LossScaleOptimizer
    from mirrored.optim import MultiOptimizer as MultiOptimizer
    from mirrored.optim import Muon as Muon
    from mirrored.optim import Nadam as Nadam
    from mirrored.optim import OptimizerMap as OptimizerMap
    from mirrored.optim import RMSprop as RMSprop
    from mirrored.optim import ScheduleFreeAdamW as ScheduleFreeAdamW

_LATE = {
    "mirrored.optim": "Adadelta Adafactor Adagrad AdamW Adamax Ftrl Lamb Lion LossScaleOptimizer "
    "MultiOptimizer Muon Nadam OptimizerMap RMSprop ScheduleFreeAdamW",
    "mirrored.keras.optimizers": "schedules",
}
_public_module("tf.keras.optimizers", __name__, _LATE)
