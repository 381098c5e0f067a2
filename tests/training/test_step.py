"""One step: what is minimised, what moves and what does not, and in which dtype.

Numbers marked so were printed by Keras 3.15.1 on TensorFlow 2.21.0 for the same model and data.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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


# ------------------------------------------------------------------------------ losses, as Keras

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


def test_a_metric_of_the_users_own(make_line: MakeLine) -> None:
    def furthest(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
        return mr.reduce_max(mr.abs(y_true - y_pred), axis=-1)

    model = make_line(metrics=[furthest])
    logs = model.evaluate(X, Y, batch_size=3, verbose=0, return_dict=True)
    assert logs["furthest"] == pytest.approx((2 + 3 + 4 + 5) / 4)


# ------------------------------------------------------------------------------ what moves


def test_frozen_layers_do_not_move(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        x = mr.layers.Input(shape=(2,))
        frozen = mr.layers.Dense(3, name="frozen", kernel_regularizer="l2")
        model = mr.Model(x, mr.layers.Dense(1)(frozen(x)))
        frozen.trainable = False
        model.compile(mr.optim.SGD(0.1, momentum=0.9, weight_decay=0.1), "mse")
    before = model.get_weights()
    model.fit(FEATURES, VALUES, epochs=2, verbose=0)
    after = model.get_weights()
    moved = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert moved == [False, False, True, True]
    assert len(model.optimizer.variables) == 4  # No slots for what does not move.
    frozen.trainable = True
    model.fit(FEATURES, VALUES, epochs=1, verbose=0)
    assert not np.array_equal(model.get_weights()[0], before[0])


class HalfUsed(mr.Model):
    """A model with a layer that its output does not depend on."""

    def __init__(self) -> None:
        super().__init__()
        self.used = mr.layers.Dense(1, name="used")
        self.unused = mr.layers.Dense(1, name="unused")

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        self.unused(inputs)
        return self.used(inputs)


def test_unused_variables_are_named_once(
    strategy: mr.MirroredStrategy, caplog: pytest.LogCaptureFixture
) -> None:
    with strategy.scope():
        model = HalfUsed()
        model.compile("sgd", "mse")
    model.build((None, 2))
    before = model.unused.get_weights()
    with caplog.at_level(logging.WARNING, logger="mirrored"):
        model.fit(FEATURES, VALUES, batch_size=2, epochs=2, verbose=0)
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "unused/kernel" in warnings[0]
    assert "'used/kernel" not in warnings[0]
    assert [w.tobytes() for w in model.unused.get_weights()] == [w.tobytes() for w in before]


def test_dropout_drops_in_training_only(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dropout(0.5), mr.layers.Flatten()])
        model.compile("sgd", "mse")
    x = np.ones((8, 8), dtype=np.float32)
    np.testing.assert_array_equal(model.predict(x, verbose=0), x)
    assert model.evaluate(x, x, verbose=0) == 0.0
    assert model.fit(x, x, verbose=0).history["loss"] == [1.0]  # |0 - 1| and |2 - 1|.


def test_two_models_share_one_optimizer(strategy: mr.MirroredStrategy) -> None:
    """The slots of each are its own; the step count is the optimizer's."""
    with strategy.scope():
        optimizer = mr.optim.SGD(0.05, momentum=0.9)
        alone = mr.optim.SGD(0.05, momentum=0.9)
        models = []
        for each in (optimizer, optimizer, alone):
            x = mr.layers.Input(shape=(2,))
            model = mr.Model(x, mr.layers.Dense(1, kernel_initializer="ones")(x))
            model.compile(each, "mse")
            models.append(model)
    first, second, reference = models
    options: dict[str, Any] = {"batch_size": 2, "shuffle": False, "verbose": 0}
    for _ in range(2):
        first.fit(FEATURES, VALUES, **options)
        second.fit(FEATURES, -VALUES, **options)
        reference.fit(FEATURES, VALUES, **options)
    assert int(optimizer.iterations) == 2 * int(alone.iterations) == 12
    for a, b in zip(first.get_weights(), reference.get_weights(), strict=True):
        assert a.tobytes() == b.tobytes()
    assert not np.array_equal(first.get_weights()[0], second.get_weights()[0])


def test_one_optimizer_goes_on_where_it_was(strategy: mr.MirroredStrategy) -> None:
    """Two calls of `fit` are one of twice the epochs, momentum included."""
    results = []
    for calls, epochs in ((2, 1), (1, 2)):
        with strategy.scope():
            x = mr.layers.Input(shape=(2,))
            model = mr.Model(x, mr.layers.Dense(1, kernel_initializer="ones")(x))
            model.compile(mr.optim.Adam(0.1), "mse")
        for _ in range(calls):
            model.fit(FEATURES, VALUES, 2, epochs=epochs, shuffle=False, verbose=0)
        results.append(b"".join(each.numpy().tobytes() for each in model.variables))
        assert copies_are_equal(model)
    assert results[0] == results[1]


