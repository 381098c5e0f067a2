"""Metrics whose shards do not add up: they see the batch of all replicas, as on one device."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.training.metrics import Metric

L, M = mr.keras.layers, mr.keras.metrics
RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 3)).astype("float32")
Y = np.eye(3, dtype="float32")[RNG.integers(0, 3, 7)]
WEIGHTS = RNG.uniform(0.5, 2.0, 7).astype("float32")


def signal_to_noise(t: Any, p: Any) -> Any:
    return mr.math.log((mr.reduce_max(p) - mr.reduce_min(p)) / mr.reduce_mean((t - p) ** 2))


def f1(t: Any, p: Any) -> Any:
    hits = mr.reduce_sum(mr.round(t * p))
    return 2 * hits / (mr.reduce_sum(mr.round(p)) + mr.reduce_sum(t) + 1e-7)


def distance_from_mean(t: Any, p: Any) -> Any:
    """Return a value for each example that depends on the others."""
    return mr.reduce_sum(mr.abs(p - mr.reduce_mean(p, axis=0)), axis=-1)


class Kept(Metric):
    """One number that `update_state` replaces."""

    def __init__(self, name: str = "kept") -> None:
        super().__init__(name=name)
        self.value = self.add_weight(name="value", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        error = mr.reduce_max(mr.abs(y_true - y_pred))
        self.value.assign(mr.maximum(self.value, error))

    def result(self) -> Any:
        return self.value


class Batches(Kept):
    """The number of batches, and the weight of the last one."""

    def __init__(self, name: str = "batches") -> None:
        super().__init__(name)
        self.weight = self.add_variable((), "zeros", aggregation="mean", name="weight")
        self.rows = self.add_variable((), "zeros", aggregation="only_first_replica", name="rows")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.value.assign_add(1.0)
        self.rows.assign_add(float(y_pred.shape[0]))
        if sample_weight is not None:
            self.weight.assign(mr.reduce_sum(sample_weight))

    def result(self) -> Any:
        return {self.name: self.value, f"{self.name}_w": self.weight, f"{self.name}_r": self.rows}


class Smallest(Kept):
    """A minimum, whose state does not begin with zero; and what a metric in it counts."""

    def __init__(self, name: str = "smallest") -> None:
        super().__init__(name)
        self.precision = M.Precision()

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.value.assign(mr.minimum(self.value, mr.reduce_min(y_pred)))
        self.precision.update_state(y_true, y_pred, sample_weight)

    def result(self) -> Any:
        return self.value + mr.cast(self.precision.result(), self.dtype)

    def reset_state(self) -> None:
        self.value.assign(float("inf"))
        self.precision.reset_state()


class LastRecall(M.Recall):
    """The recall of the last batch."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.reset_state()
        super().update_state(y_true, y_pred, sample_weight)


def some_metrics() -> list[Any]:
    return [
        signal_to_noise,
        f1,
        distance_from_mean,
        M.MeanMetricWrapper(mr.keras.losses.categorical_crossentropy, name="wrapped", axis=0),
        M.CosineSimilarity(axis=0),
        M.CategoricalCrossentropy(axis=-2),
        Kept(),
        Batches(),
        Smallest(),
        LastRecall(name="last"),
        M.OneHotIoU(3, [0, 2], axis=0, name="one_hot"),
        M.OneHotMeanIoU(3, axis=0),
        "categorical_accuracy",
        "mse",
    ]


def sums_alone() -> list[Any]:
    """Return metrics of which `fit` adds up totals and counts."""
    along = [M.CosineSimilarity(axis=0), M.PearsonCorrelation(axis=0)]
    return [signal_to_noise, distance_from_mean, *along, "mse"]


