"""Elements of several datasets, one at a time from that which is chosen; and numbers without end.

What chooses is a dataset itself: one that is given, or one that draws.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.data.failures import Failure, attempt
from mirrored.data.leaf_specs import LeafSpec, common_specs
from mirrored.data.rng import Iteration, Rng
from mirrored.data.sources import INFINITE_CARDINALITY, Transform
from mirrored.data.spec import Element, Elements, Form
from mirrored.errors import InvalidArgumentError

_AT_ONCE = 256  # Random numbers.


class Directed(Transform):
    """The next element each time of the transform whose number comes next.

    Args:
        choices: What gives the numbers, as int64 scalars.
        transforms: What gives the elements; TypeError where they are of different kinds.
        stops: Whether to end where one is chosen that has no more elements, else it is left out.
    """

    def __init__(self, choices: Transform, transforms: Sequence[Transform], stops: bool) -> None:
        self._stops = stops
        self.sources = (choices, *transforms)
        self.known = all(transform.known for transform in transforms)
        if self.known:
            self.specs()
        if any(each.cardinality == INFINITE_CARDINALITY for each in transforms):
            self.cardinality = INFINITE_CARDINALITY  # As TensorFlow has it, whatever chooses.

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of the elements that are chosen."""
        choices, *opened = [each.open(iteration.source(i)) for i, each in enumerate(self.sources)]
        places: list[Elements | None] = [*opened]
        form: Form | None = None

        def checked(place: int, element: Element) -> Element:
            nonlocal form
            if type(element) is not Failure:
                form = form or Form(element)
                form.leaves(element, f"An element of dataset {place}")
            return element

        try:
            for choice in choices:
                if type(choice) is Failure:
                    yield choice
                    continue
                place = int(choice)
                if not 0 <= place < len(places):
                    yield Failure(
                        InvalidArgumentError(
                            f"Selector index out of range: {place} >= {len(places)}. Choose among "
                            f"the datasets by numbers from 0 to {len(places) - 1}."
                        )
                    )
                    continue
                chosen = places[place]
                for element in () if chosen is None else chosen:
                    yield attempt(checked, place, element)
                    break
                else:
                    places[place] = None
                    if self._stops or not any(places):
                        return
        finally:
            for each in (choices, *opened):
                each.close()

    def first(self) -> Element:
        """Return an element of the first of the transforms."""
        return self.sources[1].first()

    def specs(self) -> Any:
        """Return what all have in common."""
        first, *others = [transform.specs() for transform in self.sources[1:]]
        for other in others:
            try:
                first = common_specs(first, other)
            except TypeError as error:
                raise TypeError(
                    f"Invalid `datasets`. `datasets` must have compatible element specs. {error}"
                ) from None
        return first


class Drawn(Transform):
    """Random numbers below 2**32, without end: the same in each iteration, unless `anew`."""

    known = True
    cardinality = INFINITE_CARDINALITY
    rng: Rng

    def __init__(self, rng: Rng, anew: bool) -> None:
        self.rng, self._anew = rng, anew

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of int64 scalars."""
        generator = self.rng.stream(iteration if self._anew else iteration.first()).generator()
        while True:
            for number in generator.integers(1 << 32, size=_AT_ONCE):
                yield np.asarray(number)

    def specs(self) -> Any:
        """Return that of a scalar."""
        return LeafSpec((), np.dtype(np.int64))


class Picked(Transform):
    """Numbers of datasets, drawn by weights.

    Args:
        drawn: Random numbers.
        weights: What gives the weights for each draw, or for as many as there are.
    """

    known = True

    def __init__(self, drawn: Drawn, weights: Transform) -> None:
        self.sources = drawn, weights

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of int64 scalars."""
        drawn, weights = [each.open(iteration.source(i)) for i, each in enumerate(self.sources)]
        with closing(drawn), closing(weights):
            for number, each in zip(drawn, weights, strict=False):
                if type(each) is Failure:
                    yield each
                    continue
                sums = np.cumsum(each, dtype=np.float64).ravel()
                place = np.searchsorted(sums, (int(number) + 0.5) / 2**32 * sums[-1], "right")
                yield np.asarray(place, np.int64)

    def specs(self) -> Any:
        """Return that of a scalar."""
        return LeafSpec((), np.dtype(np.int64))


class Endless(Transform):
    """Numbers without end, each a step further."""

    known = True
    cardinality = INFINITE_CARDINALITY

    def __init__(self, start: NDArray[Any], step: NDArray[Any]) -> None:
        self._start, self._step = start, step

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of scalars."""
        number = self._start
        while True:
            yield number
            with np.errstate(over="ignore"):  # They wrap around, as in TensorFlow.
                number = np.asarray(number + self._step)

    def specs(self) -> Any:
        """Return that of a scalar."""
        return LeafSpec(self._start.shape, self._start.dtype)
