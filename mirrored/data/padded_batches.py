"""Elements of several shapes joined to batches: what is shorter is padded.

The shapes to pad to and the values to pad with are checked against an element's structure: when
the method is called where that is known, else with the first element.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._numbers import as_integer
from mirrored.data.leaf_specs import LeafSpec, NestedSpec
from mirrored.data.rng import Iteration
from mirrored.data.sources import Following, Transform, batches_of, joined_rows, size_of_first
from mirrored.data.spec import Element, Elements, Form, specs_of, to_leaf
from mirrored.errors import InvalidArgumentError
from mirrored.ops.strings import as_strings


class _Padding(NamedTuple):
    """How one part of elements is padded.

    Attributes:
        number: Which part it is.
        shape: The sizes to pad to; None: the largest of the batch.
        value: What with.
    """

    number: int
    shape: tuple[int | None, ...]
    value: NDArray[Any]

    def joined(self, leaves: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return arrays joined along a new first axis."""
        for leaf in leaves:
            self._check(leaf.shape)
        largest = [max(sizes) for sizes in zip(*(leaf.shape for leaf in leaves), strict=True)]
        sizes = [a if b is None else b for a, b in zip(largest, self.shape, strict=True)]
        batch = np.full((len(leaves), *sizes), self.value)
        for row, leaf in enumerate(leaves):
            place: tuple[Any, ...] = (row, *map(slice, leaf.shape))
            batch[place] = leaf[()]  # Of strings, the string and not an array of it.
        return batch

    def _check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != len(self.shape):
            raise InvalidArgumentError(
                "All elements in a batch must have the same rank as the padded shape for component "
                f"{self.number}: expected rank {len(self.shape)} but got element with rank "
                f"{len(shape)}."
            )
        if any(b is not None and a > b for a, b in zip(shape, self.shape, strict=True)):
            raise InvalidArgumentError(
                "Attempted to pad to a smaller size than the input element. Received: an element "
                f"of shape {list(shape)} for component {self.number}, which is padded to "
                f"{list(self.shape)}. Use None for sizes that are to be the largest of a batch."
            )


