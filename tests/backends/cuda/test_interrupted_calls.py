"""Ctrl-C while the main thread is inside NCCL, which never returns by itself."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from logical_card import Device, N

from mirrored import _interrupt
from mirrored.backends.communication.connection import Connection
from mirrored.backends.communication.watch import Watch
from mirrored.errors import CollectiveError


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let interrupts be heard, and be overdue at once."""
    monkeypatch.setattr(_interrupt, "PATIENCE", 0.01)
    before = signal.set_wakeup_fd(-1)
    wakeup = _interrupt.WAKEUP
    was = wakeup._tried, wakeup._pipe
    wakeup._tried, wakeup._pipe = False, ()
    yield
    wakeup._end()
    wakeup._tried, wakeup._pipe = was
    signal.set_wakeup_fd(before)


@pytest.mark.usefixtures("listening", "no_deadlock")
@pytest.mark.parametrize("function", ["ncclAllReduce", "ncclGroupEnd"])
def test_what_is_in_flight_ends(function: str, emulated_cuda: Callable[..., Any]) -> None:
    emulator, watch = emulated_cuda(cards=2), Watch(watchdog_seconds=0.01)
    devices = [Device(card) for card in (0, 1)]
    ranks = [device.backend for device in devices]
    connection = Connection(ranks, ("GPU:0", "GPU:1"), watch=watch)
    arrays = [device.array(np.ones(N, np.float32)) for device in devices]
    # Not the first of its size, which is asked for in a thread of its own.
    connection.all_reduce(arrays, arrays, what="a sum")
    connection.finish()
    emulator.nccl.block(function, None)
    before = emulator.nccl.calls[function]

    def interrupt() -> None:
        while emulator.nccl.calls[function] == before:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        connection.all_reduce(arrays, arrays, what="another sum")
    thread.join()
    with pytest.raises(CollectiveError, match="an interrupt came while the main thread was inside"):
        watch.settle()
    assert not connection.is_open
    assert emulator.nccl.calls["ncclCommAbort"] == 2
    for rank in ranks:
        rank.synchronize()
