"""How many threads NumPy's matrix products use while a program runs.

The number belongs to the process, and changes a product's bits, so programs set it and restore it.
"""

from functools import cache
from typing import Any


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


class BlasThreads:
    """A context within which products use so many threads.

    Args:
        count: How many; None: as many as they do anyway.
    """

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
