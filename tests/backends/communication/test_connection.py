"""Devices are connected, sum in order, and are connected anew after whatever went wrong."""

import gc
import logging
import math
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_time import FakeTime, stuck, threads_of_calls
from forked_programs import run_program
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_communicator import Script, ScriptedCommunicator

from mirrored.backends.communication import connection as module
from mirrored.backends.communication.connection import Connection
from mirrored.backends.communication.watch import WATCH, Watch
from mirrored.backends.stream_backend import Place
from mirrored.errors import (
    CollectiveError,
    CollectiveTimeoutError,
    DeviceLostError,
    DeviceUnavailableError,
)

pytestmark = pytest.mark.usefixtures("no_deadlock")


class Bench:
    """Connected devices that follow a script, by a clock of their own."""

    def __init__(self, *, ranks: int = 2, prepare: Any = None, **script: Any) -> None:
        self.script = Script(**script)
        self.time = FakeTime()
        self.watch = self.time.watch(stop_seconds=0.1, abort_seconds=0.1)
        self.devices = self.script.backends(ranks, self.watch)
        self.connection = self.connect(prepare=prepare)

    def connect(self, **options: Any) -> Connection:
        names = [f"GPU:{number}" for number in range(len(self.devices))]
        options = {"connect_timeout": 0.5, "watch": self.watch, **options}
        return Connection(self.devices, names, **options)

    def ask(self, *, size: int = 3, what: str = "a", **options: Any) -> list[np.ndarray]:
        """Ask for a sum of 1, 2, 3... and return the arrays that it is written to."""
        sends = [np.full(size, rank + 1.0) for rank in range(len(self.devices))]
        receives = [np.zeros(size) for _ in self.devices]
        events = self.connection.all_reduce(
            sends, receives, what=what, **{"timeout": 0.5, **options}
        )
        assert len(events) == len(self.devices)
        return receives

    def sum(self, **options: Any) -> list[np.ndarray]:
        receives = self.ask(**options)
        self.connection.finish()
        return receives

    def is_right(self, receives: list[np.ndarray]) -> bool:
        total = len(receives) * (len(receives) + 1) / 2
        return all((each == total).all() for each in receives)

    @property
    def called(self) -> list[str]:
        """The calls of communicators so far."""
        return [call for call, _ in self.script.calls]

    def finish(self) -> None:
        """Look whether all went by the rules, and nothing is left."""
        self.script.release()
        assert threads_of_calls() == []
        self.connection.close()
        assert threads_of_calls() == []
        assert self.script.misuses == []
        assert self.watch.idle
        assert not any(each.is_usable for each in self.script.communicators)


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(**options))
        return made[-1]

    yield make
    for each in made:
        each.finish()
    assert module.OPEN == {}


Benches = Callable[..., Bench]


# ---------------------------------------------------------------------- what works


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("outcome", ["ok", "slow"])
def test_sums(bench: Benches, ranks: int, outcome: str) -> None:
    b = bench(ranks=ranks, collectives=[outcome] * 3, polls=50)
    assert not b.connection.is_open
    for size in (3, 3, 5):
        assert b.is_right(b.sum(size=size))
        assert b.connection.is_open
    assert b.called == ["connect", *["all_reduce"] * 3]


def test_events_are_behind_the_sum(bench: Benches) -> None:
    b = bench()
    sends, receives = [np.ones(2), np.zeros(2)], [np.zeros(2), np.zeros(2)]
    streams = b.connection.streams
    for stream, device, send in zip(streams, b.devices, sends, strict=True):
        device.hold()
        device.run(np.add, send, 2, out=send)  # What computes `sends`.
        stream.wait(device.record())
    events = b.connection.all_reduce(sends, receives, what="a")
    assert not any(s.is_done(e) for s, e in zip(streams, events, strict=True))
    assert not b.watch.idle
    read = []
    for device, event, receive in zip(b.devices, events, receives, strict=True):
        device.wait(event)
        device.run(lambda receive=receive: read.append(receive.tolist()))  # type: ignore[misc]
        device.go_on()
    for device in b.devices:
        device.synchronize()
    assert read == [[5, 5], [5, 5]]


