"""What workers do alike: before they train, with files, and what is the same on all of them."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any

import numpy as np

from mirrored import devices
from mirrored.distribute.finished_runs import finished_runs
from mirrored.distribute.graph_lines import GraphLines, is_over_workers
from mirrored.errors import WorkerError
from mirrored.ops.rng_state import RngState, global_rng_state, set_global_rng_state
from mirrored.program import Graph
from mirrored.version import VERSION
from mirrored.workers import Workers

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
    own = {name: sha256("\n".join(lines).encode()).hexdigest() for name, lines in facts.items()}
    by_worker = workers.gather(own, what)
    differing = _differing(by_worker)
    if differing is None:
        return
    name, first, other = differing
    texts = workers.gather(list(facts.get(name, ())), f"what differs in {what}")
    mine, theirs = next(
        pair for pair in zip_longest(texts[first], texts[other]) if pair[0] != pair[1]
    )
    raise WorkerError(
        f"All workers must run the same program on the same data. Received: for {what}, different "
        f"{name}: {_shown(mine)} on worker {first} ({workers.hosts[first]}), and {_shown(theirs)} "
        f"on worker {other} ({workers.hosts[other]}). Start them with the same files, options, "
        "seeds and versions.",
        worker=other,
        host=workers.hosts[other],
        what=what,
        reason=f"{name} differ from those of worker {first}",
    )


def _differing(by_worker: Sequence[Mapping[str, str]]) -> tuple[str, int, int] | None:
    """Return what differs first, and on which two workers; None: nothing does."""
    known: dict[str, tuple[str, int]] = {}
    for rank, facts in enumerate(by_worker):
        for name, text in facts.items():
            first = known.setdefault(name, (text, rank))
            if first[0] != text:
                return name, first[1], rank
    return None


def _shown(line: str | None) -> str:
    return "nothing more" if line is None else f"{line:.300}"


def check_function(workers: Workers, graph: Graph, name: str) -> None:
    """Raise where workers have recorded other functions, of those that sum over workers.

    Where a function asked for a replica's number, its operations may be others. Arrays that it has
    as constants may be a worker's own data.

    Args:
        workers: The workers.
        graph: What this one has recorded.
        name: The function's name.

    Raises:
        WorkerError: As `check_alike` raises it.
    """
    if any(map(is_over_workers, graph.nodes)):
        shapes = [tuple(value.spec.shape) for value in graph.inputs if value.replica <= 0]
        inputs = None if graph.asks_number else f"inputs of shapes {shapes}"
        check_alike(workers, facts_of_graph(graph, inputs, arrays=False), f"the function {name!r}")


def facts_of_graph(graph: Graph, inputs: str | None, *, arrays: bool = True) -> Facts:
    """Return what a recorded function is made of, as far as workers of one program have the same.

    Args:
        graph: The function.
        inputs: What its first replica is given, in words. Workers are compared in the operations on
            it where they say the same; None: in no operations.
        arrays: Whether constants of several elements are compared by their values too.
    """
    lines = GraphLines(graph, arrays=arrays)
    versions = f"mirrored {VERSION}, NumPy {np.__version__}, {platform.python_version()}"
    facts = {"versions": [versions], "sums": lines.sums()}
    if inputs is None:
        return facts
    return {
        **facts,
        f"operations on {inputs}": lines.operations(),
        "updates of variables": lines.updates(),
    }


def own_devices(workers: Workers) -> Sequence[Any] | None:
    """Return this worker's devices; None: all that it sees."""
    alike = [rank for rank, host in enumerate(workers.hosts) if host == workers.hosts[workers.rank]]
    gpus = devices.logical_devices("GPU")
    if len(alike) == 1 or not gpus or any(gpu.simulated for gpu in gpus):
        return None
    if "CUDA_VISIBLE_DEVICES" in os.environ:  # Somebody has shared them out.
        return None
    own = gpus[workers.local_rank :: len(alike)]
    return own or [gpus[workers.local_rank % len(gpus)]]


def described(counts: Sequence[int], hosts: Sequence[str]) -> str:
    """Return which worker has which replicas.

    Args:
        counts: How many each has.
        hosts: The host of each.

    Example:
        >>> described([2, 1], ["a", "b"])
        '0 to 1 on worker 0 (a), 2 on worker 1 (b)'
    """
    first, parts = 0, []
    for rank, (count, host) in enumerate(zip(counts, hosts, strict=True)):
        numbers = f"{first}" if count == 1 else f"{first} to {first + count - 1}"
        parts.append(f"{numbers} on worker {rank} ({host})")
        first += count
    return ", ".join(parts)


def draw_alike(of_each_worker: Callable[[Any, str], list[Any]]) -> None:
    """Let all workers draw what the first one draws: shuffles, masks and weights are then alike.

    Args:
        of_each_worker: Gathers a small object of each, given what errors call it.
    """
    state = global_rng_state()
    own = state.seed, state.draws, dict(state.draws_by_seed)
    first = of_each_worker(own, "the state of random numbers")[0]
    if first != own:
        set_global_rng_state(RngState(*first))


class WorkerFiles:
    """What workers do about files that are written once; `_files.Company` says what is called.

    Args:
        workers: The workers.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    @property
    def changes(self) -> int:
        """How often workers have died or joined; negative: this one has not joined yet."""
        return self._workers.generation

    @property
    def goes_on(self) -> bool:
        """Whether the others go on where one dies."""
        return self._workers.on_failure != "raise"

    @property
    def writes(self) -> bool:
        """Whether this worker is the one that writes."""
        return self._workers.is_chief

    def agree(self, what: str, error: BaseException | None) -> None:
        """Return when all workers have come here.

        Args:
            what: What is done then, for errors.
            error: What went wrong on this worker.

        Raises:
            WorkerError: Something went wrong on another one, and nothing here.
        """
        reason = None if error is None else f"{type(error).__name__}: {error}"
        reasons = self._workers.gather(reason, what)
        failed = [rank for rank, failure in enumerate(reasons) if failure is not None]
        if error is not None or not failed:
            return
        rank, host = failed[0], self._workers.hosts[failed[0]]
        raise WorkerError(
            f"Worker {rank} on host {host} could not do this for all workers: {what}. Received: "
            f"{reasons[rank]}. Existing files are unchanged.",
            worker=rank,
            host=host,
            what=what,
            reason=str(reasons[rank]),
        )

    def of_all(self, value: Any, what: str) -> list[Any]:
        """Return the value of each worker, by rank.

        Args:
            value: This worker's, a small object.
            what: What errors call it.
        """
        return self._workers.gather(value, what)

    def as_before(self, find: Callable[[], Any]) -> Any:
        """Return a function's result; in a process that joins later, the others' at this place.

        Args:
            find: The function.
        """
        return finished_runs.run(self._workers, find)[1]
