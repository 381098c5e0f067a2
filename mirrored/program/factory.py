"""Which kind of program runs a graph: that of the host's memory, or that of devices with streams.

Both are used in the same way.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mirrored.backends.streams import is_streamed
from mirrored.program.arrays import Memory
from mirrored.program.executors import Team, choose_executor
from mirrored.program.graph import Graph
from mirrored.program.program import Program
from mirrored.program.replay import Feed
from mirrored.program.streamed import StreamedProgram


class Runnable(Protocol):
    """A graph with memory for all its values.

    Attributes:
        inputs: The arrays that a call writes before it runs one step.
        outputs: The arrays of what the function returns, as the last step left them.
        threads: How many threads run it.
    """

    inputs: list[Any]
    outputs: list[Any]
    threads: int

    def take(self, arrays: Sequence[Any]) -> None:
        """Copy what a call is given into the inputs; see `Program.take`."""

    def run(
        self,
        steps: int,
        feeds: Mapping[int, Feed],
        after: Callable[[int], bool],
        team: Team | None = None,
    ) -> bool:
        """Run steps with the inputs as they are; see `Program.run`."""

    def replay(
        self,
        steps: int,
        feeds: Callable[[Sequence[Any]], Mapping[int, Feed]],
        after: Callable[[Sequence[Any], int], bool],
        team: Team | None = None,
    ) -> bool:
        """Run steps, each fed and told of; see `Program.replay`."""


def make_program(
    graph: Graph, replicas: int, executor: str = "auto", memory: Memory | None = None
) -> Runnable:
    """Return a graph bound to memory.

    Args:
        graph: The graph.
        replicas: How many replicas run in it.
        executor: Who runs them where the host does: "auto", "threads" or "serial".
        memory: The arenas to use; None: its own.

    Raises:
        ResourceExhaustedError: A device has no room for the program.
    """
    values = [*graph.inputs, *graph.outputs, *(node.output for node in graph.nodes)]
    values += [value for _, value in graph.writes]
    if any(is_streamed(value.device.backend) for value in values):
        return StreamedProgram(graph, memory)
    threads, blas = choose_executor(graph, replicas, executor)
    return Program(graph, threads, blas, memory)
