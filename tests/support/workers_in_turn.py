"""What several workers compare, without processes: each one's program runs after the other's.

A worker gets its own values from all others, so nothing is ever found to differ while it runs, and
all sums are ones: what workers do with the same sums is the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from numpy.typing import NDArray

import mirrored as mr
from mirrored import _files, layers
from mirrored._logging import logger
from mirrored.distribute import multi_worker_strategy, worker_agreement
from mirrored.workers import connecting
from mirrored.workers.worker import Workers

# What a worker is about to do, and what it says of it, in order.
Compared = list[tuple[str, Mapping[str, Sequence[str]]]]


class WorkerInTurn(Workers):
    """One worker of several, which all have what it has.

    Args:
        rank: Its number.
        layout: The number of replicas of each worker.
    """

    def __init__(self, rank: int, layout: Sequence[int]) -> None:
        Workers.__init__(self, rank, ("a",) * len(layout), rank)
        self._layout = layout

    def gather(self, value: Any, what: str) -> list[Any]:
        """Return the value once per worker, with the number of replicas that each has."""
        if what == "replicas and their devices":
            return [(count, value[1]) for count in self._layout]
        return [value] * self.count

    def gather_arrays(self, array: NDArray[Any], what: str) -> list[NDArray[Any]]:
        """Return the array once per worker."""
        return [array] * self.count

    def _sum(self, vector: NDArray[Any], out: NDArray[Any], what: str) -> None:
        out.fill(1)


def compared_by(
    rank: int,
    layout: Sequence[int],
    program: Callable[[mr.distribute.Strategy], object],
    monkeypatch: pytest.MonkeyPatch,
) -> Compared:
    """Run a program as one worker of several; return what it compares with the others."""
    compared: Compared = []
    monkeypatch.setattr(connecting, "_connected", WorkerInTurn(rank, layout))
    # Workers write files through the first one, and the others log warnings alone.
    monkeypatch.setattr(_files, "_company", None)
    monkeypatch.setattr(logger, "level", logger.level)
    for module in (worker_agreement, multi_worker_strategy):
        monkeypatch.setattr(
            module, "check_alike", lambda _, facts, what: compared.append((what, facts))
        )
    mr.config.experimental.reset_devices()
    layers.reset_names()
    mr.random.set_seed(5)
    mr.config.experimental.set_simulated_gpus(layout[rank])
    program(mr.distribute.MultiWorkerMirroredStrategy())
    return compared


def differences(first: Compared, other: Compared) -> dict[str, set[str]]:
    """Return what differs of what both say, by what they are about to do."""
    found: dict[str, set[str]] = {}
    for (what, facts), (same, others) in zip(first, other, strict=True):
        assert what == same
        differing = {name for name in facts.keys() & others.keys() if facts[name] != others[name]}
        if differing:
            found.setdefault(what, set()).update(differing)
    return found
