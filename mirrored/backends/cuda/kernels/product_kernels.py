"""Matrix products, and the kernel for ReLU's gradient together with the gradient of a bias.

Products are cuBLAS' for floats, and those of a tiled kernel for integers; batches that broadcast in
ways that one call cannot express are computed by several. What ReLU's kernel has computed it sums
as it writes it: in the order, and so with the bits, of a kernel of their own.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.compiling import Source, computed_type, source
from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.cuda.kernels import reduction_kernels, teams
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher
from mirrored.backends.stream_backend import Combination, OpSpec

_TILE = 16
_MOST_BLOCKS = 65535  # Along the third axis of a grid.

_PRODUCT_TEXT = """
// Sums are made without a sign: those wrap, as NumPy's do, where signed ones are undefined.
extern "C" __global__ void product(
    T *__restrict__ out, const T *__restrict__ a, const T *__restrict__ b,
    i64 batch, i64 rows, i64 inner, i64 columns,
    i64 step_a, i64 row_a, i64 column_a, i64 step_b, i64 row_b, i64 column_b
) {
    __shared__ T tile_a[16][17];
    __shared__ T tile_b[16][17];
    u32 tiles = (u32)((columns + 15) / 16);
    i64 row = (i64)(blockIdx.x / tiles) * 16 + threadIdx.y;
    i64 column = (i64)(blockIdx.x % tiles) * 16 + threadIdx.x;
    for (i64 matrix = blockIdx.z; matrix < batch; matrix += gridDim.z) {
        u64 sum = 0;
        for (i64 start = 0; start < inner; start += 16) {
            i64 k_a = start + threadIdx.x, k_b = start + threadIdx.y;
            tile_a[threadIdx.y][threadIdx.x] =
                row < rows && k_a < inner ? a[matrix * step_a + row * row_a + k_a * column_a] : 0;
            tile_b[threadIdx.y][threadIdx.x] = k_b < inner && column < columns
                ? b[matrix * step_b + k_b * row_b + column * column_b] : 0;
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 16; ++k) {
                sum += (u64)tile_a[threadIdx.y][k] * (u64)tile_b[k][threadIdx.x];
            }
            __syncthreads();
        }
        if (row < rows && column < columns) {
            out[(matrix * rows + row) * columns + column] = (T)sum;
        }
    }
}
"""


class _Axis(NamedTuple):
    """An axis of the batch, or adjacent ones that broadcast alike, and which factors have it."""

    size: int
    of_a: bool
    of_b: bool


def _product(
    xp: Launcher, out: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool
) -> None:
    if not out.size:
        return
    if not a.size:  # A sum of nothing.
        xp.clear(out)
        return
    multiply = partial(_integers, xp) if out.dtype.kind == "i" else xp.matmul
    axes = _batch_axes(out.shape[:-2], a.shape[:-2], b.shape[:-2])
    out = out.reshape(*(axis.size for axis in axes), *out.shape[-2:])
    a = a.reshape(*(axis.size if axis.of_a else 1 for axis in axes), *a.shape[-2:])
    b = b.reshape(*(axis.size if axis.of_b else 1 for axis in axes), *b.shape[-2:])
    for index in np.ndindex(*(axis.size for axis in axes[:-1])):
        part_out = out[index]
        part_a = a[tuple(i if axis.of_a else 0 for i, axis in zip(index, axes, strict=False))]
        part_b = b[tuple(i if axis.of_b else 0 for i, axis in zip(index, axes, strict=False))]
        if axes and not axes[-1].of_b and not transpose_a:
            # One matrix for all: the rows of the batch are those of one larger matrix.
            part_out = part_out.reshape(-1, out.shape[-1])
            part_a, part_b = part_a.reshape(-1, a.shape[-1]), part_b[0]
        multiply(part_out, part_a, part_b, transpose_a=transpose_a, transpose_b=transpose_b)


def _batch_axes(out: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> list[_Axis]:
    axes: list[_Axis] = []
    sizes_a, sizes_b = ((1,) * (len(out) - len(shape)) + shape for shape in (a, b))
    for size, size_a, size_b in zip(out, sizes_a, sizes_b, strict=True):
        if size == 1:
            continue
        axis = _Axis(size, size_a == size, size_b == size)
        if axes and axes[-1][1:] == axis[1:]:
            axis = axis._replace(size=axes.pop().size * size)
        axes.append(axis)
    return axes


def _integers(
    xp: Launcher, out: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool
) -> None:
    """Do for integers what `Launcher.matmul` does for floats."""
    batch = 1 if out.ndim == 2 else out.shape[0]
    rows, columns = out.shape[-2:]
    inner = a.shape[-2 if transpose_a else -1]
    sizes: list[int] = [batch, rows, inner, columns]
    for matrices, transposed in ((a, transpose_a), (b, transpose_b)):
        height, width = matrices.shape[-2:]
        step = height * width if matrices.size > height * width else 0
        sizes += [step, *((1, width) if transposed else (width, 1))]
    tiles = -(-rows // _TILE) * -(-columns // _TILE)
    xp.launch(
        source("product", _PRODUCT_TEXT, T=out.dtype),
        "product",
        (tiles, 1, min(batch, _MOST_BLOCKS)),
        (_TILE, _TILE, 1),
        (out, a, b, *map(np.int64, sizes)),
    )


KERNELS = {"MatMul": DeviceKernel(_product), "BatchMatMulV2": DeviceKernel(_product)}


def _widened(
    xp: Launcher, outputs: tuple[Any, ...], inputs: Sequence[tuple[Any, ...]], attrs: Sequence[Any]
) -> None:
    """Write the sums of a product of narrow floats as the float32 that they are made in."""
    _product(xp, outputs[1], *inputs[0], **attrs[0])


def _is_widened(ops: Sequence[OpSpec]) -> bool:
    """Whether it is as gradients of weights are: what layers return is rounded in any case."""
    product, cast = ops
    narrow = {dtype.name for _, dtype in product.inputs} <= set(teams.NARROW)
    wide = cast.output == (product.output[0], np.dtype(np.float32))
    return narrow and wide and product.attrs["transpose_a"]


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


@cache
def _source(dtype: np.dtype[Any], sums: np.dtype[Any]) -> Source:
    value = EXPRESSIONS["ReluGrad"](("load(both.g)", "load(both.y)"), computed_type(dtype))
    text = f"{teams.TEXT}{_TEXT.replace('VALUE', value)}"
    return source("gradient of ReLU and sums of its columns", text, T=dtype, S=sums)


def _run(
    xp: Launcher, outputs: tuple[Any, ...], inputs: Sequence[tuple[Any, ...]], attrs: Sequence[Any]
) -> None:
    (gradient, *_, out), (g, y) = outputs, inputs[0]
    shape = reduction_kernels.columns_of(y.shape)
    plan = reduction_kernels.plan_of_columns(shape)
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
        reduction_kernels.add_parts(xp, out, sums)


def _run_sums(
    xp: Launcher, outputs: tuple[Any, ...], inputs: Sequence[tuple[Any, ...]], attrs: Sequence[Any]
) -> None:
    """Write the sums of columns of narrow floats as the float32 that they are made in."""
    reduction_kernels.sum_columns(xp, outputs[1], inputs[0][0], **attrs[0])


def _fits(ops: Sequence[OpSpec]) -> bool:
    """Whether there are columns, of more than one element, and nothing is broadcast."""
    shape = ops[0].output[0]
    alike = all(spec == ops[0].output for spec in (*ops[0].inputs, *ops[1].inputs))
    return alike and min((*reduction_kernels.columns_of(shape), 2)) > 1


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
    **{(name, "Cast"): Combination(_widened, (False, True), _is_widened) for name in KERNELS},
}
