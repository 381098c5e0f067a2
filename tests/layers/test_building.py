"""What a build that failed leaves: nothing."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.layers.building import undone_on_failure


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
    with undone_on_failure(layer):
        layer.build((None, 3))
    assert len(layer.weights) == 2


def test_what_was_built_before_is_left_alone() -> None:
    outer = mr.Sequential([mr.layers.Dense(2), mr.layers.Dense(3)])
    built = outer.layers[0]
    built.build((None, 4))
    kernel = built.kernel

    def build() -> None:
        with undone_on_failure(outer):
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
