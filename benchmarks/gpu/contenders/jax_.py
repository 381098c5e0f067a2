"""JAX on the GPU: a compiled step with donated weights.

bfloat16 is a cast of float32 weights and inputs inside the step, the way that its libraries do it.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))
import jax
import jax.numpy as jnp

from benchmarks.gpu.contenders import protocol
from benchmarks.gpu.workloads import starting_point
from benchmarks.workloads import Workload

# Left to itself JAX uses TF32 for float32.
MATMUL_PRECISION = {"float32": "float32", "tf32": "tensorfloat32", "bfloat16": "default"}


class Jax:
    """Weights, a batch, and the compiled step.

    Args:
        workload: What is trained.
        precision: "float32", "tf32" or "bfloat16".
    """

    def __init__(self, workload: Workload, precision: str) -> None:
        """Place the initial weights; compiling is left to the first step."""
        jax.config.update("jax_default_matmul_precision", MATMUL_PRECISION[precision])
        device = jax.devices()[0]
        self._weights, self._x, self._y = jax.device_put(starting_point(workload), device)
        self._step = make_step(workload, precision == "bfloat16")

    def losses(self, steps: int) -> list[float]:
        """Return the loss of each step."""
        return [float(self._take()) for _ in range(steps)]

    def run(self, steps: int) -> int:
        """Take steps, and wait for the last one's weights."""
        for _ in range(steps):
            self._take()
        jax.block_until_ready(self._weights)
        return steps

    def _take(self) -> Any:
        self._weights, loss = self._step(self._weights, self._x, self._y)
        return loss


def make_step(workload: Workload, bfloat16: bool) -> Any:
    """Return the compiled step, from weights and batch to new weights and the loss."""

    def loss_of(weights: list[Any], x: Any, y: Any) -> Any:
        if bfloat16:
            x = x.astype(jnp.bfloat16)
            weights = [weight.astype(jnp.bfloat16) for weight in weights]
        for index in range(0, len(weights), 2):
            x = x @ weights[index] + weights[index + 1]
            if index < len(weights) - 2:
                x = jax.nn.relu(x)
        logs = jax.nn.log_softmax(x.astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))

    gradient = jax.value_and_grad(loss_of)

    def step(weights: list[Any], x: Any, y: Any) -> Any:
        loss, changes = gradient(weights, x, y)
        rate = workload.learning_rate
        return [w - rate * g for w, g in zip(weights, changes, strict=True)], loss

    return jax.jit(step, donate_argnums=0)


def make(workload: Workload, precision: str, mode: str) -> protocol.Session:
    """Return the session of the only mode."""
    return Jax(workload, precision)


def facts() -> dict[str, Any]:
    """Return the version and what it runs on."""
    return {"version": jax.__version__, "platform": jax.devices()[0].platform}


def main() -> None:
    """Answer the driver."""
    device = protocol.parse_arguments().device
    jax.config.update("jax_platforms", device)  # Else it would fall back to the host.
    jax.devices()
    protocol.run(make, facts)


if __name__ == "__main__":
    main()
