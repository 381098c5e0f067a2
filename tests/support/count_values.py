"""Metrics that count, for any `keras`: what they give for targets, predictions and weights.

What count_values.json says is Keras 3.15.1's, on TensorFlow 2.21.0. Where these are installed,
`python tests/support/count_values.py` writes it anew.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")
_draws = np.random.default_rng(3)
# Thirds and tenths are often right at a threshold; zeros make rows without a best class.
SCORES = (_draws.integers(0, 11, size=(6, 4)) / 10).astype(np.float32)
FLAGS = _draws.integers(2, size=(6, 4)).astype(np.float32)
WEIGHTS = _draws.uniform(size=6).round(3).astype(np.float32)
EACH = _draws.uniform(size=(6, 4)).round(3).astype(np.float32)
SCORES[1] = 0.0
WHOLE = _draws.integers(4, size=6).astype(np.int32)
LABELS = _draws.integers(3, size=(2, 6))
NUMBERS = _draws.normal(size=(6, 3)).round(3).astype(np.float32)
GUESSES = (NUMBERS + _draws.normal(size=(6, 3)) / 2).round(3).astype(np.float32)

# Targets and predictions by what they are.
DATA: dict[str, Any] = {
    "flags": (FLAGS, SCORES),
    "logits": (FLAGS, 6 * SCORES - 3),
    "column": (FLAGS[:, 0], SCORES[:, :1]),
    "vector": (FLAGS[:, 0], SCORES[:, 0]),
    "deep": (FLAGS.reshape(3, 2, 4), SCORES.reshape(3, 2, 4)),
    "labels": (LABELS[0], np.where(LABELS[1] == 2, [2, 3, 2, -1, 2, 2], LABELS[1])),
    "one-hot": (np.eye(3, dtype=np.float32)[LABELS[0]], SCORES[:, 1:]),
    "numbers": (NUMBERS, GUESSES),
    "integers": (FLAGS.astype(np.int32), SCORES),
}
_CONDITIONS = ("TruePositives", "TrueNegatives", "FalsePositives", "FalseNegatives")
_SHARES = ("Precision", "Recall")
_POINTS = (
    ("Sensitivity", "Specificity", "specificity"),
    ("Specificity", "Sensitivity", "sensitivity"),
    ("Precision", "Recall", "recall"),
    ("Recall", "Precision", "precision"),
)
_AVERAGES = (None, "uniform_average", "variance_weighted_average")
_EVEN = [0.0, 0.25, 0.5, 0.75, 1.0]
_TENTHS = [each / 10 for each in range(11)]
METRICS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    *((name, {}, ("flags", "deep")) for name in _CONDITIONS),
    *((name, {"thresholds": [0.3, 0.7]}, ("column",)) for name in _CONDITIONS),
    *((name, {"thresholds": _EVEN}, ("flags",)) for name in _CONDITIONS),
    *((name, {"thresholds": _TENTHS}, ("flags",)) for name in _CONDITIONS),
    *((name, {}, ("flags", "vector", "column", "deep", "integers")) for name in _SHARES),
    *((name, {"thresholds": 0.2}, ("flags",)) for name in _SHARES),
    *((name, {"thresholds": [0.9, 0.1]}, ("vector",)) for name in _SHARES),
    *((name, {"top_k": 2}, ("flags", "deep")) for name in _SHARES),
    *((name, {"top_k": 2, "thresholds": 0.5}, ("flags",)) for name in _SHARES),
    *((name, {"class_id": 2}, ("flags",)) for name in _SHARES),
    *((name, {"class_id": 1, "top_k": 3, "thresholds": _EVEN}, ("flags",)) for name in _SHARES),
    *(
        ("FBetaScore", {"average": average, "beta": 2.0, "threshold": threshold}, ("flags",))
        for average in (None, "micro", "macro", "weighted")
        for threshold in (None, 0.5)
    ),
    ("F1Score", {}, ("flags", "integers")),
    ("IoU", {"num_classes": 3, "target_class_ids": [0, 2]}, ("labels",)),
    ("MeanIoU", {"num_classes": 3, "dtype": "float32"}, ("labels",)),
    ("MeanIoU", {"num_classes": 4, "ignore_class": 1}, ("labels",)),
    ("BinaryIoU", {"threshold": 0.4, "dtype": "float32"}, ("flags", "vector")),
    ("BinaryIoU", {"target_class_ids": [1]}, ("vector",)),
    ("OneHotIoU", {"num_classes": 3, "target_class_ids": (2,)}, ("one-hot",)),
    ("OneHotMeanIoU", {"num_classes": 3, "dtype": "float32"}, ("one-hot",)),
    *(("R2Score", {"class_aggregation": way}, ("numbers",)) for way in _AVERAGES),
    ("R2Score", {"num_regressors": 2}, ("numbers",)),
    ("PearsonCorrelation", {}, ("numbers",)),
    ("ConcordanceCorrelation", {}, ("numbers",)),
    ("AUC", {}, ("flags", "column", "vector", "deep")),
    *(
        ("AUC", {"num_thresholds": 11, "curve": curve, "summation_method": method}, ("flags",))
        for curve in ("ROC", "PR", "PRGAIN")
        for method in ("interpolation", "Minoring", "majoring")
    ),
    ("AUC", {"thresholds": [0.7, 0.05, 0.4], "curve": "pr"}, ("flags",)),
    ("AUC", {"thresholds": [0.75, 0.25, 0.5]}, ("flags",)),
    ("AUC", {"from_logits": True, "num_thresholds": 5}, ("logits",)),
    ("AUC", {"label_weights": [1.0, 0.5, 0.25, 2.0]}, ("flags",)),
    ("AUC", {"label_weights": [1.0, 0.5, 0.25, 2.0], "thresholds": [0.3]}, ("flags",)),
    ("AUC", {"multi_label": True}, ("flags",)),
    ("AUC", {"multi_label": True, "thresholds": [0.3, 0.35], "num_labels": 4}, ("flags",)),
    ("AUC", {"multi_label": True, "curve": "PR", "label_weights": [1, 2, 3, 0]}, ("flags",)),
    ("AUC", {"multi_label": True, "curve": "PRGAIN", "label_weights": [1, 2, 3, 0]}, ("flags",)),
    *((f"{a}At{b}", {c: 0.6}, ("flags", "column")) for a, b, c in _POINTS),
    *((f"{a}At{b}", {c: 0.4, "num_thresholds": 1}, ("flags",)) for a, b, c in _POINTS),
    *((f"{a}At{b}", {c: 0.2, "num_thresholds": 2}, ("flags",)) for a, b, c in _POINTS),
    *((f"{a}At{b}", {c: 1.0, "class_id": 3}, ("flags",)) for a, b, c in _POINTS),
    ("F1Score", {"average": "weighted", "threshold": 0.5}, ("flags",)),
]
_OF_EXAMPLES = (
    "F1Score",
    "FBetaScore",
    "OneHotMeanIoU",
    "PearsonCorrelation",
    "ConcordanceCorrelation",
)
CASES = {
    f"{name} {options} of {data}": (name, options, data)
    for name, options, each in METRICS
    for data in each
}


_ROWS = SCORES[:, 1:]
_DEEP = _ROWS.reshape(2, 3, 3)
_ONE_HOT = DATA["one-hot"][0]
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "binary_accuracy": (FLAGS, SCORES),
    "binary_accuracy of a column": (FLAGS[:, 0], SCORES[:, :1]),
    "binary_accuracy at a threshold": (FLAGS, SCORES, 0.2),
    "categorical_accuracy": (_ONE_HOT, _ROWS),
    "categorical_accuracy of sequences": (_ONE_HOT.reshape(2, 3, 3), _DEEP),
    "sparse_categorical_accuracy": (LABELS[0], _ROWS),
    "sparse_categorical_accuracy of a column": (LABELS[0][:, None], _ROWS),
    "sparse_categorical_accuracy of sequences": (LABELS[0].reshape(2, 3), _DEEP),
    "sparse_categorical_accuracy of floats": (LABELS[0] + 0.5 * FLAGS[:, 0], _ROWS),
    "top_k_categorical_accuracy": (_ONE_HOT, _ROWS, 2),
    "top_k_categorical_accuracy of sequences": (_ONE_HOT.reshape(2, 3, 3), _DEEP, 1),
    "sparse_top_k_categorical_accuracy": (LABELS[0], _ROWS, 2),
    "sparse_top_k_categorical_accuracy of a column": (LABELS[0][:, None], _ROWS, 1),
    "sparse_top_k_categorical_accuracy of sequences": (LABELS[0].reshape(2, 3), _DEEP, 2),
    "sparse_top_k_categorical_accuracy of ids": (LABELS[0], np.argsort(-_ROWS), 2, True),
    "pearson_correlation": (NUMBERS, GUESSES),
    "pearson_correlation of columns": (NUMBERS, GUESSES, 0),
    "concordance_correlation": (NUMBERS, GUESSES),
    "concordance_correlation of columns": (NUMBERS, GUESSES, 0),
}


def of_function(keras: Any, name: str) -> Any:
    """Return what a function says."""
    found = getattr(keras.metrics, name.split()[0])(*FUNCTIONS[name])
    return np.array(found, np.float64).tolist()


def weights_of(name: str) -> list[np.ndarray]:
    """Return weights of examples, and of elements where the metric takes them."""
    kind, _, data = CASES[name]
    y_true, _ = DATA[data]
    if "IoU" in kind and "float32" not in name:
        return [WHOLE]
    if kind == "BinaryIoU" and y_true.ndim == 2:
        return [EACH]
    found = [WEIGHTS[: len(y_true), None] if y_true.ndim == 3 else WEIGHTS]
    if y_true.ndim > 1 and kind not in _OF_EXAMPLES and "class_id" not in name:
        found.append(EACH.ravel()[: y_true.size].reshape(y_true.shape))
    return found


def of_metric(keras: Any, name: str) -> list[Any]:
    """Return a metric after a batch, after one with weights too, and after each of weights."""
    kind, options, data = CASES[name]
    y_true, y_pred = DATA[data]
    metric = getattr(keras.metrics, kind)(**options)
    found: list[Any] = []

    def tell() -> None:  # At once: Keras' results may be the variables themselves.
        found.append(np.array(metric.result(), np.float64).tolist())

    metric.update_state(y_true, y_pred)
    tell()
    weights = weights_of(name)
    metric.update_state(y_true[:2], y_pred[:2], sample_weight=weights[0][:2])
    tell()
    for each in weights:
        metric.reset_state()
        metric.update_state(y_true, y_pred, sample_weight=each)
        tell()
    return found


def _write() -> None:
    import keras

    found = {name: of_metric(keras, name) for name in CASES}
    found |= {name: of_function(keras, name) for name in FUNCTIONS}
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    _write()
