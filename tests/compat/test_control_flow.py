"""Loops, branches and functions of functions: what is expected is what TensorFlow 2.21 computes."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf
from mirrored.compat.v1 import control_flow

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def test_a_loop_goes_on_by_values() -> None:
    limit = tf.placeholder(tf.int32, [])
    v = tf.Variable(2.0)
    count, power = tf.while_loop(
        lambda i, p: tf.less(i, limit), lambda i, p: (i + 1, p * v), (0, tf.constant(1.0))
    )
    (by_v,) = tf.gradients(power, v)
    assert (count.op.type, count.dtype) == ("While", np.dtype("int32"))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([count, power, by_v], {limit: 3}) == [3, 8.0, 12.0]
        assert session.run([count, power], {limit: 0}) == [0, 1.0]


def test_a_loop_is_as_its_steps_one_by_one() -> None:
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.normal(size=(3, 3)))
    x = tf.placeholder(tf.float64, [None, 4, 3])
    state = tf.zeros([2, 3], tf.float64)
    unrolled = state
    for step in tf.unstack(x, axis=1):
        unrolled = tf.tanh(tf.matmul(step + unrolled, w))
    steps = tf.transpose(x, [1, 0, 2])
    looped = tf.while_loop(
        lambda i, _: i < 4,
        lambda i, s: [i + 1, tf.tanh(tf.matmul(tf.gather(steps, i) + s, w))],
        [0, state],
    )[1]
    found = [tf.gradients(tf.reduce_sum(each * each), w)[0] for each in (unrolled, looped)]
    with tf.Session() as session:
        session.run(w.initializer)
        one, two = session.run(found, {x: rng.normal(size=(2, 4, 3))})
    np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.parametrize(("times", "recorded"), [(5, True), (6, False)])
def test_a_loop_that_constants_end_is_recorded(
    times: int, recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its body runs in Python where it is recorded; longer ones do in each run."""
    monkeypatch.setattr(control_flow, "_MOST_RECORDED", 5)
    ran = []

    def noting(value: Any) -> Any:
        ran.append(value)
        return value + 1.0

    def body(i: Any, x: Any) -> Any:
        return i + 1, x.graph.draw(noting, (x,), kind="Noting", name="noting").outputs[0]

    x = tf.placeholder(tf.float32, [])
    last = tf.while_loop(lambda i, _: i < times, body, [tf.constant(0), x])[1]
    with tf.Session() as session:
        assert session.run(last, {x: 2.0}) == times + 2
        ran.clear()
        assert session.run(last, {x: 3.0}) == times + 3
    assert len(ran) == (0 if recorded else times)


def test_one_of_two_branches_is_computed() -> None:
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    chosen = tf.cond(x > 1.0, lambda: v.assign_add(x), lambda: tf.constant(-1.0))
    (by_x,) = tf.gradients(tf.cond(x > 1.0, lambda: x * x, lambda: 3.0 * x), x)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([chosen, by_x], {x: 0.5}) == [-1.0, 3.0]
        assert session.run(v) == 1.0
        assert session.run([chosen, by_x], {x: 2.0}) == [3.0, 4.0]
        assert session.run(v) == 3.0


def test_branches_that_are_run_alone() -> None:
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0)
    counted = tf.cond(x > 0.0, lambda: tf.group(v.assign_add(1.0)), lambda: tf.no_op())
    with tf.Session() as session:
        session.run(v.initializer)
        assert [session.run([counted, v], {x: each})[1] for each in (1.0, -1.0, 2.0)] == [1, 1, 2]


def test_the_first_case_that_holds() -> None:
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0)
    first = (x < 1.0, lambda: v.assign_add(1.0))
    chosen = tf.case([first, (x < 2.0, lambda: x * 10.0)], default=lambda: -x)
    with tf.Session() as session:
        session.run(v.initializer)
        found = [session.run([chosen, v], {x: each}) for each in (0.5, 1.5, 2.5, 0.5)]
    assert found == [[1.0, 1.0], [15.0, 1.0], [-2.5, 1.0], [2.0, 2.0]]
    with pytest.raises(ValueError, match="`case` needs a `default`"):
        tf.case([first])


