"""Tensors made of numbers in order, of places, and of the shapes of other tensors."""

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.comparison import EQUAL, LESS
from mirrored.ops.conversion import adopt, as_tensors, constant, convert_to_tensor
from mirrored.ops.hooks import UnknownShape, active_listeners, take_constant_room
from mirrored.ops.manipulation import axis_of
from mirrored.ops.op import Op
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import BROADCAST_TO, CONCAT, IDENTITY, RESHAPE, cast, expand_dims
from mirrored.ops.slicing import sliced_along
from mirrored.ops.spec import (
    FLOATS,
    INDICES,
    INTEGERS,
    DType,
    as_dtype,
    as_integer,
    as_shape,
    broadcast_shapes,
    check_same_dtype,
    float16,
    float32,
    float64,
    has_shape,
    int8,
    int32,
    int64,
    is_any_shape,
    shape_text,
    uint8,
)
from mirrored.ops.tensor import Operators, Tensor

# From the narrowest on: numbers of several dtypes together are of the last one of theirs.
_WIDER = (int32, int64, float16, float32, float64)
# Only listeners see it: the sizes of a tensor are known without computing.
_SHAPE = Op(name="Shape", infer=lambda x: x, shape_only=True)


def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = "range",
) -> Tensor:
    """Return the numbers from `start` on, `delta` apart, before `limit`.

    Args:
        start: The first one; the only argument is `limit`, and 0 the first one.
        limit: Where they end; it is not among them.
        delta: How far one is from the next.
        dtype: Their dtype; None: the widest of those of the arguments.
        name: Accepted for compatibility.

    Raises:
        TypeError: A number is not one of `dtype`.
        InvalidArgumentError: An argument is no scalar, `delta` is 0, or leads away from `limit`.

    Example:
        >>> import mirrored as mr
        >>> mr.range(3).numpy(), mr.range(3.0, 1.0, -0.5).numpy()
        (array([0, 1, 2], dtype=int32), array([3. , 2.5, 2. , 1.5], dtype=float32))
    """
    values = (0, start, delta) if limit is None else (start, limit, delta)
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted in INTEGERS - INDICES:
        raise InvalidArgumentError(
            f"A range cannot be {wanted.name}. Use int32 or int64, and cast it. [Op:Range]"
        )
    # Tensors are cast to the dtype; what Python's numbers would lose is an error.
    tensors = [
        adopt(value, None) if isinstance(value, Operators) else convert_to_tensor(value, wanted)
        for value in values
    ]
    for tensor, label in zip(tensors, ("start", "limit", "delta"), strict=True):
        if tensor.ndim:
            raise InvalidArgumentError(
                f"{label} must be a scalar, not shape {shape_text(tensor.shape)} [Op:Range]"
            )
    kind = _widest(tensors) if wanted is None else wanted
    first, end, step = (scalar.numpy().astype(kind) for scalar in tensors)
    if step == 0:
        raise InvalidArgumentError(f"Requires delta != 0: {step} [Op:Range]")
    if (step > 0 and first > end) or (step < 0 and first < end):
        order, side = ("<=", ">") if step > 0 else (">=", "<")
        raise InvalidArgumentError(
            f"Requires start {order} limit when delta {side} 0: {first}/{end} [Op:Range]"
        )
    if kind in FLOATS:  # It is rounded to the dtype at each step, as in TensorFlow.
        count = math.ceil((end - first) / step)
    else:
        count = -((first.item() - end.item()) // step.item())
    take_constant_room((count,), 8)
    numbers = first + np.arange(count).astype(kind) * step
    return constant(numbers.astype(kind, copy=False))


def _widest(tensors: Sequence[Tensor]) -> DType:
    for tensor in tensors:
        if tensor.dtype not in _WIDER:
            raise InvalidArgumentError(
                f"A range must be of {', '.join(kind.name for kind in _WIDER)}. Received: "
                f"{tensor.dtype.name}. Pass a `dtype`. [Op:Range]"
            )
    return max((x.dtype for x in tensors), key=_WIDER.index)


def linspace(
    start: TensorLike, stop: TensorLike, num: TensorLike, name: str | None = None, axis: int = 0
) -> Tensor:
    """Return numbers at equal distances, from `start` to `stop`, both of them among the numbers.

    Args:
        start: The first one, or a tensor of first ones.
        stop: The last one, or a tensor of last ones.
        num: How many.
        name: Accepted for compatibility.
        axis: Where tensors get the new axis.

    Raises:
        TypeError: `num` is no integer.
        InvalidArgumentError: It is negative, or the shapes do not fit.
        ValueError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> mr.linspace(0.0, 1.0, 5).numpy()
        array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    first, last = as_tensors((start, stop))
    count = as_integer(num, "`num`")
    if count < 0:
        raise InvalidArgumentError(f"`num` must be 0 or more. Received: num={count!r}")
    shape = broadcast_shapes("LinSpace", first.shape, last.shape)
    place = axis_of(axis, len(shape) + 1)
    wide = (*shape[:place], 1, *shape[place:])
    begin, end = (RESHAPE(BROADCAST_TO(bound, shape=shape), shape=wide) for bound in (first, last))
    step = (end - begin) / constant(max(count - 1, 1), first.dtype)
    begin, end = cast(begin, step.dtype), cast(end, step.dtype)
    take_constant_room((count,), 8)
    between = np.arange(1, max(count - 1, 1)).reshape(-1, *[1] * (len(shape) - place))
    numbers = CONCAT(begin, begin + step * between.astype(step.dtype), end, axis=place)
    return sliced_along(numbers, place, slice(0, count))


def eye(
    num_rows: SupportsIndex,
    num_columns: SupportsIndex | None = None,
    batch_shape: ShapeLike | None = None,
    dtype: DTypeLike = float32,
    name: str | None = None,
) -> Tensor:
    """Return a matrix with ones on its diagonal and zeros elsewhere, or several of them.

    Args:
        num_rows: How many rows it has.
        num_columns: How many columns; None: as many as rows.
        batch_shape: The shape in front of the matrix's, of which there are as many; None: one.
        dtype: The dtype.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: A size is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.eye(2).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    (rows,) = as_shape(int(num_rows))
    (columns,) = (rows,) if num_columns is None else as_shape(int(num_columns))
    take_constant_room((rows, columns), as_dtype(dtype).itemsize)
    matrix = constant(np.eye(rows, columns, dtype=as_dtype(dtype)))
    if batch_shape is None:
        return matrix
    return BROADCAST_TO(matrix, shape=(*as_shape(batch_shape), rows, columns))


def one_hot(
    indices: TensorLike,
    depth: SupportsIndex,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return a new axis of which one element is on, for each index; none where there is no such.

    Args:
        indices: Integers; or a NumPy array of booleans, or of floats without fractions.
        depth: The size of the axis.
        on_value: What it has at the index; None: 1.
        off_value: What it has elsewhere; None: 0.
        axis: Where the axis is; None or -1: the last.
        dtype: The dtype; None: that of the values, or float32.
        name: Accepted for compatibility.

    Raises:
        TypeError: The values are of two dtypes, or of another one than `dtype`.
        InvalidArgumentError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> mr.one_hot([0, 2], 3).numpy()
        array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    places, (size,) = adopt(indices, None), as_shape(int(depth))
    if places.dtype not in INDICES | {uint8, int8}:
        places = adopt(indices, int64)
    if places.dtype not in INDICES | {uint8, int8}:
        raise InvalidArgumentError(
            f"Indices must be int32, int64, uint8 or int8. Received: {places.dtype.name} "
            "[Op:OneHot]"
        )
    wanted = None if dtype is None else as_dtype(dtype)
    values = [None if level is None else adopt(level, wanted) for level in (on_value, off_value)]
    known = [tensor.dtype for tensor in values if tensor is not None]
    kind = [*known, float32][0] if wanted is None else wanted
    for value, label in zip(values, ("on_value", "off_value"), strict=True):
        if value is not None and value.dtype != kind:
            raise TypeError(f"dtype {value.dtype.name} of {label} does not match {kind.name}")
    place = -1 if axis is None else as_integer(axis, "The axis")
    place = places.ndim if place == -1 else place
    if not 0 <= place <= places.ndim:
        raise InvalidArgumentError(
            f"Expected axis to be -1 or between [0, {places.ndim}]. But received: {place} "
            "[Op:OneHot]"
        )
    if places.dtype not in INDICES:
        places = cast(places, int32)
    if size > np.iinfo(places.dtype).max:
        places = cast(places, int64)
    take_constant_room((size,), places.dtype.itemsize)
    numbers = np.arange(size, dtype=places.dtype).reshape(-1, *[1] * (places.ndim - place))
    is_on = EQUAL(expand_dims(places, place), constant(numbers))
    if not known:
        return cast(is_on, kind)
    on, off = (
        constant(default, kind) if value is None else value
        for value, default in zip(values, (1, 0), strict=True)
    )
    return SELECT(is_on, on, off)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Return, for vectors, the coordinates of all points of their grid, a tensor a vector.

    Args:
        *args: The vectors, or scalars.
        indexing: "ij": the first one's coordinates change along the first axis; "xy": along the
            second one, and those of the second along the first.
        name: Accepted for compatibility.

    Raises:
        ValueError: `indexing` is neither.
        InvalidArgumentError: Their dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().tolist() for each in mr.meshgrid([1, 2, 3], [4, 5])]
        [[[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(
            f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'"
        )
    vectors = [adopt(arg, None) for arg in args]
    if vectors:
        check_same_dtype("Mul", *(x.spec for x in vectors))  # By which TensorFlow makes them.
    sizes = [x.size for x in vectors]
    places = list(np.arange(len(vectors)).tolist())
    if indexing == "xy" and len(vectors) > 1:
        places[:2], sizes[:2] = [1, 0], sizes[1::-1]
    grids = []
    for vector, place in zip(vectors, places, strict=True):
        own = [1] * len(vectors)
        own[place] = vector.size
        grids.append(BROADCAST_TO(RESHAPE(vector, shape=tuple(own)), shape=tuple(sizes)))
    return grids


def sequence_mask(
    lengths: TensorLike,
    maxlen: SupportsIndex | None = None,
    dtype: DTypeLike = bool,
    name: str | None = None,
) -> Tensor:
    """Return for each length as many times true, and then false up to the largest.

    Args:
        lengths: Integers.
        maxlen: The size of the new last axis; None: the largest length.
        dtype: The dtype, of which true is 1.
        name: Accepted for compatibility.

    Raises:
        ValueError: `maxlen` is no scalar.

    Example:
        >>> import mirrored as mr
        >>> mr.sequence_mask([1, 3], 3, "int32").numpy()
        array([[1, 0, 0],
               [1, 1, 1]], dtype=int32)
    """
    x = adopt(lengths, None)
    if maxlen is None:
        most = max(0, int(x.numpy().max(initial=0)))
    else:
        end = adopt(maxlen, None)
        if end.ndim:
            raise ValueError("Argument `maxlen` must be scalar for sequence_mask")
        most = int(end)
    take_constant_room((most,), x.dtype.itemsize)
    return cast(LESS(constant(np.arange(most, dtype=x.dtype)), expand_dims(x, -1)), dtype)


def ensure_shape(
    x: TensorLike, shape: Sequence[int | None] | None, name: str | None = None
) -> Tensor:
    """Return a tensor that is of a shape.

    Args:
        x: The tensor.
        shape: Its sizes, of which some may be None; None: any shape.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: It has another one.

    Example:
        >>> import mirrored as mr
        >>> mr.ensure_shape([[1, 2]], (None, 2)).shape
        (1, 2)
    """
    if isinstance(x, UnknownShape):
        x.set_shape(shape)
    tensor = adopt(x, None)
    sizes: Any = tensor.shape if shape is None or is_any_shape(shape) else tuple(shape)
    if not has_shape(tensor.shape, sizes):
        raise InvalidArgumentError(
            f"Shape of tensor {name or 'x'} {shape_text(tensor.shape)} is not compatible with "
            f"expected shape {shape_text(sizes)}. [Op:EnsureShape]"
        )
    return IDENTITY(tensor)


def shape(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Return the sizes of a tensor's axes, as a tensor of integers.

    Args:
        input: The tensor.
        out_type: Int32 or int64; None: int32.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.shape([[1, 2, 3]]).numpy()
        array([1, 3], dtype=int32)
    """
    tensor = adopt(input, None)
    return _of_shape(tensor, constant(list(tensor.shape), _index_dtype(out_type)))


def size(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Return the number of a tensor's elements, as a tensor.

    Args:
        input: The tensor.
        out_type: Int32 or int64; None: int32.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> int(mr.size([[1, 2, 3]]))
        3
    """
    tensor = adopt(input, None)
    return _of_shape(tensor, constant(tensor.size, _index_dtype(out_type)))


def _of_shape(tensor: Tensor, result: Tensor) -> Tensor:
    """Return a constant that is made of a tensor's shape, and tell who follows that."""
    for listener in active_listeners():
        listener.on_op(_SHAPE, (tensor,), {}, result)
    return result


def _index_dtype(out_type: Any) -> DType:
    dtype = int32 if out_type is None else as_dtype(out_type)
    if dtype not in INDICES:
        raise InvalidArgumentError(f"Sizes must be int32 or int64. Received: out_type={dtype.name}")
    return dtype


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the number of a tensor's axes, as an int32 tensor.

    Example:
        >>> import mirrored as mr
        >>> int(mr.rank([[1, 2, 3]]))
        2
    """
    return constant(adopt(input, None).ndim, int32)


explain_functions(__name__, all_but="rank")
