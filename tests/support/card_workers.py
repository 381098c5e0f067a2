"""What workers on emulated cards train in tests: a program for `ranks.run_ranks`.

Each leaves what it made in a file of its number. The environment says how many cards a host has.
"""

import logging
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import stand_ins

import mirrored as mr

# Whole batches, one that is uneven, and one with fewer examples than replicas.
EXAMPLES, BATCH, EPOCHS = 17, 8, 1


def model_of(strategy: mr.distribute.Strategy, **options: Any) -> mr.Model:
    """Return a compiled model in which replicas meet on their way too."""
    mr.random.set_seed(5)
    mr.config.experimental.enable_tensor_float_32_execution(False)
    with strategy.scope():
        layers = [
            mr.layers.Input((5,)),
            mr.layers.Dense(7, activation="tanh", kernel_regularizer="l2"),
            mr.layers.BatchNormalization(),
            mr.layers.Dropout(0.3),
            mr.layers.Dense(3),
        ]
        model = mr.Sequential(layers)
        model.compile(mr.optim.SGD(0.05, momentum=0.9), "mse", metrics=["mae"], **options)
    return model


def fitted(strategy: mr.distribute.Strategy, floatx: str, **options: Any) -> dict[str, Any]:
    """Return what a training leaves, with what is predicted and evaluated after it."""
    mr.keras.backend.set_floatx(floatx)
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(EXAMPLES, 5)), rng.normal(size=(EXAMPLES, 3))
    model = model_of(strategy, **options)
    history = model.fit(
        x, y, batch_size=BATCH, epochs=EPOCHS, validation_data=(x[:6], y[:6]), verbose=0
    )
    found = {f"history {k}": np.asarray(v) for k, v in history.history.items()}
    found |= {f"{i}": each.numpy() for i, each in enumerate(model.variables)}
    found["outputs"] = model.predict(x, batch_size=BATCH, verbose=0)
    found["evaluation"] = np.asarray(model.evaluate(x, y, batch_size=BATCH, verbose=0))
    return found


def looped(strategy: mr.distribute.Strategy) -> dict[str, Any]:
    """Return what a recorded loop of one's own leaves, which sums on its way."""
    mr.keras.backend.set_floatx("float64")
    rows = np.random.default_rng(3).normal(size=(16, 4))
    with strategy.scope():
        v = mr.Variable(np.ones(4), aggregation=mr.VariableAggregation.MEAN)
        total_of_all = mr.metrics.Sum()
    dataset = mr.data.Dataset.from_tensor_slices(rows).batch(8)

    @mr.function
    def step(x: Any) -> Any:
        def replica(x: Any) -> Any:
            context = mr.distribute.get_replica_context()
            total = context.all_reduce("sum", mr.reduce_sum(x, axis=0))
            v.assign_add(0.1 * total)
            total_of_all.update_state(mr.reduce_sum(x * v))
            return mr.reduce_sum(x)

        return strategy.reduce("sum", strategy.run(replica, args=(x,)), axis=None)

    sums = [step(x).numpy() for x in strategy.experimental_distribute_dataset(dataset)]
    return {"v": v.numpy(), "sums": np.asarray(sums), "total": total_of_all.result().numpy()}


WAYS: dict[str, Callable[[mr.distribute.Strategy], dict[str, Any]]] = {
    "eager": lambda strategy: fitted(strategy, "float64", run_eagerly=True),
    "recorded": lambda strategy: fitted(strategy, "float64"),
    "float32": lambda strategy: fitted(strategy, "float32"),
    "loop": looped,
}


def all_of(strategy: mr.distribute.Strategy, ways: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what ways of training leave, by their names."""
    return {way: WAYS[way](strategy) for way in ways}


def main() -> None:
    """Train in the ways that a file names, and leave what was made."""
    logging.basicConfig(level=logging.DEBUG)
    stand_ins.install(compile_all=False)
    strategy = mr.distribute.MultiWorkerMirroredStrategy()
    rank = strategy.cluster_resolver.task_id
    Path(f"result.{rank}").write_bytes(
        pickle.dumps(all_of(strategy, Path("ways").read_text().split()))
    )
    strategy.close()
    print(strategy.num_replicas_in_sync, strategy.local_replicas)
    emulator = stand_ins.machine()
    if emulator is not None:
        print("sums:", emulator.nccl.calls["ncclAllReduce"] > 0)
        emulator.finish()


if __name__ == "__main__":
    main()
    sys.exit(os.EX_OK)
