"""Kernels that draw TensorFlow's random numbers from a state, by all its distributions.

Each thread computes blocks of Philox 4x32 by itself, so any part of a draw is made alike. Gamma and
Poisson numbers have blocks of their own.
"""

from typing import Any

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, Spec, launch_for_each

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


# What is left of a block is taken from its end.
_PLACES = """
struct Places {
    State state;
    u64 next;
    double uniform[2], normal[2];
    int uniforms, normals_left;
};

__device__ inline double next_uniform(Places &places) {
    if (!places.uniforms) {
        Words words = words_at(places.state, places.next++);
        places.uniform[0] = unit_double(words.word[0], words.word[1]);
        places.uniform[1] = unit_double(words.word[2], words.word[3]);
        places.uniforms = 2;
    }
    return places.uniform[--places.uniforms];
}

__device__ inline double next_normal(Places &places) {
    if (!places.normals_left) {
        normals(words_at(places.state, places.next++), places.normal);
        places.normals_left = 2;
    }
    return places.normal[--places.normals_left];
}
"""

_GAMMA = """
__device__ inline double drawn(Places &places, double alpha) {
    if (alpha == 1.0) { return -log1p(-next_uniform(places)); }
    bool small = alpha < 1.0;
    double d = alpha + (small ? 2.0 / 3.0 : -1.0 / 3.0), c = 1.0 / 3.0 / sqrt(d);
    if (!(d >= 0.0)) { return NAN_D; }
    while (true) {
        double x = next_normal(places), v = 1.0 + c * x;
        if (v <= 0.0) { continue; }
        v = v * v * v;
        double u = next_uniform(places), square = x * x;
        if (!(u < 1.0 - 0.0331 * square * square)
            && !(log(u) < 0.5 * square + d * (1.0 - v + log(v)))) { continue; }
        double made = d * v;
        return small ? made * pow(next_uniform(places), 1.0 / alpha) : made;
    }
}
"""

_POISSON = """
__device__ inline double drawn(Places &places, double rate, double most) {
    if (rate < 10.0) {
        double bound = exp(-rate), product = 1.0, count = 0.0;
        while (true) {
            product *= next_uniform(places);
            if (product <= bound) { return count < most ? count : most; }
            count += 1.0;
        }
    }
    if (!isfinite(rate)) { return rate; }
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    double v_r = 0.9277 - 3.6224 / (b - 2.0), inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    while (true) {
        double u = next_uniform(places) - 0.5, v = next_uniform(places);
        double left = 0.5 - fabs(u);
        double k = floor((2.0 * a / left + b) * u + rate + 0.43);
        if (k > most) { continue; }
        if (left >= 0.07 && v <= v_r) { return k; }
        if (k < 0.0 || (left < 0.013 && v > left)) { continue; }
        double s = log(v * inverse_alpha / (a / (left * left) + b));
        if (s <= -rate + k * log(rate) - lgamma(k + 1.0)) { return k; }
    }
}
"""

# All numbers of one parameter come first in the draw, and then those of the next.
_EACH = """
extern "C" __global__ void draw(
    T *out, const P *parameters, const i64 *state, i64 count, i64 each, i64 samples, i64 sample,
    i64 parameter/* parameters */
) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) { return; }
    u64 place = (u64)((i % each + parameter) * samples + i / each + sample);
    Places places = {state_of(state), place * 256, {0.0, 0.0}, {0.0, 0.0}, 0, 0};
    store(out[i], (T_C)drawn(places, (double)load(parameters[i % each])/* arguments */));
}
"""

_CATEGORICAL = """
// The sums of the weights of a row's classes up to each.
extern "C" __global__ void weigh(double *sums, const L *logits, i64 rows, i64 classes) {
    i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) { return; }
    double largest = -INFINITY_D, sum = 0.0;
    for (i64 i = 0; i < classes; ++i) {
        double each = (double)load(logits[row * classes + i]);
        if (isfinite(each) && each > largest) { largest = each; }
    }
    for (i64 i = 0; i < classes; ++i) {
        double each = (double)load(logits[row * classes + i]);
        if (isfinite(each)) { sum += exp(each - largest); }
        sums[row * classes + i] = sum;
    }
}

extern "C" __global__ void choose(
    T *out, const double *sums, const i64 *state, i64 count, i64 samples, i64 classes, i64 first
) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) { return; }
    const double *row = sums + i / samples * classes;
    Words words = words_at(state_of(state), (u64)(first + i) / 2);
    int half = (int)((first + i) % 2) * 2;
    double wanted = unit_double(words.word[half], words.word[half + 1]) * row[classes - 1];
    i64 begin = 0, end = classes;  // The first of them that is above.
    while (begin < end) {
        i64 middle = (begin + end) / 2;
        if (wanted < row[middle]) { end = middle; } else { begin = middle + 1; }
    }
    out[i] = (T)begin;
}
"""

