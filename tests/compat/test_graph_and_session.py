"""Graphs and sessions of TensorFlow 1's programs; what is expected is what TensorFlow 2.21 does."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf
from mirrored import errors
from mirrored.compat.v1.call_table import ROWS

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


# Each expression of tensors, the name and the type that TensorFlow gives its result.
NAMES = [
    ("x + x", "add:0", "AddV2"),
    ("x - 1.0", "sub:0", "Sub"),
    ("2.0 * x", "mul:0", "Mul"),
    ("x / x", "truediv:0", "RealDiv"),
    ("x // x", "floordiv:0", "FloorDiv"),
    ("x % x", "mod:0", "FloorMod"),
    ("x ** x", "pow:0", "Pow"),
    ("-x", "Neg:0", "Neg"),
    ("abs(x)", "Abs:0", "Abs"),
    ("x < x", "Less:0", "Less"),
    ("x >= x", "GreaterEqual:0", "GreaterEqual"),
    ("b & b", "and:0", "LogicalAnd"),
    ("~b", "LogicalNot:0", "LogicalNot"),
    ("m @ m", "matmul:0", "MatMul"),
    ("x[:, 1]", "strided_slice:0", "StridedSlice"),
    ("tf.add(x, x)", "Add:0", "AddV2"),
    ("tf.add(x, x, name='sum')", "sum:0", "AddV2"),
    ("tf.divide(x, x)", "truediv:0", "RealDiv"),
    ("tf.mod(x, x)", "FloorMod:0", "FloorMod"),
    ("tf.reduce_mean(x)", "Mean:0", "Mean"),
    ("tf.argmax(x, dimension=1)", "ArgMax:0", "ArgMax"),
    ("tf.to_float(b)", "ToFloat:0", "Cast"),
    ("tf.transpose(x)", "transpose:0", "Transpose"),
    ("tf.concat([x, x], 0)", "concat:0", "ConcatV2"),
    ("tf.zeros([2])", "zeros:0", "Const"),
    ("tf.where(b, x, x)", "Select:0", "Select"),
    ("tf.nn.softmax(x)", "Softmax:0", "Softmax"),
    ("tf.nn.bias_add(x, [1.0, 2.0, 3.0])", "BiasAdd:0", "BiasAdd"),
]


@pytest.mark.parametrize(("expression", "name", "kind"), NAMES)
def test_names_and_types(expression: str, name: str, kind: str) -> None:
    values = {
        "tf": tf,
        "x": tf.placeholder(tf.float32, [None, 3], name="x"),
        "b": tf.placeholder(tf.bool, [None, 3], name="b"),
        "m": tf.placeholder(tf.float32, [3, 3], name="m"),
    }
    tensor = eval(expression, values)
    assert (tensor.name, tensor.op.type) == (name, kind)


def test_each_name_is_there() -> None:
    for name in ROWS:
        found: Any = tf
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)
    assert tf.math.add(1.0, 2.0).op.type == "AddV2"
    assert tf.linalg.inv([[2.0]]).op.type == "MatrixInverse"
    assert tf.random.shuffle([2]).op.type == "RandomShuffle"


def test_scopes_draw_into_the_graph_of_their_values() -> None:
    with tf.Graph().as_default() as other:
        x = tf.placeholder(tf.float32, [])
    with tf.name_scope("a", values=[x]), tf.variable_scope(None, "b", [x]):
        constant = tf.constant(1.0)
    assert (constant.graph, constant.name) == (other, "a/b/Const:0")
    assert tf.get_default_graph() is not other


def test_names_in_a_graph(graph: tf.Graph) -> None:
    """The order and the names of TensorFlow's own program of these lines."""
    for _ in range(2):
        tf.constant(1.0)
    tf.constant(1.0, name="const")
    tf.Variable([1.0, 2.0], name="v")
    with tf.name_scope("a"), tf.name_scope("b"):
        inner = tf.placeholder(tf.float32, [2])
    with tf.name_scope("a"):
        tf.no_op()
    tf.global_variables_initializer()
    assert [f"{each.name}:{each.type}" for each in graph.get_operations()] == [
        "Const:Const",
        "Const_1:Const",
        "const_2:Const",
        "v/initial_value:Const",
        "v:VariableV2",
        "v/Assign:Assign",
        "v/read:Identity",
        "a/b/Placeholder:Placeholder",
        "a_1/NoOp:NoOp",
        "init:NoOp",
    ]
    assert graph.get_tensor_by_name("a/b/Placeholder:0") is inner
    assert repr(inner) == "<tf.Tensor 'a/b/Placeholder:0' shape=(2,) dtype=float32>"


