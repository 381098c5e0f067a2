"""Calls that say the same in other words are recorded once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr


def keywords(x: Any, y: Any = 2.0, *, z: Any = 3) -> Any:
    return x * y + float(z)


def any_number(x: Any, *more: Any, **named: Any) -> Any:
    return x + float(len(more)) + named.get("n", 0.0)


ARRAY = np.ones(1, np.float32)


def by_place(x: Any, /, y: Any = ("a", ARRAY)) -> Any:
    return x + y[1]


# A function, calls of it, and how many recordings there are after each.
CALLS: dict[str, tuple[Callable[..., Any], list[tuple[Callable[[Any, Any], Any], int]]]] = {
    "defaults": (
        keywords,
        [
            (lambda f, x: f(x), 1),
            (lambda f, x: f(x, 2.0), 1),
            (lambda f, x: f(y=2.0, x=x), 1),
            (lambda f, x: f(x, 2.0, z=3), 1),
            (lambda f, x: f(x, y=4.0), 2),
            (lambda f, x: f(x, 4.0), 2),
            (lambda f, x: f(x, z=4), 3),
        ],
    ),
    "more": (
        any_number,
        [
            (lambda f, x: f(x), 1),
            (lambda f, x: f(x=x), 1),
            (lambda f, x: f(x, 1), 2),
            (lambda f, x: f(x, n=x), 3),
            (lambda f, x: f(n=x, x=x), 3),
        ],
    ),
    "arrays": (by_place, [(lambda f, x: f(x), 1), (lambda f, x: f(x, ("a", mr.zeros(1))), 1)]),
    "keys": (
        lambda d: d["a"] - d["b"],
        [(lambda f, x: f({"a": x, "b": x}), 1), (lambda f, x: f({"b": x, "a": x}), 1)],
    ),
}


@pytest.mark.behaviour("kinds-of-calls")
@cases(("function", "calls"), CALLS.values(), ids=CALLS)
def test_recordings(function: Callable[..., Any], calls: Any) -> None:
    recorded, x = mr.function(function), mr.constant(1.0)
    for call, expected in calls:
        assert call(recorded, x).numpy() == call(function, x).numpy()
        assert recorded.experimental_get_tracing_count() == expected


@cases(
    "call",
    [lambda f, x: f(), lambda f, x: f(x, w=1), lambda f, x: f(x, 1.0, 2), lambda f, x: f(x, x=x)],
)
def test_what_python_refuses(call: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(TypeError, match="argument"):
        call(mr.function(keywords), mr.constant(1.0))


def test_methods_share_the_defaults() -> None:
    class Scaler:
        @mr.function
        def call(self, x: Any, by: Any = 2.0) -> Any:
            return x * by

    scaler, other, x = Scaler(), Scaler(), mr.constant(1.0)
    assert [float(scaler.call(x)), float(scaler.call(x, by=2.0))] == [2.0, 2.0]
    assert scaler.call.experimental_get_tracing_count() == 1
    assert float(other.call(x=x)) == 2.0
    assert Scaler.call.experimental_get_tracing_count() == 2
    assert scaler.call.python_function is Scaler.call.python_function
