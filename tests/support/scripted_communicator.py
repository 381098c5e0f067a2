"""Devices in host memory whose collectives go as a script says: slow, wrong, late or never.

Devices go on when somebody looks how far one of them is, and time does not matter to them. With the
clock of `fake_time`, what happens in a test is the same on every machine.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from fake_time import stuck

from mirrored.backends.backend import Backend, Storage
from mirrored.backends.communication.watch import WATCH, Watch
from mirrored.backends.host import HostBackend
from mirrored.backends.stream_backend import Place
from mirrored.errors import CollectiveError, DeviceLostError, DeviceUnavailableError

# What may become of a collective:
# - "ok": it is done when all ranks have come to it;
# - "slow": then, and after as many looks as the script's `polls`;
# - "wrong", "nan": its last rank gets a wrong sum;
# - "fail": asking for it raises a CollectiveError;
# - "async": it is never done, and the communicator's `failure` says something;
# - "hang": it is never done;
# - "lost": a look at it raises a DeviceLostError;
# - "blocks": asking for it does not return before it is aborted;
# - "never returns": asking for it does not return before `release`.
# All but the last end, with garbage, where they are aborted.
COLLECTIVES = (
    *("ok", "slow", "wrong", "nan", "fail", "async", "hang", "lost", "blocks"),
    "never returns",
)
# What may become of connecting, aborting and closing. "unavailable" is for connecting.
CALLS = ("ok", "fail", "never returns", "unavailable")

# How often a device is looked at, with nothing changing, before a test is said to wait for ever.
_LOOKS = 10_000

Outcomes = Mapping[int, str] | Sequence[str]


class Misuse(AssertionError):
    """A communicator was used as its protocol forbids."""


class Script:
    """What becomes of calls, by their number from 0 on, and which calls there were.

    Args:
        collectives: What becomes of collectives; those without an entry are "ok". They are counted
            over all communicators of the script.
        connects: The same for connecting.
        aborts: The same for aborts.
        closes: The same for closing.
        polls: How many looks a slow collective takes.
        why_not: What devices answer when they are asked why they cannot be connected.
        reads: Whether devices read each other's memory.

    Attributes:
        calls: The calls so far, in order: what it was, and its number.
        places: Where ranks were to be among those of several processes, by connection.
        misuses: What was done that the protocol of communicators forbids.
        communicators: All that were made.
    """

    def __init__(
        self,
        collectives: Outcomes = (),
        *,
        connects: Outcomes = (),
        aborts: Outcomes = (),
        closes: Outcomes = (),
        polls: int = 3,
        why_not: str | None = None,
        reads: bool = True,
    ) -> None:
        self.polls = polls
        self.why_not = why_not
        self.reads = reads
        self.calls: list[tuple[str, int]] = []
        self.places: list[Place | None] = []
        self.misuses: list[str] = []
        self.communicators: list[ScriptedCommunicator] = []
        self.lock = threading.RLock()
        self._outcomes = {
            "all_reduce": _numbered(collectives, COLLECTIVES),
            "connect": _numbered(connects, CALLS),
            "abort": _numbered(aborts, CALLS),
            "close": _numbered(closes, CALLS),
        }
        self._numbers: Counter[str] = Counter()
        self._streams: weakref.WeakSet[_Stream] = weakref.WeakSet()
        self._poller = 0
        self._released = threading.Event()

    def note(self, call: str) -> tuple[int, str]:
        """Note a call; return its number and what becomes of it."""
        with self.lock:
            number = self._numbers[call]
            self._numbers[call] += 1
            self.calls.append((call, number))
            return number, self._outcomes[call].get(number, "ok")

    def stream(self) -> _Stream:
        """Return another stream of a device."""
        stream = _Stream()
        self._streams.add(stream)
        return stream

    def look(self) -> None:
        """Let all devices do what they can do by now."""
        with self.lock:
            self._poller += 1
            while any([stream.advance(self._poller) for stream in self._streams]):
                pass

    def block(self, until: Callable[[], bool] = lambda: False) -> None:
        """Do not return before `release`, or before a function says so."""
        with stuck(lambda: not until() and not self._released.is_set()):
            while not self._released.wait(1e-3) and not until():
                pass

    def release(self) -> None:
        """Let calls that do not return do so after all."""
        self._released.set()

    def backends(self, count: int, watch: Watch = WATCH) -> list[ScriptedBackend]:
        """Return devices that follow the script, each with memory of its own."""
        return [ScriptedBackend(self, f"card {number}", watch=watch) for number in range(count)]


def _numbered(outcomes: Outcomes, known: Sequence[str]) -> dict[int, str]:
    numbered = dict(outcomes if isinstance(outcomes, Mapping) else enumerate(outcomes))
    if not set(numbered.values()) <= set(known):
        raise ValueError(f"A script is made of {known}. Received: {outcomes!r}.")
    return numbered


class _Stream:
    """Work in order: functions of the number of looks so far, each asked until it is done."""

    def __init__(self) -> None:
        self.works: deque[Callable[[int], bool]] = deque()
        self.held = False

    def advance(self, looks: int) -> bool:
        """Do what can be done now; return whether that was anything."""
        before = len(self.works)
        while self.works and not self.held and self.works[0](looks):
            self.works.popleft()
        return len(self.works) < before


class _Event:
    """A place in the work of a stream."""

    def __init__(self) -> None:
        self.is_done = False

    def reach(self, looks: int) -> bool:
        self.is_done = True
        return True


class ScriptedBackend(HostBackend):
    """One device. Its work is done when somebody looks how far it is, or waits for it.

    Args:
        script: What becomes of its connections.
        memory: What tells its memory from others'; devices of one card have the same.
        watch: What the host's waits look after.
    """

    host_readable = False

    def __init__(self, script: Script, memory: str = "card 0", *, watch: Watch = WATCH) -> None:
        self.memory = memory
        self.script = script
        self._watch = watch
        self._stream = script.stream()

    def __repr__(self) -> str:
        return f"ScriptedBackend({self.memory!r})"

    def hold(self) -> None:
        """Do no work before `go_on`."""
        self._stream.held = True

    def go_on(self) -> None:
        """Work again."""
        self._stream.held = False

    # ------------------------------------------------------------------ streams and events

    def another(self, *, urgent: bool = False) -> ScriptedBackend:
        return ScriptedBackend(self.script, self.memory, watch=self._watch)

    def record(self) -> _Event:
        event = _Event()
        self.enqueue(event.reach)
        return event

    def is_done(self, event: _Event) -> bool:
        self.script.look()
        return event.is_done

    def wait(self, event: _Event) -> None:
        self.enqueue(lambda looks: event.is_done)

    def wait_on_host(self, event: _Event) -> None:
        if not self._watch.idle:
            self._watch.wait(lambda: self.is_done(event))
            return
        for _ in range(_LOOKS):
            if self.is_done(event):
                return
        raise Misuse(f"The host would wait for {self!r} for ever: nothing looks after it.")

    def synchronize(self) -> None:
        self.wait_on_host(self.record())

    def enqueue(self, work: Callable[[int], bool]) -> None:
        """Let the stream ask a function until it says that it is done, then go on.

        Args:
            work: From the number of looks at devices so far to whether it is done.
        """
        with self.script.lock:
            self._stream.works.append(work)

    def _do(self, work: Callable[[], object]) -> None:
        """Let the stream call a function, in its turn."""
        self.enqueue(lambda looks: (work(), True)[1])

    # ------------------------------------------------------------------ work

    def call(self, kernel: Any, args: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        self._do(lambda: super(ScriptedBackend, self).call(kernel, args, attrs))

    def copy_from_host(self, storage: Storage, array: np.ndarray) -> None:
        self.copy_between(array.astype(storage.array.dtype, casting="equiv"), storage.array)

    def copy_between(self, source: np.ndarray, target: np.ndarray) -> None:
        self._do(lambda: np.copyto(target, source, casting="no"))

    def copy_across(self, backend: Backend, source: np.ndarray, target: np.ndarray) -> None:
        if not isinstance(backend, ScriptedBackend):
            self.copy_between(backend.to_host(source), target)
            return
        self.wait(backend.record())
        self.copy_between(source, target)
        backend.wait(self.record())

    def to_host(self, array: np.ndarray) -> np.ndarray:
        self.synchronize()
        return np.array(array, order="C")

    # ------------------------------------------------------------------ connections

    def why_not_connected(self, others: Sequence[object]) -> str | None:
        return self.script.why_not

    def reads(self, other: object) -> bool:
        return self.script.reads

    def new_key(self) -> bytes:
        return b"a key"

    def connect(
        self, ranks: Sequence[ScriptedBackend], place: Place | None = None
    ) -> ScriptedCommunicator:
        self.script.places.append(place)
        _, outcome = self.script.note("connect")
        if outcome == "fail":
            raise CollectiveError("The script lets connecting fail.")
        if outcome == "unavailable":
            raise DeviceUnavailableError("The script has no library. Install it.")
        if outcome == "never returns":
            self.script.block()
        return ScriptedCommunicator(self.script, len(ranks))


class _Collective:
    """One sum, which is there once the streams of all ranks have come to it."""

    def __init__(
        self,
        outcome: str,
        polls: int,
        sends: Sequence[np.ndarray],
        receives: Sequence[np.ndarray],
    ) -> None:
        self.outcome = outcome
        self.ended = False
        self._polls = polls if outcome == "slow" else 0
        self._sends = sends
        self._receives = receives
        self._here: set[int] = set()
        self._met: int | None = None  # At which look all ranks had come to it.

    def part(self, rank: int, looks: int) -> bool:
        """Return whether a rank's part is done."""
        self._here.add(rank)
        if self.ended:
            return True
        if self.outcome == "lost":
            raise DeviceLostError("The script lets the device fail.")
        if len(self._here) < len(self._sends) or self.outcome in ("hang", "async"):
            return False
        if self._met is None:
            self._met = looks
        if looks - self._met < self._polls:
            return False
        self._sum()
        return True

    def _sum(self) -> None:
        self.ended = True
        total = self._sends[0].copy()
        with np.errstate(all="ignore"):
            for send in self._sends[1:]:
                total += send
        for receive in self._receives:
            receive[...] = total
        if self.outcome == "wrong":
            self._receives[-1].reshape(-1)[-1:] += 1
        if self.outcome == "nan":
            self._garble(self._receives[-1])

    def abort(self) -> None:
        """End it, with anything as the sum."""
        if not self.ended:
            self.ended = True
            for receive in self._receives:
                self._garble(receive)

    @staticmethod
    def _garble(array: np.ndarray) -> None:
        array[...] = np.nan if array.dtype.kind in "fV" else np.iinfo(array.dtype).max


