"""Keras' older backend functions where they are more than an operation, as Keras 3.15 has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

K = mr.keras.backend
C = mr.constant

RESULTS: list[tuple[Callable[[], Any], Any]] = [
    (lambda: K.all(C([[1.0, 0.0], [2.0, 3.0]]), axis=1), [False, True]),
    (lambda: K.any(C([[0, 0], [2, 3]]), 1, True), [[False], [True]]),
    (lambda: K.std(C([True, False])), np.float32(0.5)),
    (lambda: K.var(C([True, False])), np.float32(0.25)),
    (lambda: K.clip(C([1.0, 2.0, 3.0]), 2, 1), [2.0, 2.0, 2.0]),
    (lambda: K.clip(C([-9.0, 9.0]), None, 1.0), [-9.0, 1.0]),
    (lambda: K.clip(C([-9.0, 9.0]), 0.0, None), [0.0, 9.0]),
    (lambda: K.hard_sigmoid(C([-3.0, 1.0, 3.0])), np.float32([0.0, 0.7, 1.0])),
    (lambda: K.sqrt(C([-1.0, 4.0])), [0.0, 2.0]),
    (lambda: K.softmax(C([[0.0, 0.0]]), axis=0), [[1.0, 1.0]]),
    (lambda: K.cast_to_floatx(mr.Variable([1, 2])), np.float32([1, 2])),
    (lambda: K.concatenate([C([[1]]), C([[2]])], axis=-2), [[1], [2]]),
    (lambda: K.tile(C([[1, 2]]), (1, 2)), [[1, 2, 1, 2]]),
    (lambda: K.reverse(C([[1, 2], [3, 4]]), [0, 1]), [[4, 3], [2, 1]]),
    (lambda: [int(each) for each in K.stop_gradient([C(1), C(2)])], [1, 2]),
    (lambda: K.get_value([1, 2]), [1, 2]),
    (lambda: K.dtype(mr.Variable(1)), "int32"),
]


@cases(("compute", "expected"), RESULTS)
def test_results(compute: Callable[[], Any], expected: Any) -> None:
    result = np.asarray(compute())
    assert result.tolist() == np.asarray(expected).tolist()


def test_variables_are_assigned() -> None:
    v = mr.Variable([1.0, 2.0])
    K.set_value(v, [3, 4])
    K.batch_set_value([(v, np.array([5.0, 6.0]))])
    assert K.update_add(v, [1.0, 1.0]) is v
    assert K.batch_get_value([K.update_sub(v, [2.0, 2.0])])[0].tolist() == [4.0, 5.0]
    assert K.update(v, [0.0, 1.0]).numpy().tolist() == [0.0, 1.0]


@cases(
    ("call", "text"),
    [
        (lambda: K.softmax(C([1.0, 2.0])), "Cannot apply softmax to a tensor that is 1D"),
        (lambda: K.repeat(C([1.0]), 2), "to have rank 2"),
        (lambda: K.set_value(mr.Variable([1.0]), [1, 2]), "Shape mismatch"),
    ],
)
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


def test_a_loss_is_written_with_them() -> None:
    model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", lambda y, p: K.mean(K.square(p - y), axis=-1))
    history = model.fit(np.ones((2, 1)), np.zeros((2, 1)), verbose=0).history
    assert history == {"loss": [1.0]}


def test_the_image_data_format() -> None:
    K.set_image_data_format("channels_first")
    assert mr.keras.config.image_data_format() == "channels_first"
    layer = mr.layers.ZeroPadding2D()
    K.set_image_data_format("channels_last")
    assert layer(np.ones((1, 3, 2, 2))).shape == (1, 3, 4, 4)
    assert mr.layers.Flatten().data_format == "channels_last"
    with pytest.raises(ValueError, match="`data_format` argument must be one of"):
        K.set_image_data_format("NHWC")
    assert K.image_data_format() == "channels_last"
