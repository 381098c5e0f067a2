"""Metrics against NumPy, over whole batches and over shards of any size."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.training import losses, metrics
from mirrored.training.metrics import Metric
from tests.support import count_values, loss_values

Array = np.ndarray
RNG = np.random.default_rng(8)
LABELS = RNG.integers(0, 4, 10)
SCORES = RNG.uniform(0, 1, (10, 4))
STEPS = RNG.integers(0, 3, (10, 2))
SEQUENCES = RNG.uniform(0, 1, (10, 2, 3))
BITS = RNG.integers(0, 2, (10, 3))

# What makes it, targets, predictions, and the value of every element.
CASES: dict[str, tuple[Callable[[], Metric], Array, Array, Array]] = {
    "accuracy": (metrics.Accuracy, LABELS, LABELS * (SCORES[:, 0] > 0.3), SCORES[:, 0]),
    "binary": (metrics.BinaryAccuracy, BITS, SCORES[:, :3], (SCORES[:, :3] > 0.5) == BITS),
    "binary, vector against column": (
        metrics.BinaryAccuracy,
        BITS[:, 0],
        SCORES[:, :1],
        (SCORES[:, 0] > 0.5) == BITS[:, 0],
    ),
    "binary with a threshold": (
        lambda: metrics.BinaryAccuracy(threshold=0.2),
        BITS,
        SCORES[:, :3],
        (SCORES[:, :3] > 0.2) == BITS,
    ),
    "categorical": (
        metrics.CategoricalAccuracy,
        np.eye(4)[LABELS],
        SCORES,
        SCORES.argmax(-1) == LABELS,
    ),
    "categorical, bool": (
        metrics.CategoricalAccuracy,
        np.eye(4)[LABELS] > 0,
        SCORES,
        SCORES.argmax(-1) == LABELS,
    ),
    "categorical sequences": (
        metrics.CategoricalAccuracy,
        np.eye(3)[STEPS],
        SEQUENCES,
        SEQUENCES.argmax(-1) == STEPS,
    ),
    "sparse": (metrics.SparseCategoricalAccuracy, LABELS, SCORES, SCORES.argmax(-1) == LABELS),
    "sparse column": (
        metrics.SparseCategoricalAccuracy,
        LABELS[:, None].astype("float64"),
        SCORES,
        SCORES.argmax(-1) == LABELS,
    ),
    "sparse sequences": (
        metrics.SparseCategoricalAccuracy,
        STEPS.astype(np.int32),
        SEQUENCES,
        SEQUENCES.argmax(-1) == STEPS,
    ),
    "mse": (metrics.MeanSquaredError, BITS, SCORES[:, :3], (SCORES[:, :3] - BITS) ** 2),
    "own function": (
        lambda: metrics.get(lambda y_true, y_pred: ops.abs(y_true - y_pred)),
        BITS * 1.0,
        SCORES[:, :3],
        np.abs(SCORES[:, :3] - BITS),
    ),
}
CASES["accuracy"] = (*CASES["accuracy"][:3], CASES["accuracy"][2] == LABELS)
all_metrics = pytest.mark.parametrize(("make", "y", "p", "values"), CASES.values(), ids=CASES)
WEIGHTS = np.array([0.0, 1.0, 2.0, 0.5, 0.25, 3.0, 1.0, 1.0, 0.125, 4.0])


def test_the_table_names_every_public_metric() -> None:
    public = [getattr(metrics, name) for name in metrics.__all__]  # Some load when asked for.
    classes = {each for each in public if inspect.isclass(each) and issubclass(each, Metric)}
    tables = (*loss_values.METRICS, *count_values.METRICS)
    against_keras = {getattr(metrics, name) for name, *_ in tables}
    others = {Metric, metrics.Mean, metrics.Sum, metrics.MeanMetricWrapper}
    assert {type(make()) for make, *_ in CASES.values()} | against_keras >= classes - others


@all_metrics
@cases(
    ("weights", "dtype"),
    [(None, "float32"), (WEIGHTS, "float64"), (WEIGHTS[:, None], "float32")],
    ids=["plain", "w", "w1"],
)
def test_values(
    make: Callable[[], Metric], y: Array, p: Array, values: Array, dtype: str, weights: Any
) -> None:
    metric = make()
    total, count = metric.statistics(y, p.astype(dtype), weights)
    assert total.shape == count.shape == ()
    assert total.dtype == count.dtype == dtype
    by_example = values.reshape(10, -1)
    factors = np.ones((10, 1)) if weights is None else WEIGHTS[:, None]
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    assert float(total) == pytest.approx((by_example * factors).mean(1).sum(), rel=tolerance)
    assert float(count) == pytest.approx(factors.sum(), rel=tolerance)
    assert float(metric.result()) == 0.0  # The statistics change nothing.
    metric.update_state(y, p.astype(dtype), weights)
    expected = np.average(by_example, weights=by_example * 0 + factors)
    assert float(metric.result()) == pytest.approx(expected, rel=tolerance)
    assert metric.result().dtype == mr.float64


SHARDS = [
    ([5, 5], False),
    ([4, 3, 3], True),
    ([1, 0, 9], True),
    ([0, 10], False),
    ([1] * 10, True),
]


@all_metrics
def test_shards_add_up(make: Callable[[], Metric], y: Array, p: Array, values: Array) -> None:
    for sizes, weighted in SHARDS:
        exact = values.dtype == bool and values.size == len(values)
        check_shards(make(), y, p, sizes, weighted=weighted, exact=exact)


def check_shards(
    metric: Metric, y: Array, p: Array, sizes: list[int], *, weighted: bool, exact: bool
) -> None:
    weights = WEIGHTS if weighted else None
    whole = [float(each) for each in metric.statistics(y, p.astype("float32"), weights)]
    ends = np.cumsum([0, *sizes])
    parts = [
        [
            float(each)
            for each in metric.statistics(
                y[start:stop],
                p[start:stop].astype("float32"),
                None if weights is None else weights[start:stop],
            )
        ]
        for start, stop in itertools.pairwise(ends)
    ]
    for part, size in zip(parts, sizes, strict=True):
        if size == 0:
            assert part == [0.0, 0.0]
    total, count = np.sum(parts, axis=0)
    assert count == whole[1]
    if exact:  # Ones, zeros and these weights are exact in any order.
        assert total == whole[0]
    assert total == pytest.approx(whole[0], rel=1e-6)
    for part in parts:
        metric.accumulate(*part)
    assert float(metric.result()) == pytest.approx(whole[0] / whole[1], rel=1e-6)


@cases(
    ("values", "weights", "total", "count"),
    [
        ([1.0, 2.0, 6.0], None, 9.0, 3.0),
        ([1.0, 2.0, 6.0], [1.0, 0.0, 0.5], 4.0, 1.5),
        (3.0, None, 3.0, 1.0),
        (3.0, 2.0, 6.0, 2.0),
        ([1, 2], None, 3.0, 2.0),
        ([True, False], None, 1.0, 2.0),
        ([[1.0, 3.0], [5.0, 7.0]], None, 8.0, 2.0),  # Each example counts once.
        ([[1.0, 3.0], [5.0, 7.0]], [2.0, 1.0], 10.0, 3.0),
        ([[1.0, 3.0], [5.0, 7.0]], [[2.0, 1.0], [1.0, 0.0]], 5.0, 2.0),
        ([1.0, 2.0], 0.5, 1.5, 1.0),
        (np.zeros((0, 3)), None, 0.0, 0.0),
        (np.zeros((0, 3)), np.zeros(0), 0.0, 0.0),
    ],
)
def test_mean(values: Any, weights: Any, total: float, count: float) -> None:
    mean = metrics.Mean()
    assert [float(each) for each in mean.statistics(values, weights)] == [total, count]
    mean.update_state(values, weights)
    mean.update_state(values, sample_weight=weights)
    assert float(mean.result()) == (total / count if count else 0.0)


def test_evaluating_the_identity() -> None:
    """Numbers of Keras: 13.5, and 11.7 weighted, since metrics divide by the weights' sum."""
    y, p = np.array([2.0, 4.0, 6.0, 8.0]), np.arange(4.0)[:, None]
    weights = np.array([0.25, 0.5, 0.75, 1.0])
    plain, weighted = metrics.MeanSquaredError(), metrics.MeanSquaredError()
    for rows in (slice(0, 2), slice(2, 4)):
        plain.update_state(y[rows], p[rows])
        weighted.update_state(y[rows], p[rows], weights[rows])
    assert float(plain.result()) == 13.5
    assert float(weighted.result()) == pytest.approx(10.625 * 4 / weights.sum())


