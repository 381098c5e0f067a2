# Written by tests/support/stubs.py from the table in mixed_precision.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.layers.policy import DTypePolicy as DTypePolicy
from mirrored.optim import LossScaleOptimizer as LossScaleOptimizer
from mirrored.layers.policy import DTypePolicy as _DTypePolicy
Policy = _DTypePolicy
from mirrored.layers.policy import dtype_policy as dtype_policy
from mirrored.layers.policy import dtype_policy as _dtype_policy
global_policy = _dtype_policy
from mirrored.layers.policy import set_dtype_policy as set_dtype_policy
from mirrored.layers.policy import set_dtype_policy as _set_dtype_policy
set_global_policy = _set_dtype_policy
