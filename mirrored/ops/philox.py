"""TensorFlow's generator, Philox 4x32 with ten rounds from a state of three words, and its kernels.

A state is what `random.Generator` keeps: the low and the high 64 bits of the counter, and the key.
Each number is a function of the state and of its place (Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3", SC 2011), so any part of a draw can be made without what comes before it.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import Op, define_op
from mirrored.ops.spec import (
    ALL_DTYPES,
    FLOATS_AND_INDICES,
    DType,
    Shape,
    TensorSpec,
    bool_,
    float32,
    float64,
    int64,
    shape_text,
)

Words = NDArray[np.uint64]
# Rejection may take many words per number: this number of blocks is set aside for each.
RESERVED = 256
_STATES = frozenset({int64})
_BLOCKS_AT_ONCE = 384  # Blocks a round: keeps the temporaries of a kernel small.
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = 0x9E3779B9, 0xBB67AE85


class Stream:
    """The blocks of four words of 32 bits that follow from a state.

    Args:
        state: Three numbers of 64 bits.
    """

    def __init__(self, state: Any) -> None:
        """Read the state."""
        low, high, key = (int(word) % 2**64 for word in state)
        self._low, self._high = np.uint64(low), np.uint64(high)
        first, second = key % 2**32, key >> 32
        self._keys = [
            (
                np.uint64((first + i * _STEPS[0]) % 2**32),
                np.uint64((second + i * _STEPS[1]) % 2**32),
            )
            for i in range(10)
        ]

    def blocks(self, places: Words) -> list[Words]:
        """Return the four words of each of the blocks at some places, each of 32 bits in 64."""
        low = self._low + places
        high = self._high + (low < places)
        c0, c1, c2, c3 = low & _LOW, low >> _HALF, high & _LOW, high >> _HALF
        for key0, key1 in self._keys:
            left, right = c0 * _FACTORS[0], c2 * _FACTORS[1]
            np.right_shift(right, _HALF, out=c0)
            np.right_shift(left, _HALF, out=c2)
            c0 ^= c1
            c0 ^= key0
            c2 ^= c3
            c2 ^= key1
            right &= _LOW
            left &= _LOW
            c1, c3 = right, left
        return [c0, c1, c2, c3]


def unit_float(words: Words) -> NDArray[np.float32]:
    """Return floats from 0 to below 1 whose 23 bits are the low ones of words."""
    bits = (words & np.uint64(0x7FFFFF)) | np.uint64(0x3F800000)
    return bits.astype(np.uint32).view(np.float32) - np.float32(1)


def unit_double(first: Words, second: Words) -> NDArray[np.float64]:
    """Return doubles from 0 to below 1 whose 52 bits are those of pairs of words."""
    bits = ((first & np.uint64(0xFFFFF)) << _HALF) | second | np.uint64(1023 << 52)
    return bits.view(np.float64) - 1.0


def whole(first: Words, second: Words) -> Words:
    """Return words of 64 bits, of which the first of a pair is the low half."""
    return first | (second << _HALF)


def normals(words: list[Words], dtype: DType) -> list[Any]:
    """Return four normal floats, or two doubles, for each block (Box and Muller, 1958)."""
    if dtype != float32:
        angle = 2.0 * np.pi * unit_double(*words[2:])
        radius = np.sqrt(-2.0 * np.log(np.maximum(unit_double(*words[:2]), 1e-7)))
        return [np.sin(angle) * radius, np.cos(angle) * radius]
    numbers = []
    for first, second in (words[:2], words[2:]):
        # The functions are taken in double and rounded: what a single one's last bit is, is the
        # machine's own in TensorFlow too.
        uniform = np.maximum(unit_float(first), np.float32(1e-7))
        turn = (2.0 * np.pi * unit_float(second).astype(np.float64)).astype(np.float32)
        size = np.sqrt(np.float32(-2) * np.log(uniform, dtype=np.float64).astype(np.float32))
        numbers += [f(turn, dtype=np.float64).astype(np.float32) * size for f in (np.sin, np.cos)]
    return numbers


Make = Callable[[list[Words]], list[Any]]


def fill(out: Any, state: Any, first: int, per_block: int, make: Make) -> None:
    """Write numbers `first`, `first` + 1, ... of a state's draw into an array.

    Args:
        out: The array.
        state: The state.
        first: The place of the first number.
        per_block: How many numbers a block gives.
        make: From the words of blocks to these numbers.
    """
    flat, stream = out.reshape(-1), Stream(state)
    block, lead = divmod(first, per_block)
    for start in range(-lead, flat.size, _BLOCKS_AT_ONCE * per_block):
        begin, end = max(start, 0), min(start + _BLOCKS_AT_ONCE * per_block, flat.size)
        count = -(-(end - start) // per_block)
        place = block + (start + lead) // per_block
        numbers = make(stream.blocks(np.arange(place, place + count, dtype=np.uint64)))
        values = numbers[0] if per_block == 1 else np.stack(numbers, axis=1).reshape(-1)
        flat[begin:end] = values[begin - start : end - start]


def _uniform(xp: Any, out: Any, state: Any, *, dtype: DType, first: int, **_: Any) -> None:
    if dtype == float32:
        fill(out, state, first, 4, lambda words: [unit_float(word) for word in words])
    else:
        fill(out, state, first, 2, _doubles)


def _doubles(words: list[Words]) -> list[NDArray[np.float64]]:
    return [unit_double(*words[:2]), unit_double(*words[2:])]


def _integers(words: list[Words], dtype: DType) -> list[Words]:
    """Return the bits of integers of a dtype."""
    return words if dtype.itemsize == 4 else [whole(*words[:2]), whole(*words[2:])]


def _uniform_full_int(xp: Any, out: Any, state: Any, *, dtype: DType, first: int, **_: Any) -> None:
    bits = out.view(f"u{dtype.itemsize}")
    fill(bits, state, first, 16 // dtype.itemsize, lambda words: _integers(words, dtype))


def _uniform_int(
    xp: Any, out: Any, state: Any, *, dtype: DType, first: int, minval: int, maxval: int, **_: Any
) -> None:
    # The sum of the least value wraps around to where it belongs.
    least, span = np.uint64(minval % 2**64), np.uint64(maxval - minval)

    def make(words: list[Words]) -> list[Words]:
        numbers = _integers(words, dtype)
        for number in numbers:
            number %= span
            number += least
        return numbers

    fill(out.view(f"u{dtype.itemsize}"), state, first, 16 // dtype.itemsize, make)


def _normal(xp: Any, out: Any, state: Any, *, dtype: DType, first: int, **_: Any) -> None:
    fill(out, state, first, 16 // dtype.itemsize, lambda words: normals(words, dtype))


def _truncated_normal(xp: Any, out: Any, state: Any, *, dtype: DType, first: int, **_: Any) -> None:
    # Groups of numbers have blocks of their own, of which each takes normal ones up to two
    # deviations from 0, until it has enough.
    flat, stream, group = out.reshape(-1), Stream(state), 16 // dtype.itemsize
    lead = first % group
    for start in range(-lead, flat.size, _BLOCKS_AT_ONCE // 2 * group):
        begin, end = max(start, 0), min(start + _BLOCKS_AT_ONCE // 2 * group, flat.size)
        count = -(-(end - start) // group)
        begins = np.arange(count, dtype=np.uint64) + np.uint64((first + start) // group)
        begins *= np.uint64(group * RESERVED // 4)
        values = np.empty((count, group), dtype)
        have = np.zeros(count, np.int64)
        for step in range(group * RESERVED // 4):
            (rows,) = np.nonzero(have < group)
            if not rows.size:
                break
            for normal in normals(stream.blocks(begins[rows] + np.uint64(step)), dtype):
                taken = (np.abs(normal) < 2) & (have[rows] < group)
                values[rows[taken], have[rows[taken]]] = normal[taken]
                have[rows] += taken
        flat[begin:end] = values.reshape(-1)[begin - start : end - start]


def _key_counter(xp: Any, out: Any, seed: Any) -> None:
    # The words of the seed are scrambled, by one block whose key is fixed.
    counter = [int(word) % 2**64 for word in seed]
    stream = Stream((*counter, 0x02461E293EC8F720))
    words = [int(word[0]) for word in stream.blocks(np.zeros(1, np.uint64))]
    key, high = (low | up << 32 for low, up in (words[:2], words[2:]))
    out.view(np.uint64)[...] = [0, high, key]


def _skip(xp: Any, out: Any, state: Any, *, delta: int) -> None:
    low, high, key = (int(word) % 2**64 for word in state)
    counter = (low | high << 64) + delta * RESERVED
    out.view(np.uint64)[...] = [counter % 2**64, (counter >> 64) % 2**64, key]


def _infer(state: TensorSpec, *, shape: Shape, dtype: DType, **_: Any) -> TensorSpec:
    return TensorSpec(shape, dtype)


def _infer_state(seed: TensorSpec) -> TensorSpec:
    if seed.shape != (2,):
        raise InvalidArgumentError(
            f"seed must have shape [2], not {shape_text(seed.shape)} "
            "[Op:StatelessRandomGetKeyCounter]"
        )
    return TensorSpec((3,), int64)


def _enter(
    name: str,
    kernel: Callable[..., None],
    infer: Callable[..., TensorSpec] = _infer,
    dtypes: frozenset[DType] = _STATES,
    workspace: Callable[..., tuple[TensorSpec, ...]] | None = None,
) -> Op:
    """Enter an op of a state."""
    return define_op(
        name=name, infer=infer, kernel=kernel, dtypes=dtypes, workspace=workspace, whole=True
    )


KEY_COUNTER = _enter("StatelessRandomGetKeyCounter", _key_counter, _infer_state)
SKIP = _enter("RngReadAndSkip", _skip, lambda state, **_: state)
UNIFORM = _enter("StatelessRandomUniformV2", _uniform)
UNIFORM_INT = _enter("StatelessRandomUniformIntV2", _uniform_int)
UNIFORM_FULL_INT = _enter("StatelessRandomUniformFullIntV2", _uniform_full_int)
NORMAL = _enter("StatelessRandomNormalV2", _normal)
TRUNCATED_NORMAL = _enter("StatelessTruncatedNormalV2", _truncated_normal)


# ------------------------------------------------------------------------------------ distributions

# Gamma and Poisson numbers are found by rejection: each has blocks of its own, so that it does not
# depend on how often the others were rejected.

Doubles = NDArray[np.float64]
_NUMBERS_AT_ONCE = 128  # Numbers a round: keeps the temporaries of a kernel small.


class _Places:
    """The blocks of some numbers; each number takes as many as it needs.

    Args:
        stream: The blocks of all.
        numbers: The places of the numbers in their draw.
    """

    def __init__(self, stream: Stream, numbers: NDArray[np.int64]) -> None:
        self._stream = stream
        self._next = numbers.astype(np.uint64) * np.uint64(RESERVED)
        # What is left of a block is taken from its end.
        self._kept: dict[str, tuple[Doubles, NDArray[np.int64]]] = {
            kind: (np.zeros((len(numbers), 2)), np.zeros(len(numbers), np.int64))
            for kind in ("uniform", "normal")
        }

    def take(self, kind: str, rows: NDArray[np.int64]) -> Doubles:
        """Return the next double of each of some numbers."""
        kept, left = self._kept[kind]
        empty = rows[left[rows] == 0]
        if empty.size:
            words = self._stream.blocks(self._next[empty])
            self._next[empty] += np.uint64(1)
            numbers = normals(words, float64) if kind == "normal" else _doubles(words)
            kept[empty] = np.stack(numbers, axis=1)
            left[empty] = 2
        left[rows] -= 1
        taken: Doubles = kept[rows, left[rows]]
        return taken


class Part(NamedTuple):
    """Which numbers of a draw are drawn, where a replica draws a part of it.

    Attributes:
        samples: How many numbers the whole draw has for each parameter.
        sample: The first of them that is drawn.
        parameter: How many parameters of the whole draw come before those given.
    """

    samples: int
    sample: int = 0
    parameter: int = 0


def _draw_numbers(
    out: Any, state: Any, parameters: Any, part: Part, draw: Callable[[_Places, Doubles], Doubles]
) -> None:
    """Draw numbers with a parameter each; the last axes of the result are the parameters'."""
    rates = parameters.reshape(-1).astype(np.float64)
    flat, stream = out.reshape(-1), Stream(state)
    for start in range(0, flat.size, _NUMBERS_AT_ONCE):
        places = np.arange(start, min(start + _NUMBERS_AT_ONCE, flat.size))
        # All numbers of one parameter come first, and then those of the next.
        sample, which = np.divmod(places, rates.size)
        numbers = (which + part.parameter) * part.samples + sample + part.sample
        flat[places] = draw(_Places(stream, numbers), rates[which])


