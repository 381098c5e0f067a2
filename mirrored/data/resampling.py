"""Elements of which some are left out, so that classes come in given proportions.

An element is accepted with a probability that is its class's wanted part over its part so far.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.data.rng import Iteration, Rng
from mirrored.data.spec import Element, Elements, call_with, to_leaf
from mirrored.data.transform import UNKNOWN_CARDINALITY, Following, Transform, named, results_of
from mirrored.errors import InvalidArgumentError
from mirrored.ops.rng_state import drawing_from

_SEEN_BEFORE = 10  # Of each class, where nobody says what there is: as TensorFlow has it.


class Resampled(Following):
    """Pairs of a class and an element.

    Args:
        source: What gives the elements.
        class_of: From an element to its class, an integer.
        target: The part that each class is to have.
        initial: The part that it has; None: that is estimated from the elements so far.
        rng: What is drawn from.
    """

    rng: Rng

    def __init__(
        self,
        source: Transform,
        class_of: Callable[..., Any],
        target: NDArray[Any],
        initial: NDArray[Any] | None,
        rng: Rng,
    ) -> None:
        super().__init__(source)
        self._class_of, self._target, self._initial = class_of, target, initial
        self.rng = rng
        if initial is None or not np.array_equal(initial, target):
            self.cardinality = UNKNOWN_CARDINALITY

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of the pairs whose elements are accepted."""
        draws = self.rng.call_draws(iteration)
        generator = draws.generator()
        seen = np.full(len(self._target), float(_SEEN_BEFORE))

        def step(_: int, element: Element) -> Iterable[Element]:
            label, pair = self._labelled(element)
            seen[label] += 1
            parts = seen / seen.sum() if self._initial is None else self._initial
            is_accepted = generator.random() < _acceptance(self._target, parts)[label]
            return (pair,) if is_accepted else ()

        return results_of(elements, step, "rejection_resample", draws)

    def _labelled(self, element: Element) -> tuple[int, Element]:
        label = to_leaf(call_with(self._class_of, element))
        if label.shape != () or label.dtype.kind not in "iu":
            raise TypeError(
                "`class_func` returns an integer scalar. Received: "
                f"shape={label.shape}, dtype={label.dtype.name}."
            )
        if not 0 <= label < len(self._target):
            raise InvalidArgumentError(
                f"`class_func` returned {label}, and there are {len(self._target)} classes in "
                "`target_dist`. Return a number below that."
            )
        return int(label), (label, element)

    def first(self) -> Element:
        """Return a pair."""
        element = self._source.first()
        with named("rejection_resample", 0), drawing_from(self.rng.call_draws(Iteration())):
            return self._labelled(element)[1]


def _acceptance(target: NDArray[Any], parts: NDArray[Any]) -> NDArray[Any]:
    """Return the probabilities by which elements of each class are accepted."""
    ratios = np.divide(target, parts, out=np.zeros(len(target)), where=parts > 0)
    accepted: NDArray[Any] = ratios / (ratios.max() or 1.0)
    return accepted


def parts_of_classes(name: str, value: Any, classes: int | None = None) -> NDArray[Any]:
    """Return the part of each class that an argument of `rejection_resample` has."""
    parts = np.asarray(to_leaf(value), np.float64)
    if parts.ndim != 1 or not len(parts) or classes not in (None, len(parts)):
        wanted = "a number for each class" if classes is None else f"{classes} numbers"
        raise InvalidArgumentError(f"`{name}` is a list of {wanted}. Received: {value!r:.200}.")
    if not (parts >= 0).all() or not parts.any():
        raise InvalidArgumentError(
            f"`{name}` has the part of each class, of which none is negative and not all are 0. "
            f"Received: {value!r:.200}."
        )
    return parts
