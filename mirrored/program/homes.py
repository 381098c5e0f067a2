"""Which new values are computed right where their variables live, and so need no copy.

Only where nothing can stop the program any more, and nobody reads the old value afterwards.
"""

from typing import Any

from mirrored.program.graph import Node, Value
from mirrored.program.usage import Usage, may_overwrite

# A home, and the place in it.
Place = tuple[Any, int]


def find_homes(
    usage: Usage, *, chains: bool = False
) -> tuple[dict[Value, Place], list[tuple[Any, Value]]]:
    """Return the values that live with their variables, and the writes that are left to do.

    Args:
        usage: Who reads what, and when.
        chains: Whether groups are chains, whose steps need no memory but for their results, and
            which alone can leave a variable as it is where the guard fails.
    """
    by_base: dict[Value, list[tuple[Any, Value]]] = {}
    for variable, value in usage.graph.writes:
        by_base.setdefault(value.base, []).append((variable, value))
    homed: dict[Value, Place] = {}
    left: list[tuple[Any, Value]] = []
    for base, writes in by_base.items():
        guarded = chains and usage.graph.gate is not None and base.node not in usage.group
        place = None if guarded else _home_of(usage, base, writes)
        if place is None:
            left += writes
        else:
            homed[base] = place
    usage.kept |= {value.base for _, value in left}
    if not chains:
        _extend(usage, homed)
    return homed, left


def _home_of(usage: Usage, base: Value, writes: list[tuple[Any, Value]]) -> Place | None:
    node = base.node
    if node is None or base in usage.kept or usage.position[node] < usage.first_write:
        return None
    places = {
        (variable.pinned()[0], variable.pinned()[1] - value.offset) for variable, value in writes
    }
    if len(places) != 1 or sum(value.size for _, value in writes) != base.size:
        return None
    home, offset = places.pop()
    if home.device is not node.device or home.spec.dtype != base.spec.dtype:
        return None
    return (home, offset) if _may_write(usage, node, home, offset) else None


def _may_write(usage: Usage, node: Node, home: Any, offset: int) -> bool:
    """Whether nothing reads the old value in a variable's memory once `node` writes there."""
    size, position = node.output.size, usage.position[node]
    for base, readers in usage.reads.items():
        if base.home is not home:
            continue
        for reader, value in readers:
            if value.offset >= offset + size or value.offset + value.size <= offset:
                continue
            if usage.is_beside(reader, node):
                return False
            aligned = value.offset == offset and value.size == size
            if usage.group.get(reader, reader) is usage.group.get(node, node):
                # Piece by piece: each piece is read before it is written, or by its writer.
                if not aligned or usage.position[reader] > position:
                    return False
                if reader is node and not may_overwrite(node, value):
                    return False
            elif usage.position[reader] >= position:
                return False
    return True


def _extend(usage: Usage, homed: dict[Value, Place]) -> None:
    """Let what only leads to a variable's new value be computed in its memory too.

    A group then reads and writes one piece of memory less.
    """
    for base, (home, offset) in list(homed.items()):
        node = base.node
        while node is not None and node in usage.group:
            earlier = _overwritten_by(usage, node)
            maker = None if earlier is None else earlier.node
            if earlier is None or maker is None or earlier in homed:
                break  # That one is another variable's new value.
            if not _may_write(usage, maker, home, offset):
                break
            homed[earlier] = (home, offset)
            node = maker


def _overwritten_by(usage: Usage, node: Node) -> Value | None:
    """Return a value within a node's group that the node's result may be written over."""
    for value in node.inputs:
        maker = value.base.node
        if (
            maker is not None
            and usage.group.get(maker) is usage.group[node]
            and usage.is_local(maker)
            and may_overwrite(node, value)
            and value.whole
            and usage.reads[value.base][-1][0] is node
        ):
            return value.base
    return None
