"""Choosing among functions, eagerly and recorded. The numbers are TensorFlow 2.21's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from listing import listed

import mirrored as mr
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError


def never() -> Any:
    raise AssertionError("it is not called")


def number(value: Any) -> Callable[[], Any]:
    return lambda: mr.constant(value)


# Functions of a 3, and what they return; or the error and a part of its text.
X = Callable[[Any], Any]
EAGER: dict[str, tuple[X, Any]] = {
    "true": (lambda x: mr.cond(x > 0, number(1), never), 1),
    "false": (lambda x: mr.cond(x < 0, never, number(2)), 2),
    "number": (lambda x: mr.cond(x, number(1), never), 1),
    "python": (lambda x: mr.cond(x.shape == (), number(1), never), 1),
    "variable": (lambda x: mr.cond(mr.Variable(False), never, lambda: [x, None]), [3, None]),
    "several": (lambda x: mr.cond(x > [0, 1], never, never), (ValueError, "ambiguous")),
    "none": (lambda x: mr.cond(None, never, never), (ValueError, "unsupported type")),
    "no function": (lambda x: mr.cond(x > 0, never), (TypeError, "'false_fn' argument required")),
    "a tensor": (lambda x: mr.cond(x > 0, x, never), (TypeError, "'true_fn' must be callable")),
    "first": (
        lambda x: mr.case([(x < 1, never), (x < 5, number(2)), (x < 9, never)], default=never),
        2,
    ),
    "default": (lambda x: mr.case([(x < 1, never)], default=number(7)), 7),
    "last": (lambda x: mr.case([(x < 1, never), (x < 5, number(2))]), 2),
    "no case": (lambda x: mr.case([(x < 1, never)]), (InvalidArgumentError, "None of conditions")),
    "exclusive": (
        lambda x: mr.case([(x < 5, never), (x < 9, never)], default=never, exclusive=True),
        (InvalidArgumentError, "more than 1 conditions hold"),
    ),
    "no pairs": (lambda x: mr.case([]), (ValueError, "must have at least one pair")),
    "no pair": (lambda x: mr.case([[x < 1, never]]), (TypeError, "must be a 2-tuple")),
    "no boolean": (lambda x: mr.case([(x, never)]), (TypeError, "Tensor of type bool")),
    "python's": (lambda x: mr.case([(True, never)]), (TypeError, "pred must be a Tensor")),
    "case of none": (lambda x: mr.case([(x < 5, x)]), (TypeError, "must be callable")),
    "case of text": (lambda x: mr.case("ab"), (TypeError, "must be a list, tuple, or dict")),
    "switch": (lambda x: mr.switch_case(x, [never, never, never, number(4), never]), 4),
    "switch beyond": (lambda x: mr.switch_case(x, [never, number(2)]), 2),
    "switch below": (lambda x: mr.switch_case(-x, [never, never], default=number(9)), 9),
    "switch dict": (lambda x: mr.switch_case(x - 2, {1: number(5), 0: never}), 5),
    "switch pairs": (lambda x: mr.switch_case(x - 2, [(1, number(5)), (0, never)]), 5),
    "switch gap": (lambda x: mr.switch_case(x, {1: never, 3: never}), (ValueError, "contiguous")),
    "switch nothing": (lambda x: mr.switch_case(x, []), (ValueError, "at least one item")),
    "switch python": (lambda x: mr.switch_case(1, [never]), (TypeError, "must be a Tensor")),
    "switch float": (
        lambda x: mr.switch_case(mr.cast(x, "float32"), [never]),
        (TypeError, "integer Tensor"),
    ),
    "switch vector": (
        lambda x: mr.switch_case(mr.constant([1]), [never]),
        (InvalidArgumentError, "must be a scalar"),
    ),
    "switch text": (lambda x: mr.switch_case(x, "ab"), (TypeError, "list, tuple, or dict")),
    "switch tensors": (lambda x: mr.switch_case(x, [x]), (TypeError, "must be a 2-tuple")),
    "switch names": (lambda x: mr.switch_case(x, {"a": never}), (TypeError, "Python `int`")),
    "switch values": (lambda x: mr.switch_case(x, {0: x}), (TypeError, "must be callable")),
}


@cases(("function", "expected"), EAGER.values(), ids=EAGER)
def test_eagerly(function: X, expected: Any) -> None:
    x = mr.constant(3)
    if isinstance(expected, tuple):
        with pytest.raises(expected[0], match=expected[1]):
            function(x)
    else:
        assert listed(function(x)) == expected


def logarithm(x: Any) -> Any:
    return mr.cond(x > 0.0, lambda: mr.log(x), lambda: x * 3.0)


def reciprocal(x: Any) -> Any:
    return mr.cond(mr.equal(x, 0.0), lambda: x * 7.0, lambda: 1.0 / x)


def nested(x: Any) -> Any:
    return mr.cond(
        x > 0.0,
        lambda: mr.cond(x > 1.0, lambda: x**3.0, lambda: mr.sqrt(x)),
        lambda: mr.exp(x),
    )


def several(x: Any) -> Any:
    first, (second, _) = mr.cond(
        x > 0.0, lambda: (x, [x * x, None]), lambda: (x * 3.0, [2.0, None])
    )
    return first * second


def by_number(x: Any) -> Any:
    number = mr.cast(x, "int32")
    return mr.switch_case(number, [lambda: x * 2.0, lambda: x, lambda: x**4.0], lambda: -x)


def by_case(x: Any) -> Any:
    pairs = [(x < 0.0, lambda: x * x), (x < 1.0, lambda: x), (x < 9.0, lambda: mr.log(x))]
    return mr.case(pairs)


def after(x: Any) -> Any:
    y = x * 2.0
    return logarithm(y) * x


@pytest.mark.behaviour("recorded-branches")
@cases("function", [logarithm, reciprocal, nested, several, by_number, by_case, after])
@cases("value", [-2.0, 0.0, 0.25, 2.0])
def test_a_recorded_choice_is_that_of_python(function: X, value: float) -> None:
    """Values, gradients and gradients of gradients: what the other function gives is not seen."""

    def step(x: Any) -> Any:
        with mr.GradientTape() as outer:
            outer.watch(x)
            with mr.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            by_once = inner.gradient(y, x, unconnected_gradients="zero")
        return y, by_once, outer.gradient(by_once, x, unconnected_gradients="zero")

    x = mr.constant(value)
    expected = listed(step(x))
    assert np.isfinite(expected).all()
    assert listed(mr.function(step)(x)) == pytest.approx(expected)


@pytest.mark.parametrize("value", [-2.0, 2.0])
def test_variables_and_replicas(value: float, simulate: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(5.0)

    def replica(x: Any) -> Any:
        with mr.GradientTape() as tape:
            y = mr.cond(x > 0.0, lambda: v * x, lambda: v * v)
        assert [each is v for each in tape.watched_variables()] == [True]
        return y, tape.gradient(y, v)

    run = mr.function(lambda x: strategy.run(replica, (x,)))
    found = [strategy.experimental_local_results(each) for each in run(mr.constant(value))]
    assert listed(found) == [[25.0] * 2, [10.0] * 2] if value < 0 else [[10.0] * 2, [2.0] * 2]


REFUSED: dict[str, tuple[X, type[Exception], str]] = {
    "structure": (
        lambda x: mr.cond(x > 0.0, lambda: x, lambda: [x]),
        TypeError,
        "structures differ",
    ),
    "dtype": (lambda x: mr.cond(x > 0.0, lambda: x, lambda: 2), TypeError, "float32 and int32"),
    "shape": (
        lambda x: mr.cond(x > 0.0, lambda: x, lambda: [x, x]),
        TypeError,
        "structures differ",
    ),
    "none": (lambda x: mr.cond(x > 0.0, lambda: x, lambda: None), ValueError, "returns None"),
    "sizes": (
        lambda x: mr.cond(x > 0.0, lambda: x, lambda: mr.ones(2)),
        ValueError,
        r"shapes \(\) and \(2,\)",
    ),
    "no boolean": (
        lambda x: mr.cond(x, lambda: x, lambda: x),
        InvalidArgumentError,
        "expected bool",
    ),
    "vector": (
        lambda x: mr.cond(mr.ones(2) * x > 0.0, lambda: x, lambda: x),
        InvalidArgumentError,
        r"it has shape \[2\]",
    ),
    "random": (
        lambda x: mr.cond(x > 0.0, lambda: mr.random.normal(()), lambda: x),
        InvalidArgumentError,
        "draws random numbers",
    ),
    "checks": (
        lambda x: mr.cond(x > 0.0, lambda: 7 // mr.cast(x, "int32"), lambda: 0),
        InvalidArgumentError,
        "calls FloorDiv, which may refuse",
    ),
    "prints": (
        lambda x: mr.cond(x > 0.0, lambda: mr.print(x), lambda: None),
        InvalidArgumentError,
        "prints or checks values, by PrintV2",
    ),
    "case": (
        lambda x: mr.case([(x < 0.0, lambda: x)]),
        InvalidArgumentError,
        "None of conditions",
    ),
    "exclusive": (
        lambda x: mr.case([(x > 0.0, lambda: x), (x < 2.0, lambda: x)], lambda: x, exclusive=True),
        InvalidArgumentError,
        "more than 1 conditions hold",
    ),
    "if": (lambda x: x if x > 0.0 else -x, OperatorNotAllowedInGraphError, "mr.where, mr.cond"),
    "if inside": (
        lambda x: mr.cond(x > 0.0, lambda: x if x > 0.0 else -x, lambda: x),
        OperatorNotAllowedInGraphError,
        "mr.where, mr.cond",
    ),
}


@pytest.mark.behaviour("recorded-branches")
@cases(("function", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_what_a_recorded_function_refuses(function: X, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        mr.function(function)(mr.constant(1.0))


def counting(v: Any, w: Any) -> Any:
    """Return a step that writes variables in branches, and reads what they wrote."""

    def up(x: Any) -> Any:
        v.assign_add(x)
        w.assign(v * w)
        return v * 2.0

    def down(x: Any) -> Any:
        return mr.cond(x < -1.0, lambda: v.assign_sub(10.0), lambda: w * 1.0)

    def step(x: Any) -> Any:
        with mr.GradientTape() as tape:
            tape.watch(x)
            y = mr.cond(x > 0.0, lambda: up(x) * x, lambda: down(x) * x)
        v.assign_add(100.0)  # The gradient is of the values that were read.
        return y, tape.gradient(y, [x, v, w]), v * 1.0, w * 1.0

    return step


@pytest.mark.behaviour("recorded-branches")
@cases("value", [3.0, -0.5, -2.0])
def test_variables_are_written_by_the_function_that_is_taken(value: float) -> None:
    found = []
    for wrap in (lambda step: step, mr.function):
        step = wrap(counting(mr.Variable(5.0), mr.Variable(7.0)))
        found.append([listed(step(mr.constant(value))) for _ in range(2)])
    (first, again), (expected, expected_again) = found[1], found[0]
    for got, wanted in ((first, expected), (again, expected_again)):
        assert [got[0], got[2], got[3]] == [wanted[0], wanted[2], wanted[3]]
        assert got[1] == [each or 0.0 for each in wanted[1]]


def test_an_optimizer_steps_in_a_branch() -> None:
    """As where gradients are added up for some steps."""

    def trained(recorded: bool) -> Any:
        layer = mr.layers.Dense(2, kernel_initializer="ones")
        layer.build((None, 3))
        optimizer = mr.optim.Adam(0.5)
        optimizer.build(layer.weights)

        def step(x: Any, applies: Any) -> None:
            with mr.GradientTape() as tape:
                loss = mr.reduce_sum(layer(x) ** 2.0)
            gradients = tape.gradient(loss, layer.weights)
            mr.cond(applies, lambda: optimizer.apply(gradients, layer.weights), lambda: None)

        run = mr.function(step) if recorded else step
        for flag in (False, True, False, True):
            run(mr.ones((2, 3)), mr.constant(flag))
        return [layer.weights[0], optimizer.iterations]

    found = trained(recorded=True)
    assert listed(found) == listed(trained(recorded=False))
    assert int(found[1].numpy()) == 2


def test_replicas_do_not_meet_in_a_branch(simulate: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()

    def replica(x: Any) -> Any:
        context = mr.distribute.get_replica_context()
        return mr.cond(x > 0.0, lambda: context.all_reduce("sum", x), lambda: x)

    with pytest.raises(InvalidArgumentError, match="has the replicas meet"):
        mr.function(lambda x: strategy.run(replica, (x,)))(mr.constant(1.0))


def test_what_is_known_takes_one_function() -> None:
    """Shapes and Python's numbers are, while a function is recorded."""

    @mr.function
    def step(x: Any, training: bool) -> Any:
        y = mr.cond(training, lambda: x * 2.0, never)
        return mr.cond(mr.shape(y)[0] > 1, lambda: mr.reduce_sum(y), never)

    assert float(step(mr.constant([1.0, 2.0]), True)) == 6.0


