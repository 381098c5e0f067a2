"""Devices that are connected when first needed, with deadlines for collectives.

A communicator says how devices sum arrays; this is when it is made, who may ask it for what at one
time, what becomes of it when a collective fails, and that it is closed when the process ends.
"""

import atexit
import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from mirrored._interrupt import inside
from mirrored._logging import logger
from mirrored.backends.communication.collective_failures import Peers, no_thread, timed_out
from mirrored.backends.communication.in_flight import RESERVE, Future, Handle, Progress, Request
from mirrored.backends.communication.watch import WATCH, Watch, abort_all
from mirrored.backends.stream_backend import Communicator, Event, StreamBackend
from mirrored.errors import CollectiveError

# Seconds that what is in flight has when the process ends: nobody will use it any more.
AT_EXIT = 5.0
# Threads that closing takes then beside one for each connection: it itself, one that closes, one
# that ends everything, and what stops writes.
_AT_EXIT_THREADS = 4


OPEN: "dict[Connection, Handle]" = {}  # In the order of opening.


def keep(connection: "Connection", link: Handle) -> None:
    """Keep one that was opened, until it is forgotten or the process ends."""
    OPEN[connection] = link
    RESERVE.fill(_AT_EXIT_THREADS + len(OPEN))
    _close_at_exit()


def forget(connection: "Connection") -> None:
    """Keep one no longer, if it is kept."""
    OPEN.pop(connection, None)


@functools.cache
def _close_at_exit() -> None:
    # At the first connection: what the devices' libraries register before it runs after it.
    atexit.register(close_all)


def close_all() -> None:
    """Close all connections that are open, the last one first; what goes wrong is logged.

    It is called at exit, and may be before. All that is in flight has a few seconds together, and
    is aborted then. Where no thread can be had the devices stay connected: a call without a
    deadline could keep the process from ending.
    """
    # A forked process cannot use what it has a copy of.
    own = [connection for connection, link in reversed(OPEN.items()) if link.process == os.getpid()]
    if not own:
        return
    watches = {connection.watch for connection in own}
    for watch in watches:
        watch.hurry(AT_EXIT)
    try:
        with RESERVE.lent():
            call = Future("mirrored-close-at-exit", lambda: _close_now(own))
            if call.begun:
                longest = max(watch.stop_seconds + 2 * watch.abort_seconds for watch in watches)
                call.thread.join(AT_EXIT + longest)
                if not call.is_over:
                    logger.warning(
                        "Devices were not disconnected at exit because disconnecting hangs."
                    )
    finally:
        for watch in watches:
            watch.hurry(math.inf)


def _close_now(connections: Sequence["Connection"]) -> None:
    for connection in connections:
        connection.close_now()


T = TypeVar("T")

# The environment variable that, where it is 1, lets several ranks be on one card: for tests.
MULTI_RANK = "MIRRORED_NCCL_MULTI_RANK"


