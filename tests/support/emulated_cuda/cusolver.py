"""cuSOLVER over the emulated cards: decompositions of column-major matrices, by SciPy's LAPACK.

They are asked for as with the real library, and run late, as all work of a stream does. In a
capture they fail; with a NaN the real ones may not end, which is an error here.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_byte, c_int, c_void_p
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emulated_cuda.cublas import KINDS, Matrix
from emulated_cuda.faults import EmulatorError
from emulated_cuda.foreign import Library, write
from emulated_cuda.handles import OK, Handle, Handles, addresses, factor
from emulated_cuda.machine import Machine

_NOT_INITIALIZED, _INVALID_VALUE = 1, 3
_LWORK = 37  # What every routine needs, in elements.


class _Call(NamedTuple):
    """What a routine works on.

    Attributes:
        letter: Of its dtype.
        used: The matrices and vectors that it reads and writes.
        run: Computes with views of these, and returns LAPACK's number.
    """

    letter: str
    used: list[Matrix]
    run: Callable[..., int]


def _lapack(letter: str, name: str) -> Any:
    from scipy.linalg import lapack

    return getattr(lapack, letter.lower() + name)


def _potrf(letter: str, uplo: int, n: int, a: int, lda: int) -> _Call:
    def run(a: NDArray[Any]) -> int:
        a[...], info = _lapack(letter, "potrf")(a, lower=1 - uplo, clean=0)
        return int(info)

    return _Call(letter, [Matrix(a, KINDS[letter], n, n, lda)], run)


def _geqrf(letter: str, m: int, n: int, a: int, lda: int, tau: int) -> _Call:
    def run(a: NDArray[Any], tau: NDArray[Any]) -> int:
        a[...], tau[:, 0], _, info = _lapack(letter, "geqrf")(a)
        return int(info)

    kind = KINDS[letter]
    return _Call(letter, [Matrix(a, kind, m, n, lda), Matrix(tau, kind, min(m, n), 1, m)], run)


def _orgqr(letter: str, m: int, n: int, k: int, a: int, lda: int, tau: int) -> _Call:
    def run(a: NDArray[Any], tau: NDArray[Any]) -> int:
        a[...], _, info = _lapack(letter, "orgqr")(a, tau[:, 0])
        return int(info)

    kind = KINDS[letter]
    return _Call(letter, [Matrix(a, kind, m, n, lda), Matrix(tau, kind, k, 1, m)], run)


def _syevd(letter: str, jobz: int, uplo: int, n: int, a: int, lda: int, w: int) -> _Call:
    def run(a: NDArray[Any], w: NDArray[Any]) -> int:
        _refuse_nan(np.triu(a) if uplo else np.tril(a))
        w[:, 0], vectors, info = _lapack(letter, "syevd")(a, compute_v=jobz, lower=1 - uplo)
        a[...] = vectors if jobz else np.nan  # It says nothing of what is there then.
        return int(info)

    kind = KINDS[letter]
    return _Call(letter, [Matrix(a, kind, n, n, lda), Matrix(w, kind, n, 1, n)], run)


def _gesvd(
    letter: str,
    jobu: int,
    jobvt: int,
    m: int,
    n: int,
    a: int,
    lda: int,
    s: int,
    u: int | None,
    ldu: int,
    vt: int | None,
    ldvt: int,
) -> _Call:
    if m < n or jobu != jobvt or chr(jobu) not in "ASN":
        raise EmulatorError(f"gesvd of {m} x {n} for {chr(jobu)}, {chr(jobvt)}.")
    vectors, full = chr(jobu) != "N", chr(jobu) == "A"

    def run(a: NDArray[Any], s: NDArray[Any], *parts: NDArray[Any]) -> int:
        _refuse_nan(a)
        left, s[:, 0], right, info = _lapack(letter, "gesvd")(
            a, compute_uv=vectors, full_matrices=full
        )
        for part, computed in zip(parts, (left, right), strict=bool(parts)):
            part[...] = computed
        a[...] = np.nan
        return int(info)

    kind = KINDS[letter]
    used = [Matrix(a, kind, m, n, lda), Matrix(s, kind, n, 1, n)]
    if vectors:
        used += [Matrix(u or 0, kind, m, m if full else n, ldu), Matrix(vt or 0, kind, n, n, ldvt)]
    return _Call(letter, used, run)


def _refuse_nan(a: NDArray[Any]) -> None:
    if not np.isfinite(a).all():
        raise EmulatorError("cuSOLVER was asked about a matrix with a NaN or an infinity.")


_SIZES = [c_int, c_int]
_A = [c_void_p, c_int]


class _Routine(NamedTuple):
    """A routine of one matrix.

    Attributes:
        call: Returns what it works on.
        types: Those of its arguments between the handle and the scratch memory.
        of_size: Those of the function that says how much of that it needs.
    """

    call: Callable[..., _Call]
    types: list[Any]
    of_size: list[Any]


_ROUTINES = {
    "potrf": _Routine(_potrf, [*_SIZES, *_A], [*_SIZES, *_A]),
    "geqrf": _Routine(_geqrf, [*_SIZES, *_A, c_void_p], [*_SIZES, *_A]),
    "orgqr": _Routine(_orgqr, *[[*_SIZES, c_int, *_A, c_void_p]] * 2),
    "syevd": _Routine(_syevd, *[[*_SIZES, c_int, *_A, c_void_p]] * 2),
    "gesvd": _Routine(_gesvd, [c_byte, c_byte, *_SIZES, *_A, c_void_p, *_A, *_A], _SIZES),
}


class _Cusolver(Handles):
    """The library's state."""

    name, prefix, suffix = "cusolver", "cusolverDn", ""
    alloc_failed, invalid_value, execution_failed, internal_error = 2, _INVALID_VALUE, 6, 7
    version_number = 110702

    def size(self, handle: int | None, *args: Any) -> int:
        """Write how many elements of scratch memory a routine needs."""
        if self.state(handle) is None:
            return _NOT_INITIALIZED
        write(args[-1], c_int(_LWORK))
        return OK

    def routine(self, letter: str, name: str, handle: int | None, *args: Any) -> int:
        """Compute with one matrix."""
        *args, work, lwork, info = args
        return self._run(letter, name, handle, args, (work, lwork), info)

    def gesvd(self, letter: str, handle: int | None, *args: Any) -> int:
        """Compute singular values, for which there is an array for complex numbers, too."""
        *args, work, lwork, _, info = args
        return self._run(letter, "gesvd", handle, args, (work, lwork), info)

    def getrf(self, letter: str, handle: int | None, *args: Any) -> int:
        """Compute LU factors of one matrix."""
        m, n, a, lda, work, pivots, info = args
        state = self.state(handle)
        if state is None:
            return _NOT_INITIALIZED
        if m != n or lda < m:
            return _INVALID_VALUE
        square = Matrix(a, KINDS[letter], n, n, lda)
        used = [(square.address, square.nbytes), (pivots, 4 * n), (info, 4)]

        def run() -> None:
            factor(letter, square, pivots, info)

        return self._launch(state, f"cusolverDn{letter}getrf", used, run, letter, work)

    def potrf_batched(self, letter: str, handle: int | None, *args: Any) -> int:
        """Compute Cholesky's factors of matrices whose addresses are in the card's memory."""
        uplo, n, a, lda, info, count = args
        state = self.state(handle)
        if state is None:
            return _NOT_INITIALIZED

        def run() -> None:
            for i, address in enumerate(addresses(a, count)):
                call = _potrf(letter, uplo, n, address, lda)
                self.in_memory(state, *call.used)
                write(info + 4 * i, c_int(_run(call)))

        used = [(a, 8 * count), (info, 4 * count)]
        return self.launch(state, f"cusolverDn{letter}potrfBatched", used, run, None)

    def _run(
        self,
        letter: str,
        name: str,
        handle: int | None,
        args: list[Any],
        work: tuple[int, int],
        info: int,
    ) -> int:
        state = self.state(handle)
        if state is None:
            return _NOT_INITIALIZED
        if work[1] < _LWORK:
            return _INVALID_VALUE
        call = _ROUTINES[name].call(letter, *args)
        if any(matrix.step < matrix.rows for matrix in call.used):
            return _INVALID_VALUE

        def run() -> None:
            write(info, c_int(_run(call)))

        used = [*((matrix.address, matrix.nbytes) for matrix in call.used), (info, 4)]
        return self._launch(state, f"cusolverDn{letter}{name}", used, run, letter, work[0])

    def _launch(
        self,
        state: Handle,
        function: str,
        used: list[tuple[int, int]],
        run: Callable[[], None],
        letter: str,
        work: int,
    ) -> int:
        nbytes = _LWORK * (4 if letter == "S" else 8)
        return self.launch(state, function, used, run, (work, nbytes))


