"""Transforms of single elements: calls, choices, numbers, states, resampling.

None of these transforms writes into an element: many may hold it, a cache among them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._logging import logger
from mirrored.data.caching import Cached as Cached  # Earlier pickles name it as one of these.
from mirrored.data.elements import (
    Element,
    Elements,
    Failure,
    Form,
    FormCheck,
    Succeeding,
    call_with,
    check_callable,
    host_scope,
    specs_of,
    succeeded,
    to_element,
    to_leaf,
    to_tensors,
)
from mirrored.data.leaf_specs import LeafSpec, NestedSpec
from mirrored.data.replayed_functions import ReplayedFunction
from mirrored.data.rng import Iteration, Rng
from mirrored.data.transform import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Derived,
    Following,
    Slices,
    Transform,
    named,
    results_of,
)
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import graph_scope
from mirrored.ops.rng_state import drawing_from

# ---------------------------------------------------------------------------- users' functions


class Mapped(Following):
    """The results of a function for each element."""

    drops_batches = True
    rng: Rng

    def __init__(self, source: Transform, function: Callable[..., Any]) -> None:
        super().__init__(source)
        self.known = False
        self._function = ReplayedFunction(function)
        self.rng = Rng()

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of the results."""
        label, check = "What `map_func` returned", FormCheck()

        def convert(value: Any) -> Element:
            # A list is a tuple of results, as in TensorFlow.
            value = tuple(value) if isinstance(value, list) else value
            return check(to_element(value, label), label)

        def step(_: int, element: Element) -> Iterable[Element]:
            return (self._function(element, convert),)

        return results_of(elements, step, "map", self.rng.call_draws(iteration))


class Filtered(Derived):
    """The elements for which a predicate is true."""

    rng: Rng
    _method, _ends = "filter", False  # The second: whether nothing comes after one that is not.

    def __init__(self, source: Transform, predicate: Callable[..., Any]) -> None:
        super().__init__(source)
        self._predicate = ReplayedFunction(predicate)
        self.rng = Rng()
        if source.cardinality != 0:
            self.cardinality = UNKNOWN_CARDINALITY

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""

        def step(_: int, element: Element) -> Iterable[Element] | None:
            if self._predicate(element, self._checked):
                return (element,)
            return None if self._ends else ()

        return results_of(elements, step, self._method, self.rng.call_draws(iteration))

    def _checked(self, value: Any) -> NDArray[Any]:
        kept = np.asarray(value)
        if kept.shape != () or kept.dtype != np.bool_:
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `mr.bool` scalar tensor, but its "
                f"return type is shape={kept.shape}, dtype={kept.dtype.name}. Return a "
                "comparison, as in `x > 0`."
            )
        return kept


class TakenWhile(Filtered):
    """The elements before the first one for which a predicate is false."""

    _method, _ends = "take_while", True

    def __init__(self, source: Transform, predicate: Callable[..., Any]) -> None:
        super().__init__(source, predicate)
        self.cardinality = UNKNOWN_CARDINALITY


# ---------------------------------------------------------------------------- which elements


class Chosen(Derived):
    """The elements from one number to before another, or to the end, or every `step`-th of them."""

    def __init__(self, source: Transform, start: int, stop: int | None, step: int = 1) -> None:
        super().__init__(source)
        self._which = start, stop, step
        if source.cardinality >= 0:
            self.cardinality = len(range(source.cardinality)[start:stop:step])
        elif source.cardinality == INFINITE_CARDINALITY and stop is not None:
            self.cardinality = len(range(start, stop, step))
        elif stop == 0:
            self.cardinality = 0

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        start, stop, step = self._which
        left = None if stop is None else len(range(start, stop, step))
        if left == 0:
            return
        to_skip = between = start
        for element in elements:
            if type(element) is Failure:  # It has no number; skipping begins again after it.
                to_skip = between if to_skip else 0
                yield element
            elif to_skip:
                to_skip -= 1
            else:
                yield element
                to_skip = between = step - 1
                left = None if left is None else left - 1
                if left == 0:
                    return


def chosen(source: Transform, start: int, stop: int | None) -> Transform:
    """Return the elements from one number to before another; rows of arrays stay rows of arrays."""
    if isinstance(source, Slices):
        return source.part(start, source.cardinality if stop is None else stop)
    return Chosen(source, start, stop)


