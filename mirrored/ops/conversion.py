"""From Python's numbers, arrays and variables to tensors, with the dtypes that TensorFlow gives."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explained
from mirrored._nest import flatten
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.devices import log_placement, place
from mirrored.ops.hooks import NoValueError, RecordedTensor, active_recorder
from mirrored.ops.host_tensor import HostTensor, transfer
from mirrored.ops.spec import (
    ALL_DTYPES,
    DTYPE_NAMES,
    FLOATS,
    INDICES,
    WIDE_FLOATS,
    DType,
    as_dtype,
    as_shape,
    bool_,
    float32,
    holds_numbers,
    int32,
    int64,
    uint64,
)
from mirrored.ops.tensor import Tensor, operators


def as_tensors(inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return an op's inputs as tensors.

    Numbers and NumPy values adopt the dtype of the first tensor; where there is none, that of the
    first input.
    """
    for value in inputs:
        if not isinstance(value, Tensor):
            break
    else:
        return inputs
    dtype = _first_dtype(inputs)
    tensors = []
    for value in inputs:
        tensor = value if isinstance(value, Tensor) else adopt(value, dtype)
        dtype = tensor.dtype if dtype is None else dtype
        tensors.append(tensor)
    return tuple(tensors)


def _first_dtype(values: Iterable[Any]) -> DType | None:
    # Not everything that stands for a tensor has a dtype: some only say why they cannot be one.
    for value in values:
        if is_tensor(value):
            return getattr(value, "dtype", None)
    return None


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor or stands for one, as variables do."""
    return isinstance(value, Tensor) or hasattr(value, "_as_tensor")


# The dtypes that a Python number of a type becomes at once, and what all of them can hold.
_NUMBERS = {float: WIDE_FLOATS, int: WIDE_FLOATS | INDICES}
_EXACT = 1 << 31


def adopt(value: Any, dtype: DType | None) -> Tensor:
    """Return `value` as a tensor; numbers and NumPy values take `dtype` where they can.

    A Python float does not become an integer, nor does a NumPy one with a fraction, which
    TensorFlow drops: it stays a float, and the op that meets both says so.
    """
    if isinstance(value, Tensor):
        return value
    if dtype in _NUMBERS.get(type(value), ()) and -_EXACT < value < _EXACT:
        return from_host(np.array(value, dtype))
    as_tensor = getattr(value, "_as_tensor", None)
    if as_tensor is not None:
        tensor: Tensor = as_tensor()
        return tensor
    if _holds_tensors(value):
        inner = _first_dtype(flatten(value))
        return operators["Pack"](*[adopt(item, inner) for item in value])
    if dtype is not None:
        # Straight to the dtype: by way of float32 a Python float would lose digits.
        array = _numeric(value, dtype)
        if (
            _adopts(array.dtype, dtype)
            or (dtype.kind in "iu" and _holds_whole_numpy(value, array))
            or (not array.size and isinstance(value, list | tuple))  # Of nothing, no dtype follows.
        ):
            return from_host(_converted(array, dtype, value))
    return from_host(to_array(value))


def _adopts(source: DType, dtype: DType) -> bool:
    """Whether numbers of dtype `source` become `dtype` beside a tensor that has it."""
    if dtype == bool_:
        return source == bool_
    return dtype in FLOATS or source.kind in "biu"


def _holds_whole_numpy(value: Any, array: NDArray[Any]) -> bool:
    """Whether these are NumPy floats that become integers without losing anything."""
    if array.dtype.kind != "f" or not _holds_numpy(value):
        return False
    return bool((np.floor(array) == array).all())


def _holds_tensors(value: Any) -> bool:
    """Whether `value` is a list of tensors, or of lists of them, that has to become one tensor."""
    return isinstance(value, list | tuple) and any(
        is_tensor(item) or _holds_tensors(item) for item in value
    )


def to_array(value: Any, dtype: DType | None = None) -> NDArray[Any]:
    """Return `value` as an array of a dtype that tensors have, without copying where it can.

    Python floats become float32, and Python integers int32 where they fit; arrays keep their
    dtype.

    Raises:
        TypeError: It holds objects, strings or complex numbers, is an array of a dtype that
            tensors cannot have, or holds Python numbers that `dtype` cannot hold.
        ValueError: Its rows differ in length.
    """
    array = _numeric(value, dtype)
    if dtype is None:
        array = _as_tensorflow_has_it(array, value)
        if array.dtype not in ALL_DTYPES:
            raise TypeError(_unsupported(array, value))
        return array
    if array.size and not _adopts(array.dtype, dtype) and not _holds_numpy(value):
        raise TypeError(
            f"Cannot convert {value!r:.80} to a tensor of dtype {dtype.name}. Convert the numbers "
            "first, or leave `dtype` out."
        )
    return _converted(array, dtype, value)


def as_array(value: Any) -> NDArray[Any]:
    """Return `value` as NumPy's array of it, of any dtype.

    Args:
        value: An array, a number, nested lists, or what has the protocol of arrays or of DLPack.

    Raises:
        ValueError: It is made of lists whose lengths or depths differ.

    Example:
        >>> from mirrored.ops.conversion import as_array
        >>> as_array([[1, 2], [3, 4]]).shape
        (2, 2)
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind != "O" or array is value or not hasattr(value, "__dlpack__"):
            return array
        return np.from_dlpack(value)
    except ValueError:
        if not isinstance(value, list | tuple):
            raise
        raise ValueError(
            f"Can't convert non-rectangular Python sequence to Tensor. Received: {value!r:.80}. "
            "Use rows of equal length, for example by padding the shorter rows."
        ) from None