def test_integer_predictions_can_be_weighted() -> None:
    metric = metrics.Accuracy()
    metric.update_state([1, 2], [1, 3], [0.25, 0.75])
    assert float(metric.result()) == 0.25


ONE_HOT = np.eye(4)[LABELS]


@cases("name", ["accuracy", "acc"])
@cases(
    ("loss", "y", "p", "expected"),
    [
        ("sparse_categorical_crossentropy", LABELS, SCORES, (SCORES.argmax(-1) == LABELS).mean()),
        ("categorical_crossentropy", ONE_HOT, SCORES, (SCORES.argmax(-1) == LABELS).mean()),
        ("mse", ONE_HOT, SCORES, (SCORES.argmax(-1) == LABELS).mean()),
        ("binary_crossentropy", BITS[:, :1], SCORES[:, :1], ((SCORES > 0.5)[:, 0] == BITS[:, 0])),
        ("binary_crossentropy", BITS[:, 0], SCORES[:, 0], ((SCORES > 0.5)[:, 0] == BITS[:, 0])),
        (lambda a, b: b, LABELS, SCORES, (SCORES.argmax(-1) == LABELS).mean()),
        (lambda a, b: b, LABELS[:, None], SCORES, (SCORES.argmax(-1) == LABELS).mean()),
        (lambda a, b: b, ONE_HOT, SCORES, (SCORES.argmax(-1) == LABELS).mean()),
        (lambda a, b: b, BITS[:, :1], SCORES[:, :1], ((SCORES > 0.5)[:, 0] == BITS[:, 0])),
    ],
)
def test_accuracy_is_of_the_kind_that_fits(
    name: str, loss: Any, y: Array, p: Array, expected: Any
) -> None:
    metric = metrics.resolve(name, losses.as_loss(loss), (None, *p.shape[1:]))
    assert metric.name == name
    metric.update_state(y, p)
    assert float(metric.result()) == pytest.approx(np.mean(expected), rel=1e-12)


