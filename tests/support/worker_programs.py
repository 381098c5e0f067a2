"""What workers run in tests: `launching.launch` starts them, and gives each what they take."""

import contextlib
import io
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from replica_cases import Case, train
from worker_loops import WAYS, run

import mirrored as mr
from mirrored.workers import connect

DEVICES: list[int] = []


def trained(cases: Sequence[tuple[Case, str]]) -> list[dict[str, Any]]:
    """Return what each case leaves, given with the dtype of its floats."""
    return [train(case, own_devices(), floatx, strategy_of) for case, floatx in cases]


def looped(names: Sequence[str]) -> dict[str, Any]:
    """Return what each way of training leaves."""
    return {name: run(WAYS[name], own_devices(), strategy_of) for name in names}


def filed(folder: Path) -> dict[str, Any]:
    """Train with everything that writes files, into a folder; return what a worker sees of it."""
    strategy = strategy_of()
    x = np.arange(12.0).reshape(6, 2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])
        model.compile("adam", "mse", metrics=["mae"])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        model.fit(
            *(x, x.sum(axis=1)),
            batch_size=4,
            epochs=2,
            callbacks=[
                mr.callbacks.CSVLogger(folder / "log.csv"),
                mr.callbacks.ModelCheckpoint(folder / "{epoch}.keras"),
                mr.callbacks.BackupAndRestore(folder / "backup", double_checkpoint=True),
            ],
        )
    checkpoint = mr.train.Checkpoint(model=model)
    manager = mr.train.CheckpointManager(checkpoint, folder / "checkpoints", max_to_keep=1)
    paths = [manager.save() for _ in range(2)]
    kept = {each.name: each.numpy() for each in model.variables}
    for each in model.variables:
        each.assign(mr.zeros_like(each))
    manager.restore_or_initialize()
    failure = ""
    try:
        model.save_weights(folder / "nowhere" / "x.safetensors")
    except (OSError, mr.errors.WorkerError) as error:
        failure = type(error).__name__
    return {
        "said": said.getvalue(),
        "files": sorted(str(each.relative_to(folder)) for each in folder.rglob("*")),
        "path": paths[-1],
        "kept": kept,
        "restored": {each.name: each.numpy() for each in model.variables},
        "failure": failure,
    }


def own_devices() -> int:
    """Return how many devices this worker is to have."""
    return DEVICES[connect().rank]


def strategy_of() -> mr.distribute.Strategy:
    """Return the strategy of all workers."""
    strategy = mr.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == sum(DEVICES)
    return strategy


def main(folder: Path) -> None:
    """Run what a folder says, and leave there what it returns."""
    program, devices, given = pickle.loads((folder / "task").read_bytes())
    DEVICES[:] = devices
    mr.config.experimental.set_simulated_gpus(own_devices())
    rank = connect().rank
    (folder / str(rank)).write_bytes(pickle.dumps(globals()[program](given)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
