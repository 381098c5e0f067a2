"""What is known of a tensor before it exists: its shape and its dtype.

The dtypes are NumPy's own objects; this module says which of them the library computes in.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np

from mirrored._types import DTypeLike, PartialShapeLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.tensor_shape import TensorShape

DType = np.dtype[Any]
Shape = tuple[int, ...]

float32: DType = np.dtype(np.float32)
float64: DType = np.dtype(np.float64)
float16: DType = np.dtype(np.float16)
int8: DType = np.dtype(np.int8)
int16: DType = np.dtype(np.int16)
uint8: DType = np.dtype(np.uint8)
uint16: DType = np.dtype(np.uint16)
uint32: DType = np.dtype(np.uint32)
uint64: DType = np.dtype(np.uint64)
int32: DType = np.dtype(np.int32)
int64: DType = np.dtype(np.int64)
bool_: DType = np.dtype(np.bool_)


class _Growing(set[DType]):
    """A set that bfloat16 joins when somebody first asks for it, and that nothing else changes."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # It may be a default of a dataclass.


INDICES = frozenset({int32, int64})  # What TensorFlow takes for labels and places.
INTEGERS = INDICES | {int8, int16, uint8, uint16, uint32, uint64}
WIDE_FLOATS = frozenset({float32, float64})  # Those that matrices are decomposed in, say.
_GROWING = (
    _Growing({float16} | WIDE_FLOATS),
    _Growing({float16} | WIDE_FLOATS | INDICES),
    _Growing({float16, int8, int16} | WIDE_FLOATS | INDICES),
    _Growing({float16} | WIDE_FLOATS | INTEGERS),
    _Growing({float16, bool_} | WIDE_FLOATS | INTEGERS),
)
# To everybody else they are frozen. FLOATS are what gradients flow through, SIGNED what has numbers
# below 0.
FLOATS, FLOATS_AND_INDICES, SIGNED, NUMBERS, ALL_DTYPES = (
    cast(frozenset[DType], dtypes) for dtypes in _GROWING
)

DTYPE_NAMES = ", ".join(sorted({"bfloat16", *(dtype.name for dtype in ALL_DTYPES)}))

# The names that TensorFlow's error texts use.
TENSORFLOW_NAMES = {
    float32: "float",
    float64: "double",
    float16: "half",
    **{dtype: dtype.name for dtype in INTEGERS},
    bool_: "bool",
}
# What Python's own types mean; "float" is 32 bits wide here, as in TensorFlow.
_PYTHON_TYPES: dict[Any, DType] = {float: float32, "float": float32, int: int32, bool: bool_}


class _Spec(NamedTuple):
    shape: tuple[Any, ...]  # Integers; type checkers take None there where users write it.
    dtype: DType


class TensorSpec(_Spec):
    """The shape and the dtype of a tensor.

    Args:
        shape: The size of each axis, None where it is not known; a list becomes a tuple. None: not
            even their number is known.
        dtype: The dtype, or its name.
        name: A name, which is a part of it: no tensor has one.

    Raises:
        TypeError: The shape is no sequence of sizes; or no such dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.TensorSpec([None, 28], mr.float64).shape
        (None, 28)
    """

    __slots__ = ()

    def __new__(
        cls, shape: PartialShapeLike | None, dtype: DTypeLike = float32, name: str | None = None
    ) -> Self:
        """Return it; what is of a tensor, and so in order already, goes right through."""
        if type(shape) is not tuple:  # Those of most tensors are.
            shape = _open_shape(shape)
        if not isinstance(dtype, np.dtype):
            dtype = as_dtype(dtype)
        if name is None:
            return tuple.__new__(cls, (shape, dtype))
        named: Any = tuple.__new__(_NamedSpec, (shape, dtype))
        named.own_name = name
        return cast(Self, named)

    @property
    def name(self) -> str | None:
        """The name that it was given."""
        return None

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> Self:
        """Return the spec of a tensor.

        Args:
            tensor: The tensor.
            name: The name of the spec.

        Raises:
            ValueError: It is no tensor.

        Example:
            >>> import mirrored as mr
            >>> mr.TensorSpec.from_tensor(mr.constant([1, 2])).shape
            (2,)
        """
        spec = getattr(tensor, "spec", None)
        if not isinstance(spec, TensorSpec):
            raise ValueError(f"`tensor` should be a mr.Tensor, but got type {type(tensor)}.")
        return cls(*spec, name)

    @classmethod
    def from_spec(cls, spec: "TensorSpec", name: str | None = None) -> Self:
        """Return a spec of another one's shape and dtype.

        Args:
            spec: The other one.
            name: The name; None: that of the other one.
        """
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Return whether a tensor, or one of another spec, may be of this spec.

        Args:
            spec_or_tensor: A tensor or a spec; what is neither is not.

        Example:
            >>> import mirrored as mr
            >>> mr.TensorSpec([None, 2]).is_compatible_with(mr.zeros((3, 2)))
            True
        """
        other = getattr(spec_or_tensor, "spec", spec_or_tensor)
        if not isinstance(other, TensorSpec) or other.dtype != self.dtype:
            return False
        return TensorShape(self.shape).is_compatible_with(other.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether each tensor of this spec is one of the other.

        Args:
            other: The other spec.
        """
        if not isinstance(other, TensorSpec) or other.dtype != self.dtype:
            return False
        if self.name not in (None, other.name):
            return False
        return TensorShape(self.shape).is_subtype_of(other.shape)


