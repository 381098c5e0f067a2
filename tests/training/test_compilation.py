"""What `compile` makes of names and objects, and that it keeps the old state when it fails."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

X = np.arange(4.0, dtype=np.float32)[:, np.newaxis]
Y = 2 * (X + 1)
MakeLine = Callable[..., mr.Model]


def test_what_a_model_says_of_it(make_line: MakeLine) -> None:
    model = make_line(0.5, loss="mse", metrics=["mse"])
    assert isinstance(model.optimizer, mr.optim.SGD)
    assert float(model.optimizer.learning_rate) == 0.5
    assert model.loss == "mse"
    tracker, compiled = model.metrics
    assert isinstance(tracker, mr.metrics.Mean)
    assert [type(metric) for metric in compiled.metrics] == [mr.metrics.MeanSquaredError]
    assert model.metrics_names == ["loss", "compile_metrics"]  # As in Keras 3.15.1.
    empty = mr.Sequential()
    assert (empty.optimizer, empty.loss, empty.metrics) == (None, None, [])


@pytest.mark.parametrize(
    "optimizer",
    ["sgd", "SGD", mr.optim.SGD, lambda: mr.optim.SGD(0.3)],
    ids=["sgd", "SGD", "class", "function"],
)
def test_optimizers(optimizer: Any, strategy: mr.MirroredStrategy) -> None:
    if not isinstance(optimizer, str | type):
        with strategy.scope():
            optimizer = optimizer()
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
    # Outside the scope too, a name gives an optimizer of the model's strategy.
    model.compile(optimizer, "mse")
    model.fit(X, Y, verbose=0)
    assert strategy.owns(model.optimizer.iterations)


def test_its_arguments_are_those_of_keras() -> None:
    """Those of Keras 3.15, in its order; but for no optimizer, "auto" and `check_gradients`."""
    parameters = inspect.signature(mr.Model.compile).parameters
    assert {name: each.default for name, each in parameters.items() if name != "self"} == {
        "optimizer": "rmsprop",
        "loss": None,
        "loss_weights": None,
        "metrics": None,
        "weighted_metrics": None,
        "run_eagerly": False,
        "steps_per_execution": "auto",
        "jit_compile": "auto",
        "auto_scale_loss": True,
        "check_gradients": False,
    }


@cases(("jit_compile", "scale"), [(True, False), (False, True), (None, True), ("auto", False)])
def test_what_has_nothing_to_do(jit_compile: Any, scale: bool) -> None:
    results = []
    for options in ({}, {"jit_compile": jit_compile, "auto_scale_loss": scale}):
        mr.random.set_seed(1)
        model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])
        model.compile("sgd", "mse", **options)
        results.append(model.fit(X, Y, verbose=0).history)
    assert results[0] == results[1]


@pytest.mark.parametrize("value", ["xla", 2, "True", [True]])
def test_jit_compile_refused(value: Any, make_line: MakeLine) -> None:
    model = make_line()
    with pytest.raises(
        ValueError, match=r'`jit_compile` must be True, False or "auto". Received: jit_'
    ):
        model.compile("sgd", "mse", jit_compile=value)
    model.fit(X, Y, verbose=0)


# Keras 3.15.1 gives these names to the metrics.
NAMES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "one": ({"metrics": "mse"}, ["mse"]),
    "tuple": ({"metrics": ("mse", "accuracy")}, ["mse", "accuracy"]),
    "twice": ({"metrics": ["mse", "mse"]}, ["mse", "mse_1"]),
    "weighted": ({"weighted_metrics": ["mse"]}, ["mse"]),
    "both": ({"metrics": ["mse"], "weighted_metrics": ["mse"]}, ["mse", "weighted_mse"]),
    "name and object": (
        {"metrics": ["mse", mr.metrics.MeanSquaredError]},
        ["mse", "mean_squared_error"],
    ),
    "two names of one": ({"metrics": ["accuracy", "acc"]}, ["accuracy", "acc"]),
}


@pytest.mark.parametrize(("options", "names"), NAMES.values(), ids=NAMES)
def test_names_of_metrics(options: dict[str, Any], names: list[str], make_line: MakeLine) -> None:
    model = make_line(**options)
    logs = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert list(logs) == sorted(["loss", *names])


def test_a_metric_called_loss(make_line: MakeLine) -> None:
    """Keras 3.15.1 shows one of the two under that name."""
    model = make_line()
    with model.distribute_strategy.scope():
        model.compile("sgd", "mse", metrics=[mr.metrics.MeanSquaredError(name="loss")])
    assert model.evaluate(X, Y, verbose=0, return_dict=True) == {"loss": 13.5, "loss_1": 13.5}


def test_metrics_wait_for_the_shape_of_the_output(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(3, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    (_, compiled) = model.metrics
    assert compiled.metrics == []
    model.fit(X, [0, 1, 2, 1], verbose=0)
    assert [type(metric) for metric in compiled.metrics] == [mr.metrics.SparseCategoricalAccuracy]
    assert [*compiled.named] == ["accuracy"]


def test_objects_are_used_as_they_are(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        metric, loss = mr.metrics.MeanSquaredError(), mr.losses.MeanSquaredError()
        optimizer = mr.optim.Adam()
        model.compile(optimizer, loss, metrics=[metric])
    assert (model.optimizer, model.loss) == (optimizer, loss)
    assert model.metrics[1].metrics == [metric]
    shown = model.evaluate(X, Y, verbose=0)[1]
    assert float(metric.result()) == shown


def test_compiling_again_begins_anew(make_line: MakeLine) -> None:
    model = make_line(metrics=["mse"])
    model.fit(X, Y, epochs=2, verbose=0)
    weights = model.get_weights()
    model.compile("adam", "binary_crossentropy", metrics=[])
    assert (int(model.optimizer.iterations), list(model.get_metrics_result())) == (0, ["loss"])
    assert model.get_weights() == weights
    model.fit(X, Y > 3, verbose=0)


def test_compiling_again_keeps_what_is_not_given(make_line: MakeLine) -> None:
    """So does Keras 3.15.1, a loss with its weights and all metrics together."""
    model = make_line(metrics=["mse"])
    expected = model.evaluate(X, Y, verbose=0, return_dict=True)
    model.compile("adam")
    assert model.evaluate(X, Y, verbose=0, return_dict=True) == expected
    model.compile("adam", "binary_crossentropy", weighted_metrics=["accuracy"])
    assert list(model.evaluate(X, Y > 3, verbose=0, return_dict=True)) == ["accuracy", "loss"]


def test_compiling_with_the_same_optimizer_goes_on(make_line: MakeLine) -> None:
    model = make_line()
    model.fit(X, Y, epochs=2, verbose=0)
    model.compile(model.optimizer, "mse", metrics=["mse"])
    model.fit(X, Y, verbose=0)
    assert int(model.optimizer.iterations) == 3


def test_without_a_loss_there_is_prediction_only(make_line: MakeLine) -> None:
    model = make_line(loss=None)
    assert model.predict(X, verbose=0).shape == (4, 1)
    for method in (model.fit, model.evaluate):
        # In Keras' words (3.15.1).
        with pytest.raises(ValueError, match=r"No loss to compute\. Provide a `loss` argument in"):
            method(X, Y, verbose=0)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "optimizer": ({"optimizer": "foo"}, "Could not interpret optimizer identifier: foo"),
    "optimizer's type": ({"optimizer": 3}, "Could not interpret optimizer identifier: 3"),
    "loss": ({"loss": "foo"}, "Could not interpret loss identifier: foo"),
    "loss's type": ({"loss": 3}, "Could not interpret loss identifier: 3"),
    "loss without a number": (
        {"loss": mr.losses.MeanSquaredError(reduction="none")},
        "Training minimises one number per batch. Received: the loss 'mean_squared_error' with "
        "reduction='none'.",
    ),
    "metric": ({"metrics": ["foo"]}, "Could not interpret metric identifier: foo"),
    "weighted metric": ({"weighted_metrics": "foo"}, "Could not interpret metric identifier: foo"),
    "loss weights": (
        {"loss_weights": ["a"]},
        "A loss weight must be a finite number. Received: loss_weights='a'",
    ),
}


@pytest.mark.parametrize(
    ("change", "message", "built"),
    [
        pytest.param(*each, number % 2 == 0, id=name)
        for number, (name, each) in enumerate(REFUSED.items())
    ],
)
def test_refused(change: dict[str, Any], message: str, built: bool) -> None:
    """At `compile`, whether the model is built or not, and the last good one stays in force."""
    model = mr.Sequential([mr.layers.Dense(1)])
    if built:
        model.build((None, 1))
    model.compile("sgd", "mse", metrics=["mse"])
    optimizer = model.optimizer
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        model.compile(**{"optimizer": "sgd", "loss": "mse", **change})
    assert (model.optimizer, model.loss) == (optimizer, "mse")
    assert list(model.fit(X, Y, verbose=0).history) == ["loss", "mse"]
