"""Matrix decompositions by cuSOLVER and cuBLAS, and kernels between their calls.

The libraries store matrices by columns: to them each matrix of an array is the transposed one.
Where they look for a pivot, or iterate, a matrix with a NaN is replaced by the identity before they
see it, since they would return numbers or might not end; its results are NaN. Where they iterate,
infinities are treated alike.
"""

import math
from enum import IntEnum
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, Spec, launch_for_each
from mirrored.errors import InvalidArgumentError

# cublasFillMode_t and cusolverEigMode_t. By columns, the lower triangle is the upper one.
_UPPER = 1
_LARGEST_SIDE = (1 << 31) - 1
# Up to this number of rows the matrices of a batch are factored together.
_SMALL = 128

_TEXT = """
// Of each matrix there are two verdicts: first the library's, behind those of all the numbers'.
extern "C" __global__ void look(
    int *verdicts, const T *__restrict__ x, i64 n, i64 size, i64 columns, int lower, int finite
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= n) { return; }
    i64 matrix = number / size, place = number - matrix * size;
    bool counts = !lower || place % columns <= place / columns;
    T value = x[number];
    if (counts && (finite ? value - value != (T)0 : value != value)) { verdicts[matrix] = 1; }
}

struct Places { i64 at[10]; };

// Copies a part of each matrix, and writes 0 elsewhere. `out` may be `x`, where the places are.
extern "C" __global__ void place(
    T *out, const T *x, const int *verdicts, i64 n, i64 count, Places places, int part, int unless
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= n) { return; }
    const i64 *to = places.at + 2, *from = places.at + 6;
    i64 columns = places.at[1], size = places.at[0] * columns;
    i64 matrix = number / size, row = (number - matrix * size) / columns;
    i64 column = number - matrix * size - row * columns;
    bool bad = verdicts[matrix] != 0 || verdicts[count + matrix] != 0;
    bool inside = part == ALL || (part == LOWER ? column <= row : column >= row);
    T value = (T)(row == column);
    if (unless == IDENTITY_IF_BAD ? !bad : unless == NAN_IF_BAD) {
        value = !inside ? (T)0 : bad ? (T)NAN_F
            : x[from[0] + matrix * from[1] + row * from[2] + column * from[3]];
    }
    out[to[0] + matrix * to[1] + row * to[2] + column * to[3]] = value;
}

// A thread exchanges what all rows have in one column.
extern "C" __global__ void exchange(
    T *x, const int *__restrict__ pivots, i64 n, i64 rows, i64 columns, int backward
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= n) { return; }
    i64 matrix = number / columns;
    T *mine = x + matrix * rows * columns + (number - matrix * columns);
    const int *of_rows = pivots + matrix * rows;
    for (i64 i = 0; i < rows; ++i) {
        i64 row = backward ? rows - 1 - i : i, other = of_rows[row] - 1;
        T value = mine[row * columns];
        mine[row * columns] = mine[other * columns];
        mine[other * columns] = value;
    }
}

// Of the factors of a matrix; in double precision, so that a product is rounded once.
extern "C" __global__ void determinant(
    T *out, const T *__restrict__ factors, const int *__restrict__ pivots,
    const int *verdicts, i64 n, i64 rows, int logarithm
) {
    i64 matrix = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (matrix >= n) { return; }
    double sum = 0, sign = verdicts[matrix] ? 0 : 1;
    for (i64 i = 0; i < rows; ++i) {
        double value = (double)factors[(matrix * rows + i) * rows + i];
        sum += log(fabs(value));
        sign *= value == 0 ? 0 : value < 0 ? -1 : 1;
        sign *= pivots[matrix * rows + i] == (int)(i + 1) ? 1 : -1;
    }
    if (sign == 0) { sum = -INFINITY_D; }
    if (verdicts[n + matrix]) { sum = sign = NAN_D; }
    if (logarithm) { out[2 * matrix] = (T)sign; out[2 * matrix + 1] = (T)sum; }
    else { out[matrix] = (T)(sign == 0 ? 0.0 : sign * exp(sum)); }
}

extern "C" __global__ void point(i64 *out, const T *x, i64 n, i64 size) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number < n) { out[number] = (i64)(x + number * size); }
}
"""


