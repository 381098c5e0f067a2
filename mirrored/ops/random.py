"""The functions that draw random numbers, and generators with a stream of their own.

No state hides anywhere: the same seed, draw and position give the same number on any replica
count.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsFloat
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer
from mirrored._tracebacks import shortened
from mirrored._types import DTypeLike, ShapeLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import active_recorder
from mirrored.ops.narrow_floats import evenly, steps_below_one
from mirrored.ops.op import OPS, Op, define_op
from mirrored.ops.rng_state import (
    GENERATORS,
    Key,
    RngState,
    ShardPosition,
    as_seed,
    bound_rng_state,
    current_position,
    current_rng_state,
    global_rng_state,
    new_seed,
    permutation,
    philox,
    set_global_rng_state,
)
from mirrored.ops.spec import (
    FLOATS,
    INDICES,
    DType,
    Shape,
    TensorSpec,
    as_dtype,
    as_shape,
    float32,
    floatx,
    int32,
    is_narrow,
)
from mirrored.ops.tensor import Tensor

_AT_ONCE = 1024  # Elements a round: keeps the temporaries of a kernel at a few KiB.
DrawSource = Callable[[ShardPosition], tuple[Key, int]]


def _infer(*, shape: Shape, dtype: DType, **_: Any) -> TensorSpec:
    return TensorSpec(shape, dtype)


def _uniform(xp: Any, out: Any, *, dtype: DType, key: Key, draw: int, first: int, **_: Any) -> None:
    # A block of Philox is four words of 64 bits: four doubles or eight singles.
    generator = philox(key, draw, first, 8 if dtype == float32 else 4)
    generator.random(out=out.reshape(-1), dtype=dtype.type)


def _uniform_int(
    xp: Any, out: Any, *, key: Key, draw: int, first: int, minval: int, maxval: int, **_: Any
) -> None:
    generator, flat = philox(key, draw, first, 4), out.reshape(-1)
    for start in range(0, flat.size, _AT_ONCE):
        part = flat[start : start + _AT_ONCE]
        part[...] = minval + np.floor(generator.random(part.size) * (maxval - minval))


def _normal(xp: Any, out: Any, *, key: Key, draw: int, first: int, **_: Any) -> None:
    # Box and Muller's transform (1958) of pairs: every normal has its place in the stream, which
    # rejection methods such as the ziggurat do not give. 1 - u is never 0.
    flat = out.reshape(-1)
    generator = philox(key, draw, first - first % 2, 4)
    lead = first % 2
    for start in range(-lead, flat.size, _AT_ONCE):
        count = min(_AT_ONCE, flat.size - start)
        pairs = generator.random(2 * -(-count // 2)).reshape(-1, 2)
        radius = np.sqrt(-2.0 * np.log1p(-pairs[:, 0]))
        angle = 2.0 * np.pi * pairs[:, 1]
        pairs[:, 0] = radius * np.cos(angle)
        pairs[:, 1] = radius * np.sin(angle)
        begin = max(start, 0)
        flat[begin : start + count] = pairs.reshape(-1)[begin - start : count]


# Kernels of the host; a backend with its own memory overrides them with the same mapping from
# key, draw and position to numbers.
RANDOM_UNIFORM = define_op(name="RandomUniform", infer=_infer, kernel=_uniform, random=True)
RANDOM_UNIFORM_INT = define_op(
    name="RandomUniformInt", infer=_infer, kernel=_uniform_int, random=True
)
RANDOM_NORMAL = define_op(name="RandomStandardNormal", infer=_infer, kernel=_normal, random=True)


@shortened
def set_seed(seed: int) -> None:
    """Set the global seed and restart its streams.

    What is drawn after it, initial weights and dropout masks included, is the same in every run.

    Args:
        seed: Any integer.

    Raises:
        TypeError: It is no integer.

    Example:
        >>> import mirrored as mr
        >>> mr.random.set_seed(1)
        >>> first = mr.random.uniform((2,)).numpy()
        >>> mr.random.set_seed(1)
        >>> bool((mr.random.uniform((2,)).numpy() == first).all())
        True
    """
    set_global_rng_state(RngState(as_seed(seed)))


class GlobalState(NamedTuple):
    """How far the global streams have gone.

    Attributes:
        seed: The global seed.
        draws: How many draws were made without a seed of their own.
        draws_by_seed: Pairs of such a seed and the number of its draws.
    """

    seed: int
    draws: int
    draws_by_seed: Sequence[tuple[int, int]]


def global_state() -> GlobalState:
    """Return how far the global streams have gone; numbers alone, which a file can hold."""
    state = global_rng_state()
    return GlobalState(state.seed, state.draws, tuple(state.draws_by_seed.items()))


def restore_global_state(state: GlobalState) -> None:
    """Let global draws go on as they did after `global_state` returned a state."""
    set_global_rng_state(RngState(state.seed, state.draws, dict(state.draws_by_seed)))


_numbers = itertools.count()
_generators: WeakValueDictionary[int, "SeedGenerator"] = WeakValueDictionary()


class SeedGenerator:
    """A stream of draws of its own, such as that of one dropout layer.

    All replicas of a step make the same draw: what they get from it differs by their place in
    the global batch alone.

    Args:
        seed: An integer; None takes one from the global stream.

    Example:
        >>> from mirrored import ops
        >>> a, b = ops.SeedGenerator(1), ops.SeedGenerator(1)
        >>> bool((a.uniform((3,)).numpy() == b.uniform((3,)).numpy()).all())
        True
    """

    def __init__(self, seed: int | None = None) -> None:
        """Start the stream of `seed`."""
        self._key: Key = (new_seed() if seed is None else as_seed(seed), GENERATORS)
        self._run: object | None = None
        self._base = 0
        self._drawn: dict[int, int] = {}
        _generators[next(_numbers)] = self

    @property
    def state(self) -> tuple[int, int]:
        """The stream's key, and how many draws were made of it."""
        return self._key[0], self._base + max(self._drawn.values(), default=0)

    def restore(self, state: Sequence[int]) -> None:
        """Go on as the stream did from a state.

        Args:
            state: What `state` was.
        """
        key, self._base = state
        self._key = (key, GENERATORS)
        self._drawn, self._run = {}, None

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.restore(state["state"])
        _generators[next(_numbers)] = self

    def mark(self) -> Callable[[], None]:
        """Return a function that takes back all later draws."""
        base, drawn, run = self._base, dict(self._drawn), self._run

        def back() -> None:
            self._base, self._drawn, self._run = base, drawn, run

        return back

    def _next(self, position: ShardPosition) -> tuple[Key, int]:
        """Return key and number of the next draw: the same on every replica of one run."""
        if position.run is not self._run:
            self._base += max(self._drawn.values(), default=0)
            self._drawn, self._run = {}, position.run
        drawn = self._drawn.get(position.replica, 0)
        self._drawn[position.replica] = drawn + 1
        return self._key, self._base + drawn

    def uniform(
        self,
        shape: ShapeLike,
        minval: float = 0.0,
        maxval: float = 1.0,
        dtype: DTypeLike | None = None,
        *,
        per_example: bool = False,
    ) -> Tensor:
        """Return floats drawn evenly from [minval, maxval).

        Args:
            shape: The shape.
            minval: The least value.
            maxval: The bound above all values.
            dtype: A float; None: that of `floatx`.
            per_example: The first axis is the batch, and each element is drawn by its place in
                the global batch, so that any number of replicas draws what one would.
        """
        drawn = self._draw(RANDOM_UNIFORM, shape, dtype, per_example)
        return _scaled(drawn, maxval - minval, minval)

    def normal(
        self,
        shape: ShapeLike,
        mean: float = 0.0,
        stddev: float = 1.0,
        dtype: DTypeLike | None = None,
        *,
        per_example: bool = False,
    ) -> Tensor:
        """Return floats drawn from the normal distribution; arguments as for `uniform`."""
        drawn = self._draw(RANDOM_NORMAL, shape, dtype, per_example)
        return _scaled(drawn, stddev, mean)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return the numbers below `n` in random order, on the host."""
        return permutation(*self._next(current_position()), n)

    def _draw(self, op: Op, shape: Any, dtype: Any, per_example: bool) -> Tensor:
        sizes, wanted = as_shape(shape), float_dtype(floatx() if dtype is None else dtype)
        first = _first_of(sizes) if per_example else 0
        return _floats(op, wanted, shape=sizes, first=first, **_drawn(self._next, lambda: self))


def _first_of(sizes: Shape) -> int:
    """Return how many elements come before those of this replica's part of a global batch."""
    position = current_position()
    rows = 1  # Of each example, which follow one another.
    if sizes and position.examples and sizes[0] % position.examples == 0:
        rows = sizes[0] // position.examples
    return position.first_example * rows * math.prod(sizes[1:])


