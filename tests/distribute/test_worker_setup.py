"""Which devices a worker takes, of a host's that it shares with others."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mirrored.distribute.worker_setup import own_devices
from mirrored.workers.interface import OneWorker


@pytest.mark.parametrize(
    ("cards", "hosts", "rank", "local_rank", "own"),
    [
        (4, ("a", "a"), 0, 0, [0, 2]),
        (4, ("a", "a"), 1, 1, [1, 3]),
        (3, ("a", "a"), 1, 1, [1]),
        (2, ("a", "b", "b"), 2, 1, [1]),
        (2, ("b", "a", "b", "b"), 3, 2, [0]),  # More workers than cards: some share one.
        (2, ("a", "b"), 1, 0, None),
        (0, ("a", "a"), 1, 1, None),
    ],
)
def test_workers_of_a_host_share_out_its_cards(
    cards: int,
    hosts: Sequence[str],
    rank: int,
    local_rank: int,
    own: list[int] | None,
    emulated_cuda: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    emulated_cuda(cards=cards)
    worker = OneWorker(rank, tuple(hosts), local_rank)
    found = own_devices(worker)
    assert (found and [each.index for each in found]) == own
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert own_devices(worker) is None


def test_simulated_cards_are_each_workers_own(simulated_gpus: Callable[..., Any]) -> None:
    simulated_gpus(2)
    assert own_devices(OneWorker(0, ("a", "a"))) is None