def test_fetches_keep_their_structure() -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    total = tf.reduce_sum(x, keep_dims=True, reduction_indices=[0], name="total")
    with tf.Session() as session:
        fetches = [total, ("x:0", {"op": "total", "twice": total * 2.0})]
        (first, (given, named)) = session.run(fetches, {"x:0": [1, 2, 3]})
        assert (first.tolist(), given.tolist()) == ([6.0], [1.0, 2.0, 3.0])
        assert (named["op"], named["twice"].tolist()) == (None, [12.0])
        assert session.run([]) == []
        assert total.eval({total: [5.0]}).tolist() == [5.0]
        assert (total * 3.0).eval({total: [5.0]}).tolist() == [15.0]


def test_variables_belong_to_sessions() -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    add = tf.assign_add(v, [1.0, 1.0])
    init = tf.global_variables_initializer()
    first, second = tf.Session(), tf.Session()
    for session in (first, second):
        session.run(init)
    assert first.run(add).tolist() == [2.0, 3.0]
    assert first.run([v, add])[1].tolist() == [3.0, 4.0]
    assert second.run(v).tolist() == [1.0, 2.0]
    assert second.run(v * 2.0, {v: [5.0, 6.0]}).tolist() == [10.0, 12.0]
    assert second.run(v).tolist() == [1.0, 2.0]


# What each does to the rows [[1, 2], [3, 4], [5, 6]].
SCATTERS = [
    ("scatter_update(v, [0, 2], [[7.0, 8.0], [9.0, 9.0]])", [[7.0, 8.0], [3.0, 4.0], [9.0, 9.0]]),
    ("scatter_add(v, [1, 1], [[1.0, 1.0], [2.0, 2.0]])", [[1.0, 2.0], [6.0, 7.0], [5.0, 6.0]]),
    ("scatter_sub(v, 0, [1.0, 1.0])", [[0.0, 1.0], [3.0, 4.0], [5.0, 6.0]]),
    ("scatter_update(v, [1], 0.0)", [[1.0, 2.0], [0.0, 0.0], [5.0, 6.0]]),
]


@pytest.mark.parametrize(("code", "rows"), SCATTERS)
def test_rows_of_variables_are_changed(code: str, rows: list[list[float]]) -> None:
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    changed = eval(f"tf.{code}", {"tf": tf, "v": v})
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(changed).tolist() == rows
        assert v.eval(session).tolist() == rows


def test_what_a_session_and_a_graph_tell(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.name_scope("a"):
        assert graph.get_name_scope() == "a"
        total = tf.reduce_sum(x)
    assert x.consumers() == [total.op]
    tf.get_collection_ref("mine").append(total)
    assert graph.get_all_collection_keys() == ["mine"]
    with tf.Session() as session:
        assert session.make_callable([total], [x])([1.0, 2.0]) == [3.0]
        assert session.list_devices()[0].type == "CPU"
    graph.clear_collection("mine")
    assert tf.get_collection("mine") == []
    assert tf.convert_to_tensor(2, preferred_dtype=tf.float32).dtype == np.float32


def test_control_dependencies_run_first() -> None:
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign(5.0)]):
        after = v.read_value() + 1.0
        nothing = tf.no_op()
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(after) == 6.0
        session.run(v.initializer)
        nothing.run()
        assert v.eval() == 5.0


def test_gradients_follow_the_graph() -> None:
    x = tf.placeholder(tf.float64, [None, 3])
    w = tf.Variable(np.array([[1.0], [2.0], [3.0]]))
    other = tf.constant(1.0)
    hidden = tf.matmul(x, w)
    loss = tf.reduce_mean(tf.square(hidden - 1.0))
    by_w, by_hidden, none = tf.gradients(loss, [w, hidden, other])
    assert none is None
    assert by_w is not None
    assert tf.gradients(tf.stop_gradient(hidden), w) == [None]
    (again,) = tf.gradients(by_w, w)
    values = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, middle, second = session.run([by_w, by_hidden, again], {x: values})
        residual = values @ np.array([[1.0], [2.0], [3.0]]) - 1.0
        np.testing.assert_allclose(middle, residual, rtol=1e-12)
        np.testing.assert_allclose(first, values.T @ residual, rtol=1e-12)
        expected = values.T @ values.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(second, expected, rtol=1e-12)


