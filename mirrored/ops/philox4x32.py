"""TensorFlow's counter-based generator: Philox 4x32 with ten rounds, from a state of three words.

A state is what `random.Generator` keeps: the low and the high 64 bits of the counter, and the key.
Each number is a function of the state and of its place (Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3", SC 2011), so any part of a draw can be made without what comes before it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import Op, register
from mirrored.ops.spec import DType, Shape, TensorSpec, float32, int64, shape_text

Words = NDArray[np.uint64]
# Rejection may take many words for one number: so many blocks are set aside for each.
RESERVED = 256
_STATES = frozenset({int64})
_CHUNK = 384  # Blocks a round: keeps the temporaries of a kernel small.
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
    for start in range(-lead, flat.size, _CHUNK * per_block):
        begin, end = max(start, 0), min(start + _CHUNK * per_block, flat.size)
        count = -(-(end - start) // per_block)
        place = block + (start + lead) // per_block
        numbers = make(stream.blocks(np.arange(place, place + count, dtype=np.uint64)))
        values = numbers[0] if per_block == 1 else np.stack(numbers, axis=1).reshape(-1)
        flat[begin:end] = values[begin - start : end - start]


def _uniform(xp: Any, out: Any, state: Any, *, shape: Shape, dtype: DType, first: int) -> None:
    if dtype == float32:
        fill(out, state, first, 4, lambda words: [unit_float(word) for word in words])
    else:
        fill(out, state, first, 2, lambda words: _by_pairs(unit_double, words))


def _by_pairs(make: Callable[[Words, Words], Any], words: list[Words]) -> list[Any]:
    return [make(*words[:2]), make(*words[2:])]


def _integers(words: list[Words], dtype: DType) -> list[Words]:
    """Return the bits of integers of a dtype."""
    return words if dtype.itemsize == 4 else _by_pairs(whole, words)


def _uniform_full_int(
    xp: Any, out: Any, state: Any, *, shape: Shape, dtype: DType, first: int
) -> None:
    bits = out.view(f"u{dtype.itemsize}")
    fill(bits, state, first, 16 // dtype.itemsize, lambda words: _integers(words, dtype))


def _uniform_int(
    xp: Any,
    out: Any,
    state: Any,
    *,
    shape: Shape,
    dtype: DType,
    first: int,
    minval: int,
    maxval: int,
) -> None:
    # The sum of the least value wraps around to where it belongs.
    least, span = np.uint64(minval % 2**64), np.uint64(maxval - minval)

    def make(words: list[Words]) -> list[Words]:
        numbers = _integers(words, dtype)
        for number in numbers:
            number %= span
            number += least
        return numbers

    fill(
        out.view(f"u{dtype.itemsize}"),
        state,
        first,
        16 // dtype.itemsize,
        make,
    )


def _normal(xp: Any, out: Any, state: Any, *, shape: Shape, dtype: DType, first: int) -> None:
    fill(out, state, first, 16 // dtype.itemsize, lambda words: normals(words, dtype))


def _truncated_normal(
    xp: Any, out: Any, state: Any, *, shape: Shape, dtype: DType, first: int
) -> None:
    # Groups of numbers have blocks of their own, of which each takes normal ones up to two
    # deviations from 0, until it has enough.
    flat, stream, group = out.reshape(-1), Stream(state), 16 // dtype.itemsize
    lead = first % group
    for start in range(-lead, flat.size, _CHUNK // 2 * group):
        begin, end = max(start, 0), min(start + _CHUNK // 2 * group, flat.size)
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


def _draw(name: str, kernel: Callable[..., None]) -> Op:
    """Enter an op that draws from a state."""
    return register(Op(name=name, infer=_infer, kernel=kernel, dtypes=_STATES, whole=True))


KEY_COUNTER = register(
    Op(
        name="StatelessRandomGetKeyCounter",
        infer=_infer_state,
        kernel=_key_counter,
        dtypes=_STATES,
        whole=True,
    )
)
SKIP = register(
    Op(
        name="RngReadAndSkip",
        infer=lambda state, **_: state,
        kernel=_skip,
        dtypes=_STATES,
        whole=True,
    )
)
UNIFORM = _draw("StatelessRandomUniformV2", _uniform)
UNIFORM_INT = _draw("StatelessRandomUniformIntV2", _uniform_int)
UNIFORM_FULL_INT = _draw("StatelessRandomUniformFullIntV2", _uniform_full_int)
NORMAL = _draw("StatelessRandomNormalV2", _normal)
TRUNCATED_NORMAL = _draw("StatelessTruncatedNormalV2", _truncated_normal)
