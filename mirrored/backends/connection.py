"""Devices that are connected when they are first needed, and whose collectives have deadlines.

A communicator says how devices sum arrays; this is when it is made, who may ask it for what at one
time, and what becomes of it when a collective fails.
"""

from __future__ import annotations

import atexit
import functools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from mirrored._logging import logger
from mirrored.backends.calls import Call
from mirrored.backends.communicator import Communicator
from mirrored.backends.flights import Flight
from mirrored.backends.incident import timed_out
from mirrored.backends.streams import Event, StreamBackend
from mirrored.backends.watch import WATCH, Watch
from mirrored.errors import CollectiveError

T = TypeVar("T")

# Seconds that what is in flight has when the process ends: nobody will use it any more.
_AT_EXIT = 5.0


class _Progress:
    """How far one collective is: its events, by rank, once they are recorded."""

    def __init__(self, streams: Sequence[StreamBackend]) -> None:
        self.events: list[Event] = []
        self.streams = streams

    def record(self) -> None:
        """Note the end of what each stream was asked for so far."""
        self.events = [stream.record() for stream in self.streams]

    def ranks(self) -> list[bool]:
        """Return whether each rank is done."""
        if not self.events:
            return [False] * len(self.streams)
        return [s.is_done(e) for s, e in zip(self.streams, self.events, strict=True)]

    def __call__(self) -> bool:
        """Return whether all ranks are done; the first that is not is the last one asked."""
        return bool(self.events) and all(
            stream.is_done(event) for stream, event in zip(self.streams, self.events, strict=True)
        )