def test_a_default_takes_the_place_of_what_is_not_fed() -> None:
    given = tf.constant([1.0, 2.0])
    x = tf.placeholder_with_default(given, [None])
    squares = x * x
    (by_x, by_given) = tf.gradients(squares, [x, given])
    with tf.Session() as session:
        assert session.run([squares, by_given])[1].tolist() == [2.0, 4.0]
        assert session.run(by_x, {x: [5.0, 6.0, 7.0]}).tolist() == [10.0, 12.0, 14.0]
        with pytest.raises(errors.InvalidArgumentError, match="A gradient cannot be fetched"):
            session.run(by_given, {x: [5.0, 6.0, 7.0]})


# What is wrong, in a graph of these tensors, with TensorFlow's class and text.
WRONG: list[tuple[str, type[Exception], str]] = [
    ("run(z)", errors.InvalidArgumentError, "'x' with dtype float and shape [?,3]\n"),
    ("run(v)", errors.FailedPreconditionError, "Attempting to use uninitialized value v\n"),
    ("run(z, {x: [1, 2, 3]})", ValueError, "shape (3,) for Tensor x:0, which has shape (?, 3)"),
    ("run(z, {x: [['a', 'b', 'c']]})", ValueError, "could not convert string to float"),
    ("run(z, {'x': 1})", TypeError, "Cannot interpret feed_dict key as Tensor: The name 'x' refe"),
    ("run(z, {'no:0': 1})", TypeError, "The operation, 'no', does not exist in the graph."),
    ("run(z, {3: 1})", TypeError, "key as Tensor: Can not convert a int into a Tensor."),
    ("run(z, {other: 1.0})", TypeError, "is not an element of this graph."),
    ("run(z, {x: z})", TypeError, "The value of a feed cannot be a tf.Tensor object."),
    ("run(z, 3)", TypeError, "must be a dictionary or collection.Mapping type object, inst"),
    ("run(i, {i: [1.5, 2]})", TypeError, "is not compatible with Tensor type int32"),
    ("run(i, {i: [2**40, 2]})", TypeError, "is not compatible with Tensor type int32"),
    ("run('zz')", ValueError, "The name 'zz' refers to an Operation not in the graph."),
    ("run('z:1')", ValueError, "The operation, 'z', exists but only has 1 outputs."),
    ("run(other)", ValueError, "is not an element of this graph.)"),
    ("run(3)", TypeError, 'Argument `fetch` = 3 has invalid type "int" must be a string or T'),
    ("run(z, options=3)", TypeError, "`options` must be a `tf.RunOptions`. Received: 3"),
    ("run(z, run_metadata=3)", TypeError, "`run_metadata` must be a `tf.RunMetadata`. Received: 3"),
    ("session.make_callable(i)(options=tf.RunOptions())", TypeError, "Pass `accept_options=True`"),
    ("tf.group(None)", TypeError, "'inputs' should be zero or more (nested) Tensors."),
    ("run(None)", TypeError, 'has invalid type "NoneType". Cannot be None'),
    ("z.eval()", ValueError, "Cannot evaluate tensor using `eval()`: No default session is reg"),
    ("z.op.run()", ValueError, "Cannot execute operation using `run()`: No default session is"),
    ("z + other", ValueError, "must be from the same graph as"),
    ("tf.assign(v, [1.0, 2.0, 3.0])", ValueError, "Dimension 0 in both shapes must be equal, bu"),
    (
        "len(z)",
        TypeError,
        "len is not well defined for a symbolic Tensor (z:0). Please call `x.sha",
    ),
    ("float(z)", TypeError, "A symbolic tf.Tensor (z:0) is not a number. Run it in a session"),
    (
        "np.array(z)",
        NotImplementedError,
        "Cannot convert a symbolic tf.Tensor (z:0) to a numpy arr",
    ),
    ("tf.constant(None)", ValueError, "None values not supported."),
    ("tf.constant(1.0, name='/a')", ValueError, "'/a' is not a valid root scope name."),
    ("bool(z)", errors.OperatorNotAllowedInGraphError, "as a Python `bool` is not allowed"),
    ("list(z)", errors.OperatorNotAllowedInGraphError, "Iterating over a symbolic `tf.Tensor`"),
    ("graph.get_tensor_by_name('x')", ValueError, "refers to an Operation, not a Tensor. Tensor"),
    (
        "graph.get_operation_by_name('x:0')",
        ValueError,
        "'x:0' appears to refer to a Tensor, not a ",
    ),
    ("graph.get_operation_by_name(3)", TypeError, "names are strings (or similar), not int."),
    ("run(z, {'no': 1})", TypeError, "The name 'no' looks like an (invalid) Operation name, not a"),
    (
        "run('a:b')",
        ValueError,
        "The name 'a:b' looks a like a Tensor name, but is not a valid one.",
    ),
    (
        "tf.group(3)",
        TypeError,
        "'inputs' should be zero or more (nested) Tensors. Received '3' with",
    ),
    ("tf.placeholder(tf.float32, -1)", ValueError, "Dimension -1 must be >= 0"),
    ("tf.variable_scope(3).__enter__()", TypeError, "must be a string or VariableScope."),
    ("graph.get_tensor_by_name('zz:0')", KeyError, "'zz', does not exist in the graph."),
    ("graph.get_operation_by_name('zz')", KeyError, "refers to an Operation not in the graph."),
    ("tf.placeholder(tf.float32, [2], name='a b')", ValueError, "is not a valid root scope name"),
    ("tf.constant([1.5], dtype=tf.int32)", TypeError, "1.5"),
    ("tf.Session('grpc://x')", errors.InvalidArgumentError, "A session runs in this process."),
    ("session.partial_run(1, z)", NotImplementedError, "`partial_run` is not provided"),
    ("tf.RunOptions(timeout_in_ms=5)", ValueError, "it is not provided here. Leave it out."),
    ("tf.nn.conv2d_backprop_input", AttributeError, "has no 'conv2d_backprop_input'. Use `tf.grad"),
    ("tf.nn.rnn_cell", AttributeError, "There are no cells of recurrent networks: write one"),
    (
        "tf.layers.separable_conv2d",
        AttributeError,
        "mirrored.compat.v1.layers has no 'separable_conv2d'. Use `tf.nn.separable_conv2d`.",
    ),
    (
        "tf.layers.no_such_name",
        AttributeError,
        "docs/howto/from-tensorflow-1.md lists the supported names.",
    ),
    ("tf.train.QueueRunner", AttributeError, "There are no queues: feed batches"),
    (
        "tf.train.import_meta_graph",
        AttributeError,
        "Graphs are not written: draw it by its program",
    ),
    ("tf.train.Supervisor", AttributeError, "Use `tf.Session`, with a `tf.train.Saver`"),
    (
        "tf.math.no_such_name",
        AttributeError,
        "docs/howto/from-tensorflow-1.md lists the supported names.",
    ),
    ("tf.enable_resource_variables", AttributeError, "value is a reference: leave it out."),
    ("tf.enable_tensor_equality", AttributeError, "Use `tf.equal`"),
    ("tf.FIFOQueue", AttributeError, "There are no queues: feed batches"),
    (
        "tf.no_such_name",
        AttributeError,
        "docs/howto/from-tensorflow-1.md lists the supported names.",
    ),
    ("tf.Session(graph=tf.Graph()).run([])", RuntimeError, "The Session graph is empty."),
    ("[session.close(), run(z)]", RuntimeError, "Attempted to use a closed Session."),
    ("[graph.finalize(), tf.no_op()]", RuntimeError, "Graph is finalized and cannot be modified."),
]