class Connection:
    """Devices that are connected when they are first needed, and whose collectives have deadlines.

    Several threads may use it: collectives are asked for one after the other, so they have one
    order on all ranks; and so do those of all connections of a watch, with connecting the devices
    (`CallLock`). One that is open is kept, also where nobody else does, until it is closed or
    the process ends: disconnecting devices may wait for them, which the garbage collector must not.
    After an abort, and after `close`, the next use connects the devices again.

    Args:
        ranks: A device a rank.
        names: What errors call each of them.
        prepare: Called before the devices are connected, for the first time and after an abort:
            looks whether they can be, and raises if not.
        connect_timeout: Seconds that connecting the devices may take.
        watch: What looks after its collectives.
        peers: Other processes, whose devices are connected with these; None: there are none. All
            of them make the same calls, in the same order; what fails in one ends it for all.

    Attributes:
        streams: For each rank its device, with the stream of the collectives.
        watch: What looks after its collectives.
        peers: The other processes.

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
        peers: Peers | None = None,
    ) -> None:
        if not ranks or len(ranks) != len(names):
            raise ValueError(
                "A connection needs at least one device, and one name per device. Received: "
                f"{len(ranks)} devices and {len(names)} names."
            )
        self.ranks = tuple(ranks)
        self.names = tuple(names)
        # What computes beside a sum would take the card's multiprocessors before it else.
        self.streams = tuple(rank.another(urgent=True) for rank in self.ranks)
        self.peers = peers
        self._prepare = prepare
        self._connect_timeout = connect_timeout
        self.watch = watch
        self._prepared = False
        self._link: Handle | None = None

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
        with self._locked():
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
            step: In which run of its recorded step it is, for errors.
            timeout: Seconds that it has from now on, or from when the one before it is done; may
                be infinite.

        Returns:
            For each rank the event behind it.

        Raises:
            ValueError: The arrays do not go together; nothing was asked for.
            CollectiveTimeoutError: This one, or one before it, missed its deadline.
            CollectiveError: This one was refused, or a thread for it; or one before it failed.
        """
        if not len(sends) == len(receives) == len(self.ranks):
            raise ValueError(
                f"A collective of {len(self.ranks)} ranks needs one array to send and one array "
                f"to receive per rank. Received: {len(sends)} and {len(receives)}."
            )
        with self._locked():
            link: Handle = self._opened()
            progress = Progress(sends, receives, self.streams)
            request = Request(self, what, step, timeout, self._done(progress), progress.ranks)
            request.notify = None if self.peers is None else self.peers.lost
            with self._asking(request, progress):
                self.watch.add(request)
                if self._link is not link:  # Everything has ended since it was looked up.
                    self.watch.settle()
                    raise self.watch.lost()
                self._issued(link, request, progress)
            self.watch.settle()  # Others may have ended it meanwhile.
            return progress.events

    def finish(self) -> None:
        """Let the host wait until nothing that was asked for here is in flight.

        Raises:
            CollectiveTimeoutError: A collective missed its deadline.
            CollectiveError: One failed, or ended because of another one.
        """
        self.watch.finish(self)

    def close(self) -> None:
        """Disconnect the devices once all that was asked for is done. Again: do nothing.

        Where other processes go on without one that dies, nothing is in flight, and it waits for
        none of them.

        Raises:
            CollectiveTimeoutError: A collective missed its deadline, or disconnecting did.
            CollectiveError: A collective failed; the devices are disconnected in any case, unless
                the text says that they could not be.
        """
        if self.peers is not None and self.peers.goes_on:
            self._abandon()
        else:
            self._close()

    def close_now(self) -> None:
        """Close where the process ends: wait for nobody for long, and log what goes wrong.

        What is in flight has as long as `Watch.hurry` says. Other processes may be long in coming
        to their end, which disconnects the devices from theirs.
        """
        try:
            if self.peers is None:
                self._close(AT_EXIT)
            else:
                self.watch.finish(self)
                self.disconnect()
        except Exception as error:
            aborted = getattr(error, "aborted", None)
            if aborted is None:
                problem = "Devices were not disconnected at exit."
            else:
                became = "was aborted" if aborted else "could not be aborted either"
                problem = (
                    f"What was in flight at exit was not done within {AT_EXIT:g} s, and {became}."
                )
            logger.warning("%s Received: %s", problem, str(error).partition("\n")[0])

    def _abandon(self) -> None:
        """Abort the communicator, whose other processes may be dead."""
        abort, watch = self.disconnect(), self.watch
        aborts = [] if abort is None else [("+".join(self.names), abort)]
        failed = abort_all(watch.workers, aborts, watch.abort_seconds)
        if failed or watch.stuck:
            raise CollectiveError(
                "Devices could not be disconnected from those of other processes, so that this "
                f"process cannot go on without them. Received: {', '.join(self.names)}; "
                f"{' '.join(failed) or 'an abort that failed.'} End this process: the others go on "
                "without it.",
                devices=self.names,
                what="closing",
                aborted=False,
            )
        for stream in self.streams:  # What was aborted still writes.
            stream.synchronize()

    def _close(self, seconds: float = math.inf) -> None:
        """Close; the lock for it is free within N seconds, or never."""
        self.watch.finish(self)
        with self._locked(seconds):
            self.watch.finish(self)
            link = self._link
            if link is not None:
                call = self._begun("close", "closing", "Closing devices", link.close)
                self._link = None
                forget(self)
                self._returned(call, "closing", self.watch.abort_seconds)

    # ------------------------------------------------------------------ for the watch

    def failure(self) -> str | None:
        """Return what has gone wrong beside the calls; None: nothing that can be told now."""
        link = self._link
        return None if link is None else link.failure()

    def disconnect(self) -> Callable[[], object] | None:
        """Forget the communicator, and return what aborts it; None: there is none."""
        link, self._link = self._link, None
        self._prepared = False
        forget(self)
        if link is None:
            return None
        link.is_gone = True
        return functools.partial(self._abort, link)

    # ------------------------------------------------------------------ other processes

    def _done(self, progress: Progress) -> Callable[[], bool]:
        """Return what says whether a sum is done, or raises where it never will be."""
        peers = self.peers
        if peers is None:
            return progress

        def done() -> bool:
            if progress():
                return True
            peers.look()
            return False

        return done

    def _connecting(self) -> Callable[[], Communicator]:
        """Return what connects the devices, once all processes have come to do so."""
        first = self.ranks[0]
        if self.peers is None:
            return functools.partial(first.connect, self.ranks)
        return functools.partial(first.connect, self.ranks, self.peers.meet(first.new_key))

    # ------------------------------------------------------------------ calls of the communicator

    @contextmanager
    def _locked(self, seconds: float = math.inf) -> Iterator[None]:
        """Call communicators alone; what is in flight is looked after until it is our lock."""
        self.watch.settle()
        lock = self.watch.call_lock
        lock.acquire(self.watch, self.names, seconds)
        try:
            if lock.unseen is not None:
                self._see_interrupted(lock.unseen)
            yield
        finally:
            lock.release()

    def _see_interrupted(self, link: Handle) -> None:
        """Wait until a call has returned whose caller did not wait for that."""
        lock = self.watch.call_lock
        if link.issuing is not None and not link.issuing[1].is_lost:
            call, request = link.issuing
            self.watch.wait(lambda: call.is_over)
            lock.unseen = link.issuing = None
            # No worker is left to be told that the arrays did not go together.
            with suppress(ValueError), self._asking(request):
                call.result()
        lock.unseen = None

    @contextmanager
    def _asking(self, request: Request, progress: Progress | None = None) -> Iterator[None]:
        """Ask for what is in flight already, so that other threads see it where this one hangs.

        With progress it may not have been asked for yet, where something is raised.
        """
        try:
            yield
        except BaseException as error:
            if isinstance(error, ValueError) or not (progress is None or progress.begun):
                self.watch.withdraw(request)
            elif isinstance(error, Exception):
                self.watch.fail(request, error)
            raise

    def _opened(self) -> Handle:
        """Return the communicator, connecting the devices if need be."""
        if self._link is not None:
            return self._link
        if self._prepare is not None and not self._prepared:
            self._prepare()
        self._prepared = True
        logger.debug("Connecting devices: %s.", ", ".join(self.names))
        try:
            link = Handle(self._connected())
        except BaseException as error:
            if self.peers is not None:
                self.peers.lost(error)
            raise
        self._link = link
        keep(self, link)
        return link

    def _connected(self) -> Communicator:
        call = self._begun("connect", "connecting", "Connecting devices", self._connecting())
        return self._returned(call, "connecting", self._connect_timeout, lambda late: late.abort())

    def _begun(self, verb: str, what: str, doing: str, function: Callable[[], T]) -> Future[T]:
        """Call in a thread of its own, or raise: without one it could hang indefinitely."""
        call = self.watch.workers.call(self._thread(verb), function)
        if not call.begun:
            raise no_thread(self.names, what, doing, call.error)
        return call

    def _returned(
        self,
        call: Future[T],
        what: str,
        seconds: float,
        dispose: Callable[[T], object] = lambda late: None,
    ) -> T:
        """Return what a call returns, if it does so in time."""
        until = self.watch.clock() + seconds

        def over() -> bool:
            if self.peers is not None and not call.is_over:
                self.peers.look()
            return call.is_over or self.watch.clock() >= until

        try:
            # Nothing is written meanwhile, and it takes long where something is wrong.
            self.watch.wait(over, may_break=True)
            if not call.is_over:
                raise timed_out(self.names, what, seconds, call.name)
        except BaseException:
            call.abandon(dispose)
            raise
        try:
            return call.result()
        except CollectiveError as error:  # A communicator knows its devices by other names.
            error.devices = error.devices or self.names
            error.what = error.what or what
            raise

    def _issued(self, link: Handle, request: Request, progress: Progress) -> None:
        """Ask for a collective.

        What is like one before it is asked for here. The first of a kind is asked for in a thread:
        libraries connect more of the devices when they first use an algorithm, which they choose by
        size and type, and that may hang as connecting may.
        """
        kind = progress.sends[0].nbytes, progress.sends[0].dtype
        lock = self.watch.call_lock
        lock.asking, progress.begun = request, True
        if kind in link.asked:
            with inside():
                link.issue(progress)
            return
        try:
            call = self._begun(
                "call", request.what, "The first sum of a size", lambda: link.issue(progress)
            )
        except CollectiveError:
            progress.begun = False  # What was asked for before goes on.
            raise
        lock.unseen, link.issuing = link, (call, request)
        self.watch.wait(lambda: call.is_over)
        lock.unseen = link.issuing = None
        call.result()
        link.asked.add(kind)

    def _abort(self, link: Handle) -> None:
        """Abort a communicator, which lets calls of it return as well."""
        link.abort()
        if link.issuing is not None:
            call, _ = link.issuing
            until = self.watch.clock() + self.watch.abort_seconds / 2
            self.watch.wait(lambda: call.is_over or self.watch.clock() >= until)
            if not call.is_over:
                raise CollectiveError(f"The thread {call.name!r} did not return either.")

    def _thread(self, verb: str) -> str:
        return f"mirrored-{verb}-{'+'.join(self.names)}"
