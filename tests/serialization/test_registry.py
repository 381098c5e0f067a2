"""Names of initializers, regularizers and activations."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

from mirrored import losses, metrics, optim
from mirrored.keras import constraints
from mirrored.layers import Activation, Dense, activations, initializers, regularizers
from mirrored.serialization.registry import Registry


def test_names_are_looked_up_and_callables_pass() -> None:
    registry: Registry[Any] = Registry("thing", "builtins", {"absolute": "abs"})
    assert registry.resolve("absolute") is abs
    assert registry.resolve(len) is len


@cases(
    ("get", "kind", "known"),
    [
        (activations.get, "activation function", "relu"),
        (initializers.get, "initializer", "glorot_uniform"),
        (regularizers.get, "regularizer", "l2"),
    ],
)
@cases("identifier", ["foo", 3, ["relu"]])
def test_unknown_ones_are_refused_with_the_names_there_are(
    get: Callable[[object], Any], kind: str, known: str, identifier: object
) -> None:
    text = f"Could not interpret {kind} identifier: {identifier}"
    with pytest.raises(ValueError, match=re.escape(text)) as caught:
        get(identifier)
    assert known in str(caught.value)


@cases(
    ("get", "name", "meant"),
    [
        (activations.get, "rellu", "relu"),
        (constraints.get, "maxnorm", "max_norm"),
        (initializers.get, "zeross", "zeros"),
        (losses.get, "msee", "mse"),
        (metrics.get, "acuracy", "accuracy"),
        (optim.get, "adm", "adam"),
    ],
)
def test_a_misspelt_name_leads_to_the_nearest(
    get: Callable[[object], Any], name: str, meant: str
) -> None:
    with pytest.raises(ValueError, match=rf"identifier: {name}[.] Did you mean '{meant}'[?] \w"):
        get(name)


@cases(
    ("make", "text"),
    [
        (lambda: Dense(1, activation="foo"), "activation function identifier: foo"),
        (lambda: Dense(1, kernel_initializer="foo"), "initializer identifier: foo"),
        (lambda: Dense(1, bias_initializer="foo"), "initializer identifier: foo"),
        (lambda: Dense(1, kernel_regularizer="foo"), "regularizer identifier: foo"),
        (lambda: Dense(1, bias_regularizer="foo"), "regularizer identifier: foo"),
        (lambda: Activation("foo"), "activation function identifier: foo"),
    ],
)
def test_layers_check_names_when_they_are_made(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()
