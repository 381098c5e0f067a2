"""mirrored on simulated GPUs, through compile and fit as users call them, or a loop of their own.

It also measures the all-reduce of the strategy against a copy of the same bytes.
"""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import numpy as np

import mirrored as mr
from benchmarks.contenders import protocol, workers
from benchmarks.contenders.blas import blas_facts
from benchmarks.workloads import Array, Layer, Workload, initial_weights


class Mirrored:
    """A compiled model in the scope of a strategy.

    Args:
        workload: What is trained.
        replicas: On how many replicas.
        workers: Over how many processes these are spread evenly.
        fixed: How many replicas share the devices; None: there is one per device.
        executor: Who runs recorded steps.
    """

    def __init__(
        self,
        workload: Workload,
        replicas: int,
        workers: int = 1,
        fixed: int | None = None,
        executor: str = "auto",
    ) -> None:
        """Build it, with the initial weights."""
        self.workload = workload
        mr.config.experimental.set_simulated_gpus(replicas // workers)
        self.strategy: Any = (
            mr.MirroredStrategy(replicas=fixed, executor=executor)
            if workers == 1
            else mr.distribute.MultiWorkerMirroredStrategy()
        )
        if self.strategy.num_replicas_in_sync != (fixed or replicas):
            raise RuntimeError(f"there are {self.strategy.num_replicas_in_sync} replicas")
        with self.strategy.scope():
            inputs = outputs = mr.layers.Input(shape=workload.shape)
            for layer in workload.layers[:-1]:
                outputs = hidden_layer(workload, layer, outputs)
            outputs = mr.layers.Dense(workload.sizes[-1])(flat(outputs))
            self.model = mr.Model(inputs, outputs)
            self.model.compile(optimizer=make_optimizer(workload), loss=make_loss(workload))
        kinds = (mr.layers.Dense, mr.layers.Conv2D)
        weighted = [layer for layer in self.model.layers if isinstance(layer, kinds)]
        weights = initial_weights(workload)
        for index, target in enumerate(weighted):
            target.set_weights(weights[2 * index : 2 * index + 2])

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


class InWorkers(Mirrored):
    """The same model in several processes."""

    strategy: mr.distribute.MultiWorkerMirroredStrategy

    def sums(self, sizes: list[int]) -> list[float]:
        """Return the seconds of a sum between the workers, for each of so many bytes."""
        from mirrored.workers.measuring import measure

        return [sums.seconds for sums in measure(self.strategy.workers, sizes, turns=1)]


class ShortFits(Mirrored):
    """The same model, whose `fit` is called again and again for a few steps each time.

    Args:
        workload: What is trained.
        replicas: On how many replicas.
        steps: How many steps a call of `fit` takes.
    """

    def __init__(self, workload: Workload, replicas: int, steps: int) -> None:
        """Build the model."""
        super().__init__(workload, replicas)
        self.rows = steps * workload.batch

    def fit(self, data: Any, epochs: int, *, shuffle: bool) -> list[float]:
        """Train on each part of the data by itself; return the loss of each epoch."""
        x, y = data
        parts = [
            (x[start : start + self.rows], y[start : start + self.rows])
            for start in range(0, len(x), self.rows)
        ]
        fit, losses = super().fit, []
        for _ in range(epochs):
            sums = [fit(part, 1, shuffle=shuffle)[0] * len(part[0]) for part in parts]
            losses.append(sum(sums) / len(x))
        return losses


def hidden_layer(workload: Workload, layer: Layer, inputs: Any) -> Any:
    """Return what a hidden layer of a workload makes of its inputs, and pooling after it."""
    activation = None if workload.normalized else workload.activation
    if layer.convolves:
        convolve = mr.layers.Conv2D(
            layer.outputs, 3, padding=workload.padding, activation=activation
        )
        outputs = convolve(inputs)
    else:
        outputs = mr.layers.Dense(layer.outputs, activation=activation)(flat(inputs))
    if workload.normalized:
        outputs = mr.layers.BatchNormalization()(outputs)
        outputs = mr.layers.Activation(workload.activation)(outputs)
    return mr.layers.MaxPooling2D()(outputs) if layer.pooled else outputs


def flat(inputs: Any) -> Any:
    """Return a row for each example."""
    return mr.layers.Flatten()(inputs) if len(inputs.shape) > 2 else inputs


def make_optimizer(workload: Workload) -> mr.optim.Optimizer:
    """Return a workload's optimizer."""
    if workload.optimizer == "adam":
        return mr.optim.Adam(workload.learning_rate)
    return mr.optim.SGD(workload.learning_rate, momentum=workload.momentum)


def make_loss(workload: Workload, reduction: str = "sum_over_batch_size") -> mr.losses.Loss:
    """Return a workload's loss."""
    if workload.loss == "mse":
        return mr.losses.MeanSquaredError(reduction)
    return mr.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)


