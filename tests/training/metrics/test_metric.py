"""What all metrics share: totals and counts that replicas add up on their own, exactly."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from replica_context import ONE_AND_THREE

import mirrored as mr
from mirrored import ops
from mirrored.distribute import OneDeviceStrategy, PerReplica, get_replica_context
from mirrored.training import metrics
from mirrored.training.metrics import Metric
from tests.support import config_values


def made(strategy: Any, make: Callable[[], Metric] = metrics.Mean) -> Metric:
    """Return a metric made in the strategy's scope."""
    with strategy.scope():
        return make()


def spread(strategy: Any, values: Any) -> Any:
    """Return the values in a part for each replica."""
    (batch,) = strategy.experimental_distribute_dataset([np.asarray(values, np.float32)])
    return batch


@pytest.fixture(params=[lambda each: each, mr.function], ids=["eager", "recorded"])
def how(request: pytest.FixtureRequest) -> Any:
    """Return what makes a function run in one of the two ways."""
    return request.param


# ------------------------------------------------------------------------------ on their own


def test_reset() -> None:
    metric = metrics.Mean()
    metric.update_state([4.0])
    metric.reset_state()
    assert float(metric.result()) == 0.0
    metric.update_state([2.0])
    assert float(metric.result()) == 2.0


def test_many_batches_do_not_lose_small_values() -> None:
    metric = metrics.Mean()
    metric.accumulate(2.0**24, 2.0**24)
    metric.accumulate(0.0, 1.0)  # A float32 count would stand still.
    assert float(metric.result()) < 1.0


def test_a_metric_without_methods() -> None:
    class Empty(Metric):
        pass

    with pytest.raises(NotImplementedError, match=r"The metric Empty has no `update_state`"):
        Empty().update_state([1.0], [1.0])
    with pytest.raises(NotImplementedError, match=r"The metric Empty has no `result`"):
        Empty().result()


class Range(Metric):
    """How many predictions are in a range, and a metric inside: as Keras' own are written."""

    def __init__(self, name: str = "range", **options: Any) -> None:
        super().__init__(name=name, **options)
        self.inside = self.add_weight(shape=(2,), initializer="zeros", name="inside")
        self.mean = metrics.Mean()

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        found = ops.stack([ops.less(y_pred, 0.0), ops.greater(y_pred, 0.0)])
        counts = ops.reduce_sum(ops.cast(found, self.dtype), axis=1)
        self.inside.assign(self.inside + counts)
        self.mean.update_state(y_pred)

    def result(self) -> Any:
        return {"below": self.inside[0], "above": self.inside[1], "mean": self.mean.result()}


@ONE_AND_THREE
def test_a_metric_of_the_users_own(strategy: mr.MirroredStrategy, how: Any) -> None:
    metric = made(strategy, Range)
    values = [-1.0, 2.0, 3.0, -4.0, 5.0, 0.0, 7.0]

    def step(x: Any) -> Any:
        def update(part: Any) -> Any:
            metric.update_state(None, part)
            return metric.result()

        return strategy.run(update, (x,))

    told = strategy.experimental_local_results(how(step)(spread(strategy, values)))
    for found in (*told, metric.result()):
        assert {name: float(value) for name, value in found.items()} == {
            "below": 2.0,
            "above": 4.0,
            "mean": pytest.approx(12.0 / 7.0),
        }
    assert [v.name for v in metric.variables] == ["range/inside:0", "mean/total:0", "mean/count:0"]
    metric.reset_state()
    assert [float(each) for each in metric.result().values()] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", ["float64", mr.keras.DTypePolicy("float64")], ids=str)
def test_variables_of_a_metric(dtype: Any) -> None:
    metric = Range(dtype=dtype)
    assert (metric.dtype, metric.inside.dtype) == (ops.float64, ops.float64)
    first = metric.add_variable((), "ones", "int32", "only_first_replica")
    assert (first.name, first.dtype, int(first)) == ("range/variable_1:0", ops.int32, 1)
    assert first.aggregation is mr.VariableAggregation.ONLY_FIRST_REPLICA
    with pytest.raises(ValueError, match=r"argument `aggregation`.* Received: aggregation='max'"):
        metric.add_variable((), "zeros", aggregation="max")
    mean = metric.add_weight((), "zeros", aggregation="mean", synchronization="on_read")
    assert mean.aggregation is mr.VariableAggregation.MEAN
    with pytest.raises(ValueError, match="Received: synchronization='none'"):
        metric.add_weight((), "zeros", synchronization="none")


