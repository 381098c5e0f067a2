"""Kernels that draw the same random numbers as the host.

Each thread computes a block of Philox 4x64 by itself, so any part of a stream is drawn alike.
"""

from typing import Any

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, launch_for_each

_THREADS = 128
_WORD = 1 << 64
_FLOATS = ("float32", "float64")

_PHILOX = """
struct Words { u64 word[4]; };

// Block `block` of a draw, with the rounds and the word order of NumPy's generator.
__device__ inline Words philox(u64 block, u64 key0, u64 key1, u64 draw) {
    u64 c0 = block + 1, c1 = 0, c2 = draw, c3 = 0;  // NumPy's counter goes on before it is used.
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        u64 high0 = __umul64hi(0xD2E7470EE14C6C93ull, c0), low0 = 0xD2E7470EE14C6C93ull * c0;
        u64 high1 = __umul64hi(0xCA5A826395121157ull, c2), low1 = 0xCA5A826395121157ull * c2;
        c0 = high1 ^ c1 ^ key0;
        c1 = low1;
        c2 = high0 ^ c3 ^ key1;
        c3 = low0;
        key0 += 0x9E3779B97F4A7C15ull;
        key1 += 0xBB67AE8584CAA73Bull;
    }
    Words words;
    words.word[0] = c0;
    words.word[1] = c1;
    words.word[2] = c2;
    words.word[3] = c3;
    return words;
}

__device__ inline double unit(u64 word) {
    return (double)(word >> 11) * (1.0 / 9007199254740992.0);
}
"""

# Each text defines PER, how many numbers a block of words gives, and `numbers`, which makes them.
_UNIFORM = """
#define PER (sizeof(T_C) == 4 ? 8 : 4)

__device__ inline void numbers(const Words &words, T_C *made) {
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        // The low half of a word comes first.
        if (sizeof(T_C) == 4) {
            u32 half = (u32)(words.word[i / 2] >> (i % 2 * 32));
            made[i] = (T_C)(half >> 8) * (T_C)(1.0 / 16777216.0);
        } else { made[i] = (T_C)unit(words.word[i % 4]); }
    }
}
"""

_UNIFORM_INT = """
#define PER 4

__device__ inline void numbers(
    const Words &words, T_C *made, double least, double range
) {
#pragma unroll
    for (int i = 0; i < PER; ++i) { made[i] = (T_C)(least + floor(unit(words.word[i]) * range)); }
}
"""

# Box and Muller's transform of pairs, in double as on the host.
_NORMAL = """
#define PER 4

__device__ inline void numbers(const Words &words, T_C *made) {
#pragma unroll
    for (int i = 0; i < PER; i += 2) {
        double radius = sqrt(-2.0 * log1p(-unit(words.word[i])));
        double angle = 2.0 * 3.141592653589793 * unit(words.word[i + 1]);
        made[i] = (T_C)(radius * cos(angle));
        made[i + 1] = (T_C)(radius * sin(angle));
    }
}
"""

_ENTRIES = """
__device__ inline void fill(
    T *out, i64 count, i64 first, u64 key0, u64 key1, u64 draw/* parameters */
) {
    i64 block = first / PER + (i64)blockIdx.x * blockDim.x + threadIdx.x;
    i64 start = block * PER - first;
    if (start >= count) { return; }
    T_C made[PER];
    numbers(philox((u64)block, key0, key1, draw), made/* arguments */);
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        if (start + i >= 0 && start + i < count) { store(out[start + i], made[i]); }
    }
}

extern "C" __global__ void draw_given(
    T *out, i64 count, i64 first, u64 key0, u64 key1, u64 draw/* parameters */
) {
    fill(out, count, first, key0, key1, draw/* arguments */);
}

extern "C" __global__ void draw_counted(
    T *out, i64 count, i64 first, const u64 *counters/* parameters */
) {
    fill(out, count, first, counters[0], counters[1], counters[2]/* arguments */);
}
"""


def _text(numbers: str, parameters: str = "", arguments: str = "") -> str:
    """Return the kernels that draw `numbers`, which takes arguments besides."""
    entries = _ENTRIES.replace("/* parameters */", parameters)
    return _PHILOX + numbers + entries.replace("/* arguments */", arguments)


_TEXTS = {
    "uniform numbers": _text(_UNIFORM),
    "uniform integers": _text(_UNIFORM_INT, ", double least, double range", ", least, range"),
    "normal numbers": _text(_NORMAL),
}


def _source(name: str, dtype: np.dtype[Any]) -> Source:
    return source(name, _TEXTS[name], T=dtype)


def _draw(
    xp: Launcher,
    name: str,
    out: Any,
    *limits: np.float64,
    per_block: int = 4,
    first: int,
    key: Any,
    draw: Any,
    counters: Any = None,
    **_: Any,
) -> None:
    """Fill an array with numbers of one draw.

    Args:
        xp: What launches.
        name: Which numbers; a key of `_TEXTS`.
        out: What is written.
        *limits: What the kernel takes besides.
        per_block: How many numbers a block of four words gives.
        first: The place in the draw of the first number.
        key: Two integers of 64 bits.
        draw: The number of the draw.
        counters: Three uint64 of the device, which are used in place of key and draw: a captured
            graph keeps the arguments of its kernels, and each run of it makes another draw.
        **_: The op's shape and dtype, which are those of `out`.
    """
    if not out.size:
        return
    blocks = (first + out.size - 1) // per_block - first // per_block + 1
    if counters is None:
        kernel = "draw_given"
        which: tuple[Any, ...] = (np.uint64(key[0]), np.uint64(key[1]), np.uint64(draw % _WORD))
    else:
        kernel, which = "draw_counted", (counters,)
    args = (out, np.int64(out.size), np.int64(first), *which, *limits)
    launch_for_each(xp, _source(name, out.dtype), kernel, blocks, args, threads=_THREADS)


def _uniform(xp: Launcher, out: Any, **attrs: Any) -> None:
    per_block = 4 if out.dtype == np.float64 else 8
    _draw(xp, "uniform numbers", out, per_block=per_block, **attrs)


def _uniform_int(xp: Launcher, out: Any, *, minval: int, maxval: int, **attrs: Any) -> None:
    limits = np.float64(minval), np.float64(maxval - minval)
    _draw(xp, "uniform integers", out, *limits, **attrs)


def _normal(xp: Launcher, out: Any, **attrs: Any) -> None:
    _draw(xp, "normal numbers", out, **attrs)


# They take `counters` beside the op's attributes.
KERNELS = {
    "RandomStandardNormal": DeviceKernel(_normal),
    "RandomUniform": DeviceKernel(_uniform),
    "RandomUniformInt": DeviceKernel(_uniform_int),
}