def test_streams_are_the_collectives_own(bench: Benches) -> None:
    b = bench()
    streams = b.connection.streams
    assert [stream.memory for stream in streams] == ["card 0", "card 1"]
    assert not set(streams) & set(b.devices)
    assert b.connection.streams is streams


def test_opened_once(bench: Benches, caplog: pytest.LogCaptureFixture) -> None:
    prepared: list[int] = []
    b = bench(prepare=lambda: prepared.append(1))
    with caplog.at_level(logging.DEBUG, "mirrored"):
        for _ in range(2):
            b.connection.open()
            b.sum()
    assert b.called == ["connect", "all_reduce", "all_reduce"]
    assert prepared == [1]
    assert caplog.messages == ["Connecting devices: GPU:0, GPU:1."]


def test_closed_and_opened_again(bench: Benches) -> None:
    prepared: list[int] = []
    b = bench(prepare=lambda: prepared.append(1))
    b.connection.close()
    receives = b.ask()
    b.connection.close()  # It waits for what is in flight.
    assert b.is_right(receives)
    assert not b.connection.is_open
    b.connection.close()
    assert b.is_right(b.sum())
    assert b.called == ["connect", "all_reduce", "close", "connect", "all_reduce"]
    assert prepared == [1]


@pytest.mark.parametrize(
    ("sends", "receives", "match"),
    [
        ([np.ones(2)], [np.ones(2)], "2 ranks needs .* Received: 1 and 1"),
        ([np.ones(2), np.ones(2)], [np.ones(2)], "Received: 2 and 1"),
        ([np.ones(2), np.ones(3)], [np.ones(2), np.ones(3)], "one size and dtype"),
    ],
)
@pytest.mark.parametrize("used", [False, True])
def test_arrays_that_do_not_go_together(
    bench: Benches, sends: Any, receives: Any, match: str, used: bool
) -> None:
    b = bench()
    b.connection.open()
    if used:
        b.sum(size=2)
    with pytest.raises(ValueError, match=match):
        b.connection.all_reduce(sends, receives, what="a")
    assert b.watch.idle
    assert b.connection.is_open
    assert b.is_right(b.sum())
    assert "abort" not in b.called


@pytest.mark.parametrize(("ranks", "names"), [(0, []), (2, ["GPU:0"])])
def test_each_rank_has_a_name(ranks: int, names: list[str]) -> None:
    with pytest.raises(ValueError, match=f"Received: {ranks} devices and {len(names)} names"):
        Connection(Script().backends(ranks), names)


