"""What has to be the same on all workers, looked at before they go on with it.

Programs that differ would wait for each other's sums, or add up what does not belong together.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any

import numpy as np

from mirrored.errors import WorkerError
from mirrored.program import Graph
from mirrored.program.graph import ALL_REDUCE, Node
from mirrored.version import VERSION
from mirrored.workers import Workers

PLAIN = (bool, int, float, str, type(None))

# By what errors call it: lines that say what a worker has.
Facts = Mapping[str, Sequence[str]]


def check_alike(workers: Workers, facts: Facts, what: str) -> None:
    """Raise where workers differ; all of them call it.

    Args:
        workers: The workers.
        facts: What this one has. Workers are compared in what several of them tell of.
        what: What they are about to do with it.

    Raises:
        WorkerError: Two of them differ, on all of them; the text has the first line that does.
    """
    own = {name: _hashed(lines) for name, lines in facts.items()}
    found = workers.gather(own, what)
    differing = _differing(found)
    if differing is None:
        return
    name, first, other = differing
    texts = workers.gather(list(facts.get(name, ())), f"what differs in {what}")
    mine, theirs = next(
        pair for pair in zip_longest(texts[first], texts[other]) if pair[0] != pair[1]
    )
    raise WorkerError(
        f"All workers run the same program on the same data. Received: for {what}, {name} differ: "
        f"{_shown(mine)} on worker {first} ({workers.hosts[first]}), and {_shown(theirs)} on "
        f"worker {other} ({workers.hosts[other]}). Start them with the same files, options, seeds "
        "and versions.",
        worker=other,
        host=workers.hosts[other],
        what=what,
        reason=f"{name} differ from those of worker {first}",
    )


def _hashed(lines: Sequence[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()


def _differing(found: Sequence[Mapping[str, str]]) -> tuple[str, int, int] | None:
    """Return what differs first, and on which two workers; None: nothing does."""
    known: dict[str, tuple[str, int]] = {}
    for rank, facts in enumerate(found):
        for name, text in facts.items():
            first = known.setdefault(name, (text, rank))
            if first[0] != text:
                return name, first[1], rank
    return None


def _shown(line: str | None) -> str:
    return "nothing more" if line is None else f"{line:.300}"


def check_function(workers: Workers, graph: Graph, name: str) -> None:
    """Raise where workers have recorded other functions, of those that sum over workers.

    Where a function asked for a replica's number, its operations may be others.

    Args:
        workers: The workers.
        graph: What this one has recorded.
        name: The function's name.

    Raises:
        WorkerError: As `check_alike` raises it.
    """
    if any(map(_is_over_workers, graph.nodes)):
        shapes = [tuple(each.spec.shape) for each in graph.inputs if each.replica <= 0]
        inputs = None if graph.asks_number else f"inputs of shapes {shapes}"
        check_alike(workers, facts_of_graph(graph, inputs), f"the function {name!r}")


def facts_of_graph(graph: Graph, inputs: str | None) -> dict[str, list[str]]:
    """Return what a recorded function is made of, as far as workers of one program have the same.

    Args:
        graph: The function.
        inputs: What its first replica is given, in words. Workers are compared in their operations
            where they say the same; None: in no operations.
    """
    facts = {
        "versions": [f"mirrored {VERSION}, NumPy {np.__version__}, {platform.python_version()}"],
        "sums": [str(node.output.spec) for node in graph.nodes if _is_over_workers(node)],
    }
    if inputs is not None:
        facts[f"operations on {inputs}"] = list(_first_operations(graph))
    return facts


def _is_over_workers(node: Node) -> bool:
    """Return whether a node is a sum that all workers take part in; of NCCL's ranks the first."""
    return node.op.ordered or (node.op is ALL_REDUCE and node.attrs["rank"] == 0)


def _first_operations(graph: Graph) -> Iterator[str]:
    """Yield what the first replica computes, that is summed, before values are joined.

    What they are joined with, and what is done then, hangs on which replicas are beside it; and one
    worker alone may print or keep something.
    """
    needed = _summed(graph)
    for node in graph.nodes:
        if _is_over_workers(node) or node.op.name == "ConcatV2":
            return
        if node.replica == 0 and not node.op.random and (not needed or id(node) in needed):
            attrs = {name: value for name, value in node.attrs.items() if _is_plain(value)}
            yield f"{node.op.name} {node.output.spec} {sorted(attrs.items())}"


def _summed(graph: Graph) -> set[int]:
    """Return the ids of the nodes that sums over workers are made of, and of the sums."""
    found: set[int] = set()
    for node in reversed(graph.nodes):
        if _is_over_workers(node) or id(node) in found:
            makers = [value.node for value in node.inputs]
            found.update(id(each) for each in (node, *makers) if each is not None)
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))
