"""TensorFlow's random numbers, written number by number in Python's own integers and floats."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
WORD = 1 << 32


def block(state: Sequence[int], place: int) -> list[int]:
    """Return the four words of a block of Philox 4x32-10 (Salmon et al., 2011)."""
    low, high, key = (int(each) % 2**64 for each in state)
    counter = (low + (high << 64) + place) % 2**128
    c = [counter >> shift & WORD - 1 for shift in (0, 32, 64, 96)]
    k = [key % WORD, key >> 32]
    for _ in range(10):
        left, right = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [right >> 32 ^ c[1] ^ k[0], right % WORD, left >> 32 ^ c[3] ^ k[1], left % WORD]
        k = [(k[0] + 0x9E3779B9) % WORD, (k[1] + 0xBB67AE85) % WORD]
    return c


def state_of(seed: Sequence[int]) -> Array:
    """Return the state that a seed is scrambled to."""
    a, b, c, d = block((*seed, 0x02461E293EC8F720), 0)
    return np.array([0, c + (d << 32), a + (b << 32)], np.uint64).view(np.int64)


def after(state: Sequence[int], numbers: int) -> Array:
    """Return the state of a generator that has drawn so many numbers."""
    low, high, key = (int(each) % 2**64 for each in state)
    counter = low + (high << 64) + 256 * numbers
    return np.array([counter % 2**64, counter >> 64 & 2**64 - 1, key], np.uint64).view(np.int64)


def singles(words: Sequence[int]) -> list[float]:
    """Return floats of 23 bits."""
    return [(word % 2**23) / 2**23 for word in words]


def doubles(words: Sequence[int]) -> list[float]:
    """Return doubles of 52 bits."""
    return [((a % 2**20 << 32) + b) / 2**52 for a, b in zip(words[::2], words[1::2], strict=True)]


def integers(words: Sequence[int], bits: int) -> list[int]:
    """Return integers of 32 or 64 bits, none of them negative."""
    if bits == 32:
        return list(words)
    return [a + (b << 32) for a, b in zip(words[::2], words[1::2], strict=True)]


def normals(words: Sequence[int], dtype: Any) -> list[float]:
    """Return normal numbers of a block."""
    uniform = singles(words) if dtype == np.float32 else doubles(words)
    made = []
    for u, v in zip(uniform[::2], uniform[1::2], strict=True):
        radius = math.sqrt(-2 * math.log(max(u, 1e-7)))
        made += [radius * math.sin(2 * math.pi * v), radius * math.cos(2 * math.pi * v)]
    return made


def drawn(
    make: Callable[[list[int], Any], Sequence[Any]],
) -> Callable[..., Array]:
    """Return a function of a state that draws numbers of which each block gives some."""

    def draw(state: Array, shape: Any, dtype: Any, first: int, **attrs: Any) -> Array:
        count, numbers, place = math.prod(shape), [], 0
        while len(numbers) < first + count:
            numbers += make(block(state, place), dtype, **attrs)
            place += 1
        return np.array(numbers[first : first + count]).reshape(shape).astype(dtype)

    return draw


uniform = drawn(lambda words, dtype: singles(words) if dtype.itemsize == 4 else doubles(words))
normal = drawn(normals)
full_int = drawn(
    lambda words, dtype: [
        (each + 2 ** (dtype.itemsize * 8 - 1)) % 2 ** (dtype.itemsize * 8)
        - 2 ** (dtype.itemsize * 8 - 1)
        for each in integers(words, dtype.itemsize * 8)
    ]
)
uniform_int = drawn(
    lambda words, dtype, minval, maxval: [
        minval + each % (maxval - minval) for each in integers(words, dtype.itemsize * 8)
    ]
)


def truncated_normal(state: Array, shape: Any, dtype: Any, first: int) -> Array:
    """Draw normal numbers, all of a group from 256 blocks a number."""
    count, group, numbers = math.prod(shape), 16 // dtype.itemsize, []
    while len(numbers) < first + count:
        place, own = len(numbers) * 64, []
        while len(own) < group:
            own += [each for each in normals(block(state, place), dtype) if abs(each) < 2]
            place += 1
        numbers += own[:group]
    return np.array(numbers[first : first + count]).reshape(shape)


def _streams(state: Array, number: int) -> tuple[Iterator[float], Iterator[float]]:
    """Return the uniform and the normal doubles of a number that is found by rejection."""
    place = number * 256

    def stream(make: Callable[[list[int]], Sequence[float]]) -> Iterator[float]:
        nonlocal place
        while True:
            words = block(state, place)
            place += 1
            yield from reversed(make(words))

    return stream(doubles), stream(lambda words: normals(words, np.float64))


def gamma(state: Array, alpha: Array, shape: Any, part: Any) -> Array:
    """Draw gamma numbers by Marsaglia and Tsang's method."""
    made = np.empty(shape).reshape(-1, max(alpha.size, 1))
    for number in range(made.size):
        which, sample = divmod(number, len(made))
        place = (which + part.parameter) * part.samples + part.sample + sample
        uniforms, normal_ones = _streams(state, place)
        made[sample, which] = _gamma(float(alpha.reshape(-1)[which]), uniforms, normal_ones)
    return made.reshape(shape)