def uniform_by_example(shape: Shape, dtype: DType, seed: int | None, batched: bool) -> Tensor:
    """Return floats from [0, 1) of the global streams, of which all replicas make the same draw.

    Args:
        shape: The shape.
        dtype: A float; those of 16 bits are float32 rounded.
        seed: An integer gives a stream of its own, beside the global seed.
        batched: Whether the first axis is the batch, of which replicas have parts.
    """
    first = _first_of(shape) if batched else 0
    return RANDOM_UNIFORM(shape=shape, dtype=dtype, first=first, **next_draw(seed))


def generators() -> list[SeedGenerator]:
    """Return all generators that there are, in the order in which they were made."""
    return [*_generators.values()]


def mark_streams() -> Callable[[], None]:
    """Return a function that takes back all later draws, of global streams and of generators."""
    marks = [current_rng_state().mark(), *(generator.mark() for generator in generators())]

    def back() -> None:
        for mark in marks:
            mark()

    return back


@dataclass(frozen=True, eq=False, slots=True)
class NextDraw:
    """Replaces the key and number of a draw in a recorded program, where each run has its own.

    Attributes:
        source: From a position to the key and number of the next draw there.
        position: The position of the replica.
        stream: Returns the generator or the state whose draws these are.
    """

    source: DrawSource
    position: ShardPosition
    stream: Callable[[], RngState | SeedGenerator] = current_rng_state

    def mark(self) -> Callable[[], None]:
        """Return a function that takes back all later draws of the stream."""
        return self.stream().mark()

    def __call__(self, run: object) -> tuple[Key, int]:
        """Return key and number of the next draw.

        Args:
            run: What all replicas of one step share and no other step does.
        """
        position = self.position
        return self.source(position if position.run is None else position._replace(run=run))


