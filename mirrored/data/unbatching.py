"""Batches taken apart: into their rows, and into batches of other sizes.

The rows stay in their order.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored.data.dataset_arguments import as_count
from mirrored.data.failures import Failure, attempt
from mirrored.data.rng import Iteration
from mirrored.data.spec import Element, Elements, Form, spec_of
from mirrored.data.transform import UNKNOWN_CARDINALITY, Following, Slices, Transform, results_of
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import is_tensor


class Unbatched(Following):
    """The rows of each element."""

    def __init__(self, source: Transform) -> None:
        super().__init__(source)
        self.known = source.known
        size = _common_size(source.specs()) if source.known else None
        if source.cardinality > 0:
            self.cardinality = UNKNOWN_CARDINALITY if size is None else source.cardinality * size

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of rows."""

        def rows(index: int, element: Element) -> Elements:
            for leaf in _nest.flatten(element):
                spec_of(leaf).row()
            return Slices(element, _row_count(element, "unbatch", index)).open(Iteration())

        return results_of(elements, rows)

    def specs(self) -> Any:
        """Return those of a row."""
        return _nest.map_structure(lambda leaf: leaf.row(), self._source.specs())


class Rebatched(Following):
    """Batches of other sizes, of the same rows in the same order.

    Args:
        source: What gives batches.
        sizes: The sizes, which take turns.
        drop_remainder: Whether to leave out a last batch that has fewer rows.
    """

    def __init__(self, source: Transform, sizes: Sequence[int], drop_remainder: bool) -> None:
        super().__init__(source)
        self._sizes, self._drop = sizes, drop_remainder
        self.cardinality = UNKNOWN_CARDINALITY
        self.known = source.known
        if source.known:
            self.specs()

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of batches."""
        sizes = itertools.cycle(self._sizes)
        want, have = next(sizes), 0
        parts: list[list[NDArray[Any]]] = []
        form: Form | None = None

        def leaves_of(index: int, element: Element) -> tuple[int, list[NDArray[Any]]]:
            nonlocal form
            count = _row_count(element, "rebatch", index)
            form = form or Form(element)
            return count, form.leaves(element, f"Element {index}")

        for index, element in enumerate(elements):
            is_failure = type(element) is Failure
            checked = element if is_failure else attempt(leaves_of, index, element)
            if type(checked) is Failure or form is None:
                yield checked
                continue
            (count, leaves), begin = checked, 0
            while have + count - begin >= want:
                end = begin + want - have
                yield form.pack(_ended(parts, [leaf[begin:end] for leaf in leaves]))
                parts, have, begin, want = [], 0, end, next(sizes)
            if begin < count:
                parts.append([leaf[begin:] for leaf in leaves])
                have += count - begin
        if parts and form is not None and not self._drop:
            yield form.pack(_ended(parts[:-1], parts[-1]))

    def specs(self) -> Any:
        """Return those of batches, with their size where all have it."""
        batches = self._source.specs()
        rows = _nest.map_structure(lambda leaf: leaf.row(), batches)
        shapes = [leaf.shape for leaf in _nest.flatten(batches)]
        if () in shapes:
            raise ValueError(
                "Invalid `batch_size`. Expected dataset with rank of >= 1 but found a dataset with "
                "scalar elements. Fix the issue by adding the `batch` transformation to it."
            )
        size = self._sizes[0] if len({*self._sizes}) == 1 else None
        known = [shape[0] for shape in shapes if shape is not None and shape[0] is not None]
        if size is not None and not self._drop and (not known or known[0] % size):
            size = None
        return _nest.map_structure(lambda leaf: leaf.batched(size), rows)


def sizes_of(batch_size: Any) -> list[int]:
    """Return the sizes that `rebatch` is given: one, or several that take turns."""
    sizes = batch_size.numpy() if is_tensor(batch_size) else batch_size
    if np.ndim(sizes) > 1 or np.size(sizes) == 0:
        raise InvalidArgumentError(
            "Invalid `batch_size`. Expected `batch_size` to be a scalar or a vector. Received "
            f"`batch_size` of shape {np.shape(sizes)}."
        )
    listed = sizes if np.ndim(sizes) else [sizes]
    return [as_count("batch_size", size, least=1) for size in listed]


def _ended(parts: list[list[NDArray[Any]]], last: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return rows of each array joined; where there is one part it is that, which is a view."""
    columns = zip(*parts, last, strict=True)
    return [np.concatenate(column) for column in columns] if parts else last


def _common_size(specs: Any) -> int | None:
    """Return how many rows each batch has, where that is known; ValueError where it is none."""
    leaves = _nest.flatten(specs)
    for leaf in leaves:
        leaf.row()  # Of a dataset there is none, and it says so.
    sizes = {leaf.shape[:1] for leaf in leaves if leaf.shape is not None}
    if () in sizes:
        raise ValueError(
            "Cannot unbatch an input with scalar components. Received: elements of "
            f"{_nest.map_structure(lambda leaf: leaf.public(), specs)}. Batch them first."
        )
    known = {size for (size,) in sizes if size is not None}
    if len(known) > 1:
        raise ValueError(
            "`unbatch()` is only supported for datasets of elements whose components have a "
            f"matching leading dimension. Encountered {sorted(known)}."
        )
    return next(iter(known), None)


def _row_count(element: Element, method: str, index: int) -> int:
    """Return how many rows an element has; raises where it is no batch."""
    sizes: set[tuple[int, ...]] = {leaf.shape[:1] for leaf in _nest.flatten(element)}
    if len(sizes) > 1 or () in sizes:
        shapes = [leaf.shape for leaf in _nest.flatten(element)]
        raise InvalidArgumentError(
            f"`{method}` needs arrays of one first size. Received: element {index} (counted "
            f"from 0) with the shapes {shapes}. Batch it first."
        )
    ((count,),) = sizes
    return count
