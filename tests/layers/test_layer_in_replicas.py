"""Layers and models that are first called inside replicas: their weights are made for all of them.

TensorFlow's programs often leave the input's shape to the first step.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.distribute import MirroredVariable

X = np.random.default_rng(0).normal(size=(7, 4)).astype("float32")


class Subclass(mr.Model):
    def __init__(self) -> None:
        super().__init__()
        self.first = mr.layers.Dense(3, activation="tanh", kernel_regularizer="l2")
        self.second = mr.layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        return self.second(self.first(inputs))


def sequential(*first: Any) -> mr.Sequential:
    dense = mr.layers.Dense(3, activation="tanh", kernel_regularizer="l2")
    return mr.Sequential([*first, dense, mr.layers.Dropout(0.5), mr.layers.Dense(1)])


MODELS: dict[str, Callable[[], Any]] = {
    "sequential": sequential,
    "subclass": Subclass,
    "a layer": lambda: mr.layers.Dense(1),
}


@cases("recorded", [False, True])
@cases("replicas", [1, 3])
@cases("make", MODELS.values(), ids=MODELS)
def test_the_first_step_makes_the_weights_once(
    simulate: Callable[..., Any], make: Callable[[], Any], replicas: int, recorded: bool
) -> None:
    simulate(replicas)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model, optimizer = make(), mr.optim.SGD(0.1, momentum=0.9)

    def step(x: Any) -> None:
        with mr.GradientTape() as tape:
            loss = mr.reduce_sum(model(x)) / 7.0
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    def run(x: Any) -> None:
        strategy.run(step, args=(x,))

    call = mr.function(run) if recorded else run
    batches = strategy.experimental_distribute_dataset(mr.data.Dataset.from_tensors(X))
    for _ in range(2):
        for x in batches:
            call(x)
    assert all(isinstance(weight, MirroredVariable) for weight in model.weights)
    assert len(model.weights) == len({weight.name for weight in model.weights}) > 0
    assert len(model.losses) == len(model.regularized_weights) <= 1
    for weight in model.weights:
        first, *others = [copy.numpy() for copy in weight.copies]
        assert all(np.array_equal(first, other) for other in others)
    assert int(optimizer.iterations) == 2


def test_the_weights_are_those_of_a_model_built_before(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    weights = []
    for first in ([], [mr.layers.Input((4,))]):
        mr.random.set_seed(3)
        with strategy.scope():
            model = sequential(*first)
        strategy.run(lambda x, model=model: model(x), (mr.constant(X),))
        weights.append(model.get_weights())
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_layer_that_fails_to_build_leaves_nothing(
    simulate: Callable[..., Any],
) -> None:
    simulate(2, memory_limit=1)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        layer = mr.layers.Dense(1_000_000)
    with pytest.raises(MemoryError):
        strategy.run(lambda x: layer(x), (mr.constant(X),))
    assert not layer.built
    assert layer.weights == []