class _NamedSpec(TensorSpec):
    """A spec with a name: another one than those without it, or of another name."""

    own_name: str

    @property
    def name(self) -> str:
        """The name."""
        return self.own_name

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other) is True and getattr(other, "name", None) == self.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = TensorSpec.__hash__

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


def is_any_shape(shape: Any) -> bool:
    """Return whether a user wrote None, or a `TensorShape` of an unknown number of axes.

    Args:
        shape: What stands for a shape.
    """
    return shape is None or getattr(shape, "rank", 0) is None


def _open_shape(shape: Any) -> tuple[Any, ...] | None:
    """Return sizes that a user wrote, some of which may be None, as a tuple."""
    if is_any_shape(shape):
        return None
    if isinstance(shape, tuple):
        return shape
    sizes = [shape] if isinstance(shape, int | np.integer) else shape
    if not isinstance(sizes, list | np.ndarray):
        raise TypeError(
            "The shape of a `TensorSpec` must be a list or tuple of sizes: integers or None. "
            f"Received: shape={shape!r}. Give one size per axis, or shape=None for any shape."
        )
    dimensions = tuple(None if size is None else as_integers(size, "A size")[0] for size in sizes)
    for size in dimensions:
        if size is not None and size < 0:
            raise ValueError(f"Dimension {size} must be >= 0. Give None for one that is not known.")
    return dimensions


def as_dtype(type_value: DTypeLike) -> DType:
    """Return the dtype that `type_value` names.

    Args:
        type_value: A NumPy dtype or scalar type, its name, or Python's float, int or bool, which
            mean float32, int32 and bool.

    Raises:
        TypeError: No such dtype, or one that tensors cannot have.
        ImportError: It is bfloat16, and the package that defines it is missing.

    Example:
        >>> import mirrored as mr
        >>> mr.as_dtype("float64") == mr.float64
        True
    """
    dtype = _PYTHON_TYPES.get(type_value) if isinstance(type_value, type | str) else None
    if dtype is None:
        try:
            dtype = np.dtype(type_value)
        except (TypeError, ValueError):
            dtype = None
    if dtype is None or dtype not in ALL_DTYPES or type_value is None:
        name = type_value if isinstance(type_value, str) else getattr(dtype, "name", None)
        if name == "bfloat16":
            return bfloat16()
        raise TypeError(
            f"Tensors must have one of the dtypes {DTYPE_NAMES}. Received: {type_value!r}. "
            "Convert the values to one of these first."
        )
    return dtype


