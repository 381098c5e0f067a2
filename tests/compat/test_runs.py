"""What runs of a session share, and what they do not: plans, streams of draws, threads."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
import mirrored.compat.v1 as tf
from mirrored.ops import constant

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def test_the_structure_of_fetches_is_part_of_what_a_run_is_known_by() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.Session() as session:
        for _ in range(2):
            assert isinstance(session.run(x), np.ndarray)
            assert isinstance(session.run([x]), list)
            assert isinstance(session.run((x,)), tuple)
            assert list(session.run({"a": x})) == ["a"]
            assert list(session.run({"b": [x]})) == ["b"]
            assert session.run([[x], []])[1] == []


def test_results_are_the_callers_own() -> None:
    x = tf.constant([1.0, 2.0])
    v = tf.Variable([3.0])
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(2):
            constant, read = session.run([x, v])
            assert (constant.tolist(), read.tolist()) == ([1.0, 2.0], [3.0])
            constant[:] = read[:] = 0.0


def test_a_run_is_the_same_wherever_it_is_called(simulate: object) -> None:
    simulate(2)  # type: ignore[operator]
    x = tf.placeholder(tf.float32, [2])
    y = x * 2.0
    with tf.Session() as session, mr.device("/gpu:1"), mr.autodiff.GradientTape() as tape:
        watched = constant([1.0, 2.0])
        tape.watch(watched)
        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]
    assert mr.config.experimental.get_memory_info("GPU:1")["peak"] <= watched.numpy().nbytes


# The graph's seed, those of two operations, and whether a session draws what the one before drew.
SEEDS = [
    (None, (None, None), False),
    (1, (None, None), True),
    (1, (2, 2), True),
    (None, (2, 2), True),
    (1, (2, 3), True),
]


@pytest.mark.parametrize(("seed", "of_operations", "again"), SEEDS)
def test_each_operation_draws_anew_in_each_session(
    seed: int | None, of_operations: tuple[int | None, int | None], again: bool
) -> None:
    if seed is not None:
        tf.set_random_seed(seed)
    first, second = (tf.random_uniform([4], seed=each) for each in of_operations)
    drawn = []
    for _ in range(2):
        with tf.Session() as session:
            runs = [session.run(first).tolist(), session.run([first, second])[0].tolist()]
            drawn.append([*runs, session.run(first).tolist(), session.run(second).tolist()])
    assert (drawn[0] == drawn[1]) is again
    assert len({str(each) for each in drawn[0][:3]}) == 3
    with tf.Session() as session:
        pair = [each.tolist() for each in session.run([first, second])]
    assert (pair[0] == pair[1]) is (of_operations == (2, 2))


def test_a_seed_is_that_of_the_graph_when_an_operation_is_drawn() -> None:
    values = []
    for _ in range(2):
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            weights = tf.Variable(tf.truncated_normal([3]))
            with tf.Session() as session:
                session.run(weights.initializer)
                values.append(session.run(weights).tolist())
    assert values[0] == values[1]


def test_threads_share_a_session() -> None:
    v = tf.Variable(0)
    x = tf.placeholder(tf.int32, [None])
    add = v.assign_add(tf.reduce_sum(x))
    session = tf.Session()
    session.run(v.initializer)
    failures: list[BaseException] = []

    def work(size: int) -> None:
        try:
            with session.as_default():
                for _ in range(20):
                    add.eval({x: np.ones(size, np.int32)})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(size,)) for size in (1, 1, 2, 3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    assert session.run(v) == 20 * (1 + 1 + 2 + 3)


def test_gradients_follow_every_read_of_a_variable() -> None:
    v, w = tf.Variable(3.0), tf.Variable(2.0)
    again = v.read_value()
    by_v, by_w, second = [*tf.gradients(again * v * w, [v, w]), tf.gradients(again * again, v)[0]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([by_v, by_w, second]) == [12.0, 9.0, 6.0]


# What two runs return after the variable began with 1.0, as TensorFlow 2.21 does: tensors of a
# variable refer to it, so they are what it is by the time that somebody takes them.
REFERENCES = [
    ("[v, add]", [[2.0, 2.0], [3.0, 3.0]]),
    ("[tf.identity(v), 'v/read:0', add.op]", [[2.0, 2.0, None], [3.0, 3.0, None]]),
    ("[v * 1.0, v.assign(7.0), v]", [[1.0, 7.0, 7.0], [7.0, 7.0, 7.0]]),
    ("after(add, lambda: tf.identity(v))", [2.0, 3.0]),
    ("after(add, lambda: v * 2.0)", [4.0, 6.0]),
    ("after(add, lambda: computed * 2.0)", [2.0, 4.0]),
    ("[add, after(add, lambda: v.assign_add(1.0))]", [[3.0, 3.0], [5.0, 5.0]]),
    ("[v, after(halve, lambda: descend(0.25 * v * v))]", [[0.25, None], [0.0625, None]]),
    ("[halve, v]", [[None, 0.5], [None, 0.25]]),
    ("[tf.cond(v > 0.0, lambda: v.assign_add(1.0) * 2.0, lambda: v), v]", [[4.0, 2.0], [6.0, 3.0]]),
]


@pytest.mark.parametrize(("code", "expected"), REFERENCES)
def test_a_variable_is_what_it_is_by_then(code: str, expected: list[Any]) -> None:
    v = tf.Variable(1.0, name="v")
    computed = v + 0.0

    def after(first: Any, draw: Callable[[], Any]) -> Any:
        with tf.control_dependencies([first]):
            return draw()

    descend = tf.train.GradientDescentOptimizer(1.0).minimize
    names = {"tf": tf, "v": v, "computed": computed, "after": after, "descend": descend}
    fetches = eval(code, {**names, "add": v.assign_add(1.0), "halve": descend(0.25 * v * v)})
    with tf.Session() as session:
        session.run(v.initializer)
        assert [session.run(fetches) for _ in range(2)] == expected
        assert session.run(v * 2.0, {v: 5.0}) == 10.0


def test_what_is_fed_for_a_variable_stays() -> None:
    v = tf.Variable(1.0)
    doubled = v.assign(9.0) + v
    with tf.Session() as session:
        assert session.run([doubled, v], {v: 5.0}) == [14.0, 5.0]
        assert session.run(v) == 9.0
