"""Checks of values, ranks, shapes and types: which hold, what errors say, when they are made.

Which calls raise, and of which class, is what TensorFlow 2.21 does.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError

D = mr.debugging
C = mr.constant
NAN, INF = float("nan"), float("inf")
# Functions, since tensors are gone with the devices of the test before.
PASS: dict[str, Callable[[], list[tuple[Any, ...]]]] = {
    "assert_equal": lambda: [
        (1, 1),
        ([2, 2], 2),
        ([], []),
        ([True], [True]),
        (C([1]), [1]),
        (NAN, NAN),
    ],
    "assert_none_equal": lambda: [(1, 2), ([], [])],
    "assert_less": lambda: [(1, 2), ([1, 2], 3)],
    "assert_less_equal": lambda: [([1, 2], [2, 2])],
    "assert_greater": lambda: [(2, 1)],
    "assert_greater_equal": lambda: [(1, 1)],
    "assert_near": lambda: [(1.0, 1.0000001), (1.0, 1.1, 0.2), (1.0, 1.1, None, 0.2), ([], [])],
    "assert_positive": lambda: [([1, 2],), ([],), (C([1], mr.uint8),)],
    "assert_negative": lambda: [([-1],)],
    "assert_non_negative": lambda: [([0, 1],)],
    "assert_non_positive": lambda: [([0, -1],)],
    "assert_rank": lambda: [([1, 2], 1), (C(3), C(0))],
    "assert_rank_at_least": lambda: [([1, 2], 0)],
    "assert_rank_in": lambda: [([1, 2], (1, 2))],
    "assert_type": lambda: [(C(1), mr.int32), ([1.0], "float32")],
    "assert_scalar": lambda: [(1,)],
    "assert_integer": lambda: [(1,), (C(1, mr.uint8),)],
    "assert_proper_iterable": lambda: [([1],), ({1},)],
    "Assert": lambda: [(True, [1]), (C(1), ["a"]), ("x", [])],
}
REFUSED: dict[str, Callable[[], list[tuple[type[Exception], tuple[Any, ...]]]]] = {
    "assert_equal": lambda: [
        (InvalidArgumentError, each)
        for each in [(1, 2), ([1, 2], [1, 3]), ([1, 2], [1, 2, 3]), (C(1.0), 1), ([], 1)]
    ],
    "assert_none_equal": lambda: [(InvalidArgumentError, (1, 1))],
    "assert_less": lambda: [
        (InvalidArgumentError, ([1, 2], 2)),
        (InvalidArgumentError, (True, True)),
    ],
    "assert_less_equal": lambda: [(InvalidArgumentError, (2, 1))],
    "assert_greater": lambda: [(InvalidArgumentError, (NAN, 0.0))],
    "assert_greater_equal": lambda: [(InvalidArgumentError, (0, 1))],
    "assert_near": lambda: [
        (InvalidArgumentError, (1.0, 1.1)),
        (InvalidArgumentError, (INF, INF)),
        (InvalidArgumentError, (C(1.0, mr.float64), 1.0 + 1e-12)),
        (ValueError, (1, 1)),
        (ValueError, (C(1.0, mr.bfloat16), C(1.0, mr.bfloat16))),
    ],
    "assert_positive": lambda: [(InvalidArgumentError, ([0, 2],)), (TypeError, ([True],))],
    "assert_negative": lambda: [(InvalidArgumentError, ([0],))],
    "assert_non_negative": lambda: [(InvalidArgumentError, (NAN,))],
    "assert_non_positive": lambda: [(InvalidArgumentError, ([1],))],
    "assert_rank": lambda: [
        (ValueError, ([1], 2)),
        (ValueError, ([1], [1])),
        (TypeError, ([1], 1.0)),
    ],
    "assert_rank_at_least": lambda: [(ValueError, ([1], 2)), (TypeError, ([1], "a"))],
    "assert_rank_in": lambda: [(ValueError, ([1], (0, 2))), (TypeError, ([1], 1))],
    "assert_type": lambda: [(TypeError, (C(1), mr.float32))],
    "assert_scalar": lambda: [(ValueError, ([1],))],
    "assert_integer": lambda: [(TypeError, ([1.0],)), (TypeError, (True,))],
    "assert_proper_iterable": lambda: [
        (TypeError, each) for each in [("a",), (C([1]),), (1,), (None,)]
    ],
    "Assert": lambda: [
        (InvalidArgumentError, (False, [1])),
        (InvalidArgumentError, (C(0.0), [])),
        (TypeError, (False, 1)),
        (ValueError, (C([True, True]), [])),
    ],
    "check_numerics": lambda: [
        (InvalidArgumentError, ([1], "m")),
        (TypeError, ([1.0], 3)),
    ],
}
SHAPES: list[tuple[Callable[[], list[Any]], str | None]] = [
    (lambda: [(C([1, 2]), ("N",)), (C([[1], [2]]), ("N", 1))], None),
    (
        lambda: [(C([1, 2]), ("N",)), (C([[1]]), ("N", 1))],
        "by tensor shape=(2,) dtype=int32 dimension 0",
    ),
    (lambda: [(C([1, 2]), (3,))], "Specified explicitly.  Tensor shape=(2,)"),
    (
        lambda: [(C([[1, 2]]), (None, 2)), (C([[1, 2]]), "12"), (C([[1, 2]]), (".", np.int64(2)))],
        None,
    ),
    (lambda: [(C([[1, 2]]), (..., 2)), (C([[1, 2]]), ("*", 2)), (C(1), (...,))], None),
    (lambda: [(C([[1, 2]]), (..., 3))], "dimension -1 must have size 3"),
    (lambda: [(C([[1, 2]]), (1, ...))], "only allowed as the first entry"),
    (lambda: [(C([[1, 2]]), (..., "N", "M", "K"))], "rank at least 3"),
    (lambda: [(C([[1, 2]]), ("N", "N"))], "dimension 1 must have size 1"),
    (lambda: [(C([1, 2]), ("N", 1))], "must have rank 2"),
    (lambda: [(C(1), ()), (C(1), ("N",)), (C([1]), ())], None),
    (lambda: [(C([1, 2]), 1)], "must be an iterable"),
]


@cases("name", PASS)
def test_what_holds_says_nothing(name: str) -> None:
    for arguments in PASS[name]():
        assert getattr(D, name)(*arguments) is None


@cases("name", REFUSED)
def test_what_does_not_hold_is_an_error(name: str) -> None:
    for error, arguments in REFUSED[name]():
        with pytest.raises(error) as caught:
            getattr(D, name)(*arguments)
        assert type(caught.value) is error, arguments


@cases(("pairs", "text"), SHAPES)
def test_shapes(pairs: Any, text: str | None) -> None:
    if text is None:
        D.assert_shapes(pairs())
        return
    with pytest.raises(ValueError, match=f"^Given.  .*{re.escape(text)}"):
        D.assert_shapes(pairs(), message="Given")


def test_a_comparison_shows_where_it_fails() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        D.assert_equal([[1, 2], [3, 4]], [[1, 2], [0, 0]], message="Given", summarize=1)
    assert str(caught.value) == (
        "Given\nCondition x == y did not hold.\nIndices of first 1 different values:\n[[1 0]]\n"
        "Corresponding x values:\n[3]\nCorresponding y values:\n[0]\n"
        "First 1 elements of x:\n[1]\nFirst 1 elements of y:\n[1]"
    )
    with pytest.raises(InvalidArgumentError, match=r"data: text\n1, 2, \.\.\.\n3\.5$"):
        D.Assert(False, ["text", C([1, 2, 3]), 3.5], summarize=2)


@cases(("values", "found"), [([1, NAN], "NaN"), ([INF, 1], "Inf"), ([-INF, NAN], "Inf and NaN")])
@cases("dtype", ["float32", "float64", "bfloat16"])
def test_what_is_not_finite_is_found(values: list[float], found: str, dtype: str) -> None:
    for check in (D.check_numerics, D.assert_all_finite):
        with pytest.raises(InvalidArgumentError, match=f"^here : Tensor had {found} values"):
            check(C(values, dtype), "here")
        np.testing.assert_array_equal(check(C([1.0, 2.0], dtype), "here").numpy(), [1, 2])


def test_a_gradient_that_is_not_finite_is_found() -> None:
    def slope(value: float) -> mr.Tensor:
        x = C(value)
        with mr.GradientTape() as tape:
            tape.watch(x)
            y = mr.sqrt(D.check_numerics(x, "here"))
        return tape.gradient(y, x)

    assert float(slope(4.0)) == 0.25
    for call in (slope, lambda value: mr.function(lambda: slope(value))()):
        with pytest.raises(InvalidArgumentError, match="here : Tensor had Inf"):
            call(0.0)


def test_types_in_common() -> None:
    assert D.assert_same_float_dtype([C(1.0), None]) == mr.float32
    assert D.assert_same_float_dtype(dtype=mr.float64) == mr.float64
    assert D.assert_same_float_dtype() == mr.float32
    for tensors, dtype in [
        ([C(1.0), C(1.0, mr.float64)], None),
        ([C(1)], None),
        ([C(1.0)], mr.float64),
        ([], mr.int32),
    ]:
        with pytest.raises(ValueError, match=r"of the same type|Expected floating point"):
            D.assert_same_float_dtype(tensors, dtype)
    numeric = [D.is_numeric_tensor(each) for each in (C(1), C(True), mr.Variable(1.0), 1)]
    assert numeric == [True, False, False, False]


def test_a_recorded_function_checks_values_in_each_call_before_it_writes() -> None:
    total = mr.Variable(0.0)

    @mr.function
    def step(x: mr.Tensor) -> None:
        total.assign_add(mr.reduce_sum(x))
        D.assert_less(x, [10.0, 20.0], message="too large")
        D.Assert(mr.reduce_all(x > 0.0), ["not positive:", x])
        D.assert_rank(x, 1)

    for good, bad, text in [(1.0, 30.0, "too large"), (2.0, -1.0, "not positive:\n-1.0, 2.0")]:
        step(C([good, 2.0]))
        before = float(total)
        with pytest.raises(InvalidArgumentError, match=text):
            step(C([bad, 2.0]))
        assert float(total) == before
    with pytest.raises(ValueError, match="rank 1"):
        step(C([[1.0, 2.0]]))


def test_fit_checks_values_in_each_step() -> None:
    class Bounded(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            D.assert_less(inputs, 5.0, message="too large")
            return D.check_numerics(inputs, "here")

    model = mr.Sequential([mr.layers.Input((1,)), Bounded(), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones((4, 1))
    model.fit(x, x, verbose=0)
    for bad, text in [(9.0, "too large"), (-INF, "here : Tensor had Inf")]:
        with pytest.raises(InvalidArgumentError, match=text):
            model.fit(x * bad, x, verbose=0)


def test_a_function_that_is_recorded_for_a_card_refuses_them(
    emulated_cuda: Callable[..., Any],
) -> None:
    emulated_cuda()
    x = C([1.0])
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match="real GPU"):
        mr.function(lambda x: D.assert_positive(x))(x)
