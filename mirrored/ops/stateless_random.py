"""Random numbers that are functions of a seed alone: TensorFlow's, for the same seed.

They keep no state: a seed gives the same numbers in every call, on every device and replica.
"""

from typing import Any

from mirrored._arguments import explained
from mirrored.ops.conversion import adopt
from mirrored.ops.draw import AUTO, FULL_INTEGERS, Draw
from mirrored.ops.joining import stack
from mirrored.ops.spec import FLOATS, INDICES, as_dtype, float32, int32, int64
from mirrored.ops.tensor import Tensor


@explained
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = AUTO,
) -> Tensor:
    """Return numbers drawn evenly from [minval, maxval), which follow from the seed.

    The numbers are TensorFlow's.

    Args:
        shape: The shape.
        seed: Two integers.
        minval: The least value; of integers it may be None, as `maxval` is then too, for all that
            the dtype holds.
        maxval: The bound above all values; None means 1 for floats.
        dtype: A float, int32 or int64; uint32 or uint64 for all that they hold.
        name: Accepted for compatibility; eager ops have no name.
        alg: "philox" or "auto_select".

    Raises:
        InvalidArgumentError: The seed is not two integers, or a range of integers is empty.
        ValueError: `dtype` is another one, or one bound of integers is None.

    Example:
        >>> import mirrored as mr
        >>> mr.random.stateless_uniform([2], seed=[1, 2]).numpy()
        array([0.8440604 , 0.19204533], dtype=float32)
    """
    del name
    wanted = as_dtype(dtype)
    if wanted not in FULL_INTEGERS | FLOATS:
        raise ValueError(
            f"Argument `dtype` got invalid value {wanted.name}. Accepted dtypes are float16, "
            "bfloat16, float32, float64, int32, int64, uint32 and uint64."
        )
    if wanted in FULL_INTEGERS and (minval is None) != (maxval is None):
        raise ValueError(
            f"For integer `dtype` argument {wanted.name}, argument `minval` and `maxval` must be "
            f"both None or not None. Got `minval`={minval} and `maxval`={maxval}."
        )
    if wanted in FULL_INTEGERS - INDICES and minval is not None:
        raise ValueError(
            f"Argument `dtype` got invalid value {wanted.name} when argument `minval` is not None. "
            "Please don't use unsigned integers in this case."
        )
    if wanted not in FULL_INTEGERS and maxval is None:
        maxval = 1
    return Draw.of_seed(seed, alg).uniform(shape, minval, maxval, wanted)


@explained
def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = AUTO,
) -> Tensor:
    """Return normal numbers that follow from the seed.

    The numbers are TensorFlow's, in float32 but for the last bits: TensorFlow's logarithm and sine
    there are those of the machine's C library, which differ from one to the next.

    Args:
        shape: The shape.
        seed: Two integers.
        mean: The mean.
        stddev: The standard deviation.
        dtype: A float.
        name: Accepted for compatibility; eager ops have no name.
        alg: "philox" or "auto_select".

    Raises:
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.random.stateless_normal([2], seed=[1, 2]).shape
        (2,)
    """
    del name
    return Draw.of_seed(seed, alg).normal(shape, mean, stddev, dtype)


@explained
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = AUTO,
) -> Tensor:
    """Return normal numbers of up to two deviations from the mean, which follow from the seed.

    Arguments, errors and numbers are as of `stateless_normal`.

    Example:
        >>> import mirrored as mr
        >>> drawn = mr.random.stateless_truncated_normal([1000], seed=[1, 2])
        >>> bool(mr.reduce_max(mr.abs(drawn)) < 2.0)
        True
    """
    del name
    return Draw.of_seed(seed, alg).normal(shape, mean, stddev, dtype, truncated=True)


@explained
def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Return gamma numbers that follow from the seed, and are TensorFlow's.

    Marsaglia and Tsang, A simple method for generating gamma variables, 2000.

    Args:
        shape: The shape of the result, which ends with that of `alpha` and `beta` together.
        seed: Two integers.
        alpha: The shape parameters, above 0. No gradient flows to them.
        beta: The rates; None means 1.
        dtype: Float16, float32 or float64.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: The seed is not two integers, or the shape does not end so.

    Example:
        >>> import mirrored as mr
        >>> mr.random.stateless_gamma([3, 2], seed=[1, 2], alpha=[0.5, 2.0]).shape
        (3, 2)
    """
    del name
    return Draw.of_seed(seed).gamma(shape, alpha, beta, dtype)


@explained
def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Return Poisson numbers that follow from the seed, and are TensorFlow's.

    Args:
        shape: The shape of the result, which ends with that of `lam`.
        seed: Two integers.
        lam: The rates.
        dtype: Float16, float32, float64, int32 or int64.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: The seed is not two integers, or the shape does not end so.

    Example:
        >>> import mirrored as mr
        >>> mr.random.stateless_poisson([3], seed=[1, 2], lam=4.0).shape
        (3,)
    """
    del name
    return Draw.of_seed(seed).poisson(shape, adopt(lam, None), as_dtype(dtype))


@explained
def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """Return classes drawn by their logits, which follow from the seed.

    The classes are TensorFlow's, as long as it computes all rows on one thread.

    Args:
        logits: The logits, shape (batch, classes).
        num_samples: How many to draw for each row.
        seed: Two integers.
        dtype: Int32 or int64.
        name: Accepted for compatibility; eager ops have no name.

    Returns:
        The classes, shape (batch, num_samples).

    Raises:
        InvalidArgumentError: The seed is not two integers, or the logits are no matrix.
        ValueError: `dtype` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.random.stateless_categorical([[0.0, -1e9]], 3, seed=[1, 2]).numpy()
        array([[0, 0, 0]])
    """
    del name
    return Draw.of_seed(seed).categorical(logits, num_samples, dtype)


@explained
def stateless_shuffle(value: Any, seed: Any, alg: Any = AUTO, name: str | None = None) -> Tensor:
    """Return a tensor with its rows in an order that follows from the seed; it is TensorFlow's.

    Args:
        value: The tensor.
        seed: Two integers.
        alg: "philox" or "auto_select".
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.random.experimental.stateless_shuffle(mr.range(5), seed=[1, 2]).numpy()
        array([0, 2, 1, 4, 3], dtype=int32)
    """
    del name
    return Draw.of_seed(seed, alg).shuffled(value)


@explained
def stateless_split(seed: Any, num: int = 2, alg: Any = AUTO) -> Tensor:
    """Return new seeds, which follow from a seed; they are TensorFlow's.

    Args:
        seed: Two integers.
        num: How many seeds to make.
        alg: "philox" or "auto_select".

    Returns:
        The seeds, shape (num, 2), of the dtype of `seed`.

    Raises:
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.random.split([1, 2], num=3).shape
        (3, 2)
    """
    tensor = adopt(seed, None)
    return stateless_uniform([num, 2], tensor, None, None, tensor.dtype, alg=alg)


@explained
def stateless_fold_in(seed: Any, data: Any, alg: Any = AUTO) -> Tensor:
    """Return a new seed, which follows from a seed and an integer; it is TensorFlow's.

    Args:
        seed: Two integers.
        data: The integer, such as the number of a step.
        alg: "philox" or "auto_select".

    Raises:
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.random.fold_in([1, 2], 7).shape
        (2,)
    """
    number = adopt(data, None)
    first = stateless_uniform([], seed, None, None, number.dtype, alg=alg)
    return stack([first, number])
