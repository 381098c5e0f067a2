"""A draw from TensorFlow's generator: what it gives by each distribution.

Seeds give their states to draws, and generators theirs; all that is drawn is checked first.
"""

import enum
import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from mirrored._numbers import as_integer
from mirrored.errors import InvalidArgumentError
from mirrored.ops import philox4x32, philox_samples
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.elementwise import add, divide, maximum, multiply, subtract
from mirrored.ops.narrow_floats import evenly, steps_below_one
from mirrored.ops.op import OPS, Op
from mirrored.ops.philox_samples import Part
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
                f"An algorithm is an `Algorithm`, its number or its name. Received: alg={alg!r}"
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
    """One draw of numbers: by the state that a seed or a generator gives.

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
        state = philox4x32.KEY_COUNTER(words)
        return cls(lambda: state, at)

    def uniform(self, shape: Any, minval: Any, maxval: Any, dtype: DType) -> Tensor:
        """Return numbers drawn evenly from [minval, maxval)."""
        sizes = vector_shape(shape)
        if dtype in FULL_INTEGERS:
            return self._integers(sizes, minval, maxval, dtype)
        _check_float(dtype)
        low, high = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        if is_narrow(dtype):  # As TensorFlow's: the last bits of each word.
            words = cast(self._of(philox4x32.UNIFORM_FULL_INT, sizes, uint32), int64)
            drawn = evenly(OPS["FloorMod"](words, steps_below_one(dtype)), dtype)
        else:
            drawn = self._of(philox4x32.UNIFORM, sizes, dtype)
        if _are((0, 1), minval, maxval):
            return drawn
        return add(multiply(drawn, subtract(high, low)), low)

    def _integers(self, sizes: Shape, minval: Any, maxval: Any, dtype: DType) -> Tensor:
        if minval is None and maxval is None:
            return self.full_int(sizes, dtype)
        _check_attr("StatelessRandomUniformIntV2", INDICES, dtype)
        low, high = _integer_range(minval, maxval, dtype)
        return self._of(philox4x32.UNIFORM_INT, sizes, dtype, minval=low, maxval=high)

    def full_int(self, shape: Any, dtype: DType) -> Tensor:
        """Return integers of all that a dtype holds."""
        _check_attr("StatelessRandomUniformFullIntV2", FULL_INTEGERS, dtype)
        return self._of(philox4x32.UNIFORM_FULL_INT, vector_shape(shape), dtype)

    def normal(
        self, shape: Any, mean: Any, stddev: Any, dtype: Any, *, truncated: bool = False
    ) -> Tensor:
        """Return normal numbers; truncated ones are up to two deviations from the mean."""
        wanted = as_dtype(dtype)
        _check_float(wanted)
        offset, scale = convert_to_tensor(mean, wanted), convert_to_tensor(stddev, wanted)
        op = philox4x32.TRUNCATED_NORMAL if truncated else philox4x32.NORMAL
        exact = float32 if is_narrow(wanted) else wanted
        drawn = cast(self._of(op, vector_shape(shape), exact), wanted)
        if _are((0, 1), mean, stddev):
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
        drawn = philox_samples.GAMMA(
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
        drawn = philox_samples.POISSON(
            self._take(), _exact(rates), shape=sizes, dtype=exact, part=part
        )
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
            raise TypeError(f"`num_samples` is an integer. Received: {num_samples!r}")
        if count < 0:
            raise InvalidArgumentError(
                f"num_samples should be nonnegative, got {num_samples} [Op:StatelessMultinomial]"
            )
        first = self._before(rows.shape[:1]) * count
        return philox_samples.CATEGORICAL(
            self._take(), rows, num_samples=count, dtype=wanted, first=first
        )

    def shuffled(self, value: Any) -> Tensor:
        """Return a tensor with its rows in another order."""
        tensor = adopt(value, None)
        return philox_samples.SHUFFLE(self._take(), tensor) if tensor.shape else tensor

    def _of(self, op: Op, shape: Shape, dtype: DType, **attrs: Any) -> Tensor:
        return op(self._take(), shape=shape, dtype=dtype, first=self._before(shape), **attrs)

    def _before(self, shape: Shape) -> int:
        """Return how many elements of the whole draw come before those of this part."""
        if not self._at.leads(shape):
            return 0
        return self._at.first_example * math.prod(shape[1:])

    def _part(self, shape: Shape, parameters: Shape) -> Part:
        """Return which part it is of a draw that has numbers for each of some parameters."""
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


def _are(numbers: tuple[float, ...], *values: Any) -> bool:
    """Whether values are these numbers, of Python's: what nobody gave is not computed with."""
    return all(isinstance(value, int | float) for value in values) and values == numbers


def _check_attr(op_name: str, allowed: Collection[DType], dtype: DType) -> None:
    check_dtype(op_name, frozenset(allowed), TensorSpec((), dtype))


def _integer_range(minval: Any, maxval: Any, dtype: DType) -> tuple[int, int]:
    low, high = (_limit(limit, dtype) for limit in (minval, maxval))
    if low >= high:
        raise InvalidArgumentError(
            f"Need minval < maxval, got {low} >= {high} [Op:StatelessRandomUniformIntV2]"
        )
    return low, high


def _limit(value: Any, dtype: DType) -> int:
    """Return a bound of integers, which is one number that the dtype holds."""
    number, limits = as_integer(value), np.iinfo(dtype)
    if number is not None and not limits.min <= number <= limits.max:
        raise InvalidArgumentError(
            f"The range does not fit {dtype.name}. Received: the bound {value} "
            "[Op:StatelessRandomUniformIntV2]"
        )
    tensor = convert_to_tensor(value, dtype)
    if tensor.shape:
        raise InvalidArgumentError(
            f"minval and maxval of integers are scalars. Received: {value!r:.80} "
            "[Op:StatelessRandomUniformIntV2]"
        )
    return int(tensor)


def _check_float(dtype: DType) -> None:
    if dtype not in FLOATS:
        raise TypeError(f"Random numbers of this kind are floats. Received: dtype={dtype.name}")


def _exact(parameters: Tensor) -> Tensor:
    """Return parameters in a dtype that samples are computed in: in no float of 16 bits."""
    return cast(parameters, float64) if parameters.dtype == float16 else parameters
