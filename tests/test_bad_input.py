"""Every way of getting it wrong: a specific error, nothing changed, and the next call works.

Each section is one table. After each row of training the model must train on bit for bit like one
that never met the error, on one replica and on several.
"""

import gc
import logging
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import (
    InvalidArgumentError,
    NonFiniteLossError,
    ResourceExhaustedError,
    WeightsFileError,
)

CLASSES = 3
X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, CLASSES, size=12)
BATCH = 6  # Two steps an epoch; three replicas get two examples each.

get_memory_info = mr.config.experimental.get_memory_info


@pytest.fixture(params=[1, 3], ids=["one replica", "three replicas"])
def replicas(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


@pytest.fixture
def strategy(replicas: int, simulate: Callable[..., Any]) -> mr.MirroredStrategy:
    simulate(replicas)
    return mr.MirroredStrategy()


def make_model(strategy: mr.MirroredStrategy, **compile: Any) -> mr.Model:
    """Return a classifier that has been trained for one step, so that its slots are not zero."""
    mr.random.set_seed(2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(4, "tanh")])
        model.add(mr.layers.Dense(CLASSES, "softmax"))
        options = {
            "optimizer": mr.optim.SGD(0.1, momentum=0.9),
            "loss": "sparse_categorical_crossentropy",
            "metrics": ["accuracy"],
        }
        model.compile(**{**options, **compile})
    model.fit(X, Y, batch_size=BATCH, steps_per_epoch=1, shuffle=False, verbose=0)
    return model


def train(model: mr.Model, **change: Any) -> mr.callbacks.History:
    options: dict[str, Any] = {"x": X, "y": Y, "batch_size": BATCH, "verbose": 0, "shuffle": False}
    return model.fit(**{**options, **change})


def state(model: mr.Model) -> list[bytes]:
    """Return the bits of weights, slots, step count and learning rate on every replica."""
    local = model.distribute_strategy.experimental_local_results
    variables = [*model.variables, *model.optimizer.variables]
    return [copy.numpy().tobytes() for variable in variables for copy in local(variable)]


