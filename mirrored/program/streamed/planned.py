"""The plan of a streamed program, before it has memory.

It is kept where the memory is given back, so that the program is made again without it.
"""

from mirrored.program.graph import Graph
from mirrored.program.overlap import Streams
from mirrored.program.schedule import make_schedule
from mirrored.program.stream_memory_planner import plan_stream_memory
from mirrored.program.streamed.kept_casts import with_kept_casts


class Planned:
    """What is decided of a program before it has memory.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.kept_casts = with_kept_casts(graph)
        self.schedule = make_schedule(self.graph, Streams(self.graph))
        self.plan = plan_stream_memory(self.graph, self.schedule)
