"""Assertions of a graph: they stop a run that waits for them."""

import re
from collections.abc import Iterator

import pytest

import mirrored.compat.v1 as tf
from mirrored import errors

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


# An assertion of x, a value for which it holds, another one, and what the error says.
ASSERTIONS = [
    ("assert_equal(x, 1.0)", [1.0, 1.0], [1.0, 2.0], "Condition x == y did not hold"),
    ("assert_less(x, [2.0, 3.0], message='too large')", [1.0, 2.0], [1.0, 3.0], "too large"),
    ("assert_greater_equal(x, 1.0, None, 1)", [1.0, 2.0], [0.0, 1.0], "Condition x >= y did not"),
    ("assert_positive(x, [x])", [1.0, 2.0], [0.0, 1.0], "Condition x > 0 did not hold"),
    ("assert_rank(x, 1)", [1.0], [[1.0]], "must have rank 1"),
    ("assert_near(x, 1.0, 0.0, 0.5)", [1.0, 1.4], [1.0, 1.6], "x and y not equal to tolerance"),
    ("assert_rank_in(x, (1, 3))", [1.0], [[1.0]], "must have rank in (1, 3)"),
    ("debugging.assert_non_negative(x)", [1.0], [-1.0], "Condition x >= 0 did not hold"),
    ("Assert(tf.reduce_all(x > 0.0), ['x is', x])", [1.0], [-1.0], "Summarized data: x is\n-1"),
    ("check_numerics(x, 'a loss')", [1.0], [float("nan")], "a loss : Tensor had NaN values"),
]


@pytest.mark.parametrize(("code", "right", "wrong", "text"), ASSERTIONS)
def test_assertions(code: str, right: object, wrong: object, text: str) -> None:
    x = tf.placeholder(tf.float32)
    with tf.control_dependencies([eval(f"tf.{code}", {"tf": tf, "x": x})]):
        doubled = x * 2.0
    with tf.Session() as session:
        for _ in range(2):
            assert session.run(doubled, {x: right}).ravel()[0] == 2.0
            with pytest.raises((errors.InvalidArgumentError, ValueError), match=re.escape(text)):
                session.run(doubled, {x: wrong})


def test_names(graph: tf.Graph) -> None:
    operation = tf.assert_equal(tf.constant(1.0), 1.0)
    assert (operation.name, operation.type) == ("assert_equal", "Assert")
    assert [each.name for each in graph.get_operations()][1:] == ["assert_equal/y", "assert_equal"]
