"""Checks of what is known before values are: ranks, shapes and types, as `tf.debugging` has them.

In a recorded function they are made when it is recorded, since they cannot change.
"""

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops.conversion import adopt, convert_to_tensor, is_tensor
from mirrored.ops.spec import FLOATS, INTEGERS, DType, as_dtype, bool_, float32
from mirrored.ops.tensor import Tensor


def _beginning(message: Any) -> str:
    return "" if message is None else f"{message}.  "


def _as_rank(rank: Any) -> int:
    """Return a rank that a user gave: an integer, or a scalar tensor of one."""
    array = np.asarray(rank.numpy() if is_tensor(rank) else rank)
    if array.dtype.kind not in "iu":
        raise TypeError(f"A rank is an integer: tensor must be of type int32; got {rank!r}")
    if array.ndim:
        raise ValueError(f"Rank must be a scalar. Received: {rank!r}")
    return int(array)


def _check_rank(x: Any, is_right: bool, wanted: str, message: Any) -> None:
    shape = convert_to_tensor(x).shape
    if not is_right:
        raise ValueError(
            f"{_beginning(message)}Tensor must have rank {wanted}.  Received rank {len(shape)}, "
            f"shape {shape}"
        )


def assert_rank(
    x: TensorLike, rank: SupportsIndex, message: str | None = None, name: str | None = None
) -> None:
    """Raise an error unless a tensor has a number of axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        rank: How many: an integer or a scalar tensor.
        message: What the error begins with.
        name: Accepted for compatibility; nothing has names here.

    Raises:
        ValueError: It has not, or the rank is no scalar.
        TypeError: The rank is no integer.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_rank([1, 2], 2)
        Traceback (most recent call last):
        ValueError: Tensor must have rank 2.  Received rank 1, shape (2,)
    """
    wanted = _as_rank(rank)
    _check_rank(x, convert_to_tensor(x).ndim == wanted, str(wanted), message)


def assert_rank_at_least(
    x: TensorLike, rank: SupportsIndex, message: str | None = None, name: str | None = None
) -> None:
    """Raise an error unless a tensor has at least a number of axes; else as `assert_rank`.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        rank: The least number of axes.
        message: What the error begins with.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_rank_at_least([[1, 2]], 1)
    """
    least = _as_rank(rank)
    _check_rank(x, convert_to_tensor(x).ndim >= least, f"at least {least}", message)


def assert_rank_in(
    x: TensorLike, ranks: Iterable[Any], message: str | None = None, name: str | None = None
) -> None:
    """Raise unless a tensor has one of some numbers of axes; otherwise as `assert_rank`.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        ranks: The numbers.
        message: What the error begins with.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_rank_in([[1, 2]], (1, 2))
    """
    among = tuple(_as_rank(rank) for rank in ranks)
    _check_rank(x, convert_to_tensor(x).ndim in among, f"in {among}", message)


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise unless tensors have the shapes that are said; what has one name there is one size.

    Args:
        shapes: Pairs of a tensor and its shape, in a list or a dict. A size is an integer, or a
            name for what is the same wherever it stands; None or "." is any. A shape that begins
            with `...` or "*" has any axes before the others; of a scalar it is ().
        data: Accepted for compatibility, as are the two below: errors show all there is.
        summarize: Accepted for compatibility.
        message: What the error begins with.
        name: Accepted for compatibility.

    Raises:
        ValueError: A shape is another one, or there is no such shape.

    Example:
        >>> import mirrored as mr
        >>> x, y = mr.ones((8, 3)), mr.ones((8,))
        >>> mr.debugging.assert_shapes([(x, ("N", 3)), (y, ("N",))])
        >>> mr.debugging.assert_shapes([(x, ("N", "D")), (y, ("D",))])
        Traceback (most recent call last):
        ValueError: Specified by tensor shape=(8, 3) dtype=float32 dimension 1.  Tensor ...
    """
    known: dict[Any, tuple[int, str]] = {}
    pairs = shapes.items() if isinstance(shapes, dict) else shapes
    for x, sizes in [(convert_to_tensor(x), sizes) for x, sizes in pairs]:
        _check_sizes(x, sizes, known, _beginning(message))


def _check_sizes(
    tensor: Tensor, sizes: Any, known: dict[Any, tuple[int, str]], beginning: str
) -> None:
    """Compare a tensor's shape with what was said, and note the sizes that have names."""
    shown = f"ensor shape={tensor.shape} dtype={tensor.dtype.name}"
    if not isinstance(sizes, Iterable):
        raise ValueError(
            f"{beginning}T{shown}.  Specified shape must be an iterable.  An iterable has the "
            f"attribute `__iter__` or `__getitem__`.  Received specified shape: {sizes!r}"
        )
    wanted, shape = list(sizes), tuple(tensor.shape)
    is_open = bool(wanted) and _is_open(wanted[0])
    wanted = wanted[1:] if is_open else wanted
    for place, entry in enumerate(wanted, start=int(is_open)):
        if _is_open(entry):
            raise ValueError(
                f"{beginning}T{shown} specified shape index {place}.  Symbol `...` or `*` for a "
                "variable number of unspecified dimensions is only allowed as the first entry"
            )
    # As in TensorFlow, a scalar counts as one element in a row.
    if len(wanted) <= 1:
        wanted, shape = wanted or [1], shape or (1,)
    if len(shape) < len(wanted) or (len(shape) > len(wanted) and not is_open):
        rank = f"at least {len(wanted)}" if is_open else f"{len(wanted)}"
        raise ValueError(
            f"{beginning}Tensor must have rank {rank}.  Received rank {tensor.ndim}, shape "
            f"{tensor.shape}"
        )
    for i, symbol in enumerate(wanted):
        if symbol is None or symbol == ".":
            continue
        axis = i - len(wanted) if is_open else i
        size, where = known.setdefault(symbol, (shape[axis], f"by t{shown} dimension {axis}"))
        if isinstance(symbol, int | float | np.number) or str(symbol).isdigit():
            size, where = int(symbol), "explicitly"
        if shape[axis] != size:
            raise ValueError(
                f"{beginning}Specified {where}.  T{shown} dimension {axis} must have size {size}.  "
                f"Received size {shape[axis]}, shape {tensor.shape}"
            )


