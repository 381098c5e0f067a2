"""Which ranks the replicas of a strategy are to NCCL, and the connections between their cards.

NCCL has one rank on each physical card: replicas on one card are summed there first, so that
virtual GPUs never lose NCCL. All collectives and strategies of a process share the connections: to
connect takes seconds and memory on every card, so each set of ranks is connected once.
"""

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from mirrored.backends import selftest
from mirrored.backends.communication.collective_failures import Peers
from mirrored.backends.communication.connection import MULTI_RANK, Connection
from mirrored.backends.stream_backend import StreamBackend, is_offloaded
from mirrored.devices import Device
from mirrored.errors import InvalidArgumentError

SELFTEST = "MIRRORED_NCCL_SELFTEST"


class TestedPeers(Peers, Protocol):
    """Other processes, as `Peers`, with which sums are tried before they are relied on."""

    def agree(self, test: Callable[[], object]) -> object:
        """Call a test, as all processes do, and raise where it failed in any of them.

        Raises:
            CollectiveError: It failed; the text says where, and why.
        """


# By the first rank's device, which a connection does not keep alive: it is forgotten with the
# devices. Then by the backends of all ranks, and the other processes.
_Key = tuple[tuple[StreamBackend, ...], TestedPeers | None]
_known: WeakKeyDictionary[Device, dict[_Key, Connection]] = WeakKeyDictionary()
_lock = threading.Lock()


class Rank(NamedTuple):
    """One part in an all-reduce between cards: it adds the values of some replicas, in order."""

    replicas: tuple[int, ...]

    @property
    def leader(self) -> int:
        """The replica on whose device it adds them: the first."""
        return self.replicas[0]


def ranks(memories: Sequence[Hashable]) -> list[Rank]:
    """Return the ranks, one a memory, in the order of their first replicas.

    With MIRRORED_NCCL_MULTI_RANK=1 in the environment every replica is a rank, as a test of many
    ranks on few cards needs it.

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


def connection(leaders: Sequence[Device], peers: TestedPeers | None = None) -> Connection:
    """Return what connects devices; nothing is connected before it is first used.

    Before it is, known sums are tried in a process of their own, unless MIRRORED_NCCL_SELFTEST=0.

    Args:
        leaders: The devices of this process.
        peers: Other processes, with whose devices they are connected; None: there are none.

    Raises:
        InvalidArgumentError: A device computes on the host, where there is nothing to connect.
    """
    ranks = streamed(leaders)
    with _lock:
        mine = _known.setdefault(leaders[0], {})
        if (ranks, peers) not in mine:
            names = tuple(device.full_name for device in leaders)
            mine[ranks, peers] = _new_connection(ranks, names, peers)
        return mine[ranks, peers]


def streamed(leaders: Sequence[Device]) -> tuple[StreamBackend, ...]:
    """Return the devices' backends, whose work runs beside the host."""
    backends = []
    for device in leaders:
        if not is_offloaded(device.backend):
            raise InvalidArgumentError(
                "Connections are between GPUs that are not simulated. Received: "
                f"{device.full_name}."
            )
        backends.append(device.backend)
    return tuple(backends)


def _new_connection(
    ranks: tuple[StreamBackend, ...], names: tuple[str, ...], peers: TestedPeers | None
) -> Connection:
    tried = False

    def prepare() -> None:
        nonlocal tried
        if os.environ.get(SELFTEST, "").strip() == "0":
            return
        if tried:
            selftest.forget()  # Something has failed since, so what passed then says nothing.
        tried = True
        if peers is None:
            selftest.require(ranks, names)
            return
        place = peers.meet(ranks[0].new_key)
        peers.agree(lambda: selftest.require(ranks, names, place=place))

    return Connection(ranks, names, prepare=prepare, peers=peers)