def _numeric(value: Any, dtype: DType | None = None) -> NDArray[Any]:
    """Return `value` as an array of numbers or booleans, of whatever width NumPy gives them."""
    array = as_array(value)
    if dtype == uint64 and array.dtype.kind == "f" and not _holds_numpy(value):
        array = _large_integers(value, array)
    if not holds_numbers(array.dtype):
        raise TypeError(_unsupported(array, value))
    return array


def _large_integers(value: Any, array: NDArray[Any]) -> NDArray[Any]:
    """Return Python's integers of up to 64 bits, which NumPy makes floats beside smaller ones."""
    exact = np.array(value, object)
    if all(type(number) is int and 0 <= number < 1 << 64 for number in exact.flat):
        return exact.astype(np.uint64)
    return array


def _converted(array: NDArray[Any], dtype: DType, value: Any) -> NDArray[Any]:
    """Return `array` in `dtype`; floats may overflow to infinity, integers may not."""
    if array.dtype == dtype:
        return array
    if dtype.kind in "iu" and array.dtype.kind in "iu" and not _fits(array, dtype):
        raise TypeError(
            f"Integers of dtype {dtype.name} cannot hold all of the values. Received: "
            f"{value!r:.80}. Use int64, or floats; mr.cast lets integers wrap around."
        )
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _fits(array: NDArray[Any], dtype: DType) -> bool:
    limits = np.iinfo(dtype)
    return not array.size or bool(array.min() >= limits.min and array.max() <= limits.max)


def _as_tensorflow_has_it(array: NDArray[Any], value: Any) -> NDArray[Any]:
    """Give Python's numbers and lists, of which NumPy made an array, the dtypes of TensorFlow.

    Arrays and tensors keep theirs, but a list of NumPy's integers is one of Python's to TensorFlow;
    a list of floats has the dtype of the first, where that is NumPy's.
    """
    first = _first(value)
    if hasattr(value, "__array__") or is_tensor(first):
        return array
    if isinstance(first, bool | np.bool_) and array.dtype != bool_:
        raise ValueError(
            f"Can't convert Python sequence with mixed types to Tensor. Received: {value!r:.80}. "
            "Make all of them booleans, or all of them numbers."
        )
    if array.dtype.kind in "iu":
        fitting = next((dtype for dtype in (int32, int64) if _fits(array, dtype)), None)
        if fitting is None:
            raise ValueError(
                "Can't convert Python sequence with out-of-range integer to Tensor. Received: "
                f"{value!r:.80}. Pass `dtype=mr.uint64`."
            )
        return array.astype(fitting, copy=False)
    if array.dtype.kind == "f":
        own = first.dtype if isinstance(first, np.floating | np.ndarray) else float32
        converted = _converted(array, own if own.kind == "f" else float32, value)
        infinite = np.count_nonzero(np.isinf(converted))
        if infinite and infinite != np.count_nonzero(np.isinf(array)):
            raise ValueError(
                f"Can't convert Python sequence with a value out of range for {converted.dtype}. "
                f"Received: {value!r:.80}. Pass `dtype=mr.float64`."
            )
        return converted
    return array


