"""Losses and metrics against Keras, with weights and reductions, and on replicas."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.training.losses import as_loss
from tests.support import loss_values
from tests.support.loss_values import DATA, OF_LOSSES, OF_METRICS, WEIGHTS, is_of_the_batch

KERAS: dict[str, Any] = json.loads(loss_values.FILE.read_text())
# Logarithms of sums of float32 numbers, which are rounded in another order.
NEAR = {"rtol": 2e-5, "atol": 2e-6}


def test_the_table_has_every_case() -> None:
    assert KERAS["losses"].keys() == OF_LOSSES.keys()
    assert KERAS["metrics"].keys() == OF_METRICS.keys()


@cases("name", OF_LOSSES)
def test_losses(name: str) -> None:
    found = loss_values.of_loss(mr.keras, name)
    for each, expected in KERAS["losses"][name].items():
        np.testing.assert_allclose(found[each], expected, **NEAR, err_msg=each)


@cases("name", OF_METRICS)
def test_metrics(name: str) -> None:
    np.testing.assert_allclose(
        loss_values.of_metric(mr.keras, name), KERAS["metrics"][name], **NEAR
    )


def same(found: Any, expected: Any, name: str) -> None:
    if "refused" in (found, expected):
        assert found == expected, name
    else:
        np.testing.assert_allclose(found, expected, **NEAR, err_msg=name)


@cases("name", OF_LOSSES)
def test_losses_of_predictions_with_masks(name: str) -> None:
    found, expected = loss_values.of_masked_loss(mr.keras, name), KERAS["masked losses"][name]
    # One weight an example is one, though Keras would broadcast it along the steps.
    expected = expected | {"weights of examples": expected["mean, weighted"]}
    for each, number in expected.items():
        same(found[each], number, each)


@cases("name", OF_METRICS)
def test_metrics_of_predictions_with_masks(name: str) -> None:
    same(loss_values.of_masked_metric(mr.keras, name), KERAS["masked metrics"][name], name)


@pytest.fixture
def passing(simulate: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``passing(replicas, ...)``: a compiled model that returns its inputs, so many times.

    The first of several outputs is called ``0``.
    """
    simulate(4)

    def make(replicas: int, shape: Any, times: int = 1, **options: Any) -> mr.Model:
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            x = mr.layers.Input(shape)
            model = mr.Model(x, [mr.layers.Identity(name=str(i))(x) for i in range(times)])
            model.compile(**options)
        return model

    return make


OF_BATCHES = [name for name, each in OF_LOSSES.items() if is_of_the_batch(*each[:2])]


def batch_size(name: str) -> int:
    """Return 6 where a loss has sums over each batch, of which Keras' number is that of one."""
    kind, options, _ = OF_LOSSES[name]
    return 6 if "ignore_class" in options or kind == "Circle" or name in OF_BATCHES else 4


def in_groups(names: Iterable[str], key: Callable[[str], Any]) -> dict[str, list[str]]:
    """Return the names of the same key together, which are tried at a time."""
    groups = {key(name): [each for each in names if key(each) == key(name)] for name in names}
    return {f"{len(group)} from {group[0]}": group for group in groups.values()}


ADDED_LOSSES = in_groups(
    [each for each in OF_LOSSES if "deep" not in each and "smoothing" not in each],
    lambda name: (OF_LOSSES[name][2], batch_size(name)),
)


@pytest.mark.parametrize("names", ADDED_LOSSES.values(), ids=ADDED_LOSSES)
def test_losses_of_shards_add_up(names: list[str], passing: Callable[..., Any]) -> None:
    """In batches of 4 and 2 on three replicas, of which the last has none then."""
    losses = [getattr(mr.losses, OF_LOSSES[name][0])(**OF_LOSSES[name][1]) for name in names]
    y_true, y_pred = DATA[OF_LOSSES[names[0]][2]]
    model = passing(3, (4,), len(names), loss=losses)
    given: dict[str, Any] = {"sample_weight": [WEIGHTS] * len(names), "return_dict": True}
    size = batch_size(names[0])
    found = model.evaluate(y_pred, [y_true] * len(names), size, verbose=0, **given)
    for number, name in enumerate(names):
        expected = KERAS["losses"][name]["weighted"]
        one = found["loss" if len(names) == 1 else f"{number}_loss"]
        np.testing.assert_allclose(one, np.asarray(expected), **NEAR, err_msg=name)


@pytest.mark.parametrize("name", OF_BATCHES)
def test_one_number_for_a_batch_is_that_of_all_its_shards(
    name: str, passing: Callable[..., Any]
) -> None:
    """Of six or three examples on four replicas, of which one has none for three."""
    kind, options, data = OF_LOSSES[name]
    y_true, y_pred = DATA[data]
    for each, reduction in {"plain": "sum_over_batch_size", "sum": "sum"}.items():
        expected = KERAS["losses"][name][each]
        loss = getattr(mr.losses, kind)(reduction=reduction, **options)
        model = passing(4, y_pred.shape[1:], loss=loss)
        found = model.evaluate(y_pred, y_true, 6, verbose=0)
        np.testing.assert_allclose(found, expected, **NEAR)


