"""Which gradients a step lets through: none of an empty shard, and not none at all.

A mean over no examples is NaN, and one NaN in a sum over replicas would spoil every weight.
"""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import devices


class Scaled(mr.layers.Layer):
    """Multiplies by a weight, and by a factor of 1 that a subclass computes from the batch."""

    def build(self, input_shape: Any) -> None:
        self.w = self.add_weight(shape=(), initializer="ones", name="w")

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return inputs * (self.w * self.one(inputs))


class ByMean(Scaled):
    """NaN, output and gradient, for a batch without examples."""

    def one(self, inputs: mr.Tensor) -> mr.Tensor:
        return mr.reduce_mean(inputs) / mr.reduce_mean(inputs)


class ByPlace(Scaled):
    """An error for a batch without examples, as there is no largest one."""

    def one(self, inputs: mr.Tensor) -> mr.Tensor:
        return mr.cast(mr.argmax(inputs, axis=0) * 0 + 1, inputs.dtype)


class ByMeeting(ByMean):
    """Meets the other replicas on the way, and so waits for those without examples too."""

    def one(self, inputs: mr.Tensor) -> mr.Tensor:
        context = mr.distribute.get_replica_context()
        if context is None:  # While the model is built.
            return super().one(inputs)
        total = context.all_reduce("sum", mr.reduce_sum(inputs))
        return super().one(inputs) * (total / total)


def train(layer: type[Scaled], replicas: int, simulate: Any) -> tuple[float, dict[str, Any]]:
    simulate(replicas)
    x = np.linspace(0.5, 1.5, 9, dtype=np.float32)[:, None]
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Input((1,)), layer()])
        model.compile(mr.optim.SGD(0.1), "mse", metrics=["mse"])
    # The last batch has one example: all replicas but the first have none.
    history = model.fit(x, 2.0 * x, batch_size=8, epochs=2, verbose=0, shuffle=False)
    np.testing.assert_allclose(
        model.predict(x, batch_size=8, verbose=0), x * model.get_weights()[0], rtol=1e-6
    )
    return float(model.get_weights()[0]), history.history


@cases(("replicas", "layer"), [(8, ByMean), (2, ByPlace), (4, ByMeeting)])
def test_an_empty_shard_adds_zeros(simulate: Any, replicas: int, layer: type[Scaled]) -> None:
    one, one_history = train(layer, 1, simulate)
    devices.reset_devices()
    many, many_history = train(layer, replicas, simulate)
    assert np.isfinite(one)
    assert many == pytest.approx(one, rel=1e-5)
    for name, values in one_history.items():
        assert many_history[name] == pytest.approx(values, rel=1e-5)


def by_numpy(y: mr.Tensor, p: mr.Tensor) -> mr.Tensor:
    return mr.constant((y.numpy() - p.numpy()) ** 2)


def stopped(y: mr.Tensor, p: mr.Tensor) -> mr.Tensor:
    return mr.square(y - mr.stop_gradient(p))


@cases(("loss", "eager"), [(by_numpy, True), (stopped, True), (stopped, False)])
def test_a_loss_without_any_gradient_is_an_error(simulate: Any, loss: Any, eager: bool) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])
        model.compile("sgd", loss, run_eagerly=eager)
    before = model.get_weights()
    with pytest.raises(ValueError, match=r"No gradients provided for any variable\. Received"):
        model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert int(model.optimizer.iterations) == 0


def test_the_error_does_not_call_spoilt_weights_good() -> None:
    """The square root has no finite gradient at 0, where the loss is finite."""

    def distance(y: mr.Tensor, p: mr.Tensor) -> mr.Tensor:
        return mr.sqrt(mr.reduce_sum(mr.square(y - p), axis=1))

    layer = mr.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = mr.Sequential([mr.layers.Input((2,)), layer])
    model.compile("sgd", distance)
    x, y = np.ones((4, 2)), np.zeros((4, 1))
    assert model.fit(x, y, verbose=0).history["loss"] == [0.0]
    with pytest.raises(mr.errors.NonFiniteLossError, match="but these are not finite either"):
        model.fit(x, y, verbose=0)