class Ignored(Following):
    """The elements without those that raised an error.

    Args:
        source: The transform of the elements.
        logs: Whether each error is a warning of the log.
    """

    # What a program that is wrong raises: TensorFlow would when it builds the dataset.
    _wrong = (NameError, AttributeError, TypeError, ImportError)

    def __init__(self, source: Transform, *, logs: bool) -> None:
        super().__init__(source)
        self.cardinality = UNKNOWN_CARDINALITY
        self._logs = logs

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        for element in elements:
            if type(element) is not Failure or isinstance(element.error, self._wrong):
                yield element
            elif self._logs:
                logger.warning("Error raised with error message %s", element.error)

    def first(self) -> Element:
        """Return the first of them; without any, raise the error of the first that was tried."""
        with closing(self.open(_first_iteration(self))) as elements:
            for element in elements:
                return succeeded(element)
        return self._source.first()

    def specs(self) -> Any:
        """Return those of the other transform, or the structure of the first of them."""
        return self._source.specs() if self.known else super().specs()


def _first_iteration(transform: Transform) -> Iteration:
    """Return the first iteration over a transform, which counts as none."""
    return Iteration(sources=tuple(map(_first_iteration, transform.sources)))


class Unique(Derived):
    """The elements that differ from all before them: of one array of integers."""

    def __init__(self, source: Transform) -> None:
        super().__init__(source)
        self.cardinality = UNKNOWN_CARDINALITY
        if source.known:
            _check_unique(source.specs())

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        met: set[Any] = set()

        def step(_: int, element: Element) -> Iterable[Element]:
            _check_unique(specs_of(element))
            (leaf,) = _nest.flatten(element)
            key = leaf.shape, leaf.tobytes()
            if key in met:
                return ()
            met.add(key)
            return (element,)

        return results_of(elements, step)


def _check_unique(specs: Any) -> None:
    leaves = _nest.flatten(specs)
    for leaf in leaves:
        if isinstance(leaf, NestedSpec) or leaf.dtype not in (np.int32, np.int64):
            kind = "of datasets" if isinstance(leaf, NestedSpec) else leaf.dtype.name
            raise TypeError(
                f"`tf.data.Dataset.unique` does not support type {kind} -- only `mr.int32` and "
                "`mr.int64` are supported. Use `filter` with a function that keeps the values."
            )
    if len(leaves) > 1:
        raise InvalidArgumentError(
            "`unique` only supports inputs with a single component. Received: elements of "
            f"{len(leaves)}."
        )


class Enumerated(Following):
    """Pairs of a number and an element."""

    def __init__(self, source: Transform, start: int) -> None:
        super().__init__(source)
        self._start = start

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of pairs."""
        for number, element in enumerate(elements, self._start):
            failed = type(element) is Failure
            yield element if failed else (np.array(number, np.int64), element)

    def specs(self) -> Any:
        """Return those of a pair."""
        return LeafSpec((), np.dtype(np.int64)), self._source.specs()


class Asserted(Derived):
    """Elements whose number is declared, and checked by each iteration."""

    def __init__(self, source: Transform, cardinality: int) -> None:
        super().__init__(source)
        self.cardinality = cardinality

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return their iterator, which raises where they are more or fewer."""
        said, count = self.cardinality, 0
        for element in elements:
            if type(element) is not Failure:
                if count == said:
                    raise _miscounted(said, f"at least {count + 1}")
                count += 1
            yield element
        if count != said:
            raise _miscounted(said, str(count))


def _miscounted(said: int, count: str) -> InvalidArgumentError:
    text = "an infinite number of" if said == INFINITE_CARDINALITY else said
    return InvalidArgumentError(
        f"Input dataset was expected to contain {text} elements but contained {count} elements. "
        "Pass this number to `assert_cardinality`."
    )


# ------------------------------------------------------------------------------------------- states


