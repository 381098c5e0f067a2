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
from benchmarks.workloads import Array, Workload, initial_weights


def make_loss(workload: Workload) -> Any:
    """Return the mean loss of a batch as a function of weights, inputs and targets."""
    activation = jax.nn.relu if workload.activation == "relu" else jnp.tanh

    def loss(weights: list[Any], x: Any, y: Any) -> Any:
        for index in range(0, len(weights), 2):
            x = x @ weights[index] + weights[index + 1]
            if index < len(weights) - 2:
                x = activation(x)
        if workload.loss == "mse":
            return jnp.mean((x - y) ** 2)
        logs = jax.nn.log_softmax(x)
        return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))

    return loss


def make_step(workload: Workload) -> Any:
    """Return the compiled step, which changes weights, velocities and the epoch's loss in place."""
    gradient = jax.value_and_grad(make_loss(workload))

    def step(state: Any, x: Any, y: Any, rows: Any) -> Any:
        weights, velocities, total = state
        loss, changes = gradient(weights, x[rows], y[rows])
        velocities = [
            workload.momentum * v - workload.learning_rate * g
            for v, g in zip(velocities, changes, strict=True)
        ]
        weights = [w + v for w, v in zip(weights, velocities, strict=True)]
        return weights, velocities, total + loss * len(rows)

    return jax.jit(step, donate_argnums=0)


class Jax:
    """Weights and velocities on all devices, and the step that trains them."""

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
        zeros = [np.zeros_like(each) for each in weights]
        self._state = jax.device_put((weights, zeros, np.float32(0)), self._everywhere)
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
            weights, velocities, total = self._state
            losses.append(float(total) / len(x))
            zero = jax.device_put(np.float32(0), self._everywhere)
            self._state = (weights, velocities, zero)
        return losses

    def weights(self) -> list[Array]:
        """Return kernel and bias of each layer."""
        return [np.asarray(each) for each in self._state[0]]


def facts() -> dict[str, Any]:
    """Return the version and what the products run on."""
    return {"version": jax.__version__, "blas": "XLA's own kernels and pool of threads"}


if __name__ == "__main__":
    protocol.run(Jax, facts)