class Loop(Mirrored):
    """The same model in a loop of its own, as one is written for TensorFlow.

    Args:
        workload: What is trained.
        replicas: On how many replicas.
        steps: How many steps a recorded function takes in a call.
    """

    def __init__(self, workload: Workload, replicas: int, steps: int) -> None:
        """Build the model, the metric and the function."""
        super().__init__(workload, replicas)
        self.steps = steps
        model, optimizer = self.model, self.model.optimizer
        with self.strategy.scope():
            self.mean = mr.metrics.Mean()
        loss_of = make_loss(workload, "none")

        def step(x: Any, y: Any) -> None:
            with mr.GradientTape() as tape:
                losses = loss_of(y, model(x, training=True))
                loss = mr.nn.compute_average_loss(losses, global_batch_size=workload.batch)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            self.mean.update_state(losses)

        @mr.function
        def one_step(x: Any, y: Any) -> None:
            self.strategy.run(step, args=(x, y))

        @mr.function
        def several_steps(batches: Any) -> None:
            for _ in range(steps):
                self.strategy.run(step, args=next(batches))

        self.one_step, self.several_steps = one_step, several_steps

    def load(self, x: Array, y: Array) -> Any:
        """Return batches, in order and out of it: they are made once, as TensorFlow's are."""
        dataset = mr.data.Dataset.from_tensor_slices((x, y))
        return {
            shuffle: self.strategy.experimental_distribute_dataset(
                (dataset.shuffle(len(x)) if shuffle else dataset).batch(self.workload.batch)
            )
            for shuffle in (False, True)
        }

    def fit(self, data: Any, epochs: int, *, shuffle: bool) -> list[float]:
        """Train, and return the loss of each epoch."""
        batches = data[shuffle]
        losses = []
        for _ in range(epochs):
            self.mean.reset_state()
            iterator = iter(batches)
            if self.steps > 1:
                for _ in range(len(batches) // self.steps):
                    self.several_steps(iterator)
            for x, y in iterator:
                self.one_step(x, y)
            losses.append(float(self.mean.result()))
        return losses


def facts() -> dict[str, Any]:
    """Return version, BLAS and threads."""
    return {"version": mr.__version__, "numpy": np.__version__, "blas": blas_facts()}


def facts_of_workers() -> dict[str, Any]:
    """Return version, BLAS, threads and MPI."""
    from mpi4py import MPI

    from mirrored.workers.launch import library

    return facts() | {"mpi": library(MPI)}


def run_workers(count: int, *, apart: bool) -> None:
    """Answer the driver with several workers, each of which does what is asked for.

    Args:
        count: How many there are.
        apart: Whether sums between them go as messages.
    """
    if not workers.is_worker():
        workers.start(count, apart=apart)
    connected = workers.connect()
    requests = workers.Requests(connected)

    def serve(contender: Any, answers: Any) -> None:
        if connected.is_chief:
            protocol.serve(contender, answers, requests.send)
            return
        with open(os.devnull, "w") as nowhere:
            protocol.serve(contender, nowhere, requests=requests)

    protocol.run(functools.partial(InWorkers, workers=count), facts_of_workers, serve)


if __name__ == "__main__":
    arguments = protocol.parse_arguments()
    make: Callable[[Workload, int], Mirrored] = Mirrored
    if arguments.workers > 1:
        run_workers(arguments.workers, apart=arguments.apart)
        sys.exit()
    if arguments.steps_a_call:
        make = functools.partial(Loop, steps=arguments.steps_a_call)
    elif arguments.fixed_replicas:
        make = functools.partial(Mirrored, fixed=arguments.fixed_replicas)
    elif arguments.steps_a_fit:
        make = functools.partial(ShortFits, steps=arguments.steps_a_fit)
    protocol.run(make, facts)