def check_refused(
    model: mr.Model,
    act: Callable[[mr.Model], Any],
    error: type[BaseException],
    *messages: str,
    steps: int = 0,
    make: Callable[[mr.MirroredStrategy], mr.Model] = make_model,
) -> BaseException:
    """Check that `act` raises, leaves nothing, and that training goes on as if nothing were.

    Args:
        model: What `make` returned.
        act: What goes wrong.
        error: The class of the error, exactly.
        messages: What its text contains.
        steps: The number of steps that `act` takes before it goes wrong.
        make: Makes the model that never meets the error.
    """
    caught: BaseException | None = None
    try:
        act(model)
    except BaseException as raised:
        caught = raised
    assert type(caught) is error, caught
    for message in messages:
        assert message in str(caught)
    strategy = model.distribute_strategy
    reference = make(strategy)
    if steps:
        train(reference, epochs=-(-steps // 2), callbacks=[StopAfter(steps)])
    assert state(model) == state(reference)
    assert threading.enumerate() == [threading.main_thread()]
    assert not mr.distribute.has_strategy()
    for each in (model, reference):
        assert train(each, epochs=2).epoch == [0, 1]
    assert state(model) == state(reference)
    return caught


class StopAfter(mr.callbacks.Callback):
    """Ends training after so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        self.model.stop_training = self.left == 0


# ------------------------------------------------------------------------------ devices

DEVICES: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown": (["GPU:0", "GPU:7"], InvalidArgumentError, "/device:GPU:1"),
    "unknown type": (["TPU:0"], InvalidArgumentError, "/device:GPU:1"),
    "duplicate": (["GPU:0", "/gpu:0"], ValueError, "No duplicates allowed in `devices` argument"),
    "attribute": (
        ["/foo:1"],
        InvalidArgumentError,
        "Unknown attribute 'foo' is encountered while parsing the device spec: '/foo:1'.",
    ),
    "number": (["GPU:x"], ValueError, "invalid literal for int() with base 10: 'x'"),
    "two types": (
        ["/CPU:0/GPU:1"],
        InvalidArgumentError,
        "Multiple device types are not allowed while parsing the device spec: /CPU:0/GPU:1.",
    ),
}


@pytest.mark.parametrize(("names", "error", "message"), DEVICES.values(), ids=DEVICES)
def test_devices(
    names: Any, error: type[Exception], message: str, simulate: Callable[..., Any]
) -> None:
    simulate(2)
    with pytest.raises(error) as caught:
        mr.MirroredStrategy(names)
    assert type(caught.value) is error
    assert message in str(caught.value)
    assert not mr.distribute.has_strategy()
    assert mr.MirroredStrategy(["GPU:0", "/gpu:1"]).num_replicas_in_sync == 2


def test_a_malformed_device_scope(simulate: Callable[..., Any]) -> None:
    simulate(2)
    with pytest.raises(ValueError, match="Unknown attribute 'foo'"), mr.device("/foo:1"):
        pass
    with mr.device("GPU:1"):
        assert mr.constant(1.0).device.endswith("GPU:1")
    assert mr.constant(1.0).device.endswith("GPU:0")


CONFIGURATION: dict[str, tuple[Callable[[], Any], str]] = {
    "visible devices": (
        lambda: mr.config.set_visible_devices([], "GPU"),
        "Visible devices cannot be modified after being initialized",
    ),
    "memory growth": (
        lambda: mr.config.experimental.set_memory_growth(
            mr.config.list_physical_devices("GPU")[0], True
        ),
        "Physical devices cannot be modified after being initialized",
    ),
    "virtual devices": (
        lambda: mr.config.set_logical_device_configuration(
            mr.config.list_physical_devices("GPU")[0],
            [mr.config.LogicalDeviceConfiguration(memory_limit=1)] * 2,
        ),
        "Virtual devices cannot be modified after being initialized",
    ),
    "simulated devices": (
        lambda: mr.config.experimental.set_simulated_gpus(5),
        "cannot be modified after being initialized",
    ),
}


@pytest.mark.parametrize(("act", "message"), CONFIGURATION.values(), ids=CONFIGURATION)
def test_configuration_after_initialisation(
    act: Callable[[], Any], message: str, strategy: mr.MirroredStrategy
) -> None:
    before = mr.config.list_logical_devices()
    check_refused(make_model(strategy), lambda model: act(), RuntimeError, message)
    assert mr.config.list_logical_devices() == before


# ------------------------------------------------------------------------------ data

AMBIGUOUS = "Data cardinality is ambiguous. Make sure all arrays contain the same number of samples"
ONE_INPUT = "must be one array; models have one input and one output for now"
NUMBERS = "must hold numbers (bool, integer or floating-point). Received: "
FITS_NOT = 'Input 0 of layer "sequential" is incompatible with the layer: expected shape=(None, 5)'
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "lengths of x and y": ({"y": Y[:7]}, f"{AMBIGUOUS}. Received: 'x' sizes: 12, 'y' sizes: 7"),
    "length of the weights": ({"sample_weight": np.ones(7)}, "'sample_weight' sizes: 7"),
    "lengths for validation": ({"validation_data": (X, Y[:7])}, AMBIGUOUS),
    "lengths of validation's weights": ({"validation_data": (X, Y, np.ones(7))}, AMBIGUOUS),
    "rank of x": ({"x": X[:, :, np.newaxis]}, f"{FITS_NOT}, found shape=(None, 5, 1)"),
    "rank 1": ({"x": X[:, 0]}, f"{FITS_NOT}, found shape=(None,)"),
    "rank 0": ({"x": 3.0}, "`x` must have at least one dimension, the examples"),
    "rank of y": ({"y": np.zeros((12, 2))}, "needs one integer label for each"),
    "rank of the weights": (
        {"sample_weight": np.ones((12, 2))},
        "`sample_weight` must have one weight an example",
    ),
    "shape of x": ({"x": X[:, :4]}, f"{FITS_NOT}, found shape=(None, 4)"),
    "no features": ({"x": X[:, :0]}, f"{FITS_NOT}, found shape=(None, 0)"),
    "shape of validation's x": ({"validation_data": (X[:, :4], Y)}, FITS_NOT),
    "rows of different lengths": ({"x": [[1.0], [1.0, 2.0]]}, "its rows differ in length or depth"),
    "objects": ({"x": X.astype(object)}, f"`x` {NUMBERS}x with dtype object"),
    "strings": ({"x": X.astype(str)}, f"`x` {NUMBERS}x with dtype <U"),
    "complex numbers": ({"x": X.astype(complex)}, f"`x` {NUMBERS}x with dtype complex128"),
    "dates": ({"x": X.astype("datetime64[s]")}, f"`x` {NUMBERS}x with dtype datetime64"),
    "objects as labels": ({"y": Y.astype(object)}, f"`y` {NUMBERS}y with dtype object"),
    "strings as labels": ({"y": Y.astype(str)}, f"`y` {NUMBERS}y with dtype <U"),
    "complex labels": ({"y": Y.astype(complex)}, f"`y` {NUMBERS}y with dtype complex128"),
    "strings for validation": ({"validation_data": (X, Y.astype(str))}, f"`y` {NUMBERS}"),
    "strings as weights": ({"sample_weight": ["a"] * 12}, f"`sample_weight` {NUMBERS}"),
    "several inputs": ({"x": [X, X]}, ONE_INPUT),
    "inputs by name": ({"x": {"a": X}}, ONE_INPUT),
    "several targets": ({"y": [Y, Y]}, ONE_INPUT),
    "no x": ({"x": None}, "`fit` needs input data. Received: x=None"),
    "no y": ({"y": None}, "`fit` needs targets to compute the loss. Received: y=None"),
    "no y for validation": ({"validation_data": (X, None)}, "`validation` needs targets"),
    "an iterator": ({"x": iter(X)}, "`x` must be an array. Received: a"),
    "empty": ({"x": X[:0], "y": Y[:0]}, "`fit` needs at least one example. Received: empty data"),
    "empty lists": ({"x": [], "y": []}, "`fit` needs at least one example. Received: empty data"),
    "empty validation": ({"validation_data": (X[:0], Y[:0])}, "`validation` needs at least one"),
    "label too large": (
        {"y": np.where(np.arange(12) == 5, 9, Y)},
        "Received a label value of 9 which is outside the valid range of [0, 3).",
    ),
    "label negative": (
        {"y": np.where(np.arange(12) == 5, -1, Y)},
        "Received a label value of -1 which is outside the valid range of [0, 3).",
    ),
    "label between": ({"y": Y + 0.5}, "needs integer labels. Received: a label value of "),
    "label NaN": (
        {"y": np.full(12, np.nan)},
        "needs integer labels. Received: a label value of nan",
    ),
    "label for validation": (
        {"validation_data": (X, Y + 1)},
        "Received a label value of 3 which is outside the valid range of [0, 3).",
    ),
    "weight NaN": ({"sample_weight": np.full(12, np.nan)}, "`sample_weight` must be finite"),
}
NUMBERS_OUT_OF_RANGE: dict[str, tuple[dict[str, Any], str]] = {
    **{
        f"{name}={value!r}": ({name: value}, f"Received: {name}={value!r}")
        for name, values in {
            "batch_size": (0, -1, 2.5, 6.0, True, "6", np.float32(6), [6]),
            "validation_batch_size": (0, -1, 2.5),
            "epochs": (-1, 1.5, "2"),
            "initial_epoch": (-1, 0.5),
            "steps_per_epoch": (0, -1, 1.5, 3),
            "validation_steps": (0, -1, 1.5),
            "validation_freq": (0, -1, 1.5),
            "validation_split": (-0.1, 1.0, 1.5, "0.2"),
            "verbose": (3, "loud"),
        }.items()
        for value in values
    },
    "validation_freq of epoch 0": ({"validation_freq": [0, 2]}, "Received: validation_freq=0"),
    "validation_steps past the end": (
        {"validation_data": (X, Y), "validation_steps": 3},
        "Received: validation_steps=3",
    ),
    "validation_split that leaves nothing": (
        {"validation_split": 0.99},
        "Training data contains 12 samples, which is not sufficient to split it",
    ),
    "validation_data of one": ({"validation_data": (X,)}, "`validation_data` is a tuple (x, y)"),
    "validation_data of no tuple": ({"validation_data": X}, "`validation_data` is a tuple (x, y)"),
    "two kinds of weights": (
        {"class_weight": {0: 1.0}, "sample_weight": np.ones(12)},
        "`class_weight` and `sample_weight` cannot be given at the same time",
    ),
    "class weights of no dict": ({"class_weight": [1.0]}, "`class_weight` must be a dict"),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [*DATA.values(), *NUMBERS_OUT_OF_RANGE.values()],
    ids=[*DATA, *NUMBERS_OUT_OF_RANGE],
)
def test_fit(change: dict[str, Any], message: str, strategy: mr.MirroredStrategy) -> None:
    if "validation_freq" in change or "validation_steps" in change:
        change = {"validation_data": (X, Y), **change}

    def act(model: mr.Model) -> None:
        history = model.history
        try:
            train(model, **change)
        finally:
            assert model.history is history

    check_refused(make_model(strategy), act, ValueError, message)


def test_what_is_refused_draws_no_random_numbers(strategy: mr.MirroredStrategy) -> None:
    model = make_model(strategy)
    mr.random.set_seed(7)
    expected = mr.random.uniform((3,)).numpy().tolist()
    mr.random.set_seed(7)
    refused = 0
    for change, _ in (*DATA.values(), *NUMBERS_OUT_OF_RANGE.values()):
        try:
            train(model, **{"shuffle": True, **change})
        except ValueError:
            refused += 1
    assert refused > 60
    assert mr.random.uniform((3,)).numpy().tolist() == expected


@pytest.mark.parametrize("method", ["evaluate", "predict"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": X[:, :4]}, FITS_NOT),
        ({"x": X.astype(str)}, NUMBERS),
        ({"x": X[:0], "y": Y[:0]}, "needs at least one example"),
        ({"batch_size": 0}, "Received: batch_size=0"),
        ({"batch_size": 1.5}, "Received: batch_size=1.5"),
        ({"steps": 0}, "Received: steps=0"),
        ({"steps": 13}, "Received: steps=13"),
        ({"verbose": 5}, "Received: verbose=5"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_evaluate_and_predict(
    method: str, change: dict[str, Any], message: str, strategy: mr.MirroredStrategy
) -> None:
    def act(model: mr.Model) -> None:
        options = {"x": X, "y": Y, "verbose": 0, **change}
        if method == "predict":
            del options["y"]
        getattr(model, method)(**options)

    check_refused(make_model(strategy), act, ValueError, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": Y + 7}, "outside the valid range"),
        ({"y": np.zeros((12, 2))}, "needs one integer label"),
        ({"validation_data": (X[:, :4], Y)}, "incompatible"),
        ({"steps_per_epoch": 99}, "Received: steps_per_epoch=99"),
    ],
    ids=["labels", "rank", "validation", "steps"],
)
def test_a_model_that_is_not_built_stays_so(
    change: dict[str, Any], message: str, strategy: mr.MirroredStrategy
) -> None:
    """The data that were refused do not fix the model's shapes."""
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(4, "relu"), mr.layers.Dense(3, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    with pytest.raises(ValueError, match=message):
        train(model, **change)
    assert (model.built, model.weights, model.metrics) == (False, [], [])
    assert train(model, x=X[:, :2]).epoch == [0]


# ------------------------------------------------------------------------------ not finite


def make_line(strategy: mr.MirroredStrategy, **options: Any) -> mr.Model:
    """Return a linear model, which passes on whatever is not finite, trained for one step."""
    mr.random.set_seed(2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1, **options)])
        model.compile(mr.optim.SGD(0.01, momentum=0.9), "mse", metrics=["mse"])
    model.fit(X, Y, batch_size=BATCH, steps_per_epoch=1, shuffle=False, verbose=0)
    return model


def spoiled(array: np.ndarray, example: int, value: float) -> np.ndarray:
    copy = array.astype(np.float64)
    copy[example] = value
    return copy


# What is spoiled, and by replica count where: the step, the replicas, and the steps before it.
FIRST, SECOND = "step 1 of epoch 1", "step 2 of epoch 1"
NOT_FINITE: dict[str, tuple[dict[str, Any], str, list[int], int]] = {
    "NaN on the first replica": ({"x": spoiled(X, 0, np.nan)}, FIRST, [0], 0),
    "NaN on the last replica": ({"x": spoiled(X, 5, np.nan)}, FIRST, [2], 0),
    "NaN in a later step": ({"x": spoiled(X, 8, np.nan)}, SECOND, [1], 1),
    "NaN in the targets": ({"y": spoiled(Y, 3, np.nan)}, FIRST, [1], 0),
    "infinite inputs": ({"x": spoiled(X, 11, np.inf)}, SECOND, [2], 1),
    "infinite targets": ({"y": spoiled(Y, 4, -np.inf)}, FIRST, [2], 0),
    "too large for float32": ({"x": spoiled(X, 2, 1e300)}, FIRST, [1], 0),
    "too large when squared": ({"x": spoiled(X, 2, 1e30)}, FIRST, [1], 0),
    "everywhere": ({"x": np.full_like(X, np.nan)}, FIRST, [0, 1, 2], 0),
}


@pytest.mark.parametrize(("change", "step", "where", "steps"), NOT_FINITE.values(), ids=NOT_FINITE)
def test_a_loss_that_is_not_finite(
    change: dict[str, Any], step: str, where: list[int], steps: int, strategy: mr.MirroredStrategy
) -> None:
    if strategy.num_replicas_in_sync == 1:
        where = [0]
    places = [f"replica {i} (/job:localhost/replica:0/task:0/device:GPU:{i})" for i in where]
    error = check_refused(
        make_line(strategy),
        lambda model: train(model, **change),
        NonFiniteLossError,
        f"The loss is not finite in {step}: ",
        " and ".join(places),
        "The weights are those of the step before.",
        steps=steps,
        make=make_line,
    )
    assert str(error).count("replica") - str(error).count("/replica:") == len(where)
    assert isinstance(error, ArithmeticError)


def test_weights_that_are_not_finite(strategy: mr.MirroredStrategy) -> None:
    model = make_line(strategy)
    good = model.get_weights()
    model.set_weights([np.full_like(each, np.nan) for each in good])
    before = state(model)
    with pytest.raises(NonFiniteLossError, match="not finite in step 1 of epoch 1: nan"):
        train(model)
    assert state(model) == before
    model.set_weights(good)
    assert np.isfinite(train(model).history["loss"][0])


def test_a_penalty_that_is_not_finite(strategy: mr.MirroredStrategy) -> None:
    """The data's part is finite on every replica, so none of them is named."""

    def penalty(weight: Any) -> Any:
        return mr.reduce_sum(mr.log(weight * 0.0 - 1.0))

    model = make_line(strategy, bias_initializer="zeros")
    with strategy.scope():
        other = mr.Sequential([mr.layers.Dense(1, bias_regularizer=penalty)])
        other.compile(model.optimizer, "mse")
    other.build((None, 5))
    before = state(other)
    with pytest.raises(NonFiniteLossError, match="from the penalties or the sum"):
        train(other)
    assert state(other) == before


def test_training_that_diverges(strategy: mr.MirroredStrategy) -> None:
    """The weights blow up until the loss overflows: then the last ones are kept, all finite."""
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1)])
        model.compile(mr.optim.SGD(1e4), "mse")
    with pytest.raises(NonFiniteLossError):
        train(model, epochs=50)
    assert all(np.isfinite(each).all() for each in model.get_weights())
    assert model.history is not None
    assert np.isfinite(model.history.history["loss"]).all()