def test_metrics_know_their_strategy() -> None:
    strategy = mr.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        inside = metrics.Mean()
    assert inside._strategy is strategy
    assert metrics.Mean()._strategy is not strategy


def test_its_variables() -> None:
    metric = metrics.Mean(name="loss")
    assert [v.name for v in metric.variables] == ["loss/total:0", "loss/count:0"]
    assert [(v.dtype, v.trainable, v.shape) for v in metric.variables] == [
        (mr.float64, False, ())
    ] * 2
    on_read, summed = mr.VariableSynchronization.ON_READ, mr.VariableAggregation.SUM
    assert {(v.synchronization, v.aggregation) for v in metric.variables} == {(on_read, summed)}
    assert metrics.MeanSquaredError().name == "mean_squared_error"


COUNTS = ("true_positives", "false_positives", "true_negatives", "false_negatives")
# Keras' variables, of all metrics that have another state than a total and a count.
VARIABLES: dict[str, tuple[str, ...]] = {
    "Sum": ("total",),
    **dict.fromkeys(("AUC", "SensitivityAtSpecificity", "SpecificityAtSensitivity"), COUNTS),
    **dict.fromkeys(("PrecisionAtRecall", "RecallAtPrecision"), COUNTS),
    "Precision": COUNTS[:2],
    "Recall": (COUNTS[0], COUNTS[3]),
    **dict.fromkeys(
        ("TruePositives", "TrueNegatives", "FalsePositives", "FalseNegatives"), ("accumulator",)
    ),
    **dict.fromkeys(
        ("IoU", "BinaryIoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU"), ("total_confusion_matrix",)
    ),
    **dict.fromkeys(
        ("FBetaScore", "F1Score"), (*COUNTS[:2], "false_negatives", "intermediate_weights")
    ),
    "R2Score": ("num_samples", "squared_sum", "sum", "residual", "count"),
}


@cases("call", config_values.METRICS.strip().splitlines())
def test_variables_are_those_of_keras(call: str) -> None:
    metric = eval(f"keras.metrics.{call}", {"keras": mr.keras})
    cls = type(metric).__name__
    if cls in ("FBetaScore", "F1Score", "R2Score"):  # Batches say how many columns there are.
        metric.update_state([[0.0, 1.0]], [[0.5, 0.5]])
    names = VARIABLES.get(cls, ("total", "count"))
    assert [each.path for each in metric.variables] == [f"{metric.name}/{name}" for name in names]


def test_sum_has_a_total_alone() -> None:
    metric = metrics.Sum()
    metric.update_state([1.0, 2.0], [1.0, 3.0])
    assert (metric.totals, float(metric.result())) == ((7.0, 0.0), 7.0)
    metric.set_totals(4.0, 0.0)
    other = pickle.loads(pickle.dumps(metric))
    other.update_state(1.0)
    assert [float(each.result()) for each in (metric, other)] == [4.0, 5.0]


def test_a_call_adds_and_tells() -> None:
    metric = metrics.Mean()
    assert [float(metric(value)) for value in (1.0, 3.0, 5.0)] == [1.0, 2.0, 3.0]
    metric.set_totals(10.0, 4.0)
    assert float(metric.result()) == 2.5
    assert [float(v) for v in metric.variables] == [10.0, 4.0]


# ------------------------------------------------------------------------------ in replicas


@ONE_AND_THREE
@pytest.mark.parametrize("weighted", [False, True])
def test_replicas_add_their_parts(strategy: mr.MirroredStrategy, how: Any, weighted: bool) -> None:
    metric = made(strategy)
    rng = np.random.default_rng(3)
    values, weights = rng.normal(size=10), rng.uniform(size=10).round(3)

    def step(x: Any, w: Any) -> Any:
        strategy.run(metric.update_state, (x, w if weighted else None))
        return metric.result()

    run, seen = how(step), [0, 0]
    for start, stop in ((0, 4), (4, 8), (8, 10), (10, 10)):  # Three, then two of three, then none.
        result = run(spread(strategy, values[start:stop]), spread(strategy, weights[start:stop]))
        factors = weights[:stop] if weighted else np.ones(stop)
        seen = [float((values[:stop] * factors).sum()), float(factors.sum())]
        assert float(result) == pytest.approx(seen[0] / seen[1], rel=1e-6)
    assert [float(v) for v in metric.variables] == pytest.approx(seen, rel=1e-6)
    assert result.dtype == mr.float64


