"""Where each value of a program lives: temporaries share memory, and results overwrite inputs.

All of it is decided before anything runs, so a step allocates nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mirrored.devices import Device
from mirrored.ops.registry import Op
from mirrored.ops.spec import TensorSpec
from mirrored.program.graph import JOINT, Graph, Node, Value
from mirrored.program.regions import pieces, register_numbers
from mirrored.program.schedule import Guard, Lanes, Region, Schedule

ALIGNMENT = 64  # Bytes: the length of a cache line, and of the widest vector registers.
_FOREVER = 1 << 60
# The lane of what is written once, when the program is made.
CONSTANTS = -2


@dataclass(eq=False, slots=True)
class Block:
    """Memory of one or several values, each of which is dead before the next is written.

    Attributes:
        device: Where it is.
        lane: Whose it is.
        nbytes: Its size.
        start: The position of the first node that writes it.
        end: That of the last one that reads it.
        parent: A block that it is a part of.
        place: How many bytes of the parent, or of the arena, come before it.
        home: The variables' memory that it is, instead.
    """

    device: Device
    lane: int
    nbytes: int
    start: int
    end: int
    parent: "Block | None" = None
    place: int = 0
    home: Any = None

    @property
    def root(self) -> "Block":
        """The block that it is a part of, or itself."""
        return self if self.parent is None else self.parent.root

    def become_part(self, parent: "Block", place: int) -> None:
        """Live in another block, for as long as either of them does."""
        self.parent, self.place = parent, place
        root = parent.root
        root.start, root.end = min(root.start, self.start), max(root.end, self.end)


@dataclass(slots=True)
class Plan:
    """Where the values of a program are.

    Attributes:
        blocks: For each base value that has one, its block.
        arenas: How many bytes each device and lane needs for blocks of its own.
        scratch: For each node with a workspace, the blocks of that.
        locals: The values that exist only within pieces of one region.
        registers: For each thread and each of those, the memory of a piece.
        commits: The writes that are left to do at the end: a variable and its value.
    """

    blocks: dict[Value, Block] = field(default_factory=dict)
    arenas: dict[tuple[Device, int], int] = field(default_factory=dict)
    scratch: dict[Node, list[tuple[TensorSpec, Block]]] = field(default_factory=dict)
    locals: set[Value] = field(default_factory=set)
    registers: dict[tuple[int, Value], Block] = field(default_factory=dict)
    commits: list[tuple[Any, Value]] = field(default_factory=list)

    def is_in_place(self, part: Value, whole: Value, row: int) -> bool:
        """Return whether a value is computed where it begins at a row of another one."""
        block, target = self.blocks.get(part.base), self.blocks.get(whole.base)
        if block is None or target is None or block.parent is not target or not part.whole:
            return False
        rows = whole.spec.shape[0]
        return block.place == row * (whole.nbytes // rows if rows else 0)


def make_plan(graph: Graph, schedule: Schedule, threads: int = 1) -> Plan:
    """Return where each value of a scheduled graph lives.

    Args:
        graph: The graph.
        schedule: Its schedule.
        threads: How many threads share its regions.
    """
    return _Planner(graph, schedule, threads).plan


class _Planner:
    def __init__(self, graph: Graph, schedule: Schedule, threads: int) -> None:
        self.plan = Plan()
        self._threads = threads
        self._graph = graph
        self._nodes = list(schedule.nodes())
        self._position = {node: i for i, node in enumerate(self._nodes)}
        self._region = {
            node: phase
            for phase in schedule.phases
            if isinstance(phase, Region)
            for node in phase.nodes
        }
        self._phase_end = self._ends(schedule)
        self._reads = self._reading()
        self._kept = {value.base for value in (*graph.outputs, *graph.guards)}
        self._first_write = self._writable_from(schedule)
        homed = self._find_homes()
        self._kept |= {value.base for _, value in self.plan.commits}
        self._extend_homes(homed)
        self._make_blocks(homed)
        self._place_parts()
        self._overwrite_inputs()
        for region in dict.fromkeys(self._region.values()):
            self._make_registers(region)
        self._lay_out()

    # ------------------------------------------------------------------ who reads what, and when

    def _ends(self, schedule: Schedule) -> dict[Node, int]:
        """Return for each node the position at which the phase that it is in ends."""
        ends: dict[Node, int] = {}
        position = 0
        for phase in schedule.phases:
            if isinstance(phase, Guard):
                continue
            lists = phase.nodes.values() if isinstance(phase, Lanes) else [phase.nodes]
            nodes = [node for each in lists for node in each]
            position += len(nodes)
            ends |= dict.fromkeys(nodes, position - 1)
        return ends

    def _reading(self) -> dict[Value, list[tuple[Node, Value]]]:
        reads: dict[Value, list[tuple[Node, Value]]] = {}
        for node in self._nodes:
            for value in node.inputs:
                reads.setdefault(value.base, []).append((node, value))
        return reads

    def _last_read(self, base: Value, defined: int) -> int:
        if base in self._kept:
            return _FOREVER
        last = defined
        for node, _ in self._reads.get(base, ()):
            # Another lane runs side by side with what comes later in its phase.
            other = node.lane != base.lane and node.lane != JOINT
            # A region's nodes take turns, piece by piece.
            until_end = other or node in self._region
            last = max(last, self._phase_end[node] if until_end else self._position[node])
        return last

    # ------------------------------------------------------------------ variables' own memory

    def _writable_from(self, schedule: Schedule) -> int:
        """Return the position from which on nothing can stop the program any more."""
        position = first = 0
        for phase in schedule.phases:
            if isinstance(phase, Guard):
                first = position
                continue
            lists = phase.nodes.values() if isinstance(phase, Lanes) else [phase.nodes]
            position += sum(len(each) for each in lists)
        if self._graph.validates:
            checks = (i for i, node in enumerate(self._nodes) if node.op.validate is not None)
            first = max(first, *(i + 1 for i in checks), 0)
        return first

    def _find_homes(self) -> dict[Value, tuple[Any, int]]:
        """Return the values that can be computed right where their variables live."""
        by_base: dict[Value, list[tuple[Any, Value]]] = {}
        for variable, value in self._graph.writes:
            by_base.setdefault(value.base, []).append((variable, value))
        homed: dict[Value, tuple[Any, int]] = {}
        for base, writes in by_base.items():
            place = self._home_of(base, writes)
            if place is None:
                self.plan.commits += writes
            else:
                homed[base] = place
        return homed

    def _home_of(self, base: Value, writes: list[tuple[Any, Value]]) -> tuple[Any, int] | None:
        node = base.node
        if node is None or base in self._kept or self._position[node] < self._first_write:
            return None
        places = {
            (variable.pinned()[0], variable.pinned()[1] - value.offset)
            for variable, value in writes
        }
        if len(places) != 1 or sum(value.size for _, value in writes) != base.size:
            return None
        home, offset = places.pop()
        if home.device is not node.device or home.spec.dtype != base.spec.dtype:
            return None
        return (home, offset) if self._may_write(node, home, offset) else None

    def _may_write(self, node: Node, home: Any, offset: int) -> bool:
        """Whether nothing reads the old value in a variable's memory once `node` writes there."""
        size, position = node.output.size, self._position[node]
        for base, readers in self._reads.items():
            if base.home is not home:
                continue
            for reader, value in readers:
                if value.offset >= offset + size or value.offset + value.size <= offset:
                    continue
                aligned = value.offset == offset and value.size == size
                if self._region.get(reader, reader) is self._region.get(node, node):
                    # Piece by piece: each piece is read before it is written, or by its writer.
                    if not aligned or self._position[reader] > position:
                        return False
                    if reader is node and not _may_overwrite(node, value):
                        return False
                elif self._position[reader] >= position:
                    return False
        return True

    def _extend_homes(self, homed: dict[Value, tuple[Any, int]]) -> None:
        """Let what only leads to a variable's new value be computed in its memory too.

        A region then reads and writes one piece of memory less.
        """
        for base, (home, offset) in list(homed.items()):
            node = base.node
            while node is not None and node in self._region:
                earlier = self._overwritten_by(node)
                maker = None if earlier is None else earlier.node
                if earlier is None or maker is None or earlier in homed:
                    break  # That one is another variable's new value.
                if not self._may_write(maker, home, offset):
                    break
                homed[earlier] = (home, offset)
                node = maker

    def _overwritten_by(self, node: Node) -> Value | None:
        """Return a value within a node's region that the node's result may be written over."""
        for value in node.inputs:
            maker = value.base.node
            if (
                maker is not None
                and self._region.get(maker) is self._region[node]
                and self._is_local(maker)
                and _may_overwrite(node, value)
                and value.whole
                and self._reads[value.base][-1][0] is node
            ):
                return value.base
        return None

    # ------------------------------------------------------------------ blocks

    def _make_blocks(self, homed: dict[Value, tuple[Any, int]]) -> None:
        plan = self.plan
        for value in self._graph.inputs:
            end = self._last_read(value, 0)
            plan.blocks[value] = Block(value.device, value.lane, value.nbytes, -1, end)
        for value in self._constants():
            plan.blocks[value] = Block(value.device, CONSTANTS, value.nbytes, -1, _FOREVER)
        for i, node in enumerate(self._nodes):
            out = node.output
            if out in homed:
                home, offset = homed[out]
                place = offset * out.spec.dtype.itemsize
                block = Block(out.device, out.lane, out.nbytes, i, _FOREVER, None, place, home)
                plan.blocks[out] = block
            elif self._is_local(node):
                plan.locals.add(out)
            else:
                start, end = self._phase_start(node), self._last_read(out, i)
                plan.blocks[out] = Block(out.device, out.lane, out.nbytes, start, end)
            if node.op.workspace is not None:
                specs = node.op.workspace(*(value.spec for value in node.inputs), **node.attrs)
                plan.scratch[node] = [
                    (spec, Block(out.device, out.lane, _nbytes(spec), i, i)) for spec in specs
                ]

    def _constants(self) -> list[Value]:
        values = [*self._reads, *(value.base for value in self._graph.outputs)]
        values += [value.base for _, value in self._graph.writes]
        return [value for value in dict.fromkeys(values) if value.data is not None]

    def _phase_start(self, node: Node) -> int:
        """Return when a node's result is first written: a region's nodes take turns."""
        region = self._region.get(node)
        return self._position[node if region is None else region.nodes[0]]

    def _is_local(self, node: Node) -> bool:
        region = self._region.get(node)
        if region is None or node.output in self._kept:
            return False
        return all(
            self._region.get(reader) is region and value.whole
            for reader, value in self._reads.get(node.output, ())
        )

    def _place_parts(self) -> None:
        """Let what is joined along the first axis be computed right where it is joined."""
        for i, node in enumerate(self._nodes):
            whole = self.plan.blocks.get(node.output)
            if not joins_rows(node.op, node.attrs) or whole is None or whole.home is not None:
                continue
            place = 0
            for value in node.inputs:
                block = self.plan.blocks.get(value.base)
                if (
                    block is not None
                    and value.base.node is not None
                    and value.whole
                    and block.parent is None
                    and block.home is None
                    and (block.device, block.lane) == (whole.device, whole.lane)
                    and block.start < i
                ):
                    block.become_part(whole, place)
                place += value.nbytes

    def _overwrite_inputs(self) -> None:
        """Let results take over the memory of inputs that nobody needs any more."""
        for node in self._nodes:
            own = self.plan.blocks.get(node.output)
            if own is None or own.home is not None:
                continue
            for position in node.op.may_alias:
                if position < len(node.inputs):
                    block = self._free_for(node, node.inputs[position], own)
                    if block is not None:
                        self._merge(block, own)
                        break

    def _free_for(self, node: Node, value: Value, own: Block) -> Block | None:
        """Return the block of an input if the node's result may take it over."""
        block = self.plan.blocks.get(value.base)
        if block is None or block is own or block.home is not None or value.base.node is None:
            return None
        # Of two places where parts are joined only one can be kept.
        both_placed = block.parent is not None and own.parent is not None
        same_place = block.device is own.device and own.lane in (block.lane, JOINT)
        free = value.whole and _may_overwrite(node, value) and same_place and not both_placed
        return block if free and self._dies_at(node, value.base, block) else None

    def _dies_at(self, node: Node, base: Value, block: Block) -> bool:
        """Whether a node is the last to need a block, which holds a value that it reads."""
        if node not in self._region:
            return block.root.end == self._position[node]
        inside = [r for r, _ in self._reads[base] if self._region.get(r) is self._region[node]]
        return inside == [node] and block.root.end == self._phase_end[node]

    def _merge(self, block: Block, into: Block) -> None:
        """Let two blocks be one, which has the place of either."""
        into.lane = block.lane
        into.start = min(into.start, block.start)
        parent = into.parent or block.parent
        if parent is not None:
            into.become_part(parent, block.place if into.parent is None else into.place)
        for value, each in self.plan.blocks.items():
            if each is block:
                self.plan.blocks[value] = into
            elif each.parent is block:
                each.parent = into

    def _make_registers(self, region: Region) -> None:
        """Give what only a region's pieces have memory of a piece, for each thread."""
        numbers = register_numbers(region, self.plan.locals)
        start, end = self._position[region.nodes[0]], self._position[region.nodes[-1]]
        widths: dict[tuple[Device, int], int] = {}
        for value, number in numbers.items():
            key = value.device, number
            widths[key] = max(widths.get(key, 0), value.spec.dtype.itemsize)
        homes = {node.lane: node.device for node in self._nodes}
        for thread in range(self._threads):
            longest = max((e - b for b, e in pieces(region.size, self._threads, thread)), default=0)
            blocks = {
                # A thread's are on its replica's device, so that each has its own to give.
                key: Block(homes.get(thread, key[0]), JOINT, longest * width, start, end)
                for key, width in widths.items()
            }
            for value, number in numbers.items():
                self.plan.registers[thread, value] = blocks[value.device, number]

    # ------------------------------------------------------------------ the arenas

    def _lay_out(self) -> None:
        """Give each block of its own a place in the arena of its device and lane."""
        users: dict[Device, set[int]] = {}
        roots = {id(block): block for block in self._all_blocks()}
        for block in roots.values():
            users.setdefault(block.device, set()).add(block.lane)
        groups: dict[tuple[Device, int], list[Block]] = {}
        for block in roots.values():
            lanes = users[block.device] - {JOINT, CONSTANTS}
            # What belongs to no replica never runs beside one: it shares the only one's memory.
            lane = next(iter(lanes)) if block.lane == JOINT and len(lanes) == 1 else block.lane
            block.lane = lane
            groups.setdefault((block.device, lane), []).append(block)
        for key, members in groups.items():
            self.plan.arenas[key] = _pack(members)

    def _all_blocks(self) -> Iterator[Block]:
        for block in self.plan.blocks.values():
            if block.parent is None and block.home is None:
                yield block
        for pairs in self.plan.scratch.values():
            for _, block in pairs:
                yield block
        yield from self.plan.registers.values()