def _gamma_each(places: _Places, alpha: Doubles) -> Doubles:
    """Return gamma numbers (Marsaglia and Tsang, 2000)."""
    numbers = np.full(len(alpha), np.nan)
    (ones,) = np.nonzero(alpha == 1)
    numbers[ones] = -np.log1p(-places.take("uniform", ones))
    small = alpha < 1
    d = alpha + np.where(small, 2.0 / 3.0, -1.0 / 3.0)
    c = 1.0 / 3.0 / np.sqrt(d)
    (rows,) = np.nonzero((alpha != 1) & (d >= 0))
    while rows.size:
        x = places.take("normal", rows)
        v = 1 + c[rows] * x
        positive = v > 0
        tried, x, v = rows[positive], x[positive], v[positive]
        v = v * v * v
        u, square = places.take("uniform", tried), x * x
        taken = u < 1 - 0.0331 * square * square
        taken |= np.log(u) < 0.5 * square + d[tried] * (1 - v + np.log(v))
        kept = tried[taken]
        numbers[kept] = d[kept] * v[taken]
        less = kept[small[kept]]
        numbers[less] *= places.take("uniform", less) ** (1 / alpha[less])
        rows = rows[~np.isin(rows, kept, assume_unique=True)]
    return numbers


def _gamma(xp: Any, out: Any, state: Any, alpha: Any, *, shape: Shape, part: Part) -> None:
    _draw_numbers(out, state, alpha, part, _gamma_each)


