"""Draws by TensorFlow's generator, and its functions of random numbers that follow from a seed.

They keep no state: a seed gives the same numbers in every call, on every device and replica. They
are TensorFlow's for the same seed.
"""

import enum
import math
from collections.abc import Callable, Collection
from typing import Any, SupportsIndex

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops import philox
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.elementwise import add, divide, maximum, multiply, subtract
from mirrored.ops.manipulation import stack
from mirrored.ops.narrow_floats import evenly, steps_below_one
from mirrored.ops.op import OPS, Op
from mirrored.ops.philox import Part
from mirrored.ops.random import float_dtype
from mirrored.ops.rng_state import WHOLE, ShardPosition
from mirrored.ops.shaping import broadcast_to, cast
from mirrored.ops.spec import (
    FLOATS,
    INDICES,
    WIDE_FLOATS,
    DType,
    Shape,
    TensorSpec,
    as_dtype,
    as_shape,
    broadcast_shapes,
    check_dtype,
    float16,
    float32,
    float64,
    float_limits,
    int32,
    int64,
    is_narrow,
    uint32,
    uint64,
)
from mirrored.ops.tensor import Tensor

AUTO = "auto_select"
FULL_INTEGERS = INDICES | {uint32, uint64}  # Those of which all that they hold can be drawn.


class Algorithm(enum.Enum):
    """The algorithms that TensorFlow draws by; Philox alone is here.

    Example:
        >>> import mirrored as mr
        >>> mr.random.Algorithm.PHILOX.value
        1
    """

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def as_algorithm(alg: Any) -> int:
    """Return the number of an algorithm that is there.

    Args:
        alg: An `Algorithm`, its number, or its name, in any letters.

    Raises:
        ValueError: There is no such algorithm.
        TypeError: It is nothing of these.
        InvalidArgumentError: It is ThreeFry, which TensorFlow's CPU kernels do not have either.
    """
    if isinstance(alg, str):
        name = alg.strip().upper().replace("-", "").replace("_", "")
        value = {member.name.replace("_", ""): member.value for member in Algorithm}.get(name)
    else:
        number = alg.value if isinstance(alg, Algorithm) else as_integer(alg)
        if number is None:
            raise TypeError(
                "An algorithm must be an `Algorithm`, its number or its name. Received: "
                f"alg={alg!r}"
            )
        value = number if number in {member.value for member in Algorithm} else None
    if value is None:
        raise ValueError(
            f"Unsupported algorithm. Received: alg={alg!r}. Supported are 'philox' and "
            "'auto_select', which is the same."
        )
    if value == Algorithm.THREEFRY.value:
        raise InvalidArgumentError(
            f"Random numbers are drawn by Philox. Received: alg={alg!r}. Use 'philox'."
        )
    return int(value)


