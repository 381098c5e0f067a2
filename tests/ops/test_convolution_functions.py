"""Arguments of convolution and of pooling that TensorFlow refuses."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import InvalidArgumentError

X = np.ones((1, 5, 5, 2), np.float32)
MARGINS = [[0, 0], [2, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: mr.nn.depthwise_conv2d(X, mr.ones((2, 2, 2, 1)), [1, 2, 2, 1], "SAME", None, 2),
            ValueError,
            "`strides > 1` not supported in conjunction",
        ),
        (
            lambda: mr.nn.conv2d(X, mr.ones((2, 2, 2, 1)), 1, padding=0),
            TypeError,
            "Expected string for argument 'padding' not 0",
        ),
        (
            lambda: mr.nn.max_pool2d(X, 2, 1, MARGINS),
            InvalidArgumentError,
            "Padding 2 needs to be smaller than the window size 2",
        ),
        (
            lambda: mr.nn.pool(X, [2, 1], "AVG", strides=[2, 2]),
            ValueError,
            "`strides` > `window_shape` not supported",
        ),
        (
            lambda: mr.keras.ops.conv(X, mr.ones((6, 1, 2, 1))),
            ValueError,
            "resulted in an empty output. Output shape: (1, 0, 5, 1)",
        ),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_a_convolution_of_no_examples_has_none() -> None:
    assert mr.keras.ops.conv(X[:0], mr.ones((6, 1, 2, 1)), padding="same").shape == (0, 5, 5, 1)


def test_the_batch_of_an_output_shape_may_be_open() -> None:
    filters = np.ones((3, 3, 4, 2), np.float32)
    assert mr.nn.conv2d_transpose(X, filters, [-1, 10, 10, 4], 2).shape == (1, 10, 10, 4)
