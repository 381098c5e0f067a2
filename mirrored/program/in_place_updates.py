"""Finds new values that can be computed in the memory of their variables, without a copy.

Only where nothing can stop the program any more, and nobody reads the old value afterwards.
"""

from typing import Any

from mirrored.program.graph import Node, Value
from mirrored.program.liveness import Liveness, may_overwrite

# The storage of variables, and the place in it.
Place = tuple[Any, int]


def find_in_place_updates(
    liveness: Liveness, *, one_kernel: bool = False
) -> tuple[dict[Value, Place], list[tuple[Any, Value]]]:
    """Return the values that live with their variables, and the writes that are left to do.

    Args:
        liveness: Who reads what, and when.
        one_kernel: Whether a fused group is one kernel, which needs memory for its results alone,
            and can leave a variable as it is where the guard fails, as no other kernel can.
    """
    by_base: dict[Value, list[tuple[Any, Value]]] = {}
    for variable, value in liveness.graph.writes:
        by_base.setdefault(value.base, []).append((variable, value))
    guard = liveness.graph.guard_device
    in_place: dict[Value, Place] = {}
    left: list[tuple[Any, Value]] = []
    for base, writes in by_base.items():
        guarded = one_kernel and guard is not None and base.node not in liveness.group
        place = None if guarded else _place_of(liveness, base, writes)
        if place is None:
            left += writes
        else:
            in_place[base] = place
    liveness.kept |= {value.base for _, value in left}
    if not one_kernel:
        _extend(liveness, in_place)
    return in_place, left


def _place_of(liveness: Liveness, base: Value, writes: list[tuple[Any, Value]]) -> Place | None:
    node = base.node
    if node is None or base in liveness.kept or not liveness.is_certain(node):
        return None
    places = {
        (variable.pinned()[0], variable.pinned()[1] - value.offset) for variable, value in writes
    }
    if len(places) != 1 or sum(value.size for _, value in writes) != base.size:
        return None
    storage, offset = places.pop()
    if storage.device is not node.device or storage.spec.dtype != base.spec.dtype:
        return None
    return (storage, offset) if _may_write(liveness, node, storage, offset) else None


def _may_write(liveness: Liveness, node: Node, storage: Any, offset: int) -> bool:
    """Whether nothing reads the old value in a variable's memory once `node` writes there."""
    size, position = node.output.size, liveness.position[node]
    for base, readers in liveness.reads.items():
        if base.storage is not storage:
            continue
        for reader, value in readers:
            if value.offset >= offset + size or value.offset + value.size <= offset:
                continue
            if liveness.is_beside(reader, node):
                return False
            aligned = value.offset == offset and value.size == size
            if liveness.group.get(reader, reader) is liveness.group.get(node, node):
                # Piece by piece: each piece is read before it is written, or by its writer.
                if not aligned or liveness.position[reader] > position:
                    return False
                if reader is node and not may_overwrite(node, value):
                    return False
            elif liveness.position[reader] >= position:
                return False
    return True


def _extend(liveness: Liveness, in_place: dict[Value, Place]) -> None:
    """Let what only leads to a variable's new value be computed in its memory too.

    A group then reads and writes one piece of memory less.
    """
    for base, (storage, offset) in list(in_place.items()):
        node = base.node
        while node is not None and node in liveness.group:
            earlier = _overwritten_by(liveness, node)
            maker = None if earlier is None else earlier.node
            if earlier is None or maker is None or earlier in in_place:
                break  # That one is another variable's new value.
            if not _may_write(liveness, maker, storage, offset):
                break
            in_place[earlier] = (storage, offset)
            node = maker


def _overwritten_by(liveness: Liveness, node: Node) -> Value | None:
    """Return a value within a node's group that the node's result may be written over."""
    for value in node.inputs:
        maker = value.base.node
        if (
            maker is not None
            and liveness.group.get(maker) is liveness.group[node]
            and liveness.is_local(maker)
            and may_overwrite(node, value)
            and value.whole
            and liveness.reads[value.base][-1][0] is node
        ):
            return value.base
    return None
