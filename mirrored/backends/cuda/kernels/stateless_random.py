"""Kernels that draw TensorFlow's random numbers from a state.

Each thread computes blocks of Philox 4x32 by itself, so any part of a draw is made alike.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.kernel import DeviceKernel, Launcher, launch_for_each
from mirrored.backends.cuda.source import Source, source

_THREADS = 128
_FLOATS = ("float32", "float64")
_FULL = (*teams.INDICES, "uint32", "uint64")

PHILOX = """
struct State { u64 low, high, key; };
struct Words { u32 word[4]; };

__device__ inline State state_of(const i64 *state) {
    State made = {(u64)state[0], (u64)state[1], (u64)state[2]};
    return made;
}

// Block `place` of a state's draw.
__device__ inline Words words_at(State state, u64 place) {
    u64 low = state.low + place, high = state.high + (low < place ? 1 : 0);
    u32 c0 = (u32)low, c1 = (u32)(low >> 32), c2 = (u32)high, c3 = (u32)(high >> 32);
    u32 key0 = (u32)state.key, key1 = (u32)(state.key >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        u64 left = 0xD2511F53ull * c0, right = 0xCD9E8D57ull * c2;
        c0 = (u32)(right >> 32) ^ c1 ^ key0;
        c1 = (u32)right;
        c2 = (u32)(left >> 32) ^ c3 ^ key1;
        c3 = (u32)left;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    Words words = {{c0, c1, c2, c3}};
    return words;
}

__device__ inline float unit_float(u32 word) {
    return __int_as_float((int)(0x3f800000u | (word & 0x7fffffu))) - 1.0f;
}

__device__ inline double unit_double(u32 first, u32 second) {
    u64 bits = 0x3ff0000000000000ull | (u64)(first & 0xfffffu) << 32 | second;
    return __longlong_as_double((i64)bits) - 1.0;
}

#define TURN (2.0 * 3.141592653589793)

// As on the host, where functions of floats are taken in double and rounded.
__device__ inline void normals(const Words &words, float *made) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        double turn = (double)(float)(TURN * (double)unit_float(words.word[i + 1]));
        double uniform = (double)fmaxf(unit_float(words.word[i]), 1e-7f);
        float size = (float)sqrt((double)(-2.0f * (float)log(uniform)));
        made[i] = (float)sin(turn) * size;
        made[i + 1] = (float)cos(turn) * size;
    }
}

__device__ inline void normals(const Words &words, double *made) {
    double turn = TURN * unit_double(words.word[2], words.word[3]);
    double uniform = fmax(unit_double(words.word[0], words.word[1]), 1e-7);
    double size = sqrt(-2.0 * log(uniform));
    made[0] = sin(turn) * size;
    made[1] = cos(turn) * size;
}
"""

# Each text defines `numbers`, which makes those of group `group` of PER numbers.
_UNIFORM = """
__device__ inline void uniforms(const Words &words, float *made) {
#pragma unroll
    for (int i = 0; i < 4; ++i) { made[i] = unit_float(words.word[i]); }
}
__device__ inline void uniforms(const Words &words, double *made) {
    made[0] = unit_double(words.word[0], words.word[1]);
    made[1] = unit_double(words.word[2], words.word[3]);
}
__device__ inline void numbers(State state, u64 group, T *made) {
    uniforms(words_at(state, group), made);
}
"""

_INTEGERS = """
__device__ inline void integers(State state, u64 group, u64 *made) {
    Words words = words_at(state, group);
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        if (PER == 4) { made[i] = words.word[i]; }
        else { made[i] = words.word[i * 2 % 4] | (u64)words.word[(i * 2 + 1) % 4] << 32; }
    }
}
"""

_FULL_INT = """
__device__ inline void numbers(State state, u64 group, T *made) {
    u64 bits[PER];
    integers(state, group, bits);
#pragma unroll
    for (int i = 0; i < PER; ++i) { made[i] = (T)bits[i]; }
}
"""

_UNIFORM_INT = """
__device__ inline void numbers(State state, u64 group, T *made, u64 least, u64 span) {
    u64 bits[PER];
    integers(state, group, bits);
#pragma unroll
    for (int i = 0; i < PER; ++i) { made[i] = (T)(bits[i] % span + least); }
}
"""

_NORMAL = """
__device__ inline void numbers(State state, u64 group, T *made) {
    normals(words_at(state, group), made);
}
"""

# A group has blocks of its own, of which it takes normal numbers until it has enough.
_TRUNCATED = """
__device__ inline void numbers(State state, u64 group, T *made) {
    u64 block = group * (PER * 256 / 4);
    for (int have = 0; have < PER; ++block) {
        T tried[PER];
        normals(words_at(state, block), tried);
        for (int i = 0; i < PER; ++i) {
            if (fabs(tried[i]) < (T)2 && have < PER) { made[have++] = tried[i]; }
        }
    }
}
"""

_ENTRY = """
extern "C" __global__ void draw(T *out, i64 count, i64 first, const i64 *state/* parameters */) {
    i64 group = first / PER + (i64)blockIdx.x * blockDim.x + threadIdx.x;
    i64 start = group * PER - first;
    if (start >= count) { return; }
    T made[PER];
    numbers(state_of(state), (u64)group, made/* arguments */);
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        if (start + i >= 0 && start + i < count) { store(out[start + i], made[i]); }
    }
}
"""

_STATES = """
extern "C" __global__ void key_counter(i64 *out, const i64 *seed) {
    State fixed = {(u64)seed[0], (u64)seed[1], 0x02461E293EC8F720ull};
    Words words = words_at(fixed, 0);
    out[0] = 0;
    out[1] = (i64)(words.word[2] | (u64)words.word[3] << 32);
    out[2] = (i64)(words.word[0] | (u64)words.word[1] << 32);
}