@pytest.mark.parametrize(("code", "kind", "text"), WRONG)
def test_what_is_wrong(graph: tf.Graph, code: str, kind: type[Exception], text: str) -> None:
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    session = tf.Session()
    names: dict[str, Any] = {
        "tf": tf,
        "graph": graph,
        "session": session,
        "run": session.run,
        "other": other,
        "x": x,
        "i": tf.placeholder(tf.int32, [2], name="i"),
        "v": tf.Variable([1.0, 2.0], name="v"),
        "z": tf.reduce_sum(x, name="z"),
        "np": np,
    }
    with pytest.raises(kind) as caught:
        eval(code, names)
    assert text in str(caught.value.args[0])
    assert text in getattr(caught.value, "message", text)  # As TensorFlow's own classes have it.


def test_a_run_is_recorded_once_for_each_shape() -> None:
    """The text of an operation runs where it is recorded, and not when it is replayed."""
    recorded = []

    def noting(value: Any) -> Any:
        recorded.append(value.shape)
        return value * 2.0

    x = tf.placeholder(tf.float32, [None])
    doubled = x.graph.draw(noting, (x,), kind="Noting", name="noting").outputs[0]
    recorded.clear()
    with tf.Session() as session:
        for size in (2, 3, 2, 3, 2):
            assert session.run(doubled, {x: np.ones(size)}).tolist() == [2.0] * size
    assert recorded == [(2,), (3,)]
