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

globals()["__getattr__"] = _absent_names("tf.dtypes")
