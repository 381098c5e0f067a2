"""NumPy's functions that create tensors: of a shape, of ranges, diagonal and triangular matrices.

Of no dtype they are float64.
"""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.numpy_functions.array_conversion import FLOAT, array, asarray, result_type
from mirrored.numpy_functions.array_manipulation import moveaxis
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.hooks import take_constant_room
from mirrored.ops.spec import DType


def kind_of(dtype: Any) -> DType:
    """Return what a dtype is here, of which None is float64.

    Args:
        dtype: The dtype.
    """
    return FLOAT if dtype is None else result_type(dtype)


def empty(shape: ShapeLike, dtype: DTypeLike = float) -> Tensor:
    """Return zeros.

    Args:
        shape: The shape.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.empty(2).numpy()
        array([0., 0.])
    """
    return zeros(shape, dtype)


def empty_like(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros of a value's shape.

    Args:
        a: The value.
        dtype: The dtype; None: the value's.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.empty_like([1, 2]).numpy()
        array([0, 0])
    """
    return zeros_like(a, dtype)


def zeros(shape: ShapeLike, dtype: DTypeLike = float) -> Tensor:
    """Return zeros.

    Args:
        shape: The shape.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.zeros(2).numpy()
        array([0., 0.])
    """
    return ops.zeros(shape, kind_of(dtype))


def zeros_like(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros of a value's shape.

    Args:
        a: The value.
        dtype: The dtype; None: the value's.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.zeros_like([1, 2]).numpy()
        array([0, 0])
    """
    return ops.zeros_like(array(a), None if dtype is None else result_type(dtype))


def ones(shape: ShapeLike, dtype: DTypeLike = float) -> Tensor:
    """Return ones.

    Args:
        shape: The shape.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.ones(2).numpy()
        array([1., 1.])
    """
    return ops.ones(shape, kind_of(dtype))


def ones_like(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return ones of a value's shape.

    Args:
        a: The value.
        dtype: The dtype; None: the value's.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.ones_like([1, 2]).numpy()
        array([1, 1])
    """
    return ops.ones_like(array(a), None if dtype is None else result_type(dtype))


def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a value broadcast to a shape.

    Args:
        shape: The shape.
        fill_value: The value.
        dtype: The dtype; None: the value's.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.full((2,), 3).numpy()
        array([3, 3])
    """
    return ops.broadcast_to(asarray(fill_value, dtype), shape)


def full_like(
    a: TensorLike,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
) -> Tensor:
    """Return a value broadcast to another one's shape.

    Args:
        a: The value of that shape.
        fill_value: The value.
        dtype: The dtype; None: that of `a`.
        order: "K" alone.
        subok: True alone.
        shape: None alone.

    Raises:
        ValueError: Another `order`, `subok` or `shape` is given.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.full_like([1, 2], 3.5).numpy()
        array([3, 3])
    """
    if order != "K" or not subok or shape:
        raise ValueError("`order`, `subok` and `shape` are not supported. Leave them out.")
    like = array(a)
    return ops.broadcast_to(asarray(fill_value, like.dtype if dtype is None else dtype), like.shape)


def arange(
    start: float | Tensor,
    stop: float | Tensor | None = None,
    step: float | Tensor = 1,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the numbers from `start` on, `step` apart, before `stop`.

    Args:
        start: The first one; the only argument is `stop`, and 0 the first one.
        stop: Where they end; it is not among them.
        step: How far one is from the next.
        dtype: The dtype; None: that of the arguments together.

    Raises:
        ValueError: `step` is 0.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.arange(1, 7, 2).numpy()
        array([1, 3, 5])
    """
    if not step:
        raise ValueError("step must be non-zero.")
    first, end = (0, start) if stop is None else (start, stop)
    kind = result_type(*(bound for bound in (start, step, stop) if bound is not None))
    kind = kind if dtype is None else result_type(dtype)
    if (step > 0 and first > end) or (step < 0 and first < end):
        return ops.zeros((0,), kind)
    return ops.cast(ops.range(first, end, step), kind)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = float,
    axis: int = 0,
) -> Any:
    """Return numbers at equal distances.

    Args:
        start: The first one, or a tensor of first ones.
        stop: The last one.
        num: How many.
        endpoint: Whether `stop` is among them; otherwise they end a step before.
        retstep: Whether to return the step as well.
        dtype: Unless it is None the numbers are of the dtype of `start` and `stop` as floats, which
            is what TensorFlow makes of it.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.linspace(0, 1, 3).numpy()
        array([0. , 0.5, 1. ])
    """
    if num < 0:
        raise ValueError(
            "Argument `num` (number of samples) must be a non-negative integer. "
            f"Received: num={num!r}"
        )
    kind = result_type(_times_one(start), _times_one(stop)) if dtype is not None else None
    first, last = (array(bound, kind) for bound in (start, stop))
    parts = num - 1 if endpoint else num
    step = (last - first) / parts if parts > 0 else ops.constant(np.nan)
    if not endpoint and num > 1:
        last = ops.cast(last, step.dtype) - step
        first = ops.cast(first, last.dtype)
    result = ops.linspace(first, last, num, axis=axis)
    result = result if kind is None else ops.cast(result, kind)
    return (result, step) if retstep else result


def _times_one(value: Any) -> Any:
    if is_tensor(value):
        return array(value) * 1.0
    return np.multiply(value, 1.0) if isinstance(value, list | tuple) else value * 1.0


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Return powers of a base whose exponents are at equal distances.

    Args:
        start: The first exponent.
        stop: The last one.
        num: How many.
        endpoint: Whether `stop` is among them.
        base: What is raised to the powers.
        dtype: Not used, as by TensorFlow: the result has that of the exponents as floats.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.logspace(0, 2, 3).numpy()
        array([  1.,  10., 100.])
    """
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    return ops.pow(ops.constant(base, exponents.dtype), exponents)


def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Return numbers each of which is the same multiple of the one before.

    Args:
        start: The first one.
        stop: The last one, of the same sign.
        num: How many.
        endpoint: Whether `stop` is among them.
        dtype: The dtype; None: float64, or that of the arguments.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.geomspace(1, 8, 4).numpy().round(9)
        array([1., 2., 4., 8.])
    """
    kind = result_type(dtype) if dtype is not None else result_type(start, stop, 1.0, FLOAT)
    wide = np.promote_types(kind, np.float32)
    first, last = (array(bound, wide) for bound in (start, stop))
    both_negative = ops.logical_and(first < 0.0, last < 0.0)
    flip = ops.where(both_negative, ops.constant(-1, wide), ops.constant(1, wide))
    begin, end = (ops.log(flip * bound) / np.log(10) for bound in (first, last))
    result = flip * logspace(begin, end, num, endpoint)
    return ops.cast(result if axis == 0 else moveaxis(result, 0, axis), kind)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float) -> Tensor:
    """Return a matrix with ones on a diagonal.

    Args:
        N: The number of rows.
        M: Of columns; None: as many.
        k: The number of the diagonal: above 0 on the right of the main one.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.eye(2, k=1).numpy()
        array([[0., 1.],
               [0., 0.]])
    """
    take_constant_room((int(N), int(M or N)), kind_of(dtype).itemsize)
    return ops.constant(np.eye(int(N), int(M or N), int(k), dtype=kind_of(dtype)))


def identity(n: int, dtype: DTypeLike = float) -> Tensor:
    """Return a square matrix with ones on its main diagonal.

    Args:
        n: The number of rows.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.identity(2).numpy()
        array([[1., 0.],
               [0., 1.]])
    """
    return eye(n, n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return a matrix of ones on a diagonal and below it, and zeros above.

    Args:
        N: The number of rows.
        M: Of columns; None: as many.
        k: The number of the diagonal.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.tri(2).numpy()
        array([[1., 0.],
               [1., 1.]])
    """
    take_constant_room((N, N if M is None else M), kind_of(dtype).itemsize)
    return ops.constant(np.tri(N, N if M is None else M, k, dtype=kind_of(dtype)))


def _triangle(name: str, m: Any, k: int) -> tuple[Tensor, Tensor]:
    matrices = array(m)
    if matrices.ndim < 2:
        raise ValueError(f"Argument to {name} must have rank at least 2")
    take_constant_room(matrices.shape[-2:], 1)
    below = ops.constant(np.tri(matrices.shape[-2], matrices.shape[-1], k, dtype=bool))
    return matrices, ops.broadcast_to(below, matrices.shape)


def tril(m: TensorLike, k: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    Args:
        m: The matrices.
        k: The number of the diagonal.

    Raises:
        ValueError: They have fewer than two axes.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.tril([[1, 2], [3, 4]]).numpy()
        array([[1, 0],
               [3, 4]])
    """
    matrices, below = _triangle("tril", m, k)
    return ops.where(below, matrices, ops.zeros_like(matrices))


def triu(m: TensorLike, k: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    Args and errors: as for `tril`.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.triu([[1, 2], [3, 4]]).numpy()
        array([[1, 2],
               [0, 4]])
    """
    matrices, below = _triangle("triu", m, k - 1)
    return ops.where(below, ops.zeros_like(matrices), matrices)


def diag(v: TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with a vector on a diagonal, or a matrix' diagonal.

    Args:
        v: A vector or a matrix.
        k: The number of the diagonal.

    Raises:
        InvalidArgumentError: It is neither.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]])
    """
    x = array(v)
    if x.ndim not in (1, 2):
        raise InvalidArgumentError(f"`diag` takes a vector or a matrix. Received: shape {x.shape}")
    if x.ndim == 2:
        return diagonal(x, k)
    return ops.diag(x, k=k) if x.size else ops.zeros([abs(k)] * 2, x.dtype)


def diagonal(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a diagonal of matrices, as the last axis.

    Args:
        a: The matrices.
        offset: The number of the diagonal; one that they have not is empty.
        axis1: The axis of the rows.
        axis2: That of the columns.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diagonal([[1, 2], [3, 4]]).numpy()
        array([1, 4])
    """
    x = array(a)
    moved = moveaxis(x, (axis1, axis2), (-2, -1))
    if not -moved.shape[-2] < offset < moved.shape[-1]:
        return ops.zeros((*moved.shape[:-2], 0), x.dtype)
    return ops.diag_part(moved, k=offset)


def diagflat(v: TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with all elements on a diagonal.

    Args:
        v: The elements.
        k: The number of the diagonal.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diagflat([[1, 2]]).numpy()
        array([[1, 0],
               [0, 2]])
    """
    return diag(ops.reshape(array(v), [-1]), k)


def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of each element, as a row.

    Args:
        x: A vector.
        N: How many; None: as many as elements.
        increasing: Whether they begin with the power 0.

    Raises:
        ValueError: `x` is no vector, or `N` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.vander([2, 3]).numpy()
        array([[2, 1],
               [3, 1]])
    """
    vector = array(x)
    if vector.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    count = len(vector) if N is None else int(N)
    if count < 0:
        raise ValueError("N must be nonnegative")
    take_constant_room((count,), 8)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return ops.pow(ops.expand_dims(vector, -1), ops.constant(powers.astype(vector.dtype)))


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Return the indices of a main diagonal, along each axis.

    Args:
        n: The length of the axes.
        ndim: How many there are.

    Raises:
        ValueError: One of both is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diag_indices(2)[0].numpy()
        array([0, 1], dtype=int32)
    """
    for name, value in (("n", n), ("ndim", ndim)):
        if value < 0:
            raise ValueError(f"{name} argument to diag_indices must be nonnegative, got {value}")
    return (ops.range(n),) * ndim


def meshgrid(*xi: Any, **kwargs: Any) -> list[Tensor]:
    """Return the coordinates of a grid, one tensor for each axis.

    Args:
        *xi: The coordinates along each axis.
        **kwargs: `indexing`, "xy" or "ij"; `sparse`, False; and `copy`, True.

    Raises:
        ValueError: They are others.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.meshgrid([1, 2], [3])[1].numpy()
        array([[3, 3]])
    """
    if kwargs.get("sparse", False) or not kwargs.get("copy", True):
        raise ValueError("`meshgrid` takes only sparse=False and copy=True. Leave them out.")
    grid = [array(coordinates) for coordinates in xi]
    indexing = kwargs.get("indexing", "xy")
    if len({axis.dtype for axis in grid}) < 2:
        return list(ops.meshgrid(*grid, indexing=indexing))
    places = ops.meshgrid(*(ops.range(axis.size) for axis in grid), indexing=indexing)
    pairs = zip(grid, places, strict=True)
    return [ops.gather(ops.reshape(axis, [-1]), place) for axis, place in pairs]


explain_functions(__name__)
