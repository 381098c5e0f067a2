"""Which ranks the replicas of a strategy are: NCCL has one on each physical card.

Replicas on one card are summed there first, so that virtual GPUs never lose NCCL.
"""

import os
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from mirrored.backends.communication.connection import MULTI_RANK


class Rank(NamedTuple):
    """One part in an all-reduce between cards.

    Attributes:
        replicas: The numbers of the replicas whose values it adds, in order.
    """

    replicas: tuple[int, ...]

    @property
    def leader(self) -> int:
        """The replica on whose device it adds them: the first."""
        return self.replicas[0]


def ranks(memories: Sequence[Hashable]) -> list[Rank]:
    """Return the ranks, one a memory, in the order of their first replicas.

    With MIRRORED_NCCL_MULTI_RANK=1 in the environment every replica is a rank, as a test of many
    ranks on few cards needs it.

    Args:
        memories: By replica, which memory its device has: `device.backend.memory`.

    Example:
        >>> [rank.replicas for rank in ranks(["card A", "card B", "card A"])]
        [(0, 2), (1,)]
    """
    if every_replica_is_a_rank():
        return [Rank((replica,)) for replica in range(len(memories))]
    members: dict[Hashable, list[int]] = {}
    for replica, memory in enumerate(memories):
        members.setdefault(memory, []).append(replica)
    return [Rank(tuple(replicas)) for replicas in members.values()]


def every_replica_is_a_rank() -> bool:
    """Return whether the environment asks for a rank a replica, on whichever card."""
    return os.environ.get(MULTI_RANK) == "1"
