"""Batches of elements of several shapes: shorter elements are padded.

The shapes to pad to and the values to pad with are checked against an element's structure: when
the method is called where that is known, else with the first element.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._numbers import as_integer
from mirrored.data.elements import Element, Elements, Form, specs_of, to_leaf
from mirrored.data.leaf_specs import LeafSpec, NestedSpec
from mirrored.data.rng import Iteration
from mirrored.data.transform import Following, Transform, batches_of, joined_rows
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
                f"{list(self.shape)}. Use None to pad to the largest size of a batch."
            )


class PaddedBatched(Following):
    """Batches of elements, of which smaller ones are padded.

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
        if self.known:
            self._paddings(source.specs())
        self.cardinality = batches_of(self.cardinality, size, drop_remainder)

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
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

        return joined_rows(elements, self._size, batch, self._drop)

    def _paddings(self, specs: Any) -> list[_Padding]:
        """Return how each part is padded; raises where that does not fit the elements."""
        leaves = _nest.flatten(specs)
        shapes = parts_of(specs, self._shapes, "padded_shapes")
        if isinstance(self._values, tuple | dict):
            values = parts_of(specs, self._values, "padding_values")
        else:
            values = [self._values] * len(leaves)
        return [
            _padding(number, *part)
            for number, part in enumerate(zip(leaves, shapes, values, strict=True))
        ]

    def specs(self) -> Any:
        """Return those of the elements, with the shapes that are padded to."""
        specs = specs_or_ranks(self._source)
        paddings = self._paddings(specs)
        size = self._size if self._drop else None
        padded = [LeafSpec((size, *padding.shape), padding.value.dtype) for padding in paddings]
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


def parts_of(specs: Any, value: Any, name: str) -> list[Any]:
    """Return what is given for each part of elements: lists are shapes, and no structures."""
    is_dict = isinstance(specs, dict)
    if value is None or not (is_dict or isinstance(specs, tuple)):
        return [value] * len(_nest.flatten(specs))
    is_same_kind = isinstance(value, dict if is_dict else tuple)
    if not is_same_kind or (value.keys() != specs.keys() if is_dict else len(value) != len(specs)):
        raise (ValueError if is_same_kind else TypeError)(
            f"The two structures don't have the same nested structure: elements are {specs}. "
            f"Received: {name}={value!r:.200}. Use the elements' structure."
        )
    keys: Iterable[Any] = _nest.sorted_keys(specs) if is_dict else range(len(specs))
    return [part for key in keys for part in parts_of(specs[key], value[key], name)]


def _padding(number: int, leaf: LeafSpec | NestedSpec, shape: Any, value: Any) -> _Padding:
    """Return how a part of elements is padded."""
    if isinstance(leaf, NestedSpec):
        raise TypeError(
            "`padded_batch` is not supported for datasets of datasets. Received: a dataset as "
            f"component {number}. Use `flat_map` before it."
        )
    return _Padding(number, _shape_to_pad(number, leaf, shape), _value_to_pad(leaf, value))


def _shape_to_pad(number: int, leaf: LeafSpec, value: Any) -> tuple[int | None, ...]:
    if value is None:
        if leaf.shape is None:
            raise ValueError(
                "You must provide `padded_shapes` argument because component "
                f"{number} has unknown rank."
            )
        return leaf.shape
    sizes = value if isinstance(value, list | tuple | np.ndarray) else [value]
    shape = tuple(None if size is None else as_integer(size) for size in sizes)
    if any(size is not None and whole is None for size, whole in zip(sizes, shape, strict=True)):
        kind = TypeError if all(isinstance(size, float) for size in sizes) else ValueError
        raise kind(
            f"Padded shape {value!r:.200} must be a shape: a list of integers, with None or -1 to "
            "pad to the largest size of a batch."
        )
    shape = tuple(None if size == -1 else size for size in shape)
    known = leaf.shape
    if known is not None and (
        len(known) != len(shape)
        or any(a is not None and b is not None and a > b for a, b in zip(known, shape, strict=True))
    ):
        raise ValueError(
            f"The padded shape {shape} is not compatible with the shape {known} of the "
            f"corresponding input component. Received: padded_shapes={value!r:.200}."
        )
    return shape


def _value_to_pad(leaf: LeafSpec, value: Any) -> NDArray[Any]:
    if leaf.dtype.kind == "O":
        if value is not None:
            raise TypeError(f"Strings need empty strings as padding. Received: {value!r:.200}.")
        return as_strings([b""])[0, ...]
    if value is None:
        return np.zeros((), leaf.dtype)
    number = to_leaf(value)
    if number.shape != ():
        raise ValueError(
            "Invalid `padding_values`. `padding_values` values should be scalars, but got "
            f"{number.shape}."
        )
    if number.dtype != leaf.dtype:
        raise TypeError(
            f"Invalid `padding_values`. `padding_values` values type {number.dtype.name} does not "
            f"match type {leaf.dtype.name} of the corresponding input component. Use that dtype, "
            "as in mr.constant(0, mr.int64)."
        )
    return number


@dataclass(frozen=True, slots=True)
class Buckets:
    """Ranges of lengths.

    Attributes:
        length: From an element to its length.
        boundaries: The least length of each bucket but the first.
        sizes: The batch size of each.
    """

    length: Callable[..., Any]
    boundaries: Sequence[int]
    sizes: Sequence[int]

    def __post_init__(self) -> None:
        """Raise ValueError where there are not as many sizes as buckets."""
        if len(self.sizes) != len(self.boundaries) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
                f"`len(bucket_batch_sizes)={len(self.sizes)}` and "
                f"`len(bucket_boundaries)={len(self.boundaries)}`."
            )

    def number(self, *element: Any) -> int:
        """Return the number of an element's bucket."""
        length = int(self.length(*element))
        return sum(length >= boundary for boundary in self.boundaries)

    def size(self, bucket: Any) -> int:
        """Return the batch size of a bucket."""
        return self.sizes[int(bucket)]

    def bounded(self, bucket: int, group: Transform, shapes: Any) -> Any:
        """Return shapes to pad to, where the greatest length of a bucket stands for None."""
        if bucket == len(self.boundaries):
            raise InvalidArgumentError(
                "When pad_to_bucket_boundary=True, elements must have length < "
                f"max(bucket_boundaries). Received: bucket_boundaries={list(self.boundaries)} and "
                "an element of the last bucket. Add a boundary."
            )
        most = self.boundaries[bucket] - 1
        specs = specs_or_ranks(group)
        parts = parts_of(specs, shapes, "padded_shapes")
        pairs = zip(parts, _nest.flatten(specs), strict=True)
        filled = [
            [
                most if size is None else size
                for size in (leaf.shape or () if part is None else part)
            ]
            for part, leaf in pairs
        ]
        return _nest.pack_like(specs, filled)