def _poisson(
    xp: Any, out: Any, state: Any, rate: Any, *, shape: Shape, dtype: DType, part: Part
) -> None:
    most = float(np.iinfo(dtype).max if dtype.kind == "i" else np.finfo(dtype).max)

    def draw(places: _Places, rates: Doubles) -> Doubles:
        numbers = np.full(len(rates), np.nan)
        _few(places, rates, numbers, most)
        _many(places, rates, numbers, most)
        return numbers

    _draw_numbers(out, state, rate, part, draw)


def _few(places: _Places, rates: Doubles, numbers: Doubles, most: float) -> None:
    """Draw Poisson numbers of rates below 10: how many uniform ones have so small a product."""
    (rows,) = np.nonzero(rates < 10)
    bounds, product, count = np.exp(-rates), np.ones(len(rates)), 0.0
    while rows.size:
        product[rows] *= places.take("uniform", rows)
        done = product[rows] <= bounds[rows]
        numbers[rows[done]] = min(count, most)
        rows, count = rows[~done], count + 1


def _many(places: _Places, rates: Doubles, numbers: Doubles, most: float) -> None:
    """Draw Poisson numbers of greater rates (Hormann's transformed rejection, 1993)."""
    numbers[np.isposinf(rates)] = np.inf
    (rows,) = np.nonzero((rates >= 10) & np.isfinite(rates))
    b = 0.931 + 2.53 * np.sqrt(rates)
    a = -0.059 + 0.02483 * b
    v_r = 0.9277 - 3.6224 / (b - 2)
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    while rows.size:
        u = places.take("uniform", rows) - 0.5
        v = places.take("uniform", rows)
        left, rate = 0.5 - np.abs(u), rates[rows]
        k = np.floor((2 * a[rows] / left + b[rows]) * u + rate + 0.43)
        sure = (left >= 0.07) & (v <= v_r[rows])
        never = (k < 0) | ((left < 0.013) & (v > left))
        s = np.log(v * inverse_alpha[rows] / (a[rows] / (left * left) + b[rows]))
        t = -rate + k * np.log(rate) - np.array([math.lgamma(max(count, 0) + 1) for count in k])
        taken = (k <= most) & (sure | (~never & (s <= t)))
        numbers[rows[taken]] = k[taken]
        rows = rows[~taken]


