"""One step: what is minimised, and what the losses, penalties and metrics are.

Numbers marked so were printed by Keras 3.15.1 on TensorFlow 2.21.0 for the same model and data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_context import ONE_AND_THREE

import mirrored as mr
from mirrored.distribute import MirroredVariable

X = np.arange(4.0, dtype=np.float32)[:, np.newaxis]
Y = 2 * (X + 1)
FEATURES = np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2)
VALUES = FEATURES @ np.array([[1.0], [2.0]], dtype=np.float32) + np.float32(0.5)
LABELS = np.array([0, 1, 2, 1, 0])
MakeLine = Callable[..., mr.Model]


def constant(value: Any) -> mr.layers.initializers.Constant:
    return mr.layers.initializers.Constant(value)


def copies_are_equal(model: mr.Model) -> bool:
    variables = [*model.variables, *model.optimizer.variables]
    assert all(isinstance(variable, MirroredVariable) for variable in variables)
    return all(
        copy.numpy().tobytes() == variable.numpy().tobytes()
        for variable in variables
        for copy in variable.copies
    )


KERNEL = [0.1, 0.2, 0.3, -0.1]
# Units, activation, loss, targets, metric, and two epochs' loss and metric by Keras 3.15.1.
LOSSES: dict[str, tuple[int, str | None, str, Any, str, list[float], list[float]]] = {
    "binary": (
        1,
        "sigmoid",
        "binary_crossentropy",
        np.array([0, 1, 1, 0, 1]),
        "accuracy",
        [0.671028495, 0.663139403],
        [0.6, 0.6],
    ),
    "categorical": (
        3,
        "softmax",
        "categorical_crossentropy",
        np.eye(3)[LABELS],
        "accuracy",
        [1.124206185, 1.110462189],
        [0.2, 0.2],
    ),
    "mse": (
        2,
        None,
        "mse",
        np.concatenate([VALUES, -VALUES], axis=1),
        "mse",
        [3.336509705, 1.660177588],
        [3.336509705, 1.660177588],
    ),
}


@ONE_AND_THREE
@pytest.mark.parametrize(
    ("units", "activation", "loss", "targets", "metric", "losses", "values"),
    LOSSES.values(),
    ids=LOSSES,
)
def test_losses_by_name(
    units: int,
    activation: str | None,
    loss: str,
    targets: Any,
    metric: str,
    losses: list[float],
    values: list[float],
    strategy: mr.MirroredStrategy,
) -> None:
    kernel = np.resize(np.array(KERNEL), (2, units))
    with strategy.scope():
        x = mr.layers.Input(shape=(2,))
        model = mr.Model(
            x, mr.layers.Dense(units, activation, kernel_initializer=constant(kernel))(x)
        )
        model.compile(mr.optim.SGD(0.1), loss, metrics=[metric])
    history = model.fit(FEATURES, targets, batch_size=2, epochs=2, shuffle=False, verbose=0)
    assert history.history["loss"] == pytest.approx(losses, rel=1e-5)
    assert history.history[metric] == pytest.approx(values, rel=1e-5)
    assert copies_are_equal(model)


def test_weighted_sparse_loss_and_both_kinds_of_metric(strategy: mr.MirroredStrategy) -> None:
    kernel = constant([[0.1, 0.2, 0.3], [0.3, -0.1, 0.0]])
    with strategy.scope():
        x = mr.layers.Input(shape=(2,))
        model = mr.Model(x, mr.layers.Dense(3, "softmax", kernel_initializer=kernel)(x))
        model.compile(
            mr.optim.SGD(0.1),
            "sparse_categorical_crossentropy",
            metrics=["accuracy"],
            weighted_metrics=["acc"],
        )
    weights = np.array([1, 2, 1, 0.5, 1.0])
    history = model.fit(
        FEATURES, LABELS, 2, epochs=2, shuffle=False, verbose=0, sample_weight=weights
    )
    # Keras 3.15.1.
    assert history.history["loss"] == pytest.approx([1.205286622, 1.188463569], rel=1e-5)
    assert history.history["accuracy"] == pytest.approx([0.4, 0.4])
    assert history.history["acc"] == pytest.approx([6 / 11, 6 / 11])


def test_penalties_are_in_the_loss_and_not_in_the_metrics(strategy: mr.MirroredStrategy) -> None:
    penalty = mr.layers.regularizers.L1L2(0.01, 0.02)
    with strategy.scope():
        x = mr.layers.Input(shape=(2,))
        hidden = mr.layers.Dense(
            3, "tanh", kernel_initializer=constant(0.1), kernel_regularizer=penalty
        )(x)
        model = mr.Model(x, mr.layers.Dense(1, kernel_initializer=constant(0.2))(hidden))
        model.compile(mr.optim.Adam(0.01), "mse", metrics=["mse"])
    history = model.fit(
        FEATURES,
        VALUES,
        batch_size=2,
        epochs=2,
        shuffle=False,
        verbose=0,
        validation_data=(FEATURES, VALUES),
    ).history
    # All numbers by Keras 3.15.1.
    assert history["loss"] == pytest.approx([3.650489092, 3.491917372], rel=1e-5)
    assert history["mse"] == pytest.approx([3.642620802, 3.481732845], rel=1e-5)
    assert history["val_loss"] == pytest.approx([3.552104950, 3.410933733], rel=1e-5)
    assert history["val_mse"] == pytest.approx([3.542521000, 3.399070263], rel=1e-5)
    np.testing.assert_allclose(
        model.get_weights()[0], [[0.151480526] * 3, [0.151915029] * 3], rtol=1e-5
    )


def test_a_penalty_counts_once_for_any_batch(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        x = mr.layers.Input(shape=(1,))
        dense = mr.layers.Dense(
            1,
            use_bias=False,
            kernel_initializer="ones",
            kernel_regularizer=mr.layers.regularizers.L2(0.1),
        )
        model = mr.Model(x, dense(x))
        model.compile(mr.optim.SGD(0.01), "mse")
    # Keras 3.15.1: 13.5 and 0.1.
    assert model.evaluate(X, Y, batch_size=2, verbose=0) == pytest.approx(13.6)
    history = model.fit(X, Y, batch_size=3, epochs=2, shuffle=False, verbose=0)
    assert history.history["loss"] == pytest.approx([13.08014393, 9.161325455], rel=1e-6)
    assert model.get_weights()[0].item() == pytest.approx(1.6375461, rel=1e-6)


@pytest.mark.parametrize("batch_size", [1, 3, 4])
def test_the_sum_is_minimised_where_a_loss_asks_for_it(
    batch_size: int, make_line: MakeLine
) -> None:
    model = make_line(loss=mr.losses.MeanSquaredError(reduction="sum"))
    history = model.fit(X, Y, batch_size, epochs=2, shuffle=False, verbose=0)
    if batch_size == 3:  # Keras 3.15.1.
        assert history.history["loss"] == pytest.approx([26.45890045, 17.00367928], rel=1e-6)
        assert model.get_weights()[0].item() == pytest.approx(1.8349353, rel=1e-6)
        assert model.evaluate(X, Y, 3, verbose=0) == pytest.approx(12.14425469, rel=1e-6)
    else:
        w = 1.0
        for _ in range(2):
            for start in range(0, 4, batch_size):
                x, y = X[start : start + batch_size], Y[start : start + batch_size]
                w -= 0.01 * float((2 * (w * x - y) * x).sum())
        assert model.get_weights()[0].item() == pytest.approx(w, rel=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        lambda y_true, y_pred: mr.square(y_true - y_pred),
        lambda y_true, y_pred: mr.reduce_mean(mr.square(y_true - y_pred), axis=-1),
        mr.losses.MeanSquaredError,
        mr.losses.mse,
    ],
    ids=["per element", "per example", "class", "function"],
)
def test_a_loss_of_the_users_own(loss: Any, make_line: MakeLine) -> None:
    model, named = make_line(loss=loss), make_line()
    for each in (model, named):
        each.fit(X, Y, batch_size=3, epochs=2, shuffle=False, verbose=0)
    assert model.get_weights() == named.get_weights()


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum"])
def test_a_loss_that_calls_another(reduction: str, make_line: MakeLine) -> None:
    """Its one number is the shard's, and counts as that of the batch."""
    other = mr.losses.MeanSquaredError(reduction=reduction)
    model, plain = make_line(loss=lambda y, p: other(y, p)), make_line(loss=other)
    for each in (model, plain):
        each.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.get_weights(), plain.get_weights(), rtol=1e-6)
    assert model.evaluate(X, Y, 4, verbose=0) == pytest.approx(plain.evaluate(X, Y, 4, verbose=0))


def test_a_metric_of_the_users_own(make_line: MakeLine) -> None:
    def furthest(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
        return mr.reduce_max(mr.abs(y_true - y_pred), axis=-1)

    model = make_line(metrics=[furthest])
    logs = model.evaluate(X, Y, batch_size=3, verbose=0, return_dict=True)
    assert logs["furthest"] == pytest.approx((2 + 3 + 4 + 5) / 4)
