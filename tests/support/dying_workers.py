"""Training on workers of which some die at given places, and all that it leaves.

As a program it is started by Open MPI: each worker writes what it has at the end to a file.
"""

import itertools
import math
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import stand_ins
from event_files import scalars

import mirrored as mr
from mirrored.backends.communication.connection import Connection
from mirrored.workers import layout, mpi_workers, replacements, waiting
from mirrored.workers.meeting import Meeting
from mirrored.workers.mpi_workers import MPIWorkers


class Death(NamedTuple):
    """When a worker dies.

    Attributes:
        rank: Its first number.
        place: What it is doing, one of `PLACES`; or "timer".
        after: How often it did that before; of a timer, the seconds.
        by: The signal that it receives.
    """

    rank: int
    place: str
    after: float = 0
    by: int = signal.SIGKILL


# The methods in which a worker can die: the class, its method, and when: before or after it, or 0.4
# seconds after it begins.
_METHODS = {
    "before a sum": (Meeting, "sum", "before"),
    "in a sum": (Meeting, "_arrive", "after"),
    "with a sum that others lack": (Meeting, "sum", "after"),
    "between sum and update": (MPIWorkers, "_sum", "after"),
    "in a sum of cards": (Connection, "all_reduce", "after"),
    "in a gather": (MPIWorkers, "_finish", "after"),
    "while a file takes its place": (os, "replace", "before"),
    "while a new process starts": (replacements, "connected", "in"),
    "before it meets a new process": (MPIWorkers, "_accept", "before"),
}
_HOOKS = {
    "before the first step": "on_train_begin",
    "in a callback": "on_train_batch_end",
    "at the end of an epoch": "on_epoch_end",
    "in evaluate": "on_test_batch_end",
    "in predict": "on_predict_batch_end",
}
PLACES = (
    *(place for place in _METHODS if "new process" not in place and "cards" not in place),
    *_HOOKS,
    "while a step is recorded",
)


class Killer:
    """Kills this process at a place.

    Args:
        death: When; None: never.
    """

    def __init__(self, death: Death | None) -> None:
        self.death, self._left = death, 0 if death is None else death.after

    def at(self, place: str) -> None:
        """Note that this process is at a place."""
        if self.death is not None and self.death.place == place:
            self._left -= 1
            if self._left < 0:
                self._left = math.inf
                os.kill(os.getpid(), self.death.by)

    def arm(self) -> None:
        """Let methods look whether this process dies, or begin the time after which it does."""
        if self.death is not None and self.death.place == "timer":
            arguments = (os.getpid(), signal.SIGKILL)
            threading.Timer(self.death.after, os.kill, arguments).start()
        for place, (owner, name, when) in _METHODS.items():
            if self.death is not None and self.death.place == place:
                setattr(owner, name, self._watched(getattr(owner, name), place, when))

    def _watched(self, method: Callable[..., Any], place: str, when: str) -> Callable[..., Any]:
        @wraps(method)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if when == "before":
                self.at(place)
            elif when == "in":
                threading.Timer(0.4, self.at, (place,)).start()
            result = method(*args, **kwargs)
            if when == "after":
                self.at(place)
            return result

        return watched


class _Hooks(mr.callbacks.Callback):  # type: ignore[misc]
    """Notes the hooks of steps, and dies in one."""

    def __init__(self, killer: Killer) -> None:
        super().__init__()
        self.killer, self.steps, self.epoch = killer, [], -1
        for place, hook in _HOOKS.items():
            setattr(self, hook, self._at(place, getattr(self, hook)))

    def _at(self, place: str, hook: Callable[..., None]) -> Callable[..., None]:
        def called(*args: Any, **kwargs: Any) -> None:
            hook(*args, **kwargs)
            self.killer.at(place)

        return called

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps.append((self.epoch, batch))


class _Layer(mr.layers.Layer):  # type: ignore[misc]
    """Returns its input, and dies while it is recorded."""

    def __init__(self, killer: Killer) -> None:
        super().__init__()
        self.killer = killer

    def call(self, inputs: Any) -> Any:
        self.killer.at("while a step is recorded")
        return inputs


