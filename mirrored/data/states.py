"""Functions that take a state along from element to element: `reduce` and `scan`.

A state is made of arrays, as elements are, and keeps its structure and its dtypes.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

from mirrored import _nest
from mirrored.data.failures import Succeeding
from mirrored.data.rng import Iteration, Rng
from mirrored.data.spec import (
    Element,
    Elements,
    Form,
    FormCheck,
    check_callable,
    host_scope,
    to_element,
    to_tensors,
)
from mirrored.data.transform import Following, Transform, named, results_of
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import graph_scope


class States:
    """The states that a user's function makes, one of another.

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
        """Return what the function makes of a state and an element."""
        with host_scope(), graph_scope():
            return self._function(to_tensors(state), to_tensors(element))

    def following(self, value: Any) -> Element:
        """Return a state that the function returned, if it is one like the first."""
        state = to_element(value, f"What `{self._argument}` returned")
        leaves, firsts = _nest.flatten(state), _nest.flatten(self.initial)
        if len(leaves) != len(firsts):
            raise InvalidArgumentError(
                f"The number of components of the initial state and the new state differ: "
                f"{len(firsts)} and {len(leaves)}. Return from `{self._argument}` what "
                "`initial_state` is made of."
            )
        types = [[array.dtype.name for array in arrays] for arrays in (firsts, leaves)]
        if types[0] != types[1]:
            raise TypeError(
                "The element types for the new state must match the initial state. Expected "
                f"{types[0]} but got {types[1]}, from `{self._argument}`. Give both one dtype, "
                "as with mr.cast."
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
    """What a function returns beside the next state, for each element.

    Args:
        source: What gives the elements.
        states: The function, from a state and an element to the next state and a result.
    """

    rng: Rng

    def __init__(self, source: Transform, states: States) -> None:
        super().__init__(source)
        self._states = states
        self.rng = Rng()

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of the results."""
        state = self._states.initial
        check = FormCheck()

        def step(_: int, element: Element) -> Iterable[Element]:
            nonlocal state
            state, result = self._next(state, element)
            return (check(result, "What `scan_func` returned"),)

        return results_of(elements, step, "scan", self.rng.call_draws(iteration))

    def _next(self, state: Element, element: Element) -> tuple[Element, Element]:
        pair = self._states.call(state, element)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                "Invalid `scan_func`. `scan_func` should return a pair consisting of new state "
                f"and the output value but its return type is {type(pair)!r}. Received: "
                f"{pair!r:.200}."
            )
        return self._states.following(pair[0]), to_element(pair[1], "What `scan_func` returned")
