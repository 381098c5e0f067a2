"""Finding optimizers by name, and the table that no public optimizer may be missing from."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import optim
from mirrored.optim import SGD, Adam, Optimizer

# For each public optimizer: 1.0 after one step by a gradient of 0.5 with its default settings, as
# Keras 3.15.1 has it in float32.
OPTIMIZERS = {
    "Adadelta": 0.9999985694885254,
    "Adafactor": 0.9990000128746033,
    "Adagrad": 0.9991548657417297,
    "Adam": 0.9990000128746033,
    "AdamW": 0.9989960193634033,
    "Adamax": 0.9990000128746033,
    "Ftrl": 0.46463239192962646,
    "Lamb": 0.9990000128746033,
    "Lion": 0.9990000128746033,
    "Muon": 0.9989960193634033,
    "Nadam": 0.99893718957901,
    "RMSprop": 0.9968377351760864,
    "ScheduleFreeAdamW": 0.9975000023841858,
    "SGD": 0.9950000047683716,
}


# The base of all, and those around others.
WITHOUT_RULES = {"Optimizer", "LossScaleOptimizer", "MultiOptimizer"}


def public_optimizers() -> dict[str, type[Optimizer]]:
    """Return the optimizers that users can import."""
    found = {name: getattr(optim, name) for name in dir(optim)}
    return {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) and issubclass(value, Optimizer) and name not in WITHOUT_RULES
    }


def test_every_public_optimizer_is_in_the_table() -> None:
    assert sorted(public_optimizers()) == sorted(OPTIMIZERS)


@cases(
    ("name", "identifier"),
    [(name, each) for name in OPTIMIZERS for each in (name, name.lower(), name.upper())],
)
def test_by_name(name: str, identifier: str) -> None:
    found = optim.get(identifier)
    assert type(found) is public_optimizers()[name]
    assert found is not optim.get(identifier)


@cases("name", list(OPTIMIZERS))
def test_by_class(name: str) -> None:
    kind = public_optimizers()[name]
    assert type(optim.get(kind)) is kind


@cases("make", [SGD, Adam, lambda: SGD(0.5, momentum=0.9)])
def test_an_optimizer_is_itself(make: Callable[[], Optimizer]) -> None:
    optimizer = make()
    assert optim.get(optimizer) is optimizer
    assert optim.get(None) is None


@cases("identifier", ["foo", "", 3, {"class_name": "Nope"}, int, Optimizer, ["sgd"]])
def test_no_such_optimizer(identifier: Any) -> None:
    with pytest.raises(ValueError, match="Could not interpret optimizer identifier: ") as error:
        optim.get(identifier)
    assert f"identifier: {identifier}." in str(error.value)
    assert "adam, adamax, adamw, ftrl" in str(error.value)


@cases("name", list(OPTIMIZERS))
def test_a_step_with_default_settings(name: str) -> None:
    v = mr.Variable(1.0)
    optimizer = optim.get(name)
    optimizer.apply_gradients([(mr.constant(0.5), v)])
    np.testing.assert_allclose(v.numpy(), OPTIMIZERS[name], rtol=1e-6)
    assert int(optimizer.iterations) == 1


@cases("name", list(OPTIMIZERS))
def test_settings_that_all_have_are_given_by_name(name: str) -> None:
    kind = public_optimizers()[name]
    made = kind(clipnorm=0.5, use_ema=True, gradient_accumulation_steps=2, name="mine")
    assert (made.clipnorm, made.use_ema, made.name) == (0.5, True, "mine")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'clip'.*'clipnorm'|clip"):
        kind(clip=0.5)
