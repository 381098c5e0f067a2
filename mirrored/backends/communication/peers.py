"""The interface to other processes whose devices are connected with this one's.

Devices wait for those of all processes in a collective, so that a process that fails, ends or goes
elsewhere would keep all others: what they tell each other of that comes by here.
"""

from collections.abc import Callable
from typing import Protocol

from mirrored.backends.stream_backend import Place


class Peers(Protocol):
    """The other processes; all of them ask their devices for the same collectives, in one order."""

    def meet(self, new_key: Callable[[], bytes]) -> Place:
        """Return where this process's ranks are, to connect them once; all processes call it.

        Args:
            new_key: Makes what all are connected by; one process calls it.
        """

    def look(self) -> None:
        """Raise where others have told that they will not come; wait for nobody. From any thread.

        Raises:
            RuntimeError: It says who will not, and why.
        """

    def lost(self, error: BaseException) -> None:
        """Tell the others that the devices are no longer connected. From any thread.

        Args:
            error: Why.
        """
