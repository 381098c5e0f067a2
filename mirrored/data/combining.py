"""Transforms with several sources: `zip`, `concatenate`, and datasets chosen or sampled from.

The next dataset is chosen by a transform too: a user's dataset of numbers, or random draws.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.data.element_transforms import Chosen
from mirrored.data.elements import (
    DatasetBase,
    Element,
    Elements,
    Failure,
    FormCheck,
    attempt,
    to_leaf,
)
from mirrored.data.leaf_specs import LeafSpec, common_specs, public_specs
from mirrored.data.rng import Iteration, Rng
from mirrored.data.row_transforms import Repeated
from mirrored.data.source_transforms import Drawn
from mirrored.data.transform import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Derived,
    Slices,
    Transform,
)
from mirrored.errors import InvalidArgumentError
from mirrored.ops import TensorSpec, int64


def transforms_of(args: tuple[Any, ...], datasets: Any) -> Any:
    """Return the transforms of the arguments of `zip`, in their structure."""
    if args and datasets is not None:
        raise TypeError("Both `*args` and `datasets` cannot be set. Pass all datasets in one.")
    inputs = args if datasets is None else (datasets,)
    structure = inputs[0] if len(inputs) == 1 else inputs
    if isinstance(structure, list):
        raise TypeError(
            "Invalid input to `zip`. Nested structures do not support Python lists; please use "
            f"a tuple instead. Received: a list of {len(structure)}."
        )
    leaves = _nest.flatten(structure)
    if not leaves:
        raise TypeError("Must pass at least one dataset to `zip`.")
    for leaf in leaves:
        if not isinstance(leaf, DatasetBase):
            raise TypeError(
                "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                f"`mr.data.Dataset` objects but encountered object of type {type(leaf)}."
            )
    return _nest.map_structure(lambda dataset: dataset._transform, structure)


def zipped(transforms: Any) -> Transform:
    """Return the transform of several side by side; rows of arrays stay rows of arrays."""
    leaves: list[Transform] = _nest.flatten(transforms)
    rows = [transform for transform in leaves if isinstance(transform, Slices)]
    if len(rows) < len(leaves):
        return Zipped(transforms)
    size = min(transform.cardinality for transform in rows)
    arrays = _nest.map_structure(lambda transform: transform.rows(slice(0, size)), transforms)
    return Slices(arrays, size)


@contextmanager
def _opened(transform: Transform, iteration: Iteration) -> Iterator[list[Elements]]:
    """Open all sources of a transform; they are closed at the end of the context."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(closing(source.open(iteration.source(i))))
            for i, source in enumerate(transform.sources)
        ]


class Zipped(Transform):
    """Elements of several transforms side by side; the shortest one ends it."""

    def __init__(self, transforms: Any) -> None:
        self._structure = transforms
        self.sources = tuple(_nest.flatten(transforms))
        sizes = {transform.cardinality for transform in self.sources}
        finite = sizes - {INFINITE_CARDINALITY, UNKNOWN_CARDINALITY}
        if UNKNOWN_CARDINALITY not in sizes:
            self.cardinality = min(finite, default=INFINITE_CARDINALITY)
        self.known = all(transform.known for transform in self.sources)

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of structures of elements."""
        with _opened(self, iteration) as opened:
            for parts in zip(*opened, strict=False):
                failed = next((part for part in parts if type(part) is Failure), None)
                yield failed or _nest.pack_like(self._structure, list(parts))

    def first(self) -> Element:
        """Return elements of the transforms, side by side."""
        return _nest.map_structure(lambda transform: transform.first(), self._structure)

    def specs(self) -> Any:
        """Return those of the transforms, side by side."""
        return _nest.map_structure(lambda transform: transform.specs(), self._structure)


class Concatenated(Derived):
    """The elements of one transform, then of another; TypeError where they differ in kind."""

    def __init__(self, source: Transform, other: Transform) -> None:
        super().__init__(source)
        self.sources = source, other
        self.known = source.known and other.known
        if self.known:
            self._specs = common_specs(source.specs(), other.specs())
        sizes = (source.cardinality, other.cardinality)
        if INFINITE_CARDINALITY in sizes:
            self.cardinality = INFINITE_CARDINALITY
        elif UNKNOWN_CARDINALITY in sizes:
            self.cardinality = UNKNOWN_CARDINALITY
        else:
            self.cardinality = sum(sizes)

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of both."""
        for index, transform in enumerate(self.sources):
            with closing(transform.open(iteration.source(index))) as elements:
                yield from elements

    def specs(self) -> Any:
        """Return the specs that fit both, or those of the first."""
        return self._specs if self.known else super().specs()


