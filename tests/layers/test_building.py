"""What a build that failed leaves: nothing; and layers that replicas make and build in `call`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.layers.building import undone_on_failure
from mirrored.layers.layer import walk


class Grows(mr.layers.Layer):
    """Fills an attribute, a list and a dict while it is built, and then fails if told to."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.fails = fails
        self.blocks: list[mr.layers.Layer] = []
        self.named: dict[str, Any] = {"first": mr.layers.Dense(1)}

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight(shape=(), name="scale", regularizer="l2")
        self.blocks.append(mr.layers.Dense(2))
        self.named["second"] = self.blocks[0]
        for layer in (*self.blocks, self.named["first"]):
            layer.build(input_shape)
        if self.fails:
            raise KeyboardInterrupt


def test_a_failure_is_undone_inside_and_out() -> None:
    layer = Grows(fails=True)
    first, blocks = layer.named["first"], layer.blocks
    with pytest.raises(KeyboardInterrupt):
        layer.build((None, 3))
    assert not layer.built
    assert not first.built
    assert not hasattr(layer, "scale")
    assert layer.blocks is blocks
    assert (blocks, list(layer.named), layer.weights) == ([], ["first"], [])
    assert layer.regularized_weights == []
    layer.fails = False
    layer.build((None, 5))
    assert sorted(weight.shape for weight in layer.weights) == [(), (1,), (2,), (5, 1), (5, 2)]


def test_success_is_kept() -> None:
    layer = mr.layers.Dense(2)
    with undone_on_failure(walk(layer)):
        layer.build((None, 3))
    assert len(layer.weights) == 2


def test_what_was_built_before_is_left_alone() -> None:
    outer = mr.Sequential([mr.layers.Dense(2), mr.layers.Dense(3)])
    built = outer.layers[0]
    built.build((None, 4))
    kernel = built.kernel

    def build() -> None:
        with undone_on_failure(walk(outer)):
            outer.build((None, 4))
            kernel.assign(np.ones((4, 2), dtype=np.float32))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build()
    assert built.kernel is kernel
    assert [layer.built for layer in outer.layers] == [True, False]
    assert float(kernel[0, 0]) == 1.0  # Values are none of its business.


def test_what_is_no_shape_is_given_as_it_is() -> None:
    """As in Keras' guide, whose `build` takes an initializer; shapes are checked."""

    class Starts(mr.layers.Layer):
        def build(self, input_shape: Any, first: Any = "ones", state_shape: Any = None) -> None:
            self.kernel = self.add_weight(shape=input_shape[1:], initializer=first)
            self.given = input_shape, first, state_shape

    for args, kwargs in [
        (([None, 3], "zeros", [2]), {}),
        (([None, 3],), {"state_shape": [2], "first": "zeros"}),
        ((), {"first": "zeros", "input_shape": [None, 3], "state_shape": [2]}),
    ]:
        layer = Starts()
        layer.build(*args, **kwargs)
        assert layer.given == ((None, 3), "zeros", (2,))
        assert not layer.kernel.numpy().any()
        shapes = {"input_shape": (None, 3), "first": "zeros", "state_shape": (2,)}
        assert layer.get_build_config() == {"shapes_dict": shapes}
    with pytest.raises(ValueError, match="Cannot convert 'zeros' to a shape"):
        Starts().build((None, 3), state_shape="zeros")


class Scaling(mr.layers.Layer):
    """Has a build that makes a layer, and no variable."""

    def build(self, input_shape: Any) -> None:
        self.factor = float(input_shape[-1])
        self.inner = mr.layers.Concatenate()

    def call(self, inputs: Any) -> Any:
        return self.inner([inputs, inputs])[:, : inputs.shape[1]] * self.factor


class Made(mr.Model):
    """Makes layers in each call."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self.first, self.last, self.make = mr.layers.Dense(4), mr.layers.Dense(1), make

    def call(self, inputs: Any, training: bool = False) -> Any:
        return self.last(self.make(self.first(inputs)))


MADE = {
    "concatenate": lambda x: mr.layers.concatenate([x, x]),
    "own": lambda x: Scaling()(x),
    "model": lambda x: mr.Sequential([mr.layers.Reshape((2, 2)), mr.layers.Flatten()])(x),
    "noise": lambda x: mr.layers.GaussianNoise(0.5)(mr.layers.Dropout(0.5)(x)),
}


@cases("eager", [False, True])
@cases("make", MADE.values(), ids=MADE)
def test_layers_without_weights_that_replicas_make(
    simulate: Callable[..., Any], make: Callable[[Any], Any], eager: bool
) -> None:
    simulate(2)
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    found = []
    for replicas in (1, 2):
        mr.random.set_seed(0)
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            model = Made(make)
            model.compile(mr.optim.SGD(0.1), "mse", run_eagerly=eager)
        history = model.fit(x, x[:, :1], batch_size=4, shuffle=False, verbose=0)
        found.append([*history.history["loss"], *map(np.ravel, model.get_weights())])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)


def test_a_layer_that_one_replica_makes_for_all(strategy: Any) -> None:
    """Its weights are made once, also where a build was tried without any before."""
    made: list[Any] = []

    def step() -> Any:
        if not made:
            made.append(mr.layers.Dense(1, kernel_initializer="ones"))
        return made[0](mr.ones((1, 2)))

    assert [each.numpy().item() for each in strategy.run(step).values] == [2.0] * 2
    assert len(made[0].kernel.copies) == 2


@pytest.fixture
def strategy(simulate: Callable[..., Any]) -> Any:
    """Return a strategy of two replicas."""
    simulate(2)
    return mr.MirroredStrategy()


@pytest.mark.parametrize("recorded", [False, True])
def test_noise_made_in_each_call_is_other_noise_in_each_step(strategy: Any, recorded: bool) -> None:
    def step() -> Any:
        return strategy.run(lambda: mr.layers.Dropout(0.5)(mr.ones((1, 64)), training=True))

    run = mr.function(step) if recorded else step
    first, second = (run().values[0].numpy() for _ in range(2))
    assert not np.array_equal(first, second)
