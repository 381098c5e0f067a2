"""Losses and metrics, for any `keras`: what they give for targets, predictions and weights.

What loss_values.json says is Keras 3.15.1's, on TensorFlow 2.21.0. Where these are installed,
`python tests/support/loss_values.py` writes it anew.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")
_draws = np.random.default_rng(0)
VALUES = _draws.normal(size=(6, 4)).round(3)
PREDICTED = (VALUES + _draws.normal(size=(6, 4))).round(3)
LABELS = _draws.integers(4, size=6)
ONE_HOT = np.eye(4)[LABELS]
PROBABILITIES = np.exp(PREDICTED) / np.exp(PREDICTED).sum(axis=1, keepdims=True)
WEIGHTS = _draws.uniform(size=6).round(3)
SIGNS = np.sign(VALUES)

# Targets and predictions by what they are.
DATA = {
    "values": (VALUES, PREDICTED),
    "positive": (np.abs(VALUES), np.abs(PREDICTED)),
    "signs": (SIGNS, PREDICTED),
    "binary": ((SIGNS + 1) / 2, PREDICTED),
    "one-hot": (ONE_HOT, PROBABILITIES),
    "probabilities": (np.roll(PROBABILITIES, 1, axis=0), PROBABILITIES),
    "labels": (LABELS, PROBABILITIES),
    "zeros": (np.zeros((6, 4)), PREDICTED * [1.0, 0.0, 1.0, 0.0]),
    "holes": (np.where(np.arange(6) % 3 == 0, -1, LABELS), PROBABILITIES),
    "deep holes": (
        np.where(np.arange(6) % 4 == 0, -1, LABELS).reshape(3, 2),
        PREDICTED.reshape(3, 2, 4),
    ),
    "deep one-hot": (ONE_HOT.reshape(3, 2, 4), PROBABILITIES.reshape(3, 2, 4)),
    "embeddings": (
        np.arange(6) // 2,
        PREDICTED / np.linalg.norm(PREDICTED, axis=1, keepdims=True),
    ),
    "deep": (VALUES.reshape(3, 2, 4), PREDICTED.reshape(3, 2, 4)),
}
BALANCED = {"apply_class_balancing": True, "alpha": 0.3, "gamma": 3.0}
LOSSES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("MeanAbsoluteError", {}, ("values", "deep")),
    ("MeanAbsolutePercentageError", {}, ("values", "zeros")),
    ("MeanSquaredLogarithmicError", {}, ("positive", "values")),
    ("Huber", {}, ("values", "deep")),
    ("Huber", {"delta": 0.25}, ("values",)),
    ("LogCosh", {}, ("values",)),
    ("CosineSimilarity", {}, ("values", "zeros", "deep")),
    ("Poisson", {}, ("positive",)),
    ("KLDivergence", {}, ("probabilities", "one-hot")),
    ("Hinge", {}, ("signs", "binary")),
    ("SquaredHinge", {}, ("signs", "binary")),
    ("CategoricalHinge", {}, ("one-hot",)),
    ("BinaryCrossentropy", {"label_smoothing": 0.25}, ("one-hot",)),
    ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.25}, ("binary",)),
    ("BinaryCrossentropy", {"axis": 1}, ("deep one-hot",)),
    ("CategoricalCrossentropy", {"label_smoothing": 0.25}, ("one-hot", "deep one-hot")),
    ("CategoricalCrossentropy", {"from_logits": True, "label_smoothing": 0.25}, ("one-hot",)),
    ("CategoricalCrossentropy", {"axis": 1, "label_smoothing": 0.25}, ("deep one-hot",)),
    ("CategoricalCrossentropy", {"from_logits": True, "axis": 1}, ("deep one-hot",)),
    ("SparseCategoricalCrossentropy", {"ignore_class": -1}, ("holes",)),
    ("SparseCategoricalCrossentropy", {"ignore_class": 1, "axis": 1}, ("labels",)),
    ("SparseCategoricalCrossentropy", {"from_logits": True, "ignore_class": -1}, ("deep holes",)),
    ("BinaryFocalCrossentropy", {}, ("one-hot", "deep one-hot")),
    ("BinaryFocalCrossentropy", {"from_logits": True, "label_smoothing": 0.25}, ("binary",)),
    ("BinaryFocalCrossentropy", BALANCED, ("one-hot",)),
    ("CategoricalFocalCrossentropy", {}, ("one-hot",)),
    ("CategoricalFocalCrossentropy", {"from_logits": True, "gamma": 0.5}, ("one-hot",)),
    ("CategoricalFocalCrossentropy", {"axis": 1, "label_smoothing": 0.25}, ("deep one-hot",)),
    ("CategoricalFocalCrossentropy", {"alpha": [0.1, 0.2, 0.3, 0.4]}, ("one-hot",)),
    ("CategoricalGeneralizedCrossEntropy", {"q": 0.25}, ("labels",)),
    ("Circle", {}, ("embeddings",)),
    ("Circle", {"gamma": 2.0, "margin": 0.1, "remove_diagonal": False}, ("embeddings",)),
    ("Dice", {}, ("one-hot", "deep one-hot")),
    ("Dice", {"axis": (0, 1)}, ("deep one-hot",)),
    ("Dice", {"axis": -1}, ("one-hot", "deep one-hot")),
    ("Dice", {"axis": (1, 2)}, ("deep one-hot",)),
    ("Tversky", {"alpha": 0.75, "beta": 0.25}, ("one-hot",)),
    ("Tversky", {"alpha": 0.75, "beta": 0.25, "axis": 1}, ("one-hot",)),
]
METRICS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("MeanAbsoluteError", {}, ("values",)),
    ("MeanAbsolutePercentageError", {}, ("values",)),
    ("MeanSquaredLogarithmicError", {}, ("positive",)),
    ("LogCoshError", {}, ("values",)),
    ("RootMeanSquaredError", {}, ("values",)),
    ("CosineSimilarity", {}, ("values",)),
    ("Poisson", {}, ("positive",)),
    ("KLDivergence", {}, ("probabilities",)),
    ("Hinge", {}, ("signs", "binary")),
    ("SquaredHinge", {}, ("binary",)),
    ("CategoricalHinge", {}, ("one-hot",)),
    ("BinaryCrossentropy", {}, ("one-hot",)),
    ("BinaryCrossentropy", {"from_logits": True}, ("binary",)),
    ("CategoricalCrossentropy", {}, ("one-hot",)),
    ("CategoricalCrossentropy", {"from_logits": True}, ("one-hot",)),
    ("SparseCategoricalCrossentropy", {}, ("labels",)),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, ("labels",)),
    ("BinaryCrossentropy", {"label_smoothing": 0.25}, ("one-hot",)),
    ("CategoricalCrossentropy", {"label_smoothing": 0.25}, ("one-hot",)),
    ("SparseCategoricalCrossentropy", {"ignore_class": -1}, ("holes",)),
    ("TopKCategoricalAccuracy", {"k": 2}, ("one-hot",)),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, ("labels",)),
    ("SparseTopKCategoricalAccuracy", {}, ("labels",)),
]


def _cases(table: list[tuple[str, dict[str, Any], tuple[str, ...]]]) -> dict[str, Any]:
    return {
        f"{name} {options} of {data}": (name, options, data)
        for name, options, each in table
        for data in each
    }


OF_LOSSES, OF_METRICS = _cases(LOSSES), _cases(METRICS)


def is_of_the_batch(kind: str, options: dict[str, Any]) -> bool:
    """Whether a loss is one number for a batch."""
    axis = options.get("axis")
    return kind in ("Dice", "Tversky") and (axis is None or 0 in np.atleast_1d(axis))


def of_loss(keras: Any, name: str) -> dict[str, Any]:
    """Return a loss of a batch, weighted and not, and its values."""
    kind, options, data = OF_LOSSES[name]
    y_true, y_pred = (each.astype(np.float32) for each in DATA[data])
    weights = WEIGHTS[: len(y_true)].astype(np.float32)
    weights = weights[:, np.newaxis] if "deep" in data else weights
    make = getattr(keras.losses, kind)
    if options.get("axis") == (0, 1):  # There are no weights of what is left.
        found = {
            "plain": make(**options)(y_true, y_pred),
            "sum": make(reduction="sum", **options)(y_true, y_pred),
        }
        return {each: np.asarray(value, np.float64).tolist() for each, value in found.items()}
    weights = weights[:, 0] if options.get("axis") == (1, 2) else weights
    found = {
        "plain": make(**options)(y_true, y_pred),
        "weighted": make(**options)(y_true, y_pred, sample_weight=weights),
        "by weights": make(reduction="mean_with_sample_weight", **options)(
            y_true, y_pred, sample_weight=weights
        ),
        "sum": make(reduction="sum", **options)(y_true, y_pred),
        "values": make(reduction=None, **options)(y_true, y_pred),
    }
    return {each: np.asarray(value, np.float64).tolist() for each, value in found.items()}


def left(y_pred: Any) -> Any:
    """Return the mask that predictions are given: half of their rows."""
    return y_pred[..., 0] > np.median(y_pred[..., 0])


def masked(keras: Any, y_pred: np.ndarray, mask: np.ndarray) -> Any:
    """Return predictions that carry a mask."""
    carries = keras.ops.convert_to_tensor(y_pred.astype(np.float32))
    carries._keras_mask = keras.ops.convert_to_tensor(mask)
    return carries


def _or_refusal(call: Any) -> Any:
    try:
        return np.asarray(call(), np.float64).tolist()
    except Exception:
        return "refused"


def of_masked_loss(keras: Any, name: str) -> dict[str, Any]:
    """Return a loss of predictions with masks, or that it is refused."""
    kind, options, data = OF_LOSSES[name]
    y_true, y_pred = (each.astype(np.float32) for each in DATA[data])
    weights = WEIGHTS[: len(y_true)].astype(np.float32)
    given = weights[:, np.newaxis] if "deep" in data else weights
    reductions = ("mean", "mean_with_sample_weight", "sum", None)

    def loss(reduction: str | None, mask: np.ndarray, weights: Any = None) -> Any:
        made = getattr(keras.losses, kind)(reduction=reduction, **options)
        carries = masked(keras, y_pred, mask)
        return _or_refusal(lambda: made(y_true, carries, sample_weight=weights))

    some = left(y_pred)
    found = {f"{each}": loss(each, some) for each in reductions}
    found |= {f"{each}, weighted": loss(each, some, given) for each in reductions}
    found |= {f"{each}, of nothing": loss(each, some & False, given) for each in reductions[:2]}
    found["one weight"] = loss("mean", some, np.float32(0.5))
    found["weights of examples"] = loss("mean", some, weights)
    return found


def of_masked_metric(keras: Any, name: str) -> list[Any]:
    """Return a metric of predictions with a mask, with weights too, and of what is left of none."""
    kind, options, data = OF_METRICS[name]
    y_true, y_pred = DATA[data]
    y_true = y_true if data in ("labels", "holes") else y_true.astype(np.float32)
    metric = getattr(keras.metrics, kind)(**options)
    found = []
    for mask, weights in (
        (left(y_pred), None),
        (left(y_pred), WEIGHTS),
        (left(y_pred) & False, None),
    ):
        metric.reset_state()
        metric.update_state(y_true, masked(keras, y_pred, mask), sample_weight=weights)
        found.append(float(metric.result()))
    return found


def of_metric(keras: Any, name: str) -> list[float]:
    """Return a metric after a batch, after one with weights, and after both."""
    kind, options, data = OF_METRICS[name]
    y_true, y_pred = DATA[data]
    y_pred = y_pred.astype(np.float32)
    y_true = y_true if data in ("labels", "holes") else y_true.astype(np.float32)
    metric = getattr(keras.metrics, kind)(**options)
    metric.update_state(y_true, y_pred)
    found = [float(metric.result())]
    metric.update_state(y_true[:2], y_pred[:2], sample_weight=WEIGHTS[:2].astype(np.float32))
    found.append(float(metric.result()))
    metric.reset_state()
    metric.update_state(y_true, y_pred, sample_weight=WEIGHTS.astype(np.float32))
    return [*found, float(metric.result())]


def _write() -> None:
    import keras

    found = {
        "losses": {name: of_loss(keras, name) for name in OF_LOSSES},
        "metrics": {name: of_metric(keras, name) for name in OF_METRICS},
        "masked losses": {name: of_masked_loss(keras, name) for name in OF_LOSSES},
        "masked metrics": {name: of_masked_metric(keras, name) for name in OF_METRICS},
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    _write()
