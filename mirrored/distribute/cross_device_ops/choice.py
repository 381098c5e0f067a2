"""Which collectives a strategy uses where its user names none.

The log says which they are and why, since it decides how fast gradients are summed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mirrored._arguments import explained
from mirrored._logging import logger
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.collectives import CrossDeviceOps
from mirrored.distribute.cross_device_ops.reduction_to_one_device import ReductionToOneDevice

_NOT_A_GPU = "not a GPU"


class Facts(NamedTuple):
    """What the choice depends on.

    Attributes:
        no_card: What one of them is that is no card, as `Device.why_no_card` says; None: all are.
        cards: How many cards they are on.
        ranks: How many ranks NCCL would have.
        why_no_nccl: Why NCCL cannot connect the cards, in a sentence; None: it can.
        peers: Whether every card reads the memory of every other.
    """

    no_card: str | None = None
    cards: int = 1
    ranks: int = 1
    why_no_nccl: str | None = None
    peers: bool = False


def decide(facts: Facts) -> tuple[type[CrossDeviceOps], str]:
    """Return the collectives that fit, and why they do.

    1. A device that is no GPU, or a simulated one: `ReductionToOneDevice`, on host memory.
    2. One card: `ReductionToOneDevice`, whose sums there need no copies.
    3. Several cards and NCCL: `NcclAllReduce`.
    4. No NCCL, but cards that read each other's memory: `HierarchicalCopyAllReduce`, which lets
       several of them add at a time.
    5. Else every copy goes through the host: `ReductionToOneDevice` makes the fewest.

    Args:
        facts: What is known of the devices.

    Example:
        >>> collectives, reason = decide(Facts(cards=2, ranks=2))
        >>> collectives.__name__, reason
        ('NcclAllReduce', 'The GPUs in `mr.distribute.Strategy` are on 2 cards')
    """
    if facts.no_card == _NOT_A_GPU:
        return ReductionToOneDevice, "There are non-GPU devices in `mr.distribute.Strategy`"
    where = "The GPUs in `mr.distribute.Strategy` are"
    if facts.no_card is not None:
        return ReductionToOneDevice, f"{where} {facts.no_card}"
    if facts.ranks == 1:
        return ReductionToOneDevice, f"{where} on one card"

    # Most machines never need these.
    from mirrored.distribute.cross_device_ops.hierarchical import HierarchicalCopyAllReduce
    from mirrored.distribute.cross_device_ops.nccl_all_reduce import NcclAllReduce

    if facts.why_no_nccl is None:
        plural = "s" if facts.cards > 1 else ""
        return NcclAllReduce, f"{where} on {facts.cards} card{plural}"
    why = facts.why_no_nccl.rstrip(".")
    if facts.cards > 1 and facts.peers:
        return HierarchicalCopyAllReduce, f"{why}; the cards read each other's memory"
    return ReductionToOneDevice, why


@explained
def choose_cross_device_ops(devices: Sequence[Device]) -> CrossDeviceOps:
    """Return the collectives to use between some devices, and log which they are and why.

    `decide` has the rules. `MirroredStrategy(cross_device_ops=)` overrides them.

    Args:
        devices: The replicas' devices.

    Example:
        >>> from mirrored import devices
        >>> type(choose_cross_device_ops([devices.get_device("CPU:0")])).__name__
        'ReductionToOneDevice'
    """
    chosen, reason = decide(_facts(devices))
    nccl = "" if chosen.__name__ == "NcclAllReduce" else ", not using nccl allreduce"
    logger.debug("%s%s: values are reduced by %s.", reason, nccl, chosen.__name__)
    return chosen()


def choose_without_nccl(devices: Sequence[Device], failure: Exception) -> CrossDeviceOps:
    """Return the collectives to use instead of NCCL, and warn that they are, and why."""
    chosen, _ = decide(_facts(devices, str(failure)))
    logger.warning("NCCL failed, so values are reduced by %s: %s", chosen.__name__, failure)
    return chosen()


def _facts(devices: Sequence[Device], failure: str | None = None) -> Facts:
    """Return what is known of devices; nothing is started for it."""
    reasons = [device.why_no_card for device in devices if device.why_no_card is not None]
    if reasons:
        return Facts(_NOT_A_GPU if _NOT_A_GPU in reasons else reasons[0])

    from mirrored.distribute.cross_device_ops.connections import ranks, streamed  # As above.

    memories = [device.backend.memory for device in devices]
    parts = ranks(memories)
    leaders = [devices[memories.index(memory)] for memory in dict.fromkeys(memories)]
    facts = Facts(cards=len(leaders), ranks=len(parts))
    if facts.ranks == 1:
        return facts  # A device of any backend sums in its own memory.
    cards = streamed(leaders)
    first, *others = streamed([devices[rank.leader] for rank in parts])
    why = first.why_not_connected(others) if failure is None else failure
    # Only where it matters: it asks the driver for every pair of cards.
    peers = why is not None and all(a.reads(b) for a in cards for b in cards if a is not b)
    return facts._replace(why_no_nccl=why, peers=peers)