class Directed(Transform):
    """Elements of several transforms, each from the transform whose number comes next.

    Args:
        choices: The transform of the numbers, as int64 scalars.
        transforms: The transforms of the elements; TypeError where their structures differ.
        stops: Whether to end where one is chosen that has no more elements, else it is left out.
    """

    def __init__(self, choices: Transform, transforms: Sequence[Transform], stops: bool) -> None:
        self._stops = stops
        self.sources = (choices, *transforms)
        self.known = all(transform.known for transform in transforms)
        if self.known:
            self.specs()
        if any(source.cardinality == INFINITE_CARDINALITY for source in transforms):
            self.cardinality = INFINITE_CARDINALITY  # As TensorFlow has it, whatever chooses.

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of the elements that are chosen."""
        check = FormCheck()
        with _opened(self, iteration) as (choices, *opened):
            places: list[Elements | None] = [*opened]
            for choice in choices:
                if type(choice) is Failure:
                    yield choice
                    continue
                place = int(choice)
                if not 0 <= place < len(places):
                    yield Failure(
                        InvalidArgumentError(
                            f"Selector index out of range: {place} >= {len(places)}. Select the "
                            f"datasets by numbers from 0 to {len(places) - 1}."
                        )
                    )
                    continue
                chosen = places[place]
                for element in () if chosen is None else chosen:
                    where = f"An element of dataset {place}"
                    yield element if type(element) is Failure else attempt(check, element, where)
                    break
                else:
                    places[place] = None
                    if self._stops or not any(places):
                        return

    def first(self) -> Element:
        """Return an element of the first of the transforms."""
        return self.sources[1].first()

    def specs(self) -> Any:
        """Return the specs that fit all transforms."""
        first, *others = [transform.specs() for transform in self.sources[1:]]
        for other in others:
            try:
                first = common_specs(first, other)
            except TypeError as error:
                raise TypeError(
                    f"Invalid `datasets`. `datasets` must have compatible element specs. {error}"
                ) from None
        return first


class Picked(Transform):
    """Numbers of datasets, drawn by weights.

    Args:
        drawn: Random numbers.
        weights: What gives the weights for each draw, or for as many as there are.
    """

    def __init__(self, drawn: Drawn, weights: Transform) -> None:
        self.sources = drawn, weights
        self.declare(LeafSpec((), np.dtype(np.int64)))

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of int64 scalars."""
        with _opened(self, iteration) as (drawn, weights):
            for number, row in zip(drawn, weights, strict=False):
                if type(row) is Failure:
                    yield row
                    continue
                sums = np.cumsum(row, dtype=np.float64).ravel()
                place = np.searchsorted(sums, (int(number) + 0.5) / 2**32 * sums[-1], "right")
                yield np.asarray(place, np.int64)


def mixed_by_weights(datasets: Any, weights: Any, seed: Any, stops: bool, fresh: bool) -> Transform:
    """Return the transform of `sample_from_datasets`: elements of datasets, drawn by weights."""
    transforms = _transforms_in(datasets)
    if isinstance(weights, DatasetBase):
        return Directed(Picked(Drawn(Rng(seed), fresh), weights._transform), transforms, stops)
    if weights is None:
        weights = np.ones(len(transforms), np.float32)
    elif len(weights) != len(transforms):
        raise ValueError(
            "Invalid `weights`. `weights` should have the same length as `datasets` but got "
            f"`len(weights)={len(weights)}` vs. `len(datasets)={len(transforms)}`."
        )
    numbers = to_leaf(weights)
    if numbers.dtype.kind != "f":
        raise TypeError(
            "Invalid `weights`. `weights` type must be either `mr.float32` or `mr.float64` but is "
            f"{numbers.dtype.name}. Write them with a decimal point."
        )
    chosen = [pair for pair in zip(transforms, numbers.tolist(), strict=True) if pair[1] > 0]
    if len(chosen) < 2:
        return chosen[0][0] if chosen else Chosen(transforms[0], 0, 0)
    positive = Slices(np.array([[weight for _, weight in chosen]]), 1)
    picked = Picked(Drawn(Rng(seed), fresh), Repeated(positive, None))
    return Directed(picked, [transform for transform, _ in chosen], stops)


def mixed_by_choices(datasets: Any, choices: Any, stops: bool) -> Transform:
    """Return the transform of `choose_from_datasets`."""
    transforms = _transforms_in(datasets)
    if not isinstance(choices, DatasetBase):
        raise TypeError(
            "Invalid `choice_dataset`. `choice_dataset` should be a `mr.data.Dataset` but is "
            f"{type(choices)}."
        )
    spec = public_specs(choices._transform.specs())
    if spec != TensorSpec((), int64):
        raise TypeError(
            "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `mr.int64` "
            f"tensors but are {spec}."
        )
    return Directed(choices._transform, transforms, stops)


def _transforms_in(datasets: Any) -> list[Transform]:
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    for dataset in datasets:
        if not isinstance(dataset, DatasetBase):
            raise TypeError(
                "Invalid `datasets`. They are `mr.data.Dataset` objects. Received: "
                f"{dataset!r:.200}."
            )
    return [dataset._transform for dataset in datasets]