class _Link:
    """A communicator, from connecting the devices until they are disconnected.

    Attributes:
        communicator: The communicator.
        calling: Held in its calls but `abort`; one that hangs holds it for ever.
        asked: Sizes and dtypes of what was summed.
        issuing: A call in a thread of its own that was not seen to return, and what it asks for.
        process: The number of the process that connected the devices.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.calling = threading.Lock()
        self.asked: set[tuple[Any, ...]] = set()
        self.issuing: tuple[Call[None], Flight] | None = None
        self.process = os.getpid()

    def issue(self, sends: Sequence[Any], receives: Sequence[Any], progress: _Progress) -> None:
        """Ask for a collective, and record the events behind it."""
        with self.calling:
            try:
                self.communicator.all_reduce(sends, receives, progress.streams)
            except KeyboardInterrupt:  # It may have been asked for: its end is to be seen.
                progress.record()
                raise
            progress.record()

    def close(self) -> None:
        """Disconnect the devices."""
        with self.calling:
            self.communicator.close()


class Connection:
    """Devices that are connected when they are first needed, and whose collectives have deadlines.

    Several threads may use it: collectives are asked for one after the other, so they have one
    order on all ranks. A connection that is open is kept, also where nobody else does, until it is
    closed or the process ends: disconnecting devices may wait for them, which the garbage collector
    must not. After an abort, and after `close`, the next use connects the devices anew.

    Args:
        ranks: A device a rank.
        names: What errors call each of them.
        prepare: Called before the devices are connected, for the first time and after an abort:
            looks whether they can be, and raises if not.
        connect_timeout: Seconds that connecting the devices may take.
        watch: What looks after its collectives.

    Attributes:
        ranks: A device a rank.
        names: What errors call each of them.
        streams: For each rank its device, with the stream of the collectives.

    Raises:
        ValueError: There are no ranks, or they have not as many names.
    """

    def __init__(
        self,
        ranks: Sequence[StreamBackend],
        names: Sequence[str],
        *,
        prepare: Callable[[], None] | None = None,
        connect_timeout: float = 120.0,
        watch: Watch = WATCH,
    ) -> None:
        if not ranks or len(ranks) != len(names):
            raise ValueError(
                "A connection has at least one device, and a name for each. Received: "
                f"{len(ranks)} devices and {len(names)} names."
            )
        self.ranks = tuple(ranks)
        self.names = tuple(names)
        self.streams = tuple(rank.another() for rank in self.ranks)
        self._prepare = prepare
        self._connect_timeout = connect_timeout
        self._watch = watch
        self._prepared = False
        self._link: _Link | None = None
        self._turn = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the devices are connected."""
        return self._link is not None

    def open(self) -> None:
        """Connect the devices, if they are not.

        Raises:
            CollectiveTimeoutError: They were not connected by the deadline.
            CollectiveError: They could not be.
            DeviceUnavailableError: Something is missing for it; the text says what mends that.
        """
        with self._our_turn():
            self._opened()

    def all_reduce(
        self,
        sends: Sequence[Any],
        receives: Sequence[Any],
        *,
        what: str,
        step: int | None = None,
        timeout: float = 600.0,
    ) -> list[Event]:
        """Ask all ranks for the sum of one array a rank; connect the devices first if need be.

        It waits for none of them. The caller lets `streams` wait for what computes `sends`, and
        what reads `receives` for the events, and holds no lock of a device.

        Args:
            sends: For each rank the array that it adds, all of one size and dtype.
            receives: For each rank the array for the sum.
            what: What errors call it, such as "bucket 2 of 5".
            step: The number of the step, for errors.
            timeout: Seconds that it has from now on, or from when the one before it is done; may
                be infinite.

        Returns:
            For each rank the event behind it.

        Raises:
            ValueError: The arrays do not go together; nothing was asked for.
            CollectiveTimeoutError: This one, or one before it, missed its deadline.
            CollectiveError: This one was refused, or one before it failed.
        """
        if not len(sends) == len(receives) == len(self.ranks):
            raise ValueError(
                f"A collective of {len(self.ranks)} ranks has an array to send and one to receive "
                f"for each. Received: {len(sends)} and {len(receives)}."
            )
        with self._our_turn():
            link = self._opened()
            progress = _Progress(self.streams)
            flight = Flight(self, what, step, timeout, progress, progress.ranks)
            self._watch.add(flight)
            work = functools.partial(link.issue, sends, receives, progress)
            with self._in_flight(flight):
                self._issued(link, flight, work, (sends[0].nbytes, sends[0].dtype))
            self._watch.settle()  # Others may have ended it meanwhile.
            return progress.events

    def finish(self) -> None:
        """Let the host wait until nothing that was asked for here is in flight.

        Raises:
            CollectiveTimeoutError: A collective missed its deadline.
            CollectiveError: One failed, or ended because of another one.
        """
        self._watch.finish(self)

    def close(self) -> None:
        """Disconnect the devices once all that was asked for is done. Again: do nothing.

        Raises:
            CollectiveTimeoutError: A collective missed its deadline, or disconnecting did.
            CollectiveError: A collective failed; the devices are disconnected in any case.
        """
        with self._our_turn():
            self._watch.finish(self)
            link, self._link = self._link, None
            _open.pop(self, None)
            if link is not None:
                self._called("close", "closing", link.close, self._watch.abort_seconds)

    def close_now(self) -> None:
        """Close, and give what is in flight little time for that; what goes wrong is logged."""
        self._watch.hurry(_AT_EXIT)
        try:
            self.close()
        except Exception as error:
            logger.warning("Devices were not disconnected at exit. Received: %s", error)
        finally:
            self._watch.hurry(math.inf)

    # ------------------------------------------------------------------ for the watch

    def failure(self) -> str | None:
        """Return what has gone wrong beside the calls; None: nothing that can be told now."""
        link = self._link
        if link is None or not link.calling.acquire(blocking=False):
            return None
        try:
            return link.communicator.failure()
        finally:
            link.calling.release()

    def disconnect(self) -> Callable[[], object] | None:
        """Forget the communicator, and return what aborts it; None: there is none."""
        link, self._link = self._link, None
        self._prepared = False
        _open.pop(self, None)
        return None if link is None else functools.partial(self._abort, link)

    # ------------------------------------------------------------------ calls of the communicator

    @contextmanager
    def _our_turn(self) -> Iterator[None]:
        """Use the connection alone; what is in flight is looked after until it is our turn."""
        self._watch.settle()
        if not self._turn.acquire(blocking=False):
            self._wait_for_turn()
        try:
            if self._link is not None and self._link.issuing is not None:
                self._see_interrupted(self._link, *self._link.issuing)
            yield
        finally:
            self._turn.release()

    def _wait_for_turn(self) -> None:
        ours = False

        def taken() -> bool:
            nonlocal ours
            ours = ours or self._turn.acquire(blocking=False)
            return ours

        try:
            self._watch.wait(taken, may_break=True)
        except BaseException:
            if ours:
                self._turn.release()
            raise

    def _see_interrupted(self, link: _Link, call: Call[None], flight: Flight) -> None:
        """Wait until a call has returned whose caller did not wait for that."""
        self._watch.wait(lambda: call.is_over)
        link.issuing = None
        # Nobody is there any more to be told that the arrays did not go together.
        with suppress(ValueError), self._in_flight(flight):
            call.result()

    @contextmanager
    def _in_flight(self, flight: Flight) -> Iterator[None]:
        """Ask for what is in flight already, so that other threads see it where this one hangs."""
        try:
            yield
        except ValueError:
            self._watch.withdraw(flight)
            raise
        except Exception as error:
            self._watch.fail(flight, error)

    def _opened(self) -> _Link:
        """Return the communicator, connecting the devices if need be."""
        if self._link is not None:
            return self._link
        if self._prepare is not None and not self._prepared:
            self._prepare()
        self._prepared = True
        logger.info("Connecting devices: %s.", ", ".join(self.names))
        connect = functools.partial(self.ranks[0].connect, self.ranks)
        link = _Link(
            self._called(
                "connect", "connecting", connect, self._connect_timeout, lambda late: late.abort()
            )
        )
        self._link = link
        _keep(self, link)
        return link

    def _called(
        self,
        verb: str,
        what: str,
        function: Callable[[], T],
        seconds: float,
        dispose: Callable[[T], object] = lambda late: None,
    ) -> T:
        """Return what a function returns in a thread of its own, if it does so in time."""
        until = self._watch.clock() + seconds
        call = self._watch.call(self._thread(verb), function)
        if not call.begun:
            return function()
        try:
            # Nothing is written meanwhile, and it takes long where something is wrong.
            self._watch.wait(lambda: call.is_over or self._watch.clock() >= until, may_break=True)
            if not call.is_over:
                raise timed_out(self.names, what, seconds, call.name)
        except BaseException:
            call.abandon(dispose)
            raise
        return call.result()

    def _issued(
        self, link: _Link, flight: Flight, work: Callable[[], None], kind: tuple[Any, ...]
    ) -> None:
        """Ask for a collective.

        What is like one before it is asked for here. The first of a kind is asked for in a thread:
        libraries connect more of the devices when they first use an algorithm, which they choose by
        size and type, and that may hang as connecting may.
        """
        if kind not in link.asked:
            call = self._watch.call(self._thread("call"), work)
            if call.begun:
                link.issuing = (call, flight)
                self._watch.wait(lambda: call.is_over)
                link.issuing = None
                call.result()
                link.asked.add(kind)
                return
        work()

    def _abort(self, link: _Link) -> None:
        """Abort a communicator, which lets calls of it return as well."""
        link.communicator.abort()
        if link.issuing is not None:
            call, _ = link.issuing
            until = self._watch.clock() + self._watch.abort_seconds / 2
            self._watch.wait(lambda: call.is_over or self._watch.clock() >= until)
            if not call.is_over:
                raise CollectiveError(f"The thread {call.name!r} did not come back either.")

    def _thread(self, verb: str) -> str:
        return f"mirrored-{verb}-{'+'.join(self.names)}"


# ---------------------------------------------------------------------- the end of the process

_open: dict[Connection, _Link] = {}  # Those that are open, in the order of opening.


@functools.cache
def _close_at_exit() -> None:
    # At the first connection: what the devices' libraries register before it runs after it.
    atexit.register(close_all)


def _keep(connection: Connection, link: _Link) -> None:
    _open[connection] = link
    _close_at_exit()


def close_all() -> None:
    """Close all connections that are open, the last one first; what goes wrong is logged.

    It is called at exit, and may be before.
    """
    for connection, link in reversed(list(_open.items())):
        if link.process != os.getpid():  # A forked process cannot use what it has a copy of.
            continue
        connection.close_now()
