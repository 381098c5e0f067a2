"""mirrored on simulated GPUs, through compile and fit as users call them.

It also measures the all-reduce of the strategy against a copy of the same bytes.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import numpy as np

import mirrored as mr
from benchmarks.contenders import protocol
from benchmarks.contenders.blas import blas_facts
from benchmarks.workloads import Array, Workload, initial_weights


class Mirrored:
    """A compiled model in the scope of a strategy."""

    def __init__(self, workload: Workload, replicas: int) -> None:
        """Build it, with the initial weights."""
        self.workload = workload
        mr.config.experimental.set_simulated_gpus(replicas)
        self.strategy = mr.MirroredStrategy()
        if self.strategy.num_replicas_in_sync != replicas:
            raise RuntimeError(f"there are {self.strategy.num_replicas_in_sync} replicas")
        with self.strategy.scope():
            inputs = outputs = mr.layers.Input(shape=(workload.sizes[0],))
            for size in workload.sizes[1:-1]:
                outputs = mr.layers.Dense(size, activation=workload.activation)(outputs)
            outputs = mr.layers.Dense(workload.sizes[-1])(outputs)
            self.model = mr.Model(inputs, outputs)
            self.model.compile(
                optimizer=mr.optim.SGD(workload.learning_rate, momentum=workload.momentum),
                loss="mse"
                if workload.loss == "mse"
                else mr.losses.SparseCategoricalCrossentropy(from_logits=True),
            )
        self.model.set_weights(initial_weights(workload))

    def load(self, x: Array, y: Array) -> Any:
        """Return the arrays as they are."""
        return x, y

    def fit(self, data: Any, epochs: int, *, shuffle: bool) -> list[float]:
        """Train, and return the loss of each epoch."""
        x, y = data
        history = self.model.fit(
            x,
            y,
            batch_size=self.workload.batch,
            epochs=epochs,
            shuffle=shuffle,
            verbose=0,
        )
        return list(history.history["loss"])

    def weights(self) -> list[Array]:
        """Return kernel and bias of each layer."""
        return list(self.model.get_weights())

    def all_reduce(self, size: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """Return a function that sums tensors of `size` bytes, and one that copies as many."""
        source = np.ones(size // 4, np.float32)
        target = np.zeros_like(source)
        tensors = []
        for device in self.strategy.devices:
            with mr.device(device):
                tensors.append(mr.identity(mr.constant(source)))
        values = mr.distribute.PerReplica(tensors)
        return (
            lambda: self.strategy.batch_all_reduce("sum", [values]),
            lambda: np.copyto(target, source),
        )


def facts() -> dict[str, Any]:
    """Return version, BLAS and threads."""
    return {"version": mr.__version__, "numpy": np.__version__, "blas": blas_facts()}


if __name__ == "__main__":
    protocol.run(Mirrored, facts)
