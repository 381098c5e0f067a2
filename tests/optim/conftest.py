"""What the tests of optimizers share: every kind of them, and a strategy of two replicas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.distribute import MirroredStrategy
from mirrored.optim import SGD, Adafactor, Adam, Nadam, Optimizer
from tests.support import user_optimizers

Simulate = Callable[..., list[mr.config.LogicalDevice]]
KINDS: list[Callable[..., Optimizer]] = [
    SGD,
    lambda **settings: SGD(momentum=0.9, **settings),
    Adam,
    lambda **settings: Adam(amsgrad=True, **settings),
    Nadam,  # It keeps a number for all variables.
    Adafactor,  # It keeps values of other shapes.
]


def around_others(**settings: Any) -> Optimizer:
    """Return one around one around one."""
    several = mr.optim.MultiOptimizer(mr.optim.OptimizerMap(SGD(momentum=0.9, **settings)))
    return mr.optim.LossScaleOptimizer(several)


def of_a_user(**settings: Any) -> Optimizer:
    """Return one with an `update_step`."""
    made: Optimizer = user_optimizers.made_with(mr.keras)["Momentum"](**settings)
    return made


OTHERS = [around_others, of_a_user]
# What the comparisons with Keras start from, and the gradients of their steps.
START = ([[1.0, -2.0], [0.5, 3.0]], [0.25, -0.75, 4.0])
GRADIENTS = [
    ([[0.1, -0.2], [3.0, 0.4]], [0.01, 0.02, -0.03]),
    ([[-0.5, 0.25], [0.0, 1.5]], [4.0, -5.0, 0.5]),
    ([[2.0, -0.125], [0.3, -0.6]], [0.0, 0.7, -1.25]),
]
NAMES = ["sgd", "momentum", "adam", "amsgrad", "nadam", "adafactor", "around others", "own"]


@pytest.fixture(params=[*KINDS, *OTHERS], ids=NAMES)
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


@pytest.fixture
def take_steps() -> Callable[[Optimizer], list[mr.Variable]]:
    """Return ``take_steps(optimizer)``: variables of START after a step a row of GRADIENTS."""

    def run(optimizer: Optimizer) -> list[mr.Variable]:
        dtype = mr.keras.backend.floatx()
        variables = [mr.Variable(start, dtype=dtype) for start in START]
        for gradients in GRADIENTS:
            optimizer.apply_gradients(
                [(np.array(g, dtype), v) for g, v in zip(gradients, variables, strict=True)]
            )
        return variables

    return run
