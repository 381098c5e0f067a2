"""Batch normalization on replicas: synchronized, any number of them trains as one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

_draws = np.random.default_rng(0)
X = (_draws.normal(size=(11, 3)) * [1.0, 5.0, 0.1] + [0.0, 100.0, -3.0]).astype(np.float64)
Y = (X @ [[1.0], [0.5], [-2.0]] / 20).astype(np.float64)


class Own(mr.Model):
    """A model whose step is its own."""

    def train_step(self, data: Any) -> dict[str, Any]:
        return super().train_step(data)


@pytest.fixture
def trained(simulate: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``trained(replicas, ...)``: what a fit leaves in a model of two such layers."""
    simulate(4)
    mr.keras.backend.set_floatx("float64")

    def run(
        replicas: int,
        batch_size: int,
        kind: type[mr.Model] = mr.Model,
        *,
        synchronized: bool | None = None,
        eager: bool = False,
        epochs: int = 2,
    ) -> tuple[Any, list[Any], Any]:
        mr.random.set_seed(0)
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            inputs = mr.layers.Input((3,))
            h = mr.layers.BatchNormalization(momentum=0.5, synchronized=synchronized)(inputs)
            h = mr.layers.Dense(4, activation="tanh")(h)
            h = mr.layers.BatchNormalization(
                momentum=0.5,
                synchronized=synchronized,
                renorm=True,
                renorm_momentum=0.75,
                renorm_clipping={"rmax": 2.0, "dmax": 1.5},
            )(h)
            model = kind(inputs, mr.layers.Dense(1)(h))
            model.compile("adam", "mse", metrics=["mse"], run_eagerly=eager)
        history = model.fit(X, Y, batch_size=batch_size, epochs=epochs, shuffle=False, verbose=0)
        scores = model.evaluate(X, Y, batch_size=batch_size, verbose=0)
        return history.history, [*map(np.array, model.get_weights()), *scores], model

    return run


def same(one: Any, other: Any) -> None:
    for name, values in one[0].items():
        np.testing.assert_allclose(other[0][name], values, rtol=1e-9, atol=1e-12, err_msg=name)
    for a, b in zip(one[1], other[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.behaviour("batch-statistics")
@pytest.mark.parametrize(
    ("replicas", "batch_size", "kind", "eager"),
    [
        pytest.param(2, 11, mr.Model, False, marks=pytest.mark.slow),
        (4, 5, mr.Model, False),  # The last batch is of one example: three have none.
        pytest.param(4, 5, mr.Model, True, marks=pytest.mark.slow),
        pytest.param(3, 4, Own, False, marks=pytest.mark.slow),
        pytest.param(4, 5, Own, True, marks=pytest.mark.slow),
    ],
)
def test_replicas_train_as_one_device(
    trained: Callable[..., Any], replicas: int, batch_size: int, kind: Any, eager: bool
) -> None:
    same(trained(1, batch_size), trained(replicas, batch_size, kind, eager=eager))


@pytest.mark.parametrize("eager", [False, True])
def test_moving_averages_take_each_shard_by_its_examples(
    trained: Callable[..., Any], eager: bool
) -> None:
    """Where replicas are not synchronized; an empty shard counts for nothing."""
    _, weights, _ = trained(4, 5, synchronized=False, eager=eager, epochs=1)
    done: list[Any] = []
    mean, variance = np.zeros(3), np.ones(3)
    for rows in ([2, 1, 1, 1], [2, 1, 1, 1], [1]):  # The shards of batches of 5, 5 and 1.
        start, count = sum(len(each) for each in done), sum(rows)
        batch = X[start : start + count]
        done.append(batch)
        shards = np.split(batch, np.cumsum(rows)[:-1])
        mean = 0.5 * mean + 0.5 * sum(len(s) / count * s.mean(axis=0) for s in shards)
        variance = 0.5 * variance + 0.5 * sum(len(s) / count * s.var(axis=0) for s in shards)
    np.testing.assert_allclose(weights[2], mean, rtol=1e-12)
    np.testing.assert_allclose(weights[3], variance, rtol=1e-12)


@pytest.mark.parametrize("eager", [False, True])
def test_a_step_that_fails_changes_no_moving_average(
    trained: Callable[..., Any], eager: bool
) -> None:
    _, _, model = trained(3, 11, eager=eager, epochs=1)
    before = model.get_weights()
    targets = Y.copy()
    targets[10] = np.nan
    with pytest.raises(mr.errors.NonFiniteLossError):
        model.fit(X, targets, batch_size=11, verbose=0)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_frozen_one_goes_by_its_moving_averages(trained: Callable[..., Any]) -> None:
    *_, model = trained(2, 11, epochs=1)
    layer = model.layers[1]
    layer.trainable = False
    before = [each.numpy() for each in layer.weights]
    np.testing.assert_array_equal(layer(X, training=True), layer(X, training=False))
    for old, new in zip(before, layer.weights, strict=True):
        np.testing.assert_array_equal(old, new)


def test_in_mixed_precision_it_computes_in_float32() -> None:
    pytest.importorskip("ml_dtypes")
    layer = mr.layers.BatchNormalization(dtype="mixed_bfloat16", epsilon=0.0)
    outputs = layer(np.array([[1000.0], [1001.0], [1002.0], [1003.0]], np.float32), training=True)
    assert outputs.dtype == layer.compute_dtype
    assert layer.moving_variance.dtype == np.float32


@cases(
    ("options", "error", "match"),
    [
        ({"axis": 0}, ValueError, "Axis 0 is the batch, which replicas share"),
        ({"axis": 2}, ValueError, r"Axis 2 is out of bounds for input shape \(2, 3\)"),
        ({"axis": "x"}, TypeError, "`axis` must be an integer. Received: axis='x'"),
        ({"momentum": 2.0}, ValueError, "`momentum`. Expected a float value between 0 and 1"),
        ({"epsilon": -1.0}, ValueError, "`epsilon` must be a finite number of 0 or more"),
        (
            {"renorm": True, "renorm_momentum": -1},
            ValueError,
            "`renorm_momentum`. Expected a float",
        ),
        ({"renorm": True, "renorm_clipping": {"x": 1}}, ValueError, "invalid keys"),
        ({"renorm": True, "renorm_clipping": {"dmax": -1}}, ValueError, "non-negative"),
        (
            {"renorm": True, "renorm_clipping": {"rmin": 2, "rmax": 1}},
            ValueError,
            "rmax should be greater",
        ),
    ],
)
def test_arguments_that_are_wrong(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        mr.layers.BatchNormalization(**options)(np.ones((2, 3)))


def test_other_features_than_before() -> None:
    layer = mr.layers.BatchNormalization()
    layer(np.ones((2, 3)))
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 3, but"):
        layer(np.ones((2, 4)))
