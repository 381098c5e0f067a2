"""How many threads NumPy's matrix products use while a program runs.

The number belongs to the process, and changes a product's bits, so programs set it and restore it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def blas_threads(count: int | None) -> Iterator[None]:
    """Within this context let products use `count` threads; None: as many as they do anyway."""
    if count is None:
        yield
        return
    before = [(library, library.get_num_threads()) for library in _libraries()]
    changed = [(library, threads) for library, threads in before if threads != count]
    for library, _ in changed:
        library.set_num_threads(count)
    try:
        yield
    finally:
        for library, threads in changed:
            library.set_num_threads(threads)