# ------------------------------------------------------------------------------ names, compile

CONSTRUCTED: dict[str, tuple[Callable[[], Any], str]] = {
    "activation": (
        lambda: mr.layers.Dense(1, activation="foo"),
        "Could not interpret activation function identifier: foo",
    ),
    "activation layer": (
        lambda: mr.layers.Activation("foo"),
        "Could not interpret activation function identifier: foo",
    ),
    "initializer": (
        lambda: mr.layers.Dense(1, kernel_initializer="foo"),
        "Could not interpret initializer identifier: foo",
    ),
    "regularizer": (
        lambda: mr.layers.Dense(1, kernel_regularizer="foo"),
        "Could not interpret regularizer identifier: foo",
    ),
    "units": (
        lambda: mr.layers.Dense(-1),
        "Received an invalid value for `units`, expected a positive integer. Received: units=-1",
    ),
    "rate": (
        lambda: mr.layers.Dropout(2),
        "Expected a float value between 0 and 1. Received: rate",
    ),
    "learning rate": (lambda: mr.optim.SGD(-1.0), "Received: learning_rate=-1.0"),
    "momentum": (lambda: mr.optim.SGD(momentum=1.5), "Received: momentum=1.5"),
    "two kinds of clipping": (
        lambda: mr.optim.Adam(clipnorm=1.0, clipvalue=1.0),
        "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set",
    ),
}