def train(strategy: Any, folder: Path, killer: Killer) -> dict[str, Any]:
    """Return what training, evaluating and predicting leave, with the contents of files."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(53, 6)), random.integers(0, 3, 53)
    mr.keras.utils.set_random_seed(5)
    with strategy.scope():
        model = mr.Sequential(
            [
                mr.layers.Input(shape=(6,)),
                mr.layers.Dense(7, activation="relu"),
                _Layer(killer),
                mr.layers.Dropout(0.3),
                mr.layers.BatchNormalization(),
                mr.layers.Dense(3),
            ]
        )
        loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(mr.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    hooks = _Hooks(killer)
    killer.arm()
    history = model.fit(
        *(x, y),
        batch_size=8,
        epochs=2,
        validation_data=(x[:16], y[:16]),
        verbose=0,
        callbacks=[
            hooks,
            mr.callbacks.BackupAndRestore(folder / "backup", save_freq=4),
            mr.callbacks.CSVLogger(folder / "log.csv"),
            mr.callbacks.TensorBoard(folder / "board", update_freq=3),
            mr.callbacks.ModelCheckpoint(folder / "best.weights.h5", save_weights_only=True),
            mr.callbacks.ModelCheckpoint(folder / "{epoch}.weights.h5", save_weights_only=True),
        ],
    )
    evaluated = model.evaluate(x, y, verbose=0, callbacks=[hooks])
    predicted = model.predict(x, verbose=0, callbacks=[hooks])
    model.save_weights(folder / "end.weights.h5")
    own = [*model.get_weights(), *(variable.numpy() for variable in model.optimizer.variables)]
    arrays = {f"weight {i}": value for i, value in enumerate(own)}
    arrays |= {key: np.array(values) for key, values in history.history.items()}
    for path in sorted(folder.glob("*.weights.h5")):
        model.load_weights(path)
        arrays |= {f"{path.name} {i}": value for i, value in enumerate(model.get_weights())}
    rows = (folder / "log.csv").read_text("utf-8").splitlines()
    # A worker that takes over may write some events again.
    written = {row for path in folder.glob("board/*/*") for row in scalars(path)}
    arrays["board"] = np.array([[step, value] for _, step, value in sorted(written)])
    arrays["log"] = np.array([[float(cell) for cell in row.split(",")] for row in rows[1:]])
    return {**arrays, "results": np.array(evaluated), "outputs": predicted, "steps": hooks.steps}


def _with_dropout() -> Any:
    """Return a network from 6 numbers to one."""
    layers = [mr.layers.Dense(7, "tanh"), mr.layers.Dropout(0.3), mr.layers.Dense(1)]
    return mr.Sequential([mr.layers.Input(shape=(6,)), *layers])


def loop(strategy: Any, folder: Path, killer: Killer) -> dict[str, Any]:
    """Return what a custom training loop leaves: its steps are taken again where workers die."""
    random = np.random.default_rng(1)
    x, y = random.normal(size=(60, 6)), random.normal(size=(60, 1))
    mr.keras.utils.set_random_seed(6)
    with strategy.scope():
        model = _with_dropout()
        optimizer = mr.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
        seen, total = mr.metrics.Sum(), mr.metrics.Sum()
    dataset = mr.data.Dataset.from_tensor_slices((x, y)).shuffle(60).batch(12)
    recorded_data, eager_data = map(
        strategy.experimental_distribute_dataset, (dataset, dataset.repeat())
    )
    eager_batches = iter(eager_data)
    manager = mr.train.CheckpointManager(mr.train.Checkpoint(model=model), folder, max_to_keep=1)

    def of_replica(x: Any, y: Any) -> Any:
        with mr.GradientTape() as tape:
            loss = mr.reduce_sum((model(x, training=True) - y) ** 2) / 12
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        seen.update_state(x)
        return loss

    @mr.function  # type: ignore[untyped-decorator]
    def recorded(x: Any, y: Any) -> Any:
        return strategy.reduce("sum", strategy.run(of_replica, (x, y)), axis=None)

    @mr.distribute.elastic  # type: ignore[untyped-decorator]
    def step(batches: Any) -> float:
        killer.at("in a callback")
        return float(recorded(*next(batches)))

    @mr.distribute.elastic  # type: ignore[untyped-decorator]
    def eager_step(batches: Any) -> float:
        return float(strategy.reduce("sum", strategy.run(of_replica, next(batches)), axis=None))

    killer.arm()
    losses = []
    for number in range(6 if manager.latest_checkpoint else 0, 12):  # As programs that go on.
        time.sleep(0.02)  # For deaths at random.
        if number % 5 == 0:  # Another pass.
            batches = iter(recorded_data)
        losses.append(step(batches) if number % 4 else eager_step(eager_batches))
        total.update_state(losses[-1])
        if number == 5:
            manager.save()
    own = [*model.get_weights(), *(variable.numpy() for variable in optimizer.variables)]
    arrays = {f"weight {i}": value for i, value in enumerate(own)}
    return {**arrays, "seen": float(seen.result()), "sum": float(total.result()), "steps": losses}


def pretend_hosts() -> None:
    """Let pairs of workers share memory, and send messages to the others."""
    arrange, number = layout.arrange, int(os.environ["OMPI_COMM_WORLD_RANK"])

    def arranged(mpi: Any, world: Any, together: Any) -> Any:
        calls = itertools.count()

        def split(comm: Any, operation: Any) -> Any:
            if next(calls) == 1:  # The one that finds out who shares memory.
                return together(comm, lambda: comm.Split(number // 2, comm.Get_rank()))
            return together(comm, operation)

        return arrange(mpi, world, split)

    layout.arrange = mpi_workers.arrange = arranged


class _Largest(mr.metrics.Metric):  # type: ignore[misc]
    """Adds up the largest output of each batch: shards of a batch do not add up to it."""

    def __init__(self) -> None:
        super().__init__(name="largest")
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.total.assign_add(mr.reduce_max(y_pred))

    def result(self) -> Any:
        return self.total


# The sums count examples, the others steps.
_STATES = [
    *(("SUM", dtype, (2,)) for dtype in ("int64", "int32", "uint8")),
    *(("MEAN", dtype, ()) for dtype in ("float64", "float16")),
    *(("ONLY_FIRST_REPLICA", dtype, (2, 1)) for dtype in ("int64", "float32", "int8")),
]


class _Counting(mr.Model):  # type: ignore[misc]
    """Counts with variables of its replicas in a custom step."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = mr.layers.Dense(1, activation="sigmoid")
        self.states = [
            mr.Variable(
                np.zeros(shape, dtype),
                synchronization=mr.VariableSynchronization.ON_READ,
                aggregation=mr.VariableAggregation[op],
                trainable=False,
            )
            for op, dtype, shape in _STATES
        ]
        self.squares = mr.metrics.Sum(name="squares")

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def train_step(self, data: Any) -> Any:
        logs = super().train_step(data)
        self.squares.update_state(self(data[0]) ** 2)
        for state in self.states:
            is_sum = state.aggregation is mr.VariableAggregation.SUM
            number = mr.reduce_sum(mr.ones_like(data[1])) if is_sum else mr.constant(1)
            state.assign_add(mr.ones(state.shape, state.dtype) * mr.cast(number, state.dtype))
        return {**logs, "squares": self.squares.result()}


