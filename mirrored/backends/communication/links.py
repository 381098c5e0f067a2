"""What a connection is made of while it is open: a communicator, and how far its collectives are.

A call of a communicator may hang, so nobody waits for one without looking whether it was given up.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mirrored.backends.communication.calls import Call
from mirrored.backends.communication.flights import Flight
from mirrored.backends.stream_backend import Communicator, Event, StreamBackend
from mirrored.errors import CollectiveError

# How often who waits for a call of another thread looks whether that was given up, in seconds.
_OFTEN = 0.05


class Progress:
    """How far one collective is: its events, by rank, once they are recorded.

    It keeps the arrays: their memory is the devices' until the collective has ended, also where an
    interrupt lets nobody else wait for that.

    Args:
        sends: For each rank the array that it adds.
        receives: For each rank the array for the sum.
        streams: For each rank the device, with the stream of its part.

    Attributes:
        sends: For each rank the array that it adds.
        receives: For each rank the array for the sum.
        streams: For each rank the device, with the stream of its part.
        events: For each rank the event behind its part, once it was asked for.
        begun: Whether it is being asked for, or was.
    """

    def __init__(
        self, sends: Sequence[Any], receives: Sequence[Any], streams: Sequence[StreamBackend]
    ) -> None:
        self.sends = tuple(sends)
        self.receives = tuple(receives)
        self.streams = streams
        self.events: list[Event] = []
        self.begun = False

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


class Link:
    """A communicator, from connecting the devices until they are disconnected.

    Args:
        communicator: The communicator.

    Attributes:
        asked: Sizes and dtypes of what was summed.
        issuing: A call in a thread of its own that was not seen to return, and what it asks for.
        process: The number of the process that connected the devices.
        is_gone: Whether it was aborted, or is about to be, or was closed.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.asked: set[tuple[Any, ...]] = set()
        self.issuing: tuple[Call[None], Flight] | None = None
        self.process = os.getpid()
        self.is_gone = False
        self._communicator = communicator
        self._calling = threading.Lock()  # Held in calls but `abort`; for ever, where one hangs.

    def issue(self, progress: Progress) -> None:
        """Ask for a collective, and record the events behind it.

        Raises:
            CollectiveError: It was refused, or the devices are not connected any more.
        """
        with self._alone():
            try:
                self._communicator.all_reduce(progress.sends, progress.receives, progress.streams)
            except KeyboardInterrupt:  # It may have been asked for: its end is to be seen.
                progress.record()
                raise
            progress.record()

    def failure(self) -> str | None:
        """Return what has gone wrong beside the calls; None: nothing that can be told now."""
        if not self._calling.acquire(blocking=False):
            return None
        try:
            return None if self.is_gone else self._communicator.failure()
        finally:
            self._calling.release()

    def abort(self) -> None:
        """Abort the communicator, which lets calls of it return as well."""
        self._communicator.abort()

    def close(self) -> None:
        """Disconnect the devices."""
        with self._alone():
            self.is_gone = True
            self._communicator.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other call is under way, which may never be."""
        while not (alone := self._calling.acquire(timeout=_OFTEN)) and not self.is_gone:
            pass
        try:
            if self.is_gone:
                raise CollectiveError("The devices are not connected any more.")
            yield
        finally:
            if alone:
                self._calling.release()