def test_a_result_in_a_replica_is_that_of_all(strategy: mr.MirroredStrategy, how: Any) -> None:
    metric = made(strategy)
    step = how(lambda x: strategy.run(lambda part: metric(part), (x,)))
    for _ in range(2):
        results = strategy.experimental_local_results(step(spread(strategy, [1.0, 2.0, 3.0, 10.0])))
        assert [float(each) for each in results] == [4.0] * strategy.num_replicas_in_sync


@ONE_AND_THREE
def test_a_result_of_results_counts_once(strategy: mr.MirroredStrategy, how: Any) -> None:
    class Twice(Metric):
        def __init__(self) -> None:
            super().__init__()
            self.sum = metrics.Sum()

        def result(self) -> Any:
            return self.sum.result() * 2.0

    with strategy.scope():
        metric = Twice()

    def step(values: Any) -> Any:
        metric.sum.update_state(values)
        return metric.result()

    run = how(lambda values: strategy.run(step, (values,)))
    found = strategy.experimental_local_results(run(spread(strategy, [1.0, 2.0, 3.0])))
    assert [float(each) for each in found] == [12.0] * len(found)


@ONE_AND_THREE
def test_a_result_of_nothing_is_zero(strategy: mr.MirroredStrategy, how: Any) -> None:
    metric = made(strategy)
    assert float(how(metric.result)()) == 0.0
    inside = strategy.experimental_local_results(how(lambda: strategy.run(metric.result))())
    assert [float(each) for each in inside] == [0.0] * strategy.num_replicas_in_sync


def test_a_reset(strategy: mr.MirroredStrategy, how: Any) -> None:
    metric = made(strategy)
    for reset in (metric.reset_state, lambda: strategy.run(metric.reset_state)):
        strategy.run(metric.update_state, (spread(strategy, np.arange(7.0)),))
        assert float(metric.result()) == 3.0
        how(reset)()
        parts = [strategy.experimental_local_results(v) for v in metric.variables]
        assert [[float(copy) for copy in each] for each in parts] == [
            [0.0] * strategy.num_replicas_in_sync
        ] * 2


def test_a_reset_of_one_replica_is_its_own(strategy: mr.MirroredStrategy) -> None:
    count = strategy.num_replicas_in_sync
    metric = made(strategy)

    def replica() -> None:
        context = get_replica_context()
        assert context is not None
        metric.update_state([1.0])
        if context.replica_id_in_sync_group == 0:
            metric.reset_state()

    strategy.run(replica)
    assert float(metric.variables[1]) == count - 1


def test_updates_outside_of_replicas_count_once(strategy: mr.MirroredStrategy) -> None:
    metric = made(strategy)
    metric.update_state([1.0, 2.0])
    with strategy.scope():
        metric.update_state([9.0])
        assert float(metric.result()) == 4.0
    strategy.run(metric.update_state, (spread(strategy, [12.0, 12.0, 12.0]),))
    assert float(metric.result()) == 8.0


@settings(max_examples=30)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=0, allow_nan=False, allow_infinity=False),
)
def test_totals_that_are_set_are_exact(total: float, count: float) -> None:
    """A third of a number, three times, is not that number."""
    mr.config.experimental.set_simulated_gpus(3)
    metric = made(mr.MirroredStrategy())
    metric.set_totals(total, count)
    assert [float(v) for v in metric.variables] == [total, count]


def test_totals_are_set_over_all_replicas(strategy: mr.MirroredStrategy) -> None:
    metric = made(strategy)
    strategy.run(metric.update_state, (spread(strategy, np.ones(9)),))
    metric.set_totals(0.1, 0.7)
    assert [float(v) for v in metric.variables] == [0.1, 0.7]
    strategy.run(metric.update_state, (spread(strategy, [1.0, 1.0]),))
    assert float(metric.result()) == pytest.approx(2.1 / 2.7, rel=1e-12)


def test_a_metric_of_another_strategy(strategy: mr.MirroredStrategy) -> None:
    """One that was made outside is a plain one: replicas add to the same copy, in turn."""
    metric = metrics.Mean()
    strategy.run(metric.update_state, (spread(strategy, [1.0, 2.0, 6.0]),))
    assert float(metric.result()) == 3.0
    lone = made(OneDeviceStrategy("GPU:0"))
    lone.update_state([2.0])
    assert float(lone.result()) == 2.0


def test_values_by_replica_are_no_values(strategy: mr.MirroredStrategy) -> None:
    metric = made(strategy)
    with pytest.raises(mr.errors.InvalidArgumentError, match="cannot be used as one tensor"):
        metric.update_state(PerReplica([1.0, 2.0]))
    assert float(metric.result()) == 0.0
