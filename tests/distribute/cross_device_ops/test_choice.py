"""The collectives of a strategy whose user names none, and the line that says why."""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

from mirrored import devices
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.distribute import (
    HierarchicalCopyAllReduce,
    MirroredStrategy,
    NcclAllReduce,
    ReductionToOneDevice,
    choose_cross_device_ops,
)
from mirrored.distribute.cross_device_ops.choice import Facts, choose_without_nccl, decide
from mirrored.errors import CollectiveError

Emulate = Callable[..., Any]
REST = ", not using nccl allreduce: values are reduced by ReductionToOneDevice."
NO_GPU = "There are non-GPU devices in `mr.distribute.Strategy`"
WHERE = "The GPUs in `mr.distribute.Strategy` are"
SIMULATED = f"{WHERE} simulated in host memory"
ONE_CARD = f"{WHERE} on one card"


@pytest.mark.behaviour("default-collective")
@cases(
    ("facts", "kind", "reason"),
    [
        (Facts("not a GPU"), ReductionToOneDevice, NO_GPU),
        (Facts("not a GPU", cards=2, ranks=2, peers=True), ReductionToOneDevice, NO_GPU),
        (Facts("simulated in host memory"), ReductionToOneDevice, SIMULATED),
        (Facts("simulated in host memory", cards=2, ranks=2), ReductionToOneDevice, SIMULATED),
        (Facts(), ReductionToOneDevice, ONE_CARD),
        (Facts(why_no_nccl="No NCCL."), ReductionToOneDevice, ONE_CARD),
        (Facts(ranks=2), NcclAllReduce, f"{WHERE} on 1 card"),
        (Facts(ranks=2, why_no_nccl="No NCCL."), ReductionToOneDevice, "No NCCL"),
        (Facts(ranks=2, why_no_nccl="No NCCL.", peers=True), ReductionToOneDevice, "No NCCL"),
        (Facts(cards=2, ranks=2), NcclAllReduce, f"{WHERE} on 2 cards"),
        (Facts(cards=8, ranks=8, peers=True), NcclAllReduce, f"{WHERE} on 8 cards"),
        (
            Facts(cards=2, ranks=2, why_no_nccl="No NCCL.", peers=True),
            HierarchicalCopyAllReduce,
            "No NCCL; the cards read each other's memory",
        ),
        (Facts(cards=2, ranks=2, why_no_nccl="No NCCL."), ReductionToOneDevice, "No NCCL"),
    ],
)
def test_the_rules(facts: Facts, kind: type, reason: str) -> None:
    assert decide(facts) == (kind, reason)


@pytest.mark.behaviour("default-collective", "notes-are-information")
@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["CPU:0"], NO_GPU + REST),
        (["GPU:0", "CPU:0"], NO_GPU + REST),
        (["GPU:1", "GPU:0"], SIMULATED + REST),
    ],
)
def test_which_and_why(
    simulate: Callable[[int], Any], lines: Callable[[str], list[str]], names: list[str], line: str
) -> None:
    simulate(2)
    chosen = choose_cross_device_ops([devices.get_device(name) for name in names])
    assert type(chosen) is ReductionToOneDevice
    assert lines("The") == [line]


@pytest.mark.behaviour("default-collective")
def test_a_strategy_says_it_when_it_is_made(
    simulate: Callable[[int], Any], lines: Callable[[str], list[str]]
) -> None:
    simulate(2)
    MirroredStrategy(cross_device_ops=ReductionToOneDevice())
    assert lines("The GPUs") == []
    MirroredStrategy()
    assert lines("The GPUs") == [SIMULATED + REST]


@pytest.mark.behaviour("default-collective")
@pytest.mark.parametrize(
    ("split", "kind"),
    [([1], ReductionToOneDevice), ([2], ReductionToOneDevice), ([2, 1], NcclAllReduce)],
)
def test_on_cards(cards: Callable[..., Any], split: list[int], kind: type) -> None:
    """NCCL is between cards; it is asked for its version alone to find that out."""
    emulator = cards(*split)
    assert type(choose_cross_device_ops(devices.logical_devices("GPU"))) is kind
    assert set(emulator.nccl.calls) <= {"ncclGetVersion"}


def test_a_rank_a_replica_where_the_environment_asks_for_it(
    cards: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(2)
    where = devices.logical_devices("GPU")
    monkeypatch.setattr(type(where[0].backend), "why_not_connected", lambda self, others: None)
    monkeypatch.setenv(MULTI_RANK, "1")
    assert type(choose_cross_device_ops(where)) is NcclAllReduce


@pytest.mark.behaviour("default-collective")
@pytest.mark.parametrize("split", [[1, 1], [2, 1], [1, 1, 1]])
@pytest.mark.parametrize("reads", [True, False])
def test_without_nccl(
    cards: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    lines: Callable[[str], list[str]],
    caplog: pytest.LogCaptureFixture,
    split: list[int],
    reads: bool,
) -> None:
    """Whether it is missing or has failed, what comes in its place hangs on who reads whom."""
    cards(*split)
    where = devices.logical_devices("GPU")
    backend = type(where[0].backend)
    last = where[-1].backend
    monkeypatch.setattr(backend, "reads", lambda self, other: reads or self is not last)
    kind = HierarchicalCopyAllReduce if reads else ReductionToOneDevice

    monkeypatch.setattr(backend, "why_not_connected", lambda self, others: "NCCL is missing.")
    assert type(choose_cross_device_ops(where)) is kind
    between = "; the cards read each other's memory" if reads else ""
    assert lines("NCCL") == [
        f"NCCL is missing{between}, not using nccl allreduce: "
        f"values are reduced by {kind.__name__}."
    ]

    monkeypatch.setattr(backend, "why_not_connected", lambda self, others: None)
    assert type(choose_without_nccl(where, CollectiveError("Wrong sums."))) is kind
    assert caplog.records[-1].levelname == "WARNING"
    assert caplog.messages[-1] == (
        f"NCCL failed, so values are reduced by {kind.__name__}: Wrong sums."
    )
