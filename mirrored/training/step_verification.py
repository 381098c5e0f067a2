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
from mirrored.errors import StepDiffersError, WorkerError
from mirrored.ops.op import Op
from mirrored.program import Arenas, Feeder, Graph, GuardFailed, Report, Trace
from mirrored.program.lanes import by_lane
from mirrored.program.repetition import Rotated, digest, digests_of_nodes, rings_of, rotated
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
            ValueError: A step cannot be repeated.
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


_Results = list[_Result]


class _Step:
    """A recorded step that is repeated.

    Args:
        trace: The step.
        arenas: The memory of programs of which one runs at a time.

    Raises:
        ValueError: It calls functions of users, or NCCL may add in another order each time.
        ResourceExhaustedError: A device has no room for its repetition.
    """

    def __init__(self, trace: Trace, arenas: Arenas) -> None:
        for node in trace.graph.nodes:
            if (node.op.stateful and not node.op.ordered) or node.op.name in _CALLS:
                raise ValueError(
                    "`VerifySteps` repeats steps, and what a step does in Python cannot be taken "
                    f"back. Received: a step of training that calls {node.op.name}. Leave it out, "
                    "or train without the callback."
                )
        if trace.graph.collectives and not trace.graph.strategy._deterministic:
            raise ValueError(
                "`VerifySteps` needs sums in one order. Received: a strategy for which NCCL may "
                "change it. Use MirroredStrategy(deterministic=True), or leave the callback out."
            )
        trace.program(arenas)  # Which puts the replicas in lanes, where there are some.
        self._graph, self._arenas = trace.graph, arenas
        self._devices = max(map(len, rings_of(trace.graph)), default=1)
        # By how many devices further the work is.
        self._steps = {0: (trace, Rotated(trace.graph, {}, {}))}
        self._step(1)[0].program(arenas)  # Where there is no room no step has been taken.

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
        with state.restored((StepDiffersError, WorkerError)):
            written, outcome = self._run(0, feed)
            differs = _bits(written) != _bits(repeated)
            verdicts = self._of_each_worker((differs, self._devices))
            if any(differs for differs, _ in verdicts):
                runs = min(3, max(2, *(devices for _, devices in verdicts)))
                own = self._difference(written, repeated, feed, state, runs)
                reports = self._of_each_worker(own if differs else None)
                # What differs in a sum over workers comes from one of them, if any is its own.
                summed, where, error = min(filter(None, reports), key=lambda own: own[0])
                ranks = [str(i) for i, own in enumerate(reports) if own and own[0] == summed]
                worker = f" on worker {', '.join(ranks)}" if len(reports) > 1 else ""
                raise StepDiffersError(
                    f"A step that is repeated must write the same bits. Received{worker}: other "
                    f"bits of {error['variable']} in step {number}, {where} Nothing was written: "
                    "all has the values of the step before. Run `mirrored selftest`, and train on "
                    "without the device that computes wrong.",
                    step=number,
                    **error,
                )
        if isinstance(outcome, GuardFailed):
            raise outcome
        return report(outcome, 0)

    def _step(self, by: int) -> tuple[Trace, Rotated]:
        """Return the step that devices `by` places further compute."""
        by %= self._devices
        if by not in self._steps:
            step = rotated(self._graph, by)
            self._steps[by] = Trace(step.graph, self._steps[0][0].replicas), step
        return self._steps[by]

    def _run(self, by: int, feed: Feed) -> tuple[_Results, Any]:
        """Run the step on other devices; return digests, and what it returns or how it failed."""
        trace, step = self._step(by)
        graph, outcome = trace.graph, None

        def note(outputs: Sequence[Any], _: int) -> bool:
            nonlocal outcome
            outcome = [np.array(output) for output in outputs]
            return True

        try:
            trace.run(1, _renumbered(feed, step), note, self._arenas)
        except GuardFailed as failed:
            return [_Result("the loss, which is not finite,", graph.device.short_name, b"")], failed
        results: _Results = []
        digests: dict[Any, bytes] = {}
        # The devices of the old graph's values: here they may be copied to their variables.
        computed = [value.device for _, value in self._graph.writes]
        for (variable, value), device in zip(graph.writes, computed, strict=True):
            (storage, start), key = variable.pinned(), (value.base, value.offset, value.size)
            if key not in digests:  # Copies in one memory are written from one value.
                array = storage.array[start : start + value.size]
                digests[key] = digest(values_on_host(storage.device.backend, array))
            name = step.devices.get(device, device).short_name
            results.append(_Result(variable.name, name, digests[key]))
        for value, output in zip(graph.outputs, outcome or (), strict=True):
            results.append(_Result("the loss or a metric", value.device.short_name, digest(output)))
        return results, outcome

    # ------------------------------------------------------------------ errors

    def _of_each_worker(self, value: Any) -> list[Any]:
        strategy = self._graph.strategy
        return [value] if strategy is None else strategy.of_each_worker(value, "a verified step")

    def _difference(
        self, written: _Results, repeated: _Results, feed: Feed, state: "_State", runs: int
    ) -> tuple[bool, str, dict[str, Any]]:
        """Return where a step differs; all workers call it.

        First comes whether what differs may be another worker's, then words, then attributes.
        """
        pairs = zip(written, repeated, strict=False)
        differing = (pair for pair in pairs if pair[0].digest != pair[1].digest)
        first, other = next(differing, (written[0], repeated[0]))
        devices, where, verdict, wrong = (first.device, other.device), "", "", None
        state.restore()
        with state.restored():
            third, _ = self._run(2, feed)
        if _bits(third) == _bits(written):
            verdict = " A third run agrees with the step."
        elif _bits(third) == _bits(repeated):
            verdict = " A third run agrees with the repetition."
        place = self._place(feed, state, runs)
        if place is not None:
            operation, devices, wrong = place
            where = f"first in the result of {operation.name}, "
            verdict = "" if wrong is None else f" The others agree: {wrong} computes wrong."
        where += "which {} computed in the step and {} in its repetition.".format(*devices)
        error = {"variable": first.name, "devices": devices, "wrong_device": wrong}
        return place is None or operation.ordered, where + verdict, error

    def _place(
        self, feed: Feed, state: "_State", count: int
    ) -> tuple[Op, tuple[str, str], str | None] | None:
        """Return the first operation that differs between devices, and which one is wrong.

        None: it does not differ any more.
        """
        runs = []
        for by in range(count):
            trace, step = self._step(by)
            graph, program = trace.graph, trace.program(self._arenas)
            fed = by_lane(graph, feed) if graph.lanes else _renumbered(feed, step)
            with state.restored():
                runs.append(digests_of_nodes(program, fed))
        for place in sorted(set.intersection(*map(set, runs))):
            nodes, bits = zip(*(run[place] for run in runs), strict=True)
            if len(set(bits)) > 1:
                names = [node.device.short_name for node in nodes]
                (usual, count), *_ = Counter(bits).most_common()
                odd = next(i for i, own in enumerate(bits) if own != usual)
                # Sums over cards do not move: where one differs, a copy to it does.
                wrong = names[odd] if count > 1 and len({*names}) == len(names) else None
                other = next(i for i, own in enumerate(bits) if own != bits[odd])
                return nodes[0].op, (names[min(odd, other)], names[max(odd, other)]), wrong
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
    def restored(self, after: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
        """Within this context a step may run; then, or after such errors alone, restore all."""
        try:
            yield
        except BaseException as error:
            if not after or isinstance(error, after):
                self.restore()
            raise
        if not after:
            self.restore()


def _bits(results: _Results) -> list[bytes]:
    return [result.digest for result in results]


def _later(feed: Feed, first: int) -> Feed:
    """Return what feeds the steps from a number on."""
    if not first:
        return feed

    def later(feeder: Feeder, step: int) -> None:
        feeder(first + step)

    return lambda arrays: {i: partial(later, feeder) for i, feeder in feed(arrays).items()}


def _renumbered(feed: Feed, step: Rotated) -> Feed:
    """Return what feeds replicas whose numbers are others; lanes keep those of replicas."""
    if step.graph.lanes:
        return feed
    return lambda arrays: {step.numbers.get(i, i): feeder for i, feeder in feed(arrays).items()}