class Draw:
    """One draw of numbers, from the state of a seed or of a generator.

    Args:
        take: Returns the state, three integers of 64 bits; called when all arguments are checked,
            since it may move a stream on.
        at: Which part of it is drawn, of shapes that are led by the batch.
    """

    def __init__(self, take: Callable[[], Tensor], at: ShardPosition = WHOLE) -> None:
        self._take = take
        self._at = at

    @classmethod
    def of_seed(cls, seed: Any, alg: Any = AUTO, at: ShardPosition = WHOLE) -> "Draw":
        """Return the draw of a seed of two integers, or a replica's part of it.

        Raises:
            InvalidArgumentError: It is no seed.
        """
        as_algorithm(AUTO if alg is None else alg)
        words = adopt(seed, None)
        if words.dtype.kind in "biu":
            words = cast(words, int64)
        state = philox.KEY_COUNTER(words)
        return cls(lambda: state, at)

    def uniform(self, shape: Any, minval: Any, maxval: Any, dtype: DType) -> Tensor:
        """Return numbers drawn evenly from [minval, maxval)."""
        sizes = vector_shape(shape)
        if dtype in FULL_INTEGERS:
            return self._integers(sizes, minval, maxval, dtype)
        float_dtype(dtype)  # It raises unless it is one.
        low, high = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        if is_narrow(dtype):  # As TensorFlow's: the last bits of each word.
            words = cast(self._of(philox.UNIFORM_FULL_INT, sizes, uint32), int64)
            drawn = evenly(OPS["FloorMod"](words, steps_below_one(dtype)), dtype)
        else:
            drawn = self._of(philox.UNIFORM, sizes, dtype)
        if _are_default(minval, maxval):
            return drawn
        return add(multiply(drawn, subtract(high, low)), low)

    def _integers(self, sizes: Shape, minval: Any, maxval: Any, dtype: DType) -> Tensor:
        if minval is None and maxval is None:
            return self.full_int(sizes, dtype)
        _check_attr("StatelessRandomUniformIntV2", INDICES, dtype)
        low, high = _limit(minval, dtype), _limit(maxval, dtype)
        if low >= high:
            raise InvalidArgumentError(
                f"Need minval < maxval, got {low} >= {high} [Op:StatelessRandomUniformIntV2]"
            )
        return self._of(philox.UNIFORM_INT, sizes, dtype, minval=low, maxval=high)

    def full_int(self, shape: Any, dtype: DType) -> Tensor:
        """Return integers of all that a dtype holds."""
        _check_attr("StatelessRandomUniformFullIntV2", FULL_INTEGERS, dtype)
        return self._of(philox.UNIFORM_FULL_INT, vector_shape(shape), dtype)

    def normal(
        self, shape: Any, mean: Any, stddev: Any, dtype: Any, *, truncated: bool = False
    ) -> Tensor:
        """Return normal numbers; truncated ones are up to two deviations from the mean."""
        wanted = float_dtype(dtype)
        offset, scale = convert_to_tensor(mean, wanted), convert_to_tensor(stddev, wanted)
        op = philox.TRUNCATED_NORMAL if truncated else philox.NORMAL
        exact = float32 if is_narrow(wanted) else wanted
        drawn = cast(self._of(op, vector_shape(shape), exact), wanted)
        if _are_default(mean, stddev):
            return drawn
        return add(multiply(drawn, scale), offset)

    def gamma(self, shape: Any, alpha: Any, beta: Any, dtype: Any) -> Tensor:
        """Return gamma numbers; the shape ends with that of the parameters."""
        wanted = as_dtype(dtype)
        _check_attr("StatelessRandomGammaV3", {float16, *WIDE_FLOATS}, wanted)
        shapes = convert_to_tensor(alpha, wanted)
        rates = convert_to_tensor(1 if beta is None else beta, wanted)
        together = broadcast_shapes("BroadcastArgs", shapes.shape, rates.shape)
        sizes, alphas = vector_shape(shape), broadcast_to(shapes, together)
        drawn = philox.GAMMA(
            self._take(), _exact(alphas), shape=sizes, part=self._part(sizes, together)
        )
        return maximum(float_limits(wanted)[0], divide(cast(drawn, wanted), rates))

    def poisson(self, shape: Any, rates: Tensor, dtype: DType) -> Tensor:
        """Return Poisson numbers; the shape ends with that of the rates."""
        for kind in (rates.dtype, dtype):
            _check_attr("StatelessRandomPoisson", {float16, *WIDE_FLOATS, *INDICES}, kind)
        sizes = vector_shape(shape)
        part = self._part(sizes, rates.shape)
        exact = float64 if dtype == float16 else dtype
        drawn = philox.POISSON(self._take(), _exact(rates), shape=sizes, dtype=exact, part=part)
        return cast(drawn, dtype)

    def categorical(self, logits: Any, num_samples: Any, dtype: Any) -> Tensor:
        """Return classes drawn for each row of logits."""
        wanted = int64 if dtype is None else as_dtype(dtype)
        if wanted not in INDICES:
            raise ValueError(
                f"Argument `dtype` got invalid value {wanted.name}. Accepted dtypes are int32 "
                "and int64."
            )
        rows = adopt(logits, None)
        _check_attr("StatelessMultinomial", FLOATS, rows.dtype)
        count = as_integer(num_samples)
        if count is None:
            raise TypeError(f"`num_samples` must be an integer. Received: {num_samples!r}")
        if count < 0:
            raise InvalidArgumentError(
                f"num_samples should be nonnegative, got {num_samples} [Op:StatelessMultinomial]"
            )
        first = self._before(rows.shape[:1]) * count
        return philox.CATEGORICAL(self._take(), rows, num_samples=count, dtype=wanted, first=first)

    def shuffled(self, value: Any) -> Tensor:
        """Return a tensor with its rows in another order."""
        tensor = adopt(value, None)
        return philox.SHUFFLE(self._take(), tensor) if tensor.shape else tensor

    def _of(self, op: Op, shape: Shape, dtype: DType, **attrs: Any) -> Tensor:
        return op(self._take(), shape=shape, dtype=dtype, first=self._before(shape), **attrs)

    def _before(self, shape: Shape) -> int:
        """Return how many elements of the whole draw come before those of this part."""
        if not self._at.leads(shape):
            return 0
        return self._at.first_example * math.prod(shape[1:])

    def _part(self, shape: Shape, parameters: Shape) -> Part:
        """Return the part of a draw that has numbers for each of some parameters."""
        samples = shape[: len(shape) - len(parameters)]
        if self._at.leads(samples):
            return Part(math.prod(self._at.whole(samples)), self._before(samples))
        return Part(math.prod(samples), 0, self._before(parameters))