# ------------------------------------------------------------------------------ dtypes


def test_float64_end_to_end(strategy: mr.MirroredStrategy) -> None:
    mr.keras.backend.set_floatx("float64")
    with strategy.scope():
        x = mr.layers.Input(shape=(2,))
        hidden = mr.layers.Dense(3, "tanh", kernel_regularizer="l2")(x)
        model = mr.Model(x, mr.layers.Dense(1)(hidden))
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse", metrics=["mse"])
    x64 = np.random.default_rng(0).normal(size=(5, 2))
    history = model.fit(x64, VALUES, 2, epochs=2, verbose=0, sample_weight=np.ones(5))
    dtypes = {variable.dtype.name for variable in model.optimizer.variables[1:]}
    assert dtypes == {variable.dtype.name for variable in model.variables} == {"float64"}
    outputs = model.predict(x64, verbose=0)
    assert outputs.dtype == model(x64).dtype == np.float64
    kernel, bias, last, shift = model.get_weights()
    by_hand = np.tanh(x64 @ kernel + bias) @ last + shift
    np.testing.assert_allclose(outputs, by_hand, rtol=1e-14)
    error = float(((by_hand - VALUES) ** 2).mean())
    loss, metric = model.evaluate(x64, VALUES, verbose=0)
    assert metric == pytest.approx(error, rel=1e-14)
    assert loss == pytest.approx(error + 0.01 * float((kernel**2).sum()), rel=1e-14)
    assert type(history.history["loss"][0]) is float


def test_data_are_cast_to_the_dtype_of_the_model(strategy: mr.MirroredStrategy) -> None:
    seen = []

    class Looks(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            seen.append(inputs.dtype.name)
            return inputs

    with strategy.scope():
        model = mr.Sequential([Looks(), mr.layers.Dense(1, dtype="float64")])
        model.compile("sgd", "mse", metrics=["mse"])
    model.fit(X.astype(np.float64), Y.astype(int), verbose=0, sample_weight=[1, 2, 3, 4])
    assert set(seen) == {"float32"}
    assert model.predict(X, verbose=0).dtype == np.float64
    assert model.output_dtype == np.float64


def test_integer_inputs_reach_the_model(strategy: mr.MirroredStrategy) -> None:
    class OneHot(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            assert inputs.dtype == mr.int32
            return mr.cast(mr.equal(inputs, np.arange(3, dtype=np.int32)), "float32")

        def compute_output_shape(self, input_shape: Any) -> Any:
            return (*input_shape[:-1], 3)

    with strategy.scope():
        x = mr.layers.Input(shape=(1,), dtype="int32")
        model = mr.Model(x, mr.layers.Dense(1)(OneHot(dtype="int32")(x)))
        model.compile("sgd", "mse")
    model.fit(LABELS[:, np.newaxis], VALUES, verbose=0)


# ------------------------------------------------------------------------------ shards


def test_a_batch_is_cut_and_brought_to_the_devices(simulate: Callable[..., Any]) -> None:
    simulate(3)
    seen: list[tuple[str, list[float]]] = []

    class Looks(mr.layers.Layer):
        def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
            if training:
                seen.append((inputs.device[-5:], inputs.numpy().ravel().tolist()))
            return inputs

    with mr.MirroredStrategy().scope():
        model = mr.Sequential([Looks(), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=4, verbose=0)
    sizes = [len(values) for _, values in seen]
    assert [device for device, _ in seen] == ["GPU:0", "GPU:1", "GPU:2"]
    assert sizes == [2, 1, 1]
    seen.clear()
    model.fit(X[:2], Y[:2], batch_size=4, verbose=0, shuffle=False)
    assert seen == [("GPU:0", [0.0]), ("GPU:1", [1.0]), ("GPU:2", [])]


class Pair(mr.Model):
    """A subclass, which is built by running it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = mr.layers.Dense(4, "relu"), mr.layers.Dense(1)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return self.last(self.first(inputs))


@pytest.mark.parametrize(
    "make", [lambda: mr.Sequential([mr.layers.Dense(1)]), Pair], ids=["sequential", "subclass"]
)
def test_only_the_devices_of_the_strategy_are_used(
    make: Callable[[], mr.Model], simulate: Callable[..., Any]
) -> None:
    simulate(3)
    with mr.MirroredStrategy(["GPU:1", "GPU:2"]).scope():
        model = make()
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse", metrics=["mse"])
    model.fit(X, Y, validation_data=(X, Y), verbose=0)
    model.predict(X, verbose=0)
    memory = mr.config.experimental.get_memory_info
    assert [memory(f"GPU:{i}")["peak"] > 0 for i in range(3)] == [False, True, True]