@pytest.mark.parametrize(("make", "message"), CONSTRUCTED.values(), ids=CONSTRUCTED)
def test_construction(make: Callable[[], Any], message: str, strategy: mr.MirroredStrategy) -> None:
    def act(model: mr.Model) -> None:
        with strategy.scope():
            make()

    check_refused(make_model(strategy), act, ValueError, message)


NAMES: dict[str, tuple[dict[str, Any], str]] = {
    "optimizer": ({"optimizer": "foo"}, "Could not interpret optimizer identifier: foo"),
    "loss": ({"loss": "foo"}, "Could not interpret loss identifier: foo"),
    "metric": ({"metrics": ["accuracy", "foo"]}, "Could not interpret metric identifier: foo"),
}


@pytest.mark.parametrize(("change", "message"), NAMES.values(), ids=NAMES)
def test_names_at_compile(
    change: dict[str, Any], message: str, strategy: mr.MirroredStrategy
) -> None:
    """The error lists the names there are, and the compilation before stays in force."""

    def act(model: mr.Model) -> None:
        model.compile(**{"optimizer": "sgd", "loss": "mse", **change})

    error = check_refused(make_model(strategy), act, ValueError, message)
    assert "there are: " in str(error)


@pytest.mark.parametrize("method", ["fit", "evaluate"])
def test_before_compile(method: str, strategy: mr.MirroredStrategy) -> None:
    """Keras raises a RuntimeError in version 2 and a ValueError in version 3: it is both."""
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(1)])
    with pytest.raises(InvalidArgumentError) as caught:
        getattr(model, method)(X, Y, verbose=0)
    assert str(caught.value) == "You must call `compile()` before using the model."
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, RuntimeError)
    assert not model.built
    model.compile("sgd", "mse")
    getattr(model, method)(X, Y, verbose=0)