# Functions of functions of x, [1, 2, 3], and what they return.
FUNCTIONAL = [
    ("map_fn(lambda each: tf.square(each) + v, x)", [3.0, 6.0, 11.0]),
    ("map_fn(lambda e: (e[0] * v, e[1]), (x, x), dtype=(tf.float32,) * 2)[0]", [2.0, 4.0, 6.0]),
    ("scan(lambda total, each: total * v + each, x)", [1.0, 4.0, 11.0]),
    ("scan(lambda total, each: total * v + each, x, 1.0)", [3.0, 8.0, 19.0]),
    ("scan(lambda total, each: total + each, x, reverse=True)", [6.0, 5.0, 3.0]),
    ("scan(lambda a, e: (a[0] + e, a[1] * e), x, (tf.zeros([]), 1.0))[1]", [1.0, 2.0, 6.0]),
    ("foldl(lambda a, b: a * v - b, x)", -3.0),
    ("foldr(lambda a, b: a * v - b, x)", 7.0),
    ("foldl(lambda a, b: a + b, x[:0], 5.0)", 5.0),
    ("map_fn(lambda each: each * v, x[:0])", []),
]


@pytest.mark.parametrize(("code", "value"), FUNCTIONAL)
def test_functions_of_functions(code: str, value: Any) -> None:
    v = tf.Variable(2.0)
    x = tf.placeholder(tf.float32, [None])
    found = eval(f"tf.{code}", {"tf": tf, "x": x, "v": v})
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(found, {x: [1.0, 2.0, 3.0]}).tolist() == value


def test_a_cell_that_is_scanned_is_as_one_that_is_unrolled() -> None:
    w = tf.Variable(np.eye(2) * 0.5)
    x = tf.placeholder(tf.float64, [None, 3, 2])
    begin = tf.zeros([tf.shape(x)[0], 2], tf.float64)
    scanned = tf.scan(lambda s, e: tf.tanh(tf.matmul(s, w) + e), tf.transpose(x, [1, 0, 2]), begin)
    state = begin
    for each in tf.unstack(x, axis=1):
        state = tf.tanh(tf.matmul(state, w) + each)
    by_w = [tf.gradients(tf.reduce_sum(each), w)[0] for each in (state, scanned[-1])]
    assert scanned.shape.as_list() == [3, None, 2]
    with tf.Session() as session:
        session.run(w.initializer)
        one, other = session.run(by_w, {x: np.random.default_rng(0).normal(size=(4, 3, 2))})
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_shapes_that_values_decide() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    kept = tf.boolean_mask(x, x[:, 0] > 1.0)
    where = tf.where(x > 2.0)
    numbers, places = tf.unique(tf.cast(x[:, 1], tf.int32))
    parts = tf.dynamic_partition(x, tf.to_int32(x[:, 0] > 1.0), 2)
    counts = tf.unique_with_counts(tf.cast(x[:, 1], tf.int32)).count
    (by_x,) = tf.gradients(tf.reduce_sum(kept * kept), x)
    (by_part,) = tf.gradients(tf.reduce_sum(parts[1] * parts[1]), x)
    assert [each.shape.as_list() for each in (kept, where, numbers, places)] == [
        [None, 2],
        [None, 2],
        [None],
        [None],
    ]
    given = [[1.0, 2.0], [3.0, 2.0], [4.0, 5.0]]
    with tf.Session() as session:
        found = session.run([kept, where, numbers, places, by_x], {x: given})
        more = session.run([*parts, counts, by_part], {x: given})
    assert [each.tolist() for each in more[:3]] == [given[:1], given[1:], [2, 1]]
    assert more[3].tolist() == found[4].tolist()
    assert parts[0].shape.as_list() == [None, 2]
    assert [each.tolist() for each in found] == [
        given[1:],
        [[1, 0], [2, 0], [2, 1]],
        [2, 5],
        [0, 0, 1],
        [[0.0, 0.0], [6.0, 4.0], [8.0, 10.0]],
    ]


