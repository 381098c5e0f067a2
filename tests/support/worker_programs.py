"""What workers run in tests: `launching.launch` starts them, and gives each what they take."""

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replica_cases import Case, train

import mirrored as mr
from mirrored.workers import connect

OWN_DEVICES: list[int] = []


def trained(cases: Sequence[tuple[Case, str]]) -> list[dict[str, Any]]:
    """Return what each case leaves, given with the dtype of its floats."""
    rank = connect().rank

    def made() -> mr.distribute.Strategy:
        strategy = mr.distribute.MultiWorkerMirroredStrategy()
        assert strategy.num_replicas_in_sync == sum(OWN_DEVICES)
        return strategy

    return [train(case, OWN_DEVICES[rank], floatx, made) for case, floatx in cases]


def main(folder: Path) -> None:
    """Run what a folder says, and leave there what it returns."""
    program, devices, given = pickle.loads((folder / "task").read_bytes())
    OWN_DEVICES[:] = devices
    rank = connect().rank
    (folder / str(rank)).write_bytes(pickle.dumps(globals()[program](given)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
