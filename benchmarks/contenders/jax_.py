"""JAX: a compiled step with donated buffers, whose batch is sharded over the devices.

The data are on every device already; a step gathers its shard's rows, as XLA divides the work.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.contenders import protocol
from benchmarks.workloads import (
    ADAM_EPSILON,
    BETAS,
    NORM_EPSILON,
    Array,
    Workload,
    initial_weights,
)


def make_loss(workload: Workload) -> Any:
    """Return the mean loss of a batch as a function of weights, inputs and targets."""
    activation = jax.nn.relu if workload.activation == "relu" else jnp.tanh

    layers = workload.layers

    def loss(weights: list[Any], x: Any, y: Any) -> Any:
        for index, layer in enumerate(layers):
            kernel, bias = weights[2 * index : 2 * index + 2]
            if layer.convolves:
                x = convolved(workload, x, kernel) + bias
            else:
                x = x.reshape(len(x), -1) @ kernel + bias
            if index == len(layers) - 1:
                break
            if workload.normalized:
                scale, offset = weights[2 * (len(layers) + index) :][:2]
                examples = tuple(range(x.ndim - 1))
                x = jax.nn.standardize(x, axis=examples, epsilon=NORM_EPSILON) * scale + offset
            x = activation(x)
            if layer.pooled:
                x = pooled(x)
        if workload.loss == "mse":
            return jnp.mean((x - y) ** 2)
        logs = jax.nn.log_softmax(x)
        return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))

    return loss


def convolved(workload: Workload, x: Any, kernel: Any) -> Any:
    """Return images' convolution."""
    return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), workload.padding.upper(), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def pooled(x: Any) -> Any:
    """Return the largest values of 2 x 2 blocks."""
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def make_step(workload: Workload) -> Any:
    """Return the compiled step, which changes weights, slots and the epoch's loss in place."""
    gradient = jax.value_and_grad(make_loss(workload))
    update = _adam if workload.optimizer == "adam" else _sgd

    def step(state: Any, x: Any, y: Any, rows: Any) -> Any:
        weights, slots, steps, total = state
        loss, changes = gradient(weights, x[rows], y[rows])
        weights, slots = update(workload, weights, slots, changes, steps + 1)
        return weights, slots, steps + 1, total + loss * len(rows)

    return jax.jit(step, donate_argnums=0)


def _sgd(workload: Workload, weights: Any, slots: Any, changes: Any, step: Any) -> Any:
    (velocities,) = slots
    velocities = [
        workload.momentum * v - workload.learning_rate * g
        for v, g in zip(velocities, changes, strict=True)
    ]
    return [w + v for w, v in zip(weights, velocities, strict=True)], [velocities]


def _adam(workload: Workload, weights: Any, slots: Any, changes: Any, step: Any) -> Any:
    first, second = BETAS
    rate = workload.learning_rate * jnp.sqrt(1 - second**step) / (1 - first**step)
    means, squares = (
        [old + (new**power - old) * (1 - beta) for old, new in zip(slot, changes, strict=True)]
        for power, beta, slot in ((1, first, slots[0]), (2, second, slots[1]))
    )
    weights = [
        w - rate * m / (jnp.sqrt(s) + ADAM_EPSILON)
        for w, m, s in zip(weights, means, squares, strict=True)
    ]
    return weights, [means, squares]


class Jax:
    """Weights and slots on all devices, and the step that trains them."""

    def __init__(self, workload: Workload, replicas: int) -> None:
        """Place the initial weights; compiling is left to the first step."""
        self.workload = workload
        jax.config.update("jax_platforms", "cpu")
        if replicas > 1:
            jax.config.update("jax_num_cpu_devices", replicas)
            mesh = Mesh(np.array(jax.devices()), ("data",))
            self._sharded: Any = NamedSharding(mesh, PartitionSpec("data"))
            self._everywhere: Any = NamedSharding(mesh, PartitionSpec())
        else:
            self._sharded = self._everywhere = jax.devices()[0]
        weights = initial_weights(workload)
        self._count = len(weights)
        for layer in workload.layers[:-1] if workload.normalized else ():
            weights += [np.ones(layer.outputs, np.float32), np.zeros(layer.outputs, np.float32)]
        slots = [
            [np.zeros_like(weight) for weight in weights]
            for _ in range(2 if workload.optimizer == "adam" else 1)
        ]
        state = (weights, slots, np.float32(0), np.float32(0))
        self._state = jax.device_put(state, self._everywhere)
        self._step = make_step(workload)
        self._random = np.random.default_rng(0)

    def load(self, x: Array, y: Array) -> Any:
        """Return the data on all devices."""
        return jax.device_put((x, y), self._everywhere)

    def fit(self, data: Any, epochs: int, *, shuffle: bool) -> list[float]:
        """Train, and return the loss of each epoch."""
        x, y = data
        losses, size = [], self.workload.batch
        for _ in range(epochs):
            order = self._random.permutation(len(x)) if shuffle else np.arange(len(x))
            order = order.astype(np.int32)
            for start in range(0, len(x), size):
                rows = jax.device_put(order[start : start + size], self._sharded)
                self._state = self._step(self._state, x, y, rows)
            *state, total = self._state
            losses.append(float(total) / len(x))
            self._state = (*state, jax.device_put(np.float32(0), self._everywhere))
        return losses

    def weights(self) -> list[Array]:
        """Return kernel and bias of each layer."""
        return [np.asarray(array) for array in self._state[0][: self._count]]


def facts() -> dict[str, Any]:
    """Return the version and what the products run on."""
    return {"version": jax.__version__, "blas": "XLA's own kernels and pool of threads"}


if __name__ == "__main__":
    protocol.run(Jax, facts)