def joins_rows(op: Op, attrs: Any) -> bool:
    """Whether an op joins its inputs along the first axis, one after the other in memory."""
    return op.name == "ConcatV2" and attrs["axis"] == 0


def _may_overwrite(node: Node, value: Value) -> bool:
    """Whether a node's result may be written over one of its inputs, as far as the op goes."""
    sharing = [each for each in node.inputs if each.base is value.base]
    return (
        len(sharing) == 1
        and node.inputs.index(value) in node.op.may_alias
        and value.spec == node.output.spec
    )


def _pack(blocks: list[Block]) -> int:
    """Give blocks places such that no two overlap that live at one time; return the size.

    The largest first, each at the lowest place that is free while it lives (Pisarchyk and Lee,
    "Efficient memory management for deep neural net inference", 2020).
    """
    placed: list[Block] = []
    total = 0
    for block in sorted(blocks, key=lambda each: (-each.nbytes, each.start)):
        place = 0
        rivals = [each for each in placed if each.start <= block.end and block.start <= each.end]
        for rival in sorted(rivals, key=lambda each: each.place):
            if place + block.nbytes <= rival.place:
                break
            place = max(place, _aligned(rival.place + rival.nbytes))
        block.place = place
        total = max(total, place + block.nbytes)
        placed.append(block)
    return total


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _nbytes(spec: TensorSpec) -> int:
    return math.prod(spec.shape) * spec.dtype.itemsize
