"""The public names of linear algebra, as ``mr.linalg``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.ops import global_norm as global_norm
from mirrored.ops import l2_normalize as l2_normalize
from mirrored.ops import matmul as matmul

__all__ = [
    "global_norm",
    "l2_normalize",
    "matmul",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.linalg")