NAMES: dict[str, type[Metric]] = {
    "mse": metrics.MeanSquaredError,
    "MSE": metrics.MeanSquaredError,
    "mean_squared_error": metrics.MeanSquaredError,
    "MeanSquaredError": metrics.MeanSquaredError,
    "Accuracy": metrics.Accuracy,
    "accuracy": metrics.Accuracy,
    "binary_accuracy": metrics.BinaryAccuracy,
    "BinaryAccuracy": metrics.BinaryAccuracy,
    "categorical_accuracy": metrics.CategoricalAccuracy,
    "CategoricalAccuracy": metrics.CategoricalAccuracy,
    "sparse_categorical_accuracy": metrics.SparseCategoricalAccuracy,
    "SparseCategoricalAccuracy": metrics.SparseCategoricalAccuracy,
    "mean": metrics.Mean,
    "Mean": metrics.Mean,
}


@cases(("name", "cls"), NAMES.items())
def test_names(name: str, cls: type[Metric]) -> None:
    assert type(metrics.get(name)) is cls
    if name != "accuracy":
        resolved = metrics.resolve(name, losses.as_loss("mse"), (None, 4))
        assert type(resolved) is cls
        assert resolved.name == name  # As in Keras, the logs use the name that was given.


def test_other_identifiers() -> None:
    def error(y_true: Any, y_pred: Any) -> Any:
        return ops.abs(y_true - y_pred)

    own = metrics.MeanSquaredError(name="mine")
    assert metrics.resolve(own, losses.as_loss("mse"), (None, 1)) is own
    assert own.name == "mine"
    assert metrics.get(metrics.BinaryAccuracy).name == "binary_accuracy"
    assert metrics.get(error).name == "error"


@cases("identifier", ["foo", 3, None, dict, ["mse"]])
def test_unknown(identifier: Any) -> None:
    assert metrics.get(None) is None
    for call in (metrics.get, lambda i: metrics.resolve(i, losses.as_loss("mse"), (None, 1))):
        if (identifier, call) == (None, metrics.get):
            continue
        with pytest.raises(
            ValueError, match=r"Could not interpret metric identifier: .*Known metrics"
        ) as e:
            call(identifier)
        assert all(name in str(e.value) for name in [*NAMES, "acc"])
        assert "AUTOMATIC" not in str(e.value)


