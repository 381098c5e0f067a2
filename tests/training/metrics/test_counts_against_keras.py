"""Metrics that count, against Keras: with weights, in steps, and on replicas."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from tests.support import count_values
from tests.support.count_values import CASES, DATA, WEIGHTS

KERAS: dict[str, Any] = json.loads(count_values.FILE.read_text())
NEAR = {"rtol": 2e-6, "atol": 1e-6}  # Keras adds up float32 numbers.


def test_the_table_has_every_case() -> None:
    assert KERAS.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    found = count_values.of_metric(mr.keras, name)
    for each, expected in zip(found, KERAS[name], strict=True):
        np.testing.assert_allclose(each, expected, **NEAR)


def made(name: str) -> Any:
    kind, options, _ = CASES[name]
    return getattr(mr.metrics, kind)(**options)


@pytest.mark.parametrize("how", [lambda each: each, mr.function], ids=["eager", "recorded"])
def test_replicas_add_up(how: Any, simulate: Callable[..., Any]) -> None:
    """In batches of 4 and 2 on three replicas, of which the last has none then; weighted."""
    simulate(3)
    strategy = mr.MirroredStrategy()
    rows = {name: case for name, case in CASES.items() if case[2] in ("flags", "logits")}
    with strategy.scope():
        metrics = {name: made(name) for name in rows}
    batches = mr.data.Dataset.from_tensor_slices((*DATA["flags"], WEIGHTS)).batch(4)
    logits = mr.data.Dataset.from_tensor_slices(DATA["logits"][1]).batch(4)

    def update(y_true: Any, y_pred: Any, weights: Any, others: Any) -> None:
        for name, metric in metrics.items():
            metric.update_state(y_true, others if "logits" in name else y_pred, weights)

    @how
    def step(batch: Any) -> None:
        strategy.run(update, batch)

    both = mr.data.Dataset.zip((batches, logits)).map(lambda first, more: (*first, more))
    for batch in strategy.experimental_distribute_dataset(both):
        step(batch)
    for name, metric in metrics.items():
        np.testing.assert_allclose(metric.result(), KERAS[name][2], **NEAR, err_msg=name)


@pytest.mark.parametrize("eagerly", [False, True], ids=["recorded", "eager"])
def test_evaluation_on_replicas(eagerly: bool, simulate: Callable[..., Any]) -> None:
    """Metrics that are one number, weighted and not, beside those that `evaluate` adds up."""
    simulate(3)
    names = [
        name
        for name, (_, _, data) in CASES.items()
        if data == "flags" and not np.shape(KERAS[name][0])
    ]
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


@pytest.mark.parametrize("given", ["Precision", mr.metrics.Precision])
def test_in_compile_by_name(given: Any) -> None:
    x = mr.layers.Input((1,))
    model = mr.Model(x, mr.layers.Identity()(x))
    model.compile("sgd", "mse", metrics=[given])
    told = model.evaluate(DATA["column"][1], DATA["column"][0], verbose=0, return_dict=True)
    name = given if isinstance(given, str) else "precision"
    assert told[name] == pytest.approx(KERAS["Precision {} of column"][0])


@pytest.mark.parametrize(
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
        (lambda m: m.F1Score().result(), "has seen no batch yet"),
        (lambda m: m.AUC(1), "`num_thresholds` must be an integer > 1"),
        (lambda m: m.AUC(curve="Roc"), 'Invalid AUC curve value: "Roc". Expected values are'),
        (lambda m: m.AUC(summation_method="no"), 'Invalid AUC summation method value: "no"'),
        (lambda m: m.AUC(num_labels=2), "`num_labels` is needed only when"),
        (lambda m: m.AUC(multi_label=True)([1.0], [1.0]), "`y_pred` must have rank 2"),
        (lambda m: m.AUC(multi_label=True).result(), "has seen no batch yet"),
        (lambda m: m.PrecisionAtRecall(1.5), "`recall` must be in the range .* recall=1.5"),
        (lambda m: m.RecallAtPrecision(0.5, 0), "`num_thresholds` must be an integer > 0"),
    ],
)
def test_what_is_refused(make: Callable[[Any], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make(mr.metrics)
