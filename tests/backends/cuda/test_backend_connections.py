"""Devices of several cards: waits that look after collectives, copies, and connections."""

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from logical_card import Device, N

from mirrored.backends import HostBackend
from mirrored.backends.communication.connection import Connection
from mirrored.backends.communication.in_flight import Request
from mirrored.backends.communication.watch import Watch
from mirrored.backends.cuda import card_memory, nvml
from mirrored.backends.cuda import cuda_backend as cuda
from mirrored.errors import CollectiveTimeoutError, DeviceLostError, DeviceUnavailableError

ILLEGAL_ADDRESS = 700

Emulate = Callable[..., Any]


# ------------------------------------------------------------------------------ streams


def test_another_stream_of_the_device(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    device = Device(1, priority=-2)
    backend = device.backend
    others = [backend.beside, backend.another(), backend.another()]
    assert len({each.stream.ptr for each in (backend, *others)}) == 4
    assert backend.beside is others[0]
    for other in others:
        assert (other.memory, other.where) == (backend.memory, backend.where)
        assert other._priority == -2
    streams = (each.stream.ptr for each in (*others, backend.another(urgent=True)))
    assert [emulator.queue(each).priority for each in streams] == [-2, -2, -2, -5]


def test_another_stream_touches_nothing(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    Device().backend.another()
    assert not emulator.counts["contexts"]


@pytest.mark.parametrize("seed", range(6))
def test_an_event_is_done_once_the_device_is_there(seed: int, emulated_cuda: Emulate) -> None:
    emulated_cuda(seed=seed)
    device = Device()
    x = device.busy()
    event = device.backend.record()
    polls = 0
    while not device.backend.is_done(event):
        polls += 1
        assert polls < 1000
    device.backend.wait_on_host(event)
    assert device.backend.is_done(event)
    assert device.read(x).tolist() == [64] * N


def test_what_is_not_done(emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = emulated_cuda()
    device = Device()
    event = device.backend.record()
    monkeypatch.setattr(emulator.driver, "cuEventQuery", lambda event: 600)
    assert device.backend.is_done(event) is False


def test_an_event_of_a_lost_device(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    device = Device()
    event = device.backend.record()
    emulator.fail("eventQuery", ILLEGAL_ADDRESS)
    with pytest.raises(DeviceLostError, match=r"0000:01:00\.0 failed"):
        device.backend.is_done(event)


def test_an_event_that_cannot_be_asked_for(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    device = Device()
    event = device.backend.record()
    emulator.fail("eventQuery", 400)
    with pytest.raises(RuntimeError, match="refused an operation") as error:
        device.backend.is_done(event)
    assert not isinstance(error.value, DeviceLostError)


# ------------------------------------------------------------------------------ waits of the host


class Hanging:
    """Two cards that are connected.

    Args:
        emulator: Theirs.
        monkeypatch: Puts the watch into the backend.

    Attributes:
        passed: Seconds that the watch's clock is ahead.
    """

    def __init__(self, emulator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed = 0.0
        self.watch = Watch(clock=lambda: time.monotonic() + self.passed)
        monkeypatch.setattr(cuda, "WATCH", self.watch)
        self.emulator = emulator
        self.devices = [Device(card) for card in (0, 1)]
        self.ranks = [device.backend for device in self.devices]
        self.connection = Connection(self.ranks, ("GPU:0", "GPU:1"), watch=self.watch)
        self.arrays = [device.busy() for device in self.devices]

    def all_reduce(self) -> None:
        """Sum the arrays; what the devices are asked for from then on waits for that."""
        for rank, stream in zip(self.ranks, self.connection.streams, strict=True):
            stream.wait(rank.record())
        events = self.connection.all_reduce(self.arrays, self.arrays, what="a sum", timeout=600.0)
        for rank, event in zip(self.ranks, events, strict=True):
            rank.wait(event)


@pytest.fixture
def hanging(emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch) -> Any:
    hanging = Hanging(emulated_cuda(cards=2), monkeypatch)
    yield hanging
    hanging.connection.close()


WAITS: dict[str, Callable[[Hanging], object]] = {
    "for an event": lambda h: h.ranks[1].wait_on_host(h.ranks[1].record()),
    "for all": lambda h: h.ranks[0].synchronize(),
    "for values": lambda h: h.devices[0].read(h.arrays[0]),
    "for values of nothing to do with it": lambda h: h.devices[0].read(h.devices[0].busy()),
    "for room for copies": lambda h: h.ranks[0].copy_between(np.ones(N, np.float32), h.arrays[0]),
}


@pytest.mark.usefixtures("no_deadlock")
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_wait_ends_with_a_collective_that_hangs(
    wait: Callable[[Hanging], object], hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging.all_reduce()
    hanging.connection.finish()
    monkeypatch.setattr(card_memory, "_MOST_STAGED", 0)
    hanging.emulator.nccl.hang()
    hanging.all_reduce()
    # A copy that is under way behind it, for which there is no room.
    hanging.ranks[0]._pinned_copies.keep(hanging.ranks[0].record(), np.ones(1, np.uint8))
    hanging.passed += 3600
    with pytest.raises(CollectiveTimeoutError, match="GPU:0"):
        wait(hanging)
    assert hanging.emulator.nccl.calls["ncclCommAbort"] == 2
    # The devices go on, and are connected anew.
    hanging.arrays = [device.busy() for device in hanging.devices]
    hanging.all_reduce()
    for device, array in zip(hanging.devices, hanging.arrays, strict=True):
        assert device.read(array).tolist() == [128] * N


@pytest.mark.parametrize("seed", range(6))
def test_waits_while_collectives_go_well(
    seed: int, emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = Hanging(emulated_cuda(cards=2, seed=seed), monkeypatch)
    for _ in range(3):
        hanging.all_reduce()
    for device, array in zip(hanging.devices, hanging.arrays, strict=True):
        assert device.read(array).tolist() == [64 * 8] * N
    hanging.connection.close()


def test_a_copy_is_kept_while_a_wait_for_it_is_interrupted(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still reads the pinned memory, which would else be used for something new."""
    emulated_cuda()
    device, watch = Device(), Watch()
    monkeypatch.setattr(cuda, "WATCH", watch)
    monkeypatch.setattr(card_memory, "_MOST_STAGED", 0)
    x = device.array(np.ones(N, np.float32))
    (staged,) = device.backend._pinned_copies._staged

    def interrupted(done: Callable[[], bool]) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Watch, "idle", False)
        patched.setattr(watch, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            device.backend.copy_between(np.zeros(N, np.float32), x)
    assert list(device.backend._pinned_copies._staged) == [staged]
    device.backend.copy_between(np.full(N, 3, np.float32), x)
    assert staged not in device.backend._pinned_copies._staged
    assert device.read(x).tolist() == [3] * N


def test_a_wait_asks_the_watch_only_while_something_is_in_flight(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated_cuda()
    device, watch, asked = Device(), Watch(), []
    monkeypatch.setattr(cuda, "WATCH", watch)
    wait = watch.wait
    monkeypatch.setattr(watch, "wait", lambda done: (asked.append(done), wait(done)))
    device.read(device.busy())
    assert not asked

    class Idle:
        names = ("GPU:0",)

        def failure(self) -> None:
            return None

    idle = Idle()
    watch.add(Request(idle, "a sum", None, 60.0, lambda: bool(asked)))  # type: ignore[arg-type]
    assert device.read(device.busy()).tolist() == [64] * N
    assert asked


# ------------------------------------------------------------------------------ copies


def copied(count: int = 1, to: int = 1) -> list[Any]:
    """Return what is read after copies from the first card to another."""
    first, second = Device(0), Device(to)
    source, target = first.busy(), second.array(np.zeros(N, np.float32))
    for _ in range(count):
        second.backend.copy_across(first.backend, source, target)
    found: list[Any] = second.read(target).tolist()
    return found


def test_a_card_is_let_read_another_once(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator, asked = emulated_cuda(cards=2), []
    enable = emulator.cupy.cuda.runtime.deviceEnablePeerAccess
    monkeypatch.setattr(
        emulator.cupy.cuda.runtime,
        "deviceEnablePeerAccess",
        lambda peer: (asked.append((emulator.current.device, peer)), enable(peer)),
    )
    assert copied(3) == [64] * N
    assert emulator.peers == {(1, 0)}
    assert asked == [(1, 0)]
    assert copied() == [64] * N  # Of other logical devices: it is on already.
    assert asked == [(1, 0)] * 2


def test_on_one_card_nothing_is_asked(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=1)
    assert copied(to=0) == [64] * N
    assert not emulator.peers


def test_cards_that_cannot_read_each_other(emulated_cuda: Emulate) -> None:
    emulated = pytest.importorskip("emulated_cuda")
    emulator = emulated_cuda(cards=[emulated.Card(pci_bus=bus, peers=False) for bus in (1, 2)])
    assert copied(2) == [64] * N
    assert not emulator.peers


def test_a_card_with_too_many_peers(
    emulated_cuda: Emulate, caplog: pytest.LogCaptureFixture
) -> None:
    emulator = emulated_cuda(cards=2)
    emulator.fail("deviceEnablePeerAccess", 711)
    with caplog.at_level(logging.DEBUG, "mirrored"):
        assert copied(2) == [64] * N
    assert caplog.text.count("Copies from card 0 to card 1 pass through the host") == 1
    # An error would hold all that its traceback does, for whoever keeps the log.
    assert not any(isinstance(each, Exception) for log in caplog.records for each in log.args or ())


def test_a_card_that_is_lost_when_it_is_let_read(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    emulator.fail("deviceEnablePeerAccess", ILLEGAL_ADDRESS)
    with pytest.raises(DeviceLostError, match=r"0000:02:00\.0"):
        copied()


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[True, True], [False, True]], [True, True, False, True]),
        ([[True, False], [True, True]], [True, False, True, True]),
        (None, [True, False, False, True]),
    ],
)
def test_who_reads_whom(
    matrix: list[list[bool]] | None,
    expected: list[bool],
    emulated_cuda: Emulate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    emulator = emulated_cuda(cards=2)
    cards = [Device(card).backend for card in (0, 1)]
    monkeypatch.setattr(nvml, "peer_access", lambda: matrix)
    assert [a.reads(b) for a in cards for b in cards] == expected
    assert cards[0].reads(cards[0].another())
    assert not cards[0].reads(HostBackend())
    assert not emulator.counts["contexts"]


def test_the_emulated_cards_read_each_other(emulated_cuda: Emulate) -> None:
    emulated_cuda(cards=2)
    assert Device(0).backend.reads(Device(1).backend)


# ------------------------------------------------------------------------------ connections


def test_other_devices_are_not_connected(emulated_cuda: Emulate) -> None:
    emulated_cuda(cards=2)
    first, second = (Device(card).backend for card in (0, 1))
    others: Any = [second, HostBackend()]
    assert "connects only NVIDIA GPUs" in str(first.why_not_connected(others))
    with pytest.raises(DeviceUnavailableError, match="connects only NVIDIA GPUs"):
        first.connect([first, *others])
    assert first.why_not_connected([second]) is None
