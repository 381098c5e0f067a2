"""Kernels for softmax, and for cross-entropies from logits with their gradients.

A team of threads reads its row three times, mostly from the cache, so nothing is stored between.
The kernels of one loss are made of the same text, so both results at once have the same bits. What
computes both takes in the last bias too, and in mixed precision the casts before and behind.
"""

import math
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher
from mirrored.backends.stream_backend import Combination, OpSpec

# For texts whose element type is T.
_SHARES = """
// Softmax of one row: element i is exp(x[i] - largest) / sum.
struct Shares {
    T_C largest, sum;
    __device__ inline T_C exponential(T x) const { return exp(load(x) - largest); }
    __device__ inline T_C of(T x) const { return exponential(x) / sum; }
};

// Every thread of the block calls, with a `length` of 0 where it has no row. A row is what
// gives elements by their number, such as a pointer.
template <class Elements> __device__ inline Shares shares_of(
    const Elements &x, i64 length, i64 step, const Team &team
) {
    Shares shares;
    auto read = [&](i64 i) { return x[i * step]; };
    shares.largest = reduced<Largest<T_C>>(0, length, team, read, [](T value, i64) {
        return load(value);
    });
    shares.sum = reduced<Sum<T_C>>(0, length, team, read, [&](T value, i64) {
        return shares.exponential(value);
    });
    return shares;
}
"""
# `out` may be `x`: a thread writes only what it alone still reads.
_SOFTMAX = """
extern "C" __global__ void __launch_bounds__(512, 2) NAME(
    T *out, const T *x, i64 rows, i64 length, i64 step, int height, int along
) {
    Team team = my_team(height, along);
    i64 tiles = (rows + team.rows - 1) / team.rows;
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        i64 row = tile * team.rows + team.row;
        bool mine = row < rows;
        i64 first = mine ? row / step * step * length + row % step : 0;
        Shares shares = shares_of(x + first, mine ? length : 0, step, team);
        PREPARED
        for (i64 i = team.place; mine && i < length; i += team.height) {
            i64 at = first + i * step;
            store(out[at], VALUE);
        }
    }
}
"""
# What is computed once a row, and for each element.
_FORMS = {
    "softmax": ("", "shares.of(x[at])"),
    "log_softmax": ("T_C log_sum = log(shares.sum);", "load(x[at]) - shares.largest - log_sum"),
}


@cache
def _softmax_source(name: str, dtype: np.dtype[Any]) -> Source:
    prepared, value = _FORMS[name]
    text = _SOFTMAX.replace("NAME", name).replace("PREPARED", prepared).replace("VALUE", value)
    return source(name, f"{teams.TEXT}{_SHARES}{text}", T=dtype)


def _softmax(xp: Launcher, out: Any, x: Any, *, name: str, axis: int) -> None:
    if not x.size:
        return
    length, step = x.shape[axis], math.prod(x.shape[axis + 1 :])
    rows = x.size // length
    split = teams.teams(length, along=step == 1, side_by_side=step)
    sizes = (np.int64(rows), np.int64(length), np.int64(step))
    args = (out, x, *sizes, np.int32(split.height), np.int32(split.along))
    state = teams.state_size(x.dtype)
    split.launch(xp, _softmax_source(name, x.dtype), name, rows, args, state=state)


Arrays = tuple[Any, ...]

