"""What workers run in tests: `launching.launch` starts them, and gives each what they take."""

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    rank = connect().rank
    (folder / str(rank)).write_bytes(pickle.dumps(globals()[program](given)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