class PaddedBatched(Following):
    """Elements joined, so many at a time, where those that are smaller are padded.

    Args:
        source: What gives the elements.
        size: How many a batch joins.
        shapes: The shapes to pad to, in the elements' structure; None: the largest of a batch.
        values: What to pad with, in the elements' structure or one for all; None: zeros.
        drop_remainder: Whether to leave out a last batch that has fewer.
    """

    def __init__(
        self, source: Transform, size: int, shapes: Any, values: Any, drop_remainder: bool
    ) -> None:
        super().__init__(source)
        self._size, self._drop = size, drop_remainder
        self._shapes, self._values = shapes, values
        self.known = source.known
        if self.known:
            self._paddings(source.specs())
        self.cardinality = batches_of(self.cardinality, size, drop_remainder)

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of batches."""
        specs = self._source.specs() if self.known else None
        form: Form | None = None
        paddings: list[_Padding] = []

        def batch(rows: list[Element], _: int) -> Element:
            nonlocal form, paddings
            if form is None:
                paddings = self._paddings(_ranks(rows[0]) if specs is None else specs)
                form = Form(rows[0])
            leaves = [form.leaves(row, "An element of `padded_batch`") for row in rows]
            pairs = zip(paddings, zip(*leaves, strict=True), strict=True)
            return form.pack([padding.joined(column) for padding, column in pairs])

        with closing(self._source.open(iteration.source())) as elements:
            yield from joined_rows(elements, self._size, batch, self._drop)

    def _paddings(self, specs: Any) -> list[_Padding]:
        """Return how each part is padded; raises where that does not fit the elements."""
        leaves = _nest.flatten(specs)
        shapes = parts_of(specs, self._shapes, "padded_shapes")
        if isinstance(self._values, tuple | dict):
            values = parts_of(specs, self._values, "padding_values")
        else:
            values = [self._values] * len(leaves)
        return [
            _padding(number, *each)
            for number, each in enumerate(zip(leaves, shapes, values, strict=True))
        ]

    def first(self) -> Element:
        """Return a batch of one element, over and over."""
        element = self._source.first()
        form = Form(element)
        leaves = form.leaves(element, "An element of `padded_batch`")
        pairs = zip(self._paddings(specs_or_ranks(self._source)), leaves, strict=True)
        size = size_of_first(self._source, self._size, self._drop)
        return form.pack([padding.joined([leaf] * size) for padding, leaf in pairs])

    def specs(self) -> Any:
        """Return those of the elements, with the shapes that are padded to."""
        specs = specs_or_ranks(self._source)
        paddings = self._paddings(specs)
        size = self._size if self._drop else None
        padded = [LeafSpec((size, *each.shape), each.value.dtype) for each in paddings]
        return _nest.pack_like(specs, padded)


def specs_or_ranks(transform: Transform) -> Any:
    """Return what is known of all elements of a transform, or what the first one tells."""
    return transform.specs() if transform.known else _ranks(transform.first())


def _ranks(element: Element) -> Any:
    """Return what one element tells of all: dtypes and numbers of axes."""

    def without_sizes(leaf: LeafSpec | NestedSpec) -> LeafSpec | NestedSpec:
        if isinstance(leaf, NestedSpec):
            return leaf
        return LeafSpec((None,) * len(leaf.shape or ()), leaf.dtype)

    return _nest.map_structure(without_sizes, specs_of(element))


def parts_of(specs: Any, given: Any, name: str) -> list[Any]:
    """Return what is given for each part of elements: lists are shapes, and no structures."""
    if isinstance(specs, dict) and given is not None:
        if not isinstance(given, dict):
            raise TypeError(_misfit(specs, given, name))
        if given.keys() != specs.keys():
            raise ValueError(_misfit(specs, given, name))
        keys = _nest.sorted_keys(specs)
        return [part for key in keys for part in parts_of(specs[key], given[key], name)]
    if isinstance(specs, tuple) and given is not None:
        if not isinstance(given, tuple):
            raise TypeError(_misfit(specs, given, name))
        if len(given) != len(specs):
            raise ValueError(_misfit(specs, given, name))
        pairs = zip(specs, given, strict=True)
        return [part for pair in pairs for part in parts_of(*pair, name)]
    return [given] * len(_nest.flatten(specs))


def _misfit(specs: Any, given: Any, name: str) -> str:
    return (
        f"The two structures don't have the same nested structure: elements are {specs}. Received: "
        f"{name}={given!r:.200}. Give `{name}` the elements' structure of tuples and dicts."
    )


def _padding(number: int, leaf: LeafSpec | NestedSpec, shape: Any, value: Any) -> _Padding:
    """Return how a part of elements is padded."""
    if isinstance(leaf, NestedSpec):
        raise TypeError(
            "`padded_batch` is not supported for datasets of datasets. Received: a dataset as "
            f"component {number}. Use `flat_map` before it."
        )
    return _Padding(number, _shape_to_pad(number, leaf, shape), _value_to_pad(leaf, value))


def _shape_to_pad(number: int, leaf: LeafSpec, given: Any) -> tuple[int | None, ...]:
    if given is None:
        if leaf.shape is None:
            raise ValueError(
                "You must provide `padded_shapes` argument because component "
                f"{number} has unknown rank."
            )
        return leaf.shape
    sizes = given if isinstance(given, list | tuple | np.ndarray) else [given]
    shape = tuple(None if size is None else as_integer(size) for size in sizes)
    if any(size is not None and whole is None for size, whole in zip(sizes, shape, strict=True)):
        kind = TypeError if all(isinstance(size, float) for size in sizes) else ValueError
        raise kind(
            f"Padded shape {given!r:.200} must be a shape: a list of integers, and of None or -1 "
            "for sizes that are the largest of a batch."
        )
    shape = tuple(None if size == -1 else size for size in shape)
    known = leaf.shape
    if known is not None and (
        len(known) != len(shape)
        or any(a is not None and b is not None and a > b for a, b in zip(known, shape, strict=True))
    ):
        raise ValueError(
            f"The padded shape {shape} is not compatible with the shape {known} of the "
            f"corresponding input component. Received: padded_shapes={given!r:.200}."
        )
    return shape


def _value_to_pad(leaf: LeafSpec, given: Any) -> NDArray[Any]:
    if leaf.dtype.kind == "O":
        if given is not None:
            raise TypeError(f"Strings are padded with empty ones. Received: {given!r:.200}.")
        return as_strings([b""])[0, ...]
    if given is None:
        return np.zeros((), leaf.dtype)
    value = to_leaf(given)
    if value.shape != ():
        raise ValueError(
            "Invalid `padding_values`. `padding_values` values should be scalars, but got "
            f"{value.shape}."
        )
    if value.dtype != leaf.dtype:
        raise TypeError(
            f"Invalid `padding_values`. `padding_values` values type {value.dtype.name} does not "
            f"match type {leaf.dtype.name} of the corresponding input component. Give it that "
            "dtype, as with mr.constant(0, mr.int64)."
        )
    return value