_ROW = """
__device__ inline T as_logit(T x) { return x; }
template <class A> __device__ inline T as_logit(A x) {
    T logit;
    store(logit, (T_C)load(x));
    return logit;
}

// A row of logits. With a bias or a cast, done wherever an element is read, it needs no memory.
struct Row {
    const X *x, *bias;
    __device__ inline T operator[](i64 i) const {
        if (!bias) { return as_logit(x[i]); }
        X sum;
        store(sum, load(x[i]) + load(bias[i]));
        return as_logit(sum);
    }
};
"""
# A label that is no class makes its row NaN, as TensorFlow does on a GPU, and is never an index.
_SPARSE = """
template <bool LOSS, bool GRADIENT> __device__ inline void cross_entropy(
    T *loss, G *gradient, const Row &x, const L *labels, const T *g, i64 length, i64 row, bool mine,
    const Team &team
) {
    Shares shares = shares_of(x, mine ? length : 0, 1, team);
    if (!mine) { return; }
    i64 label = load(labels[row]);
    bool valid = label >= 0 && label < length;
    if (LOSS && team.place == 0) {
        T_C nan = (T_C)NAN_F;
        store(loss[row], valid ? log(shares.sum) - (load(x[label]) - shares.largest) : nan);
    }
    if (GRADIENT) {
        T_C scale = valid ? load(g[row]) : (T_C)NAN_F;
        for (i64 i = team.place; i < length; i += team.height) {
            T slope;  // Rounded to this, and only then to what is stored.
            store(slope, (shares.of(x[i]) - (T_C)(i == label ? 1 : 0)) * scale);
            store(gradient[i], load(slope));
        }
    }
}
"""
_DENSE = """
template <bool LOSS, bool GRADIENT> __device__ inline void cross_entropy(
    T *loss, G *gradient, const Row &x, const L *labels, const T *g, i64 length, i64 row, bool mine,
    const Team &team
) {
    i64 end = mine ? length : 0;
    const L *label = labels + (mine ? row * length : 0);
    Shares shares = shares_of(x, end, 1, team);
    if (LOSS) {
        T_C log_sum = log(shares.sum);
        T_C total = reduced<Sum<T_C>>(0, end, team, [&](i64 i) {
            return (log_sum - (load(x[i]) - shares.largest)) * load(label[i]);
        }, [](T_C term, i64) { return term; });
        if (mine && team.place == 0) { store(loss[row], total); }
    }
    if (GRADIENT) {
        T_C scale = mine ? load(g[row]) : 0;
        for (i64 i = team.place; i < end; i += team.height) {
            T slope;
            store(slope, (shares.of(x[i]) - load(label[i])) * scale);
            store(gradient[i], load(slope));
        }
    }
}
"""
_TEXT = """
template <bool LOSS, bool GRADIENT> __device__ inline void each_row(
    T *loss, G *gradient, const X *x, const L *labels, const T *g, i64 rows, i64 length, int height,
    const X *bias = 0, T *logits = 0
) {
    Team team = my_team(height, 1);
    i64 tiles = (rows + team.rows - 1) / team.rows;
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        i64 row = tile * team.rows + team.row;
        bool mine = row < rows;
        i64 first = mine ? row * length : 0;
        const Row own = {x + first, bias};
        cross_entropy<LOSS, GRADIENT>(
            loss, GRADIENT ? gradient + first : gradient, own, labels, g, length, row, mine, team
        );
        for (i64 i = team.place; logits && mine && i < length; i += team.height) {
            logits[first + i] = own[i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(512, 2) loss(
    T *loss, const X *x, const L *labels, i64 rows, i64 length, int height
) {
    each_row<true, false>(loss, 0, x, labels, 0, rows, length, height);
}

extern "C" __global__ void __launch_bounds__(512, 2) gradient(
    G *gradient, const X *x, const L *labels, const T *g, i64 rows, i64 length, int height
) {
    each_row<false, true>(0, gradient, x, labels, g, rows, length, height);
}

extern "C" __global__ void __launch_bounds__(512, 2) loss_and_gradient(
    T *loss, G *gradient, const X *x, const L *labels, const T *g, i64 rows, i64 length, int height,
    const X *bias, T *logits
) {
    each_row<true, true>(loss, gradient, x, labels, g, rows, length, height, bias, logits);
}
"""


@cache
def _source(
    logits: np.dtype[Any],
    labels: np.dtype[Any],
    read: np.dtype[Any] | None = None,
    written: np.dtype[Any] | None = None,
) -> Source:
    """Return the text for logits of a dtype, whose gradient may be written in another."""
    kind, text = ("sparse ", _SPARSE) if labels.kind == "i" else ("", _DENSE)
    text = f"{teams.TEXT}{_SHARES}{_ROW}{text}{_TEXT}"
    name, x, gradient = f"{kind}cross-entropy", read or logits, written or logits
    return source(name, text, T=logits, L=labels, X=x, G=gradient)


