"""Metrics that count, against Keras: with weights, in steps, and on replicas."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from tests.support import count_values
from tests.support.count_values import CASES, DATA, FUNCTIONS, WEIGHTS, WHOLE, weights_of

KERAS: dict[str, Any] = json.loads(count_values.FILE.read_text())
NEAR = {"rtol": 2e-6, "atol": 1e-6}  # Keras adds up float32 numbers.


def test_the_table_has_every_case() -> None:
    assert KERAS.keys() == CASES.keys() | FUNCTIONS.keys()


@pytest.mark.parametrize(
    "name",
    # A third of them costs a third of a second.
    [pytest.param(n, marks=[pytest.mark.slow] * (i % 3 > 0)) for i, n in enumerate(CASES)],
)
def test_results(name: str) -> None:
    found = count_values.of_metric(mr.keras, name)
    for each, expected in zip(found, KERAS[name], strict=True):
        np.testing.assert_allclose(each, expected, **NEAR)


@cases("name", FUNCTIONS)
def test_functions(name: str) -> None:
    found = count_values.of_function(mr.keras, name)
    assert np.shape(found) == np.shape(KERAS[name])
    np.testing.assert_allclose(found, KERAS[name], **NEAR)


def made(name: str) -> Any:
    kind, options, _ = CASES[name]
    return getattr(mr.metrics, kind)(**options)


# All of them, in one function, take seconds to record.
MANY, FEW = 4, 17


@pytest.mark.parametrize(
    ("how", "stride"),
    [
        pytest.param(lambda each: each, FEW, id="eager"),
        pytest.param(mr.function, FEW, id="recorded"),
        pytest.param(mr.function, MANY, id="many recorded", marks=pytest.mark.slow),
    ],
)
def test_replicas_add_up(how: Any, stride: int, simulate: Callable[..., Any]) -> None:
    """In batches of 4 and 2 on three replicas, of which the last has none then; weighted."""
    simulate(3)
    strategy = mr.MirroredStrategy()
    # Each with weights of examples.
    rows = {name: data for name, (_, _, data) in CASES.items() if len(DATA[data][0]) == 6}
    rows = {name: data for name, data in rows.items() if weights_of(name)[0].ndim == 1}
    rows = dict(itertools.islice(rows.items(), 0, None, stride))
    with strategy.scope():
        metrics = {name: made(name) for name in rows}
    arrays = {data: tuple(map(np.asarray, DATA[data])) for data in rows.values()}
    arrays["weights"] = (WEIGHTS, WHOLE)
    batches = mr.data.Dataset.from_tensor_slices(arrays).batch(4)

    def update(batch: Any) -> None:
        for name, metric in metrics.items():
            weights = batch["weights"][weights_of(name)[0] is WHOLE]
            metric.update_state(*batch[rows[name]], weights)

    @how
    def step(batch: Any) -> None:
        strategy.run(update, (batch,))

    for batch in strategy.experimental_distribute_dataset(batches):
        step(batch)
    for name, metric in metrics.items():
        np.testing.assert_allclose(metric.result(), KERAS[name][2], **NEAR, err_msg=name)


@pytest.mark.parametrize(
    ("eagerly", "stride"),
    [
        (False, FEW),
        pytest.param(True, FEW, marks=pytest.mark.slow),
        pytest.param(False, MANY, marks=pytest.mark.slow),
    ],
)
def test_evaluation_on_replicas(eagerly: bool, stride: int, simulate: Callable[..., Any]) -> None:
    """Metrics that are one number, weighted and not, beside those that `evaluate` adds up."""
    simulate(3)
    names = [
        name
        for name, (_, _, data) in CASES.items()
        if data == "flags" and "IoU" not in name and not np.shape(KERAS[name][0])
    ]
    names = names[::stride]
    with mr.MirroredStrategy([f"GPU:{i}" for i in range(3)]).scope():
        x = mr.layers.Input((4,))
        model = mr.Model(x, mr.layers.Identity()(x))
        both = [["mae", *map(made, names)] for _ in range(2)]
        model.compile("sgd", "mse", metrics=both[0], weighted_metrics=both[1], run_eagerly=eagerly)
    y_true, y_pred = DATA["flags"]
    told = model.evaluate(y_pred, y_true, 4, verbose=0, sample_weight=WEIGHTS, return_dict=True)
    assert told["mae"] == pytest.approx(np.abs(y_true - y_pred).mean())
    for weighted, metrics in zip((0, 2), both, strict=True):
        for name, metric in zip(names, metrics[1:], strict=True):
            np.testing.assert_allclose(metric.result(), KERAS[name][weighted], **NEAR)


def test_names() -> None:
    for name in ("f1_score", "r2_score", "f_beta_score", "auc", "true_positives", "binary_io_u"):
        assert type(mr.metrics.get(name)).__name__.lower() == name.replace("_", "")


@pytest.mark.parametrize("given", ["Precision", mr.metrics.Precision])
def test_in_compile_by_name(given: Any) -> None:
    x = mr.layers.Input((1,))
    model = mr.Model(x, mr.layers.Identity()(x))
    model.compile("sgd", "mse", metrics=[given])
    told = model.evaluate(DATA["column"][1], DATA["column"][0], verbose=0, return_dict=True)
    name = given if isinstance(given, str) else "precision"
    assert told[name] == pytest.approx(KERAS["Precision {} of column"][0])


@cases(
    ("make", "match"),
    [
        (lambda m: m.Precision(thresholds=[0.5, 2.0]), r"in \[0, 1\]. Received: \[2.0\]"),
        (lambda m: m.F1Score("mean"), "Invalid `average` argument value"),
        (lambda m: m.FBetaScore(beta=1), "`beta` .* should be a Python float"),
        (lambda m: m.FBetaScore(beta=-1.0), "`beta` .* should be > 0"),
        (lambda m: m.F1Score(threshold=0.0), "`threshold` .* should verify 0 < threshold <= 1"),
        (lambda m: m.F1Score().update_state([1.0], [1.0]), "F1Score expects 2D inputs"),
        (lambda m: m.Recall(class_id=0).update_state([1.0], [1.0]), "must be a 2D array"),
        (lambda m: m.Recall().update_state([1.0, 0.0], [1.0]), "must have the same shape"),
        (lambda m: m.F1Score().result(), "has not received a batch yet"),
        (lambda m: m.R2Score().result(), "has not received a batch yet"),
        (lambda m: m.R2Score("mean"), "Invalid value for argument `class_aggregation`"),
        (lambda m: m.R2Score(num_regressors=-1), "Invalid value for argument `num_regressors`"),
        (lambda m: m.R2Score()([1.0], [1.0]), "R2Score expects 2D inputs"),
        (lambda m: m.IoU(2, [0, 2]), r"Target class id 2 is out of range, which is \[0, 2\)"),
        (lambda m: m.MeanIoU(2)([0, 1], [0]), "1 predictions and 2 targets"),
        (lambda m: m.OneHotMeanIoU(2)([0, 1], [0, 1]), "in addition to the axis of examples"),
        (lambda m: m.binary_accuracy([1.0, 0.0], [1.0]), "must have the same shape"),
        (lambda m: m.categorical_accuracy([1, 0], [[1.0, 0.0]]), "must have the same shape"),
        (lambda m: m.sparse_categorical_accuracy([[1, 0]], [[1.0, 0.0]]), "without the last axis"),
        (lambda m: m.AUC(1), "`num_thresholds` must be an integer > 1"),
        (lambda m: m.AUC(curve="Roc"), 'Invalid AUC curve value: "Roc". Expected values are'),
        (lambda m: m.AUC(summation_method="no"), 'Invalid AUC summation method value: "no"'),
        (lambda m: m.AUC(num_labels=2), "`num_labels` is needed only when"),
        (lambda m: m.AUC(multi_label=True)([1.0], [1.0]), "`y_pred` must have rank 2"),
        (lambda m: m.AUC(multi_label=True).result(), "has not received a batch yet"),
        (lambda m: m.PrecisionAtRecall(1.5), "`recall` must be in the range .* recall=1.5"),
        (lambda m: m.RecallAtPrecision(0.5, 0), "`num_thresholds` must be an integer > 0"),
    ],
)
def test_what_is_refused(make: Callable[[Any], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make(mr.metrics)