# ------------------------------------------------------------------------------ scopes


def line() -> mr.Model:
    return mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1)])


Scoped = Callable[[mr.MirroredStrategy, mr.MirroredStrategy], Any]


def _compile_in(where: str, **make: Callable[[], Any]) -> Scoped:
    """Return a function that makes each part in a scope of its own and compiles in `where`."""

    def act(strategy: mr.MirroredStrategy, other: mr.MirroredStrategy) -> None:
        scopes = {"own": strategy.scope, "other": other.scope}
        parts = {}
        for name, part in make.items():
            scope, _, key = name.partition("_")
            if scope == "no":
                parts[key] = part()
            else:
                with scopes[scope]():
                    parts[key] = part()
        model = parts.pop("model")
        if "metrics" in parts:
            parts["metrics"] = [parts["metrics"]]
        try:
            with scopes[where]():
                model.compile(**{"optimizer": "sgd", "loss": "mse", **parts})
        finally:
            assert model.optimizer is None

    return act


VARIABLE = "was not created in the distribution strategy scope of"
DIFFERENT = (
    "passed to `model.compile` was created inside a different distribution strategy scope than the "
    "model."
)
SCOPES: dict[str, tuple[Scoped, tuple[str, ...]]] = {
    "model outside": (_compile_in("own", no_model=line), ("Variable (dense", VARIABLE)),
    "model elsewhere": (_compile_in("own", other_model=line), ("Variable (dense", VARIABLE)),
    "model without weights outside": (
        _compile_in("own", no_model=lambda: mr.Sequential([mr.layers.Dense(1)])),
        ("Model (sequential", VARIABLE),
    ),
    "optimizer outside": (
        _compile_in("own", own_model=line, no_optimizer=mr.optim.SGD),
        ("Optimizer (", DIFFERENT, "string identifier for an optimizer"),
    ),
    "optimizer elsewhere": (
        _compile_in("own", own_model=line, other_optimizer=mr.optim.SGD),
        ("Optimizer (", DIFFERENT),
    ),
    "metric outside": (
        _compile_in("own", own_model=line, no_metrics=mr.metrics.MeanSquaredError),
        ("Metric (", DIFFERENT, "string identifier for a metric"),
    ),
    "metric elsewhere": (
        _compile_in("own", own_model=line, other_metrics=mr.metrics.MeanSquaredError),
        ("Metric (", DIFFERENT),
    ),
    "compiled elsewhere": (_compile_in("other", own_model=line), ("Variable (dense", VARIABLE)),
}


