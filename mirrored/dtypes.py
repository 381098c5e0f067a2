"""The public names of dtypes, as ``mr.dtypes``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module
from mirrored.ops.spec import DType as _DType
from mirrored.ops.spec import bfloat16 as _bfloat16

# There when it is first asked for: another package defines it.
bfloat16: _DType

_public_module(
    "tf.dtypes",
    __name__,
    {
        "mirrored.ops": """
            as_dtype bool=bool_ cast double=float64 float16 float32 float64 half=float16
            int16 int32 int64 int8 uint16 uint32 uint64 uint8
        """,
    },
    bfloat16=_bfloat16,
)
