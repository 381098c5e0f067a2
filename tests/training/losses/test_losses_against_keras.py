"""Losses and metrics against Keras, with weights and reductions, and on replicas."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from tests.support import loss_values
from tests.support.loss_values import DATA, OF_LOSSES, OF_METRICS, WEIGHTS

KERAS: dict[str, Any] = json.loads(loss_values.FILE.read_text())
# Logarithms of sums of float32 numbers, which are rounded in another order.
NEAR = {"rtol": 2e-5, "atol": 2e-6}


def test_the_table_has_every_case() -> None:
    assert KERAS["losses"].keys() == OF_LOSSES.keys()
    assert KERAS["metrics"].keys() == OF_METRICS.keys()


@pytest.mark.parametrize("name", OF_LOSSES)
def test_losses(name: str) -> None:
    found = loss_values.of_loss(mr.keras, name)
    for each, expected in KERAS["losses"][name].items():
        np.testing.assert_allclose(found[each], expected, **NEAR, err_msg=each)


@pytest.mark.parametrize("name", OF_METRICS)
def test_metrics(name: str) -> None:
    np.testing.assert_allclose(
        loss_values.of_metric(mr.keras, name), KERAS["metrics"][name], **NEAR
    )


@pytest.fixture
def passing(simulate: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``passing(replicas, ...)``: a compiled model that returns its inputs."""
    simulate(3)

    def make(replicas: int, shape: Any, **options: Any) -> mr.Model:
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            x = mr.layers.Input(shape)
            model = mr.Model(x, mr.layers.Identity()(x))
            model.compile(**options)
        return model

    return make


@pytest.mark.parametrize("name", [each for each in OF_LOSSES if "deep" not in each])
def test_losses_of_shards_add_up(name: str, passing: Callable[..., Any]) -> None:
    """In batches of 4 and 2 on three replicas, of which the last has none then."""
    kind, options, data = OF_LOSSES[name]
    y_true, y_pred = DATA[data]
    expected = np.asarray(KERAS["losses"][name]["weighted"])
    model = passing(3, (4,), loss=getattr(mr.losses, kind)(**options))
    size = 6 if "ignore_class" in options else 4  # Each batch has a mean over what counts in it.
    found = model.evaluate(y_pred, y_true, size, verbose=0, sample_weight=WEIGHTS)
    np.testing.assert_allclose(found, expected, **NEAR)


@pytest.mark.parametrize("name", OF_METRICS)
def test_metrics_of_shards_add_up(name: str, passing: Callable[..., Any]) -> None:
    kind, options, data = OF_METRICS[name]
    y_true, y_pred = DATA[data]
    metric = getattr(mr.metrics, kind)
    loss: Any = (
        mr.losses.SparseCategoricalCrossentropy(ignore_class=-1)
        if data in ("labels", "holes")
        else "mse"
    )
    model = passing(3, (4,), loss=loss)
    with model.distribute_strategy.scope():
        model.compile(loss=loss, weighted_metrics=[metric(name="it", **options)])
    found = model.evaluate(y_pred, y_true, 4, verbose=0, sample_weight=WEIGHTS, return_dict=True)
    np.testing.assert_allclose(found["it"], KERAS["metrics"][name][2], **NEAR)


def test_names() -> None:
    for name, kind in {
        "mae": "MeanAbsoluteError",
        "MAPE": "MeanAbsolutePercentageError",
        "msle": "MeanSquaredLogarithmicError",
        "huber": "Huber",
        "log_cosh": "LogCosh",
        "kl_divergence": "KLDivergence",
        "squared_hinge": "SquaredHinge",
        "CosineSimilarity": "CosineSimilarity",
    }.items():
        assert type(mr.losses.get(name)).__name__ == kind
        function = getattr(mr.losses, name) if name.islower() else getattr(mr.losses, kind)
        assert type(mr.losses.get(function)).__name__ == kind
    for name, kind in {
        "mae": "MeanAbsoluteError",
        "root_mean_squared_error": "RootMeanSquaredError",
        "top_k_categorical_accuracy": "TopKCategoricalAccuracy",
        "bce": "BinaryCrossentropy",
    }.items():
        assert type(mr.metrics.get(name)).__name__ == kind


def test_a_metric_of_a_function_with_arguments() -> None:
    metric = mr.metrics.MeanMetricWrapper(mr.losses.huber, "mine", delta=0.25)
    metric.update_state(*DATA["values"])
    expected = KERAS["losses"]["Huber {'delta': 0.25} of values"]["plain"]
    np.testing.assert_allclose(float(metric.result()), expected, **NEAR)
    assert metric.name == "mine"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: mr.losses.Huber(-1.0), "`delta` is a number of 0 or more"),
        (lambda: mr.losses.CosineSimilarity(axis=0), "`axis` is that of the vectors, and 0 that"),
        (lambda: mr.metrics.TopKCategoricalAccuracy(0), "`k` is an integer of 1 or more"),
        (lambda: mr.losses.mae([[1.0, 2.0]], [[1.0, 2.0, 3.0]]), "must have the same shape"),
        (lambda: mr.losses.Hinge()([[1.0, 2.0]], [[1.0, 2.0, 3.0]]), "must have the same shape"),
    ],
)
def test_arguments_that_are_wrong(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()