class _Part(IntEnum):
    """Which elements of a matrix are copied."""

    ALL = 0
    LOWER = 1
    UPPER = 2


class _Unless(IntEnum):
    """What is written instead of a copy."""

    IDENTITY_IF_BAD = 0
    NAN_IF_BAD = 1
    IDENTITY = 2


_NAMES = "".join(
    f"#define {choice.name} {choice.value}\n" for kind in (_Part, _Unless) for choice in kind
)


class _Batch(NamedTuple):
    """Matrices in an array: where they begin, and how far elements are apart, in elements.

    Attributes:
        array: The array.
        matrix: The distance from one matrix to the next.
        row: The distance between rows.
        column: The distance between columns.
        begin: Where the first one begins.
    """

    array: Any
    matrix: int
    row: int
    column: int
    begin: int = 0


def _by_rows(array: Any) -> _Batch:
    """Return the matrices of an array, which are stored by rows."""
    rows, columns = array.shape[-2:]
    return _Batch(array, rows * columns, columns, 1)


def _by_columns(array: Any) -> _Batch:
    """Return the matrices whose transposes are stored in an array."""
    columns, rows = array.shape[-2:]
    return _Batch(array, rows * columns, 1, rows)


@cache
def _source(dtype: np.dtype[Any]) -> Source:
    return source("matrices", _NAMES + _TEXT, T=dtype)


class _Launches:
    """Launches the steps of a decomposition of several matrices.

    Args:
        xp: The launcher.
        x: An array that has the matrices as its last two axes.
        verdicts: int32, of shape (2, count): those of the library, and of the numbers.
    """

    def __init__(self, xp: Launcher, x: Any, verdicts: Any) -> None:
        self.xp, self.x = xp, x
        self.count = verdicts.shape[1]
        self.verdicts = verdicts
        xp.clear(verdicts)

    def look(self, *, lower: bool = False, finite: bool = False) -> None:
        """Note which matrices have a NaN, or with `finite` an infinity."""
        rows, columns = self.x.shape[-2:]
        sizes = map(np.int64, (self.x.size, rows * columns, columns))
        flags = np.int32(lower), np.int32(finite)
        self._launch("look", self.x.size, self.verdicts[1], self.x, *sizes, *flags)

    def place(
        self,
        out: _Batch,
        x: _Batch,
        shape: tuple[int, int],
        *,
        part: _Part = _Part.ALL,
        unless: _Unless = _Unless.NAN_IF_BAD,
    ) -> None:
        """Copy a part of matrices of a shape to another place."""
        threads = self.count * math.prod(shape)
        ends = ((batch.begin, *batch[1:4]) for batch in (out, x))
        places = np.array((*shape, *next(ends), *next(ends)), np.int64)
        args = np.int64(threads), np.int64(self.count), places, np.int32(part), np.int32(unless)
        self._launch("place", threads, out.array, x.array, self.verdicts, *args)

    def prepare(self, work: Any, *, turned: bool = False) -> None:
        """Copy the matrices to where they are taken apart, by columns if `turned`."""
        out = _by_columns(work) if turned else _by_rows(work)
        shape = self.x.shape[-2:]
        self.place(out, _by_rows(self.x), shape, unless=_Unless.IDENTITY_IF_BAD)

    def exchange(self, out: Any, pivots: Any, *, backward: bool) -> None:
        """Exchange rows as those of the factored matrices were."""
        rows, columns = out.shape[-2:]
        threads = self.count * columns
        sizes = map(np.int64, (threads, rows, columns))
        self._launch("exchange", threads, out, pivots, *sizes, np.int32(backward))

    def determinant(self, out: Any, factors: Any, pivots: Any, *, logarithm: bool) -> None:
        """Write the determinants of factored matrices."""
        sizes = np.int64(self.count), np.int64(self.x.shape[-1]), np.int32(logarithm)
        self._launch("determinant", self.count, out, factors, pivots, self.verdicts, *sizes)

    def decompose(self, routine: str, work: Any, *args: Any) -> None:
        """Call a routine of cuSOLVER for each matrix; its last argument is the verdict."""
        args = (*args, self.verdicts[0])
        self.xp.decompose(routine, self.x.dtype, self.count, work, *args)

    def _launch(self, name: str, threads: int, *args: Any) -> None:
        if threads:
            launch_for_each(self.xp, _source(self.x.dtype), name, threads, args)


