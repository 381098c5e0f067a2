"""Whether NCCL connects the cards of all workers: all take the same choice, and say why."""

import logging
from typing import Any

import pytest

from mirrored import devices
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.distribute.cross_device_ops.worker_cards import (
    Cards,
    WorkerCards,
    agreed,
    cards_of,
    why_no_nccl,
)
from mirrored.distribute.experimental import CommunicationOptions
from mirrored.errors import CollectiveError
from mirrored.workers.interface import OneWorker

ONE, OTHER = Cards(None, 1, ("card A",)), Cards(None, 2, ("card B", "card C"))


class Second(OneWorker):
    """The second of two workers, of which the first one says what a test gives."""

    def __init__(self, *said: Any) -> None:
        super().__init__(1, ("a", "b"))
        self._said = iter(said)

    def gather(self, value: Any, what: str) -> list[Any]:
        return [next(self._said), value]


@pytest.mark.parametrize(
    ("found", "hosts", "why"),
    [
        ([ONE, OTHER], "aa", None),
        ([ONE, ONE], "ab", None),
        ([ONE, ONE], "aa", "workers 0 and 1 share the card card A of a"),
        ([ONE._replace(shared=True)] * 2, "aa", None),
        ([ONE._replace(shared=True), ONE], "aa", "workers 0 and 1 share the card"),
        ([ONE, Cards("NCCL cannot be used: it is too old.")], "ab", "on worker 1 (b) NCCL cannot"),
    ],
)
def test_the_choice(found: list[Cards], hosts: str, why: str | None) -> None:
    said = why_no_nccl(found, hosts)
    assert said == why or (said is not None and why is not None and said.startswith(why))


def test_what_a_worker_says(emulated_cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = emulated_cuda(cards=2)
    gpus, cpu = devices.logical_devices("GPU"), devices.logical_devices("CPU")
    found = cards_of(gpus, None)
    assert found == Cards(None, 2, ("0000:01:00.0", "0000:02:00.0"))
    assert cards_of([*gpus, *cpu], None).why_no_nccl == f"{cpu[0].full_name} is not a GPU"
    ring = CommunicationOptions(implementation="ring")
    assert "asks for sums on the host" in str(cards_of(gpus, ring).why_no_nccl)
    monkeypatch.setenv(MULTI_RANK, "1")
    assert cards_of(gpus, CommunicationOptions()).shared
    emulator.nccl.version = 22100
    assert "before version 2.22" in str(cards_of(gpus[:1], None).why_no_nccl)


def test_ranks_are_numbered_over_workers(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "mirrored"):
        made = agreed(Second(), [ONE, OTHER], 4)
    assert made is not None
    assert (made.first, made.count) == (1, 3)
    assert "All 4 replicas are on 3 cards" in caplog.text
    with caplog.at_level(logging.DEBUG, "mirrored"):
        assert agreed(Second(), [ONE, Cards("CPU:0 is not a GPU")], 4) is None
    assert "by MPI, on the host: on worker 1 (b) CPU:0 is not a GPU." in caplog.text


def test_all_raise_where_one_cannot(caplog: pytest.LogCaptureFixture) -> None:
    cards = WorkerCards(Second("CollectiveError: no network", None), 1, 2)
    with pytest.raises(CollectiveError, match=r"Worker 0 on host a .*: no network"):
        cards.agree(lambda: None)
    with pytest.raises(ZeroDivisionError):
        cards.agree(lambda: 1 / 0)
