"""The layout of a fused kernel: its threads, and the addresses of its inputs.

A thread has several neighbouring elements where memory allows it, which one load or store moves.
Where inputs are rows or columns of the result the grid counts both, so that no thread divides.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.stream_backend import Fusion, Shape

THREADS = 256
# The bytes of the widest loads, and the most elements that a thread has next to each other.
_WIDEST, _MOST_ADJACENT = 16, 8
# As many threads as give each multiprocessor of a large card a block: before that threads have one
# element, since the others would stand still.
_LEAST_THREADS = 1 << 15
# Elements a thread where they cannot be next to each other. Several hide the time that memory
# takes, but only once there are more than the card has room for threads at a time (132
# multiprocessors of 2048 on an H200).
_MANY, _MANY_FROM = 4, 1 << 19
_MOST_COLUMN_BLOCKS = 65535  # Along the second axis of a grid.
_WARP = 32


class Term(NamedTuple):
    """A part of an input's index: (i / divisor) % modulus * stride, of the element's number i."""

    divisor: int
    modulus: int
    stride: int


class Layout(NamedTuple):
    """How elements are shared out.

    Attributes:
        size: How many there are.
        many: The elements of a thread.
        adjacent: Whether those are next to each other, as many as one load takes.
        columns: How many a row has, where the grid counts rows and columns; else 0.
    """

    size: int
    many: int
    adjacent: bool
    columns: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """What a kernel is told of the sizes: how many elements, or how many rows and columns."""
        return (self.size // self.columns, self.columns) if self.columns else (self.size,)

    @property
    def threads(self) -> tuple[int, int, int]:
        """The size of a block."""
        if not self.columns:
            return (THREADS, 1, 1)
        along = _threads_along(self._column_threads)
        return (along, THREADS // along, 1)

    @property
    def blocks(self) -> tuple[int, int, int]:
        """The size of the grid: blocks of rows along the first axis, which may be long."""
        if not self.columns:
            return (-(-self.size // (THREADS * self.many)), 1, 1)
        along, beside, _ = self.threads
        rows = beside * (1 if self.adjacent else self.many)
        return (-(-(self.size // self.columns) // rows), -(-self._column_threads // along), 1)

    @property
    def _column_threads(self) -> int:
        return -(-self.columns // self.many) if self.adjacent else self.columns


def index_terms(shape: Shape, result: Shape) -> tuple[Term, ...]:
    """Return the terms whose sum is an input's index, where it broadcasts to a result's shape.

    Args:
        shape: The input's shape.
        result: The result's.

    Example:
        >>> index_terms((3, 1), (3, 5))
        (Term(divisor=5, modulus=3, stride=1),)
        >>> index_terms((5,), (3, 5))
        (Term(divisor=1, modulus=5, stride=1),)
    """
    own = (1,) * (len(result) - len(shape)) + tuple(shape)
    terms: list[Term] = []
    divisor = stride = 1
    open_run = False  # Whether the axis behind this one is the input's own too.
    for size, full in zip(reversed(own), reversed(result), strict=True):
        if full == 1:
            continue
        if size == 1:
            open_run = False
        elif open_run:
            terms[-1] = terms[-1]._replace(modulus=terms[-1].modulus * size)
        else:
            terms.append(Term(divisor, size, stride))
            open_run = True
        divisor *= full
        stride *= size
    return tuple(terms)


def is_whole(terms: tuple[Term, ...], size: int) -> bool:
    """Return whether an input has one element for each of the result."""
    return terms == (Term(1, size, 1),)


def is_row(terms: tuple[Term, ...], columns: int) -> bool:
    """Return whether an input is one row of N columns, for all rows."""
    return bool(columns) and terms == (Term(1, columns, 1),)


def is_column(terms: tuple[Term, ...], columns: int) -> bool:
    """Return whether an input has one element for each row of N columns."""
    return bool(columns) and len(terms) == 1 and terms[0].divisor == columns


@lru_cache(maxsize=4096)
def layout(fusion: Fusion, alignment: int) -> Layout:
    """Return how a fused kernel's elements are shared out.

    Args:
        fusion: The kernel.
        alignment: A power of two of which the place of each of its arrays is a multiple, counted in
            that array's own elements.
    """
    size = math.prod(fusion.ops[0].shape)
    columns = _columns_of(fusion, size)
    widest = max(dtype.itemsize for dtype in _moved(fusion, size, columns))
    most = min(_WIDEST // widest, _MOST_ADJACENT, alignment, max(size // _LEAST_THREADS, 1))
    adjacent = 1 << (most.bit_length() - 1)
    if columns:
        adjacent = math.gcd(adjacent, columns)
    if adjacent > 1:
        return Layout(size, adjacent, True, columns)
    return Layout(size, _MANY if size >= _MANY_FROM else 1, False, columns)


def _inputs(fusion: Fusion) -> list[tuple[int, tuple[Term, ...]]]:
    """Return which inputs ops read, each with the terms of its index."""
    return [
        (number, index_terms(fusion.inputs[number][0], op.shape))
        for op in fusion.ops
        for number in op.inputs
        if number < len(fusion.inputs)
    ]


def _columns_of(fusion: Fusion, size: int) -> int:
    """Return how many columns a row has, where all inputs are whole, rows, columns or numbers."""
    widths: set[int] = set()
    for _, terms in _inputs(fusion):
        if not terms or is_whole(terms, size):
            continue
        divisor, modulus, stride = terms[0]
        if len(terms) > 1 or stride != 1 or (divisor > 1 and divisor * modulus != size):
            return 0
        widths.add(modulus if divisor == 1 else divisor)
    columns = widths.pop() if len(widths) == 1 else 0
    return columns if columns <= _MOST_COLUMN_BLOCKS * _WARP else 0


def _moved(fusion: Fusion, size: int, columns: int) -> list[np.dtype[Any]]:
    """Return the dtypes of what loads and stores of several elements would move."""
    moved = [
        fusion.inputs[number][1]
        for number, terms in _inputs(fusion)
        if is_whole(terms, size) or is_row(terms, columns)
    ]
    return moved + [fusion.ops[number].dtype for number in fusion.outputs]


def _threads_along(columns: int) -> int:
    """Return how many threads of a block lie along the columns: few stand still behind the last."""
    if columns <= _WARP:
        return 1 << (columns - 1).bit_length()
    return min((THREADS >> i for i in range(4)), key=lambda count: -(-columns // count) * count)
