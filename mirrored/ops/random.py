"""Random numbers that are a function of a key and a counter, by the generator Philox 4x64.

No state hides anywhere: the same seed, draw and position give the same number on any replica
count (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored.ops.recording import active_recorder
from mirrored.ops.registry import Op, register
from mirrored.ops.spec import (
    FLOATS,
    INTEGERS,
    DType,
    Shape,
    TensorSpec,
    as_dtype,
    as_shape,
    float32,
    floatx,
)
from mirrored.ops.tensor import Tensor

_WORD = 1 << 64
_CHUNK = 1024  # Elements a round: keeps the temporaries of a kernel at a few KiB.
Key = tuple[int, int]


def _philox(key: Key, draw: int, first: int, per_block: int) -> np.random.Generator:
    """Return a generator whose next number is number `first` of draw number `draw`."""
    block, skip = divmod(first, per_block)
    # As arrays: among plain integers one above 63 bits would turn all of them into floats.
    counter = np.array([block, 0, draw % _WORD, 0], np.uint64)
    bits = np.random.Philox(key=np.array(key, np.uint64), counter=counter)
    generator = np.random.Generator(bits)
    if skip:
        generator.random(skip, dtype=np.float32 if per_block == 8 else np.float64)
    return generator


# ---------------------------------------------------------------------------- ops


def _infer(*, shape: Shape, dtype: DType, **_: Any) -> TensorSpec:
    return TensorSpec(shape, dtype)


def _uniform(
    xp: Any, out: Any, *, shape: Shape, dtype: DType, key: Key, draw: int, first: int
) -> None:
    # A block of Philox is four words of 64 bits: four doubles or eight singles.
    generator = _philox(key, draw, first, 8 if dtype == float32 else 4)
    generator.random(out=out.reshape(-1), dtype=dtype.type)


def _uniform_int(
    xp: Any,
    out: Any,
    *,
    shape: Shape,
    dtype: DType,
    key: Key,
    draw: int,
    first: int,
    minval: int,
    maxval: int,
) -> None:
    generator, flat = _philox(key, draw, first, 4), out.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part[...] = minval + np.floor(generator.random(part.size) * (maxval - minval))


def _normal(
    xp: Any, out: Any, *, shape: Shape, dtype: DType, key: Key, draw: int, first: int
) -> None:
    # Box and Muller's transform (1958) of pairs: every normal has its place in the stream, which
    # rejection methods such as the ziggurat do not give. 1 - u is never 0.
    flat = out.reshape(-1)
    generator = _philox(key, draw, first - first % 2, 4)
    lead = first % 2
    for start in range(-lead, flat.size, _CHUNK):
        count = min(_CHUNK, flat.size - start)
        pairs = generator.random(2 * -(-count // 2)).reshape(-1, 2)
        radius = np.sqrt(-2.0 * np.log1p(-pairs[:, 0]))
        angle = 2.0 * np.pi * pairs[:, 1]
        pairs[:, 0] = radius * np.cos(angle)
        pairs[:, 1] = radius * np.sin(angle)
        begin = max(start, 0)
        flat[begin : start + count] = pairs.reshape(-1)[begin - start : count]


# Kernels of the host; a backend with its own memory overrides them with the same mapping from
# key, draw and position to numbers.
RANDOM_UNIFORM = register(Op(name="RandomUniform", infer=_infer, kernel=_uniform, random=True))
RANDOM_UNIFORM_INT = register(
    Op(name="RandomUniformInt", infer=_infer, kernel=_uniform_int, random=True)
)
RANDOM_NORMAL = register(Op(name="RandomStandardNormal", infer=_infer, kernel=_normal, random=True))


# ---------------------------------------------------------------------------- streams


class ShardPosition(NamedTuple):
    """Where the current replica's examples stand in the global batch.

    Attributes:
        run: What all replicas of one step share and no other step does; None outside replicas.
        replica: The number of the replica.
        first_example: How many examples of the global batch come before its own.
    """

    run: object | None = None
    replica: int = 0
    first_example: int = 0


_OUTSIDE = ShardPosition()
Stream = Callable[[ShardPosition], tuple[Key, int]]
_position: ContextVar[ShardPosition] = ContextVar("mirrored_shard_position", default=_OUTSIDE)


@contextmanager
def shard_position(position: ShardPosition) -> Iterator[None]:
    """Draw, within this context, as the replica at `position`."""
    token = _position.set(position)
    try:
        yield
    finally:
        _position.reset(token)


def current_position() -> ShardPosition:
    """Return the position in the global batch of the replica that is running."""
    return _position.get()


@dataclass
class _GlobalStream:
    """What `set_seed` sets: the key of every draw that has no generator of its own."""

    seed: int
    draws: int = 0
    draws_by_seed: dict[int, int] = field(default_factory=dict)

    def next(self, seed: int | None) -> tuple[Key, int]:
        """Return key and number of the next draw, of all or of those with this op seed."""
        if seed is None:
            self.draws += 1
            return (self.seed, 0), self.draws - 1
        drawn = self.draws_by_seed.get(seed, 0)
        self.draws_by_seed[seed] = drawn + 1
        return (self.seed, 1 + seed % (_WORD - 1)), drawn


_stream = [_GlobalStream(secrets.randbits(63))]


def set_seed(seed: int) -> None:
    """Set the global seed and start its streams anew.

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
    _stream[0] = _GlobalStream(_as_seed(seed))


