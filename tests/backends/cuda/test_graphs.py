"""Events of a device, which are made once and used again and again."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
from logical_card import Device

Emulate = Callable[..., Any]


def test_events_are_used_again(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    backend = Device().backend
    for _ in range(50):
        backend.wait(backend.record())
    assert emulator.counts["events"] == 1
    held = [backend.record() for _ in range(3)]
    assert len({each.ptr for each in held}) == 3
    assert emulator.counts["events"] == 3


def test_an_event_that_is_held_is_nobody_elses(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    device = Device()
    first = device.backend.record()
    device.backend.wait_on_host(first)
    device.busy()
    later = device.backend.record()
    assert later.ptr != first.ptr
    assert device.backend.is_done(first)


@pytest.mark.parametrize("seed", range(6))
def test_who_waits_keeps_waiting_for_what_an_event_stood_for(
    seed: int, emulated_cuda: Emulate
) -> None:
    """The event is recorded again, elsewhere, before the stream comes to its wait."""
    emulated_cuda(seed=seed)
    device = Device()
    other = device.backend.another()
    x = device.busy()
    other.wait(device.backend.record())
    for _ in range(3):
        other.wait(device.backend.record())
    other.wait_on_host(other.record())
    assert device.read(x).tolist() == [64] * len(x)


def test_an_event_that_was_garbage_is_used_again(emulated_cuda: Emulate) -> None:
    """The garbage collector asks all of a cycle to end, what they refer to alone included."""
    emulator = emulated_cuda()
    backend = Device().backend
    cycle: list[Any] = [backend.record()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    backend.wait(backend.record())
    assert emulator.counts["events"] == 1


def test_only_so_many_events_are_kept(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    backend = Device().backend
    held = [backend.record() for _ in range(300)]
    held.clear()
    backend.record()
    assert emulator.counts["events"] == 300
    assert len(emulator.events) == 256