def test_threads_take_turns(bench: Benches) -> None:
    b = bench(collectives=["slow"] * 40)
    results: list[list[np.ndarray]] = []

    def work() -> None:
        for size in range(1, 6):
            results.append(b.ask(size=size, timeout=math.inf))

    threads = [threading.Thread(target=work, name=f"mirrored-test-{n}") for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    b.connection.finish()
    assert len(results) == 20
    assert all(map(b.is_right, results))


# ---------------------------------------------------------------------- what fails


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("size", [3, 7])
@pytest.mark.parametrize(
    ("outcome", "kind", "match"),
    [
        ("hang", CollectiveTimeoutError, "bad in run 9 of its recorded step; 0.5"),
        ("async", CollectiveError, "bad in run 9 of its recorded step; The script lets the link"),
        (
            "fail",
            CollectiveError,
            "bad in run 9 of its recorded step; The script lets all-reduce . fail",
        ),
        ("lost", DeviceLostError, "The script lets the device fail"),
    ],
)
def test_a_collective_fails(
    bench: Benches, outcome: str, kind: type[Exception], match: str, before: int, size: int
) -> None:
    prepared: list[int] = []
    b = bench(collectives={before: outcome}, prepare=lambda: prepared.append(1))
    for number in range(before):
        b.ask(what=f"good {number}")
    with pytest.raises(kind, match=match) as caught:
        b.sum(what="bad", step=9, size=size)
    if isinstance(caught.value, CollectiveError):
        assert caught.value.devices == ("GPU:0", "GPU:1")
        assert (caught.value.what, caught.value.step) == ("bad", 9)
        assert caught.value.aborted
        if outcome != "fail":  # Which is noticed before those before it are looked at.
            assert caught.value.completed == tuple(f"good {n}" for n in range(before))
    assert not b.connection.is_open
    assert b.watch.idle
    assert b.called == ["connect", *["all_reduce"] * (before + 1), "abort"]
    assert b.is_right(b.sum())
    assert b.called[-2:] == ["connect", "all_reduce"]
    assert prepared == [1, 1]


@pytest.mark.parametrize("outcome", ["blocks", "never returns"])
def test_asking_does_not_return(bench: Benches, outcome: str) -> None:
    """The first of a size: libraries set up more then."""
    b = bench(collectives={1: outcome})
    b.sum()
    returns = outcome == "blocks"
    with pytest.raises(CollectiveTimeoutError, match="Not done on GPU:0, GPU:1") as caught:
        b.ask(size=4)
    assert caught.value.aborted is returns
    assert ("'mirrored-call-GPU:0+GPU:1' did not return" in str(caught.value)) is not returns
    assert threads_of_calls() == ([] if returns else ["mirrored-call-GPU:0+GPU:1"])
    assert b.is_right(b.sum(size=4))


def test_another_thread_sees_where_asking_does_not_return(bench: Benches) -> None:
    b = bench(collectives={1: "blocks"})
    b.sum()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            b.ask()  # Not the first of its size: in this thread.
        except CollectiveError as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="mirrored-test-asks")
    thread.start()
    while "all_reduce" not in b.called[2:]:
        pass
    with pytest.raises(CollectiveTimeoutError) as caught:
        b.ask()  # It is not its lock.
    thread.join(60)
    (error,) = errors
    assert type(error) is CollectiveTimeoutError
    assert str(error.__cause__) == str(caught.value)
    assert b.is_right(b.sum())


def test_all_connections_end(bench: Benches) -> None:
    """Streams of one may wait for those of another."""
    b = bench(collectives={1: "hang"})
    other = b.connect()
    other.streams[0].hold()
    other.all_reduce([np.ones(2)] * 2, [np.ones(2) for _ in "ab"], what="b", timeout=math.inf)
    with pytest.raises(CollectiveTimeoutError):
        b.sum()
    assert not b.connection.is_open
    assert not other.is_open
    assert b.called.count("abort") == 2
    other.close()


def test_an_abort_that_never_returns(bench: Benches) -> None:
    b = bench(collectives=["hang"], aborts=["never returns"])
    match = "'mirrored-abort-GPU:0[+]GPU:1' did not return within 0.1 seconds. This process may not"
    with pytest.raises(CollectiveTimeoutError, match=match) as caught:
        b.sum()
    assert caught.value.aborted is False
    assert threads_of_calls() == ["mirrored-abort-GPU:0+GPU:1"]
    b.script.release()
    assert threads_of_calls() == []
    assert b.is_right(b.sum())


def test_closing_waits_for_deadlines(bench: Benches) -> None:
    b = bench(collectives=["hang"])
    b.ask()
    with pytest.raises(CollectiveTimeoutError):
        b.connection.close()
    assert not b.connection.is_open
    assert b.called == ["connect", "all_reduce", "abort"]
    b.connection.close()


@pytest.mark.parametrize(
    ("outcome", "kind", "match"),
    [
        ("fail", CollectiveError, "closing 0 fail"),
        ("never returns", CollectiveTimeoutError, "Closing devices was not done"),
    ],
)
def test_closing_fails(bench: Benches, outcome: str, kind: type[Exception], match: str) -> None:
    b = bench(closes=[outcome])
    b.sum()
    with pytest.raises(kind, match=match) as caught:
        b.connection.close()
    error: Any = caught.value
    assert (error.devices, error.what) == (("GPU:0", "GPU:1"), "closing")
    assert not b.connection.is_open
    assert b.is_right(b.sum())


