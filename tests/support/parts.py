"""Long random searches in two parts: of the same cases, the first runs in every run of the tests.

The other part is marked slow where it is asked for.
"""

from collections.abc import Callable
from zlib import crc32


def one_of(count: int) -> Callable[[object], bool]:
    """Return ``is_mine(case)``: whether a case is in the first of so many parts."""
    return lambda case: crc32(repr(case).encode()) % count == 0


def others_of(count: int) -> Callable[[object], bool]:
    """Return ``is_mine(case)``: whether a case is in none but the other parts."""
    first = one_of(count)
    return lambda case: not first(case)
