"""Adam against its paper, written out in NumPy, and against Keras."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from numpy.typing import NDArray

import mirrored as mr
from mirrored.optim import Adam

Array = NDArray[np.float64]


def reference(
    w: Array,
    gradients: list[Array],
    *,
    learning_rate: float = 0.1,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-7,
    amsgrad: bool = False,
) -> Array:
    """Return the weights after Kingma and Ba's algorithm, with the bias corrected on its own."""
    m = v = largest = np.zeros_like(w)
    for t, g in enumerate(gradients, start=1):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        largest = np.maximum(largest, v)
        m_hat = m / (1 - beta_1**t)
        scale = np.sqrt((largest if amsgrad else v) / (1 - beta_2**t))
        # The paper's closing remark of section 2 adds "epsilon hat" before the correction.
        w = w - learning_rate * m_hat / (scale + epsilon / np.sqrt(1 - beta_2**t))
    return w


SETTINGS: list[dict[str, Any]] = [
    {},
    {"beta_1": 0.5, "beta_2": 0.75},
    {"beta_1": 0.0},
    {"epsilon": 0.1},
    {"amsgrad": True, "beta_2": 0.5},
    {"learning_rate": 0.001, "amsgrad": True},
]


@cases("settings", SETTINGS, ids=str)
@cases(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 3e-4)])
def test_against_the_paper(dtype: str, tolerance: float, settings: dict[str, Any]) -> None:
    mr.keras.backend.set_floatx(dtype)
    rng = np.random.default_rng(1)
    start = rng.normal(size=(3, 4))
    gradients = [rng.normal(size=(3, 4)) * 4.0 ** rng.integers(-3, 3) for _ in range(12)]
    v = mr.Variable(start.astype(dtype))
    optimizer = Adam(**{"learning_rate": 0.1, **settings})
    for g in gradients:
        optimizer.apply_gradients([(g.astype(dtype), v)])
    expected = reference(start, gradients, **settings)
    np.testing.assert_allclose(v.numpy(), expected, rtol=tolerance, atol=tolerance)


# What Keras 3.15.1 on TensorFlow 2.21.0 makes of START with GRADIENTS (conftest.py) in float64:
# keras.backend.set_floatx("float64"), two keras.Variable of START, keras.optimizers.Adam(0.1, ...),
# three times apply_gradients. Keras rounds its settings to float32, hence the tolerance.
KERAS: list[tuple[dict[str, Any], Any, Any]] = [
    (
        {},
        [[0.9093568301, -1.904744654], [0.2750950434, 2.7696002262]],
        [0.0178011475, -0.7279401421, 4.0688262],
    ),
    (
        {"beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-3},
        [[0.9113912581, -1.91233127], [0.2805307425, 2.7745440869]],
        [0.040395118, -0.713839667, 4.0618863699],
    ),
    (
        {"beta_2": 0.5, "amsgrad": True},
        [[0.9131481482, -1.9051726786], [0.2975645394, 2.787107572]],
        [0.0413643542, -0.748830563, 4.0700479962],
    ),
    (
        {"weight_decay": 0.05},
        [[0.8951299935, -1.8758105163], [0.2689649996, 2.7262681337]],
        [0.0154399459, -0.7161196858, 4.0084796519],
    ),
    (
        {"clipnorm": 0.5},
        [[0.9226623194, -1.9525094715], [0.2726386541, 2.7738942692]],
        [0.0143555823, -0.7666271007, 4.1438478884],
    ),
    (
        {"clipvalue": 0.25},
        [[0.9257897081, -1.904744654], [0.2511983804, 2.7738045966]],
        [0.0134586647, -0.7885827077, 4.0429633445],
    ),
    (
        {"global_clipnorm": 0.75},
        [[0.8812649603, -1.8305578041], [0.2740153836, 2.7882589645]],
        [0.0175491604, -0.7442734059, 4.0902540514],
    ),
]


@cases(("settings", "first", "second"), KERAS, ids=[str(row[0]) for row in KERAS])
@cases(("dtype", "tolerance"), [("float64", 5e-6), ("float32", 2e-5)])
def test_against_keras(
    take_steps: Any, dtype: str, tolerance: float, settings: Any, first: Any, second: Any
) -> None:
    mr.keras.backend.set_floatx(dtype)
    for variable, expected in zip(take_steps(Adam(0.1, **settings)), (first, second), strict=True):
        assert variable.dtype.name == dtype
        np.testing.assert_allclose(variable.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("amsgrad", "names"),
    [(False, ["momentum", "velocity"]), (True, ["momentum", "velocity", "velocity_hat"])],
)
def test_slots(amsgrad: bool, names: list[str]) -> None:
    v = mr.Variable([[1.0, 2.0]], name="dense/kernel")
    optimizer = Adam(amsgrad=amsgrad)
    optimizer.build([v])
    slots = optimizer.variables[2:]
    assert [slot.name for slot in slots] == [f"adam/dense_kernel_{name}:0" for name in names]
    assert {slot.shape for slot in slots} == {(1, 2)}


@cases(
    ("settings", "match"),
    [
        (
            {"beta_1": 1.0},
            "`beta_1` must be a finite number of 0 or more and below 1. Received: beta_1",
        ),
        ({"beta_1": -0.5}, "`beta_1` must be a finite number of 0 or more and below 1"),
        ({"beta_2": 1.5}, "`beta_2` must be a finite number of 0 or more and below 1"),
        ({"beta_2": "x"}, "`beta_2` must be a finite number of 0 or more and below 1"),
        ({"epsilon": 0.0}, r"`epsilon` must be a finite number above 0. Received: epsilon=0\.0"),
        ({"epsilon": -1e-7}, "`epsilon` must be a finite number above 0"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Adam(**settings)


def test_replicas_sum_their_gradients(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        v = mr.Variable([1.0, 2.0])
        optimizer = Adam(0.1)
    alone, other = mr.Variable([1.0, 2.0]), Adam(0.1)
    for step in range(3):
        halves = [mr.constant([0.25, -1.0]) * float(i + step) for i in (0, 1)]
        parts = mr.distribute.PerReplica(halves)
        strategy.run(lambda g: optimizer.apply_gradients([(g, v)]), (parts,))
        other.apply_gradients([(halves[0] + halves[1], alone)])
    for copy in strategy.experimental_local_results(v):
        np.testing.assert_array_equal(copy.numpy(), alone.numpy())


@pytest.mark.parametrize("name", ["_mean", "_means"])
def test_private_names_are_a_subclass_own(name: str) -> None:
    steps: list[list[float]] = []
    classes: list[dict[str, Any]] = [{}, {name: 7}]
    for attributes in classes:
        variable = mr.Variable([1.0, 2.0])
        optimizer = type("Own", (Adam,), attributes)(0.1)
        optimizer.apply_gradients([(mr.constant([0.5, -1.0]), variable)])
        steps.append(variable.numpy().tolist())
    assert steps[0] == steps[1]
