"""What connects devices that sum arrays together: a communicator, which has a rank on each.

It knows nothing of replicas, deadlines or recorded programs; those that use it do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mirrored.backends.streams import StreamBackend

# The environment variable that, where it is 1, lets several ranks be on one card: for tests.
MULTI_RANK = "MIRRORED_NCCL_MULTI_RANK"


class Communicator(Protocol):
    """Connected devices. All calls of one communicator come from one thread at a time.

    Only `abort` may be called beside another call, from another thread.
    """

    def all_reduce(
        self, sends: Sequence[Any], receives: Sequence[Any], streams: Sequence[StreamBackend]
    ) -> None:
        """Ask all ranks, as one group, for the sum of one array a rank; wait for nothing.

        Args:
            sends: For each rank the array that it adds, all of one size and dtype, contiguous.
            receives: For each rank the array for the sum: its `sends`, or memory apart from it.
            streams: For each rank the device, with the stream that its part is to run on.

        Raises:
            ValueError: The arrays do not go together, or their dtype has no sum here; nothing was
                asked for.
            CollectiveError: It was refused; what some ranks were asked for may never end.
        """
        ...

    def failure(self) -> str | None:
        """Return what has gone wrong since, beside the calls; None: nothing. It never blocks.

        It may be asked just after an abort has begun, and has nothing to say then.
        """
        ...

    def abort(self) -> None:
        """Let all that was asked for end at once, with any results. It may take for ever."""
        ...

    def close(self) -> None:
        """Disconnect the devices, once all that was asked for is done. Again: do nothing."""
        ...