def _as_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"A seed is an integer. Received: {seed!r}")
    return int(seed) % _WORD


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
        if seed is None:
            key, draw = _stream[0].next(None)
            seed = int(_philox(key, draw, 0, 4).integers(0, _WORD, dtype=np.uint64))
        self._key: Key = (_as_seed(seed), _WORD - 1)
        self._run: object | None = None
        self._base = 0
        self._drawn: dict[int, int] = {}

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
        shape: Any,
        minval: float = 0.0,
        maxval: float = 1.0,
        dtype: Any = None,
        *,
        per_example: bool = False,
    ) -> Tensor:
        """Return floats drawn evenly from [minval, maxval).

        Args:
            shape: The shape.
            minval: The least value.
            maxval: The bound above all values.
            dtype: Float32 or float64; None: that of `floatx`.
            per_example: The first axis is the batch, and each element is drawn by its place in
                the global batch, so that any number of replicas draws what one would.
        """
        drawn = self._draw(RANDOM_UNIFORM, shape, dtype, per_example)
        return _scaled(drawn, maxval - minval, minval)

    def normal(
        self,
        shape: Any,
        mean: float = 0.0,
        stddev: float = 1.0,
        dtype: Any = None,
        *,
        per_example: bool = False,
    ) -> Tensor:
        """Return floats drawn from the normal distribution; arguments as for `uniform`."""
        drawn = self._draw(RANDOM_NORMAL, shape, dtype, per_example)
        return _scaled(drawn, stddev, mean)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return the numbers below `n` in random order, on the host."""
        return _philox(*self._next(current_position()), 0, 4).permutation(n)

    def _draw(self, op: Op, shape: Any, dtype: Any, per_example: bool) -> Tensor:
        sizes = as_shape(shape)
        first = 0
        if per_example:
            first = current_position().first_example * int(np.prod(sizes[1:], dtype=np.int64))
        return op(
            shape=sizes,
            dtype=_float_dtype(floatx() if dtype is None else dtype),
            first=first,
            **_drawn(self._next),
        )


class NextDraw:
    """What a recorded program has in the place of a draw's key and number: each run has others."""

    def __init__(self, stream: Stream, position: ShardPosition) -> None:
        """Draw from `stream` as the replica at `position`."""
        self._stream = stream
        self._position = position

    def __call__(self, run: object) -> tuple[Key, int]:
        """Return key and number of the next draw.

        Args:
            run: What all replicas of one step share and no other step does.
        """
        position = self._position
        return self._stream(position if position.run is None else position._replace(run=run))


def _drawn(stream: Stream) -> dict[str, Any]:
    """Return the attributes that say which draw an op makes."""
    position = current_position()
    if active_recorder() is not None:
        return {"key": None, "draw": NextDraw(stream, position)}
    key, draw = stream(position)
    return {"key": key, "draw": draw}


def _float_dtype(dtype: Any) -> DType:
    wanted = as_dtype(dtype)
    if wanted not in FLOATS:
        raise TypeError(
            f"Random numbers of this kind are float32 or float64. Received: dtype={wanted.name}"
        )
    return wanted


def _scaled(drawn: Tensor, scale: float, offset: float) -> Tensor:
    if scale != 1.0:
        drawn = drawn * scale
    return drawn + offset if offset != 0.0 else drawn


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return numbers drawn evenly from [minval, maxval).

    Args:
        shape: The shape.
        minval: The least value.
        maxval: The bound above all values; None means 1 for floats, and integers must have one.
        dtype: Float32, float64, int32 or int64.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        TypeError: `dtype` is another one.
        ValueError: A range of integers is empty, has no `maxval`, or does not fit the dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.random.uniform((2, 3), -1.0, 1.0).shape
        (2, 3)
    """
    wanted, sizes = as_dtype(dtype), as_shape(shape)
    if wanted in INTEGERS:
        low, high = _integer_range(minval, maxval, wanted)
        return RANDOM_UNIFORM_INT(
            shape=sizes, dtype=wanted, first=0, minval=low, maxval=high, **_global(seed)
        )
    _float_dtype(wanted)
    bottom, top = float(minval), 1.0 if maxval is None else float(maxval)
    drawn = RANDOM_UNIFORM(shape=sizes, dtype=wanted, first=0, **_global(seed))
    return _scaled(drawn, top - bottom, bottom)


def _integer_range(minval: Any, maxval: Any, dtype: DType) -> tuple[int, int]:
    if maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {dtype.name}. Received: None")
    low, high = int(minval), int(maxval)
    if not low < high:
        raise ValueError(f"Need minval < maxval. Received: minval={minval}, maxval={maxval}")
    limits = np.iinfo(dtype)
    if low < limits.min or high - 1 > limits.max:
        raise ValueError(
            f"The range does not fit {dtype.name}. Received: minval={minval}, maxval={maxval}"
        )
    return low, high


def random_normal(
    shape: Any,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return floats drawn from the normal distribution with this mean and standard deviation.

    Args:
        shape: The shape.
        mean: The mean.
        stddev: The standard deviation.
        dtype: Float32 or float64.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility; eager ops have no name.

    Example:
        >>> import mirrored as mr
        >>> mr.random.normal((2, 3)).shape
        (2, 3)
    """
    wanted, sizes = _float_dtype(dtype), as_shape(shape)
    drawn = RANDOM_NORMAL(shape=sizes, dtype=wanted, first=0, **_global(seed))
    return _scaled(drawn, float(stddev), float(mean))


def _global(seed: int | None) -> dict[str, Any]:
    checked = None if seed is None else _as_seed(seed)
    return _drawn(lambda _: _stream[0].next(checked))
