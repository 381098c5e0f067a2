"""The plan of a streamed program, before it has memory, and where it places values.

Inputs and results are contiguous for one copy, and what passes between the nodes of a fused group
has no memory at all. The plan is kept where the memory is given back, so that the program is made
again without it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mirrored.devices import Device
from mirrored.ops.spec import TensorSpec
from mirrored.program.concurrency import Streams
from mirrored.program.dataflow import SHARED, Graph, Node, Value
from mirrored.program.liveness import FOREVER, Liveness, find_in_place_updates
from mirrored.program.memory_planner import CONSTANTS, Block, MemoryPlan, MemoryPlanner, aligned
from mirrored.program.schedule import FusedGroup, Schedule, make_schedule
from mirrored.program.streamed.kept_casts import with_kept_casts

# Results of at most this many bytes are copied together: one copy takes as long as several.
_SMALL = 1 << 12

_COUNTER = TensorSpec((3,), np.dtype(np.uint64))


@dataclass(eq=False, slots=True)
class Infeed:
    """What is fed to one device for one replica, as a piece of memory.

    Attributes:
        device: The device.
        replica: The replica that it is for, or SHARED.
        block: The memory that the program reads.
        places: For each value where it begins there, in bytes.
    """

    device: Device
    replica: int
    block: Block
    places: dict[Value, int]


class StreamMemoryPlan(NamedTuple):
    """The plan of a streamed program.

    Attributes:
        plan: Where each value is.
        feeds: What is fed.
        reports: For each device the memory where small results lie together. On the guard's device
            it begins with the flag that says whether the step writes.
        counters: For each random node what it reads key and number of its draw from.
    """

    plan: MemoryPlan
    feeds: list[Infeed]
    reports: dict[Device, Block]
    counters: dict[Node, Value]


def plan_stream_memory(graph: Graph, schedule: Schedule) -> StreamMemoryPlan:
    """Return where each value of a scheduled graph lives, what is fed to it and what it tells."""
    planner = _StreamMemoryPlanner(graph, schedule)
    return StreamMemoryPlan(planner.plan, planner.feeds, planner.reports, planner.counters)


class _StreamMemoryPlanner(MemoryPlanner):
    alignment = 256  # Bytes, as CUDA's own allocations: products and wide loads are quicker so.
    gap = 0

    def __init__(self, graph: Graph, schedule: Schedule) -> None:
        self.feeds: list[Infeed] = []
        self.reports: dict[Device, Block] = {}
        random = [node for node in schedule.nodes() if node.op.random]
        self.counters = {node: Value(_COUNTER, node.device, node.replica) for node in random}
        super().__init__(graph, schedule, 1)

    def in_place_updates(
        self, liveness: Liveness
    ) -> tuple[dict[Value, Any], list[tuple[Any, Value]]]:
        return find_in_place_updates(liveness, one_kernel=True)

    def place_inputs(self) -> None:
        blocks = self.plan.blocks
        for node, value in self.counters.items():
            end = self._liveness.position[node]
            blocks[value] = Block(value.device, value.replica, value.nbytes, -1, end)
        groups: dict[tuple[Device, int], list[Value]] = {}
        for value in (*self._graph.inputs, *self.counters.values()):
            groups.setdefault((value.device, value.replica), []).append(value)
        for (device, replica), values in groups.items():
            # Kept: a call that is given what the one before was need not copy it again.
            root = Block(device, replica, 0, -1, FOREVER)
            places: dict[Value, int] = {}
            for value in values:
                places[value] = root.nbytes
                blocks[value].become_part(root, root.nbytes)
                root.nbytes = aligned(root.nbytes + value.nbytes, self.alignment)
            self.feeds.append(Infeed(device, replica, root, places))

    def place_outputs(self) -> None:
        blocks, fed = self.plan.blocks, [feed.block for feed in self.feeds]
        device = self._graph.guard_device
        if device is not None:
            self.reports[device] = Block(device, SHARED, self.alignment, -1, FOREVER)
        for value in self._graph.outputs:
            root = blocks[value.base].root if value.base in blocks else None
            if root is None or root.storage is not None or root.replica == CONSTANTS or root in fed:
                continue
            if root.nbytes > _SMALL or root in self.reports.values():
                continue
            report = self.reports.get(root.device)
            if report is None:
                report = self.reports[root.device] = Block(root.device, SHARED, 0, -1, FOREVER)
            root.become_part(report, report.nbytes)
            report.nbytes = aligned(report.nbytes + root.nbytes, self.alignment)

    def make_registers(self, group: FusedGroup) -> None:
        pass  # They are those of the card.

    def all_blocks(self) -> Iterator[Block]:
        yield from super().all_blocks()
        yield from (feed.block for feed in self.feeds)
        yield from self.reports.values()


class Planned:
    """What is decided of a program before it has memory.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.kept_casts = with_kept_casts(graph)
        self.schedule = make_schedule(self.graph, Streams(self.graph))
        self.plan = plan_stream_memory(self.graph, self.schedule)
