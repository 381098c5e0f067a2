"""Which kind of program runs a graph: that of the host's memory, or that of devices with streams.

Both are used in the same way.
"""

from mirrored.backends.stream_backend import is_streamed
from mirrored.program.arrays import Arenas
from mirrored.program.executors import choose_executor
from mirrored.program.graph import Graph
from mirrored.program.overlap import Threads
from mirrored.program.program import Program
from mirrored.program.schedule import make_schedule
from mirrored.program.streamed import Planned, StreamedProgram

Runnable = Program | StreamedProgram


def make_program(
    graph: Graph,
    replicas: int,
    executor: str = "auto",
    memory: Arenas | None = None,
    planned: Planned | None = None,
) -> Runnable:
    """Return a graph bound to memory.

    Args:
        graph: The graph.
        replicas: How many replicas run in it.
        executor: Who runs them where the host does: "auto", "threads" or "serial".
        memory: The arenas to use; None: its own.
        planned: What a program on devices with streams was made of, whose memory is gone.

    Raises:
        ResourceExhaustedError: A device has no room for the program.
    """
    values = [*graph.inputs, *graph.outputs, *(node.output for node in graph.nodes)]
    values += [value for _, value in graph.writes]
    if any(is_streamed(value.device.backend) for value in values):
        return StreamedProgram(graph, memory, planned)
    schedule = make_schedule(graph, Threads())
    threads, blas = choose_executor(graph, schedule, replicas, executor)
    return Program(graph, threads, blas, memory, schedule)
