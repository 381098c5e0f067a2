"""Which values are better, where the mode is "auto": as the loss, or the metric, says."""

import inspect
import json
from typing import Any

import keras_names
import numpy as np
import pytest

import mirrored as mr

X = np.ones((4, 1), np.float32)
# What Keras 3.15.1's metrics say: more is better, less is, or nothing.
UP = """
AUC Accuracy BinaryAccuracy BinaryIoU CategoricalAccuracy ConcordanceCorrelation CosineSimilarity
F1Score FBetaScore IoU MeanIoU OneHotIoU OneHotMeanIoU PearsonCorrelation Precision
PrecisionAtRecall R2Score Recall RecallAtPrecision SensitivityAtSpecificity
SparseCategoricalAccuracy SparseTopKCategoricalAccuracy SpecificityAtSensitivity
TopKCategoricalAccuracy
"""
DOWN = """
BinaryCrossentropy CategoricalCrossentropy CategoricalHinge Hinge KLDivergence LogCoshError
MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson
RootMeanSquaredError SparseCategoricalCrossentropy SquaredHinge
"""
NEITHER = """
FalseNegatives FalsePositives Mean MeanMetricWrapper Metric Sum TrueNegatives TruePositives
"""
DIRECTIONS = {
    name: direction
    for direction, names in (("up", UP), ("down", DOWN), (None, NEITHER))
    for name in names.split()
}


def test_every_metric_says_what_keras_one_says() -> None:
    keras = set(json.loads(keras_names.FILE.read_text())["keras.metrics"])
    ours = {
        name: getattr(value, "_direction", None)
        for name in keras.intersection(dir(mr.metrics))
        if inspect.isclass(value := getattr(mr.metrics, name))
    }
    assert ours == {name: DIRECTIONS[name] for name in ours}


def of_ones_own(y_true: Any, y_pred: Any) -> Any:
    return y_pred


class Rising(mr.metrics.MeanSquaredError):
    """Says itself that more is better."""

    _direction = "up"


# A metric, its name in the logs, and whether more is better.
METRICS: dict[str, tuple[Any, str, bool | None]] = {
    "by its name": ("mse", "mse", False),
    "a loss": (mr.losses.mse, "mean_squared_error", False),
    "the loss itself": ("mse", "val_loss", False),
    "an accuracy": ("accuracy", "val_accuracy", True),
    "a class of one's own": (Rising, "mean_squared_error", True),
    "a function of one's own": (of_ones_own, "of_ones_own", None),
}


@pytest.mark.parametrize(("metric", "name", "up"), METRICS.values(), ids=METRICS)
def test_the_metric_says_it(
    metric: Any, name: str, up: bool | None, strategy: mr.MirroredStrategy, make_line: Any
) -> None:
    with strategy.scope():
        model = make_line(metrics=[metric() if inspect.isclass(metric) else metric])
    stop = mr.callbacks.EarlyStopping(name)
    options = {"validation_data": (X, X), "verbose": 0, "callbacks": [stop]}
    if up is None:
        before = model.get_weights()
        with pytest.raises(ValueError, match=f"monitor={name}, but mirrored isn't able to"):
            model.fit(X, X, **options)
        np.testing.assert_array_equal(model.get_weights(), before)  # Before the first step.
        return
    model.fit(X, X, **options)
    assert stop._is_improvement(2.0, 1.0) == up
    assert stop._is_improvement(1.0, 2.0) != up
    assert not stop._is_improvement(1.0 + 1e-9, 1.0)  # In float32 they are one.
    assert stop._is_improvement(1e300, 1.0) == up