@pytest.mark.parametrize(("act", "messages"), SCOPES.values(), ids=SCOPES)
def test_scopes(act: Scoped, messages: tuple[str, ...], strategy: mr.MirroredStrategy) -> None:
    other = mr.MirroredStrategy(["CPU:0"])
    check_refused(make_model(strategy), lambda model: act(strategy, other), ValueError, *messages)


def test_a_layer_from_outside(strategy: mr.MirroredStrategy) -> None:
    outside = mr.layers.Dense(1)
    outside.build((None, 5))
    with strategy.scope():
        model = mr.Sequential([outside])
        with pytest.raises(ValueError, match=VARIABLE):
            model.compile("sgd", "mse")


# ------------------------------------------------------------------------------ memory


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Switch the garbage collector off: memory must come back without it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


WIDE = np.random.default_rng(3).normal(size=(12, 64)).astype(np.float32)
TOTAL = 1 << 20  # The limit of each simulated GPU in bytes: 1 MB.


def make_wide(strategy: mr.MirroredStrategy) -> mr.Model:
    """Return a model whose updates need more memory than its outputs."""
    mr.random.set_seed(2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(64,)), mr.layers.Dense(64, "tanh")])
        model.add(mr.layers.Dense(CLASSES, "softmax"))
        model.compile(mr.optim.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def in_use() -> list[int]:
    devices = mr.config.list_logical_devices()
    return [get_memory_info(device)["current"] for device in devices]


def place_of(error: BaseException) -> str:
    """Return which part of a step raised, by the functions on the way there."""
    names = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    for function, place in (
        ("_cut", "transfer"),
        ("_backpropagate", "backward"),
        ("_forward", "forward"),
        ("_updates", "update"),
        ("build", "slots"),
    ):
        if function in names:
            return place
    return "elsewhere"


def fill(gpu: str, free: int) -> mr.Tensor:
    """Return a tensor that leaves so many bytes free on a device."""
    with mr.device(gpu):
        return mr.zeros(((TOTAL - get_memory_info(gpu)["current"] - free) // 4,))


def test_out_of_memory_at_every_place(
    replicas: int, simulate: Callable[..., Any], no_collector: None
) -> None:
    """One device has less and less room; whatever fails, nothing stays, and training goes on."""
    simulate(replicas, memory_limit=1)
    strategy = mr.MirroredStrategy()
    gpu = f"GPU:{replicas - 1}"
    model, reference = make_wide(strategy), make_wide(strategy)
    base = get_memory_info(gpu)["current"]
    mr.config.experimental.reset_memory_stats(gpu)
    train(reference, x=WIDE)
    need = get_memory_info(gpu)["peak"] - base
    before = state(model)
    places = []
    for part in range(40):  # Closer together at first, where transfer and forward fail.
        full = fill(gpu, need * part**3 // 40**3)
        held = in_use()
        try:
            train(model, x=WIDE)
        except ResourceExhaustedError as error:
            places.append(place_of(error))
            text = str(error)
            notes = "".join(getattr(error, "__notes__", []))
        else:
            pytest.fail(f"({part}/40)^3 of the memory was enough")
        assert f"device:{gpu}: " in text
        for each in ("OOM when allocating tensor with shape [", "asked for, ", "in use, limit 1.0"):
            assert each in text
        if replicas > 1 and places[-1] in ("transfer", "forward", "backward"):
            assert f"Raised in replica {replicas - 1} on " in notes
        assert in_use() == held
        assert state(model) == before
        assert threading.enumerate() == [threading.main_thread()]
        del full
    assert set(places) >= {"transfer", "forward", "backward", "update"}
    # With the memory free again, training is what it would have been.
    train(model, x=WIDE)
    assert state(model) == state(reference)


def test_a_smaller_batch_fits(
    replicas: int, simulate: Callable[..., Any], no_collector: None
) -> None:
    simulate(replicas, memory_limit=1)
    strategy = mr.MirroredStrategy()
    model, reference = make_wide(strategy), make_wide(strategy)
    many = np.tile(WIDE, (500, 1))
    labels = np.tile(Y, 500)
    with pytest.raises(MemoryError) as caught:
        train(model, x=many, y=labels, batch_size=6000)
    assert "Use a smaller batch or model, or raise the limit." in str(caught.value)
    del caught
    held = in_use()
    with pytest.raises(MemoryError):
        model.evaluate(many, labels, batch_size=6000, verbose=0)
    with pytest.raises(MemoryError):
        model.predict(many, batch_size=6000, verbose=0)
    assert in_use() == held
    for each in (model, reference):
        train(each, x=many, y=labels, batch_size=100, steps_per_epoch=3)
    assert state(model) == state(reference)
    assert model.predict(many, batch_size=100, verbose=0).shape == (6000, CLASSES)


def test_out_of_memory_while_a_model_is_built(
    replicas: int, simulate: Callable[..., Any], no_collector: None
) -> None:
    """The layers that had room give it back, and a smaller input builds the same model."""
    simulate(replicas, memory_limit=1)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Dense(64, "tanh"), mr.layers.Dense(CLASSES, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
    held = in_use()
    full = fill("GPU:0", 20_000)  # The first kernel fits, and then no more.
    with pytest.raises(ResourceExhaustedError):
        train(model, x=WIDE)
    assert (model.built, model.weights) == (False, [])
    del full
    assert in_use() == held
    train(model, x=WIDE[:, :7])


def test_an_error_that_is_kept_keeps_its_memory_only_until_it_goes(
    replicas: int, simulate: Callable[..., Any], no_collector: None
) -> None:
    simulate(replicas, memory_limit=1)
    model = make_wide(mr.MirroredStrategy())
    full = fill("GPU:0", 8_000)
    held = in_use()
    kept: list[BaseException] = []
    try:
        train(model, x=WIDE)
    except MemoryError as error:
        kept.append(error)
    assert kept
    kept.clear()
    assert in_use() == held
    del full
    train(model, x=WIDE)


# ------------------------------------------------------------------------------ users' own code


class Broken(Exception):
    """What users' code raises here."""


# The hook, and how many steps are over when it is called first.
HOOKS = {
    "on_train_begin": 0,
    "on_epoch_begin": 0,
    "on_train_batch_begin": 0,
    "on_train_batch_end": 1,
    "on_test_begin": 2,
    "on_test_batch_begin": 2,
    "on_test_batch_end": 2,
    "on_test_end": 2,
    "on_epoch_end": 2,
    "on_train_end": 2,
}


@pytest.mark.parametrize(("hook", "steps"), HOOKS.items())
def test_an_exception_in_a_callback(hook: str, steps: int, strategy: mr.MirroredStrategy) -> None:
    class Breaks(mr.callbacks.Callback):
        pass

    def breaks(self: Breaks, *args: Any) -> None:
        raise Broken(hook)

    setattr(Breaks, hook, breaks)
    options: dict[str, Any] = {"callbacks": [Breaks()], "validation_data": (X, Y)}
    check_refused(
        make_model(strategy), lambda model: train(model, **options), Broken, hook, steps=steps
    )


@pytest.mark.parametrize("method", ["evaluate", "predict"])
def test_an_exception_in_a_callback_of(method: str, strategy: mr.MirroredStrategy) -> None:
    class Breaks(mr.callbacks.Callback):
        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            raise Broken

        on_predict_batch_end = on_test_batch_end

    data = (X, Y) if method == "evaluate" else (X,)
    check_refused(
        make_model(strategy),
        lambda model: getattr(model, method)(*data, verbose=0, callbacks=[Breaks()]),
        Broken,
    )


CALLBACKS: dict[str, tuple[Any, str]] = {
    "a class": ([mr.callbacks.Callback], "Did you forget the parentheses?"),
    "a function": (print, "must hold instances of `mr.callbacks.Callback`"),
}


@pytest.mark.parametrize(("callbacks", "message"), CALLBACKS.values(), ids=CALLBACKS)
def test_callbacks_that_are_none(
    callbacks: Any, message: str, strategy: mr.MirroredStrategy
) -> None:
    check_refused(
        make_model(strategy), lambda model: train(model, callbacks=callbacks), TypeError, message
    )


class Switch:
    """Code of a user's that fails while it is on, in the last replica alone."""

    def __init__(self) -> None:
        self.on = False

    def check(self) -> None:
        context = mr.distribute.get_replica_context()
        last = context is not None and (
            context.replica_id_in_sync_group == context.num_replicas_in_sync - 1
        )
        if self.on and last:
            raise Broken("of the user's")


@pytest.mark.parametrize("what", ["loss", "metric", "layer"])
def test_an_exception_in_a_users_code(what: str, strategy: mr.MirroredStrategy) -> None:
    """It reaches the caller with the replica and the device named."""
    switch = Switch()

    def loss(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
        switch.check()
        return mr.square(y_true - y_pred)

    class Layer(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            switch.check()
            return inputs

    def make(strategy: mr.MirroredStrategy) -> mr.Model:
        mr.random.set_seed(2)
        with strategy.scope():
            model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1)])
            if what == "layer":
                model.add(Layer())
            model.compile(
                mr.optim.SGD(0.1, momentum=0.9),
                loss if what == "loss" else "mse",
                metrics=[loss] if what == "metric" else None,
            )
        train(model)
        return model

    def act(model: mr.Model) -> None:
        switch.on = True
        try:
            train(model)
        finally:
            switch.on = False

    model = make(strategy)
    error = check_refused(model, act, Broken, "of the user's", make=make)
    notes = "".join(getattr(error, "__notes__", []))
    last = strategy.num_replicas_in_sync - 1
    if last:
        assert f"Raised in replica {last} on {strategy.devices[last].full_name}." in notes


LOSSES: dict[str, tuple[Callable[..., Any], str]] = {
    "a mean over the batch": (
        lambda y_true, y_pred: mr.reduce_mean(mr.square(y_true - y_pred)),
        "must return one value an example",
    ),
    "None": (lambda y_true, y_pred: None, "None"),
}


@pytest.mark.parametrize(("loss", "message"), LOSSES.values(), ids=LOSSES)
def test_a_loss_of_another_shape(
    loss: Callable[..., Any], message: str, strategy: mr.MirroredStrategy
) -> None:
    with strategy.scope():
        model = line()
        model.compile("sgd", loss)
    before = state(model)
    with pytest.raises((ValueError, TypeError), match=message):
        train(model)
    assert state(model) == before


def test_ctrl_c(strategy: mr.MirroredStrategy) -> None:
    """The step ends first; tests/training/test_interrupt.py has every place where it may come."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    class Interrupts(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        check_refused(
            make_model(strategy),
            lambda model: train(model, callbacks=[Interrupts()]),
            KeyboardInterrupt,
            steps=1,
        )
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


# ------------------------------------------------------------------------------ weights files


def _cut(part: float) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])


def _flip(position: int) -> Callable[[Path], Any]:
    """Return a function that flips a bit of the byte at `position`, counted from the end."""

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[position] ^= 1
        path.write_bytes(data)

    return flip


def _of(*layers: Callable[[], mr.layers.Layer], features: int = 5) -> Callable[[Path], Any]:
    """Return a function that writes the weights of another model."""

    def write(path: Path) -> None:
        model = mr.Sequential([mr.layers.Input(shape=(features,)), *(make() for make in layers)])
        model.save_weights(path)

    return write


def dense(units: int, **options: Any) -> Callable[[], mr.layers.Layer]:
    return lambda: mr.layers.Dense(units, **options)


CORRUPT = "truncated, corrupt, or not in the safetensors format"
ANOTHER = "is of another model: "
FILES: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "empty": (_cut(0), WeightsFileError, CORRUPT),
    "truncated in the header": (_cut(0.1), WeightsFileError, CORRUPT),
    "truncated in the data": (_cut(0.9), WeightsFileError, CORRUPT),
    "a byte short": (
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        WeightsFileError,
        CORRUPT,
    ),
    "a flipped bit": (_flip(-3), WeightsFileError, "is corrupt: the checksum of"),
    "a flipped bit in the header": (_flip(9), WeightsFileError, "weights file"),
    "text": (lambda path: path.write_text("hello"), WeightsFileError, CORRUPT),
    "NumPy's format": (
        lambda path: path.write_bytes(b"\x93NUMPY\x01\x00" + bytes(120)),
        WeightsFileError,
        CORRUPT,
    ),
    "fewer layers": (_of(dense(4)), WeightsFileError, f"{ANOTHER}no '2.dense.kernel'"),
    "more layers": (
        _of(dense(4), dense(CLASSES), dense(1)),
        WeightsFileError,
        "unexpected '3.dense.bias'",
    ),
    "other shapes": (
        _of(dense(4), dense(CLASSES), features=6),
        WeightsFileError,
        "'1.dense.kernel' has shape (6, 4), the model's has (5, 4)",
    ),
    "other dtypes": (
        _of(dense(4, dtype="float64"), dense(CLASSES)),
        WeightsFileError,
        "is float64, the model's is float32",
    ),
    "a folder": (
        lambda path: (path.unlink(), path.mkdir()),
        WeightsFileError,
        "is a folder. Pass the path of a file in it",
    ),
    "no file": (lambda path: path.unlink(), FileNotFoundError, "w.safetensors"),
}


@pytest.mark.parametrize(("spoil", "error", "message"), FILES.values(), ids=FILES)
def test_weights_files(
    spoil: Callable[[Path], Any],
    error: type[Exception],
    message: str,
    strategy: mr.MirroredStrategy,
    tmp_path: Path,
) -> None:
    good, bad = tmp_path / "good.safetensors", tmp_path / "w.safetensors"
    model = make_model(strategy)
    for path in (good, bad):
        model.save_weights(path)
    spoil(bad)
    check_refused(model, lambda model: model.load_weights(bad), error, message, str(bad))
    model.load_weights(good)
    assert [a.tobytes() for a in model.get_weights()] == [
        b.tobytes() for b in make_model(strategy).get_weights()
    ]


def test_nothing_is_said_of_it_on_the_way(
    strategy: mr.MirroredStrategy, caplog: pytest.LogCaptureFixture
) -> None:
    """Errors are raised and not logged as well."""
    model = make_model(strategy)
    with caplog.at_level(logging.WARNING, logger="mirrored"), pytest.raises(NonFiniteLossError):
        train(make_line(strategy), x=np.full_like(X, np.nan))
    with (
        caplog.at_level(logging.WARNING, logger="mirrored"),
        pytest.raises(ValueError, match="label"),
    ):
        train(model, y=Y + 9)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
