"""What the model says of many cards: with a batch for each, and with one batch for all."""

import functools

from benchmarks.scaling.assumptions import H100, cluster
from benchmarks.scaling.step import Timeline, step_seconds, timeline
from benchmarks.workloads import Workload


@functools.cache
def _timeline(workload: Workload, rows: float) -> Timeline:
    return timeline(workload, rows, H100)


def step(workload: Workload, cards: int, gigabits: float, *, shared: bool = False) -> float:
    """Return the seconds of a step.

    Args:
        workload: What is trained.
        cards: On how many cards.
        gigabits: Gigabits a second between hosts, of all links of a host.
        shared: Whether the workload's batch is that of all cards together, not of each.
    """
    rows = workload.batch / cards if shared else workload.batch
    return step_seconds(_timeline(workload, rows), cluster(cards, gigabits))


def efficiency(workload: Workload, cards: int, gigabits: float) -> float:
    """Return how much of its speed alone a card has among so many, each with a batch of its own."""
    return step(workload, 1, gigabits) / step(workload, cards, gigabits)


def speedup(workload: Workload, cards: int, gigabits: float) -> float:
    """Return how many times faster so many cards do a batch than one does."""
    return step(workload, 1, gigabits) / step(workload, cards, gigabits, shared=True)