Loop = Callable[[Any], Any]


def up(i: Any, s: Any) -> Any:
    return i + 1, s * 2.0


def powers(x: Any) -> Any:
    return mr.while_loop(lambda i, p: i < 3, lambda i, p: (i + 1, p * x), [0, mr.constant(1.0)])


# Loops of a tensor of 2, and what they return.
LOOPS: dict[str, tuple[Loop, Any]] = {
    "count": (lambda x: mr.while_loop(lambda i, s: i < 3, up, [0, x]), [3, 16.0]),
    "never": (lambda x: mr.while_loop(lambda i, s: i < 0, up, [0, x]), [0, 2.0]),
    "at most": (lambda x: mr.while_loop(lambda *_: True, up, (0, x), maximum_iterations=2), [2, 8]),
    "shapes": (
        lambda x: mr.while_loop(
            lambda i, s: i < 2, lambda i, s: (i + 1, mr.concat([s, s], 0)), [0, mr.ones(1) * x]
        ),
        [2, [2.0] * 4],
    ),
    "nested": (
        lambda x: mr.while_loop(
            lambda d: d["i"] < 2,
            lambda d: [{"i": d["i"] + 1, "p": [d["p"][0] * x]}],
            [{"i": 0, "p": [x]}],
        )[0]["p"],
        [8.0],
    ),
    "variable": (lambda x: mr.while_loop(lambda v: False, lambda v: [v], [mr.Variable(3.0)]), [3]),
    "of a value": (
        lambda x: mr.while_loop(lambda i, s: s < 10.0, up, [0, x], maximum_iterations=5),
        [3, 16.0],
    ),
    "of a value, never": (
        lambda x: mr.while_loop(lambda i, s: s < 1.0, up, [0, x], maximum_iterations=5),
        [0, 2.0],
    ),
    "of a value, too long": (
        lambda x: mr.while_loop(lambda i, s: s < 99.0, up, [0, x], maximum_iterations=2),
        [2, 8.0],
    ),
}


