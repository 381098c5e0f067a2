"""Drawing a graph makes no device: what is computed may still be told where."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
import mirrored.compat.v1 as tf
from mirrored.devices.device_registry import registry
from mirrored.layers import Dense, Flatten, Input, Layer, Rescaling


class Doubling(Layer):
    """Computes in several ways, without weights."""

    def call(self, inputs: Any) -> Any:
        """Return twice the inputs."""
        with mr.device("GPU:1"):
            twice = inputs + mr.convert_to_tensor(np.ones(4, np.float32)) * inputs
        return mr.cond(mr.reduce_sum(twice) > 0.0, lambda: twice, lambda: 2.0 * inputs)


def _functional() -> Any:
    x = Input((4,))
    both = mr.concat([x @ np.eye(4, dtype=np.float32), mr.nn.softmax(x * 2.0)], axis=-1)
    rows = mr.reshape(both, (mr.shape(x)[0], 2, 4))
    return mr.Model(x, Flatten()(rows) + mr.tile(x, [1, 2]))


def _training() -> Any:
    x = tf.placeholder(tf.float32, [None, 3])
    outputs = tf.layers.dense(tf.nn.relu(x * [1.0, 2.0, 3.0]), 2)
    loss = tf.losses.mean_squared_error(tf.constant([[1.0, 2.0]] * 5), outputs[:5])
    tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
    tf.Print(loss, [loss, tf.py_func(lambda x: x, [x], tf.float32)])
    tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
    tf.cond(loss > 1.0, lambda: loss, lambda: 2.0 * loss)
    return tf.random_normal([2], seed=3), tf.global_variables_initializer()


DRAWINGS: dict[str, Callable[[], Any]] = {
    "operations": _functional,
    "a layer's call": lambda: Doubling()(Input((4,))),
    "a layer of constants": lambda: Rescaling(0.5)(Input((4,))),
    "a graph of TensorFlow 1": _training,
}


@pytest.mark.behaviour("drawing-makes-no-device")
@cases("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_drawing_makes_no_device(draw: Callable[[], Any]) -> None:
    with tf.Graph().as_default():
        draw()
        assert not registry.initialised
        mr.config.experimental.set_simulated_gpus(2)  # They may still be set.
        assert len(mr.config.list_logical_devices("GPU")) == 2
        draw()  # On devices it goes as well.


@pytest.mark.behaviour("drawing-makes-no-device")
def test_a_variable_that_a_call_makes_is_on_a_device() -> None:
    class Making(Layer):
        """Makes weights in its first call."""

        inner = None

        def call(self, inputs: Any) -> Any:
            """Return an affine function of the inputs."""
            self.inner = self.inner or Dense(3)
            return self.inner(inputs * 2.0) + 1.0

    mr.config.experimental.set_simulated_gpus(1)
    layer, x = Making(), Input((4,))
    model = mr.Model(x, mr.reduce_sum(layer(mr.square(x)), axis=-1))
    assert registry.initialised
    assert layer.inner is not None
    assert {each.device[-5:] for each in layer.inner.weights} == {"GPU:0"}
    given = np.ones((2, 4), np.float32)
    expected = (given * 2.0) @ layer.inner.kernel.numpy() + 1.0
    np.testing.assert_allclose(model(given).numpy(), expected.sum(axis=1), rtol=1e-6)


def test_what_was_drawn_before_runs_where_it_is_told(bits: Callable[..., Any]) -> None:
    model = _functional()
    given = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
    mr.config.experimental.set_simulated_gpus(2)
    results = []
    for device in ("GPU:1", "CPU:0"):
        with mr.device(device):
            results.append(model(given))
    assert [each.device[-5:] for each in results] == ["GPU:1", "CPU:0"]
    assert bits(results[:1]) == bits(results[1:])


def unknown(*shape: int | None) -> Any:
    return mr.keras.Input(batch_shape=shape)


ops = mr.keras.ops
# Sizes that a call needs to be those of others, with Keras' shapes.
MEETING: dict[str, tuple[Callable[[], Any], list[tuple[int | None, ...]]]] = {
    "a sum": (lambda: unknown(None, 3) + unknown(2, None), [(2, 3)]),
    "a product": (lambda: unknown(None, 3, None) * unknown(2, None, 5), [(2, 3, 5)]),
    "one and itself": (lambda: (x := unknown(None, None)) + ops.transpose(x), [(None, None)]),
    "matrices": (lambda: ops.matmul(unknown(None, 3), unknown(None, 2)), [(None, 2)]),
    "einsum": (lambda: ops.einsum("ij,jk->ik", unknown(None, 3), unknown(None, 5)), [(None, 5)]),
    "parts": (lambda: ops.unstack(unknown(None, None), num=3, axis=1), [(None,)] * 3),
    "glu": (lambda: ops.glu(unknown(None, None)), [(None, None)]),
    "hsplit": (lambda: ops.hsplit(unknown(None, None), 2), [(None, None)] * 2),
    "diag": (lambda: ops.diag(unknown(None, 3)), [(None,)]),
}


@cases(("call", "shapes"), MEETING.values(), ids=MEETING)
def test_unknown_sizes_meet_known_ones(call: Callable[[], Any], shapes: Any) -> None:
    assert [each.shape for each in mr.nest.flatten(call())] == shapes
