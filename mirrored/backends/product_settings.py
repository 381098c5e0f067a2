"""How matrix products are computed: their precision, and the threads of the BLAS.

Users choose the precision. The number of threads belongs to the process, and changes a product's
bits: it is set for a product, or for a program of many, and restored.
"""

import itertools
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

_tensor_float_32 = True  # As in TensorFlow.


def allow_tensor_float_32(enabled: bool) -> None:
    """Choose whether float32 products may round their inputs to 10 bits of mantissa.

    Args:
        enabled: Whether they may.

    Example:
        >>> allow_tensor_float_32(False)
        >>> tensor_float_32_allowed()
        False
        >>> allow_tensor_float_32(True)
    """
    global _tensor_float_32
    _tensor_float_32 = enabled


def tensor_float_32_allowed() -> bool:
    """Return what was set by ``allow_tensor_float_32``, by default True."""
    return _tensor_float_32


# A product of this many operations uses all of BLAS's threads. On two cores they gain a factor of
# two at most, and wait for each other in every product: where a neighbour has one of the cores, a
# smaller product takes up to a hundred times as long as with one thread.
# docs/reference/benchmarks.md has the figures, `python -m benchmarks.blas_threads` measures them.
_THREADS_FROM = 1e8
# Up to here OpenBLAS starts no thread (GEMM_MULTITHREAD_THRESHOLD): for vectors, and for matrices.
_ONE_ANYWAY, _ONE_ANYWAY_OF_MATRICES = 18_000, 524_288


# What returns a library's number of threads, and what sets it.
_Access = tuple[Callable[[], int], Callable[[int], object]]


@cache
def _libraries() -> list[_Access]:
    """Return the BLAS libraries that are loaded; NumPy's is by the time that a program runs."""
    from threadpoolctl import ThreadpoolController  # Slow to import, and not always needed.

    controllers = ThreadpoolController().select(user_api="blas").lib_controllers
    return [_access(library) for library in controllers]


def _access(library: Any) -> _Access:
    # From release 3.8 on threadpoolctl lets the first thread that sets OpenBLAS's number do so, and
    # ignores all others for as long as that one lives. Here programs run on threads of the user's.
    if library.internal_api == "openblas" and library.threading_layer != "openmp":
        for prefix, suffix in itertools.product(("", "scipy_"), ("", "64_", "_64")):
            name = f"{prefix}openblas_%s_num_threads{suffix}"
            if hasattr(library.dynlib, name % "get"):
                return getattr(library.dynlib, name % "get"), getattr(library.dynlib, name % "set")
    return library.get_num_threads, library.set_num_threads


def available_threads() -> int:
    """Return how many threads the process lets products use, also within `run_on_threads`."""
    counts = [before for _, before in _set_aside] or [get() for get, _ in _libraries()]
    return max(counts, default=1)


def limit(count: int) -> None:
    """Let products use N threads from now on; whoever asks how many there are hears that."""
    for _, set_count in _libraries():
        set_count(count)


def threads_of_products(operations: int) -> int | None:
    """Return how many threads a product of N operations uses; None: as many as it likes."""
    return None if uses_all_threads(operations) else threads_of_most_products(operations)


def threads_of_most_products(operations: int) -> int | None:
    """Return how many threads products use in a program whose largest one has N operations.

    Larger ones than most use all threads; see `use_all_threads`.
    """
    return 1 if operations > _ONE_ANYWAY else None


def uses_all_threads(operations: int) -> bool:
    """Return whether a product of N operations is worth all threads."""
    return operations >= _THREADS_FROM


# What the function that runs now has set aside: what sets a library's number, and the number.
_set_aside: list[tuple[Callable[[int], object], int]] = []


def use_all_threads() -> None:
    """Let products use as many threads as outside of `run_on_threads`, within a call of it."""
    for set_count, before in _set_aside:
        set_count(before)


def use_one_thread() -> None:
    """Let products use one thread again."""
    for set_count, _ in _set_aside:
        set_count(1)


# Whether all products use one thread, whatever their size, so that their bits are the same.
one_thread: ContextVar[bool] = ContextVar("mirrored_one_thread", default=False)


def run_on_threads(
    count: int | None, function: Callable[..., object], *args: Any, **named: Any
) -> None:
    """Call a function whose products use N threads; None: as many as they do anyway."""
    if count is None:
        function(*args, **named)
        return
    global _set_aside
    changed: list[tuple[Callable[[int], object], int]] = []
    outer = _set_aside
    try:
        for get_count, set_count in _libraries():
            before = get_count()
            if before != count:
                changed.append((set_count, before))
                set_count(count)
        _set_aside = changed or outer
        function(*args, **named)
    finally:
        _set_aside = outer
        for set_count, before in changed:
            set_count(before)


def product(xp: Any, a: Any, b: Any, out: Any) -> None:
    """Write the matrix product of two arrays on as many threads as pay for one of its size."""
    # Of two matrices they are the same; `dot` is quicker to begin.
    multiply = xp.dot if a.ndim <= 2 and b.ndim == 2 else xp.matmul
    operations = 2 * out.size * a.shape[-1]
    if operations <= _ONE_ANYWAY or (operations <= _ONE_ANYWAY_OF_MATRICES and 1 not in out.shape):
        multiply(a, b, out=out)
        return
    threads = 1 if one_thread.get() else threads_of_products(operations)
    run_on_threads(threads, multiply, a, b, out=out)
