"""Which collectives are in flight, since when, and which of them is in trouble.

It asks devices and keeps the books; it waits for nothing and ends nothing.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mirrored.backends.incident import Incident, named

# How many collectives that were done are kept, a connection, for messages.
_REMEMBERED = 8


class Connected(Protocol):
    """Devices whose collectives are watched; `mirrored.backends.connection` has the class."""

    @property
    def names(self) -> Sequence[str]:
        """What errors call each device, by rank."""
        ...

    def failure(self) -> str | None:
        """Return what has gone wrong beside the calls, None where nothing has; do not block."""
        ...

    def disconnect(self) -> Callable[[], object] | None:
        """Forget how the devices are connected, at once, and return what aborts that, if any."""
        ...


@dataclass(eq=False)
class Asker:
    """A thread that asks for collectives.

    Attributes:
        lost: Why what it asked for has ended, until it was told.
    """

    lost: BaseException | None = None


@dataclass(eq=False)
class Flight:
    """A collective that was asked for and was not seen done yet.

    Attributes:
        connection: The devices.
        what: What is summed.
        step: The number of the step, if it has one.
        timeout: Seconds that it has from when it is asked for, or from when the one before it on
            these devices is seen done if that is later; may be infinite.
        done: Whether it is done on every rank. It waits for nothing, and may raise.
        ranks: For each rank whether it is done there, for messages.
        asked: When it was asked for.
        asker: By whom.
    """

    connection: Connected
    what: str
    step: int | None
    timeout: float
    done: Callable[[], bool]
    ranks: Callable[[], Sequence[bool]] | None = None
    asked: float = field(default=0.0, init=False)
    asker: Asker = field(default_factory=Asker, init=False)


class _Line:
    """The collectives of one connection, which its devices do one after the other."""

    def __init__(self) -> None:
        self.flights: deque[Flight] = deque()
        self.completed: deque[str] = deque(maxlen=_REMEMBERED)
        self.seen_done = -math.inf  # When the last one was.


class Flights:
    """All collectives in flight. One thread at a time may use it.

    Args:
        clock: What time it is, in seconds.

    Attributes:
        until: When all of them have to be done, whatever time each was given.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.until = math.inf
        self._clock = clock
        self._lines: weakref.WeakKeyDictionary[Connected, _Line] = weakref.WeakKeyDictionary()
        self._active: dict[Connected, _Line] = {}  # Those with something in flight.

    def __bool__(self) -> bool:
        return bool(self._active)

    def __contains__(self, flight: Flight) -> bool:
        line = self._active.get(flight.connection)
        return line is not None and flight in line.flights

    def of(self, connection: Connected) -> int:
        """Return how many are in flight on one connection."""
        line = self._active.get(connection)
        return 0 if line is None else len(line.flights)

    def first(self) -> Flight:
        """Return the one that has been in flight on its connection for longest."""
        return next(iter(self._active.values())).flights[0]

    def has(self, asker: Asker) -> bool:
        """Return whether a thread has something in flight."""
        return any(each.asker is asker for line in self._active.values() for each in line.flights)

    def add(self, flight: Flight, asker: Asker) -> None:
        """Add one that is asked for now, by a thread."""
        flight.asked, flight.asker = self._clock(), asker
        line = self._lines.setdefault(flight.connection, _Line())
        line.flights.append(flight)
        self._active[flight.connection] = line

    def remove(self, flight: Flight) -> None:
        """Forget one, if it is in flight."""
        if flight in self:
            self._active[flight.connection].flights.remove(flight)
            self._forget_empty(flight.connection)

    def trouble(self, connections: Iterable[Connected] | None = None) -> Incident | None:
        """Retire what is done, and return the first that failed or is late, if any.

        Args:
            connections: Where to look; None: everywhere.
        """
        for connection in list(self._active) if connections is None else connections:
            found = self._trouble(connection) if connection in self._active else None
            if found is not None:
                return found
        return None

    def _trouble(self, connection: Connected) -> Incident | None:
        line = self._active[connection]
        flights = line.flights
        try:
            while flights and flights[0].done():
                flight = flights.popleft()
                line.seen_done = self._clock()
                line.completed.append(named(flight.what, flight.step))
        except Exception as error:  # Whatever it is, nobody can say any more when it is done.
            return self.incident(flights[0], cause=error)
        self._forget_empty(connection)
        if not flights:
            return None
        failure = connection.failure()
        late = self._clock() - self._begun(flights[0]) >= self._timeout(flights[0])
        if failure is None and not late:
            return None
        return self.incident(flights[0], failure=failure, late=failure is None)

    def incident(
        self,
        flight: Flight,
        *,
        cause: BaseException | None = None,
        failure: str | None = None,
        late: bool = False,
    ) -> Incident:
        """Return what is known of one that is in flight."""
        return Incident(
            names=tuple(flight.connection.names),
            what=flight.what,
            step=flight.step,
            elapsed=self._clock() - self._begun(flight),
            timeout=self._timeout(flight),
            late=late,
            done=_ranks(flight),
            completed=tuple(self._lines[flight.connection].completed),
            cause=cause,
            failure=failure,
        )

    def take_all(self) -> tuple[list[tuple[str, Callable[[], object]]], set[Asker]]:
        """Empty it and let the connections forget how they are connected.

        Returns:
            What aborts their communicators, each with the devices' names; and who asked for what
            was in flight.
        """
        aborts: list[tuple[str, Callable[[], object]]] = []
        askers: set[Asker] = set()
        for connection, line in self._active.items():
            abort = connection.disconnect()
            if abort is not None:
                aborts.append(("+".join(connection.names), abort))
            askers.update(flight.asker for flight in line.flights)
            line.flights.clear()
            line.completed.clear()
        self._active.clear()
        return aborts, askers

    def _begun(self, flight: Flight) -> float:
        """Return since when it counts its seconds."""
        return max(flight.asked, self._lines[flight.connection].seen_done)

    def _timeout(self, flight: Flight) -> float:
        """Return how many seconds it has."""
        return min(flight.timeout, max(self.until - self._begun(flight), 0.0))

    def _forget_empty(self, connection: Connected) -> None:
        if not self._active[connection].flights:
            del self._active[connection]


def _ranks(flight: Flight) -> Sequence[bool | None]:
    """Return for each rank whether it is done, as far as that can be told."""
    if flight.ranks is None:
        return ()
    try:
        return tuple(flight.ranks())
    except Exception:  # A device that is lost does not tell.
        return (None,) * len(flight.connection.names)
