"""`keras.ops` that create tensors: of a shape, of ranges, windows and array_creation."""

from collections.abc import Callable
from typing import Any, SupportsFloat

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.keras_functions.promotion import kind_of, result_type, summands, to_numbers
from mirrored.numpy_functions import array_creation, array_reductions
from mirrored.ops import Tensor
from mirrored.ops.hooks import take_constant_room
from mirrored.ops.spec import INDICES, INTEGERS, DType, default_float


def array(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a value as a tensor.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype; None: that of the values.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.array([1, 2]).dtype.name
        'int32'
    """
    return ops.convert_to_tensor(x) if dtype is None else ops.cast(x, dtype)


def empty(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros.

    Args:
        shape: The shape.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.empty((2,)).shape
        (2,)
    """
    return ops.zeros(shape, dtype or default_float())


def empty_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros in the shape of a tensor.

    Args:
        x: A tensor or an array.
        dtype: The dtype; None: that of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.empty_like([1, 2]).shape
        (2,)
    """
    return ops.zeros_like(x, dtype)


def full_like(x: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return one number in the shape of a tensor.

    Args:
        x: A tensor or an array.
        fill_value: The number.
        dtype: The dtype; None: that of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.full_like([1, 2], 3).numpy()
        array([3, 3], dtype=int32)
    """
    like = ops.zeros_like(x, dtype)
    return ops.broadcast_to(ops.cast(fill_value, like.dtype), ops.shape(like))


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return a matrix with ones on a diagonal.

    Args:
        N: The number of rows.
        M: Of columns; None: as many.
        k: The number of the diagonal: above 0 on the right of the main one.
        dtype: The dtype; None: floatx.

    Raises:
        TypeError: One of these is no integer.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.eye(2).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    arguments: dict[str, Any] = {"N": N, "M": M, "k": k}
    for name, value in arguments.items():
        if not isinstance(value, int | np.integer) and (name, value) != ("M", None):
            raise TypeError(f"Argument `{name}` must be an integer. Received: {name}={value!r}")
    return array_creation.eye(N, M, k, ops.as_dtype(dtype or default_float()))


def identity(n: int, dtype: DTypeLike | None = None) -> Tensor:
    """Return a square matrix with ones on its main diagonal.

    Args:
        n: The number of rows.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.identity(2).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return a matrix of ones on a diagonal and below it, and zeros above.

    Args:
        N: The number of rows.
        M: Of columns; None: as many.
        k: The number of the diagonal.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tri(2).numpy()
        array([[1., 0.],
               [1., 1.]], dtype=float32)
    """
    return array_creation.tri(N, M, k, ops.as_dtype(dtype or default_float()))


def tril(x: TensorLike, k: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    Args:
        x: The array_creation.
        k: The number of the diagonal.

    Raises:
        ValueError: They have fewer than two axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tril([[1, 2], [3, 4]]).numpy()
        array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return array_creation.tril(ops.convert_to_tensor(x), k)


def triu(x: TensorLike, k: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    Args:
        x: The array_creation.
        k: The number of the diagonal.

    Raises:
        ValueError: They have fewer than two axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.triu([[1, 2], [3, 4]]).numpy()
        array([[1, 2],
               [0, 4]], dtype=int32)
    """
    return array_creation.triu(ops.convert_to_tensor(x), k)


def diag(x: TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with a vector on a diagonal, or a matrix' diagonal.

    Args:
        x: A vector or a matrix.
        k: The number of the diagonal.

    Raises:
        InvalidArgumentError: It is neither.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    return array_creation.diag(ops.convert_to_tensor(x), k)


def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with all elements on a diagonal.

    Args:
        x: The elements.
        k: The number of the diagonal.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.diagflat([[1, 2]]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    return array_creation.diagflat(ops.convert_to_tensor(x), k)


def diagonal(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a diagonal of matrices, as the last axis.

    Args:
        x: The array_creation.
        offset: The number of the diagonal.
        axis1: The axis of the rows.
        axis2: That of the columns.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.diagonal([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
    """
    return array_creation.diagonal(ops.convert_to_tensor(x), offset, axis1, axis2)


def trace(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the sum of a diagonal of array_creation.

    Args:
        x: The array_creation.
        offset: The number of the diagonal.
        axis1: The axis of the rows.
        axis2: That of the columns.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.trace([[1, 2], [3, 4]]).numpy().item()
        5
    """
    tensor = summands(x)
    return array_reductions.trace(tensor, offset, axis1, axis2, tensor.dtype)


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
        >>> mr.keras.ops.vander([2, 3]).numpy()
        array([[2, 1],
               [3, 1]], dtype=int32)
    """
    return array_creation.vander(to_numbers(x), N, increasing)


def zeros(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros.

    Args:
        shape: The shape.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.zeros((2,)).numpy()
        array([0., 0.], dtype=float32)
    """
    return ops.zeros(shape, dtype or default_float())


def ones(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return ones.

    Args:
        shape: The shape.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ones((2,)).numpy()
        array([1., 1.], dtype=float32)
    """
    return ops.ones(shape, dtype or default_float())


def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of one number.

    Args:
        shape: The shape.
        fill_value: The number.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.full((2,), 3).numpy()
        array([3., 3.], dtype=float32)
    """
    return ops.broadcast_to(ops.cast(fill_value, dtype or default_float()), shape)


def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return numbers that are a step apart: from a start to below a stop.

    Args:
        start: The first one; or the stop, where that is None, and then the first one is 0.
        stop: What all are below.
        step: How far they are apart; None: 1.
        dtype: The dtype; None: what those of the others promote to.

    Raises:
        InvalidArgumentError: The step is 0, or leads away from the stop.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.arange(2, 5).numpy()
        array([2, 3, 4], dtype=int32)
    """
    bounds = [bound for bound in (start, stop, step) if bound is not None]
    wanted = result_type(*map(kind_of, bounds)) if dtype is None else ops.as_dtype(dtype)
    computed = ops.float32 if wanted in INTEGERS - INDICES else wanted
    numbers = ops.range(start, stop, 1 if step is None else step, dtype=computed)
    return ops.cast(numbers, wanted)


def zeros_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros in the shape of a tensor.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype; None: that of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.zeros_like([1, 2]).numpy()
        array([0, 0], dtype=int32)
    """
    return ops.zeros_like(x, dtype)


def ones_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return ones in the shape of a tensor.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype; None: that of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ones_like([1, 2]).numpy()
        array([1, 1], dtype=int32)
    """
    return ops.ones_like(x, dtype)


def _bounds(start: Any, stop: Any, dtype: Any) -> tuple[DType, Tensor, Tensor]:
    """Return the dtype of numbers between two, and both as floats: of it, or float32."""
    own = result_type(kind_of(start), kind_of(stop), float) if dtype is None else dtype
    kind = ops.as_dtype(own)
    wide = ops.float32 if kind in INTEGERS else kind
    return kind, ops.cast(start, wide), ops.cast(stop, wide)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """Return numbers at equal distances.

    Args:
        start: The first one, or a tensor of first ones.
        stop: The last one.
        num: How many.
        endpoint: Whether `stop` is among them; otherwise they end a step before.
        retstep: Whether to return the step as well.
        dtype: The dtype; None: that of `start` and `stop` as floats.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.linspace(0, 1, 3).numpy()
        array([0. , 0.5, 1. ], dtype=float32)
    """
    kind, first, last = _bounds(start, stop, dtype)
    numbers, step = array_creation.linspace(first, last, num, endpoint, True, axis=axis)
    numbers = ops.cast(numbers, kind)
    return (numbers, ops.cast(step, kind)) if retstep else numbers


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10,
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
        dtype: The dtype; None: that of `start` and `stop` as floats.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logspace(0, 2, 3).numpy()
        array([  1.,  10., 100.], dtype=float32)
    """
    kind, first, last = _bounds(start, stop, dtype)
    return ops.cast(array_creation.logspace(first, last, num, endpoint, base, axis=axis), kind)


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
        dtype: The dtype; None: that of `start` and `stop` as floats.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.geomspace(1, 8, 4).numpy().round(4)
        array([1., 2., 4., 8.], dtype=float32)
    """
    kind, first, last = _bounds(start, stop, dtype)
    return ops.cast(array_creation.geomspace(first, last, num, endpoint, first.dtype, axis), kind)


def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of a grid, one tensor for each axis.

    Args:
        *x: The coordinates along each axis.
        indexing: "xy", by which the second axis is that of the first ones, or "ij".

    Raises:
        ValueError: It is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.meshgrid([1, 2], [3])[1].numpy()
        array([[3, 3]], dtype=int32)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for `indexing` are 'xy' and 'ij', but received {indexing}.")
    return array_creation.meshgrid(
        *(ops.convert_to_tensor(vector) for vector in x), indexing=indexing
    )


def _window(function: Callable[[int], Any], x: Any) -> Tensor:
    take_constant_room((int(x),), 8)
    return ops.constant(function(int(x)), default_float())


def bartlett(x: TensorLike) -> Tensor:
    """Return the Bartlett window of N points.

    Args:
        x: How many.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.bartlett(4).shape
        (4,)
    """
    return _window(np.bartlett, x)


def blackman(x: TensorLike) -> Tensor:
    """Return the Blackman window of N points.

    Args:
        x: How many.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.blackman(4).shape
        (4,)
    """
    return _window(np.blackman, x)


def hamming(x: TensorLike) -> Tensor:
    """Return the Hamming window of N points.

    Args:
        x: How many.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.hamming(4).shape
        (4,)
    """
    return _window(np.hamming, x)


def hanning(x: TensorLike) -> Tensor:
    """Return the Hann window of N points.

    Args:
        x: How many.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.hanning(4).shape
        (4,)
    """
    return _window(np.hanning, x)


def kaiser(x: TensorLike, beta: SupportsFloat) -> Tensor:
    """Return the Kaiser window of N points.

    Args:
        x: How many.
        beta: How narrow it is.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.kaiser(3, 0.0).numpy()
        array([1., 1., 1.], dtype=float32)
    """
    return _window(lambda points: np.kaiser(points, float(beta)), x)


explain_functions(__name__, all_but="")
