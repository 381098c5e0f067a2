"""The loop of `fit`: what it computes, returns and shows.

Numbers marked so were printed by Keras 3.15.1 on TensorFlow 2.21.0 for the same model and data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_context import ONE_AND_THREE

import mirrored as mr

X = np.arange(4.0, dtype=np.float32)[:, np.newaxis]
Y = 2 * (X + 1)
MakeLine = Callable[..., mr.Model]


class Logs(mr.callbacks.Callback):
    """Keeps the logs of every training batch."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[dict[str, float]] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        self.batches.append(dict(logs or {}))


# ------------------------------------------------------------------------------ fit, as Keras


FOUR = np.array([1.0, 2.0, 3.0, 4.0])
# Arguments, history and last weight, all by Keras 3.15.1; shuffle=False, learning rate .01.
FITS: dict[str, tuple[dict[str, Any], dict[str, list[float]], float]] = {
    "plain": (
        {"epochs": 2, "batch_size": 2},
        {"loss": [13.15792465, 10.13283062], "mse": [13.15792465, 10.13283062]},
        1.4766788,
    ),
    "sample weights, uneven batches, weighted validation": (
        {
            "epochs": 2,
            "batch_size": 3,
            "sample_weight": FOUR,
            "validation_data": (X, Y, FOUR[::-1]),
        },
        {
            "loss": [36.8599968, 5.14900208],
            "mse": [12.08999920, 2.55582666],
            "val_loss": [7.76767969, 5.90373516],
            "val_mse": [2.69337606, 1.70747089],
        },
        2.5748565,
    ),
    "class weights": (
        {"batch_size": 2, "class_weight": {2: 1.0, 4: 0.5, 6: 2.0}},
        {"loss": [16.14345551], "mse": [13.32823181]},
        1.3224499,
    ),
    "validation split": (
        {"batch_size": 2, "validation_split": 0.5},
        {"loss": [6.5], "mse": [6.5], "val_loss": [19.81584930], "val_mse": [19.81584930]},
        1.03,
    ),
    "class weights do not count for the validation split": (
        {
            "batch_size": 2,
            "validation_split": 0.5,
            "class_weight": {2: 1.0, 4: 0.5, 6: 2.0, 8: 3.0},
        },
        {"loss": [4.25], "mse": [6.5], "val_loss": [20.15646362], "val_mse": [20.15646362]},
        1.015,
    ),
    "sample weights count for the validation split": (
        {"batch_size": 2, "validation_split": 0.5, "sample_weight": FOUR},
        {"loss": [11.0], "mse": [6.5], "val_loss": [69.04640198], "val_mse": [19.14340019]},
        1.06,
    ),
    "validation steps and batch size": (
        {
            "epochs": 2,
            "batch_size": 2,
            "validation_data": (X, Y),
            "validation_steps": 1,
            "validation_batch_size": 3,
        },
        {
            "loss": [13.15792465, 10.13283062],
            "mse": [13.15792465, 10.13283062],
            "val_loss": [7.89791250, 6.54972601],
            "val_mse": [7.89791250, 6.54972601],
        },
        1.4766788,
    ),
}


@ONE_AND_THREE
@pytest.mark.parametrize(("options", "expected", "weight"), FITS.values(), ids=FITS)
def test_fit_gives_the_numbers_of_keras(
    options: dict[str, Any],
    expected: dict[str, list[float]],
    weight: float,
    make_line: MakeLine,
) -> None:
    model = make_line(0.01, metrics=["mse"])
    history = model.fit(X, Y, shuffle=False, verbose=0, **options)
    assert list(history.history) == list(expected)
    for name, values in expected.items():
        assert history.history[name] == pytest.approx(values, rel=1e-6), name
        assert all(type(value) is float for value in history.history[name])
    assert model.get_weights()[0].item() == pytest.approx(weight, rel=1e-6)


def test_steps_per_epoch_goes_on_through_the_data(make_line: MakeLine) -> None:
    """Two steps of one example: the second epoch takes the examples that the first one left."""
    model = make_line(0.1)
    history = model.fit(X, Y, epochs=2, batch_size=1, steps_per_epoch=2, shuffle=False, verbose=0)
    # Keras 3.15.1.
    assert history.history["loss"] == pytest.approx([6.5, 3.9327998], rel=1e-6)
    assert model.get_weights()[0].item() == pytest.approx(2.624, rel=1e-6)