def _is_open(symbol: Any) -> bool:
    return symbol is ... or (isinstance(symbol, str) and symbol == "*")


def assert_type(
    tensor: Any, tf_type: DTypeLike, message: str | None = None, name: str | None = None
) -> None:
    """Raise unless a tensor has a dtype.

    Args:
        tensor: A tensor, an array, a number or nested lists of numbers.
        tf_type: The dtype, or its name.
        message: What the error begins with.
        name: Accepted for compatibility.

    Raises:
        TypeError: It has another one.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_type([1.0], mr.float32)
    """
    wanted, dtype = as_dtype(tf_type), adopt(tensor, None).dtype
    if dtype != wanted:
        raise TypeError(
            f"{_beginning(message)}tensor must be of type {wanted.name}; got {dtype.name}"
        )


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Raise unless a tensor is of integers.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        message: What the error begins with.
        name: Accepted for compatibility.

    Raises:
        TypeError: It is of floats or booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_integer([1, 2])
    """
    dtype = convert_to_tensor(x).dtype
    if dtype not in INTEGERS:
        raise TypeError(
            f'{_beginning(message)}Expected "x" to be integer type.  Found: tensor of dtype '
            f"{dtype.name}"
        )


def assert_scalar(tensor: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Raise unless a tensor is a scalar.

    Args:
        tensor: A tensor, an array or a number.
        message: What the error begins with.
        name: Accepted for compatibility.

    Raises:
        ValueError: It has axes.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_scalar(3)
    """
    converted = convert_to_tensor(tensor)
    if converted.ndim:
        raise ValueError(
            f"{_beginning(message)}Expected scalar shape, saw shape: {converted.shape}."
        )


def assert_proper_iterable(values: Any) -> None:
    """Raise unless a value is a list or the like: neither text, nor an array, nor a tensor.

    Args:
        values: The value.

    Raises:
        TypeError: It is something else.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_proper_iterable([1, 2])
    """
    improper = isinstance(values, str | bytes | np.ndarray) or is_tensor(values)
    if improper or not hasattr(values, "__iter__"):
        proper = 'a "proper" iterable' if improper else "iterable"
        raise TypeError(f'Expected argument "values" to be {proper}.  Found: {type(values)}')


def assert_same_float_dtype(
    tensors: Sequence[Any] | None = None, dtype: DTypeLike | None = None
) -> DType:
    """Return the dtype of floats that tensors have in common, or raise.

    Args:
        tensors: Tensors; None among them is passed over.
        dtype: The dtype that they have to have; None: that of the first, or float32.

    Raises:
        ValueError: They differ, or are of integers.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_same_float_dtype([mr.constant(1.0), mr.constant([2.0])]).name
        'float32'
    """
    wanted = None if dtype is None else as_dtype(dtype)
    for operand in [tensor for tensor in tensors or () if tensor is not None]:
        wanted = operand.dtype if wanted is None else wanted
        if operand.dtype != wanted:
            raise ValueError(
                f"Tensors of type {wanted.name} are wanted. Received: {operand!r:.200}, of type "
                f"{operand.dtype.name}, which must be of the same type."
            )
    wanted = float32 if wanted is None else wanted
    if wanted not in FLOATS:
        raise ValueError(f"Expected floating point type, got {wanted.name}.")
    return wanted


def is_numeric_tensor(tensor: Any) -> bool:
    """Return whether a value is a tensor of numbers; variables, arrays and booleans are not.

    Args:
        tensor: The value.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.is_numeric_tensor(mr.constant(1.0)), mr.debugging.is_numeric_tensor(1.0)
        (True, False)
    """
    return isinstance(tensor, Tensor) and tensor.dtype != bool_


explain_functions(__name__)
