"""Ranks, one a card; connections, one for each set of ranks, which end with their devices."""

import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirrored import devices
from mirrored.backends import selftest
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.distribute.cross_device_ops import connections
from mirrored.distribute.cross_device_ops.connections import (
    Cards,
    WorkerCards,
    agreed,
    cards_of,
    connection,
    every_replica_is_a_rank,
    ranks,
    why_no_nccl,
)
from mirrored.distribute.experimental import CommunicationOptions
from mirrored.errors import (
    CollectiveError,
    CollectiveTimeoutError,
    InvalidArgumentError,
    WorkersChangedError,
)
from mirrored.workers.notices import WorkersLost
from mirrored.workers.worker import Workers


def test_one_for_each_set_of_ranks(cards: Callable[..., Any]) -> None:
    emulator = cards(1, 1, 1)
    a, b, c = devices.logical_devices("GPU")
    orders = [[a, b], [a, b, c], [b, a], [b, c]]
    made = [connection(order) for order in orders]
    assert len(set(made)) == len(orders)
    assert [connection(order) for order in orders] == made
    assert made[2].names == (b.full_name, a.full_name)
    assert made[2].ranks == (b.backend, a.backend)
    assert not any(each.is_open for each in made)
    assert not emulator.nccl.calls


def test_it_is_forgotten_with_the_devices(cards: Callable[..., Any]) -> None:
    cards(1, 1)
    first = connection(devices.logical_devices("GPU"))
    made = weakref.ref(first)
    devices.reset_devices()
    assert connection(devices.logical_devices("GPU")) is not first
    del first
    gc.collect()
    assert made() is None


@pytest.mark.parametrize("names", [["CPU:0"], ["GPU:0", "GPU:1"]])
def test_refused(simulate: Callable[[int], Any], names: list[str]) -> None:
    simulate(2)
    with pytest.raises(InvalidArgumentError, match=f"not simulated. Received: .*{names[0]}"):
        connection([devices.get_device(name) for name in names])


def test_the_self_test_has_the_names(
    cards: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1, 1)
    asked: list[Any] = []
    monkeypatch.setattr(selftest, "require", lambda *args: asked.append(args))
    between = connection(devices.logical_devices("GPU"))
    between.open()
    assert asked == [(between.ranks, between.names)]


@pytest.fixture(autouse=True)
def no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MULTI_RANK, raising=False)


@pytest.mark.behaviour("virtual-gpus-nccl")
@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ("A", [(0,)]),
        ("AAA", [(0, 1, 2)]),
        ("AB", [(0,), (1,)]),
        ("AABB", [(0, 1), (2, 3)]),
        ("BABA", [(0, 2), (1, 3)]),
        ("ABCCA", [(0, 4), (1,), (2, 3)]),
    ],
)
def test_a_rank_a_card(cards: str, expected: list[tuple[int, ...]]) -> None:
    found = ranks(cards)
    assert [rank.replicas for rank in found] == expected
    assert [rank.leader for rank in found] == [replicas[0] for replicas in expected]


@settings(max_examples=30)
@given(st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=12))
def test_every_replica_is_in_one_rank(cards: list[str]) -> None:
    found = ranks(cards)
    assert sorted(i for rank in found for i in rank.replicas) == list(range(len(cards)))
    assert all(len({cards[i] for i in rank.replicas}) == 1 for rank in found)
    assert len(found) == len(set(cards))
    assert [rank.leader for rank in found] == sorted(rank.leader for rank in found)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cards=st.lists(st.sampled_from("AB"), min_size=1, max_size=6))
def test_every_replica_is_a_rank_where_the_environment_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, cards: list[str]
) -> None:
    monkeypatch.setenv(MULTI_RANK, "1")
    assert [rank.replicas for rank in ranks(cards)] == [(i,) for i in range(len(cards))]


@pytest.mark.parametrize(("value", "expected"), [("", False), ("0", False), ("1", True)])
def test_the_setting_of_ranks(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv(MULTI_RANK, value)
    assert every_replica_is_a_rank() is expected


ONE, OTHER = Cards(None, 1, ("card A",)), Cards(None, 2, ("card B", "card C"))


class Second(Workers):
    """The second of two workers, of which the first one says what a test gives."""

    def __init__(self, *said: Any) -> None:
        super().__init__(1, ("a", "b"))
        self._said = iter(said)
        self.dead, self.failures = False, list[BaseException]()

    def gather_arrays(self, array: Any, label: str) -> list[Any]:
        return [np.frombuffer(next(self._said), np.uint8), array]

    def _sum(self, vector: Any, out: Any, label: str) -> None:
        if self.dead:
            self.generation += 1
            self.require(0, label)
        out += [next(self._said), 0]

    def check(self, label: str) -> None:
        if self.dead:
            raise WorkersLost

    def failed(self, error: BaseException, step: str | None = None) -> None:
        self.failures.append(error)


@pytest.mark.behaviour("workers-nccl")
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


@pytest.mark.behaviour("workers-nccl")
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
    cards = WorkerCards(Second(b"CollectiveError: no network", b""), 1, 2)
    with pytest.raises(CollectiveError, match=r"Worker 0 on host a .*: no network"):
        cards.agree(lambda: None)
    with pytest.raises(ZeroDivisionError):
        cards.agree(lambda: 1 / 0)


@pytest.mark.parametrize(
    ("own", "other", "dead", "raised"),
    [
        (None, 0, False, None),
        (None, 1, False, CollectiveError("on workers [0]")),
        (CollectiveTimeoutError("late"), 0, False, CollectiveTimeoutError("late")),
        (CollectiveError("a link is down"), 0, False, CollectiveError("a link is down")),
        (CollectiveError("a link is down"), 0, True, WorkersChangedError("have died")),
        (WorkersLost(), 0, True, WorkersChangedError("have died")),
    ],
    ids=["done", "not there", "late", "not here", "NCCL saw a death", "MPI saw it"],
)
def test_sums_are_done_on_all_workers_or_on_none(
    own: Exception | None,
    other: int,
    dead: bool,
    raised: Exception | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failure without a death is told to the other workers, which may wait for the sum."""
    monkeypatch.setattr(connections, "_PATIENCE", 0.01)
    workers = Second(other)
    workers.on_failure, workers.dead = "continue", dead
    cards = WorkerCards(workers, 1, 2)
    cards.lost(CollectiveError("unknown"))
    error = None
    try:
        with cards.together():
            if own is not None:
                raise own
    except Exception as caught:
        error = caught
    assert type(error) is type(raised)
    assert raised is None or str(raised) in str(error)
    assert workers.failures == ([] if dead or error is None else [error])
