"""Functions that draw from the global streams by distributions other than those of `random`.

Each call takes the next draw of a stream as the seed of TensorFlow's generator.
"""

from typing import SupportsIndex

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.philox import KEY_COUNTER
from mirrored.ops.random import RANDOM_UNIFORM_INT, next_draw
from mirrored.ops.rng_state import current_position
from mirrored.ops.spec import as_dtype, broadcast_shapes, float32, int64
from mirrored.ops.stateless_random import Draw, vector_shape
from mirrored.ops.tensor import Tensor


def next_of_stream(seed: int | None) -> Draw:
    """Return the next draw of a stream: all replicas of a step make the same one.

    Args:
        seed: An integer gives a stream of its own, beside the global one.
    """

    def take() -> Tensor:
        # A double has 53 bits.
        words = RANDOM_UNIFORM_INT(
            shape=(2,), dtype=int64, first=0, minval=0, maxval=1 << 53, **next_draw(seed)
        )
        return KEY_COUNTER(words)

    return Draw(take, current_position())


def random_truncated_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return normal numbers of up to two standard deviations from the mean.

    Args:
        shape: The shape.
        mean: The mean.
        stddev: The standard deviation, before values further away are drawn again.
        dtype: A float.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        TypeError: `dtype` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.random.truncated_normal((2, 3)).shape
        (2, 3)
    """
    return next_of_stream(seed).normal(shape, mean, stddev, dtype, truncated=True)


def random_gamma(
    shape: ShapeLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return gamma numbers: as many of the shape as there are parameters.

    Marsaglia and Tsang, A simple method for generating gamma variables, 2000.

    Args:
        shape: The shape of the numbers of each parameter.
        alpha: The shape parameters, above 0. No gradient flows to them.
        beta: The rates; None means 1.
        dtype: Float16, float32 or float64.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Returns:
        The numbers, of the shape with that of `alpha` and `beta` together behind it.

    Raises:
        InvalidArgumentError: `dtype` is another one, or the parameters do not broadcast.

    Example:
        >>> import mirrored as mr
        >>> mr.random.gamma((3,), alpha=[0.5, 2.0]).shape
        (3, 2)
    """
    wanted, sizes = as_dtype(dtype), vector_shape(shape)
    alphas = convert_to_tensor(alpha, wanted)
    betas = convert_to_tensor(1 if beta is None else beta, wanted)
    together = broadcast_shapes("BroadcastArgs", alphas.shape, betas.shape)
    return next_of_stream(seed).gamma((*sizes, *together), alphas, betas, wanted)


def random_poisson(
    shape: ShapeLike,
    lam: TensorLike,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return Poisson numbers: as many of the shape as there are rates.

    Args:
        shape: The shape of the numbers of each rate.
        lam: The rates.
        dtype: Float16, float32, float64, int32 or int64.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Returns:
        The numbers, of the shape with that of `lam` behind it.

    Raises:
        InvalidArgumentError: `dtype` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.random.poisson((3,), lam=[0.5, 2.0]).shape
        (3, 2)
    """
    rates, sizes = adopt(lam, None), vector_shape(shape)
    return next_of_stream(seed).poisson((*sizes, *rates.shape), rates, as_dtype(dtype))


def random_categorical(
    logits: TensorLike,
    num_samples: SupportsIndex,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return classes drawn by their logits.

    Args:
        logits: The logits, shape (batch, classes).
        num_samples: How many to draw for each row.
        dtype: Int32 or int64; None means int64.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Returns:
        The classes, shape (batch, num_samples).

    Raises:
        InvalidArgumentError: The logits are no matrix.
        ValueError: `dtype` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.random.categorical([[0.0, -1e9]], 3).numpy()
        array([[0, 0, 0]])
    """
    return next_of_stream(seed).categorical(adopt(logits, None), num_samples, dtype)


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Return a tensor with its rows in random order.

    Args:
        value: The tensor.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Example:
        >>> import mirrored as mr
        >>> sorted(mr.random.shuffle([1, 2, 3]).numpy().tolist())
        [1, 2, 3]
    """
    return next_of_stream(seed).shuffled(adopt(value, None))


explain_functions(__name__)