class Seen(mr.layers.Layer):
    """Notes the inputs that it is trained on, where Python runs in every step."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        if training:
            self.values += inputs.numpy().ravel().tolist()
        return inputs


def order_of_examples(strategy: mr.MirroredStrategy, seed: int, **options: Any) -> list[float]:
    mr.random.set_seed(seed)
    seen = Seen()
    with strategy.scope():
        model = mr.Sequential([seen, mr.layers.Dense(1)])
        model.compile("sgd", "mse", run_eagerly=True)
    numbers = np.arange(10.0)[:, np.newaxis]
    model.fit(numbers, numbers, batch_size=4, verbose=0, **options)
    return seen.values


def test_shuffle(strategy: mr.MirroredStrategy) -> None:
    plain = list(range(10))
    assert order_of_examples(strategy, 0, epochs=2, shuffle=False) == plain * 2
    shuffled = order_of_examples(strategy, 0, epochs=2)
    assert sorted(shuffled[:10]) == sorted(shuffled[10:]) == plain
    assert shuffled[:10] != plain
    assert shuffled[:10] != shuffled[10:]
    assert order_of_examples(strategy, 0, epochs=2) == shuffled
    assert order_of_examples(strategy, 1, epochs=2) != shuffled


def test_any_number_of_replicas_shuffles_alike(simulate: Callable[..., Any]) -> None:
    simulate(3)
    orders = [
        order_of_examples(mr.MirroredStrategy([f"GPU:{i}" for i in range(count)]), 5, epochs=2)
        for count in (1, 2, 3)
    ]
    assert orders[0] == orders[1] == orders[2]


def test_shuffled_steps_per_epoch_take_each_example_once_a_pass(
    strategy: mr.MirroredStrategy,
) -> None:
    seen = order_of_examples(strategy, 0, epochs=4, steps_per_epoch=2)  # 4, 4 | 2 | 4, 4 | 2
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))


EPOCHS: dict[str, tuple[dict[str, Any], list[int], int]] = {
    "every second": ({"epochs": 5, "validation_freq": 2}, [0, 1, 2, 3, 4], 2),
    "listed": ({"epochs": 5, "validation_freq": [1, 4]}, [0, 1, 2, 3, 4], 2),
    "none of them": ({"epochs": 2, "validation_freq": 3}, [0, 1], 0),
    "initial epoch": ({"epochs": 5, "initial_epoch": 3}, [3, 4], 2),
    "initial epoch past the last": ({"epochs": 3, "initial_epoch": 5}, [], 0),
    "no epoch": ({"epochs": 0}, [], 0),
}


@pytest.mark.parametrize(("options", "epochs", "validations"), EPOCHS.values(), ids=EPOCHS)
def test_epochs(
    options: dict[str, Any], epochs: list[int], validations: int, make_line: MakeLine
) -> None:
    history = make_line().fit(X, Y, verbose=0, validation_data=(X, Y), **options)
    assert history.epoch == epochs
    assert len(history.history.get("loss", [])) == len(epochs)
    assert len(history.history.get("val_loss", [])) == validations


def test_history_belongs_to_the_model(make_line: MakeLine) -> None:
    model = make_line()
    assert model.history is None
    first = model.fit(X, Y, epochs=2, verbose=0)
    assert first is model.history
    assert first.model is model
    assert first.params == {"verbose": 0, "epochs": 2, "steps": 1}
    second = model.fit(X, Y, verbose=0)
    assert second is model.history
    assert (first.epoch, second.epoch) == ([0, 1], [0])


@pytest.mark.behaviour("loss-shown", "progress")
def test_logs_of_a_batch_are_the_means_so_far(make_line: MakeLine) -> None:
    logs, model = Logs(), make_line(0.0, metrics=["mse"])
    history = model.fit(X, Y, batch_size=3, verbose=0, shuffle=False, callbacks=logs)
    # The errors of the identity are 2, 3, 4 and 5.
    assert [each["loss"] for each in logs.batches] == pytest.approx([29 / 3, 54 / 4])
    assert [each["mse"] for each in logs.batches] == pytest.approx([29 / 3, 54 / 4])
    assert history.history["loss"] == pytest.approx([13.5])


def test_learning_rate_set_in_a_callback(strategy: mr.MirroredStrategy) -> None:
    """Set before each epoch, with momentum; then trained on, and compiled anew."""

    class Schedule(mr.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.model.optimizer.learning_rate = 0.1 / (epoch + 1)

    constant = mr.layers.initializers.Constant
    with strategy.scope():
        inputs = mr.layers.Input(shape=(2,))
        hidden = mr.layers.Dense(3, "tanh", kernel_initializer=constant(0.1))(inputs)
        model = mr.Model(inputs, mr.layers.Dense(1, kernel_initializer=constant(0.2))(hidden))
        model.compile(mr.optim.SGD(0.5, momentum=0.9), "mse")
    x = np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2)
    y = x @ np.array([[1.0], [2.0]], dtype=np.float32) + np.float32(0.5)
    options: dict[str, Any] = {"batch_size": 2, "shuffle": False, "verbose": 0}
    # All numbers by Keras 3.15.1.
    history = model.fit(x, y, epochs=3, callbacks=[Schedule()], **options)
    assert history.history["loss"] == pytest.approx([3.987874985, 1.323459506, 4.043848515])
    kernel, bias, *last = model.get_weights()
    np.testing.assert_allclose(kernel, [[1.378635168] * 3, [1.406713724] * 3], rtol=1e-5)
    np.testing.assert_allclose(bias, [0.126352653] * 3, rtol=1e-5)
    np.testing.assert_allclose(last[0], [[1.074944973]] * 3, rtol=1e-5)
    np.testing.assert_allclose(last[1], [1.533480406], rtol=1e-5)
    history = model.fit(x, y, epochs=2, **options)
    assert history.history["loss"] == pytest.approx([0.963735878, 0.800719082], rel=1e-5)
    assert int(model.optimizer.iterations) == 15
    with strategy.scope():
        model.compile(mr.optim.SGD(0.1), "mse")
    assert int(model.optimizer.iterations) == 0
    history = model.fit(x, y, epochs=1, **options)
    assert history.history["loss"] == pytest.approx([0.895872474], rel=1e-5)


def test_evaluation_in_a_callback_leaves_training_alone(make_line: MakeLine) -> None:
    class Evaluates(mr.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs["all"] = self.model.evaluate(X, Y, verbose=0)

    options: dict[str, Any] = {"epochs": 2, "batch_size": 2, "shuffle": False, "verbose": 0}
    plain = make_line().fit(X[:3], Y[:3], **options).history
    history = make_line().fit(X[:3], Y[:3], callbacks=[Evaluates()], **options).history
    assert history["loss"] == plain["loss"]
    assert len(history["all"]) == 2


# ------------------------------------------------------------------------------ what is shown


@pytest.mark.parametrize(
    ("verbose", "strategy"), [("auto", 1), (1, 3), (2, 1), (True, 3)], indirect=["strategy"]
)
def test_a_line_an_epoch_where_there_is_no_terminal(
    verbose: Any, make_line: MakeLine, capsys: pytest.CaptureFixture[str]
) -> None:
    history = make_line(metrics=["mse"]).fit(
        X, Y, batch_size=3, epochs=2, validation_data=(X, Y), verbose=verbose
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for epoch, line in enumerate(lines):
        shown = [f"{name}: {values[epoch]:.4f}" for name, values in history.history.items()]
        assert line.startswith(f"Epoch {epoch + 1}/2 - ")
        assert line.endswith(" - ".join(shown))


def test_evaluate_and_predict_on_a_pipe(
    make_line: MakeLine, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_line()
    model.evaluate(X, Y)
    assert capsys.readouterr().out.endswith(" - loss: 13.5000\n")
    model.predict(X)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("verbose", [0, False])
def test_silence(verbose: Any, make_line: MakeLine, capsys: pytest.CaptureFixture[str]) -> None:
    model = make_line()
    model.fit(X, Y, validation_data=(X, Y), verbose=verbose)
    model.evaluate(X, Y, verbose=verbose)
    model.predict(X, verbose=verbose)
    assert capsys.readouterr().out == ""


def test_whatever_the_flag_was_training_begins_with_false(make_line: MakeLine) -> None:
    model = make_line()
    for flag in (True, None, np.array([True, False])):
        model.stop_training = flag
        assert len(model.fit(X, Y, epochs=2, verbose=0).epoch) == 2
        assert model.stop_training is False
    del model.stop_training
    model.fit(X, Y, verbose=0)
    assert model.stop_training is False
