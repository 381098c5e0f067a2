"""What an all-reduce between cards takes: latency and bandwidth of rings and of trees.

It is the cost model by which NCCL itself chooses between them, with NCCL's constants.
"""

from dataclasses import dataclass

US, GB = 1e-6, 1e9


@dataclass(frozen=True)
class Protocol:
    """How bytes travel within an algorithm: sooner, or more of them.

    Attributes:
        name: NCCL's.
        base: Seconds that an all-reduce takes beside its steps.
        inside: Seconds of a step between two cards of a host, over NVLink.
        between: Seconds of a step between two hosts.
        share: The part of the links' bandwidth that it reaches.
        most: Bytes a second that it reaches at most, within a host and between hosts.
    """

    name: str
    base: float
    inside: float
    between: float
    share: float
    most: tuple[float, float] = (float("inf"), float("inf"))


# `baseLat`, `hwLat` and `llMaxBws` of NCCL's src/graph/tuning.cc, and the factors in its function
# `ncclTopoTuneModel`. A tree reaches 0.92 of the bandwidth before these.
# Between hosts each step of a ring waits for the network card to be told.
_TOLD = 1.0 * US
_LL_MOST = (87.7 * GB, 19.0 * GB)
RING = (
    Protocol("ring, LL", 6.6 * US, 0.6 * US, 2.7 * US, 1 / 4, _LL_MOST),
    Protocol("ring, LL128", 14.0 * US, 1.9 * US, 4.0 * US, 0.92),
    Protocol("ring, Simple", 8.4 * US, 3.4 * US, 14.0 * US, 1.0),
)
TREE = (
    Protocol("tree, LL", 6.8 * US, 0.6 * US, 5.0 * US, 0.92 / 3.8, _LL_MOST),
    Protocol("tree, LL128", 14.0 * US, 1.25 * US, 8.5 * US, 0.92 * 120 / 128),
    Protocol("tree, Simple", 0.0, 28.0 * US, 28.0 * US, 0.92),
)


@dataclass(frozen=True)
class Cluster:
    """Cards in hosts.

    Attributes:
        hosts: How many hosts.
        cards: How many cards each has.
        inside: Bytes a second that a card sends to others of its host, as NCCL reaches them.
        between: Bytes a second that a host sends to other hosts.
    """

    hosts: int
    cards: int
    inside: float
    between: float

    @property
    def ranks(self) -> int:
        """All cards."""
        return self.hosts * self.cards

    @property
    def bandwidth(self) -> float:
        """Bytes a second that pass each link of a ring over all cards."""
        return self.inside if self.hosts == 1 else min(self.inside, self.between)


def ring_seconds(size: int, cluster: Cluster, protocol: Protocol) -> float:
    """Return what an all-reduce of so many bytes takes around a ring."""
    steps = 2 * (cluster.ranks - 1)
    crossing = 2 * cluster.hosts if cluster.hosts > 1 else 0
    inside = max(protocol.inside, _TOLD) if crossing else protocol.inside
    latency = (steps - crossing) * inside + crossing * protocol.between
    moved = size * steps / cluster.ranks
    return protocol.base + max(0.0, latency) + moved / _bandwidth(cluster, protocol)


def tree_seconds(size: int, cluster: Cluster, protocol: Protocol) -> float:
    """Return what an all-reduce of so many bytes takes up and down a tree of hosts."""
    levels = (cluster.hosts - 1).bit_length()
    latency = 2 * ((cluster.cards - 1) * protocol.inside + levels * protocol.between)
    return protocol.base + latency + 2 * size / _bandwidth(cluster, protocol)


def all_reduce(size: int, cluster: Cluster) -> tuple[float, str]:
    """Return the least that an all-reduce takes, and by which algorithm and protocol."""
    if cluster.ranks == 1:
        return 0.0, "none"
    times = [(ring_seconds(size, cluster, algorithm), algorithm.name) for algorithm in RING]
    times += [(tree_seconds(size, cluster, algorithm), algorithm.name) for algorithm in TREE]
    return min(times)


def bus_bandwidth(size: int, ranks: int, seconds: float) -> float:
    """Return what nccl-tests call so: the bytes a second that each link of a ring would move."""
    return 2 * (ranks - 1) / ranks * size / seconds


def _bandwidth(cluster: Cluster, protocol: Protocol) -> float:
    return min(cluster.bandwidth * protocol.share, protocol.most[cluster.hosts > 1])
