"""Models, layers and optimizers that are made or compiled wrongly, by name or by scope.

The error lists what there is, and the compilation before stays in force.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError

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


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices and models stay from row to row."""


@pytest.mark.behaviour("unknown-activation", "units")
@cases(("make", "message"), CONSTRUCTED.values(), ids=CONSTRUCTED, clean=False)
def test_construction(
    make: Callable[[], Any],
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    def act(model: mr.Model) -> None:
        with strategy.scope():
            make()

    check_refused(make_model(strategy), act, ValueError, message)


NAMES: dict[str, tuple[dict[str, Any], str]] = {
    "optimizer": ({"optimizer": "foo"}, "Could not interpret optimizer identifier: foo"),
    "loss": ({"loss": "foo"}, "Could not interpret loss identifier: foo"),
    "metric": ({"metrics": ["accuracy", "foo"]}, "Could not interpret metric identifier: foo"),
}


@pytest.mark.behaviour("unknown-loss", "unknown-optimizer")
@cases(("change", "message"), NAMES.values(), ids=NAMES, clean=False)
def test_names_at_compile(
    change: dict[str, Any],
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    """The error lists the names there are, and the compilation before stays in force."""

    def act(model: mr.Model) -> None:
        model.compile(**{"optimizer": "sgd", "loss": "mse", **change})

    error = check_refused(make_model(strategy), act, ValueError, message)
    assert re.search(r"Known (optimizers|losses|metrics): ", str(error))


@pytest.mark.behaviour("not-compiled")
@cases("method", ["fit", "evaluate"], clean=False)
def test_before_compile(
    method: str, strategy: mr.MirroredStrategy, data: tuple[np.ndarray, np.ndarray]
) -> None:
    """Keras raises a RuntimeError in version 2 and a ValueError in version 3: it is both."""
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(1)])
    with pytest.raises(InvalidArgumentError) as caught:
        getattr(model, method)(*data, verbose=0)
    assert str(caught.value) == "You must call `compile()` before using the model."
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, RuntimeError)
    assert not model.built
    model.compile("sgd", "mse")
    getattr(model, method)(*data, verbose=0)


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


@pytest.mark.behaviour("compile-scopes")
@cases(("act", "messages"), SCOPES.values(), ids=SCOPES, clean=False)
def test_scopes(
    act: Scoped,
    messages: tuple[str, ...],
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    other = mr.MirroredStrategy(["CPU:0"])
    check_refused(make_model(strategy), lambda model: act(strategy, other), ValueError, *messages)


def test_a_layer_from_outside(strategy: mr.MirroredStrategy) -> None:
    outside = mr.layers.Dense(1)
    outside.build((None, 5))
    with strategy.scope():
        model = mr.Sequential([outside])
        with pytest.raises(ValueError, match=VARIABLE):
            model.compile("sgd", "mse")
