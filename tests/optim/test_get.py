"""Finding optimizers by name, and the table that no public optimizer may be missing from."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import optim
from mirrored.optim import SGD, Adam, Optimizer

# For each public optimizer: how it may be named, and 1.0 after one step by a gradient of 0.5
# with its default settings.
OPTIMIZERS: dict[str, tuple[list[str], float]] = {
    "Adam": (["adam", "Adam", "ADAM"], 1.0 - 0.001),
    "SGD": (["sgd", "SGD", "Sgd"], 1.0 - 0.01 * 0.5),
}


def public_optimizers() -> dict[str, type[Optimizer]]:
    """Return the optimizers that users can import."""
    return {
        name: value
        for name, value in vars(optim).items()
        if inspect.isclass(value) and issubclass(value, Optimizer) and value is not Optimizer
    }


def test_every_public_optimizer_is_in_the_table() -> None:
    assert sorted(public_optimizers()) == sorted(OPTIMIZERS)


@pytest.mark.parametrize(
    ("name", "identifier"), [(name, each) for name, row in OPTIMIZERS.items() for each in row[0]]
)
def test_by_name(name: str, identifier: str) -> None:
    found = optim.get(identifier)
    assert type(found) is public_optimizers()[name]
    assert found is not optim.get(identifier)


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_by_class(name: str) -> None:
    kind = public_optimizers()[name]
    assert type(optim.get(kind)) is kind


@pytest.mark.parametrize("make", [SGD, Adam, lambda: SGD(0.5, momentum=0.9)])
def test_an_optimizer_is_itself(make: Callable[[], Optimizer]) -> None:
    optimizer = make()
    assert optim.get(optimizer) is optimizer


@pytest.mark.parametrize(
    "identifier", ["foo", "", None, 3, {"class_name": "SGD"}, int, Optimizer, ["sgd"]]
)
def test_no_such_optimizer(identifier: Any) -> None:
    with pytest.raises(ValueError, match="Could not interpret optimizer identifier: ") as error:
        optim.get(identifier)
    assert f"identifier: {identifier}." in str(error.value)
    assert "adam, sgd" in str(error.value)


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_a_step_with_default_settings(name: str) -> None:
    v = mr.Variable(1.0)
    optimizer = optim.get(name)
    optimizer.apply_gradients([(mr.constant(0.5), v)])
    np.testing.assert_allclose(v.numpy(), OPTIMIZERS[name][1], rtol=1e-6)
    assert int(optimizer.iterations) == 1


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_the_arguments_come_in_keras_order(name: str) -> None:
    parameters = list(inspect.signature(public_optimizers()[name]).parameters)
    own = {"SGD": ["momentum", "nesterov"], "Adam": ["beta_1", "beta_2", "epsilon", "amsgrad"]}
    shared = ["weight_decay", "clipnorm", "clipvalue", "global_clipnorm"]
    expected = ["learning_rate", *own[name], *shared]
    assert parameters[: len(expected)] == expected
