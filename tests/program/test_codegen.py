"""Functions that are made of calls do what the calls would, in their order."""

import operator
import weakref
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.program.kernel_calls import Call, make_function, make_loop


def test_calls_are_made_in_order() -> None:
    seen: list[Any] = []

    def note(*args: Any, **named: Any) -> None:
        seen.append((args, named))

    big = np.zeros(3)
    calls = [
        Call(note),
        Call(note, (1, "it's", None, True, -2.5)),
        Call(note, (big, 3, big), ("first", "second")),
    ]
    assert make_function(calls)() is True
    assert seen == [
        ((), {}),
        ((1, "it's", None, True, -2.5), {}),
        ((big,), {"first": 3, "second": big}),
    ]
    seen.clear()
    for call in calls:
        call.run()
    assert len(seen) == 3


def test_no_calls() -> None:
    assert make_function([])() is True


def test_elements_are_assigned() -> None:
    target = np.zeros((2, 3))
    make_function([Call(operator.setitem, (target, (slice(None), 1), 5.0))])()
    np.testing.assert_array_equal(target, [[0, 5, 0]] * 2)


@cases("stops", [0, 1, 29, 30, 31, 199, 200, None])
def test_it_stops_after_a_call_where_it_is_told_to(stops: int | None) -> None:
    seen: list[int] = []
    calls = [Call(seen.append, (i,)) for i in range(200)]
    checks = [(count, lambda count=count: count != stops) for count in range(201)]
    assert make_function(calls, checks)() is (stops is None)
    assert seen == list(range(200 if stops is None else stops))


@cases("count", [1, 2, 7])
def test_a_loop_makes_the_calls_for_each_piece(count: int) -> None:
    x = np.arange(21.0)
    out, length = np.zeros(21), -(-21 // count)
    scratch, pieces = np.zeros(length), []
    for i in range(count):
        part = slice(i * length, min((i + 1) * length, 21))
        size = part.stop - part.start
        pieces.append(
            [
                Call(np.multiply, (x[part], x[part], scratch[:size])),
                Call(np.add, (scratch[:size], 1.0, out[part])),
                Call(np.maximum, (out[part], 5.0, out[part]), ("out",)),
            ]
        )
    assert make_loop(pieces)() is True
    np.testing.assert_array_equal(out, np.maximum(x * x + 1, 5))


def test_an_exception_leaves_the_function() -> None:
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        make_function([Call(fail)])()


def test_functions_of_the_same_text_share_its_code_and_nothing_else() -> None:
    def scale(factor: float) -> tuple[Any, Any]:
        out = np.zeros(3)
        return make_function([Call(np.multiply, (np.ones(3), factor, out))]), out

    (twice, doubled), (thrice, tripled) = scale(2.0), scale(3.0)
    assert twice.__code__ is thrice.__code__
    twice()
    thrice()
    assert (doubled.tolist(), tripled.tolist()) == ([2.0] * 3, [3.0] * 3)
    gone = weakref.ref(tripled)
    del thrice, tripled
    assert gone() is None
