"""Which workers are called slow, and how often they are looked at."""

import logging
from typing import Any

import pytest

from mirrored.distribute.cross_device_ops import worker_times
from mirrored.distribute.cross_device_ops.worker_times import WorkerTimes, slow_ones
from mirrored.workers.worker import Workers


@pytest.mark.behaviour("workers-slow")
@pytest.mark.parametrize(
    ("seconds", "slow"),
    [
        ([1.0], []),
        ([1.0, 2.0], [1]),
        ([1.0, 1.9], []),
        ([5.0, 1.0, 1.0, 1.2], [0]),
        ([0.001, 0.01], []),
    ],
)
def test_who_takes_twice_as_long_is_slow(seconds: list[float], slow: list[int]) -> None:
    assert slow_ones(seconds) == slow


class Slow(Workers):
    """Stands for two workers, of which the other takes 5 seconds."""

    def gather(self, value: Any, what: str) -> list[Any]:
        return [value, 5.0]


@pytest.mark.behaviour("workers-slow")
def test_a_slow_worker_is_told_of_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(worker_times, "perf_counter", lambda: next(clock) * 0.01)
    times = WorkerTimes(Slow(0, ("a", "b")))
    with caplog.at_level(logging.WARNING, "mirrored"):
        for _ in range(201):
            times.stop()
            times.go_on()
    assert [line.message[:40] for line in caplog.records] == [
        "Worker 1 on host b is slow, and all othe"
    ]
    assert times.take()[0] == pytest.approx(2.0)
    assert times.take()[0] == 0.0
