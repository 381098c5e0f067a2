"""Gradient descent against TensorFlow's own numbers and against Keras."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.optim import SGD


@pytest.mark.behaviour("sgd")
def test_two_variables() -> None:
    a, b = mr.Variable([1.0, 2.0]), mr.Variable([3.0, 4.0])
    gradients = [mr.constant([0.1, 0.1]), mr.constant([0.01, 0.01])]
    SGD(3.0).apply_gradients(zip(gradients, [a, b], strict=True))
    np.testing.assert_allclose(a.numpy(), [0.7, 1.7], rtol=1e-6)
    np.testing.assert_allclose(b.numpy(), [2.97, 3.97], rtol=1e-6)


@pytest.mark.behaviour("momentum")
def test_momentum() -> None:
    a, b = mr.Variable([1.0, 2.0]), mr.Variable([3.0, 4.0])
    optimizer = SGD(2.0, momentum=0.9)
    expected = [
        ([0.8, 1.8], [2.98, 3.98], -0.2, -0.02),
        ([0.42, 1.42], [2.942, 3.942], -0.38, -0.038),
    ]
    for after_a, after_b, slot_a, slot_b in expected:
        optimizer.apply_gradients([(mr.constant([0.1, 0.1]), a), (mr.constant([0.01, 0.01]), b)])
        np.testing.assert_allclose(a.numpy(), after_a, rtol=1e-6)
        np.testing.assert_allclose(b.numpy(), after_b, rtol=1e-6)
        slots = [each.numpy() for each in optimizer.variables[2:]]
        np.testing.assert_allclose(slots[0], [slot_a] * 2, rtol=1e-6)
        np.testing.assert_allclose(slots[1], [slot_b] * 2, rtol=1e-6)


@pytest.mark.behaviour("nesterov")
def test_nesterov() -> None:
    x, y = mr.Variable(1.0, dtype="float64"), mr.Variable(3.0, dtype="float64")
    optimizer = SGD(2.0, momentum=0.9, nesterov=True)
    xs = [-37.0, 1352.8, -49468.78, 1808955.838]
    ys = [-8.4, -24.66, -45.294, -69.8646]
    for after_x, after_y in zip(xs, ys, strict=True):
        with mr.GradientTape() as tape:
            loss = 5.0 * x * x + 3.0 * y
        optimizer.apply_gradients(zip(tape.gradient(loss, [x, y]), [x, y], strict=True))
        np.testing.assert_allclose([x.numpy(), y.numpy()], [after_x, after_y], rtol=1e-12)


@pytest.mark.parametrize(
    ("nesterov", "expected"),
    [
        (False, [[0.95, 2.1], [0.85, 2.3], [0.7, 2.6], [0.5, 3.0]]),
        (True, [[0.9, 2.2], [0.75, 2.5], [0.55, 2.9], [0.3, 3.4]]),
    ],
)
def test_a_momentum_of_one_forgets_nothing(nesterov: bool, expected: list[list[float]]) -> None:
    """Keras 3.15 takes it too; these are its numbers."""
    variable, optimizer = mr.Variable([1.0, 2.0]), SGD(0.5, momentum=1.0, nesterov=nesterov)
    for values in expected:
        optimizer.apply_gradients([(mr.constant([0.1, -0.2]), variable)])
        np.testing.assert_allclose(variable.numpy(), values, rtol=1e-6)


@pytest.mark.behaviour("half-square")
@pytest.mark.parametrize(("momentum", "drops"), [(0.0, [0.1, 0.09]), (0.9, [0.1, 0.18])])
def test_half_the_square(momentum: float, drops: list[float]) -> None:
    v = mr.Variable(1.0)
    optimizer = SGD(0.1, momentum=momentum)
    for drop in drops:
        before = float(v)
        with mr.GradientTape() as tape:
            loss = v * v / 2.0
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        np.testing.assert_allclose(before - float(v), drop, rtol=1e-5)


# What Keras 3.15.1 on TensorFlow 2.21.0 makes of START with GRADIENTS (conftest.py) in float64:
# keras.backend.set_floatx("float64"), two keras.Variable of START, keras.optimizers.SGD(0.1, ...),
# three times apply_gradients. Keras rounds its settings to float32, hence the tolerance.
KERAS: list[tuple[dict[str, Any], Any, Any]] = [
    ({}, [[0.84, -1.9925], [0.17, 2.87]], [-0.151, -0.322, 4.078]),
    (
        {"momentum": 0.9},
        [[0.8678999995, -1.9808000007], [-0.34299998, 2.6666000062]],
        [-0.5127099904, 0.1245799882, 4.038130001],
    ),
    (
        {"momentum": 0.9, "nesterov": True},
        [[0.7211100027, -1.9752200011], [-0.5886999619, 2.5699400136]],
        [-0.8374389732, 0.4651219685, 4.112317],
    ),
    (
        {"momentum": 0.5, "weight_decay": 0.01},
        [[0.8544779891, -1.9840309781], [-0.0557488005, 2.7562589572]],
        [-0.3520967512, -0.0717472513, 4.0433044993],
    ),
    (
        {"clipnorm": 0.5},
        [[0.9666482796, -2.0015559798], [0.4434750884, 2.9607541095]],
        [0.2178600422, -0.7375052212, 4.0427328061],
    ),
    ({"clipvalue": 0.25}, [[0.99, -1.9925], [0.45, 2.975]], [0.224, -0.752, 4.003]),
    (
        {"momentum": 0.9, "global_clipnorm": 0.75},
        [[0.9453145129, -1.9883164771], [0.2902828705, 2.9585457665]],
        [0.163215909, -0.664259892, 4.0279653545],
    ),
]


@cases(("settings", "first", "second"), KERAS, ids=[str(row[0]) for row in KERAS])
@cases(("dtype", "tolerance"), [("float64", 1e-7), ("float32", 2e-6)])
def test_against_keras(
    take_steps: Any, dtype: str, tolerance: float, settings: Any, first: Any, second: Any
) -> None:
    mr.keras.backend.set_floatx(dtype)
    for variable, expected in zip(take_steps(SGD(0.1, **settings)), (first, second), strict=True):
        assert variable.dtype.name == dtype
        np.testing.assert_allclose(variable.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_slots() -> None:
    v = mr.Variable([1.0, 2.0], name="dense/kernel", dtype="float64")
    plain, heavy = SGD(), SGD(momentum=0.5, name="sgd")
    plain.build([v])
    heavy.build([v])
    assert plain.variables[2:] == []
    (slot,) = heavy.variables[2:]
    assert (slot.name, slot.shape, slot.dtype.name) == (
        "sgd/dense_kernel_momentum:0",
        (2,),
        "float64",
    )
    assert slot.trainable is False


@cases("momentum", [-0.1, 1.01, 2, "0.5", None, True, float("nan")])
def test_momentum_out_of_range(momentum: Any) -> None:
    with pytest.raises(
        ValueError, match="`momentum` must be a finite number of 0 or more and at most 1"
    ):
        SGD(momentum=momentum)
