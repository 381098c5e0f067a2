"""`keras.random`: functions that draw random numbers from a seed.

With an integer, or a `SeedGenerator` that starts from one, the numbers are Keras'.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, PartialShapeLike, ShapeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.ops.random_draws import next_of_stream
from mirrored.ops.rng_state import current_position
from mirrored.ops.spec import FLOATS, INDICES, INTEGERS, DType, as_dtype, default_float
from mirrored.ops.stateless_random import Draw
from mirrored.variables.generator import SeedGenerator

_BELOW = 2**31 - 2  # Keras takes seeds modulo this.
Seed = int | SeedGenerator | None


def _words(seed: Seed) -> Any:
    """Return the two integers that a seed stands for in this draw."""
    if isinstance(seed, SeedGenerator):
        return ops.floormod(seed.next(), _BELOW)
    if isinstance(seed, int) and not isinstance(seed, bool):
        return [seed % _BELOW, 0]
    raise ValueError(
        "Argument `seed` must be either an integer or an instance of `SeedGenerator`. Received: "
        f"seed={seed} (of type {type(seed)})"
    )


def _draw(seed: Seed) -> Draw:
    """Return a draw, of which each replica takes the part of its examples."""
    if seed is None:
        return next_of_stream(None)
    return Draw.of_seed(_words(seed), at=current_position())


def _float(dtype: Any) -> DType:
    """Return a dtype, by default that of floatx."""
    return default_float() if dtype is None else as_dtype(dtype)


def normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return normal numbers.

    In replicas a shape whose first axis is as long as the replica's part of the batch has the
    numbers of its examples, and any other shape the same numbers on every replica.

    Args:
        shape: The shape.
        mean: The mean.
        stddev: The standard deviation.
        dtype: A float; None: that of `floatx`.
        seed: An integer, which gives the same numbers in every call; a `SeedGenerator`; None: the
            global stream.

    Raises:
        ValueError: `seed` is none of these.
        TypeError: `dtype` is no float.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.random.normal((2,), seed=1).shape
        (2,)
    """
    return _draw(seed).normal(shape, mean, stddev, _float(dtype))


def truncated_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return normal numbers of up to two standard deviations from the mean; else as `normal`.

    Example:
        >>> import mirrored as mr
        >>> drawn = mr.keras.random.truncated_normal((1000,), seed=1)
        >>> bool(mr.reduce_max(mr.abs(drawn)) < 2.0)
        True
    """
    wanted = _float(dtype)
    return _draw(seed).normal(shape, mean, stddev, wanted, truncated=True)


def uniform(
    shape: ShapeLike,
    minval: TensorLike = 0.0,
    maxval: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return floats drawn evenly from [minval, maxval).

    Args:
        shape: The shape, as for `normal`.
        minval: The least value.
        maxval: The bound above all values.
        dtype: A float; None: that of `floatx`.
        seed: As for `normal`.

    Raises:
        ValueError: `seed` is not as for `normal`, or `dtype` is no float.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.random.uniform((2,), seed=1337).numpy()
        array([0.5598835 , 0.40457022], dtype=float32)
    """
    wanted = _float(dtype)
    if wanted not in FLOATS:
        raise ValueError(
            "`keras.random.uniform` requires a floating point `dtype`. Received: "
            f"dtype={wanted.name} "
        )
    return _draw(seed).uniform(shape, minval, maxval, wanted)


def randint(
    shape: ShapeLike,
    minval: TensorLike,
    maxval: TensorLike,
    dtype: DTypeLike = "int32",
    seed: Seed = None,
) -> Tensor:
    """Return integers drawn evenly from [minval, maxval).

    Args:
        shape: The shape, as for `normal`.
        minval: The least value.
        maxval: The bound above all values.
        dtype: A dtype of integers.
        seed: As for `normal`.

    Raises:
        ValueError: `seed` is not as for `normal`, or `dtype` is not of integers.
        InvalidArgumentError: The range is empty.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.random.randint((3,), 0, 10, seed=1).shape
        (3,)
    """
    wanted = as_dtype(dtype)
    if wanted not in INTEGERS:
        raise ValueError(
            f"`keras.random.randint` requires an integer `dtype`. Received: dtype={wanted.name} "
        )
    drawn = wanted if wanted in INDICES else ops.int64
    return ops.cast(_draw(seed).uniform(shape, minval, maxval, drawn), wanted)


def categorical(
    logits: TensorLike, num_samples: int, dtype: DTypeLike = "int32", seed: Seed = None
) -> Tensor:
    """Return classes drawn for each row of logits.

    Args:
        logits: Logarithms of what the classes are drawn by, of shape (rows, classes).
        num_samples: How many are drawn for each row.
        dtype: The dtype.
        seed: As for `normal`.

    Raises:
        ValueError: `seed` is not as for `normal`, or the logits are no matrix.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.random.categorical([[0.0, -100.0]], 3, seed=1).numpy()
        array([[0, 0, 0]], dtype=int32)
    """
    rows = ops.convert_to_tensor(logits)
    if len(rows.shape) != 2:
        raise ValueError(
            "`logits` should be a 2-D tensor with shape [batch_size, num_classes]. Received: "
            f"logits={logits!r:.200}"
        )
    return ops.cast(_draw(seed).categorical(rows, num_samples, ops.int64), as_dtype(dtype))


def dropout(
    inputs: TensorLike, rate: float, noise_shape: PartialShapeLike | None = None, seed: Seed = None
) -> Tensor:
    """Return `inputs` with elements dropped with probability `rate`, others over 1 - `rate`.

    Args:
        inputs: A tensor of floats.
        rate: The fraction to drop, a number in [0, 1].
        noise_shape: The shape of the mask, which broadcasts; None for a size is that of `inputs`.
        seed: As for `normal`.

    Raises:
        ValueError: `seed` is not as for `normal`; or `rate` is not in [0, 1], or `inputs` are not
            of floats.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.random.dropout(mr.ones((6,)), 0.5, seed=1).shape
        (6,)
    """
    if rate == 1.0:
        return ops.zeros_like(inputs)
    if rate == 0.0:
        return ops.convert_to_tensor(inputs)
    if seed is None:
        return ops.dropout(inputs, rate, noise_shape)
    return ops.stateless_dropout(inputs, rate, _words(seed), noise_shape=noise_shape)


explain_functions(__name__)
