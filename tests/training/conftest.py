"""What the tests of training share: a strategy of several replicas, and a tiny model."""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr


@pytest.fixture
def strategy(request: pytest.FixtureRequest, simulate: Callable[..., Any]) -> mr.MirroredStrategy:
    """Return a strategy over simulated GPUs: three, or as many as a test has as its parameter."""
    simulate(getattr(request, "param", 3))
    return mr.MirroredStrategy()


@pytest.fixture
def make_line(strategy: mr.MirroredStrategy) -> Callable[..., mr.Model]:
    """Return a function that makes a compiled model of one weight, which starts at 1."""

    def make(rate: float = 0.01, *, loss: Any = "mse", **options: Any) -> mr.Model:
        with strategy.scope():
            model = mr.Sequential(
                [
                    mr.layers.Input(shape=(1,)),
                    mr.layers.Dense(1, use_bias=False, kernel_initializer="ones"),
                ]
            )
            model.compile(mr.optim.SGD(rate), loss, **options)
        return model

    return make
