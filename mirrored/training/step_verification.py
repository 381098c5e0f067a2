"""Repeats steps of training, and compares the bits of all that they write.

A recorded step computes the same bits on all devices of a kind. Where it does not, a device
computes wrong, once or always.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from mirrored.backends.host import values_on_host
from mirrored.errors import StepDiffersError
from mirrored.program import Arenas, Feeder, Graph, GuardFailed, Program, Report, Trace
from mirrored.program.lanes import by_lane
from mirrored.program.repetition import digest, digests_of_nodes, ring_of, rotated
from mirrored.program.variable_access import Writes

Feed = Callable[[Sequence[Any]], dict[int, Feeder]]

# What calls functions of users, which may do another thing when they are called again.
_CALLS = ("PyFunc", "EagerPyFunc")


class StepVerifier:
    """Takes the steps of a run, and repeats every N-th of them before it is taken.

    Args:
        every: Which steps are repeated: those whose numbers it divides.

    Attributes:
        taken: How many steps were taken.
    """

    def __init__(self, every: int) -> None:
        self.every, self.taken = every, 0
        self._repeated: WeakKeyDictionary[Trace, _Step] = WeakKeyDictionary()

    def run(self, trace: Trace, steps: int, feed: Feed, report: Report, arenas: Arenas) -> bool:
        """Run a number of steps; see `Trace.run`.

        Raises:
            StepDiffersError: A step differs from its repetition, and wrote nothing.
            ValueError: A step calls functions of users.
        """
        step = self._repeated.get(trace)
        if step is None:
            step = self._repeated[trace] = _Step(trace, arenas)
        done, goes_on = 0, True
        while done < steps and goes_on:

            def counted(outputs: Sequence[Any], i: int, first: int = done) -> bool:
                self.taken += 1
                return report(outputs, first + i)

            fed = _later(feed, done)
            plain = self.every - 1 - self.taken % self.every
            try:
                if plain:
                    count = min(plain, steps - done)
                    goes_on = trace.run(count, fed, counted, arenas)
                else:
                    count, goes_on = 1, step.verified(fed, counted, self.taken + 1)
            except GuardFailed as failed:
                failed.step += done
                raise
            done += count
        return goes_on


class _Result(NamedTuple):
    """A digest of something that a step leaves, and the device that computed it."""

    name: str
    device: str
    digest: bytes


class _Step:
    """A recorded step that is repeated.

    Args:
        trace: The step.
        arenas: The memory of programs of which one runs at a time.

    Raises:
        ValueError: It calls functions of users.
    """

    def __init__(self, trace: Trace, arenas: Arenas) -> None:
        for node in trace.graph.nodes:
            if node.op.stateful or node.op.name in _CALLS:
                raise ValueError(
                    "`VerifySteps` repeats steps, and what a step does in Python cannot be taken "
                    f"back. Received: a step of training that calls {node.op.name}. Leave it out, "
                    "or train without the callback."
                )
        trace.program(arenas)  # Which puts the replicas in lanes, where there are some.
        self._graph, self._arenas = trace.graph, arenas
        self._devices = len(ring_of(trace.graph))
        # By how many devices further the work is.
        self._traces = {0: trace}
        self._numbers: dict[int, dict[int, int]] = {0: {}}

    def verified(self, feed: Feed, report: Report, number: int) -> bool:
        """Repeat the step, and take it; return whether to go on.

        Args:
            feed: What it is fed.
            report: Called with what it returns.
            number: Its number in this run, from 1.
        """
        state = _State(self._graph)
        with state.restored():
            repeated, _ = self._run(1, feed)
        with state.restored(StepDiffersError):
            written, outcome = self._run(0, feed)
            if _bits(written) != _bits(repeated):
                raise self._error(written, repeated, feed, state, number)
        if isinstance(outcome, GuardFailed):
            raise outcome
        return report(outcome, 0)

    def _trace(self, by: int) -> tuple[Trace, dict[int, int]]:
        """Return the step that devices `by` places further compute, and its replicas' numbers."""
        by %= self._devices
        if by not in self._traces:
            graph, self._numbers[by] = rotated(self._graph, by)
            self._traces[by] = Trace(graph, self._traces[0].replicas)
        return self._traces[by], self._numbers[by]

    def _run(self, by: int, feed: Feed) -> tuple[list[_Result], Any]:
        """Run the step on other devices; return digests, and what it returns or how it failed."""
        trace, numbers = self._trace(by)
        graph, outcome = trace.graph, None

        def note(outputs: Sequence[Any], _: int) -> bool:
            nonlocal outcome
            outcome = [np.array(output) for output in outputs]
            return True

        try:
            trace.run(1, _renumbered(feed, numbers, graph), note, self._arenas)
        except GuardFailed as failed:
            return [_Result("the loss, which is not finite,", graph.device.short_name, b"")], failed
        results = []
        for variable, value in graph.writes:
            (storage, start), device = variable.pinned(), value.device.short_name
            array = storage.array[start : start + value.size]
            bits = digest(values_on_host(storage.device.backend, array))
            results.append(_Result(variable.name, device, bits))
        for value, output in zip(graph.outputs, outcome or (), strict=True):
            results.append(_Result("the loss or a metric", value.device.short_name, digest(output)))
        return results, outcome

    # ------------------------------------------------------------------ errors

    def _error(
        self,
        written: list[_Result],
        repeated: list[_Result],
        feed: Feed,
        state: "_State",
        number: int,
    ) -> StepDiffersError:
        """Return the error of a step that differs, after runs that show where it does."""
        name, devices = _first(written, repeated)
        verdict = ""
        state.restore()
        with state.restored():
            third, _ = self._run(2, feed)
        if _bits(third) == _bits(written):
            verdict = " A third run agrees with the step."
        elif _bits(third) == _bits(repeated):
            verdict = " A third run agrees with the repetition."
        where, wrong = "which {} computed in the step and {} in its repetition", None
        place = self._place(feed, state)
        if place is not None:
            operation, devices, wrong = place
            where = f"first in the result of {operation}, {where}"
            verdict = "" if wrong is None else f" The others agree: {wrong} computes wrong."
        return StepDiffersError(
            "A step that is repeated must write the same bits. Received: other bits of "
            f"{name} in step {number}, {where.format(*devices)}.{verdict} Nothing was written: all "
            "has the values of the step before. Run `mirrored selftest`, and train on without the "
            "device that computes wrong.",
            variable=name,
            step=number,
            devices=devices,
            wrong_device=wrong,
        )

    def _place(self, feed: Feed, state: "_State") -> tuple[str, tuple[str, str], str | None] | None:
        """Return the first operation that differs between devices, and which one is wrong.

        None: it does not differ any more, or the devices have streams.
        """
        runs = []
        for by in range(min(3, max(2, self._devices))):
            trace, numbers = self._trace(by)
            program = trace.program(self._arenas)
            if not isinstance(program, Program):
                return None
            fed = _renumbered(feed, numbers, trace.graph)
            if trace.graph.lanes:
                fed = by_lane(trace.graph, fed)
            with state.restored():
                runs.append((program.graph.nodes, digests_of_nodes(program, fed(program.inputs))))
        for place in sorted(runs[0][1]):
            bits = [digests.get(place) for _, digests in runs]
            if len(set(bits)) > 1:
                nodes = [nodes[place] for nodes, _ in runs]
                names = [node.device.short_name for node in nodes]
                (usual, count), *_ = Counter(bits).most_common()
                odd = next(i for i, own in enumerate(bits) if own != usual)
                wrong = names[odd] if count > 1 else None
                other = next(i for i, own in enumerate(bits) if own != bits[odd])
                return nodes[0].op.name, (names[min(odd, other)], names[max(odd, other)]), wrong
        return None


