"""Chooses the program for a graph, on the host or on devices with streams, and its threads.

The threads are a function of the program alone, never of timing, because they change bits.
"""

from typing import TYPE_CHECKING

from mirrored._contexts import without_collector
from mirrored.backends.product_settings import available_threads, threads_of_most_products
from mirrored.backends.stream_backend import is_offloaded
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.program.broadcasts import without_broadcasts
from mirrored.program.buffers import Arenas
from mirrored.program.concurrency import Threads
from mirrored.program.dataflow import SHARED, Graph, Node
from mirrored.program.program import Program
from mirrored.program.schedule import Schedule, make_schedule

if TYPE_CHECKING:  # Most machines never need the other kind.
    from mirrored.program.streamed import Planned, StreamedProgram

    Runnable = Program | StreamedProgram

# From this many operations per replica a thread of its own is worth its barriers.
THREADS_FROM = 2e7

EXECUTORS = ("auto", "threads", "serial")


def choose_executor(
    graph: Graph, schedule: Schedule, replicas: int, executor: str = "auto"
) -> tuple[int, int | None]:
    """Return how many threads run a program, and how many most matrix products use in it.

    It is a function of the program, the replicas and the cores, never of timing, because both
    numbers change bits: with "threads" each replica has a thread and its products use one; with
    "serial" one thread runs everything, and each product uses all cores if it takes at least 100
    million operations and is not made in blocks, as that of a convolution is. "auto" takes
    threads where there are several replicas and cores, and each replica's products take at least
    20 million operations between two meetings. Calls of users' functions are made by one thread.

    Args:
        graph: The program.
        schedule: Its schedule.
        replicas: How many replicas there are.
        executor: "auto", "threads" or "serial".

    Where the number of replicas is fixed, threads run `Graph.lanes`, and products always use one.
    """
    work = {node: node.flops for node in graph.nodes}
    if graph.lanes:
        replicas = 1 + max(graph.lanes)
    if any(node.op.name in ("PyFunc", "EagerPyFunc") for node in graph.nodes):
        # What it calls is the user's, who may wait there for the caller's thread to write.
        replicas = 1
    if replicas > 1 and executor == "auto" and available_threads() > 1:
        # A function may take several steps, and replicas meet in each.
        between = max(
            1, sum(any(work[node] for node in nodes) for nodes in _side_by_side(schedule))
        )
        if sum(work.values()) / between / replicas >= THREADS_FROM:
            return replicas, 1
    if replicas > 1 and executor == "threads":
        return replicas, 1
    if graph.one_thread:
        return 1, 1
    return 1, threads_of_most_products(max(work.values(), default=0))


def _side_by_side(schedule: Schedule) -> list[list[Node]]:
    """Return what replicas compute between two meetings.

    Where a sum only begins they go on: on how many threads does not hang on when it does.
    """
    phases: list[list[Node]] = []
    goes_on = False
    for stage in schedule.stages:
        nodes = [node for launch in stage for node in launch.nodes()]
        if stage[0].replica == SHARED:
            goes_on = bool(nodes) and nodes[-1].op.early
        elif goes_on and phases:
            phases[-1] += nodes
        else:
            phases.append(nodes)
    return phases


def parts_of(graph: Graph, executor: str = "auto") -> Graph | None:
    """Return a program of one replica as parts of its batch; None: one part.

    Their number is that of the cores, or lower: a part has at least a row of the batch, and 20
    million operations. "auto" takes parts where convolutions are at least half of the work, and
    "threads" for all products; "serial" takes one part. It depends on the program and the cores
    alone, because it changes bits.

    Args:
        graph: The program.
        executor: "auto", "threads" or "serial".
    """
    if graph.one_thread or executor == "serial" or available_threads() == 1:
        return None
    flops = {node: node.flops for node in graph.nodes}
    work = sum(flops.values())
    blocked = sum(count for node, count in flops.items() if node.op.blocked)
    rows = max((value.spec.shape[0] for value in graph.inputs if value.spec.shape), default=0)
    count = min(available_threads(), int(work / THREADS_FROM), rows)
    if count < 2 or (executor == "auto" and blocked < work / 2) or graph.collectives:
        return None
    if any(node.op.stateful or node.op.ordered or node.op.whole for node in graph.nodes):
        return None  # Such calls are made by one thread, in their order.
    from mirrored.program.batch_parts import in_parts  # Small programs need it not.

    return in_parts(graph, count)


@without_collector()
def make_program(
    graph: Graph,
    replicas: int,
    executor: str = "auto",
    memory: Arenas | None = None,
    planned: "Planned | None" = None,
) -> "Runnable":
    """Return a graph bound to memory.

    Args:
        graph: The graph.
        replicas: How many replicas run in it.
        executor: Who runs them where the host does: "auto", "threads" or "serial".
        memory: The arenas to use; None: its own.
        planned: What a program on devices with streams was made of, whose memory is gone.

    Raises:
        ResourceExhaustedError: A device has no room for the program.
        OperatorNotAllowedInGraphError: It prints or checks values, and has devices with streams.
    """
    if graph.strategy is not None and graph.strategy.lanes and not graph.lanes:
        from mirrored.program.lanes import put_in_lanes  # Few strategies have them.

        put_in_lanes(graph, graph.strategy.lanes)
    if any(is_offloaded(value.device.backend) for value in graph.values()):
        for node in graph.nodes:
            if node.op.ordered:
                raise OperatorNotAllowedInGraphError(
                    "Several workers sum on the host here, and a function recorded for a real "
                    f"GPU does not wait for the host. Received: {node.op.name} in such a "
                    "function. Let NCCL sum (the log says why it does not), or run without "
                    "recording: use compile(run_eagerly=True), or leave mr.function out."
                )
            if node.op.stateful:
                raise OperatorNotAllowedInGraphError(
                    f"{node.op.name} reads values on the host, and a function recorded for a real "
                    "GPU does not wait for the host. Call it outside, or run without recording: "
                    "use compile(run_eagerly=True), or leave mr.function out."
                )
        from mirrored.program.streamed import StreamedProgram

        return StreamedProgram(graph, memory, planned)
    graph = without_broadcasts(graph)
    parts = None if replicas > 1 else parts_of(graph, executor)
    if parts is not None:
        return Program(parts, parts.parts, 1, memory)
    schedule = make_schedule(graph, Threads())
    threads, blas = choose_executor(graph, schedule, replicas, executor)
    return Program(graph, threads, blas, memory, schedule)