@pytest.mark.parametrize("run_eagerly", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("kind", ["Tversky", "Circle", "ignoring"])
def test_replicas_train_as_one_by_what_is_of_the_whole_batch(
    kind: str, own: bool, run_eagerly: bool, simulate: Callable[..., Any]
) -> None:
    class Own(mr.Model):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with mr.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"loss": loss}

    simulate(3)
    loss, data = {
        "Tversky": (mr.losses.Tversky(0.75, 0.25), "one-hot"),
        "Circle": (mr.losses.Circle(2.0), "embeddings"),
        # Of the first replica's two examples none counts.
        "ignoring": (mr.losses.SparseCategoricalCrossentropy(ignore_class=0), "embeddings"),
    }[kind]
    y_true = DATA[data][0][:5]
    x = DATA["values"][0][:5].astype("float32")
    start = mr.keras.initializers.GlorotUniform(seed=1)
    found = []
    for replicas in (1, 3):
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            inputs = mr.layers.Input((4,))
            layer = mr.layers.Dense(4, "softmax", kernel_initializer=start)
            model = (Own if own else mr.Model)(inputs, layer(inputs))
            model.compile("sgd", loss, run_eagerly=run_eagerly)
        losses = model.fit(x, y_true, batch_size=5, epochs=2, verbose=0).history["loss"]
        found.append((losses, layer.get_weights()[0]))
    before = np.asarray(start((4, 4)))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-6)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-5)
    assert np.abs(found[0][1] - before).max() > 1e-4


@pytest.mark.parametrize("loss", [mr.losses.Dice("sum"), mr.losses.Circle(reduction="sum")])
def test_what_is_of_the_whole_batch_is_refused_of_a_part_of_it(
    loss: Any, simulate: Callable[..., Any]
) -> None:
    simulate(2)
    with pytest.raises(ValueError, match="batch, and a replica has only a part"):
        mr.MirroredStrategy().run(lambda: loss([[1.0]], [[1.0]]))


ADDED_METRICS = in_groups(
    [each for each in OF_METRICS if "smoothing" not in each], lambda name: OF_METRICS[name][2]
)


@pytest.mark.parametrize("names", ADDED_METRICS.values(), ids=ADDED_METRICS)
def test_metrics_of_shards_add_up(names: list[str], passing: Callable[..., Any]) -> None:
    data = OF_METRICS[names[0]][2]
    y_true, y_pred = DATA[data]
    loss: Any = (
        mr.losses.SparseCategoricalCrossentropy(ignore_class=-1)
        if data in ("labels", "holes")
        else "mse"
    )
    model = passing(3, (4,), loss=loss)
    with model.distribute_strategy.scope():
        metrics = [
            getattr(mr.metrics, OF_METRICS[name][0])(name=f"it {number}", **OF_METRICS[name][1])
            for number, name in enumerate(names)
        ]
        model.compile(loss=loss, weighted_metrics=metrics)
    found = model.evaluate(y_pred, y_true, 4, verbose=0, sample_weight=WEIGHTS, return_dict=True)
    for number, name in enumerate(names):
        expected = KERAS["metrics"][name][2]
        np.testing.assert_allclose(found[f"it {number}"], expected, **NEAR, err_msg=name)


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
        assert type(as_loss(name)).__name__ == kind
        function = getattr(mr.losses, name) if name.islower() else getattr(mr.losses, kind)
        assert type(as_loss(function)).__name__ == kind
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


@cases(
    ("make", "match"),
    [
        (lambda: mr.losses.Huber(-1.0), "`delta` must be a number of 0 or more"),
        (
            lambda: mr.losses.CosineSimilarity(axis=0),
            "`axis` must be the axis of the vectors, not 0",
        ),
        (lambda: mr.metrics.TopKCategoricalAccuracy(0), "`k` must be an integer of 1 or more"),
        (lambda: mr.losses.Dice(axis="all"), "`axis` must be None, an integer or several"),
        (lambda: mr.losses.Dice(axis=3)([[1.0]], [[1.0]]), "`axis` is out of bounds for 2 axes"),
        (lambda: mr.losses.Dice("none", axis=0)([[1.0]], [[1.0]]), "has no values per example"),
        (
            lambda: mr.losses.Dice("mean_with_sample_weight", axis=0)([[1.0]], [[1.0]], 2.0),
            "has no mean by sample weights",
        ),
        (
            lambda: mr.losses.categorical_crossentropy([[1.0, 0.0]], [[1.0, 0.0]], axis=5),
            "out of bounds for shape",
        ),
        (lambda: mr.losses.BinaryCrossentropy(axis=0), "0 is the batch"),
        (lambda: mr.losses.CategoricalGeneralizedCrossEntropy(1.0), "q must be in the interval"),
        (
            lambda: mr.losses.SparseCategoricalCrossentropy(axis=0)([1], [[0.5, 0.5]]),
            "Only axis=-1 is currently supported",
        ),
        (lambda: mr.losses.mae([[1.0, 2.0]], [[1.0, 2.0, 3.0]]), "must have the same shape"),
        (lambda: mr.losses.Hinge()([[1.0, 2.0]], [[1.0, 2.0, 3.0]]), "must have the same shape"),
    ],
)
def test_arguments_that_are_wrong(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()