class _State:
    """What a step writes, and the random streams that it draws from, as they are before it.

    Args:
        graph: The step.
    """

    def __init__(self, graph: Graph) -> None:
        storages = {id(place): place for place in (v.pinned()[0] for v, _ in graph.writes)}
        self._values = [
            (place, place.device.backend.to_host(place.array)) for place in storages.values()
        ]
        draws = [node.attrs["draw"] for node in graph.nodes if node.op.random]
        self._marks = [draw.mark() for draw in draws]

    def restore(self) -> None:
        """Have everything as it was."""
        for place, values in self._values:
            place.device.backend.copy_from_host(place.storage, values)
        Writes.count += 1
        for back in self._marks:
            back()

    @contextmanager
    def restored(self, after: type[BaseException] | None = None) -> Iterator[None]:
        """Within this context a step may run; then, or after an error of a kind, restore all."""
        try:
            yield
        except BaseException as error:
            if after is None or isinstance(error, after):
                self.restore()
            raise
        if after is None:
            self.restore()


def _first(results: list[_Result], others: list[_Result]) -> tuple[str, tuple[str, str]]:
    """Return the name of the first result that differs, and the devices that computed it."""
    for result, other in zip(results, others, strict=False):
        if result.digest != other.digest:
            return result.name, (result.device, other.device)
    return results[0].name, (results[0].device, others[0].device)


def _bits(results: list[_Result]) -> list[bytes]:
    return [result.digest for result in results]


def _later(feed: Feed, first: int) -> Feed:
    """Return what feeds the steps from a number on."""
    if not first:
        return feed

    def later(feeder: Feeder, step: int) -> None:
        feeder(first + step)

    return lambda arrays: {i: partial(later, feeder) for i, feeder in feed(arrays).items()}


def _renumbered(feed: Feed, numbers: dict[int, int], graph: Graph) -> Feed:
    """Return what feeds replicas whose numbers are others; lanes keep those of replicas."""
    if not numbers or graph.lanes:
        return feed
    return lambda arrays: {numbers[i]: feeder for i, feeder in feed(arrays).items()}