def _drawn(source: DrawSource, stream: Callable[[], RngState | SeedGenerator]) -> dict[str, Any]:
    """Return the attributes of an op's draw; the arguments are those of `NextDraw`."""
    position = current_position()
    if active_recorder() is not None:
        return {"key": None, "draw": NextDraw(source, position, stream)}
    key, draw = source(position)
    return {"key": key, "draw": draw}


def float_dtype(dtype: Any) -> DType:
    """Return the dtype that random floats are wanted in, or raise TypeError."""
    wanted = as_dtype(dtype)
    if wanted not in FLOATS:
        raise TypeError(f"Numbers of this kind must be floats. Received: dtype={wanted.name}")
    return wanted


def _floats(op: Op, dtype: DType, **attrs: Any) -> Tensor:
    """Return the numbers of an op; floats of 16 bits are float32 rounded, or even steps below 1."""
    if not is_narrow(dtype):
        return op(dtype=dtype, **attrs)
    if op is RANDOM_NORMAL:
        return OPS["Cast"](op(dtype=float32, **attrs), dtype=dtype)
    steps = steps_below_one(dtype)
    return evenly(RANDOM_UNIFORM_INT(dtype=int32, minval=0, maxval=steps, **attrs), dtype)


def _scaled(drawn: Tensor, scale: float, offset: float) -> Tensor:
    if scale != 1.0:
        drawn = drawn * scale
    return drawn + offset if offset != 0.0 else drawn