def test_a_thread_that_never_comes_back_keeps_no_other_for_ever(bench: Benches) -> None:
    """The devices may be of no use any more, and everybody who would use them is told."""
    b = bench(collectives={1: "never returns"})
    b.sum()
    thread = asks_in_thread(b)
    for match in ("was not done by its deadline", "Another thread does not return from a call"):
        with pytest.raises(CollectiveTimeoutError, match=match) as caught:
            b.ask()
        assert (caught.value.devices, caught.value.what) == (("GPU:0", "GPU:1"), "a")
    b.script.release()
    thread.join(60)
    assert b.is_right(b.sum())


def test_a_host_that_never_comes_back_is_seen_by_the_watchdog() -> None:
    """No thread waits: the only one is kept in the call, until that is aborted."""
    script = Script({1: "blocks"})
    watch = Watch(watchdog_seconds=0.01)
    connection = Connection(script.backends(2, watch), ["GPU:0", "GPU:1"], watch=watch)

    def ask(timeout: float) -> None:
        connection.all_reduce(
            [np.ones(1)] * 2, [np.ones(1), np.ones(1)], what="a", step=3, timeout=timeout
        )

    ask(60.0)
    connection.finish()
    with pytest.raises(CollectiveTimeoutError, match="Not done on GPU:0, GPU:1") as caught:
        ask(0.05)
    assert "a in run 3 of its recorded step" in str(caught.value)
    assert (caught.value.step, caught.value.aborted) == (3, True)
    ask(60.0)
    connection.close()
    assert "mirrored-watchdog" not in [each.name for each in threading.enumerate()]
    assert script.misuses == []


# ---------------------------------------------------------------------- several connections


def test_connecting_takes_turns_with_sums(bench: Benches) -> None:
    """NCCL wants one thread at a time, whichever connection it uses."""
    b = bench(connects={1: "never returns"})
    results = [b.ask(timeout=math.inf)]
    other = b.connect(connect_timeout=math.inf)
    opens = threading.Thread(target=other.open, name="mirrored-test-opens")
    opens.start()
    while b.called.count("connect") < 2:
        time.sleep(1e-4)
    asks = threading.Thread(
        target=lambda: results.append(b.ask(timeout=math.inf)), name="mirrored-test-asks"
    )
    asks.start()
    for _ in range(10):
        time.sleep(1e-3)
        assert b.called.count("all_reduce") == 1
    b.script.release()
    for thread in (opens, asks):
        thread.join(60)
    b.connection.finish()
    other.close()
    assert len(results) == 2
    assert all(map(b.is_right, results))


# ---------------------------------------------------------------------- memory