def _categorical(
    xp: Any,
    out: Any,
    state: Any,
    logits: Any,
    *,
    num_samples: int,
    first: int,
    workspace: Any,
    **_: Any,
) -> None:
    sums, finite = workspace
    for number, row in enumerate(logits):
        np.isfinite(row, out=finite)
        largest = np.max(row, initial=np.finfo(row.dtype).min, where=finite)
        np.subtract(row, float(largest), out=sums, dtype=np.float64)
        np.exp(sums, out=sums)
        np.logical_not(finite, out=finite)
        np.copyto(sums, 0, where=finite)
        np.cumsum(sums, out=sums)
        begin = first + number * num_samples
        for start in range(0, num_samples, _NUMBERS_AT_ONCE):
            drawn = np.empty(min(_NUMBERS_AT_ONCE, num_samples - start))
            fill(drawn, state, begin + start, 2, _doubles)
            drawn *= sums[-1]
            # The first class whose sum is above.
            out[number, start : start + _NUMBERS_AT_ONCE] = np.searchsorted(
                sums, drawn, side="right"
            )


def _shuffle(
    xp: Any, out: Any, state: Any, value: Any, *, workspace: tuple[NDArray[np.int64], ...]
) -> None:
    (places,), count = workspace, len(value)
    places[1:], places[:1] = 1, 0
    np.cumsum(places, out=places)  # From 0 on, without an array beside.
    order, words = memoryview(places.data), np.empty(_NUMBERS_AT_ONCE, np.uint64)
    # Fisher and Yates: each place takes one of those that are left.
    for start in range(0, count - 1, _NUMBERS_AT_ONCE):
        fill(words, state, start, 4, lambda blocks: blocks)
        left = np.arange(count - start, max(count - start - _NUMBERS_AT_ONCE, 1), -1)
        for place, taken in enumerate(
            (words[: len(left)] % left.astype(np.uint64)).tolist(), start
        ):
            other = place + taken
            order[place], order[other] = order[other], order[place]
    np.take(value, places, axis=0, out=out, mode="clip")