def _first(value: Any) -> Any:
    """Return the first of the numbers that lists hold."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return value


def _holds_numpy(value: Any) -> bool:
    """Whether the numbers have a dtype of their own: those of arrays do, those of Python do not."""
    return hasattr(_first(value), "dtype")


def advice_on_numbers(array: NDArray[Any], value: Any) -> str:
    """Return how `value`, of which `array` is made, becomes numbers.

    Example:
        >>> import numpy as np
        >>> from mirrored.ops.conversion import advice_on_numbers
        >>> advice_on_numbers(np.array(["a"]), ["a"])
        'Map the strings to numbers.'
    """
    if array.dtype.kind in "SU":
        return "Map the strings to numbers."
    if hasattr(value, "_as_tensor"):
        return "Take its parts, with `strategy.experimental_local_results`."
    if hasattr(value, "toarray"):
        return "Make it dense first, as with .toarray()."
    return "Convert it first, as with .astype('float32')."


def _unsupported(array: NDArray[Any], value: Any) -> str:
    return (
        f"Cannot make a tensor of dtype {array.dtype}: tensors are {DTYPE_NAMES}. Received: "
        f"{value!r:.80}. {advice_on_numbers(array, value)}"
    )


def from_host(array: NDArray[Any]) -> Tensor:
    """Return a copy of `array` as a tensor on the device that the placement rules choose.

    While a function is recorded the copy stays on the host, from where its program has it.
    """
    device = place("_EagerConst", ("GPU", "CPU"))
    recorded = active_recorder() is not None
    tensor = HostTensor(np.array(array), device) if recorded else transfer(array, device)
    log_placement("_EagerConst", device)
    return tensor


@explained
def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    name: str = "Const",
) -> Tensor:
    """Return a tensor that holds a copy of `value`.

    Args:
        value: A number, nested lists of numbers or an array. Python floats become float32 and
            Python integers int32, or int64 where they do not fit; arrays keep their dtype.
        dtype: The dtype to convert to.
        shape: The shape to give it; a single number fills it, otherwise the counts agree.
        name: Accepted for compatibility; eager tensors have no name.

    Raises:
        TypeError: `value` is not made of numbers that `dtype` can hold, is a tensor of another
            dtype, or its count does not fit `shape`.
        ValueError: It is made of lists whose lengths differ, or of booleans and numbers; or a
            Python float is too large for float32.

    Example:
        >>> import mirrored as mr
        >>> mr.constant(2.0, shape=(2, 2)).numpy()
        array([[2., 2.],
               [2., 2.]], dtype=float32)
    """
    return from_host(constant_array(value, dtype, shape))


def constant_array(value: Any, dtype: Any = None, shape: Any = None) -> NDArray[Any]:
    """Return the array that `constant` makes a tensor of; it is given and raises the same."""
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and isinstance(value, Tensor) and value.dtype != wanted:
        raise TypeError(
            f"Expected tensor {value} with dtype {wanted.name}, but got dtype {value.dtype.name}. "
            "Use mr.cast to convert it."
        )
    array = to_array(value, wanted)
    return array if shape is None else _with_shape(array, as_shape(shape), value)


def _with_shape(array: NDArray[Any], shape: tuple[int, ...], value: Any) -> NDArray[Any]:
    if array.size == int(np.prod(shape)):
        return array.reshape(shape)
    if array.ndim == 0 or array.size == 1:
        return np.broadcast_to(array.reshape(()), shape)
    raise TypeError(
        f"Eager execution of mr.constant with unsupported shape. Tensor {array} (converted from "
        f"{value!r}) has {array.size} elements, but got `shape` {shape} with "
        f"{int(np.prod(shape))} elements."
    )


@explained
def convert_to_tensor(
    value: TensorLike, dtype: DTypeLike | None = None, *, name: str | None = None
) -> Tensor:
    """Return `value` as a tensor: itself, a variable's value, or a copy of numbers.

    Args:
        value: A tensor, a variable, an array, a number or nested lists of numbers.
        dtype: The dtype that numbers are converted to and that a tensor must have.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        TypeError: `value` is not made of numbers.
        ValueError: A tensor has another dtype than `dtype`.

    Example:
        >>> import mirrored as mr
        >>> mr.convert_to_tensor([1, 2]).dtype.name
        'int32'
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if is_tensor(value) or _holds_tensors(value):
        tensor = adopt(value, None)
        if wanted is not None and tensor.dtype != wanted:
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype "
                f"{tensor.dtype.name}: {tensor!r}. Use mr.cast to convert it."
            )
        return tensor
    return from_host(to_array(value, wanted))


def known_values(tensor: Tensor, what: str, instead: str) -> NDArray[Any]:
    """Return the values of a tensor on the host.

    Args:
        tensor: The tensor.
        what: Of what there are as many as it says.
        instead: A sentence that says what a recorded function can do.

    Raises:
        NoValueError: It is of the function that is being recorded.
    """
    if isinstance(tensor, RecordedTensor) and active_recorder() is tensor.recorder:
        raise NoValueError(
            f"How many {what} there are depends on values. A recorded function has values only "
            f"when it runs, and needs shapes earlier. Received: {tensor!r}. {instead}"
        )
    return np.asarray(tensor.numpy())