@cases(
    ("metric", "y", "p", "message"),
    [
        (metrics.Accuracy, np.zeros((3, 2)), np.zeros((3, 4)), "must have the same shape"),
        (metrics.BinaryAccuracy, np.zeros(3), np.zeros((3, 4)), r"y_true with shape \(3,\)"),
        (metrics.CategoricalAccuracy, np.zeros(3), np.zeros((3, 4)), "the same shape"),
        (metrics.MeanSquaredError, np.zeros(3), np.zeros((3, 4)), "the same shape"),
        (metrics.SparseCategoricalAccuracy, np.zeros((3, 4)), np.zeros((3, 4)), "last axis"),
    ],
)
def test_shapes_refused(metric: type[Metric], y: Any, p: Any, message: str) -> None:
    made = metric()
    with pytest.raises(ValueError, match=message):
        made.update_state(y, p)
    assert float(made.result()) == 0.0


@cases("dtype", ["float64", "float32", "float16", "int64"])
def test_the_best_of_any_dtype(dtype: str) -> None:
    p = np.array([[3, 1, 2, 0], [1, 2, 3, 0], [0, 1, 2, 9], [5, 4, 3, 2]]).astype(dtype)
    y, rows = np.array([0, 1, 2, 3]), np.eye(4)
    expected = [1.0, 1.0, 1.0, 0.0]
    for function, targets in (
        (metrics.sparse_top_k_categorical_accuracy, y),
        (metrics.top_k_categorical_accuracy, rows),
    ):
        assert function(targets, p, 2).numpy().tolist() == expected
    for metric, targets in (
        (metrics.SparseTopKCategoricalAccuracy(2), y),
        (metrics.TopKCategoricalAccuracy(2), rows),
    ):
        metric.update_state(targets, p)
        assert float(metric.result()) == 0.75


@cases("dtype", ["int64", "uint8", "bool"])
def test_a_function_is_given_integers_as_they_are(dtype: str) -> None:
    metric = metrics.MeanMetricWrapper(lambda t, p: ops.cast(ops.equal(t, p), "float32"))
    metric.update_state(np.array([1, 0, 1, 0], dtype), np.array([1, 1, 1, 0], dtype))
    assert float(metric.result()) == 0.75


def test_labels_broadcast_against_predictions() -> None:
    y, p = np.array([[1], [2]]), np.array([[[0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]])
    metric = metrics.SparseCategoricalAccuracy()
    metric.update_state(y, p)
    assert float(metric.result()) == 0.5  # As in Keras, of 2 x 2 comparisons.
    matches = metrics.sparse_categorical_accuracy(y, p)
    assert matches.numpy().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_function_may_return_a_value_per_column() -> None:
    metric = metrics.get(lambda y_true, y_pred: ops.reduce_max(y_pred, axis=0))
    for batch in ([[1.0, 5.0], [3.0, 2.0]], [[4.0, 0.0]]):
        metric.update_state(np.zeros(np.shape(batch)), batch)
    assert float(metric.result()) == 3.0  # As in Keras: the mean of 3, 5, 4 and 0.


def test_weights_refused() -> None:
    with pytest.raises(ValueError, match=r"Received: sample_weight with shape \(2,\)"):
        metrics.Mean().update_state([1.0, 2.0, 3.0], [1.0, 2.0])


@cases("threshold", [-0.1, 1.1, float("nan")])
def test_threshold_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=r"interval \[0, 1\]. Received: threshold="):
        metrics.BinaryAccuracy(threshold=threshold)


@cases(
    ("given", "name"),
    [
        ("<lambda>", "lambda"),
        ("MyMetric", "my_metric"),
        ("RMSELoss", "rmse_loss"),
        ("R2", "r2"),
        ("_rmse", "_rmse"),
        ("dice_coef", "dice_coef"),
    ],
)
def test_a_functions_metric_has_its_name_in_snake_case(given: str, name: str) -> None:
    """Keras 3.15's names, which are those in logs and history."""

    def function(y_true: Any, y_pred: Any) -> Any:
        return y_true - y_pred

    function.__name__ = given
    assert metrics.get(function).name == name