def count(strategy: Any, folder: Path, killer: Killer) -> dict[str, Any]:
    """Return what models leave whose replicas count: recorded, and op by op."""
    del folder
    random = np.random.default_rng(2)
    x, y = random.normal(size=(29, 6)), random.integers(0, 2, (29, 1))
    arrays, hooks = {}, _Hooks(killer)
    killer.arm()
    for eager in (False, True):
        mr.keras.utils.set_random_seed(7)
        with strategy.scope():
            model = _Counting()
            optimizer = mr.optimizers.Adam(0.01)
            metrics = [mr.metrics.AUC(name="auc"), _Largest()]
            model.compile(optimizer, "mse", metrics=metrics, run_eagerly=eager)
        options = {"batch_size": 8, "verbose": 0, "callbacks": [hooks]}
        history = model.fit(x, y, epochs=2, validation_data=(x[:20], y[:20]), **options)
        values = {**history.history, "evaluated": model.evaluate(x, y, **options)}
        values |= {f"state {i}": state.numpy() for i, state in enumerate(model.states)}
        arrays |= {f"{key}, eager={eager}": np.array(value) for key, value in values.items()}
    return {**arrays, "steps": hooks.steps}


def resize(strategy: Any, folder: Path, killer: Killer) -> dict[str, Any]:
    """Return what a fit leaves to which a worker joins, and which then the first one leaves."""
    del folder
    random = np.random.default_rng(3)
    x, y = random.normal(size=(53, 6)), random.normal(size=(53, 1))
    mr.keras.utils.set_random_seed(8)
    with strategy.scope():
        model = _with_dropout()
        model.compile(mr.optimizers.Adam(0.01), "mse")

    def change(epoch: int, logs: Any) -> None:
        if hasattr(strategy, "grow"):
            strategy.grow(1) if epoch == 0 else epoch == 1 and strategy.release(0)

    hooks = _Hooks(killer)
    callbacks = [hooks, mr.callbacks.LambdaCallback(on_epoch_end=change)]
    history = model.fit(x, y, batch_size=8, epochs=4, verbose=0, callbacks=callbacks)
    arrays = {f"weight {i}": value for i, value in enumerate(model.get_weights())}
    return {**arrays, "loss": np.array(history.history["loss"]), "steps": hooks.steps}


# Which of 6 batches each worker has of its own, by the number of workers; and those of each step
# of two epochs where the second one of three dies after the first step.
_PARTS = {2: [[0, 3, 4], [1, 2, 5]], 3: [[0, 3], [1, 4], [2, 5]]}
_STEPS = [[[0, 1, 2], [3, 5]], [[0, 1], [3, 2], [4, 5]]]