class ScriptedCommunicator:
    """The communicator of scripted devices.

    Args:
        script: What becomes of its collectives.
        size: How many ranks it has.
    """

    def __init__(self, script: Script, size: int) -> None:
        self.size = size
        self.is_aborted = False
        self.is_closed = False
        self._script = script
        self._collectives: list[_Collective] = []
        self._calling = threading.Lock()
        script.communicators.append(self)

    def all_reduce(
        self,
        sends: Sequence[np.ndarray],
        receives: Sequence[np.ndarray],
        streams: Sequence[ScriptedBackend],
    ) -> None:
        with _Alone(self, "all_reduce"):
            _check(self.size, sends, receives, streams)
            self._all_reduce(sends, receives, streams)

    def _all_reduce(
        self,
        sends: Sequence[np.ndarray],
        receives: Sequence[np.ndarray],
        streams: Sequence[ScriptedBackend],
    ) -> None:
        number, outcome = self._script.note("all_reduce")
        if outcome == "never returns":
            self._script.block()
        if outcome == "blocks":
            self._script.block(lambda: self.is_aborted)
        if outcome in ("fail", "blocks", "never returns"):
            raise CollectiveError(f"The script lets all-reduce {number} fail.")
        collective = _Collective(outcome, self._script.polls, sends, receives)
        with self._script.lock:
            self._collectives = [each for each in self._collectives if not each.ended]
            self._collectives.append(collective)
            for rank, stream in enumerate(streams):
                stream.enqueue(functools.partial(collective.part, rank))

    def failure(self) -> str | None:
        with _Alone(self, "failure"), self._script.lock:
            broken = any(each.outcome == "async" and not each.ended for each in self._collectives)
            return "The script lets the link between the devices fail." if broken else None

    def abort(self) -> None:
        number, outcome = self._script.note("abort")
        if outcome == "never returns":
            self._script.block()
        with self._script.lock:
            if self.is_aborted or self.is_closed:
                self._script.misuses.append("abort of what was aborted or closed")
            self.is_aborted = True
            for collective in self._collectives:
                collective.abort()
        if outcome == "fail":
            raise RuntimeError(f"The script lets abort {number} fail.")

    def close(self) -> None:
        if self.is_closed:
            return
        with _Alone(self, "close"):
            number, outcome = self._script.note("close")
            if any(not each.ended for each in self._collectives):
                self._script.misuses.append("close with a collective in flight")
            if outcome == "never returns":
                self._script.block()
            self.is_closed = True
            if outcome == "fail":
                raise CollectiveError(f"The script lets closing {number} fail.")

    @property
    def is_usable(self) -> bool:
        """Whether it was neither aborted nor closed."""
        return not self.is_aborted and not self.is_closed


