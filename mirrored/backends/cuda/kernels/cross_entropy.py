"""Cross-entropies from logits and their gradients, one by one or both by one kernel.

The kernels of one loss are made of the same text, so both results at once have the same bits. What
computes both takes the last bias in too.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.kernel import DeviceKernel, Launcher
from mirrored.backends.cuda.kernels.softmax import SHARES
from mirrored.backends.cuda.source import Source, source
from mirrored.backends.stream_backend import Combination, OpSpec

Arrays = tuple[Any, ...]

_ROW = """
// A row of logits. With a bias, which is added wherever an element is read, it needs no memory.
struct Row {
    const T *x, *bias;
    __device__ inline T operator[](i64 i) const {
        if (!bias) { return x[i]; }
        T sum;
        store(sum, load(x[i]) + load(bias[i]));
        return sum;
    }
};
"""
# A label that is no class makes its row NaN, as TensorFlow does on a GPU, and is never an index.
_SPARSE = """
template <bool LOSS, bool GRADIENT> __device__ inline void cross_entropy(
    T *loss, T *gradient, const Row &x, const L *labels, const T *g, i64 length, i64 row, bool mine,
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
            store(gradient[i], (shares.of(x[i]) - (T_C)(i == label ? 1 : 0)) * scale);
        }
    }
}
"""
_DENSE = """
template <bool LOSS, bool GRADIENT> __device__ inline void cross_entropy(
    T *loss, T *gradient, const Row &x, const L *labels, const T *g, i64 length, i64 row, bool mine,
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
            store(gradient[i], (shares.of(x[i]) - load(label[i])) * scale);
        }
    }
}
"""
_TEXT = """
template <bool LOSS, bool GRADIENT> __device__ inline void each_row(
    T *loss, T *gradient, const T *x, const L *labels, const T *g, i64 rows, i64 length, int height,
    const T *bias = 0, T *logits = 0
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
    T *loss, const T *x, const L *labels, i64 rows, i64 length, int height
) {
    each_row<true, false>(loss, 0, x, labels, 0, rows, length, height);
}

extern "C" __global__ void __launch_bounds__(512, 2) gradient(
    T *gradient, const T *x, const L *labels, const T *g, i64 rows, i64 length, int height
) {
    each_row<false, true>(0, gradient, x, labels, g, rows, length, height);
}

extern "C" __global__ void __launch_bounds__(512, 2) loss_and_gradient(
    T *loss, T *gradient, const T *x, const L *labels, const T *g, i64 rows, i64 length, int height,
    const T *bias, T *logits
) {
    each_row<true, true>(loss, gradient, x, labels, g, rows, length, height, bias, logits);
}
"""


def sources() -> Iterator[Source]:
    """Yield each text of this module."""
    for dtype in teams.float_dtypes():
        yield _source(dtype, dtype)
        for labels in teams.INDICES:
            yield _source(dtype, np.dtype(labels))


@cache
def _source(logits: np.dtype[Any], labels: np.dtype[Any]) -> Source:
    kind, text = ("sparse ", _SPARSE) if labels.kind == "i" else ("", _DENSE)
    text = f"{teams.TEXT}{SHARES}{_ROW}{text}{_TEXT}"
    return source(f"{kind}cross-entropy", text, T=logits, L=labels)


def _launch(
    xp: Launcher,
    name: str,
    logits: Any,
    labels: Any,
    arrays: tuple[Any, ...],
    behind: tuple[Any, ...] = (),
) -> None:
    rows, length = logits.shape
    if not rows:
        return
    split = teams.teams(length, along=True)
    args = (*arrays, np.int64(rows), np.int64(length), np.int32(split.height), *behind)
    text, state = _source(logits.dtype, labels.dtype), teams.state_size(logits.dtype)
    split.launch(xp, text, name, rows, args, state=state)


def _one(xp: Launcher, out: Any, logits: Any, labels: Any, *g: Any) -> None:
    name = "gradient" if g else "loss"
    _launch(xp, name, logits, labels, (out, logits, labels, *g))


def _both(xp: Launcher, outputs: Arrays, inputs: Sequence[Arrays], attrs: Any) -> None:
    (loss, gradient), (logits, labels, g) = outputs, inputs[1]
    arrays = (loss, gradient, logits, labels, g)
    _launch(xp, "loss_and_gradient", logits, labels, arrays, (None, None))


def _both_with_bias(xp: Launcher, outputs: Arrays, inputs: Sequence[Arrays], attrs: Any) -> None:
    (logits, loss, gradient), (x, bias), (_, labels, g) = outputs, inputs[0], inputs[2]
    x = x.reshape(gradient.shape)
    _launch(xp, "loss_and_gradient", x, labels, (loss, gradient, x, labels, g), (bias, logits))


def _takes_bias(ops: Sequence[OpSpec]) -> bool:
    """Whether each row of logits is one to which the bias is added, of one dtype."""
    (shape, dtype), (rows, _) = ops[0].output, ops[1].inputs[0]
    return shape[-1:] == rows[-1:] and ops[0].inputs == ((shape, dtype), (shape[-1:], dtype))


KERNELS: dict[str, DeviceKernel] = {
    name: DeviceKernel(_one)
    for name in (
        "SoftmaxCrossEntropyWithLogits",
        "SoftmaxCrossEntropyGrad",
        "SparseSoftmaxCrossEntropyWithLogits",
        "SparseSoftmaxCrossEntropyGrad",
    )
}
# For recorded programs, where both are wanted.
COMBINATIONS: dict[tuple[str, ...], Combination] = {}
for _kind in ("", "Sparse"):
    _names = f"{_kind}SoftmaxCrossEntropyWithLogits", f"{_kind}SoftmaxCrossEntropyGrad"
    COMBINATIONS[_names] = Combination(_both, (True, True))
    COMBINATIONS["BiasAdd", *_names] = Combination(_both_with_bias, (True, True, True), _takes_bias)