def vector_shape(shape: Any) -> Shape:
    """Return a shape, which is not a lone number.

    Raises:
        InvalidArgumentError: It is one, or no shape.
    """
    number = not isinstance(shape, list | tuple) and np.ndim(shape) == 0
    try:
        if number:
            raise TypeError
        return as_shape(shape)
    except TypeError:
        raise InvalidArgumentError(
            f"shape must be a vector of {{int32,int64}}. Received: shape={shape!r}"
        ) from None


def _are_default(*values: Any) -> bool:
    """Whether values are Python's 0 and 1: nothing is computed with defaults."""
    return all(isinstance(value, int | float) for value in values) and values == (0, 1)


def _check_attr(op_name: str, allowed: Collection[DType], dtype: DType) -> None:
    check_dtype(op_name, frozenset(allowed), TensorSpec((), dtype))


def _limit(value: Any, dtype: DType) -> int:
    """Return a bound of integers, a single number that the dtype holds."""
    number, limits = as_integer(value), np.iinfo(dtype)
    if number is not None and not limits.min <= number <= limits.max:
        raise InvalidArgumentError(
            f"The range does not fit {dtype.name}. Received: the bound {value} "
            "[Op:StatelessRandomUniformIntV2]"
        )
    tensor = convert_to_tensor(value, dtype)
    if tensor.shape:
        raise InvalidArgumentError(
            f"minval and maxval of integers must be scalars. Received: {value!r:.80} "
            "[Op:StatelessRandomUniformIntV2]"
        )
    return int(tensor)


def _exact(parameters: Tensor) -> Tensor:
    """Return parameters in a dtype that samples are computed in: in no float of 16 bits."""
    return cast(parameters, float64) if parameters.dtype == float16 else parameters


# --------------------------------------------------------------------------- TensorFlow's functions


def stateless_uniform(
    shape: ShapeLike,
    seed: TensorLike,
    minval: TensorLike | None = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = float32,
    name: str | None = None,
    alg: str | int = AUTO,
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


def stateless_normal(
    shape: ShapeLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = float32,
    name: str | None = None,
    alg: str | int = AUTO,
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
    return Draw.of_seed(seed, alg).normal(shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: ShapeLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = float32,
    name: str | None = None,
    alg: str | int = AUTO,
) -> Tensor:
    """Return normal numbers of up to two deviations from the mean, which follow from the seed.

    Arguments, errors and numbers are as of `stateless_normal`.

    Example:
        >>> import mirrored as mr
        >>> drawn = mr.random.stateless_truncated_normal([1000], seed=[1, 2])
        >>> bool(mr.reduce_max(mr.abs(drawn)) < 2.0)
        True
    """
    return Draw.of_seed(seed, alg).normal(shape, mean, stddev, dtype, truncated=True)


def stateless_gamma(
    shape: ShapeLike,
    seed: TensorLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = float32,
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
    return Draw.of_seed(seed).gamma(shape, alpha, beta, dtype)


def stateless_poisson(
    shape: ShapeLike,
    seed: TensorLike,
    lam: TensorLike,
    dtype: DTypeLike = int32,
    name: str | None = None,
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
    return Draw.of_seed(seed).poisson(shape, adopt(lam, None), as_dtype(dtype))


def stateless_categorical(
    logits: TensorLike,
    num_samples: SupportsIndex,
    seed: TensorLike,
    dtype: DTypeLike = int64,
    name: str | None = None,
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
    return Draw.of_seed(seed).categorical(logits, num_samples, dtype)


def stateless_shuffle(
    value: TensorLike, seed: TensorLike, alg: str | int = AUTO, name: str | None = None
) -> Tensor:
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
    return Draw.of_seed(seed, alg).shuffled(value)


def stateless_split(seed: TensorLike, num: int = 2, alg: str | int = AUTO) -> Tensor:
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


def stateless_fold_in(seed: TensorLike, data: TensorLike, alg: str | int = AUTO) -> Tensor:
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


explain_functions(__name__)