def logs_of(replicas: int, given: Callable[[], list[Any]], *, eager: bool) -> dict[str, Any]:
    """Return what `fit` and `evaluate` report, of batches of 5 and of 2 examples, or of 2 alone."""
    with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
        model = mr.Sequential([L.Input((3,)), L.Dense(3, activation="softmax")])
        weighted = [M.Precision(name="weighed"), distance_from_mean]
        weighted += [Batches("seen")] if given is some_metrics else []
        model.compile(
            mr.optim.SGD(0.1), "mse", None, given(), weighted_metrics=weighted, run_eagerly=eager
        )
    model.set_weights([np.linspace(-1, 1, 9).reshape(3, 3), np.zeros(3)])
    rows, size = (7, 5) if eager else (4, 2)
    data: Any = (X[:rows], Y[:rows], WEIGHTS[:rows])
    dataset = mr.data.Dataset.from_tensor_slices(data).batch(size)
    logs = model.fit(dataset, epochs=2, validation_data=dataset, verbose=0).history
    evaluated = model.evaluate(dataset, verbose=0, return_dict=True)
    return {**logs, **{f"evaluated {name}": value for name, value in evaluated.items()}}


@pytest.mark.behaviour("custom-metrics")
@pytest.mark.parametrize(
    ("given", "eager"),
    [
        (some_metrics, False),
        pytest.param(sums_alone, True, marks=pytest.mark.slow),
    ],
)
def test_replicas_report_what_one_device_does(
    given: Callable[[], list[Any]], eager: bool, simulate: Callable[..., Any]
) -> None:
    simulate(3)
    one, three = (logs_of(replicas, given, eager=eager) for replicas in (1, 3))
    assert one.keys() == three.keys()
    for name, values in one.items():
        np.testing.assert_allclose(three[name], values, rtol=2e-5, atol=1e-6, err_msg=name)
    if given is some_metrics:
        assert three["batches"] == [2.0, 2.0]
        assert three["val_batches_r"] == [7.0, 7.0] if eager else [4.0, 4.0]


def test_rows_are_gathered_on_the_host(simulate: Callable[..., Any]) -> None:
    """The devices have room for a step with a shard, and not for what all replicas have."""
    simulate(2, memory_limit=1)
    x = np.ones((16, 8192), "float32")
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([L.Input((8192,)), L.Rescaling(1.0)])
        model.compile(loss="mse", metrics=[Kept(), M.CosineSimilarity(axis=0)])
    assert model.evaluate(x, 3 * x, 16, verbose=0, return_dict=True)["kept"] == 2.0


def test_a_metric_may_keep_arrays_of_numpy(simulate: Callable[..., Any]) -> None:
    class Median(Metric):
        def __init__(self) -> None:
            super().__init__()
            self.rows: list[np.ndarray] = []

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.rows.append(y_pred.numpy())

        def result(self) -> float:
            return float(np.median(np.concatenate(self.rows)))

        def reset_state(self) -> None:
            self.rows.clear()

    simulate(3)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([L.Input((3,)), L.Rescaling(2.0)])
        model.compile(loss="mse", metrics=[Median()], run_eagerly=True)
    assert model.evaluate(X, Y, 4, verbose=0)[1] == pytest.approx(np.median(2.0 * X))


@pytest.mark.behaviour("custom-metrics")
def test_an_update_in_a_replica_is_reported_once(
    strategy: mr.MirroredStrategy, caplog: pytest.LogCaptureFixture
) -> None:
    class Mine(Kept):
        """A metric of a loop of its own."""

    with strategy.scope():
        metric, mean = Mine(), M.Mean()

    def step() -> None:
        mean.update_state([1.0])
        metric.update_state(mr.constant([1.0]), mr.constant([3.0]))

    for _ in range(2):
        strategy.run(step)
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "'kept' (a Mine) is updated once per replica" in record.getMessage()
    assert float(metric.result()) == 6.0  # What replicas count is added up, as in TensorFlow.


def test_a_metric_along_the_examples_in_a_replica_is_reported(
    strategy: mr.MirroredStrategy, caplog: pytest.LogCaptureFixture
) -> None:
    class AlongRows(M.CosineSimilarity):
        """One whose class is new to the log."""

    with strategy.scope():
        within, along = AlongRows(), AlongRows(axis=0)
    rows = mr.constant([[1.0, 2.0], [3.0, 4.0]])
    for metric, warnings in ((within, 0), (along, 1), (along, 1)):
        strategy.run(metric.update_state, (rows, rows))
        assert sum(each.levelno == logging.WARNING for each in caplog.records) == warnings