def _infer_rates(
    name: str,
    _: TensorSpec,
    rates: TensorSpec,
    *,
    shape: Shape,
    dtype: DType | None = None,
    **__: Any,
) -> TensorSpec:
    rank = len(rates.shape)
    if rank and tuple(shape[-rank:]) != tuple(rates.shape):
        raise InvalidArgumentError(
            f"Shape passed in must end with broadcasted shape. Received: {shape_text(shape)}, "
            f"and parameters of shape {shape_text(rates.shape)} [Op:{name}]"
        )
    return TensorSpec(shape, rates.dtype if dtype is None else dtype)


def _infer_categorical(
    state: TensorSpec, logits: TensorSpec, *, num_samples: int, dtype: DType, first: int
) -> TensorSpec:
    if len(logits.shape) != 2:
        raise InvalidArgumentError(
            f"logits should be a matrix, got shape {shape_text(logits.shape)} "
            "[Op:StatelessMultinomial]"
        )
    if not logits.shape[1]:
        raise InvalidArgumentError(
            "num_classes should be positive, got 0 [Op:StatelessMultinomial]"
        )
    return TensorSpec((logits.shape[0], num_samples), dtype)


GAMMA, POISSON = (
    _enter(name, kernel, partial(_infer_rates, name), FLOATS_AND_INDICES)
    for name, kernel in (("StatelessRandomGammaV3", _gamma), ("StatelessRandomPoisson", _poisson))
)
CATEGORICAL = _enter(
    "StatelessMultinomial",
    _categorical,
    _infer_categorical,
    FLOATS_AND_INDICES,
    lambda state, logits, **_: (
        TensorSpec(logits.shape[1:], float64),
        TensorSpec(logits.shape[1:], bool_),
    ),
)
SHUFFLE = _enter(
    "StatelessShuffle",
    _shuffle,
    lambda state, value: value,
    ALL_DTYPES,
    lambda state, value: (TensorSpec(value.shape[:1], int64),),
)