@pytest.mark.parametrize("outcome", ["slow", "hang"])
def test_arrays_are_kept_until_the_end(
    bench: Benches, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    """Also where nobody else does, as after an interrupt: the devices use them."""
    ask = ScriptedCommunicator.all_reduce

    def with_copies(communicator: Any, sends: Any, receives: Any, streams: Any) -> None:
        ask(communicator, *([each.copy() for each in part] for part in (sends, receives)), streams)

    monkeypatch.setattr(ScriptedCommunicator, "all_reduce", with_copies)
    b = bench(collectives=[outcome], polls=20)
    arrays = [np.ones(3) for _ in range(4)]
    kept = [weakref.ref(each) for each in arrays]
    b.connection.all_reduce(arrays[:2], arrays[2:], what="a", timeout=0.5)
    del arrays
    gc.collect()
    assert all(each() is not None for each in kept)
    if outcome == "slow":
        b.connection.finish()
    else:
        with pytest.raises(CollectiveTimeoutError):
            b.connection.finish()
    assert threads_of_calls() == []
    gc.collect()
    assert all(each() is None for each in kept)


# ---------------------------------------------------------------------- connecting


@pytest.mark.parametrize(
    ("outcome", "kind", "match"),
    [
        ("fail", CollectiveError, "lets connecting fail"),
        ("unavailable", DeviceUnavailableError, "Install it"),
        ("never returns", CollectiveTimeoutError, "Connecting devices .* GPU:0, GPU:1; 0.5 sec"),
    ],
)
def test_connecting_fails(bench: Benches, outcome: str, kind: type[Exception], match: str) -> None:
    b = bench(connects=[outcome])
    with pytest.raises(kind, match=match) as caught:
        b.sum()
    if isinstance(caught.value, CollectiveError):
        assert caught.value.devices == ("GPU:0", "GPU:1")
        assert caught.value.what == "connecting"
    if isinstance(caught.value, CollectiveTimeoutError):
        assert threads_of_calls() == ["mirrored-connect-GPU:0+GPU:1"]
    assert not b.connection.is_open
    assert b.is_right(b.sum())
    b.script.release()  # A communicator that comes too late is aborted.
    assert threads_of_calls() == []
    assert ("abort" in b.called) == (outcome == "never returns")


def test_preparing_fails(bench: Benches) -> None:
    outcomes = iter([CollectiveError("wrong sums"), None])

    def prepare() -> None:
        error = next(outcomes)
        if error is not None:
            raise error

    b = bench(prepare=prepare)
    with pytest.raises(CollectiveError, match="wrong sums"):
        b.connection.open()
    assert b.called == []
    b.connection.open()
    assert b.connection.is_open


# ---------------------------------------------------------------------- interrupts


class Interrupting:
    """A clock by which the first sleep after `arm` is interrupted."""

    def __init__(self, time: FakeTime) -> None:
        self.armed = False
        self._time = time
        self._main = threading.current_thread()

    def arm(self) -> None:
        self.armed = True

    def sleep(self, seconds: float) -> None:
        if self.armed and threading.current_thread() is self._main:
            self.armed = False
            raise KeyboardInterrupt
        self._time.sleep(seconds)


@pytest.fixture
def interrupting(bench: Benches) -> Callable[..., tuple[Bench, Interrupting]]:
    def make(**options: Any) -> tuple[Bench, Interrupting]:
        b = bench(**options)
        sleeps = Interrupting(b.time)
        b.watch = Watch(b.time.clock, sleeps.sleep, abort_seconds=0.1)
        b.connection = b.connect()
        return b, sleeps

    return make


def test_interrupted_while_waiting(interrupting: Any) -> None:
    b, interrupt = interrupting(collectives=["slow"], polls=100)
    receives = b.ask()
    interrupt.arm()
    with pytest.raises(KeyboardInterrupt):
        b.connection.finish()
    assert not b.watch.idle
    b.connection.finish()
    assert b.is_right(receives)
    assert b.called == ["connect", "all_reduce"]


def test_interrupted_while_connecting(interrupting: Any) -> None:
    b, interrupt = interrupting(connects=["never returns"])
    interrupt.arm()
    with pytest.raises(KeyboardInterrupt):
        b.connection.open()
    b.script.release()
    assert threads_of_calls() == []
    assert b.called == ["connect", "abort"]
    assert b.is_right(b.sum())


@pytest.mark.parametrize("outcome", ["ok", "fail", "blocks"])
def test_interrupted_while_asking(
    interrupting: Any, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    """The thread that asks goes on; who asks next waits for it first."""
    b, interrupt = interrupting(collectives=[outcome])
    b.connection.open()
    go_on = threading.Event()
    ask = ScriptedCommunicator.all_reduce

    def slowly(*args: Any) -> None:
        with stuck(lambda: not go_on.is_set()):
            go_on.wait(30)
        ask(*args)

    monkeypatch.setattr(ScriptedCommunicator, "all_reduce", slowly)
    interrupt.arm()
    with pytest.raises(KeyboardInterrupt):
        b.ask()
    go_on.set()
    if outcome == "ok":
        assert b.is_right(b.sum())
        assert b.called == ["connect", "all_reduce", "all_reduce"]
    else:
        with pytest.raises(CollectiveError, match="GPU:1: a; "):
            b.sum()
        assert b.is_right(b.sum())
        assert b.called == ["connect", "all_reduce", "abort", "connect", "all_reduce"]


def test_interrupted_in_the_call_itself(bench: Benches, monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench()
    b.sum()
    (communicator,) = b.script.communicators
    ask = communicator.all_reduce

    def interrupted(*args: Any) -> None:
        ask(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(communicator, "all_reduce", interrupted)
    with pytest.raises(KeyboardInterrupt):
        b.ask()
    assert not b.watch.idle  # It was asked for: its end is seen.
    b.connection.finish()
    assert b.called == ["connect", "all_reduce", "all_reduce"]


# ---------------------------------------------------------------------- the end of the process


def test_closed_at_exit_in_reverse_order(caplog: pytest.LogCaptureFixture) -> None:
    scripts = [Script(), Script(closes=["fail"]), Script()]
    closed: list[int] = []
    for number, script in enumerate(scripts):
        time = FakeTime()
        watch = time.watch()
        connection = Connection(script.backends(1, watch), [f"GPU:{number}"], watch=watch)
        connection.open()
        close = script.communicators[0].close
        script.communicators[0].close = (  # type: ignore[method-assign]
            lambda number=number, close=close: (closed.append(number), close())[1]
        )
        del connection  # Those that are open are kept.
    module.close_all()
    assert closed == [2, 1, 0]
    assert [each.levelname for each in caplog.records if "at exit" in each.message] == ["WARNING"]
    assert "Received: The script lets closing 0 fail" in caplog.text
    assert module.OPEN == {}


def run_to_its_end(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program that finds the modules that this one does."""
    program = folder / "program.py"
    program.write_text(f"import sys\nsys.path += {sys.path!r}\n{code}")
    return run_program(program, folder=folder, environment=os.environ)


@pytest.mark.usefixtures("no_deadlock")
def test_exit_closes(tmp_path: Path) -> None:
    code = """
from mirrored.backends.communication.connection import Connection
from scripted_communicator import Script
script = Script()
Connection(script.backends(1), ["GPU:0"]).open()
script.communicators[0].close = lambda: print("closed")
"""
    done = run_to_its_end(code, tmp_path)
    assert (done.stdout, done.returncode) == ("closed\n", 0)
    assert done.stderr == ""


AT_EXIT = """
import sys
import numpy as np
from mirrored.backends.communication.in_flight import RESERVE
RESERVE.needed = {parked}
from mirrored.backends.communication import connection
from mirrored.backends.communication.connection import Connection
from scripted_communicator import Script

connection.AT_EXIT = 0.1
one, other = Script(["hang"], aborts=["{abort}"]), Script()
connection.WATCH.abort_seconds = 0.1
for number, script in enumerate([one, other]):
    connected = Connection(script.backends(1), [f"GPU:{{number}}"])
    connected.all_reduce([np.ones(1)], [np.ones(1)], what="a sum")
{more}
sys.exit({status})
"""

# As Python 3.12 and later have it at exit.
NO_THREADS = """
import atexit, threading
def start(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")
atexit.register(setattr, threading.Thread, "start", start)
"""


ABORTED = (
    "What was in flight at exit was not done within 0.1 s, and was aborted. Received: A "
    "collective was not done by its deadline. Received: the collective of GPU:0: a sum; "
)
NOT_ABORTED = "not done within 0.1 s, and could not be aborted either. Received: "


@pytest.mark.usefixtures("no_deadlock")
@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize(
    ("abort", "more", "parked", "said"),
    [
        ("ok", "", False, ABORTED),
        ("ok", NO_THREADS, True, ABORTED),
        ("never returns", "", False, NOT_ABORTED),
        ("never returns", NO_THREADS, True, NOT_ABORTED),
        ("ok", NO_THREADS, False, ""),
    ],
)
def test_a_collective_hangs_at_exit(
    status: int, abort: str, more: str, parked: bool, said: str, tmp_path: Path
) -> None:
    """Where no thread can be started any more, one that was parked before closes."""
    code = AT_EXIT.format(status=status, abort=abort, more=more, parked=parked)
    done = run_to_its_end(code, tmp_path)
    assert done.returncode == status
    lines = [line for line in done.stderr.splitlines() if "Connecting" not in line]
    assert len(lines) == (said != "")
    assert said in "".join(lines)


@pytest.mark.parametrize("outcome", ["blocks", "never returns"])
def test_another_thread_hangs_at_exit(
    bench: Benches, caplog: pytest.LogCaptureFixture, outcome: str
) -> None:
    b = bench(collectives={1: outcome})
    b.sum()
    thread = asks_in_thread(b)
    module.close_all()
    assert "was aborted. Received: A collective was not done" in caplog.text
    assert "at exit, since that hangs" not in caplog.text
    assert not b.connection.is_open
    b.script.release()
    thread.join(60)


def asks_in_thread(b: Bench) -> threading.Thread:
    """Ask for a sum in a thread of its own; return once it is being asked for."""

    def work() -> None:
        with suppress(CollectiveError):
            b.ask()  # Not the first of its size: in this thread.

    asked = len(b.called)
    thread = threading.Thread(target=work, name="mirrored-test-asks")
    thread.start()
    while "all_reduce" not in b.called[asked:]:
        time.sleep(1e-4)
    return thread


def test_a_forked_process_closes_nothing(bench: Benches, monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench()
    b.sum()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        module.close_all()
    assert b.connection.is_open


def no_threads(patch: pytest.MonkeyPatch) -> None:
    """Let no thread be started, as at the exit of Python 3.12 and later."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    patch.setattr(threading.Thread, "start", start)


def test_no_thread_can_be_started(bench: Benches, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no deadline then is not done; what is there stays."""
    b = bench()
    b.sum()
    with monkeypatch.context() as patch:
        no_threads(patch)
        with pytest.raises(CollectiveError, match="The first sum of a size needs a thread"):
            b.sum(size=9)
        assert b.is_right(b.sum())
        with pytest.raises(CollectiveError, match="Closing devices needs a thread") as caught:
            b.connection.close()
        assert (caught.value.devices, caught.value.what) == (("GPU:0", "GPU:1"), "closing")
        module.close_all()
        assert b.connection.is_open
    assert b.is_right(b.sum(size=9))
    b.connection.close()
    with monkeypatch.context() as patch:
        no_threads(patch)
        with pytest.raises(CollectiveError, match="Connecting devices needs a thread"):
            b.sum()
    assert b.called == ["connect", *["all_reduce"] * 3, "close"]


def test_the_watch_of_the_process_is_the_default() -> None:
    script = Script()
    connection = Connection(script.backends(2), ["GPU:0", "GPU:1"])
    receives = [np.zeros(1), np.zeros(1)]
    connection.streams[0].hold()
    connection.all_reduce([np.ones(1), np.ones(1)], receives, what="a")
    assert not WATCH.idle
    connection.streams[0].go_on()
    connection.close()
    assert WATCH.idle
    assert [each.tolist() for each in receives] == [[2], [2]]


# ---------------------------------------------------------------------- whatever happens

OUTCOMES = st.sampled_from(
    ["ok", "slow", "fail", "async", "hang", "lost", "blocks", "never returns"]
)
CALLS = st.lists(st.sampled_from(["ok", "fail", "never returns"]), max_size=2)


@settings(max_examples=30)
@given(
    collectives=st.lists(OUTCOMES, max_size=6),
    connects=CALLS,
    aborts=CALLS,
    closes=CALLS,
    ranks=st.integers(1, 3),
    actions=st.lists(st.sampled_from(["ask", "ask", "finish", "close", "check"]), max_size=8),
)
def test_whatever_happens_the_next_collective_works(
    collectives: list[str],
    connects: list[str],
    aborts: list[str],
    closes: list[str],
    ranks: int,
    actions: list[str],
) -> None:
    """Every wait ends, with the sum or with an error; then nothing is in flight."""
    b = Bench(ranks=ranks, collectives=collectives, connects=connects, aborts=aborts, closes=closes)
    asked: list[list[np.ndarray]] = []
    for size, action in enumerate([*actions, "finish"], 1):
        try:
            if action == "ask":  # Of another size each time: one that may hang is in a thread.
                asked.append(b.ask(size=size, timeout=0.02))
            elif action == "check":
                b.watch.check()
            else:
                getattr(b.connection, action)()
        except (CollectiveError, DeviceLostError):
            asked.clear()
        if action in ("finish", "close") and b.watch.idle:
            assert all(map(b.is_right, asked))
    assert b.watch.idle
    b.script.release()
    assert threads_of_calls() == []
    for outcomes in b.script._outcomes.values():
        outcomes.clear()
    assert b.is_right(b.sum())
    b.finish()


# ---------------------------------------------------------------------- several processes


class Others:
    """Another process, as `Peers`: it has the second rank, and fails when a test says so."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.told: list[str] = []
        self.goes_on = False

    def meet(self, new_key: Callable[[], bytes]) -> Place:
        return Place(0, 2, new_key())

    def look(self) -> None:
        if self.failure is not None:
            raise self.failure

    def together(self) -> AbstractContextManager[object]:
        return nullcontext()

    def lost(self, error: BaseException) -> None:
        self.told.append(type(error).__name__)


def with_others(bench: Benches, **script: Any) -> tuple[Bench, Others]:
    b, others = bench(ranks=1, **script), Others()
    b.connection = b.connect(peers=others)
    return b, others


def test_processes_meet_whenever_they_are_connected(bench: Benches) -> None:
    b, others = with_others(bench)
    b.sum()
    b.sum()
    b.connection.close()
    b.sum()
    assert b.script.places == [Place(0, 2, b"a key")] * 2
    assert others.told == []


def test_a_sum_ends_where_another_process_fails(bench: Benches) -> None:
    """What is raised is the other one's failure, long before the deadline."""
    b, others = with_others(bench, collectives=["hang"])
    b.ask(timeout=1e6)
    others.failure = ProcessLookupError("it has left")
    with pytest.raises(ProcessLookupError, match="it has left") as raised:
        b.connection.finish()
    assert "This ended the collective of GPU:0" in raised.value.__notes__[0]
    assert others.told == ["ProcessLookupError"]
    assert "abort" in b.called
    others.failure = None
    assert b.is_right(b.sum())


def test_other_processes_hear_of_a_deadline(bench: Benches) -> None:
    b, others = with_others(bench, collectives=["hang"])
    b.ask()
    with pytest.raises(CollectiveTimeoutError, match="Start all processes again"):
        b.connection.finish()
    assert others.told == ["CollectiveTimeoutError"]


@pytest.mark.parametrize("outcome", ["fail", "never returns"])
def test_other_processes_hear_of_what_is_not_connected(bench: Benches, outcome: str) -> None:
    b, others = with_others(bench, connects=[outcome])
    if outcome == "never returns":
        others.failure = ProcessLookupError("it has left")
    with pytest.raises((CollectiveError, ProcessLookupError)) as raised:
        b.connection.open()
    assert others.told == [type(raised.value).__name__]


def test_no_process_waits_for_others_to_disconnect_at_exit(bench: Benches) -> None:
    b, _ = with_others(bench)
    b.sum()
    b.connection.close_now()
    assert "close" not in b.called
    assert not b.connection.is_open
    b.script.communicators[0].abort()


def test_devices_are_disconnected_without_processes_that_may_be_dead(bench: Benches) -> None:
    b, others = with_others(bench, aborts=["ok", "fail"])
    others.goes_on = True
    b.connection.close()
    b.sum()
    b.connection.close()
    assert ("abort" in b.called, "close" in b.called) == (True, False)
    b.sum()
    with pytest.raises(CollectiveError, match=r"could not be disconnected .*GPU:0.* End this"):
        b.connection.close()