@functools.cache
def bfloat16() -> DType:
    """Return bfloat16: the range of float32 in half its bits, with 8 bits of precision.

    NumPy has no such dtype: the package ml_dtypes defines it, and is imported here.

    Raises:
        ImportError: The package is not installed.

    Example:
        >>> from mirrored.ops.spec import bfloat16
        >>> bfloat16().itemsize
        2
    """
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(
            "bfloat16 is defined by the package ml_dtypes, which is not installed. Install it "
            "with: pip install ml_dtypes"
        ) from error
    dtype: DType = np.dtype(ml_dtypes.bfloat16)
    for growing in _GROWING:
        growing.add(dtype)
    TENSORFLOW_NAMES[dtype] = "bfloat16"
    return dtype


def is_bfloat16(dtype: DType) -> bool:
    """Return whether a dtype is bfloat16; if so, tensors have it from now on."""
    return dtype.kind == "V" and dtype.name == "bfloat16" and dtype == bfloat16()


def is_narrow(dtype: DType) -> bool:
    """Return whether a dtype is one of floats of 16 bits."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def float_limits(dtype: DType) -> tuple[float, float]:
    """Return the least normal number above 0, and the largest number."""
    if is_bfloat16(dtype):  # With the exponents of float32, and seven digits behind the point.
        return 2.0**-126, 2.0**128 - 2.0**120
    info = np.finfo(dtype)
    return float(info.tiny), float(info.max)


def number_limits(dtype: DType) -> tuple[Any, Any]:
    """Return the least and the largest number of a dtype, infinity aside."""
    if dtype in FLOATS:
        largest = float_limits(dtype)[1]
        return -largest, largest
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def bounds(dtype: DType) -> tuple[Any, Any]:
    """Return what no number of a dtype is below, and above: infinity where there is one."""
    return (-np.inf, np.inf) if dtype in FLOATS else number_limits(dtype)


def holds_numbers(dtype: DType) -> bool:
    """Return whether elements of a NumPy dtype are booleans or real numbers."""
    return dtype.kind in "biuf" or is_bfloat16(dtype)


def check_dtype(op_name: str, allowed: frozenset[DType], *specs: TensorSpec) -> None:
    """Raise InvalidArgumentError, in TensorFlow's words, unless all dtypes are among `allowed`."""
    for spec in specs:
        if spec.dtype not in allowed:
            narrow = {"bfloat16"} if float32 in allowed and not is_bfloat16(spec.dtype) else set()
            names = ", ".join(sorted({TENSORFLOW_NAMES[dtype] for dtype in allowed} | narrow))
            raise InvalidArgumentError(
                f"Value for attr 'T' of {TENSORFLOW_NAMES[spec.dtype]} is not in the list of "
                f"allowed values: {names} [Op:{op_name}]"
            )


def check_same_dtype(op_name: str, *specs: TensorSpec) -> None:
    """Raise InvalidArgumentError unless all `specs` have the dtype of the first."""
    expected = specs[0].dtype
    for position, spec in enumerate(specs):
        if spec.dtype != expected:
            raise InvalidArgumentError(
                f"cannot compute {op_name} as input #{position}(zero-based) was expected to be "
                f"a {TENSORFLOW_NAMES[expected]} tensor but is a {TENSORFLOW_NAMES[spec.dtype]} "
                f"tensor [Op:{op_name}]"
            )


def same_spec(spec: TensorSpec, *_: TensorSpec) -> TensorSpec:
    """Return the first of an op's inputs' specs as its result's."""
    return spec


def shape_text(shape: Shape) -> str:
    """Return `shape` as TensorFlow's errors write it: ``[2,3]``."""
    return "[" + ",".join(str(size) for size in shape) + "]"


def broadcast_shapes(op_name: str, *shapes: Shape) -> Shape:
    """Return the shape that `shapes` broadcast to, by NumPy's rules.

    Raises:
        InvalidArgumentError: They do not.
    """
    distinct = {*shapes, ()}
    if len(distinct) <= 2:  # One shape, perhaps with scalars: the usual case, and much the faster.
        return max(distinct, key=len)
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        versus = " vs. ".join(shape_text(shape) for shape in shapes)
        raise InvalidArgumentError(f"Incompatible shapes: {versus} [Op:{op_name}]") from None


def as_shape(value: Any) -> Shape:
    """Return `value`, an integer or a sequence of them, as a shape.

    Raises:
        TypeError: It is neither.
        InvalidArgumentError: A size is negative.
    """
    shape = as_integers(value, "A shape")
    if any(size < 0 for size in shape):
        raise InvalidArgumentError(f"Dimensions of a shape must be >= 0. Received: {shape}")
    return shape


