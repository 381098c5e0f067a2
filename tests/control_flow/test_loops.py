"""Loops, eagerly and in recorded functions. The numbers are TensorFlow 2.21's."""

from collections.abc import Callable
from typing import Any

import pytest
from listing import listed

import mirrored as mr
from mirrored.errors import OperatorNotAllowedInGraphError

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


@pytest.mark.parametrize(("loop", "expected"), LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("recorded", [False, True])
def test_loops(loop: Loop, expected: Any, recorded: bool) -> None:
    made = loop if "Variable" in loop.__code__.co_names or not recorded else mr.function(loop)
    assert listed(made(mr.constant(2.0))) == expected


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
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


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "cond": (lambda: mr.while_loop(3, up, [0, 1.0]), TypeError, "'cond' must be callable"),
    "body": (lambda: mr.while_loop(bool, 3, [0]), TypeError, "'body' must be callable"),
    "nothing": (lambda: mr.while_loop(bool, up, []), ValueError, "'loop_vars' must be provided"),
    "a number": (lambda: mr.while_loop(bool, up, 0), ValueError, "'loop_vars' must be provided"),
    "no list": (
        lambda: mr.while_loop(lambda i: i < 3, lambda i: i + 1, [mr.constant(0)]),
        TypeError,
        "returns a list or tuple",
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
        "give `maximum_iterations`",
    ),
}


@pytest.mark.parametrize(("call", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call: Callable[[], Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
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