def _run(call: _Call) -> int:
    views = [matrix.view()[0] for matrix in call.used]
    with np.errstate(all="ignore"):
        return call.run(*views)


def emulated_cusolver(machine: Machine) -> Library:
    """Return the library for a machine."""
    cusolver = _Cusolver(machine)
    functions: dict[str, tuple[list[Any], Callable[..., int]]] = {}
    work, info = [c_void_p, c_int], [c_void_p]
    for letter in KINDS:
        start = f"cusolverDn{letter}"
        for name, routine in _ROUTINES.items():
            compute = (
                partial(cusolver.gesvd, letter)
                if name == "gesvd"
                else partial(cusolver.routine, letter, name)
            )
            more = info if name == "gesvd" else []
            functions[start + name] = ([c_void_p, *routine.types, *work, *more, *info], compute)
            of_size = [c_void_p, *routine.of_size, c_void_p]
            functions[f"{start}{name}_bufferSize"] = (of_size, cusolver.size)
        getrf = [c_void_p, *_SIZES, *_A, c_void_p, c_void_p, c_void_p]
        functions |= {
            f"{start}getrf": (getrf, partial(cusolver.getrf, letter)),
            f"{start}getrf_bufferSize": ([c_void_p, *_SIZES, *_A, c_void_p], cusolver.size),
            f"{start}potrfBatched": (
                [c_void_p, *_SIZES, *_A, c_void_p, c_int],
                partial(cusolver.potrf_batched, letter),
            ),
        }
    return cusolver.library(functions)
