"""Masks in training: losses, metrics and gradients are over what they leave, on any replicas.

Keras' numbers are those of the tables in tests/support/loss_values.py.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import layers
from mirrored.training.losses import as_loss
from tests.support import loss_values
from tests.support.loss_values import DATA, OF_LOSSES, OF_METRICS, WEIGHTS

KERAS: dict[str, Any] = json.loads(loss_values.FILE.read_text())
NEAR = {"rtol": 2e-5, "atol": 2e-6}
FLAT = [name for name in OF_LOSSES if "deep" not in name and "smoothing" not in name]
QUICK = ["MeanAbsoluteError {} of values", "SparseCategoricalCrossentropy", "Circle {}", "Dice {}"]


def some(names: Any) -> list[Any]:
    """Return the names, all but a few of them slow."""
    return [
        name if name.startswith(tuple(QUICK)) else pytest.param(name, marks=pytest.mark.slow)
        for name in names
    ]


def masking(replicas: int, y_pred: np.ndarray, **options: Any) -> mr.Model:
    """Return a model that returns its inputs, with the mask of the tables."""
    bound = float(np.median(y_pred[..., 0]))
    with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
        x = layers.Input(y_pred.shape[1:])
        y = layers.Lambda(lambda x: x + 0.0, mask=lambda x, _: x[..., 0] > bound)(x)
        model = mr.Model(x, y)
        model.compile(**options)
    return model


@pytest.mark.behaviour("masks")
@pytest.mark.parametrize("name", some(FLAT))
def test_losses_of_shards_with_masks_add_up(name: str, simulate: Callable[..., Any]) -> None:
    simulate(4)
    kind, options, data = OF_LOSSES[name]
    y_true, y_pred = DATA[data]
    for reduction in ("mean", "sum", "mean_with_sample_weight"):
        loss = getattr(mr.losses, kind)(reduction=reduction, **options)
        model = masking(4, y_pred, loss=loss)
        found = model.evaluate(y_pred, y_true, 6, verbose=0, sample_weight=WEIGHTS)
        expected = KERAS["masked losses"][name][f"{reduction}, weighted"]
        np.testing.assert_allclose(found, expected, **NEAR)


@pytest.mark.behaviour("masks")
@pytest.mark.parametrize("name", some(OF_METRICS))
def test_metrics_of_shards_with_masks_add_up(name: str, simulate: Callable[..., Any]) -> None:
    simulate(3)
    kind, options, data = OF_METRICS[name]
    y_true, y_pred = DATA[data]
    loss = "sparse_categorical_crossentropy" if data == "labels" else "mse"
    if data == "holes":
        loss = mr.losses.SparseCategoricalCrossentropy(ignore_class=-1)
    metrics = [[getattr(mr.metrics, kind)(name="it", **options)] for _ in range(2)]
    model = masking(3, y_pred)
    with model.distribute_strategy.scope():
        metrics = [[getattr(mr.metrics, kind)(name="it", **options)] for _ in range(2)]
        model.compile(loss=loss, metrics=metrics[0], weighted_metrics=metrics[1])
    found = model.evaluate(y_pred, y_true, 4, verbose=0, sample_weight=WEIGHTS, return_dict=True)
    expected = KERAS["masked metrics"][name][:2]
    np.testing.assert_allclose([found["it"], found["weighted_it"]], expected, **NEAR)


STEPS = np.random.default_rng(0).normal(size=(7, 3, 2)).astype(np.float32)
STEPS[[0, 0, 1, 3, 4, 5, 6], [0, 2, 1, 1, 0, 2, 1]] = 0.0
STEPS[2] = 0.0  # An example of which nothing counts, alone on a replica in the second batch below.
TARGETS = np.random.default_rng(1).normal(size=(7, 3, 2)).astype(np.float32)
EACH = np.linspace(0.5, 2.0, 7, dtype=np.float32)


class Own(mr.Model):
    """A step of its own that computes what `fit` does."""

    def train_step(self, data: Any) -> Any:
        x, y, weights = mr.keras.utils.unpack_x_y_sample_weight(data)
        sample_weight = weights[:, None]
        with mr.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True), sample_weight)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def expected_steps(batches: list[slice], rate: float) -> tuple[list[float], np.ndarray]:
    """Return the losses and the kernel of plain descent on the mean over what counts."""
    kernel, losses = np.full((2, 2), 0.5), []
    for rows in batches:
        x, y = STEPS[rows].astype(float), TARGETS[rows].astype(float)
        counts = (x != 0).any(-1)
        weights = counts * EACH[rows, None] / max(counts.sum(), 1)
        errors = x @ kernel - y
        losses.append(float((weights * (errors**2).mean(-1)).sum()))
        kernel -= rate * np.einsum("btf,bt,btu->fu", x, weights, errors)
    return losses, kernel


@pytest.mark.behaviour("masks")
@pytest.mark.parametrize("run_eagerly", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("replicas", [1, 3])
def test_a_fit_is_over_what_counts(
    replicas: int, own: bool, run_eagerly: bool, simulate: Callable[..., Any]
) -> None:
    simulate(3)
    with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
        x = layers.Input((3, 2))
        start = mr.keras.initializers.Constant(0.5)
        dense = layers.Dense(2, use_bias=False, kernel_initializer=start)
        model = (Own if own else mr.Model)(x, dense(layers.Masking()(x)))
        model.compile(mr.optim.SGD(0.5), "mse", run_eagerly=run_eagerly)
    batches = [slice(0, 3), slice(3, 6), slice(6, 7)]
    losses, kernel = expected_steps(batches, 0.5)
    history = model.fit(STEPS, TARGETS, 3, sample_weight=EACH, verbose=0, shuffle=False).history
    np.testing.assert_allclose(dense.get_weights()[0], kernel, rtol=1e-5)
    shown = losses[-1] if own else np.dot(losses, [3, 3, 1]) / 7  # What a step returned is shown.
    np.testing.assert_allclose(history["loss"], [shown], rtol=1e-5)


def test_a_batch_of_which_nothing_counts_has_no_loss_and_no_gradient() -> None:
    model = mr.Sequential([layers.Input((3, 2)), layers.Masking(), layers.Dense(2)])
    model.compile("sgd", "mse", metrics=["mae"])
    before = [each.copy() for each in model.get_weights()]
    found = model.train_on_batch(np.zeros((2, 3, 2)), TARGETS[:2], return_dict=True)
    assert found == {"loss": 0.0, "mae": 0.0}
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_batch_normalization_takes_what_counts_on_all_replicas(
    simulate: Callable[..., Any],
) -> None:
    simulate(3)
    found = []
    for replicas in (1, 3):
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            layer = layers.BatchNormalization(synchronized=True, momentum=0.0)
            model = mr.Sequential([layers.Input((3, 2)), layers.Masking(), layer])
            model.compile("sgd", "mse")
        model.fit(STEPS[:5], TARGETS[:5], 5, verbose=0)
        found.append(layer.get_weights())
    rows = STEPS[:5][(STEPS[:5] != 0).any(-1)]
    np.testing.assert_allclose(found[0][2:], [rows.mean(0), rows.var(0)], rtol=1e-5)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_loss_of_one_number_is_that_of_what_is_there() -> None:
    prediction = layers.Masking()(STEPS)
    one = as_loss(lambda y_true, y_pred: mr.reduce_mean(mr.square(y_pred - y_true)))
    expected = np.mean((TARGETS - STEPS) ** 2)
    np.testing.assert_allclose(one(TARGETS, prediction, 2.0), 2.0 * expected, rtol=1e-6)
    assert float(one(TARGETS, layers.Masking()(0 * STEPS))) == 0.0  # As in Keras.
    one.reduction = "sum"
    with pytest.raises(ValueError, match="which a mask cannot reduce to a sum"):
        one(TARGETS, prediction)


def test_a_mask_of_numbers_counts_where_they_are_not_0() -> None:
    numbers = np.array([[0.5, 0.0, 2.0]] * 7, np.float32)
    predictions = mr.constant(STEPS)
    predictions._keras_mask = mr.constant(numbers)
    errors = ((TARGETS - STEPS) ** 2).mean(-1)
    mean = (errors * (numbers != 0)).sum() / numbers.sum()  # As in Keras.
    loss = mr.losses.MeanSquaredError
    np.testing.assert_allclose(loss()(TARGETS, predictions), mean, rtol=1e-6)
    total = (errors * numbers).sum()
    np.testing.assert_allclose(loss(reduction="sum")(TARGETS, predictions), total, rtol=1e-6)
    merged = layers.Add()([predictions, layers.Masking()(STEPS)])
    np.testing.assert_array_equal(merged._keras_mask, (numbers != 0) | (STEPS != 0).any(-1))


@pytest.mark.parametrize("shape", [(3,), (7, 2), (7, 3, 2)])
def test_weights_that_fit_neither_examples_nor_the_mask(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must have one weight an example, or broadcast to the"):
        mr.losses.MeanSquaredError()(TARGETS, layers.Masking()(STEPS), np.ones(shape))


@pytest.mark.behaviour("masks")
def test_a_mask_of_other_axes_than_the_losses_is_refused() -> None:
    model = mr.Sequential(
        [layers.Masking(), layers.Lambda(lambda x: x[..., 0], mask=lambda x, m: m)]
    )
    with pytest.raises(mr.errors.InvalidArgumentError, match="does not fit losses of shape"):
        mr.losses.MeanSquaredError()(TARGETS[..., 0], model(STEPS))
