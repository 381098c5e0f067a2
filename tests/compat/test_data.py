"""Datasets in sessions: what runs draw of them, when, and what begins again."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
import mirrored.compat.v1 as tf
from mirrored import errors


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


# A dataset (of `n`, a placeholder that is fed 3, and `rows`, one that is fed [[1, 2], [3, 4]]), the
# shapes of its elements, and TensorFlow 2.21's elements.
ELEMENTS: list[tuple[str, Any, list[Any]]] = [
    ("Dataset.range(5).batch(2)", "(?,)", [[0, 1], [2, 3], [4]]),
    ("Dataset.range(5).batch(2, drop_remainder=True)", "(2,)", [[0, 1], [2, 3]]),
    ("Dataset.range(n).repeat(2)", "()", [0, 1, 2, 0, 1, 2]),
    ("Dataset.range(4).batch(n)", "(?,)", [[0, 1, 2], [3]]),
    ("Dataset.from_tensors(rows).repeat(n).take(1)", "(?, 2)", [[[1, 2], [3, 4]]]),
    (
        "Dataset.from_tensor_slices({'b': rows, 'a': (rows, [5, 6])})",
        {"b": "(2,)", "a": ("(2,)", "()")},
        [{"b": [1, 2], "a": ([1, 2], 5)}, {"b": [3, 4], "a": ([3, 4], 6)}],
    ),
    (
        "Dataset.from_tensor_slices((tf.placeholder_with_default([1, 2, 3], None), np.eye(3, 1)))",
        ("<unknown>", "(1,)"),
        [(1, [1.0]), (2, [0.0]), (3, [0.0])],
    ),
    (
        "Dataset.range(3).map(lambda x: (x + n, tf.one_hot(x, 2)))",
        ("()", "(2,)"),
        [(3, [1, 0]), (4, [0, 1]), (5, [0, 0])],
    ),
    (
        "Dataset.range(4).map(lambda x: tf.cond(x > 1, lambda: x * n, lambda: -x))",
        "()",
        [0, -1, 6, 9],
    ),
    ("Dataset.range(6).filter(lambda x: tf.equal(x % n, 1))", "()", [1, 4]),
    (
        "Dataset.range(3).map(lambda x: tf.py_func(np.arange, [x], tf.int64)).padded_batch(2, [3])",
        "(?, 3)",
        [[[0, 0, 0], [0, 0, 0]], [[0, 1, 0]]],
    ),
    ("Dataset.range(3).flat_map(lambda x: Dataset.range(x, n))", "()", [0, 1, 2, 1, 2, 2]),
    (
        "Dataset.range(2).interleave(lambda x: Dataset.from_tensors(x).repeat(n), 2, 1)",
        "()",
        [0, 1, 0, 1, 0, 1],
    ),
    (
        "Dataset.range(4).window(3, 1, drop_remainder=True).flat_map(lambda w: w.batch(3))",
        "(?,)",
        [[0, 1, 2], [1, 2, 3]],
    ),
    (
        "Dataset.zip((Dataset.range(3), Dataset.range(n).skip(1).concatenate(Dataset.range(9))))",
        ("()", "()"),
        [(0, 1), (1, 2), (2, 0)],
    ),
    (
        "Dataset.from_generator(lambda: iter([(1, [2.0])]), (tf.int32, tf.float32), "
        "(tf.TensorShape([]), tf.TensorShape([None])))",
        ("()", "(?,)"),
        [(1, [2.0])],
    ),
    ("Dataset.range(3).apply(lambda d: d.prefetch(1).cache())", "()", [0, 1, 2]),
    (
        "Dataset.range(3).apply(tf.data.experimental.map_and_batch(lambda x: x * n, 2))",
        "(?,)",
        [[0, 3], [6]],
    ),
]


@pytest.mark.parametrize(("code", "shapes", "elements"), ELEMENTS)
def test_elements(code: str, shapes: Any, elements: list[Any]) -> None:
    n, rows = tf.placeholder(tf.int64, []), tf.placeholder(tf.float32, [None, 2])
    there = {"Dataset": tf.data.Dataset, "tf": tf, "np": np, "n": n, "rows": rows}
    dataset = eval(code, there)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    assert mr.nest.map_structure(lambda tensor: str(tensor.shape), following) == shapes
    assert mr.nest.map_structure(str, tf.data.get_output_shapes(iterator)) == shapes
    types = mr.nest.map_structure(lambda tensor: tensor.dtype, following)
    assert tf.data.get_output_types(dataset) == types
    with tf.Session() as session:
        for _ in range(2):
            session.run(iterator.initializer, {n: 3, rows: [[1, 2], [3, 4]]})
            for element in elements:
                values = session.run(following)
                assert mr.nest.map_structure(lambda array: array.tolist(), values) == element
            for _ in range(2):
                with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
                    session.run(following)


@pytest.mark.usefixtures("hardware")
def test_a_run_draws_one_element_whatever_it_computes() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    dataset = tf.data.Dataset.from_tensor_slices((rows, [0, 1, 2, 3])).batch(2).repeat()
    x, labels = dataset.make_one_shot_iterator().get_next()
    w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.matmul(x, w))
    by_x, by_w = tf.gradients(loss, [x, w])
    train = tf.train.GradientDescentOptimizer(0.0).minimize(loss)
    some = tf.boolean_mask(labels, labels > 1)  # A run with it is not recorded.
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for fetches in ([x, labels, loss, by_x, by_w, train], [x, labels, loss, by_x, by_w, some]):
            for part in (rows[:2], rows[2:]):
                values = session.run(fetches)
                np.testing.assert_array_equal(values[0], part)
                assert values[1].tolist() == ([0, 1] if part[0, 0] == 0 else [2, 3])
                assert values[2] == part.sum()
                np.testing.assert_array_equal(values[3], np.ones((2, 3)))
                np.testing.assert_array_equal(values[4], part.sum(0)[:, None])
        assert session.run(labels, {x: rows}).tolist() == [0, 1]
        # Where all of an element is fed, none is drawn.
        assert session.run(loss, {x: rows[:1], labels: [9]}) == 3.0
        assert session.run(loss, {x: rows[:1]}) == 3.0
        assert session.run(labels).tolist() == [2, 3]
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run([x, labels], {x: [[1.0]]})
        assert session.run(labels).tolist() == [0, 1]
    with tf.Session() as session:  # Each session begins with the first element.
        assert session.run(labels).tolist() == [0, 1]


def test_towers_draw_elements_on_their_devices(simulate: Callable[..., None]) -> None:
    simulate(2)
    with tf.device("/cpu:0"):
        iterator = (
            tf.data.Dataset.range(1, 9).batch(2).map(lambda x: x * 2).make_one_shot_iterator()
        )
    sums = []
    for number in range(2):
        with tf.device(f"/gpu:{number}"):
            sums.append(tf.reduce_sum(iterator.get_next()))
    elsewhere = iterator.get_next()
    with tf.Session() as session:
        assert session.run([*sums, elsewhere[0]]) == [6, 14, 10]
        placed = [session._kept.placement.device_of(tensor.op) for tensor in (sums[1], elsewhere)]
    assert [device.name for device in placed] == ["/device:GPU:1", "/device:CPU:0"]


def test_elements_are_drawn_in_branches_and_after_what_they_wait_for() -> None:
    flag = tf.placeholder(tf.bool, [])
    one_shot = tf.data.Dataset.range(1, 9).make_one_shot_iterator()
    y = tf.cond(flag, one_shot.get_next, lambda: tf.constant(-1, tf.int64))
    again = tf.data.Dataset.range(3).make_initializable_iterator()
    with tf.control_dependencies([again.initializer]):
        first = again.get_next()
    numbers = tf.data.Dataset.range(1, 9).make_one_shot_iterator()
    total = tf.while_loop(lambda x: x < 10, lambda x: x + numbers.get_next(), [np.int64(0)])
    with tf.Session() as session:
        assert [session.run(y, {flag: f}) for f in (True, False, True)] == [1, -1, 2]
        assert session.run(total) == 1 + 2 + 3 + 4
        assert [session.run(first) for _ in range(2)] == [0, 0]


def test_variables_are_read_when_the_initializer_runs() -> None:
    v = tf.Variable(2, dtype=tf.int64)
    iterator = tf.data.Dataset.range(1, 4).map(lambda x: x * v).make_initializable_iterator()
    x = iterator.get_next()
    with tf.Session() as session:
        with pytest.raises(errors.FailedPreconditionError, match="uninitialized value Variable"):
            session.run(iterator.initializer)
        session.run(v.initializer)
        session.run(iterator.initializer)
        session.run(v.assign(10))
        assert [session.run(x) for _ in range(3)] == [2, 4, 6]
        session.run(iterator.initializer)
        assert session.run(x) == 10


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda v: v.assign_add(1), "cannot write to"),
        (lambda v: tf.cast(tf.is_variable_initialized(v), tf.int64), "whether a variable has"),
    ],
)
def test_what_a_function_asks_of_variables_in_vain(function: Any, problem: str) -> None:
    v = tf.Variable(2, dtype=tf.int64)
    numbers = tf.data.Dataset.range(3).map(lambda x: function(v) + x)
    iterator = numbers.make_initializable_iterator()
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(iterator.initializer)
        with pytest.raises(RuntimeError, match=problem):
            session.run(iterator.get_next())
        assert session.run(v) == 2


def test_one_iterator_goes_over_several_datasets() -> None:
    train, test = tf.data.Dataset.range(3).batch(2), tf.data.Dataset.range(7, 9).batch(1)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    begin, other = iterator.make_initializer(train), iterator.make_initializer(test)
    x = iterator.get_next("x")
    assert x.name == "x:0"
    with tf.Session() as session:
        for operation, expected in ((begin, [0, 1]), (other, [7]), (begin, [0, 1])):
            session.run(operation)
            assert session.run(x).tolist() == expected
        with pytest.raises(ValueError, match="The iterator does not have an initializer"):
            iterator.initializer  # noqa: B018
    with pytest.raises(TypeError, match="Expected output types int64 but got dataset with output"):
        iterator.make_initializer(train.map(lambda x: tf.cast(x, tf.float32)))
    with pytest.raises(TypeError, match="Expected output shapes compatible with"):
        iterator.make_initializer(tf.data.Dataset.range(3))


# The graph's seed, that of `shuffle`, and whether another initialization and another session have
# the same order, as in TensorFlow.
SEEDS = [(None, None, False), (None, 3, True), (7, None, True), (7, 3, True)]


@pytest.mark.parametrize(("of_graph", "seed", "same"), SEEDS)
def test_seeds_fix_the_order_of_every_initialization(
    of_graph: int | None, seed: int | None, same: bool
) -> None:
    if of_graph is not None:
        tf.set_random_seed(of_graph)
    datasets = [tf.data.Dataset.range(10).shuffle(10, seed).repeat(2) for _ in range(2)]
    drawn = datasets[0].map(lambda x: (x, tf.random_uniform([])))
    iterators = [dataset.make_initializable_iterator() for dataset in (drawn, datasets[1])]
    (x, number), other = (iterator.get_next() for iterator in iterators)
    orders = []
    for _ in range(2):
        with tf.Session() as session:
            for _ in range(2):
                session.run([iterator.initializer for iterator in iterators])
                orders.append([[*map(float, session.run([x, number, other]))] for _ in range(20)])
                column = [element[0] for element in orders[-1]]
                assert sorted(column[:10]) == [*range(10)]
                assert column[:10] != column[10:]
    assert [order == orders[0] for order in orders[1:]] == [same and of_graph is not None] * 3
    shuffled = [[element[0] for element in order] for order in orders]
    assert [order == shuffled[0] for order in shuffled[1:]] == [same] * 3
    others = [element[2] for element in orders[0]]
    assert (shuffled[0] == others) is (seed is not None)  # Each has a seed of its own.


def test_datasets_of_the_library_can_be_drawn_from() -> None:
    dataset = mr.data.Dataset.range(3).map(lambda x: x * 2)
    x = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        assert [session.run(x) for _ in range(3)] == [0, 2, 4]


def test_a_generator_may_run_sessions_ahead() -> None:
    session = tf.Session()
    y = tf.placeholder(tf.int64, []) * 2

    def generated() -> Iterator[Any]:
        for i in range(3):
            yield session.run(y, {y.op.inputs[0]: i})

    dataset = tf.data.Dataset.from_generator(generated, tf.int64, []).prefetch(2)
    x = dataset.make_one_shot_iterator().get_next()
    assert [session.run(x) for _ in range(3)] == [0, 2, 4]
    session.close()


def test_an_error_in_a_function_leaves_the_elements_after_it() -> None:
    def checked(x: Any) -> Any:
        return tf.check_numerics(1.0 / tf.cast(x - 1, tf.float32), "quotient")

    x = tf.data.Dataset.range(3).map(checked).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(x) == -1.0
        with pytest.raises(errors.InvalidArgumentError, match="quotient"):
            session.run(x)
        assert session.run(x) == 1.0


WRONG = [
    (
        "Dataset.from_tensors(n).make_one_shot_iterator()",
        ValueError,
        "Cannot capture a placeholder (name:n, type:Placeholder) by value.",
    ),
    (
        "Dataset.from_tensors(tf.random_uniform([2])).make_one_shot_iterator()",
        ValueError,
        "Cannot capture a stateful node (name:random_uniform/RandomUniform, type:RandomUniform)",
    ),
    (
        "session.run(d.make_initializable_iterator().get_next())",
        errors.FailedPreconditionError,
        "GetNext() failed because the iterator has not been initialized. Ensure that",
    ),
    ("list(d)", RuntimeError, "`tf.data.Dataset` only supports Python-style iteration in eager"),
    ("d.make_one_shot_iterator().get_next_as_optional()", AttributeError, "tf.data.Iterator of"),
    ("d.reduce", AttributeError, "Use it with a dataset of `mirrored.data`, which"),
    ("Dataset.list_files", AttributeError, "tf.data.Dataset of sessions has no 'list_files'."),
    ("tf.data.TextLineDataset", AttributeError, "or feed the batches of a `mirrored.data.Data"),
    ("d.make_one_shot_iterator().initializer", ValueError, "does not have an initializer."),
    ("d.make_one_shot_iterator().string_handle()", NotImplementedError, "Handles of iterators"),
    ("tf.data.Iterator.from_string_handle(n, tf.int64)", NotImplementedError, "Handles of"),
    ("tf.data.make_one_shot_iterator(3)", TypeError, "must be a tf.data.Dataset. Received: 3."),
    ("Dataset.from_tensor_slices((n, [1]))", ValueError, "only supported for rank >= 1."),
    (
        "Dataset.from_tensor_slices((tf.zeros([3, 1]), [1, 2]))",
        ValueError,
        "Use arrays with the same first size, the number of elements.",
    ),
    ("d.map(3)", ValueError, "Argument `map_func` must be a callable. Received map_func=3"),
    ("d.flat_map(lambda x: x)", TypeError, "must return a `Dataset` object. Got <tf.Tensor"),
    ("d.filter(lambda x: x)", ValueError, "`predicate` must return a `tf.bool` scalar tensor, but"),
    ("len(d)", TypeError, "`tf.data.Dataset` only supports `len` in eager mode."),
    ("d.batch(0)", errors.InvalidArgumentError, "`batch_size` must be greater than zero."),
    ("d.window(2).make_one_shot_iterator()", TypeError, "and use `flat_map` for datasets."),
    ("[tf.get_default_graph().finalize(), d.batch(2)]", RuntimeError, "Graph is finalized"),
    ("make_in_another_graph(n)", ValueError, "must be from the same graph as"),
]


@pytest.mark.parametrize(("code", "kind", "text"), WRONG)
def test_what_is_wrong(code: str, kind: type[Exception], text: str) -> None:
    def make_in_another_graph(tensor: Any) -> None:
        with tf.Graph().as_default():
            tf.data.Dataset.from_tensors(tensor)

    n = tf.placeholder(tf.int64, [], "n")
    there: dict[str, Any] = {"n": n, "make_in_another_graph": make_in_another_graph}
    dataset = tf.data.Dataset.range(3)
    there |= {"tf": tf, "Dataset": tf.data.Dataset, "d": dataset}
    with tf.Session() as session, pytest.raises(kind, match=re.escape(text)):
        eval(code, {**there, "session": session})
