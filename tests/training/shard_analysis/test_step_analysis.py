"""What the analysis of a step says of variables that replicas assign without an aggregation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


class Counting(mr.layers.Layer):
    """Adds a number to a variable in each step of training."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self.make = make

    def build(self, input_shape: Any) -> None:
        self.total = self.add_weight(name="total", initializer="zeros", trainable=False)

    def call(self, inputs: Any, training: bool = False) -> Any:
        if training:
            self.total.assign_add(self.make(inputs))
        return inputs


def trained(make: Callable[[Any], Any]) -> float:
    """Return the total after two steps on two replicas, whose shards have two examples each."""
    with mr.MirroredStrategy().scope():
        layer = Counting(make)
        model = mr.Sequential([mr.layers.Input((3,)), layer, mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    model.fit(X, X[:, :1], batch_size=4, verbose=0)
    return float(layer.total)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: float(x.shape[0]),
        lambda x: mr.reduce_sum(mr.cast(x[:, 0] > -9.0, "float32")),
    ],
    ids=["number", "count"],
)
def test_a_part_that_is_alike_on_all_replicas(
    simulate: Callable[..., Any], make: Callable[[Any], Any]
) -> None:
    simulate(2)
    with pytest.raises(ValueError, match="depends on the number of examples of a shard"):
        trained(make)


@pytest.mark.parametrize(
    "make",
    [lambda x: 1.0, lambda x: mr.cast(mr.math.is_finite(mr.reduce_mean(x)), "float32")],
    ids=["step", "finite steps"],
)
def test_what_one_device_assigns_too(
    simulate: Callable[..., Any], make: Callable[[Any], Any]
) -> None:
    simulate(2)
    assert trained(make) == 2.0
