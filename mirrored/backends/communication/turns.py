"""Whose turn it is to call the library that connects devices.

It is not safe to ask NCCL from several threads at once for what is on one device, of whichever
connection it is: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/threadsafety.html.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirrored.errors import CollectiveTimeoutError

if TYPE_CHECKING:
    from mirrored.backends.communication.flights import Flight
    from mirrored.backends.communication.links import Link
    from mirrored.backends.communication.watch import Watch


class Turn:
    """The turn that all connections of one watch share.

    Attributes:
        asking: What the thread whose turn it is asks for; None: nothing now.
        unseen: What has a call in a thread of its own that was not seen to return, since who waited
            for it was interrupted.
    """

    def __init__(self) -> None:
        self.asking: Flight | None = None
        self.unseen: Link | None = None
        self._lock = threading.Lock()

    def take(self, watch: Watch, names: Sequence[str], seconds: float = math.inf) -> None:
        """Wait for the turn, and look after what is in flight meanwhile.

        Args:
            watch: What is in flight.
            names: The devices that are to be used.
            seconds: How long the turn is waited for.

        Raises:
            CollectiveTimeoutError: It did not come in time; or a collective missed its deadline.
            CollectiveError: A collective failed.
        """
        if not self.try_to_take():
            waiting = _Waiting(self, watch, seconds)
            try:
                watch.wait(waiting.is_over, may_break=True)
            except BaseException:
                if waiting.ours:
                    self._lock.release()
                raise
            if not waiting.ours:
                raise _not_ours(names, waiting.hung)

    def give_back(self) -> None:
        """Let others have it."""
        self.asking = None
        self._lock.release()

    def try_to_take(self) -> bool:
        """Take it if nobody has it; return whether it is this thread's now."""
        return self._lock.acquire(blocking=False)


class _Waiting:
    """A thread that waits for its turn.

    Attributes:
        ours: Whether it has come.
        hung: What the thread whose turn it is asks for, though everything has ended meanwhile.
    """

    def __init__(self, turn: Turn, watch: Watch, seconds: float) -> None:
        self.ours = False
        self.hung: Flight | None = None
        self._turn = turn
        self._watch = watch
        self._until = watch.clock() + seconds
        self._hung_until = math.inf

    def is_over(self) -> bool:
        """Return whether there is nothing to wait for any more."""
        self.ours = self.ours or self._turn.try_to_take()
        asking = self._turn.asking
        if asking is None or not asking.is_lost:
            self.hung, self._hung_until = None, math.inf
        elif asking is not self.hung:  # An abort is to let it return, and has as long for that.
            self.hung = asking
            self._hung_until = self._watch.clock() + self._watch.abort_seconds
        return self.ours or self._watch.clock() >= min(self._until, self._hung_until)


def _not_ours(names: Sequence[str], hung: Flight | None) -> CollectiveTimeoutError:
    """Return the error of a thread that cannot use devices since another one does."""
    if hung is None:
        why, what = "Another thread still uses connections of this process", "waiting for a turn"
    else:
        why = "Another thread does not come back from asking for a collective, which was aborted"
        names, what = hung.connection.names, hung.what
    return CollectiveTimeoutError(
        f"{why}. Received: {', '.join(names)}: {what}. Where it hangs the devices are of no use to "
        "this process any more: end it, and go on from the last checkpoint.",
        devices=names,
        what=what,
    )
