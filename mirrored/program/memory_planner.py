"""Places the values of a program: temporaries share memory, results overwrite inputs.

All of it is decided before anything runs, so a step allocates nothing.
"""

import bisect
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mirrored.devices import Device
from mirrored.ops.dispatch import implementation
from mirrored.ops.spec import DType, Shape, TensorSpec
from mirrored.program.dataflow import SHARED, Graph, Node, Value, joins_rows
from mirrored.program.kernel_fusion import pieces, register_numbers
from mirrored.program.liveness import FOREVER, Liveness, find_in_place_updates, may_overwrite
from mirrored.program.schedule import FusedGroup, Schedule

ALIGNMENT = 64  # Bytes: the length of a cache line, and of the widest vector registers.
# Instead of a replica's number: what is written once, when the program is made.
CONSTANTS = -2


@dataclass(eq=False, slots=True)
class Block:
    """Memory of one or several values, each of which is dead before the next is written.

    Attributes:
        device: Where it is.
        replica: Whose it is: a replica's, SHARED or CONSTANTS, or of a second stream.
        nbytes: Its size.
        start: The position of the first node that writes it.
        end: That of the last one that reads it.
        parent: A block that it is a part of.
        place: How many bytes of the parent, or of the arena, come before it.
        storage: The variables' memory that it is, instead.
    """

    device: Device
    replica: int
    nbytes: int
    start: int
    end: int
    parent: "Block | None" = None
    place: int = 0
    storage: Any = None

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
class MemoryPlan:
    """Where the values of a program are.

    Attributes:
        blocks: For each base value that has one, its block.
        arenas: How many bytes each device and replica needs for blocks of its own.
        scratch: For each node with a workspace, the blocks of that.
        locals: The values that exist only within pieces of one group.
        registers: For each thread and each of those, the memory of a piece.
        commits: The writes that are left to do at the end: a variable and its value.
        alignment: Arenas begin at a multiple of N bytes.
    """

    blocks: dict[Value, Block] = field(default_factory=dict)
    arenas: dict[tuple[Device, int], int] = field(default_factory=dict)
    scratch: dict[Node, list[tuple[TensorSpec, Block]]] = field(default_factory=dict)
    locals: set[Value] = field(default_factory=set)
    registers: dict[tuple[int, Value], Block] = field(default_factory=dict)
    commits: list[tuple[Any, Value]] = field(default_factory=list)
    alignment: int = ALIGNMENT

    def is_in_place(self, part: Value, whole: Value, row: int) -> bool:
        """Return whether a value is computed where it begins at a row of another one."""
        block, target = self.blocks.get(part.base), self.blocks.get(whole.base)
        if block is None or target is None or block.parent is not target or not part.whole:
            return False
        rows = whole.spec.shape[0]
        return block.place == row * (whole.nbytes // rows if rows else 0)


def plan_memory(graph: Graph, schedule: Schedule, threads: int = 1) -> MemoryPlan:
    """Return where each value of a scheduled graph lives."""
    return MemoryPlanner(graph, schedule, threads).plan


class MemoryPlanner:
    """Makes the plan of one program; arguments as for `plan_memory`.

    Attributes:
        plan: The plan.
    """

    # Where blocks begin, and how far they are from each other at least. With a gap: some releases
    # of NumPy take arrays that touch for ones that overlap, and compute a function such as `exp`
    # in another way then.
    alignment = ALIGNMENT
    gap = 1

    def __init__(self, graph: Graph, schedule: Schedule, threads: int) -> None:
        self.plan = MemoryPlan(alignment=self.alignment)
        self._graph = graph
        self._threads = threads
        self._liveness = Liveness(graph, schedule)
        # What is in each block: values, and blocks that are parts of it.
        self._values: defaultdict[Block, list[Value]] = defaultdict(list)
        self._parts: defaultdict[Block, list[Block]] = defaultdict(list)
        in_place, self.plan.commits = self.in_place_updates(self._liveness)
        self._make_blocks(in_place)
        self.place_inputs()
        self._place_parts()
        self._overwrite_inputs()
        self.place_outputs()
        for group in dict.fromkeys(self._liveness.group.values()):
            self.make_registers(group)
        self._lay_out()

    def in_place_updates(
        self, liveness: Liveness
    ) -> tuple[dict[Value, Any], list[tuple[Any, Value]]]:
        """Return the values that live with their variables, and the writes that are left to do."""
        return find_in_place_updates(liveness)

    def place_inputs(self) -> None:
        """Leave each input where there is room for it."""

    def place_outputs(self) -> None:
        """Leave each result where there is room for it."""

    # ------------------------------------------------------------------ blocks

    def _make_blocks(self, in_place: dict[Value, tuple[Any, int]]) -> None:
        plan, liveness = self.plan, self._liveness
        for value in self._graph.inputs:
            end = liveness.last_read(value, 0)
            plan.blocks[value] = Block(value.device, value.replica, value.nbytes, -1, end)
        for value in self._constants():
            plan.blocks[value] = Block(value.device, CONSTANTS, value.nbytes, -1, FOREVER)
        for i, node in enumerate(self._liveness.nodes):
            out, replica = node.output, liveness.replicas[node]
            if out in in_place:
                storage, offset = in_place[out]
                place = offset * out.spec.dtype.itemsize
                block = Block(out.device, replica, out.nbytes, i, FOREVER, None, place, storage)
                plan.blocks[out] = block
            elif liveness.is_local(node):
                plan.locals.add(out)
            else:
                start, end = liveness.first_written(node), liveness.last_read(out, i)
                plan.blocks[out] = Block(out.device, replica, out.nbytes, start, end)
            workspace = implementation(node.op, node.device.backend).workspace
            if workspace is not None:
                specs = workspace(*(value.spec for value in node.inputs), **node.attrs)
                start, end = i, i
                if node in liveness.together:
                    start, end = liveness.first_written(node), liveness.ends[node]
                plan.scratch[node] = [
                    (TensorSpec(*spec), Block(out.device, replica, _nbytes(*spec), start, end))
                    for spec in specs
                ]

    def _constants(self) -> list[Value]:
        values = [*self._liveness.reads, *(value.base for value in self._graph.outputs)]
        values += [value.base for _, value in self._graph.writes]
        return [value for value in dict.fromkeys(values) if value.data is not None]

    def _place_parts(self) -> None:
        """Let what is joined along the first axis be computed right where it is joined."""
        for i, node in enumerate(self._liveness.nodes):
            whole = self.plan.blocks.get(node.output)
            if not joins_rows(node.op, node.attrs) or whole is None or whole.storage is not None:
                continue
            place = 0
            for value in node.inputs:
                block = self.plan.blocks.get(value.base)
                maker = value.base.node
                if (
                    block is not None
                    and maker is not None
                    and value.whole
                    and block.parent is None
                    and block.storage is None
                    and block.device is whole.device
                    and node.replica in (maker.replica, SHARED)
                    and block.start < i
                ):
                    if block.replica != whole.replica:
                        # Its memory is in use while others run beside it.
                        block.start = min(block.start, self._liveness.begins[maker])
                    block.become_part(whole, place)
                place += value.nbytes

    def _overwrite_inputs(self) -> None:
        """Let results take over the memory of inputs that nobody needs any more."""
        for value, held in self.plan.blocks.items():
            self._values[held].append(value)
            if held.parent is not None:
                self._parts[held.parent].append(held)
        for node in self._liveness.nodes:
            own = self.plan.blocks.get(node.output)
            if own is None or own.storage is not None:
                continue
            for position in node.op.may_alias:
                if position < len(node.inputs):
                    block = self._free_for(node, node.inputs[position], own)
                    if block is not None:
                        self._merge(block, own)
                        break

        for collective in self._graph.collectives:
            for node in collective.nodes:
                self._sum_in_place(node, node.inputs[node.attrs["rank"]])

    def _sum_in_place(self, node: Node, value: Value) -> None:
        """Let a rank's sum take over the memory of what it adds, where nobody else reads that."""
        own, liveness, maker = self.plan.blocks.get(node.output), self._liveness, value.base.node
        block = None if value.base in liveness.kept else self.plan.blocks.get(value.base)
        if own is None or block is None or maker is None or block.storage is not None:
            return
        if block.device is not own.device or (own.parent is not None and block.parent):
            return
        # Other ranks' nodes have it among their inputs, and are given it by this rank.
        alone = all(reader.op is node.op for reader, _ in liveness.reads[value.base])
        ranks = {id(reader.inputs) for reader, _ in liveness.reads[value.base]} == {id(node.inputs)}
        if alone and ranks and value.whole and self._is_joined(block, maker):
            self._merge(block, own)

    def _is_joined(self, block: Block, join: Node) -> bool:
        """Whether nobody needs the parts in a block, if it has some, once they are joined there."""
        position, liveness = self._liveness.position, self._liveness
        for part in self._parts[block]:
            for value in self._values[part]:
                readers = liveness.reads.get(value, ())
                if value in liveness.kept or any(position[r] > position[join] for r, _ in readers):
                    return False
            if not self._is_joined(part, join):
                return False
        return True

    def _free_for(self, node: Node, value: Value, own: Block) -> Block | None:
        """Return the block of an input if the node's result may take it over."""
        block = self.plan.blocks.get(value.base)
        if block is None or block is own or block.storage is not None or value.base.node is None:
            return None
        if node in self._liveness.group and block.parent is not None:
            return None  # Another node of the group may read what it is a part of.
        # Of two places where parts are joined only one can be kept.
        both_placed = block.parent is not None and own.parent is not None
        same_place = block.device is own.device and own.replica in (block.replica, SHARED)
        free = value.whole and may_overwrite(node, value) and same_place and not both_placed
        return block if free and self._liveness.dies_at(node, value.base, block.root.end) else None

    def _merge(self, block: Block, into: Block) -> None:
        """Let two blocks be one, which has the place of either."""
        into.replica = block.replica
        into.start = min(into.start, block.start)
        parent = into.parent or block.parent
        if parent is not None:
            if block.replica != parent.replica:  # As where parts are placed.
                makers = [other.node for other in self._values[block] if other.node is not None]
                beside = map(self._liveness.begins.__getitem__, makers)
                into.start = min([into.start, *beside])
            if into.parent is None:
                self._parts[parent].append(into)
            into.become_part(parent, block.place if into.parent is None else into.place)
        for value in self._values[block]:
            self.plan.blocks[value] = into
        for part in self._parts[block]:
            part.parent = into
        self._values[into] += self._values.pop(block)
        self._parts[into] += self._parts.pop(block)

    def make_registers(self, group: FusedGroup) -> None:
        """Give what only a group's pieces have memory of a piece, for each thread."""
        numbers = register_numbers(group, self.plan.locals)
        position = self._liveness.position
        start, end = position[group.nodes[0]], position[group.nodes[-1]]
        widths: dict[tuple[Device, int], int] = {}
        for value, number in numbers.items():
            key = value.device, number
            widths[key] = max(widths.get(key, 0), value.spec.dtype.itemsize)
        devices = {node.replica: node.device for node in self._liveness.nodes}
        for thread in range(self._threads):
            longest = max((e - b for b, e in pieces(group.size, self._threads, thread)), default=0)
            blocks = {
                # A thread's are on its replica's device, so that each has its own to give.
                key: Block(devices.get(thread, key[0]), SHARED, longest * width, start, end)
                for key, width in widths.items()
            }
            for value, number in numbers.items():
                self.plan.registers[thread, value] = blocks[value.device, number]

    # ------------------------------------------------------------------ the arenas

    def _lay_out(self) -> None:
        """Give each block of its own a place in the arena of its device and replica."""
        users: dict[Device, set[int]] = {}
        roots = {id(block): block for block in self.all_blocks()}
        for block in roots.values():
            users.setdefault(block.device, set()).add(block.replica)
        groups: dict[tuple[Device, int], list[Block]] = {}
        for block in roots.values():
            replicas = users[block.device] - {SHARED, CONSTANTS}
            # What belongs to no replica never runs beside one: it shares the only one's memory.
            if block.replica == SHARED and len(replicas) == 1:
                (block.replica,) = replicas
            groups.setdefault((block.device, block.replica), []).append(block)
        for key, members in groups.items():
            self.plan.arenas[key] = self._pack(members)

    def all_blocks(self) -> Iterator[Block]:
        """Yield the blocks that are parts of no other, some of them several times."""
        for block in self.plan.blocks.values():
            if block.parent is None and block.storage is None:
                yield block
        for pairs in self.plan.scratch.values():
            for _, block in pairs:
                yield block
        yield from self.plan.registers.values()

    def _pack(self, blocks: list[Block]) -> int:
        """Give blocks places such that no two overlap that live at one time; return the size.

        The largest first, each at the lowest place that is free while it lives (Pisarchyk and Lee,
        "Efficient memory management for deep neural net inference", 2020).
        """
        placed: list[tuple[int, int, int, int]] = []  # By place: it, the next one, start and end.
        total = 0
        for block in sorted(blocks, key=lambda candidate: (-candidate.nbytes, candidate.start)):
            start, end, place = block.start, block.end, 0
            room = block.nbytes - (not self.gap)
            for taken, behind, first, last in placed:
                if first <= end and start <= last:
                    if place + room < taken:
                        break
                    if behind > place:  # A call of `max` would take as long as all the rest.
                        place = behind
            block.place = place
            total = max(total, place + block.nbytes)
            behind = aligned(place + block.nbytes + self.gap, self.alignment)
            bisect.insort(placed, (place, behind, start, end))
        return total


def aligned(nbytes: int, alignment: int) -> int:
    """Return the least multiple of an alignment that is no less than a number of bytes."""
    return -(-nbytes // alignment) * alignment


def _nbytes(shape: Shape, dtype: DType) -> int:
    return math.prod(shape) * dtype.itemsize
