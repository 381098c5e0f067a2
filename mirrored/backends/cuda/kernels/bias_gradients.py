"""A kernel for ReLU's gradient together with the gradient of a bias.

What it has computed it sums as it writes it. The sums have the order, and so the bits, of those by
a kernel of their own.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.cuda.kernels import reductions, teams
from mirrored.backends.cuda.kernels.kernel import Launcher
from mirrored.backends.cuda.source import Source, computed_type, source
from mirrored.backends.stream_backend import Combination, OpSpec

_TEXT = """
struct Both { T g, y; };

// As `reduce` sums columns: each part of a column, of `each` rows but for the last, gives one of
// `sums`, of shape (parts, columns). Where nobody else wants the gradient it has no memory.
extern "C" __global__ void __launch_bounds__(512, 2) relu_gradient_and_columns(
    T *gradient, S *__restrict__ sums, const T *g, const T *y,
    i64 columns, i64 rows, i64 parts, i64 each, int height
) {
    Team team = my_team(height, 0);
    i64 tiles = (columns + team.rows - 1) / team.rows;
    for (i64 block = blockIdx.x; block < tiles * parts; block += gridDim.x) {
        i64 part = block / tiles, column = (block - part * tiles) * team.rows + team.row;
        i64 start = part * each, end = start + each < rows ? start + each : rows;
        bool mine = column < columns;
        T_C sum = reduced<Sum<T_C>>(start, mine ? end : start, team, [&](i64 i) {
            Both both;
            both.g = g[i * columns + column];
            both.y = y[i * columns + column];
            return both;
        }, [&](Both both, i64 i) {
            T result;
            store(result, VALUE);
            if (gradient) { gradient[i * columns + column] = result; }
            return load(result);
        });
        if (mine && team.place == 0) { store(sums[part * columns + column], sum); }
    }
}
"""


def sources() -> Iterator[Source]:
    """Yield each text of this module."""
    for dtype in teams.float_dtypes():
        for sums in dict.fromkeys((dtype, reductions.dtype_of_parts(dtype))):
            yield _source(dtype, sums)


@cache
def _source(dtype: np.dtype[Any], sums: np.dtype[Any]) -> Source:
    value = EXPRESSIONS["ReluGrad"](("load(both.g)", "load(both.y)"), computed_type(dtype))
    text = f"{teams.TEXT}{_TEXT.replace('VALUE', value)}"
    return source("gradient of ReLU and sums of its columns", text, T=dtype, S=sums)


def _run(
    xp: Launcher, outputs: tuple[Any, ...], inputs: Sequence[tuple[Any, ...]], attrs: Sequence[Any]
) -> None:
    (gradient, *_, out), (g, y) = outputs, inputs[0]
    shape = reductions.columns_of(y.shape)
    plan = reductions.plan_of_columns(shape)
    sums = out if plan.parts == 1 else attrs[1]["workspace"][0]
    rows, columns = shape
    sizes = (columns, rows, plan.parts, -(-rows // plan.parts))
    args = (gradient, sums, g, y, *map(np.int64, sizes), np.int32(plan.teams.height))
    plan.teams.launch(
        xp,
        _source(g.dtype, sums.dtype),
        "relu_gradient_and_columns",
        columns,
        args,
        state=teams.state_size(g.dtype),
        parts=plan.parts,
    )
    if plan.parts > 1:
        reductions.add_parts(xp, out, sums)


def _run_sums(
    xp: Launcher, outputs: tuple[Any, ...], inputs: Sequence[tuple[Any, ...]], attrs: Sequence[Any]
) -> None:
    """Write the sums of columns of narrow floats as the float32 that they are made in."""
    reductions.sum_columns(xp, outputs[1], inputs[0][0], **attrs[0])


def _fits(ops: Sequence[OpSpec]) -> bool:
    """Whether there are columns, of more than one element, and nothing is broadcast."""
    shape = ops[0].output[0]
    alike = all(spec == ops[0].output for spec in (*ops[0].inputs, *ops[1].inputs))
    return alike and min((*reductions.columns_of(shape), 2)) > 1


def _widens(ops: Sequence[OpSpec]) -> bool:
    """Whether a cast of sums gives what they are made in."""
    sums, cast = ops[-2:]
    narrow = sums.inputs[0][1].name in teams.NARROW
    return narrow and cast.output == (sums.output[0], np.dtype(np.float32))


COMBINATIONS: dict[tuple[str, ...], Combination] = {
    ("ReluGrad", "BiasAddGrad"): Combination(_run, (True, True), _fits),
    ("ReluGrad", "BiasAddGrad", "Cast"): Combination(
        _run, (True, False, True), lambda ops: _fits(ops) and _widens(ops)
    ),
    ("BiasAddGrad", "Cast"): Combination(_run_sums, (False, True), _widens),
}
