"""Convolution and pooling in graphs: TensorFlow 2.21's names, shapes and numbers."""

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


def given() -> dict[str, Any]:
    return {
        "tf": tf,
        "x": tf.placeholder(tf.float32, [None, 8, 8, 3], name="x"),
        "line": tf.placeholder(tf.float32, [None, 8, 3], name="line"),
        "any": tf.placeholder(tf.float32, [None, None, None, 3], name="any"),
        "w": tf.ones([3, 3, 3, 4], name="w"),
        "v": tf.ones([3, 3, 5, 3], name="v"),
    }


# An expression, the operations that it draws, and the shape of the last one.
DRAWN: list[tuple[str, str, list[int | None]]] = [
    ("tf.nn.conv2d(x, w, [1, 2, 2, 1], 'SAME', True, 'NHWC')", "Conv2D:Conv2D", [4, 4, 4]),
    ("tf.nn.conv2d(x, filters=w, strides=1, padding='VALID', name='c')", "c:Conv2D", [6, 6, 4]),
    ("tf.nn.conv2d(any, w, [1, 1, 1, 1], 'VALID')", "Conv2D:Conv2D", [None, None, 4]),
    (
        "tf.nn.conv2d(x, [[[[1.0]] * 3]], 2, 'SAME')",
        "Conv2D/filter:Const Conv2D:Conv2D",
        [4, 4, 1],
    ),
    ("tf.nn.conv1d(line, w[0], 1, 'SAME')", "conv1d:Conv2D", [8, 4]),
    (
        "tf.nn.conv2d_transpose(x, v, [2, 16, 16, 5], [1, 2, 2, 1])",
        "conv2d_transpose/input_sizes:Const conv2d_transpose:Conv2DBackpropInput",
        [16, 16, 5],
    ),
    (
        "tf.nn.conv2d_transpose(x, v, tf.stack([tf.shape(x)[0], 8, 8, 5]), [1, 1, 1, 1])",
        "conv2d_transpose:Conv2DBackpropInput",
        [8, 8, 5],
    ),
    (
        "tf.nn.depthwise_conv2d(x, w, [1] * 4, 'SAME')",
        "depthwise:DepthwiseConv2dNative",
        [8, 8, 12],
    ),
    ("tf.nn.convolution(x, w, 'VALID', dilation_rate=2)", "convolution:Conv2D", [4, 4, 4]),
    ("tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')", "MaxPool:MaxPool", [4, 4, 3]),
    ("tf.nn.avg_pool(value=x, ksize=3, strides=1, padding='VALID')", "AvgPool:AvgPool", [6, 6, 3]),
    ("tf.nn.max_pool(any, 2, 2, 'SAME', 'NHWC', 'm')", "m:MaxPool", [None, None, 3]),
    ("tf.nn.max_pool1d(line, 2, 2, 'SAME')", "MaxPool1d:MaxPool", [4, 3]),
    ("tf.layers.max_pooling2d(x, 2, (2, 1))", "max_pooling2d/MaxPool:MaxPool", [4, 7, 3]),
    ("tf.layers.average_pooling1d(line, 2, 2, name='p')", "p/AvgPool:AvgPool", [4, 3]),
    ("tf.layers.max_pooling2d(x, 2, 2, 'same', 'channels_first')", "", [8, 4, 2]),
    ("tf.layers.conv2d(x, 4, 3, use_bias=False)", "conv2d/Conv2D:Conv2D", [6, 6, 4]),
    ("tf.layers.conv2d(any, 4, 3)", "conv2d/Conv2D:Conv2D conv2d/BiasAdd:BiasAdd", [None, None, 4]),
    (
        "tf.layers.conv1d(line, 4, 3, dilation_rate=2, padding='SAME', name='c')",
        "c/conv1d:Conv2D c/BiasAdd:BiasAdd",
        [8, 4],
    ),
    ("tf.layers.conv2d_transpose(any, 4, 3, 2, 'same', use_bias=False)", "", [None, None, 4]),
    ("tf.layers.conv2d_transpose(x, 4, 3, 2, activation=tf.nn.relu)", "", [17, 17, 4]),
]


@pytest.mark.parametrize(("code", "drawn", "shape"), DRAWN)
def test_operations(graph: tf.Graph, code: str, drawn: str, shape: list[int | None]) -> None:
    values = given()
    before = len(graph.get_operations())
    result = eval(code, values)
    after = [f"{each.name}:{each.type}" for each in graph.get_operations()[before:]]
    assert " ".join(after).endswith(drawn)
    assert result.shape.as_list()[1:] == shape


def test_training_follows_tensorflow() -> None:
    rng = np.random.RandomState(0)
    begin = [
        tf.constant_initializer(rng.randn(*shape).astype("f") * 0.3)
        for shape in ((3, 3, 2, 4), (2, 2, 4, 3), (3, 3, 2, 3))
    ]
    x = tf.placeholder(tf.float32, [None, 8, 8, 2])
    y = tf.layers.conv2d(
        x, 4, 3, padding="same", activation=tf.nn.relu, kernel_initializer=begin[0], name="a"
    )
    y = tf.layers.max_pooling2d(y, 3, 2, "same")
    y = tf.layers.conv2d(y, 3, 2, 2, activation=tf.nn.tanh, kernel_initializer=begin[1], name="b")
    y = tf.layers.conv2d_transpose(y, 2, 3, 2, "same", kernel_initializer=begin[2], name="c")
    y = tf.nn.avg_pool(y, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    images, targets = rng.rand(4, 8, 8, 2).astype("f"), rng.rand(4, 4, 4, 2).astype("f")
    loss = tf.reduce_mean(tf.square(y - targets))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, train], {x: images})[0] for _ in range(4)]
        sums = [np.sum(value) for value in session.run(tf.trainable_variables())]
    names = [f"{layer}/{part}:0" for layer in "abc" for part in ("kernel", "bias")]
    assert [variable.name for variable in tf.trainable_variables()] == names
    expected = [0.25642290711402893, 0.11111821979284286, 0.10761573910713196, 0.10538916289806366]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    expected = [-0.427073121, -0.032763973, 4.619918346, -0.029422883, 2.443297625, 0.348902166]
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-6)


WRONG: list[tuple[str, str]] = [
    (
        "tf.layers.conv2d(line, 4, 3)",
        "conv2d is incompatible with the layer: expected ndim=4, foun",
    ),
    ("tf.layers.conv2d(x, 4, 3, padding='causal')", 'must be one of "valid", "same". Received: ca'),
    ("tf.layers.conv2d(x, 4, 3, 2, dilation_rate=2)", "`strides > 1` not supported in conjunction"),
    ("tf.layers.conv2d(x, 4, 9)", "Computed output size would be zero or negative"),
    ("tf.layers.conv2d(x, 4, (3, 3, 3))", "`kernel_size` argument must be a tuple of 2 integers"),
    ("tf.layers.conv2d(tf.placeholder(tf.float32, [2, 3, 3, None]), 4, 3)", "should be defined."),
    ("tf.layers.conv2d(x, 4, 3, kernel_constraint=abs)", "`kernel_constraint` and `bias_constrain"),
    ("tf.layers.max_pooling2d(x, 2, 2, data_format='NCHW')", "must be one of {'channels_first', "),
    ("tf.nn.conv2d(x, filter=w, filters=w, strides=1, padding='SAME')", "'filter' and 'filters'"),
]


@pytest.mark.parametrize(("code", "text"), WRONG)
def test_what_is_wrong(code: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        eval(code, given())
    assert not tf.global_variables()
