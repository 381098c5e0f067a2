"""mirrored on the GPU: a recorded step on a batch that is there, and `fit` from host arrays.

`--device cpu` takes a simulated GPU, which says nothing about speed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[3]))
import mirrored as mr
from benchmarks.gpu.contenders import protocol
from benchmarks.gpu.workloads import starting_point
from benchmarks.workloads import Array, Workload, make_data


class Resident:
    """A recorded function of one step, through a strategy on the GPU.

    Args:
        workload: What is trained.
        precision: "float32", "tf32" or "bfloat16", here the policy mixed_bfloat16.
        names: The devices, each of which gets an equal part of the batch.
        collective: What sums between them; None: what fits them.
    """

    def __init__(
        self,
        workload: Workload,
        precision: str,
        names: Sequence[str] = ("GPU:0",),
        collective: mr.distribute.CrossDeviceOps | None = None,
    ) -> None:
        """Build the model, and bring its batch to the GPU."""
        self._strategy, self._model = build(workload, precision, names, collective)
        _, *batch = starting_point(workload)
        self._batch = tuple(self._distributed(array) for array in batch)
        model, optimizer = self._model, self._model.optimizer
        loss_of = mr.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

        def step(x: Any, y: Any) -> Any:
            with mr.GradientTape() as tape:
                losses = loss_of(y, model(x, training=True))
                loss = mr.nn.compute_average_loss(losses, global_batch_size=workload.batch)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        @mr.function
        def recorded(x: Any, y: Any) -> Any:
            return self._strategy.run(step, args=(x, y))

        self._step = recorded

    def _distributed(self, array: Array) -> Any:
        """Return an array's parts, each on its device."""
        parts = np.array_split(array, self._strategy.num_replicas_in_sync)

        def part(context: Any) -> Any:
            replica = context.replica_id_in_sync_group
            with mr.device(self._strategy.devices[replica]):
                return mr.identity(mr.constant(parts[replica]))

        return self._strategy.experimental_distribute_values_from_function(part)

    def _loss(self, losses: Any) -> float:
        """Return a step's loss, once it is there."""
        return sum(float(part) for part in self._strategy.experimental_local_results(losses))

    def losses(self, steps: int) -> list[float]:
        """Return the loss of each step."""
        return [self._loss(self._step(*self._batch)) for _ in range(steps)]

    def ask(self, steps: int) -> Any:
        """Ask for steps, wait for none of them, and return what the last one's loss will be."""
        loss: Any = None
        for _ in range(steps):
            loss = self._step(*self._batch)
        return loss

    def run(self, steps: int) -> int:
        """Take steps; the last loss is there when all of them are done."""
        self._loss(self.ask(steps))
        return steps


class Fit:
    """`fit` from arrays of the host, with all it does but the progress bar.

    Args:
        workload: What is trained.
        precision: As `Resident`'s.
    """

    def __init__(self, workload: Workload, precision: str) -> None:
        """Build the model."""
        self._workload = workload
        _, self._model = build(workload, precision)
        self._data = make_data(workload)

    def losses(self, steps: int) -> list[float]:
        """Return nothing: epochs have other losses than steps."""
        self.run(steps)
        return []

    def run(self, steps: int) -> int:
        """Train for whole epochs, about so many steps."""
        epochs = max(1, round(steps / self._workload.steps))
        x, y = self._data
        self._model.fit(x, y, batch_size=self._workload.batch, epochs=epochs, verbose=0)
        return epochs * self._workload.steps


def build(
    workload: Workload,
    precision: str,
    names: Sequence[str] = ("GPU:0",),
    collective: mr.distribute.CrossDeviceOps | None = None,
) -> tuple[mr.MirroredStrategy, mr.Model]:
    """Return a strategy on the GPU and a compiled model in its scope, with the initial weights."""
    mr.config.experimental.enable_tensor_float_32_execution(precision == "tf32")
    policy = "mixed_bfloat16" if precision == "bfloat16" else "float32"
    mr.keras.mixed_precision.set_global_policy(policy)
    strategy = mr.MirroredStrategy(list(names), collective)
    with strategy.scope():
        inputs = outputs = mr.layers.Input(shape=(workload.sizes[0],))
        for size in workload.sizes[1:-1]:
            outputs = mr.layers.Dense(size, activation=workload.activation)(outputs)
        model = mr.Model(inputs, mr.layers.Dense(workload.sizes[-1])(outputs))
        model.compile(
            mr.optim.SGD(workload.learning_rate),
            mr.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    model.set_weights(starting_point(workload)[0])
    return strategy, model


def make(workload: Workload, precision: str, mode: str) -> protocol.Session:
    """Return the session of a mode, "step" or "fit"."""
    return Fit(workload, precision) if mode == "fit" else Resident(workload, precision)


def facts() -> dict[str, Any]:
    """Return the version."""
    return {"version": mr.__version__}


if __name__ == "__main__":
    if protocol.parse_arguments().device == "cpu":
        mr.config.experimental.set_simulated_gpus(1)
    protocol.run(make, facts)