def has_shape(shape: Shape, wanted: Sequence[int | None]) -> bool:
    """Return whether a shape has the wanted sizes, of which None stands for any."""
    sizes = zip(wanted, shape, strict=False)
    return len(shape) == len(wanted) and all(size in (None, own) for size, own in sizes)


def check_shape(what: str, shape: Shape, supplied: Any) -> None:
    """Raise ValueError unless a shape has the sizes that `set_shape` was called with.

    Args:
        what: The kind of object that has the shape.
        shape: Its shape.
        supplied: The sizes, of which None stands for any; None: any shape.
    """
    if not is_any_shape(supplied) and not has_shape(shape, tuple(supplied)):
        raise ValueError(
            f"{what}'s shape {shape_text(shape)} is not compatible with supplied shape "
            f"[{','.join(map(str, supplied))}]."
        )


def as_integers(value: Any, what: str) -> tuple[int, ...]:
    """Return `value`, an integer or a sequence of them, as Python's integers.

    Raises:
        TypeError: It is neither; the message begins with `what`.
    """
    try:
        single = isinstance(value, int | np.integer) or getattr(value, "shape", None) == ()
        items = tuple([value] if single else value)
        if any(isinstance(item, bool | np.bool_) for item in items):
            raise TypeError
        return tuple(operator.index(item) for item in items)
    except TypeError:
        raise TypeError(
            f"{what} must be an integer or a sequence of integers. Received: {value!r}"
        ) from None


def as_integer(value: Any, what: str) -> int:
    """Return `value` as Python's integer.

    Raises:
        TypeError: It is none; the message begins with `what`.
    """
    if isinstance(value, list | tuple) or getattr(value, "shape", ()) != ():
        raise TypeError(f"{what} must be one integer. Received: {value!r}")
    return as_integers(value, what)[0]


_floatx: list[DType] = [float32]


# Returns the dtype that `floatx` names.
default_float: Callable[[], DType] = functools.partial(operator.itemgetter(0), _floatx)


def floatx() -> str:
    """Return the name of the dtype that layers, losses and optimizers use by default.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.floatx()
        'float32'
    """
    return str(_floatx[0].name)


def set_floatx(value: DTypeLike) -> None:
    """Set the dtype that layers, losses and optimizers made from now on use by default.

    Args:
        value: "float32" or "float64".

    Raises:
        ValueError: Any other value.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.set_floatx("float64")
        >>> mr.layers.Dense(1).dtype.name
        'float64'
        >>> mr.keras.backend.set_floatx("float32")
    """
    try:
        dtype = np.dtype(value)
    except TypeError:
        dtype = None
    if dtype not in {float32, float64} or value is None:
        accepted = [float32.name, float64.name]
        raise ValueError(f"Unknown `floatx` value: {value}. Expected one of {accepted}")
    _floatx[0] = dtype


_image_data_format = ["channels_last"]


def image_data_format() -> str:
    """Return the data format of layers and functions that get none: where channels are in images.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.image_data_format()
        'channels_last'
    """
    return _image_data_format[0]


def set_image_data_format(data_format: str) -> None:
    """Set the data format of layers made, and of functions called, from now on without one.

    Args:
        data_format: "channels_last", or "channels_first", where channels are behind the batch.

    Raises:
        ValueError: Any other value.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.set_image_data_format("channels_first")
        >>> mr.layers.GlobalMaxPooling2D().data_format
        'channels_first'
        >>> mr.keras.backend.set_image_data_format("channels_last")
    """
    _image_data_format[0] = as_data_format(str(data_format))


def as_data_format(value: object) -> str:
    """Return where the channels of images are; where `set_image_data_format` said for None.

    Raises:
        ValueError: It is neither "channels_last" nor "channels_first".
    """
    if value is None:
        return image_data_format()
    if isinstance(value, str) and value in ("channels_last", "channels_first"):
        return value
    raise ValueError(
        "The `data_format` argument must be one of {'channels_first', 'channels_last'}. "
        f"Received: data_format={value}"
    )
