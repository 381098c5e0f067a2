"""How many threads NumPy's matrix products use.

The number belongs to the process, and changes a product's bits: it is set for a product, or for a
program of many, and restored.
"""

from functools import cache
from typing import Any

# A product of so many operations uses all of BLAS's threads. On two cores they gain a factor of
# two at most, and wait for each other in every product: where a neighbour has one of the cores, a
# smaller product takes up to a hundred times as long as with one thread. docs/performance.md has
# the figures, `python -m benchmarks.blas_threads` measures them.
_THREADS_FROM = 1e8
# Up to here OpenBLAS starts no thread (GEMM_MULTITHREAD_THRESHOLD): for vectors, and for matrices.
_ONE_ANYWAY, _ONE_ANYWAY_OF_MATRICES = 18_000, 524_288


@cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries that are loaded; NumPy's is by the time that a program runs."""
    from threadpoolctl import ThreadpoolController  # Slow to import, and not always needed.

    controllers = ThreadpoolController().select(user_api="blas").lib_controllers
    return list(controllers)


@cache
def available_threads() -> int:
    """Return how many threads products use where nothing limits them."""
    return max((library.get_num_threads() for library in _libraries()), default=1)


def threads_of_products(operations: int) -> int | None:
    """Return how many threads a product of so many operations uses; None: as many as it likes.

    Of several products it is the largest that counts.
    """
    return 1 if _ONE_ANYWAY < operations < _THREADS_FROM else None


class BlasThreads:
    """A context within which products use so many threads; None: as many as they do anyway."""

    __slots__ = ("_changed", "_count")

    def __init__(self, count: int | None) -> None:
        self._count = count
        self._changed: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        if self._count is None:
            return
        for library in _libraries():
            before = library.get_num_threads()
            if before != self._count:
                self._changed.append((library, before))
                library.set_num_threads(self._count)

    def __exit__(self, *raised: object) -> None:
        while self._changed:
            library, before = self._changed.pop()
            library.set_num_threads(before)


def product(xp: Any, a: Any, b: Any, out: Any) -> None:
    """Write the matrix product of two arrays on as many threads as pay for one of its size."""
    # Of two matrices they are the same; `dot` is quicker to begin.
    multiply = xp.dot if a.ndim <= 2 and b.ndim == 2 else xp.matmul
    operations = 2 * out.size * a.shape[-1]
    if operations <= _ONE_ANYWAY or (operations <= _ONE_ANYWAY_OF_MATRICES and 1 not in out.shape):
        multiply(a, b, out=out)
        return
    with BlasThreads(threads_of_products(operations)):
        multiply(a, b, out=out)