def _count(x: Spec) -> int:
    """Return the number of matrices.

    Raises:
        InvalidArgumentError: They have sides that the libraries cannot take.
    """
    if max(x[0]) > _LARGEST_SIDE:
        raise InvalidArgumentError(
            f"Matrices on a GPU must have sides below 2**31. Received: shape {x[0]}. Compute them "
            "on the CPU, or cut them into smaller ones."
        )
    return math.prod(x[0][:-2])


def _verdicts(x: Spec) -> Spec:
    return (2, _count(x)), np.dtype(np.int32)


def _addresses(count: int) -> Spec:
    return (2, count), np.dtype(np.int64)


def _together(count: int, rows: int) -> bool:
    """Whether matrices are taken apart by one call, for which their addresses are needed."""
    return count > 1 and rows <= _SMALL


def _point(xp: Launcher, addresses: Any, array: Any) -> Any:
    """Write the addresses of matrices."""
    count = len(addresses)
    sizes = np.int64(count), np.int64(array.size // count)
    launch_for_each(xp, _source(array.dtype), "point", count, (addresses, array, *sizes))
    return addresses


# ---------------------------------------------------------------------------- triangular systems


def _triangular_workspace(matrix: Spec, rhs: Spec, **_: bool) -> tuple[Spec, ...]:
    _count(rhs)
    return (_addresses(_count(matrix)),)


def _triangular(
    xp: Launcher, out: Any, matrix: Any, rhs: Any, *, lower: bool, adjoint: bool, workspace: Any
) -> None:
    xp.copy(out, rhs)
    _solve_triangular(xp, out, matrix, workspace[0], lower=lower, transpose=adjoint)


def _solve_triangular(
    xp: Launcher, out: Any, matrices: Any, addresses: Any, **options: bool
) -> None:
    """Replace right sides by solutions."""
    if not out.size:
        return
    count, (rows, columns) = addresses.shape[1], out.shape[-2:]
    out, matrices = out.reshape(count, rows, columns), matrices.reshape(count, rows, rows)
    pair = None
    if _together(count, rows):
        pair = _point(xp, addresses[0], matrices), _point(xp, addresses[1], out)
    xp.solve_triangular(out, matrices, pair, **options)


# ---------------------------------------------------------------------------- Cholesky's factors


def _cholesky_workspace(xp: Launcher, x: Spec) -> tuple[Spec, ...]:
    rows, dtype, count = x[0][-1], x[1], _count(x)
    if _together(count, rows) or not rows:
        return _verdicts(x), _addresses(count)
    return _verdicts(x), ((xp.workspace("potrf", dtype, _UPPER, rows, None, rows),), dtype)


def _cholesky(xp: Launcher, out: Any, x: Any, *, workspace: Any) -> None:
    (verdicts, work), rows = workspace, x.shape[-1]
    launches = _Launches(xp, x, verdicts)
    if not out.size:
        return
    xp.copy(out, x)
    if _together(launches.count, rows):
        _point(xp, work[0], out)
        args = (_UPPER, rows, work[0], rows, verdicts[0], launches.count)
        xp.decompose("potrfBatched", x.dtype, 1, None, *args)
    else:
        launches.decompose("potrf", work, _UPPER, rows, out, rows, work, work.size)
    launches.place(_by_rows(out), _by_rows(out), x.shape[-2:], part=_Part.LOWER)


# ---------------------------------------------------------------------------- LU factors


def _factors_workspace(xp: Launcher, x: Spec, *rhs: Spec, **_: bool) -> tuple[Spec, ...]:
    rows, dtype = x[0][-1], x[1]
    count, *_more = (_count(spec) for spec in (x, *rhs))
    pivots = (count, rows), np.dtype(np.int32)
    common = _verdicts(x), (x[0], dtype), pivots, _addresses(count)
    if _together(count, rows) or not rows:
        return common
    return *common, ((xp.workspace("getrf", dtype, rows, rows, None, rows),), dtype)


def _factored(xp: Launcher, x: Any, workspace: Any) -> _Launches:
    """Write the LU factors of the transposed matrices, and their pivots, into the workspace."""
    verdicts, factors, pivots, addresses, *work = workspace
    launches, rows = _Launches(xp, x, verdicts), x.shape[-1]
    if not x.size:
        return launches
    launches.look()
    launches.prepare(factors)
    if _together(launches.count, rows):
        xp.factor(factors, _point(xp, addresses[0], factors), pivots, verdicts[0])
    else:
        launches.decompose("getrf", *work, rows, rows, factors, rows, *work, pivots)
    return launches


def _solve(xp: Launcher, out: Any, x: Any, *rhs: Any, adjoint: bool, workspace: Any) -> None:
    """Write the solutions of systems, for the identity where there are no right sides."""
    xp.refuse_capture()
    launches = _factored(xp, x, workspace)
    _, factors, pivots, addresses, *_ = workspace
    if not out.size:
        return
    if rhs:
        xp.copy(out, rhs[0])
    else:
        whole = _by_rows(out)
        launches.place(whole, whole, out.shape[-2:], unless=_Unless.IDENTITY)
    # The transposed matrix, its rows exchanged, is L U: below the diagonal of what is stored by
    # rows is U, transposed, and above it L, whose diagonal is 1.
    if adjoint:
        launches.exchange(out, pivots, backward=False)
    for lower in (not adjoint, adjoint):
        options = {"lower": lower, "unit": not lower, "transpose": adjoint}
        _solve_triangular(xp, out, factors, addresses, **options)
    if not adjoint:
        launches.exchange(out, pivots, backward=True)
    launches.place(_by_rows(out), _by_rows(out), out.shape[-2:])


def _determinant(xp: Launcher, out: Any, x: Any, *, logarithm: bool, workspace: Any) -> None:
    launches = _factored(xp, x, workspace)
    launches.determinant(out, workspace[1], workspace[2], logarithm=logarithm)


# ---------------------------------------------------------------------------- orthogonal factors


def _inner(shape: tuple[int, ...], full_matrices: bool) -> int:
    """Return how many columns of an orthogonal factor are wanted."""
    return shape[-2] if full_matrices else min(shape[-2:])


def _qr_workspace(xp: Launcher, x: Spec, *, full_matrices: bool) -> tuple[Spec, ...]:
    shape, dtype, count = x[0], x[1], _count(x)
    (m, n), inner = shape[-2:], _inner(shape, full_matrices)
    least = min(m, n)
    if not count * least:
        return (_verdicts(x),)
    size = max(
        xp.workspace("geqrf", dtype, m, n, None, m),
        xp.workspace("orgqr", dtype, m, inner, least, None, m, None),
    )
    return (
        _verdicts(x),
        ((count, max(n, inner), m), dtype),
        ((count, least), dtype),
        ((size,), dtype),
    )


def _qr(xp: Launcher, out: Any, x: Any, *, full_matrices: bool, workspace: Any) -> None:
    launches, (m, n) = _Launches(xp, x, workspace[0]), x.shape[-2:]
    inner = _inner(x.shape, full_matrices)
    if not out.size:
        return
    q = _Batch(out, out.shape[-1], inner, 1)
    if not min(m, n):
        launches.place(q, q, (m, inner), unless=_Unless.IDENTITY)
        return
    _, columns, scales, work = workspace
    launches.place(_by_columns(columns), _by_rows(x), (m, n))
    launches.decompose("geqrf", work, m, n, columns, m, scales, work, work.size)
    r = _Batch(out, out.shape[-1], n, 1, m * inner)
    launches.place(r, _by_columns(columns), (inner, n), part=_Part.UPPER)
    args = (m, inner, min(m, n), columns, m, scales, work, work.size)
    launches.decompose("orgqr", work, *args)
    launches.place(q, _by_columns(columns), (m, inner))


# ---------------------------------------------------------------------------- eigenvalues


def _eigen_workspace(xp: Launcher, x: Spec, *, compute_v: bool) -> tuple[Spec, ...]:
    shape, dtype, rows = x[0], x[1], x[0][-1]
    if not math.prod(shape):
        return (_verdicts(x),)
    args = (int(compute_v), _UPPER, rows, None, rows, None)
    size = xp.workspace("syevd", dtype, *args)
    return _verdicts(x), (shape, dtype), (shape[:-1], dtype), ((size,), dtype)


def _eigen(xp: Launcher, out: Any, x: Any, *, compute_v: bool, workspace: Any) -> None:
    launches, rows = _Launches(xp, x, workspace[0]), x.shape[-1]
    if not out.size:
        return
    _, vectors, values, work = workspace
    launches.look(lower=True, finite=True)
    launches.prepare(vectors)
    args = (int(compute_v), _UPPER, rows, vectors, rows, values, work, work.size)
    launches.decompose("syevd", work, *args)
    width = rows + 1 if compute_v else 1
    launches.place(_Batch(out, rows * width, width, 1), _Batch(values, rows, 1, 0), (rows, 1))
    if compute_v:
        beside = _Batch(out, rows * width, width, 1, 1)
        launches.place(beside, _by_columns(vectors), (rows, rows))


# ---------------------------------------------------------------------------- singular values


def _svd_workspace(
    xp: Launcher, x: Spec, *, full_matrices: bool, compute_uv: bool
) -> tuple[Spec, ...]:
    shape, dtype, count = x[0], x[1], _count(x)
    short, long = sorted(shape[-2:])
    if not count * short:
        return (_verdicts(x),)
    sizes = [(count, short, long), (count, short)]  # A copy of the matrices, the values.
    if compute_uv:  # The vectors of the longer side by columns, those of the shorter one by rows.
        sizes += [(count, long if full_matrices else short, long), (count, short, short)]
    sizes.append((xp.workspace("gesvd", dtype, long, short),))
    return _verdicts(x), *((size, dtype) for size in sizes)


def _svd(
    xp: Launcher, out: Any, x: Any, *, full_matrices: bool, compute_uv: bool, workspace: Any
) -> None:
    launches, (m, n) = _Launches(xp, x, workspace[0]), x.shape[-2:]
    if not out.size:
        return
    least, step = min(m, n), out.shape[-1]
    of_u, of_v = (side if full_matrices else least for side in (m, n))
    u = _Batch(out, step, of_u, 1)
    s = _Batch(out, step, 1, 1, m * of_u if compute_uv else 0)
    v = _Batch(out, step, of_v, 1, m * of_u + least)
    if not least:
        for batch, side in ((u, m), (v, n)):
            launches.place(batch, batch, (side, side), unless=_Unless.IDENTITY)
        return
    _, matrices, values, *vectors, work = workspace
    launches.look(finite=True)
    # It takes no matrices that have more columns than rows: their transposes instead.
    tall = m >= n
    launches.prepare(matrices, turned=tall)
    job = ord("N" if not compute_uv else "A" if full_matrices else "S")
    most, (longer, shorter) = max(m, n), vectors or (None, None)
    args = (most, least, matrices, most, values, longer, most, shorter, least)
    launches.decompose("gesvd", work, job, job, *args, work, work.size, None)
    launches.place(s, _Batch(values, least, 1, 0), (least, 1))
    if vectors:
        launches.place(u if tall else v, _by_columns(vectors[0]), (most, vectors[0].shape[1]))
        launches.place(v if tall else u, _by_rows(vectors[1]), (least, least))


KERNELS = {
    "Cholesky": DeviceKernel(_cholesky, _cholesky_workspace, asks=True),
    "LogMatrixDeterminant": DeviceKernel(
        partial(_determinant, logarithm=True), _factors_workspace, asks=True
    ),
    "MatrixDeterminant": DeviceKernel(
        partial(_determinant, logarithm=False), _factors_workspace, asks=True
    ),
    "MatrixInverse": DeviceKernel(_solve, _factors_workspace, asks=True, verdicts=1),
    "MatrixSolve": DeviceKernel(_solve, _factors_workspace, asks=True, verdicts=1),
    "MatrixTriangularSolve": DeviceKernel(_triangular, _triangular_workspace),
    "Qr": DeviceKernel(_qr, _qr_workspace, asks=True),
    "SelfAdjointEigV2": DeviceKernel(_eigen, _eigen_workspace, asks=True, verdicts=2),
    "Svd": DeviceKernel(_svd, _svd_workspace, asks=True, verdicts=1),
}
