# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored._types import AxisLike as AxisLike
from mirrored._types import DTypeLike as DTypeLike
from mirrored._types import Identifier as Identifier
from mirrored._types import Nest as Nest
from mirrored._types import PartialShapeLike as PartialShapeLike
from mirrored._types import PathLike as PathLike
from mirrored._types import ShapeLike as ShapeLike
from mirrored._types import TensorLike as TensorLike
from mirrored.types import experimental as experimental