def _launch(
    xp: Launcher,
    name: str,
    text: Source,
    shape: tuple[int, int],
    arrays: tuple[Any, ...],
    behind: tuple[Any, ...] = (),
) -> None:
    rows, length = shape
    if not rows:
        return
    split = teams.teams(length, along=True)
    args = (*arrays, np.int64(rows), np.int64(length), np.int32(split.height), *behind)
    split.launch(xp, text, name, rows, args, state=teams.state_size(arrays[0].dtype))


def _loss_or_gradient(xp: Launcher, out: Any, logits: Any, labels: Any, *g: Any) -> None:
    text = _source(logits.dtype, labels.dtype)
    arrays = (out, logits, labels, *g)
    _launch(xp, "gradient" if g else "loss", text, logits.shape, arrays)


def _both(
    xp: Launcher, outputs: Arrays, inputs: Sequence[Arrays], attrs: Any, *, before: Sequence[str]
) -> None:
    """Compute a loss with its gradient, ops before, which are named, and perhaps a cast behind."""
    first = len(before)
    loss, gradient = outputs[first], outputs[-1]
    _, labels, g = inputs[first + 1]
    x, *bias = inputs[0]
    logits = outputs[first - 1] if before else None
    x = x.reshape(gradient.shape)
    text = _source(loss.dtype, labels.dtype, x.dtype, gradient.dtype)
    last = (bias[0] if "BiasAdd" in before else None, logits)
    arrays = (loss, gradient, x, labels, g)
    _launch(xp, "loss_and_gradient", text, gradient.shape, arrays, last)


def _fits(ops: Sequence[OpSpec], *, before: Sequence[str], behind: Sequence[str]) -> bool:
    """Whether biases are added to rows of logits, and casts are from and to narrow floats."""
    loss, gradient = ops[len(before)], ops[len(before) + 1]
    rows, dtype = loss.inputs[0]
    if "BiasAdd" in before:
        shape, stored = ops[0].output
        if ops[0].inputs != ((shape, stored), (shape[-1:], stored)) or shape[-1:] != rows[-1:]:
            return False
    narrow = [ops[len(before) - 1].inputs[0][1]] if "Cast" in before else []
    narrow += [ops[-1].output[1]] if behind else []
    if not narrow:
        return True
    alike = len({kind.name for kind in narrow}) == 1 and narrow[0].name in teams.NARROW
    return alike and dtype.name == "float32" and ops[-1].output[0] == gradient.output[0]


KERNELS: dict[str, DeviceKernel] = {
    "LogSoftmax": DeviceKernel(partial(_softmax, name="log_softmax")),
    "Softmax": DeviceKernel(partial(_softmax, name="softmax")),
    "SoftmaxCrossEntropyGrad": DeviceKernel(_loss_or_gradient),
    "SoftmaxCrossEntropyWithLogits": DeviceKernel(_loss_or_gradient),
    "SparseSoftmaxCrossEntropyGrad": DeviceKernel(_loss_or_gradient),
    "SparseSoftmaxCrossEntropyWithLogits": DeviceKernel(_loss_or_gradient),
}
# For recorded programs, where both are wanted.
COMBINATIONS: dict[tuple[str, ...], Combination] = {}
for _kind in ("", "Sparse"):
    _names = f"{_kind}SoftmaxCrossEntropyWithLogits", f"{_kind}SoftmaxCrossEntropyGrad"
    for _before in ((), ("BiasAdd",), ("Cast",), ("BiasAdd", "Cast")):
        for _behind in ((), ("Cast",)):
            # The logits can be stored, and what is behind.
            _stores = [False] * (len(_before) - 1) + [True] * bool(_before)
            _stores += [True, not _behind] + [True] * len(_behind)
            COMBINATIONS[*_before, *_names, *_behind] = Combination(
                partial(_both, before=_before),
                tuple(_stores),
                partial(_fits, before=_before, behind=_behind),
            )
