"""Losses that layers add: who has them, and until when."""

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.layers import Dense, Input, Layer, added_losses

X = np.arange(12.0, dtype=np.float32).reshape(4, 3)


class Added(Layer):
    """Adds the mean of its inputs."""

    def call(self, inputs: Any) -> Any:
        """Return the inputs."""
        self.add_loss(mr.reduce_mean(inputs))
        return inputs


class Holds(Layer):
    """Calls a layer twice, and adds a loss of its own."""

    def __init__(self, inner: Layer) -> None:
        super().__init__()
        self.inner = inner

    def call(self, inputs: Any) -> Any:
        """Return the outputs."""
        self.add_loss(mr.constant(7.0))
        return self.inner(self.inner(inputs) * 2.0)


def values(layer: Layer) -> list[float]:
    """Return the losses as numbers."""
    return [float(each) for each in layer.losses]


@pytest.mark.behaviour("added-losses")
def test_losses_are_there_until_a_call_begins() -> None:
    layer = Added()
    outer = Holds(layer)
    layer(X)
    assert values(layer) == values(outer) == [5.5]
    outer(X)
    assert (values(layer), values(outer)) == ([5.5, 11.0], [7.0, 5.5, 11.0])
    layer(X[:1])
    assert (values(layer), values(outer)) == ([1.0], [7.0, 1.0])
    for each in (layer, Dense(2, activity_regularizer="l2")):
        each(X)
        each(Input((3,)))
        assert values(each) == []


def test_a_call_for_shapes_adds_nothing() -> None:
    inner = mr.Sequential([Added(), Dense(2, kernel_regularizer="l2")])
    outer = Holds(mr.Sequential([inner, Dense(3, activity_regularizer="l2")]))
    outer(X)  # It builds models by runs on zeros, in the midst of the call.
    # Its own, two calls of two layers that add one each, and the penalty.
    assert len(outer.losses) == 1 + 4 + 1
    model = mr.Model(x := Input((3,)), outer(x))
    assert len(model.losses) == 1
    model(X)
    assert len(model.losses) == 6


@pytest.mark.behaviour("added-losses")
def test_what_is_no_tensor_is_refused() -> None:
    layer = Added()
    for wrong in (3.0, None, lambda: 1.0, np.ones(3), [mr.constant(1.0), 2], Input((3,))):
        with pytest.raises(ValueError, match=r"`add_loss\(\)` can only be called from inside"):
            layer.add_loss(wrong)
    assert layer.losses == []
    layer.add_loss([])
    layer.add_loss({"b": mr.constant(1.0), "a": [mr.Variable(2.0)]})
    assert values(layer) == [2.0, 1.0]


@pytest.mark.behaviour("added-losses")
def test_a_functional_model_adds_none() -> None:
    x = Input((3,))
    with pytest.raises(NotImplementedError, match="A functional model has no custom `call`"):
        mr.Model(x, Dense(1)(x)).add_loss(mr.constant(1.0))


def test_layers_that_hold_losses_are_copied_and_go() -> None:
    layer = Added()
    layer(X)
    assert copy.deepcopy(layer).losses == []
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None
    assert all(each() is not None for each in added_losses.held)


def test_each_replica_has_its_own() -> None:
    mr.config.experimental.set_simulated_gpus(3)
    strategy = mr.MirroredStrategy()
    layer = Holds(Added())

    def step() -> Any:
        number = mr.distribute.get_replica_context().replica_id_in_sync_group
        layer(mr.constant([[float(number)]]))
        mr.distribute.get_replica_context().merge_call(lambda strategy: None)
        return mr.add_n(layer.losses)

    for run in (step, mr.function(step)):
        found = strategy.run(run)
        np.testing.assert_allclose([float(each) for each in found.values], [7.0, 10.0, 13.0])
    assert layer.losses == []


@pytest.mark.parametrize("rows", [4, 0])
def test_activity_is_divided_by_the_examples(rows: int) -> None:
    layer = Dense(2, kernel_initializer="ones", activity_regularizer=mr.keras.regularizers.L2(0.5))
    out = layer(X[:rows])
    assert values(layer) == [pytest.approx(0.5 * np.square(out).sum() / max(rows, 1))]
    layer.activity_regularizer = None
    layer(X)
    assert layer.losses == []


def test_the_activity_of_each_output_is_penalised() -> None:
    class Two(Layer):
        def call(self, inputs: Any) -> Any:
            return {"a": inputs, "b": [mr.reduce_max(inputs), 3]}

    layer = Two(activity_regularizer=mr.keras.regularizers.L1(1.0))
    layer(X)
    assert values(layer) == [X.sum() / 4.0, 11.0]
    with pytest.raises(ValueError, match="l7"):
        Two(activity_regularizer="l7")
