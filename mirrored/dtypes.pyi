# Written by tests/support/stubs.py from the table in dtypes.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.ops.spec import DType as _DType
from mirrored.ops.spec import bfloat16 as _bfloat16
bfloat16: _DType
from mirrored.ops import as_dtype as as_dtype
from mirrored.ops import bool_ as _bool_
bool = _bool_
from mirrored.ops import cast as cast
from mirrored.ops import float64 as _float64
double = _float64
from mirrored.ops import float16 as float16
from mirrored.ops import float32 as float32
from mirrored.ops import float64 as float64
from mirrored.ops import float16 as _float16
half = _float16
from mirrored.ops import int16 as int16
from mirrored.ops import int32 as int32
from mirrored.ops import int64 as int64
from mirrored.ops import int8 as int8
from mirrored.ops import uint16 as uint16
from mirrored.ops import uint32 as uint32
from mirrored.ops import uint64 as uint64
from mirrored.ops import uint8 as uint8