class States:
    """The states of a user's function, each computed from the one before.

    Args:
        initial: The first one, as the user gave it.
        argument: The name of the function's argument, for errors.
        function: From a state and an element to what `call` returns.
    """

    def __init__(self, initial: Any, argument: str, function: Callable[..., Any]) -> None:
        check_callable(argument, function)
        self.initial = to_element(initial, "`initial_state`")
        self._argument, self._function = argument, function
        self._form = Form(self.initial)

    def call(self, state: Element, element: Element) -> Any:
        """Return the result of the function for a state and an element."""
        with host_scope(), graph_scope():
            return self._function(to_tensors(state), to_tensors(element))

    def following(self, value: Any) -> Element:
        """Return a new state, after checking that it has the structure of the first."""
        state = to_element(value, f"What `{self._argument}` returned")
        leaves, firsts = _nest.flatten(state), _nest.flatten(self.initial)
        if len(leaves) != len(firsts):
            raise InvalidArgumentError(
                "The number of components of the initial state and the new state differ: "
                f"{len(firsts)} and {len(leaves)}. Return the components of `initial_state` from "
                f"`{self._argument}`."
            )
        types = [[array.dtype.name for array in arrays] for arrays in (firsts, leaves)]
        if types[0] != types[1]:
            raise TypeError(
                "The element types for the new state must match the initial state. Expected "
                f"{types[0]} but got {types[1]}, from `{self._argument}`. Use one dtype for both, "
                "for example with mr.cast."
            )
        return self._form.pack(leaves)


def reduced(elements: Succeeding, states: States) -> Element:
    """Return the last state."""
    state = states.initial
    with closing(elements):
        for index, element in enumerate(elements):
            with named("reduce", index):
                value = states.call(state, element)
                # A list is a tuple of results, as in TensorFlow.
                state = states.following(tuple(value) if isinstance(value, list) else value)
    return state


class Scanned(Following):
    """The results of a function that also returns the next state, for each element.

    Args:
        source: The transform of the elements.
        states: The function, from a state and an element to the next state and a result.
    """

    rng: Rng

    def __init__(self, source: Transform, states: States) -> None:
        super().__init__(source)
        self.known = False
        self._states = states
        self.rng = Rng()

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of the results."""
        state, label, check = self._states.initial, "What `scan_func` returned", FormCheck()

        def step(_: int, element: Element) -> Iterable[Element]:
            nonlocal state
            pair = self._states.call(state, element)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(
                    "Invalid `scan_func`. `scan_func` should return a pair consisting of new state "
                    f"and the output value but its return type is {type(pair)!r}. Received: "
                    f"{pair!r:.200}."
                )
            state, result = self._states.following(pair[0]), to_element(pair[1], label)
            return (check(result, label),)

        return results_of(elements, step, "scan", self.rng.call_draws(iteration))


_SEEN_BEFORE = 10  # Of each class, where nobody says what there is: as TensorFlow has it.


# --------------------------------------------------------------------------------------- resampling


class Resampled(Following):
    """Pairs of a class and an element.

    Args:
        source: The transform of the elements.
        class_of: From an element to its class, an integer.
        target: The part that each class is to have.
        initial: The part that it has; None: that is estimated from the elements so far.
        rng: The random state to draw from.
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
        self.known = False
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
            ratios = np.divide(self._target, parts, out=np.zeros(len(parts)), where=parts > 0)
            is_accepted = generator.random() < ratios[label] / (ratios.max() or 1.0)
            return (pair,) if is_accepted else ()

        return results_of(elements, step, "rejection_resample", draws)

    def _labelled(self, element: Element) -> tuple[int, Element]:
        label = to_leaf(call_with(self._class_of, element))
        if label.shape != () or label.dtype.kind not in "iu":
            raise TypeError(
                f"`class_func` must return an integer scalar. Received: shape={label.shape}, "
                f"dtype={label.dtype.name}."
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


def parts_of_classes(name: str, value: Any, classes: int | None = None) -> NDArray[Any]:
    """Return the part of each class that an argument of `rejection_resample` has."""
    parts = np.asarray(to_leaf(value), np.float64)
    if parts.ndim != 1 or not len(parts) or classes not in (None, len(parts)):
        wanted = "one number per class" if classes is None else f"{classes} numbers"
        raise InvalidArgumentError(
            f"`{name}` must be a list of {wanted}. Received: {value!r:.200}."
        )
    if not (parts >= 0).all() or not parts.any():
        raise InvalidArgumentError(
            f"`{name}` must have the fraction of each class. Fractions must not be negative, and "
            f"not all 0. Received: {value!r:.200}."
        )
    return parts