_SHUFFLE = """
// One thread: each place takes one of those that are left.
extern "C" __global__ void order(i64 *places, const i64 *state, i64 count) {
    State now = state_of(state);
    for (i64 i = 0; i < count; ++i) { places[i] = i; }
    Words words = words_at(now, 0);
    for (i64 i = 0; i + 1 < count; ++i) {
        if (i % 4 == 0) { words = words_at(now, (u64)(i / 4)); }
        i64 other = i + (i64)(words.word[i % 4] % (u32)(count - i)), kept = places[i];
        places[i] = places[other];
        places[other] = kept;
    }
}

extern "C" __global__ void rows(
    u8 *out, const u8 *value, const i64 *places, i64 bytes, i64 row
) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < bytes) { out[i] = value[places[i / row] * row + i % row]; }
}
"""


def _each_text(drawn: str, parameters: str = "", arguments: str = "") -> str:
    entry = _EACH.replace("/* parameters */", parameters).replace("/* arguments */", arguments)
    return PHILOX + _PLACES + drawn + entry


_GAMMA_TEXT = _each_text(_GAMMA)
_POISSON_TEXT = _each_text(_POISSON, ", double most", ", most")


_SHUFFLE_SOURCE = source("orders", PHILOX + _SHUFFLE)


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


def _each_source(name: str, dtype: np.dtype[Any], parameter: np.dtype[Any]) -> Source:
    text = _GAMMA_TEXT if name == "gamma" else _POISSON_TEXT
    return source(f"{name} numbers", text, T=dtype, P=parameter)


def _categorical_source(dtype: np.dtype[Any], logits: np.dtype[Any]) -> Source:
    return source("classes", PHILOX + _CATEGORICAL, T=dtype, L=logits)


def _draw_each(
    xp: Launcher, name: str, out: Any, state: Any, parameters: Any, part: Any, *more: np.float64
) -> None:
    if not out.size:
        return
    counts = (np.int64(size) for size in (out.size, parameters.size, *part))
    text = _each_source(name, out.dtype, parameters.dtype)
    args = (out, parameters, state, *counts, *more)
    launch_for_each(xp, text, "draw", out.size, args, threads=_THREADS)


def _gamma(xp: Launcher, out: Any, state: Any, alpha: Any, *, part: Any, **_: Any) -> None:
    _draw_each(xp, "gamma", out, state, alpha, part)


def _poisson(xp: Launcher, out: Any, state: Any, rate: Any, *, part: Any, **_: Any) -> None:
    limits = np.iinfo(out.dtype) if out.dtype.kind == "i" else np.finfo(out.dtype)
    _draw_each(xp, "Poisson", out, state, rate, part, np.float64(limits.max))


def _categorical(
    xp: Launcher,
    out: Any,
    state: Any,
    logits: Any,
    *,
    num_samples: int,
    first: int,
    workspace: Any,
    **_: Any,
) -> None:
    if not out.size:
        return
    (sums,), (rows, classes) = workspace, logits.shape
    text = _categorical_source(out.dtype, logits.dtype)
    args: tuple[Any, ...] = (sums, logits, np.int64(rows), np.int64(classes))
    launch_for_each(xp, text, "weigh", rows, args, threads=_THREADS)
    sizes = (np.int64(size) for size in (out.size, num_samples, classes, first))
    launch_for_each(xp, text, "choose", out.size, (out, sums, state, *sizes), threads=_THREADS)


def _shuffle(xp: Launcher, out: Any, state: Any, value: Any, *, workspace: Any) -> None:
    if not out.size:
        return
    (places,), text = workspace, _SHUFFLE_SOURCE
    count, row = out.shape[0], out.nbytes // out.shape[0]
    launch_for_each(xp, text, "order", 1, (places, state, np.int64(count)), threads=1)
    sizes = np.int64(out.nbytes), np.int64(row)
    as_bytes = (array.reshape(-1).view(np.uint8) for array in (out, value))
    launch_for_each(xp, text, "rows", out.nbytes, (*as_bytes, places, *sizes))


def _sums(state: Spec, logits: Spec, **_: Any) -> tuple[Spec, ...]:
    return ((logits[0], np.dtype(np.float64)),)


def _order(state: Spec, value: Spec) -> tuple[Spec, ...]:
    return ((value[0][:1], np.dtype(np.int64)),)


KERNELS = {
    "RngReadAndSkip": DeviceKernel(_skip),
    "StatelessRandomGetKeyCounter": DeviceKernel(_key_counter),
    **{name: _kernel(name) for name in _TEXTS},
    "StatelessMultinomial": DeviceKernel(_categorical, _sums),
    "StatelessRandomGammaV3": DeviceKernel(_gamma),
    "StatelessRandomPoisson": DeviceKernel(_poisson),
    "StatelessShuffle": DeviceKernel(_shuffle, _order),
}
