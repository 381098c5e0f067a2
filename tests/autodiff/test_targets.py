"""Gradients of what is a source itself: a variable, a tensor, values of both on replicas.

The numbers are TensorFlow 2.21's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

ONES = [1.0, 1.0]


class Values:
    """Variables and tensors; `read` is what the variable was when the tape was open."""

    def __init__(self) -> None:
        self.v = mr.Variable([2.0, 3.0])
        self.w = mr.Variable([1.0, 1.0])
        self.frozen = mr.Variable([4.0, 5.0], trainable=False)
        self.whole = mr.Variable([1, 2])
        self.c = mr.constant([1.0, 2.0])
        self.other = mr.constant([1.0, 2.0])
        self.read: Any = None
        self.square: Any = None

    def compute(self, tape: mr.GradientTape) -> None:
        tape.watch(self.c)
        self.read = self.v.read_value()
        self.square = self.v * self.v
        self.c_square = self.c * self.c


Pick = Callable[[Values], Any]
TABLE: dict[str, tuple[Pick, Pick, Any]] = {
    "a variable": (lambda k: k.v, lambda k: k.v, ONES),
    "a variable that was never read": (lambda k: k.w, lambda k: k.w, ONES),
    "another variable": (lambda k: k.v, lambda k: k.w, None),
    "two sources": (lambda k: k.v, lambda k: [k.v, k.w], [ONES, None]),
    "twice": (lambda k: [k.v, k.v], lambda k: k.v, [2.0, 2.0]),
    "with what is computed from it": (lambda k: [k.v, k.square], lambda k: k.v, [5.0, 7.0]),
    "a variable that is not trainable": (lambda k: k.frozen, lambda k: k.frozen, ONES),
    "a variable of integers": (lambda k: k.whole, lambda k: k.whole, [1, 1]),
    "a watched tensor": (lambda k: k.c, lambda k: k.c, ONES),
    "a watched tensor and its square": (lambda k: [k.c, k.c_square], lambda k: k.c, [3.0, 5.0]),
    "a tensor that is not watched": (lambda k: k.other, lambda k: k.other, ONES),
    "such a tensor, by a variable": (lambda k: k.other, lambda k: k.v, None),
    "a result": (lambda k: k.square, lambda k: k.square, ONES),
    "a result, and by a variable": (lambda k: k.square, lambda k: [k.square, k.v], [ONES, [4, 6]]),
    "what was read": (lambda k: k.read, lambda k: k.v, ONES),
    "what was read, by itself": (lambda k: k.read, lambda k: k.read, ONES),
    "a variable, by what was read": (lambda k: k.v, lambda k: k.read, None),
}


def listed(found: Any) -> Any:
    if isinstance(found, list | tuple):
        return [listed(each) for each in found]
    return None if found is None else found.numpy().tolist()


@pytest.mark.behaviour("gradient-of-itself")
@cases("persistent", [False, True])
@cases(("target", "source", "expected"), TABLE.values(), ids=TABLE)
def test_a_target_that_is_a_source(
    target: Pick, source: Pick, expected: Any, persistent: bool
) -> None:
    k = Values()
    with mr.GradientTape(persistent=persistent) as tape:
        k.compute(tape)
    for _ in range(1 + persistent):
        assert listed(tape.gradient(target(k), source(k))) == expected
        k.v.assign_add(ONES)  # What was computed stays.


def test_what_flows_in() -> None:
    k = Values()
    with mr.GradientTape(persistent=True) as tape:
        k.compute(tape)
    given = mr.constant([5.0, 6.0])
    assert listed(tape.gradient(k.v, k.v, output_gradients=given)) == [5.0, 6.0]
    both = tape.gradient([k.v, k.square], k.v, output_gradients=[given, given])
    assert listed(both) == [5.0 * (1 + 4), 6.0 * (1 + 6)]
    with pytest.raises(ValueError, match="must have the shape of its target"):
        tape.gradient(k.v, k.v, output_gradients=mr.ones((3,)))
    assert listed(tape.gradient(k.v, [k.v, k.w], unconnected_gradients="zero")) == [
        ONES,
        [0.0, 0.0],
    ]


def test_second_order() -> None:
    k = Values()
    with mr.GradientTape(persistent=True) as outer:
        with mr.GradientTape(persistent=True) as inner:
            square = k.v * k.v
        itself = inner.gradient(k.v, k.v)
        both = inner.gradient([square, k.v], k.v)
        flows = inner.gradient(k.v, k.v, output_gradients=k.v)
    assert [listed(each) for each in (itself, both, flows)] == [ONES, [5.0, 7.0], [2.0, 3.0]]
    assert listed([outer.gradient(each, k.v) for each in (itself, both, flows)]) == [
        None,
        [2.0, 2.0],
        ONES,
    ]


def test_a_variable_is_not_read_for_its_own_gradient() -> None:
    k = Values()
    with mr.GradientTape() as tape:
        pass
    tape.gradient(k.v, k.v)
    assert tape.watched_variables() == ()


@cases("recorded", [False, True])
@cases("mode", ["ON_WRITE", "ON_READ"])
def test_variables_of_replicas(mode: str, recorded: bool, simulate: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(
            2.0,
            trainable=True,
            synchronization=mr.VariableSynchronization[mode],
            aggregation=mr.VariableAggregation.SUM,
        )

    def gradients() -> Any:
        with mr.GradientTape(persistent=True) as tape:
            square = v * v
        return tape.gradient(v, v), tape.gradient([v, square], v)

    def run() -> Any:
        return strategy.run(gradients)

    itself, both = (mr.function(run) if recorded else run)()
    parts = [strategy.experimental_local_results(each) for each in (itself, both)]
    assert np.array(parts).tolist() == [[1.0, 1.0], [5.0, 5.0]]
    itself, both = gradients()  # The copies of a sum that is read are summed.
    assert [float(itself), float(both)] == [1.0, 5.0 if mode == "ON_WRITE" else 9.0]
