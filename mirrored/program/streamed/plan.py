"""Where the values of a streamed program live: what is fed lies together, so one copy brings it.

What passes between the steps of a chain has no memory at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mirrored.devices import Device
from mirrored.program.graph import Graph, Value
from mirrored.program.homes import find_homes
from mirrored.program.memory import Block, Plan, Planner, aligned
from mirrored.program.schedule import Region
from mirrored.program.streamed.stages import StreamedSchedule
from mirrored.program.usage import FOREVER, Usage


@dataclass(eq=False, slots=True)
class Feed:
    """What is fed to one device for one lane, as a piece of memory.

    Attributes:
        device: The device.
        lane: The replica that it is for, or JOINT.
        block: The memory that the program reads.
        places: For each value where it begins there, in bytes.
    """

    device: Device
    lane: int
    block: Block
    places: dict[Value, int]


def make_streamed_plan(graph: Graph, schedule: StreamedSchedule) -> tuple[Plan, list[Feed]]:
    """Return where each value of a scheduled graph lives, and what is fed to it."""
    planner = _StreamedPlanner(graph, schedule)
    return planner.plan, planner.feeds


class _StreamedPlanner(Planner):
    alignment = 256  # Bytes, as CUDA's own allocations: products and wide loads are quicker so.
    gap = 0

    def __init__(self, graph: Graph, schedule: StreamedSchedule) -> None:
        self.feeds: list[Feed] = []
        self._counters = schedule.counters
        super().__init__(graph, schedule, 1)

    def find_homes(self, usage: Usage) -> tuple[dict[Value, Any], list[tuple[Any, Value]]]:
        return find_homes(usage, chains=True)

    def place_inputs(self) -> None:
        blocks = self.plan.blocks
        for node, value in self._counters.items():
            end = self._usage.position[node]
            blocks[value] = Block(value.device, value.lane, value.nbytes, -1, end)
        groups: dict[tuple[Device, int], list[Value]] = {}
        for value in (*self._graph.inputs, *self._counters.values()):
            groups.setdefault((value.device, value.lane), []).append(value)
        for (device, lane), values in groups.items():
            # Kept: a call that is given what the one before was need not copy it again.
            root = Block(device, lane, 0, -1, FOREVER)
            places: dict[Value, int] = {}
            for value in values:
                places[value] = root.nbytes
                blocks[value].become_part(root, root.nbytes)
                root.nbytes = aligned(root.nbytes + value.nbytes, self.alignment)
            self.feeds.append(Feed(device, lane, root, places))

    def make_registers(self, region: Region) -> None:
        pass  # They are those of the card.

    def all_blocks(self) -> Iterator[Block]:
        yield from super().all_blocks()
        for feed in self.feeds:
            yield feed.block