class _Alone:
    """A call of a communicator: one at a time, and none once it was aborted or closed."""

    def __init__(self, communicator: ScriptedCommunicator, call: str) -> None:
        self._communicator = communicator
        self._call = call

    def __enter__(self) -> None:
        communicator = self._communicator
        if not communicator._calling.acquire(blocking=False):
            self._refuse("beside another call")
        if not communicator.is_usable:
            communicator._calling.release()
            self._refuse("after an abort or after closing")

    def __exit__(self, *exception: object) -> None:
        self._communicator._calling.release()

    def _refuse(self, when: str) -> None:
        misuse = f"{self._call} {when}"
        self._communicator._script.misuses.append(misuse)
        raise Misuse(misuse)


def _check(
    size: int,
    sends: Sequence[np.ndarray],
    receives: Sequence[np.ndarray],
    streams: Sequence[object],
) -> None:
    arrays = [*sends, *receives]
    if not len(sends) == len(receives) == len(streams) == size:
        raise ValueError(f"There are {size} ranks. Received: {len(sends)}, {len(receives)} arrays.")
    if len({(each.size, each.dtype) for each in arrays}) > 1:
        raise ValueError("Arrays of a collective have one size and dtype.")
    if not all(each.flags.c_contiguous for each in arrays) or arrays[0].dtype.kind not in "iufV":
        raise ValueError("Arrays of a collective are contiguous numbers.")
    for send, receive in zip(sends, receives, strict=True):
        if send is not receive and np.may_share_memory(send, receive):
            raise ValueError("A sum is written over what is sent, or apart from it.")