def _gamma(alpha: float, uniforms: Iterator[float], normal_ones: Iterator[float]) -> float:
    if alpha == 1:
        return -math.log1p(-next(uniforms))
    d = alpha + (2 / 3 if alpha < 1 else -1 / 3)
    while True:
        x = next(normal_ones)
        v = (1 + x / math.sqrt(d) / 3) ** 3
        if v <= 0:
            continue
        u = next(uniforms)
        if u < 1 - 0.0331 * x**4 or math.log(u) < x * x / 2 + d * (1 - v + math.log(v)):
            return d * v * (next(uniforms) ** (1 / alpha) if alpha < 1 else 1)


def poisson(state: Array, rate: Array, shape: Any, dtype: Any, part: Any) -> Array:
    """Draw Poisson numbers of rates below 10, as Knuth does."""
    made = np.empty(shape).reshape(-1, max(rate.size, 1))
    for number in range(made.size):
        which, sample = divmod(number, len(made))
        place = (which + part.parameter) * part.samples + part.sample + sample
        uniforms, product, count = _streams(state, place)[0], 1.0, -1
        while product > math.exp(-float(rate.reshape(-1)[which])):
            product *= next(uniforms)
            count += 1
        made[sample, which] = count
    return made.reshape(shape)


def categorical(state: Array, logits: Array, num_samples: int, dtype: Any, first: int) -> Array:
    """Draw classes: that whose part of the whole a uniform number falls in."""
    count, made = len(logits) * num_samples, []
    uniform = drawn(lambda words, _: doubles(words))(state, (count,), np.dtype("float64"), first)
    for row, u in zip(np.repeat(logits, num_samples, axis=0), uniform, strict=True):
        weights = np.exp(row - row.max())
        made.append(int(np.sum(np.cumsum(weights) <= u * weights.sum())))
    return np.array(made, np.int64).reshape(len(logits), num_samples)


def shuffle(state: Array, value: Array) -> Array:
    """Take rows one by one from those that are left, as Fisher and Yates do."""
    rows, made = list(value), []
    for i in range(len(value)):
        chosen = block(state, i // 4)[i % 4] % (len(value) - i)
        made.append(rows[chosen])
        rows[chosen] = rows[0]
        del rows[0]
    return np.array(made, value.dtype).reshape(value.shape)


def check_drawn(drawn: Any, expected: Any) -> None:
    """Compare numbers; those of functions such as the sine may differ in the last bits."""
    values = drawn.numpy()
    if values.dtype.kind == "f":
        np.testing.assert_allclose(values, expected, rtol=16 * np.finfo(values.dtype).eps)
    else:
        assert values.tolist() == expected