extern "C" __global__ void skip(i64 *out, const i64 *state, u64 low, u64 high) {
    State now = state_of(state);
    u64 sum = now.low + low;
    out[0] = (i64)sum;
    out[1] = (i64)(now.high + high + (sum < low ? 1 : 0));
    out[2] = state[2];
}
"""

_PER = "#define PER (16 / (int)sizeof(T))\n"
_BOUNDS = ", u64 least, u64 span", ", least, span"


def _text(numbers: str, parameters: str = "", arguments: str = "") -> str:
    """Return the kernel that draws `numbers`, which takes arguments besides."""
    entry = _ENTRY.replace("/* parameters */", parameters)
    return PHILOX + _PER + numbers + entry.replace("/* arguments */", arguments)


# By op: the text, and the dtypes of its results.
_TEXTS = {
    "StatelessRandomUniformV2": (_text(_UNIFORM), _FLOATS),
    "StatelessRandomNormalV2": (_text(_NORMAL), _FLOATS),
    "StatelessTruncatedNormalV2": (_text(_TRUNCATED), _FLOATS),
    "StatelessRandomUniformFullIntV2": (_text(_INTEGERS + _FULL_INT), _FULL),
    "StatelessRandomUniformIntV2": (_text(_INTEGERS + _UNIFORM_INT, *_BOUNDS), teams.INDICES),
}


_STATES_SOURCE = source("states of random numbers", PHILOX + _STATES)


def sources() -> Iterator[Source]:
    """Yield each text of this module."""
    yield _STATES_SOURCE
    for name, (_, dtypes) in _TEXTS.items():
        for dtype in dtypes:
            yield _source(name, np.dtype(dtype))


def _source(name: str, dtype: np.dtype[Any]) -> Source:
    return source(name, _TEXTS[name][0], T=dtype)


def _key_counter(xp: Launcher, out: Any, seed: Any) -> None:
    launch_for_each(xp, _STATES_SOURCE, "key_counter", 1, (out, seed), threads=1)


def _skip(xp: Launcher, out: Any, state: Any, *, delta: int) -> None:
    low, high = (np.uint64((delta * 256 >> shift) % 2**64) for shift in (0, 64))
    launch_for_each(xp, _STATES_SOURCE, "skip", 1, (out, state, low, high), threads=1)


def _kernel(name: str) -> DeviceKernel:
    """Return the kernel of an op that draws numbers."""

    def run(
        xp: Launcher,
        out: Any,
        state: Any,
        *,
        first: int,
        minval: int | None = None,
        maxval: int | None = None,
        **_: Any,
    ) -> None:
        if not out.size:
            return
        per = 16 // out.dtype.itemsize
        groups = (first + out.size - 1) // per - first // per + 1
        bounds: tuple[np.uint64, ...] = ()
        if minval is not None and maxval is not None:
            bounds = np.uint64(minval % 2**64), np.uint64(maxval - minval)
        args = (out, np.int64(out.size), np.int64(first), state, *bounds)
        text = _source(name, out.dtype)
        launch_for_each(xp, text, "draw", groups, args, threads=_THREADS)

    return DeviceKernel(run)


KERNELS = {
    "RngReadAndSkip": DeviceKernel(_skip),
    "StatelessRandomGetKeyCounter": DeviceKernel(_key_counter),
    **{name: _kernel(name) for name in _TEXTS},
}
