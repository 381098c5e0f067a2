"""What programs ask and say about recorded functions and order."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError


def test_questions() -> None:
    asked: list[Any] = []

    @mr.function
    def step(x: Any) -> Any:
        asked.extend([mr.executing_eagerly(), mr.is_symbolic_tensor(x), mr.is_tensor(x)])
        asked.extend([mr.get_static_value(x), mr.get_static_value(mr.shape(x) * 2).tolist()])
        return x

    step(mr.ones(3))
    assert asked == [False, True, True, None, [6]]
    assert mr.executing_eagerly()
    v = mr.Variable(2.0)
    assert [mr.is_tensor(each) for each in (v, 2.0, [v], None)] == [True, False, False, False]
    assert [mr.get_static_value(each) for each in (v, 3, mr.constant(2.0))] == [None, 3, 2.0]


def test_init_scope() -> None:
    kept: dict[str, Any] = {}
    v = mr.Variable(1.0)

    @mr.function
    def step(x: Any) -> Any:
        with mr.init_scope():
            assert mr.executing_eagerly()
            v.assign_add(1.0)
            kept.setdefault("made", mr.Variable(4.0))
        return x * kept["made"] * v

    with mr.GradientTape() as tape:
        tape.watch(x := mr.constant(3.0))
        with mr.init_scope():
            y = x * x
    assert tape.gradient(y, x) is None
    assert [float(step(x)), float(step(x)), float(v)] == [24.0, 24.0, 2.0]

    @mr.function
    def outside(x: Any) -> Any:
        with mr.init_scope():
            return x * 2.0

    with pytest.raises(OperatorNotAllowedInGraphError, match="no value outside of it"):
        outside(x)


@pytest.mark.parametrize("recorded", [False, True])
def test_order_is_the_program_s(recorded: bool) -> None:
    v = mr.Variable(1.0)

    def step() -> Any:
        with mr.control_dependencies([v.assign_add(1.0)]):
            y = v * 10.0
        assert mr.group(v.assign_add(1.0), mr.no_op(), name="both") is None
        return mr.identity_n([y, v])

    found = (mr.function(step) if recorded else step)()
    assert [float(each) for each in found] == [20.0, 3.0]
    with pytest.raises(TypeError, match="not iterable"):
        mr.control_dependencies(3.0)
    with pytest.raises(InvalidArgumentError, match="must be at least minimum 1"):
        mr.identity_n([])


def dense() -> Any:
    layer = mr.layers.Dense(1, name="d")
    layer.build((None, 1))
    return layer.kernel


MADE: dict[str, tuple[list[str], Callable[[], Any], str]] = {
    "nested": (["a", "b"], lambda: mr.Variable(1.0, name="v"), "a/b/v:0"),
    "without a name": (["a"], lambda: mr.Variable(1.0), "a/Variable:0"),
    "whole": (["a", "b/"], lambda: mr.Variable(1.0, name="v"), "b/v:0"),
    "empty": (["a", ""], lambda: mr.Variable(1.0, name="v"), "v:0"),
    "a layer's": (["a"], dense, "d/kernel:0"),
    "a metric's": (["a"], lambda: mr.metrics.Mean(name="m").variables[0], "m/total:0"),
    "an optimizer's": (["a"], lambda: mr.optim.SGD().variables[-1], "learning_rate:0"),
}


@cases(("scopes", "make", "expected"), MADE.values(), ids=MADE)
def test_names(scopes: list[str], make: Callable[[], Any], expected: str) -> None:
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            whole = stack.enter_context(mr.name_scope(scope))
        assert mr.get_current_name_scope() == whole.rstrip("/")
        assert make().name == expected


def test_scopes_do_not_reach_into_recorded_functions() -> None:
    made: list[Any] = []

    @mr.function
    def step() -> Any:
        with mr.name_scope("inner"):
            if not made:
                made.append(mr.Variable(1.0, name="w"))
        return made[0] * 1.0

    with mr.name_scope("outer"):
        step()
    assert made[0].name == "inner/w:0"