@cases(("loop", "expected"), LOOPS.values(), ids=LOOPS)
@cases("recorded", [False, True])
def test_loops(loop: Loop, expected: Any, recorded: bool) -> None:
    made = loop if "Variable" in loop.__code__.co_names or not recorded else mr.function(loop)
    assert listed(made(mr.constant(2.0))) == expected


@cases("recorded", [False, True])
@cases(
    ("loop", "expected"),
    [
        (lambda x: powers(x)[1], [12.0, 12.0]),
        (
            lambda x: mr.while_loop(
                lambda p: p < 20.0, lambda p: [p * x], [x * 1.0], maximum_iterations=9
            )[0],
            [80.0, 160.0],
        ),
    ],
)
def test_gradients(loop: Loop, expected: list[float], recorded: bool) -> None:
    def step(x: Any) -> Any:
        with mr.GradientTape() as outer:
            outer.watch(x)
            with mr.GradientTape() as inner:
                inner.watch(x)
                y = loop(x)
            by_once = inner.gradient(y, x)
        return by_once, outer.gradient(by_once, x)

    assert listed((mr.function(step) if recorded else step)(mr.constant(2.0))) == expected


REFUSED_LOOPS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "cond": (lambda: mr.while_loop(3, up, [0, 1.0]), TypeError, "'cond' must be callable"),
    "body": (lambda: mr.while_loop(bool, 3, [0]), TypeError, "'body' must be callable"),
    "nothing": (lambda: mr.while_loop(bool, up, []), ValueError, "'loop_vars' must be provided"),
    "a number": (lambda: mr.while_loop(bool, up, 0), ValueError, "'loop_vars' must be provided"),
    "no list": (
        lambda: mr.while_loop(lambda i: i < 3, lambda i: i + 1, [mr.constant(0)]),
        TypeError,
        "must return a list or tuple",
    ),
    "more": (
        lambda: mr.while_loop(lambda i: i < 3, lambda i: (i, i), [0]),
        ValueError,
        "don't have the same nested structure",
    ),
    "another type": (
        lambda: mr.while_loop(lambda i: True, lambda i: [(i[0],)], [[0]]),
        TypeError,
        "don't have the same nested structure",
    ),
    "most": (
        lambda: mr.while_loop(bool, up, [0], maximum_iterations=[3]),
        ValueError,
        "must be a scalar",
    ),
    "side by side": (
        lambda: mr.while_loop(bool, up, [0], parallel_iterations=0),
        TypeError,
        "must be a positive integer",
    ),
    "recorded": (
        lambda: mr.function(lambda n: mr.while_loop(lambda i: i < n, lambda i: [i + 1], [0]))(
            mr.constant(3)
        ),
        OperatorNotAllowedInGraphError,
        "pass `maximum_iterations`",
    ),
}


@cases(("call", "error", "text"), REFUSED_LOOPS.values(), ids=REFUSED_LOOPS)
def test_what_is_refused(call: Callable[[], Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@cases(
    "loop",
    [
        lambda x: mr.keras.ops.while_loop(lambda s: mr.reduce_sum(s) < 20.0, lambda s: s * 2.0, x),
        lambda x: mr.keras.ops.while_loop(
            lambda i, s: mr.reduce_sum(s) < 20.0, lambda i, s: (i + 1, s * 2.0), (0, x)
        )[1],
        lambda x: mr.keras.ops.fori_loop(
            0, mr.cast(mr.reduce_sum(x), mr.int32), lambda i, s: s * 2.0, x
        ),
        lambda x: mr.keras.ops.fori_loop(0, 3, lambda i, s: s * 2.0, x),
    ],
)
def test_loops_of_keras_on_placeholders(loop: Loop) -> None:
    x = mr.layers.Input((3,))
    y = loop(x)
    assert (tuple(y.shape), y.dtype) == ((None, 3), mr.float32)
    model = mr.Model(x, y)
    assert model(mr.ones((1, 3))).numpy().tolist() == [[8.0] * 3]
