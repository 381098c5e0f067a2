"""The collectives in flight: when they started, and which are late.

These are the books alone: asking a device may keep a thread, and the books have to stay open then.
"""

import math
import weakref
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from mirrored.backends.communication.failures import FailedCollective, named

# How many collectives that were done are kept, a connection, for messages.
_REMEMBERED = 8


class Connected(Protocol):
    """Devices whose collectives are watched; `Connection` is the class of them."""

    @property
    def names(self) -> Sequence[str]:
        """What errors call each device, by rank."""

    def failure(self) -> str | None:
        """Return what has gone wrong beside the calls, None where nothing has; do not block."""

    def disconnect(self) -> Callable[[], object] | None:
        """Forget how the devices are connected, at once, and return what aborts that, if any."""


@dataclass(eq=False)
class Asker:
    """A thread that asks for collectives; `lost` is why what it asked for has ended, until told."""

    lost: BaseException | None = None


@dataclass(eq=False)
class Request:
    """A collective that was asked for and was not seen done yet.

    Attributes:
        connection: The devices.
        what: What is summed.
        step: In which run of its recorded step it is, if it is of one.
        timeout: Seconds that it has from when it is asked for, or from when the one before it on
            these devices is seen done if that is later; may be infinite.
        done: Whether it is done on every rank. It waits for nothing, and may raise.
        ranks: For each rank whether it is done there, for messages.
        notify: Called with the error where it ended because one failed, or None.
        asked: When it was asked for.
        asker: By whom.
        is_lost: Whether it ended since one failed, this one or another.
    """

    connection: Connected
    what: str
    step: int | None
    timeout: float
    done: Callable[[], bool]
    ranks: Callable[[], Sequence[bool]] | None = None
    notify: Callable[[BaseException], object] | None = field(default=None, init=False)
    asked: float = field(default=0.0, init=False)
    asker: Asker = field(default_factory=Asker, init=False)
    is_lost: bool = field(default=False, init=False)

    def ranks_done(self) -> Sequence[bool | None]:
        """Ask for each rank whether it is done, as far as that can be told.

        It may not return where the driver keeps the thread.
        """
        if self.ranks is None:
            return ()
        try:
            return tuple(self.ranks())
        except Exception:  # A device that is lost does not tell.
            return self.ranks_unknown()

    def ranks_unknown(self) -> Sequence[bool | None]:
        """Return that nobody knows, for each rank."""
        return (None,) * len(self.connection.names)


class Taken(NamedTuple):
    """All that was in flight; its requests keep alive what the devices may still use."""

    requests: Sequence[Request]
    aborts: Sequence[tuple[str, Callable[[], object]]]
    askers: Collection[Asker]


class _Queue:
    """The collectives of one connection, which its devices do one after the other."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.completed: deque[str] = deque(maxlen=_REMEMBERED)
        self.seen_done = -math.inf  # When the last one was.


class InFlight:
    """All collectives in flight. One thread at a time may use it.

    Attributes:
        until: When all of them have to be done, whatever time each was given.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.until = math.inf
        self._clock = clock
        self._lines: weakref.WeakKeyDictionary[Connected, _Queue] = weakref.WeakKeyDictionary()
        self._active: dict[Connected, _Queue] = {}  # Those with something in flight.

    def __bool__(self) -> bool:
        return bool(self._active)

    def __contains__(self, request: Request) -> bool:
        line = self._active.get(request.connection)
        return line is not None and request in line.requests

    def of(self, connection: Connected) -> int:
        """Return how many are in flight on one connection."""
        line = self._active.get(connection)
        return 0 if line is None else len(line.requests)

    def connections(self) -> Sequence[Connected]:
        """Return those with something in flight."""
        return tuple(self._active)

    def first(self, connection: Connected | None = None) -> Request | None:
        """Return what has been in flight for longest, on one connection or the first, if any."""
        if connection is None:
            connection = next(iter(self._active), None)
        line = None if connection is None else self._active.get(connection)
        return None if line is None else line.requests[0]

    def has(self, asker: Asker) -> bool:
        """Return whether a thread has something in flight."""
        return any(item.asker is asker for line in self._active.values() for item in line.requests)

    def add(self, request: Request, asker: Asker) -> None:
        """Add one that is asked for now, by a thread."""
        request.asked, request.asker = self._clock(), asker
        line = self._lines.setdefault(request.connection, _Queue())
        line.requests.append(request)
        self._active[request.connection] = line

    def remove(self, request: Request) -> None:
        """Forget one, if it is in flight."""
        if request in self:
            self._active[request.connection].requests.remove(request)
            self._forget_empty(request.connection)

    def retire(self, request: Request) -> None:
        """Note that one was seen done just now, if it is in flight and the first of its devices."""
        if self.first(request.connection) is request:
            line = self._active[request.connection]
            line.requests.popleft()
            line.seen_done = self._clock()
            line.completed.append(named(request.what, request.step))
            self._forget_empty(request.connection)

    def is_late(self, request: Request) -> bool:
        """Return whether one that is in flight has had all its seconds."""
        return self._clock() - self._begun(request) >= self._timeout(request)

    def overdue(self) -> Request | None:
        """Return one that has had all its seconds, by the books; None: there is none."""
        firsts = (line.requests[0] for line in self._active.values())
        return next(filter(self.is_late, firsts), None)

    def failed(
        self,
        request: Request,
        *,
        cause: BaseException | None = None,
        failure: str | None = None,
        late: bool = False,
        done: Sequence[bool | None] = (),
    ) -> FailedCollective:
        """Return what is known of one that is in flight; see `poll.Trouble`."""
        return FailedCollective(
            names=tuple(request.connection.names),
            what=request.what,
            step=request.step,
            elapsed=self._clock() - self._begun(request),
            timeout=self._timeout(request),
            late=late,
            done=done,
            completed=tuple(self._lines[request.connection].completed),
            cause=cause,
            failure=failure,
            alone=request.notify is None,
        )

    def take_all(self) -> Taken:
        """Empty it and let the connections forget how they are connected."""
        requests: list[Request] = []
        aborts: list[tuple[str, Callable[[], object]]] = []
        for connection, line in self._active.items():
            abort = connection.disconnect()
            if abort is not None:
                aborts.append(("+".join(connection.names), abort))
            requests += line.requests
            line.requests.clear()
            line.completed.clear()
        self._active.clear()
        for request in requests:
            request.is_lost = True
        return Taken(requests, aborts, {request.asker for request in requests})

    def _begun(self, request: Request) -> float:
        """Return since when it counts its seconds."""
        return max(request.asked, self._lines[request.connection].seen_done)

    def _timeout(self, request: Request) -> float:
        """Return how many seconds it has."""
        return min(request.timeout, max(self.until - self._begun(request), 0.0))

    def _forget_empty(self, connection: Connected) -> None:
        if not self._active[connection].requests:
            del self._active[connection]
