"""The public names of dtypes, as ``mr.dtypes``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored.ops import as_dtype as as_dtype
from mirrored.ops import bool_ as bool
from mirrored.ops import cast as cast
from mirrored.ops import float32 as float32
from mirrored.ops import float64 as double
from mirrored.ops import float64 as float64
from mirrored.ops import int32 as int32
from mirrored.ops import int64 as int64
from mirrored.ops.spec import DType as _DType
from mirrored.ops.spec import with_bfloat16 as _with_bfloat16

__all__ = [
    "as_dtype",
    "bool",
    "cast",
    "double",
    "float32",
    "float64",
    "int32",
    "int64",
]

# There when it is first asked for: another package defines it.
bfloat16: _DType
globals()["__getattr__"] = _with_bfloat16(_absent_names("tf.dtypes"))
