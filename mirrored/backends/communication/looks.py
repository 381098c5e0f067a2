"""Looks at collectives in flight, one at a time, with no lock held while a device is asked.

The driver may keep the thread that asks. The books stay open then, so that others can end what is
late, which lets that thread go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from mirrored.backends.communication.flights import Connected, Flight, Flights


class Trouble(NamedTuple):
    """A collective that failed or is late.

    Attributes:
        flight: The one.
        done: For each rank whether it is done.
        cause: What was raised; None: nothing was.
        failure: What its communicator says, if that something is wrong.
        late: Whether it has had all its seconds.
    """

    flight: Flight
    done: Sequence[bool | None]
    cause: BaseException | None = None
    failure: str | None = None
    late: bool = False


class Looks:
    """Looks at what is in flight.

    Args:
        flights: The books.
        lock: Held while the books are read or written; reentrant.
        clock: What time it is, in seconds.

    Attributes:
        last: When the last look began.
        under_way: The look that is under way; None: there is none.
    """

    def __init__(
        self,
        flights: Flights,
        lock: AbstractContextManager[object],
        clock: Callable[[], float],
    ) -> None:
        self.last = -math.inf
        self.under_way: object | None = None
        self._flights = flights
        self._lock = lock
        self._clock = clock

    def look(self, connections: Iterable[Connected] | None = None) -> Trouble | None:
        """Retire what is done, and return the first that failed or is late, if any.

        Where another look is under way it does nothing.

        Args:
            connections: Where to look; None: everywhere.
        """
        with self._lock:
            if self.under_way is not None:
                return None
            self.under_way = this = object()
            self.last = self._clock()
            where = self._flights.connections() if connections is None else tuple(connections)
        try:
            found = map(self._look_on, where)
            return next((trouble for trouble in found if trouble is not None), None)
        finally:
            with self._lock:
                if self.under_way is this:  # Else it was given up, and others look by now.
                    self.under_way = None

    def give_up(self) -> None:
        """Wait no more for the look that is under way, which may never be over."""
        self.under_way = None

    def overdue(self) -> Trouble | None:
        """Return one that is late by the books, if any, without asking a device."""
        with self._lock:
            flight = self._flights.overdue()
            return None if flight is None else Trouble(flight, flight.ranks_unknown(), late=True)

    def _look_on(self, connection: Connected) -> Trouble | None:
        while (flight := self._first(connection)) is not None:
            try:
                if not flight.done():
                    break
            except Exception as error:  # Whatever it is, nobody can say any more when it is done.
                return Trouble(flight, flight.ranks_done(), cause=error)
            with self._lock:
                self._flights.retire(flight)
        if flight is None:
            return None
        failure = connection.failure()
        with self._lock:
            late = flight in self._flights and self._flights.is_late(flight)
        if failure is None and not late:
            return None
        return Trouble(flight, flight.ranks_done(), failure=failure, late=failure is None)

    def _first(self, connection: Connected) -> Flight | None:
        with self._lock:
            return self._flights.first(connection)