def random_uniform(
    shape: ShapeLike,
    minval: SupportsFloat = 0,
    maxval: SupportsFloat | None = None,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return numbers drawn evenly from [minval, maxval).

    Args:
        shape: The shape.
        minval: The least value.
        maxval: The bound above all values; None means 1 for floats, and integers must have one.
        dtype: A float, int32 or int64.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        ValueError: `dtype` is another one; or a range of integers is empty, has no `maxval`, or
            does not fit the dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.random.uniform((2, 3), -1.0, 1.0).shape
        (2, 3)
    """
    wanted, sizes = as_dtype(dtype), as_shape(shape)
    if wanted in INDICES:
        low, high = _integer_range(minval, maxval, wanted)
        return RANDOM_UNIFORM_INT(minval=low, maxval=high, **_global(sizes, wanted, seed))
    if wanted not in FLOATS:
        raise ValueError(
            f"Argument `dtype` got invalid value {wanted.name}. Accepted dtypes are float16, "
            "bfloat16, float32, float64, int32 and int64."
        )
    bottom, top = float(minval), 1.0 if maxval is None else float(maxval)
    drawn = _floats(RANDOM_UNIFORM, **_global(sizes, wanted, seed))
    return _scaled(drawn, top - bottom, bottom)


def _integer_range(minval: Any, maxval: Any, dtype: DType) -> tuple[int, int]:
    if maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {dtype.name}. Received: None")
    low, high = as_integer(minval), as_integer(maxval)
    if low is None or high is None:
        raise TypeError(
            f"The bounds of {dtype.name} must be integers. Received: minval={minval}, "
            f"maxval={maxval}"
        )
    if not low < high:
        raise InvalidArgumentError(
            f"Need minval < maxval. Received: minval={minval}, maxval={maxval}"
        )
    limits = np.iinfo(dtype)
    if low < limits.min or high - 1 > limits.max:
        raise ValueError(
            f"The range does not fit {dtype.name}. Received: minval={minval}, maxval={maxval}"
        )
    return low, high


def random_normal(
    shape: ShapeLike,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return floats drawn from the normal distribution with this mean and standard deviation.

    Args:
        shape: The shape.
        mean: The mean.
        stddev: The standard deviation.
        dtype: A float; those of 16 bits are float32 rounded.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Example:
        >>> import mirrored as mr
        >>> mr.random.normal((2, 3)).shape
        (2, 3)
    """
    wanted, sizes = float_dtype(dtype), as_shape(shape)
    drawn = _floats(RANDOM_NORMAL, **_global(sizes, wanted, seed))
    return _scaled(drawn, float(stddev), float(mean))


def _global(sizes: Shape, dtype: DType, seed: int | None) -> dict[str, Any]:
    """Return the attributes of a draw from the global streams."""
    position = current_position()
    first = _first_of(sizes) if position.leads(sizes) else 0
    return {"shape": sizes, "dtype": dtype, "first": first, **next_draw(seed)}


def next_draw(seed: int | None) -> dict[str, Any]:
    """Return the attributes of an op's draw from the global streams.

    All replicas of a step make the same one.

    Args:
        seed: An integer gives a stream of its own, beside the global seed.
    """
    checked = None if seed is None else as_seed(seed)
    bound = bound_rng_state()

    def source(at: ShardPosition) -> tuple[Key, int]:
        return (bound or current_rng_state()).next_of_run(at.run, at.replica, checked)

    return _drawn(source, lambda: bound or current_rng_state())


explain_functions(__name__, all_but="float_dtype")
