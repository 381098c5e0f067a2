"""Keras' names for the dtypes that layers compute in, as ``mr.keras.mixed_precision``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.layers.policy import DTypePolicy as DTypePolicy
from mirrored.layers.policy import dtype_policy as dtype_policy
from mirrored.layers.policy import set_dtype_policy as set_dtype_policy

# Keras' older names for them.
Policy = DTypePolicy
global_policy = dtype_policy
set_global_policy = set_dtype_policy

if _typing.TYPE_CHECKING:
    from mirrored.optim import LossScaleOptimizer as LossScaleOptimizer

_LATE = {"mirrored.optim": "LossScaleOptimizer"}
_public_module("tf.keras.mixed_precision", __name__, _LATE)
