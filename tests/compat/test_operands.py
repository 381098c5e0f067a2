"""Numbers among the arguments of operations: constants, as TensorFlow 2.21 has them."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def names() -> dict[str, Any]:
    return {
        "tf": tf,
        "np": np,
        "x": tf.placeholder(tf.float32, [None, 3], name="x"),
        "i": tf.placeholder(tf.int32, [3], name="i"),
        "u": tf.placeholder(tf.float32, name="u"),
        "v": tf.Variable([1.0, 2.0], name="v"),
        "n": tf.placeholder(tf.float32, [], name="n"),
    }


# An expression, and the operations that it draws.
DRAWN = [
    ("x + 1.0", "add/y:Const add:AddV2"),
    ("2.0 * x", "mul/x:Const mul:Mul"),
    ("x + np.arange(3)", "add/y:Const add:AddV2"),
    ("tf.add(1.0, 2.0)", "Add/x:Const Add/y:Const Add:AddV2"),
    ("tf.matmul(x, [[1.0], [2.0], [3.0]], name='p')", "p/b:Const p:MatMul"),
    ("tf.nn.bias_add(x, [1.0, 2.0, 3.0])", "BiasAdd/bias:Const BiasAdd:BiasAdd"),
    ("tf.square(3.0)", "Square/x:Const Square:Square"),
    ("tf.reduce_sum(x)", "Const:Const Sum:Sum"),
    ("tf.reduce_mean(x, 1)", "Mean/reduction_indices:Const Mean:Mean"),
    (
        "tf.reduce_mean(u)",
        "Rank:Rank range/start:Const range/delta:Const range:Range Mean:Mean",
    ),
    ("tf.reshape(x, [-1])", "Reshape/shape:Const Reshape:Reshape"),
    ("tf.concat([x, x], 0)", "concat/axis:Const concat:ConcatV2"),
    ("tf.transpose(x)", "transpose/perm:Const transpose:Transpose"),
    (
        "tf.one_hot(i, 3)",
        "one_hot/on_value:Const one_hot/off_value:Const one_hot/depth:Const one_hot:OneHot",
    ),
    (
        "x[:, 1]",
        "strided_slice/stack:Const strided_slice/stack_1:Const strided_slice/stack_2:Const "
        "strided_slice:StridedSlice",
    ),
    (
        "tf.random_uniform([2], 0, 1)",
        "random_uniform/shape:Const random_uniform/RandomUniform:RandomUniform",
    ),
    (
        "tf.random_normal(tf.shape(x), stddev=0.5, name='r')",
        "Shape:Shape r/mean:Const r/stddev:Const r/RandomStandardNormal:RandomStandardNormal "
        "r/mul:Mul r:AddV2",
    ),
    (
        "tf.random_uniform([2], -1, 1)",
        "random_uniform/shape:Const random_uniform/min:Const random_uniform/max:Const "
        "random_uniform/RandomUniform:RandomUniform random_uniform/sub:Sub random_uniform/mul:Mul "
        "random_uniform:AddV2",
    ),
    (
        "tf.clip_by_value(x, 0.0, 1.0)",
        "clip_by_value/Minimum/y:Const clip_by_value/Minimum:Minimum "
        "clip_by_value/y:Const clip_by_value:Maximum",
    ),
    ("tf.range(5)", "range/start:Const range/limit:Const range/delta:Const range:Range"),
    ("x + [n, 1.0, n]", "add/y/1:Const add/y:Pack add:AddV2"),
    (
        "tf.constant(2.0) * [[n, 1.0], [2.0, 3.0]]",
        "Const:Const mul/y/0/1:Const mul/y/0:Pack mul/y/1:Const mul/y:Pack mul:Mul",
    ),
    ("tf.reduce_mean([v, v], 0)", "packed:Pack Mean/reduction_indices:Const Mean:Mean"),
    ("tf.div(x, 2.0)", "div/y:Const div:RealDiv"),
    ("v.assign([3.0, 4.0])", "Assign/value:Const Assign:Assign"),
]


@pytest.mark.parametrize(("code", "drawn"), DRAWN)
def test_constants_are_operations(graph: tf.Graph, code: str, drawn: str) -> None:
    given = names()
    before = len(graph.get_operations())
    result = eval(code, given)
    after = graph.get_operations()[before:]
    assert " ".join(f"{each.name}:{each.type}" for each in after) == drawn
    assert result.op is after[-1]
    read = {tensor.op for each in after for tensor in each.inputs}
    assert read.issuperset(each for each in after if each.type == "Const")


def test_constants_may_be_fed() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = x * 3.0
    with tf.Session() as session:
        fed = {x: [1.0, 2.0], "mul/y:0": 5.0}
        assert session.run([y, "mul/y:0"], fed)[0].tolist() == [5.0, 10.0]
        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [3.0, 6.0]


def test_the_log_has_constants(caplog: pytest.LogCaptureFixture) -> None:
    y = tf.constant([1.0, 2.0], name="x") + 1.0
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        session.run(y)
    placed = [each.rpartition(": /job")[0] for each in caplog.messages if "replica" in each]
    assert placed[-3:] == ["x: (Const)", "add/y: (Const)", "add: (AddV2)"]


WRONG = [
    ("x + i", TypeError, "Input 'y' of 'AddV2' Op has type int32 that does not match type float32"),
    ("i + 1.5", TypeError, "Input 'y' of 'AddV2' Op has type float32 that does not match type int"),
    ("i * 2.0", TypeError, "Expected int32 passed to parameter 'y' of op 'Mul', got 2.0 of type"),
    ("tf.matmul(x, i)", TypeError, "Input 'b' of 'MatMul' Op has type int32 that does not match"),
    ("tf.add(1, 2.5)", TypeError, "Input 'y' of 'AddV2' Op has type float32 that does not match"),
    ("tf.nn.bias_add(x, i)", ValueError, "bias: Tensor conversion requested dtype float32 for"),
    ("tf.concat([x, i], 0)", TypeError, "'ConcatV2' Op have types [float32, int32] that don't all"),
    ("v.assign(i)", TypeError, "Input 'value' of 'Assign' Op has type int32 that does not match"),
    ("x + None", ValueError, "None values not supported."),
]


@pytest.mark.parametrize(("code", "kind", "text"), WRONG)
def test_what_is_wrong(code: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        eval(code, names())
