"""What the tests of optimizers share: every kind of them, and a strategy of two replicas."""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr
from mirrored.distribute import MirroredStrategy
from mirrored.optim import SGD, Adam, Optimizer

Simulate = Callable[..., list[mr.config.LogicalDevice]]
KINDS: list[Callable[..., Optimizer]] = [
    SGD,
    lambda **settings: SGD(momentum=0.9, **settings),
    Adam,
    lambda **settings: Adam(amsgrad=True, **settings),
]
NAMES = ["sgd", "momentum", "adam", "amsgrad"]


@pytest.fixture(params=KINDS, ids=NAMES)
def kind(request: pytest.FixtureRequest) -> Callable[..., Optimizer]:
    """Return a class of optimizers, or one with settings of its own."""
    make: Callable[..., Optimizer] = request.param
    return make


@pytest.fixture
def strategy(simulate: Simulate) -> MirroredStrategy:
    simulate(2)
    return MirroredStrategy()


@pytest.fixture
def everywhere() -> Callable[[list[Any]], list[Any]]:
    """Return ``everywhere(variables)``: the values of every copy of every variable."""

    def read(variables: list[Any]) -> list[Any]:
        return [
            copy.numpy().tolist()
            for variable in variables
            for copy in getattr(variable, "copies", [variable])
        ]

    return read
