"""Where the names of TensorFlow 2 draw graphs: in a graph's scope, and without eager execution."""

import inspect
import os
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked_programs import run_program

import mirrored as tf
from mirrored.compat.v1 import eager_execution, graph, partial_shapes

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def modes() -> Iterator[None]:
    yield
    graph.set_execution_mode(graph.BOTH)
    partial_shapes.disable_v2_tensorshape()
    v1.reset_default_graph()


@pytest.fixture(params=["disabled", "entered"])
def in_graph(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw into the default graph without eager execution, or into one that is entered."""
    if request.param == "disabled":
        v1.disable_eager_execution()
        yield
        return
    with tf.Graph().as_default():
        yield


def line() -> Any:
    x = v1.placeholder(tf.float32, (None, 3))
    w = tf.Variable(tf.zeros([3, 2]), name="w")
    b = tf.Variable(tf.zeros([2]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - 1.0))
    train = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        fed = {x: np.ones((4, 3), np.float32)}
        session.run(train, fed)
        return *session.run([loss, w], fed), w.name, b.name, loss.name


# What TensorFlow 2.21 returns for it.
LINE = (1.0, np.full((3, 2), 0.5), "w:0", "Variable:0", "Mean:0")


def test_a_program_trains(in_graph: None) -> None:
    for value, expected in zip(line(), LINE, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert not tf.executing_eagerly()


# A call without tensors, the name of its result in TensorFlow, and its value.
CALLS: list[tuple[Callable[[], Any], str, Any]] = [
    (lambda: tf.constant([1.0, 2.0]), "Const:0", [1.0, 2.0]),
    (lambda: tf.constant(3.0, shape=[2], name="c"), "c:0", [3.0, 3.0]),
    (lambda: tf.convert_to_tensor([1]), "Const:0", [1]),
    (lambda: tf.reduce_sum([[1.0, 2.0]], 1, True), "Sum:0", [[3.0]]),
    (lambda: tf.math.exp(0.0), "Exp:0", 1.0),
    (lambda: tf.nn.relu([-1.0, 1.0]), "Relu:0", [0.0, 1.0]),
    (lambda: tf.linalg.matmul([[1.0]], [[2.0]]), "MatMul:0", [[2.0]]),
    (lambda: tf.zeros([2]), "zeros:0", [0.0, 0.0]),
    (lambda: tf.where([True], [1.0], [2.0]), "SelectV2:0", [1.0]),
    (lambda: tf.where([True, False]), "Where:0", [[0]]),
    (lambda: tf.boolean_mask([1, 2], [True, False]), "boolean_mask/GatherV2:0", [1]),
    (lambda: tf.boolean_mask([[1, 2]], [True, False], 1), "boolean_mask/GatherV2:0", [[1]]),
    (lambda: tf.unique([1, 1, 2])[0], "Unique:0", [1, 2]),
    (lambda: tf.shape([[1.0]]), "Shape:0", [1, 1]),
    (lambda: tf.clip_by_value([5.0], 0.0, 1.0), "clip_by_value:0", [1.0]),
    (lambda: tf.numpy_function(np.negative, [1.0], tf.float32), "PyFunc:0", -1.0),
    (lambda: tf.nn.l2_loss([1.0]), "L2Loss:0", 0.5),
    (lambda: tf.debugging.check_numerics([1.0], "x"), "CheckNumerics:0", [1.0]),
    (lambda: tf.cond(tf.constant(True), lambda: [tf.constant(1.0)], lambda: [0.0])[0], "", 1.0),
    (lambda: tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])[0], "", 3),
    (lambda: tf.map_fn(lambda x: x * 2.0, tf.constant([1.0])), "", [2.0]),
    (lambda: tf.random.uniform([2], 1.0, 1.0), "", [1.0, 1.0]),
    (lambda: tf.nn.dropout([1.0], 0.0), "", [1.0]),
    (lambda: tf.math.in_top_k([0], [[2.0, 1.0]], 1), "", [True]),
    (lambda: tf.gradients(tf.square(x := tf.constant(3.0)), x)[0], "", 6.0),
]


@pytest.mark.parametrize(("call", "name", "value"), CALLS)
def test_calls_without_tensors(
    in_graph: None, call: Callable[[], Any], name: str, value: object
) -> None:
    tensor = call()
    assert isinstance(tensor, tf.Tensor)
    assert tf.is_tensor(tensor)
    assert tf.is_symbolic_tensor(tensor)
    assert tensor.name == name or not name
    with v1.Session() as session:
        assert session.run(tensor).tolist() == value


MODULES = {
    "": tf,
    **{
        home: getattr(tf, home)
        for home in ("debugging", "dtypes", "linalg", "math", "nn", "random", "summary")
    },
}


def test_functions_draw_or_have_no_tensors() -> None:
    """Guard the lists of what stays eager against names that are new."""
    signatures = {
        (home, name): list(inspect.signature(getattr(module, name)).parameters)
        for home, module in MODULES.items()
        for name in dir(module)
        if name[0] != "_" and inspect.isfunction(getattr(module, name))
    }
    v1.disable_eager_execution()
    unchanged = set()
    for (home, name), parameters in signatures.items():
        module = MODULES[home]
        try:
            drawing = getattr(module, name)
        except AttributeError as error:
            assert "is not provided in graphs" in str(error)  # noqa: PT017
            continue
        if drawing is vars(module)[name]:
            unchanged.add(name)
        elif name != "init_scope":
            assert list(inspect.signature(drawing).parameters) == parameters, name
    assert unchanged == eager_execution._UNCHANGED & {name for _, name in signatures}


def test_the_library_computes_while_a_program_draws(in_graph: None) -> None:
    dataset = tf.data.Dataset.range(2).map(lambda x: tf.cast(x, tf.float32) + tf.ones([1]))
    assert [x.numpy().tolist() for x in dataset] == [[1.0], [2.0]]
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", lambda y, p: tf.square(y - p) + tf.zeros([1]))
    history = model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    assert history.history["loss"] == [1.0]

    def inside(x: Any) -> Any:
        return x + tf.ones([1]).numpy()[0]

    with v1.Session() as session:
        result = session.run(tf.numpy_function(inside, [tf.constant(1.0)], tf.float32))
    assert result == 2.0


def test_graphs_end_where_their_scope_does() -> None:
    with tf.Graph().as_default() as drawn, tf.name_scope("scope"), tf.device("/cpu:0"):
        total = tf.add(1.0, tf.constant(2.0, name="two"))
        assert tf.get_current_name_scope() == "scope"
        assert isinstance(total.op, tf.Operation)
        with tf.init_scope():
            assert not tf.executing_eagerly()
    assert (total.name, total.device, total.graph) == ("scope/Add:0", "/device:CPU:0", drawn)
    assert float(tf.add(1.0, 2.0)) == 3.0
    assert tf.executing_eagerly()
    assert isinstance(tf.Variable(1.0), tf.Variable)


def test_print_and_assertions_are_operations(
    in_graph: None, capfd: pytest.CaptureFixture[str]
) -> None:
    x = tf.constant([1.0, 2.0])
    operations = [tf.print("x is", x), tf.Assert(True, [x]), tf.debugging.assert_equal(x, x, "no")]
    with tf.control_dependencies(operations):
        y = tf.identity(x)
    with v1.Session() as session:
        session.run(y)
        assert "x is [1 2]" in capfd.readouterr().err
        wrong = tf.debugging.assert_equal(x, 3.0, "they differ")
        with pytest.raises(tf.errors.InvalidArgumentError, match="they differ"):
            session.run(wrong)


def test_variables(in_graph: None) -> None:
    v = tf.Variable([1.0, 2.0], trainable=False, name="v", dtype=tf.float64)
    added = v.assign_add([1.0, 1.0])
    with v1.Session() as session:
        session.run(v.initializer)
        assert session.run(added).tolist() == [2.0, 3.0]
    assert (v.name, v.trainable, v1.trainable_variables()) == ("v:0", False, [])
    assert isinstance(v1.get_variable("w", [2]), tf.Variable)
    assert not isinstance(tf.constant(1.0), tf.Variable)
    with pytest.raises(AttributeError, match=r"session.run"):
        v.numpy()
    with tf.MirroredStrategy().scope(), pytest.raises(RuntimeError, match="Remove `disable_eager"):
        tf.Variable(1.0)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("GradientTape", "Use `tf.gradients`"),
        ("function", "Call the function directly"),
        ("Module", "Keep the variables"),
        ("random.Generator", "Use `tf.random.normal`"),
        ("summary.scalar", "Use `tf.compat.v1.summary`"),
        ("debugging.assert_shapes", "Use `tf.compat.v1.assert_equal`"),
    ],
)
def test_what_is_refused(in_graph: None, name: str, advice: str) -> None:
    home, _, last = f"tf.{name}".rpartition(".")
    with pytest.raises(AttributeError, match=f"`tf.{name}` is not provided in graphs.*{advice}"):
        getattr(eval(home), last)
    with pytest.raises(TypeError, match=r"is not part of a session's graph.*compat.v1.layers"):
        tf.keras.layers.Dense(2)(v1.placeholder(tf.float32, [None, 3]))


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_eager_values_are_no_part_of_a_graph(make: Any) -> None:
    value = make(1.5)
    advice = re.escape("`import mirrored.compat.v1 as tf` add operations to a graph. Those of")
    with tf.Graph().as_default(), v1.Session() as session:
        with pytest.raises(RuntimeError, match=f"graph is empty.*{advice}"):
            session.run(value)
        x = v1.placeholder(tf.float32, [])
        for fetch in (value, [x, value], {"v": value}):
            with pytest.raises(TypeError, match=f"computed eagerly and is in no graph. .*{advice}"):
                session.run(fetch, {x: 1.0})
        if make is tf.constant:  # Variables are no keys of a dict.
            with pytest.raises(TypeError, match=f"computed eagerly and is in no graph. .*{advice}"):
                session.run(x, {value: 1.0})
        for use in (lambda: x + value, lambda: tf.add(value, 1.0), lambda: tf.Variable(value)):
            with pytest.raises(RuntimeError, match=f"Attempting to capture an EagerT.*{advice}"):
                use()
        assert session.run(x * 2.0, {x: value.numpy()}) == 2.0 * value.numpy()


def test_functional_models_are_drawn_in_scopes_of_graphs(in_graph: None) -> None:
    x = tf.keras.Input((2,))
    model = tf.keras.Model(x, tf.square(x) + 1.0)
    assert model.predict(np.full((1, 2), 2.0), verbose=0).tolist() == [[5.0, 5.0]]


def test_keras_placeholders_are_no_part_of_a_graph() -> None:
    x = v1.placeholder(tf.float32, [])
    with v1.Session() as session, pytest.raises(TypeError, match=r"functional model.*placeholder`"):
        session.run([x, tf.keras.Input((2,))])


def test_modes() -> None:
    assert (tf.executing_eagerly(), v1.executing_eagerly()) == (True, False)
    x = v1.placeholder(tf.float32, [None, 3])
    assert x.shape[0] is not None
    v1.disable_eager_execution()
    assert (tf.executing_eagerly(), v1.executing_eagerly()) == (False, False)
    assert (x.shape[0], list(x.shape), str(x.shape)) == (None, [None, 3], "(None, 3)")
    v1.disable_v2_behavior()
    assert (str(x.shape), x.shape[1].value) == ("(?, 3)", 3)
    with pytest.raises(ValueError, match=r"at program startup.*reset_default_graph"):
        v1.enable_eager_execution()
    v1.reset_default_graph()
    v1.enable_v2_behavior()
    assert (tf.executing_eagerly(), v1.executing_eagerly()) == (True, True)
    with pytest.raises(
        RuntimeError, match=r"not compatible with eager execution.*Remove that call"
    ):
        v1.placeholder(tf.float32)
    with v1.Graph().as_default():
        v1.placeholder(tf.float32)
    v1.enable_eager_execution()


def test_functions_of_scripts_that_name_the_package_travel() -> None:
    """A process pool sends a function of `__main__` with the modules that it names."""
    for module in (tf, tf.math):
        assert type(module) is eager_execution.GraphModule
        assert pickle.loads(pickle.dumps(module)) is module


SESSION_FIRST = """
import mirrored as tf
v1 = tf.compat.v1
v1.disable_eager_execution()
total = v1.nn.relu([1.0, -1.0])
with v1.Session() as session:
    print(session.run(total).tolist())
"""


def test_a_session_may_be_what_a_program_imports_first(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SESSION_FIRST, "utf-8")
    done = run_program(program, folder=tmp_path, environment=dict(os.environ), torn_down=False)
    assert (done.stderr, done.stdout) == ("", "[1.0, 0.0]\n")