def own(strategy: Any, folder: Path, killer: Killer) -> dict[str, Any]:
    """Return what a fit leaves on batches that a function makes for each of three workers."""
    del folder
    random = np.random.default_rng(4)
    x, y = random.normal(size=(6, 4, 6)), random.normal(size=(6, 4, 1))
    mr.keras.utils.set_random_seed(9)
    with strategy.scope():
        layers = [mr.layers.Dense(7, "tanh"), mr.layers.Dense(1)]
        model = mr.Sequential([mr.layers.Input(shape=(6,)), *layers])
        model.compile(mr.optimizers.SGD(0.1, momentum=0.9), "mse")
    hooks = _Hooks(killer)
    options = {"callbacks": [hooks], "verbose": 0}
    killer.arm()
    if hasattr(strategy, "workers"):
        data = strategy.distribute_datasets_from_function(
            lambda part: [
                (x[i], y[i]) for i in _PARTS[part.num_input_pipelines][part.input_pipeline_id]
            ]
        )
        losses = model.fit(data, epochs=2, **options).history["loss"]
    else:
        losses = []
        for epoch, steps in enumerate(_STEPS):
            data = [(np.concatenate(x[step]), np.concatenate(y[step])) for step in steps]
            fitted = model.fit(iter(data), initial_epoch=epoch, epochs=epoch + 1, **options)
            losses += fitted.history["loss"]
    arrays = {f"weight {i}": value for i, value in enumerate(model.get_weights())}
    return {**arrays, "loss": np.array(losses), "steps": hooks.steps}


def off(strategy: Any, folder: Path, killer: Killer) -> dict[str, Any]:
    """Return what a loop leaves on a dataset of each of two workers, the second dies in step 3."""
    del folder
    x = np.random.default_rng(5).normal(size=(2, 12, 3))
    with strategy.scope():
        weight = mr.Variable(np.ones(3))

    @mr.function  # type: ignore[untyped-decorator]
    def recorded(rows: Any) -> Any:
        total = strategy.run(lambda part: mr.reduce_sum(mr.tanh(part * weight)), (rows,))
        total = strategy.reduce("sum", total, axis=None)
        weight.assign_add([total / 10, total / 20, total / 30])
        return total

    @mr.distribute.elastic  # type: ignore[untyped-decorator]
    def step(batches: Any) -> float:
        return float(recorded(next(batches)))

    killer.arm()
    if hasattr(strategy, "workers"):
        options = mr.data.Options()
        options.experimental_distribute.auto_shard_policy = mr.data.experimental.AutoShardPolicy.OFF
        data = mr.data.Dataset.from_tensor_slices(x[strategy.workers.rank]).batch(4)
        data = strategy.experimental_distribute_dataset(data.with_options(options))
    else:  # Of each batch a replica gets a half in every step.
        data = [x[: 1 + (i < 2), 2 * i : 2 * i + 2].reshape(-1, 3) for i in range(6)]
        data = strategy.experimental_distribute_dataset(data)
    batches = iter(data)
    steps = [step(batches) for _ in range(6)]
    return {"weight": weight.numpy(), "left": len([*batches]), "steps": steps}


KINDS = {"fit": train, "loop": loop, "count": count, "resize": resize, "own": own, "off": off}


def main(folder: Path) -> None:
    """Take the runs that a file has, in which workers die, and write what this one has."""
    if os.environ.get("PRETEND_HOSTS"):
        pretend_hosts()
    stand_ins.install(compile_all=False)
    waiting._AT_ONCE, waiting._YIELDING = 1, 0.0  # Who waits leaves the cores to the others.
    policy: str
    least: int
    runs: list[tuple[str, int | None, list[Death]]]
    policy, least, runs = pickle.loads((folder / "runs").read_bytes())
    mr.keras.backend.set_floatx("float64")
    strategy, results = None, []
    first: int | str | None = None  # The number at first, or the name of one that joined later.
    for number, (kind, replicas, deaths) in enumerate(runs):
        seconds = 15 if any(death.by == signal.SIGSTOP for death in deaths) else 600
        strategy = mr.distribute.MultiWorkerMirroredStrategy(
            on_worker_failure=policy,
            min_workers=least,
            replicas=replicas,
            communication_options=mr.distribute.experimental.CommunicationOptions(
                timeout_seconds=seconds
            ),
        )
        if first is None:
            is_new = strategy.workers.welcome is not None
            first = f"_new{os.getpid()}" if is_new else strategy.workers.rank
        own = folder / f"run{number}"
        own.mkdir(exist_ok=True)
        strategy.workers.barrier("the folder is there")
        killer = Killer(next((death for death in deaths if death.rank == first), None))
        try:
            results.append(KINDS[kind](strategy, own, killer))
        except mr.errors.WorkerError as error:
            (folder / f"worker{first}").write_bytes(pickle.dumps([error]))
            raise
    (folder / f"worker{first}").write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
