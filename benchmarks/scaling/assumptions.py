"""The figures that the model takes from others, each with the address where it was read.

Nothing of this was measured on this machine, which has no card.
"""

from dataclasses import dataclass

from benchmarks.gpu.workloads import WORKLOADS
from benchmarks.scaling.links import GB, US, Cluster
from benchmarks.scaling.step import Card
from benchmarks.workloads import TIMED, Workload

PRODUCTS_REACH = 0.5  # An assumption: large products reach more, those of small batches less.
KERNEL = 3 * US  # An assumption: of kernels that a CUDA graph starts one after the other.
MEMORY_REACHES = 0.867
NETWORK_REACHES = 0.92
H100 = Card(494.7e12 * PRODUCTS_REACH, 3.35e12 * MEMORY_REACHES, KERNEL)
NVLINK = 370 * GB
CARDS = 8  # In a host.
# Gigabits a second of all links of a host together.
NETWORKS = {
    "25 Gb/s a host": 25,
    "100 Gb/s a host": 100,
    "400 Gb/s a host": 400,
    "400 Gb/s a card": 3200,
}
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

MODELS: dict[str, Workload] = {
    **{name: TIMED[name] for name in ("line", "digits", "mnist", "wide")},
    "huge": WORKLOADS["huge"],
}


def cluster(cards: int, gigabits: float, inside: float = NVLINK) -> Cluster:
    """Return so many cards in hosts of eight, with so many gigabits a second between these."""
    hosts = max(1, cards // CARDS)
    return Cluster(hosts, min(cards, CARDS), inside, gigabits / 8 * GB * NETWORK_REACHES)


_NCCL = "b6475625fbcaa2c3c0e50eed2fa1255d7514d4a2"
SOURCES = {
    "H100 SXM: 494.7 Tflop/s of TF32 in products, 3.35 TB/s of memory": (
        "https://glennklockwood.com/garden/processors/h100"
    ),
    f"{MEMORY_REACHES:.1%} of that memory's bandwidth are reached": (
        "https://github.com/aigatech/vpbenchmarking"
    ),
    "370 GB/s between cards of a host: what NCCL reaches of the 450 that NVLink 4 has one way": (
        "https://github.com/NVIDIA/nccl-tests/issues/212"
    ),
    f"46 of the 50 GB/s of a 400 Gb/s network card ({NETWORK_REACHES:.0%}); taken for all speeds": (
        "https://github.com/NVIDIA/nccl-tests/issues/290"
    ),
    "latencies of NCCL's rings and trees, and what each protocol reaches of the bandwidth": (
        f"https://github.com/NVIDIA/nccl/blob/{_NCCL}/src/graph/tuning.cc"
    ),
    "what nccl-tests call bus bandwidth": (
        "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"
    ),
}


@dataclass(frozen=True)
class Published:
    """An all-reduce that others have measured.

    Attributes:
        what: On what.
        size: Its bytes.
        cluster: The cards, as the model sees them.
        seconds: What it took; None: the bandwidth is given.
        bandwidth: Bytes a second, as nccl-tests count; None: the time is given.
        address: Where it was read.
    """

    what: str
    size: int
    cluster: Cluster
    seconds: float | None
    bandwidth: float | None
    address: str


def _between(gigabits: float) -> float:
    return gigabits / 8 * GB * NETWORK_REACHES


PUBLISHED = (
    Published(
        "2 hosts of 8 H20, 400 Gb/s a card",
        8,
        Cluster(2, 8, NVLINK, _between(3200)),
        46.3 * US,
        None,
        "https://github.com/NVIDIA/nccl/issues/1244",
    ),
    Published(
        "2 hosts of 8 H100",
        4096,
        Cluster(2, 8, NVLINK, _between(3200)),
        75.4 * US,
        None,
        "https://github.com/NVIDIA/nccl/issues/1453",
    ),
    Published(
        "3 hosts of 8 A100, 800 Gb/s a host",
        128 << 20,
        Cluster(3, 8, 230 * GB, _between(800)),
        None,
        96 * GB,
        "https://github.com/NVIDIA/nccl-tests/issues/119",
    ),
    Published(
        "248 hosts of 8 H200, 400 Gb/s a card",
        512 << 20,
        Cluster(248, 8, NVLINK, _between(3200)),
        None,
        350 * GB,
        "https://github.com/NVIDIA/nccl-tests/issues/283",
    ),
)
