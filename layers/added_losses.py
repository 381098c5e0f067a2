"""The losses that layers add in their calls, which they have until the next call begins.

They are kept beside the layers, and not in them: a layer that is stored or copied leaves them.
Each replica has its own.
"""

from collections.abc import Iterable
from contextvars import ContextVar
from weakref import ref

from mirrored._contexts import Within
from mirrored.distribute import get_replica_context, has_strategy
from mirrored.ops import Tensor

# By layer, those of each replica; None stands for who is outside of replicas. A plain dict: each
# call of a layer asks whether there is anything in it.
held: dict["ref[object]", dict[int | None, list[Tensor]]] = {}
_ignored: ContextVar[bool] = ContextVar("mirrored_losses_ignored", default=False)


def ignoring_losses() -> Within:
    """Return the context in which calls are tried alone, and what they add is no loss."""
    return Within(_ignored, True)


def are_ignored() -> bool:
    """Return whether a call is only tried, and nobody asks for what it computes."""
    return _ignored.get()


def hold(layer: object, losses: list[Tensor]) -> None:
    """Keep losses that a layer adds.

    Args:
        layer: The layer.
        losses: The losses.
    """
    if not _ignored.get():
        mine = held.setdefault(ref(layer, _drop), {})
        mine.setdefault(_replica(), []).extend(losses)


def _drop(layer: "ref[object]") -> None:
    held.pop(layer, None)


def held_by(layers: Iterable[object]) -> list[Tensor]:
    """Return the losses that layers hold, of the replica that asks.

    Args:
        layers: The layers.
    """
    replica = _replica()
    return [loss for layer in layers for loss in held.get(ref(layer), {}).get(replica, ())]


def forget(layers: Iterable[object], *, of_all: bool = False) -> None:
    """Let layers hold no losses any more.

    Args:
        layers: The layers.
        of_all: Whether those of all replicas go, or those of the replica that asks.
    """
    if not held:
        return
    replica = _replica()
    for layer in layers:
        mine = held.get(ref(layer), {})
        mine.pop(replica, None)
        if of_all or not mine:
            held.pop(ref(layer), None)


def _replica() -> int | None:
    """Return the number of the replica that runs, of this process'; None outside of replicas."""
    context = get_replica_context() if has_strategy() else None
    return None if context is None else context._number