def test_whether_a_variable_has_a_value() -> None:
    v = tf.Variable(tf.random_normal([2]))
    w = tf.Variable(v.initialized_value() * 2.0)
    both = tf.tuple([v, w[0]])
    (by_w,) = tf.gradients(w * v.initialized_value(), w)
    missing = tf.report_uninitialized_variables()
    assert (missing.shape.as_list(), "dtype=string" in repr(missing)) == ([None], True)
    with tf.Session() as session:
        assert session.run(missing).tolist() == [b"Variable", b"Variable_1"]
        assert not session.run(tf.is_variable_initialized(v))
        session.run([v.initializer, w.initializer])
        assert session.run([missing])[0].tolist() == []
        assert session.run(tf.is_variable_initialized(v))
        first, second = session.run([v, w])
        assert (first * 2.0).tolist() == second.tolist()
        assert session.run(both)[1] == second[0]
        assert session.run(by_w).tolist() == first.tolist()


LOOPS = [
    "tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [tf.constant(0), x]{})[1]",
    "tf.map_fn(lambda a: a * 2.0, x{})",
    "tf.scan(lambda a, b: a * b, x{})",
    "tf.foldl(lambda a, b: a * b, x{})",
    "tf.foldr(lambda a, b: a * b, x{})",
]


@pytest.mark.parametrize("code", LOOPS)
def test_gradients_flow_where_they_are_wanted(code: str) -> None:
    x = tf.constant([1.0, 2.0])
    through, stopped = (
        eval(code.format(setting), {"tf": tf, "x": x}) for setting in ("", ", back_prop=False")
    )
    assert tf.gradients(through, x) != [None]
    assert tf.gradients(stopped, x) == [None]


def test_dtypes_that_a_function_says() -> None:
    v = tf.constant([1.5])
    a, b = tf.map_fn(lambda e: (e, tf.cast(e, tf.int32)), v, dtype=(tf.float32, tf.int32))
    with tf.Session() as session:
        assert [each.tolist() for each in session.run([a, b])] == [[1.5], [1]]


WRONG: list[tuple[Any, type[Exception], str]] = [
    ("tf.while_loop(1, lambda i: i, [x])", TypeError, "'cond' must be callable."),
    ("tf.while_loop(lambda i: i, lambda i: i, [])", ValueError, "'loop_vars' must be provided."),
    (
        "tf.while_loop(lambda i: b, lambda i: [i, i], [x])",
        ValueError,
        "inputs and outputs of the",
    ),
    ("tf.while_loop(lambda i: i, lambda i: i, [x])", TypeError, "'LoopCond' Op has type float32 t"),
    (
        "tf.while_loop(lambda i: [b], lambda i: i, [x])",
        ValueError,
        "Shape must be rank 0 but is ra",
    ),
    (
        "tf.scan(lambda s, e: (s, e), [1.0])",
        ValueError,
        "like its first argument: 1 tensors. Received: 2.",
    ),
    ("tf.map_fn(3, [1.0])", TypeError, "fn must be callable."),
    ("tf.map_fn(lambda e: e, v, tf.int32)", TypeError, "dtype float32, but `dtype` says int32"),
    ("tf.map_fn(lambda e: (e, e), v, tf.float32)", ValueError, "have the same nested struc"),
    ("tf.cond(True, lambda: x, lambda: x)", TypeError, "'pred' must not be a Python bool."),
    ("tf.cond(b, lambda: x)", TypeError, "cond(): 'false_fn' argument required"),
    (
        "tf.cond(b, lambda: x, lambda: b)",
        ValueError,
        "must have the same type(s). Received float32 from",
    ),
    ("tf.where(b, x)", ValueError, "x and y must both be non-None or both be None."),
    ("tf.boolean_mask([x, 2.0], b)", ValueError, "mask cannot be scalar."),
    ("tf.Session().run('while/Identity:0')", ValueError, "marked as not fetchable"),
]


@pytest.mark.parametrize(("code", "kind", "text"), WRONG)
def test_what_is_wrong(code: str, kind: type[Exception], text: str) -> None:
    tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
    names = {"tf": tf, "x": tf.constant(1.0), "b": tf.constant(True), "v": tf.constant([1.5])}
    with pytest.raises(kind, match=re.escape(text)):
        eval(code, names)
