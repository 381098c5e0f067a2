"""Runs lowered stages step after step, on one thread or on a thread per replica.

Both make the same calls on the same arrays; which thread makes them changes no bits.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mirrored.program.kernel_calls import Call, make_function, make_loop
from mirrored.program.lowering import Draws, LoweredStage
from mirrored.program.thread_pool import Barrier, ThreadPool

# Writes what one replica, or the caller's thread, is fed of the step of that number.
Feeder = Callable[[int], None]
# What a run is fed: from arrays like the inputs to what writes them in each step, by replica; None:
# the inputs are as they were.
Feed = Callable[[Sequence[Any]], Mapping[int, Feeder]] | None
# Takes the outputs and the number of a step that is done, and returns whether to go on.
Report = Callable[[Sequence[Any], int], bool]
# The same for the caller that runs the steps; None: nobody is notified, and steps go on.
After = Callable[[int], bool] | None
Task = Callable[[], bool]


class GuardFailed(Exception):
    """A value that must be finite is not; the step wrote nothing.

    Attributes:
        step: The number of the step, from 0.
        outputs: What it computed, on the host.
    """

    def __init__(self, step: int, outputs: Sequence[Any] = ()) -> None:
        super().__init__(step)
        self.step = step
        self.outputs = outputs


class SerialReplay:
    """Runs everything on the caller's thread, as one function.

    Args:
        stages: What a step does.
        draws: Its random draws.
    """

    def __init__(self, stages: Sequence[LoweredStage], draws: Draws) -> None:
        """Make the function."""
        self._draws = draws if draws else None
        self.going_on = True
        calls: list[Call] = []
        checks = []
        for stage in stages:
            if stage.check is not None:
                checks.append((len(calls), stage.check))
            for replica in sorted(stage.replicas or ()):
                calls += (stage.replicas or {})[replica]
            calls += _shared_calls(stage)
        self.step: Task = make_function(calls, checks)

    def call(self) -> None:
        """Run one step."""
        if self._draws is not None:
            self._draws.take()
        if not self.step():
            raise GuardFailed(0)

    def run(self, steps: int, feeds: Mapping[int, Feeder], after: After) -> None:
        """Run steps; the arguments are those of `Program.run`."""
        step, draws, sources = self.step, self._draws, feeds.values()
        for i in range(steps):
            if draws is not None:
                draws.take()
            for feed in sources:
                feed(i)
            if not step():
                raise GuardFailed(i)
            if after is not None and not after(i):
                self.going_on = False
                return
        self.going_on = True


class ThreadedReplay:
    """Runs replicas side by side, a thread each, and groups in a shard a thread.

    Args:
        stages: What a step does.
        draws: Its random draws.
        threads: How many threads there are.
        barrier: Makes the place where the threads of one run meet.
    """

    def __init__(
        self,
        stages: Sequence[LoweredStage],
        draws: Draws,
        threads: int,
        barrier: Callable[[int], Barrier] = Barrier,
    ) -> None:
        """Make a function for each thread between two meetings, and for each barrier."""
        self._draws = draws
        self._new_barrier = barrier
        self._threads = threads
        self.going_on = True
        # One entry for each barrier: what each thread does before it, and what is done there.
        self._work: list[list[Task]] = []
        self._shared: list[Task] = []
        calls: list[Call] = []
        checks: list[Any] = []
        work: list[Task] = [_nothing] * threads
        for stage in stages:
            if stage.replicas is None and not any((stage.shards or [])[1:]):
                if stage.check is not None:
                    checks.append((len(calls), stage.check))
                calls += _shared_calls(stage)
                continue
            if any(task is not _nothing for task in work) or calls or checks:
                self._meet(work, calls, checks)
                calls, checks = [], []
            work = [_work_of(stage, thread) for thread in range(threads)]
        self._meet(work, calls, checks)

    def _meet(self, work: list[Task], calls: list[Call], checks: list[Any]) -> None:
        self._work.append(work)
        self._shared.append(make_function(calls, checks) if calls or checks else _nothing)

    def run(
        self,
        steps: int,
        feeds: Mapping[int, Feeder],
        after: After,
        pool: ThreadPool,
        enter: Callable[..., None],
    ) -> None:
        """Run steps; the arguments are those of `Program.run`.

        Args:
            steps: How many.
            feeds: What writes the inputs, by replica, which is the thread's number.
            after: Called after each step.
            pool: The threads.
            enter: Calls a function in the state that kernels run in.
        """
        run = _Run(self, steps, feeds, after)
        pool.start()  # Where a thread is refused no random number is lost.
        if self._draws:
            self._draws.take()
        follow = [partial(enter, run.follow, thread) for thread in range(1, self._threads)]
        pool.run([partial(enter, run.lead), *follow])
        self.going_on = run.going_on


def _shared_calls(stage: LoweredStage) -> list[Call]:
    """Return the calls of a stage that one thread makes, for all shards of a group."""
    calls = list(stage.calls or ())
    for pieces in filter(None, stage.shards or ()):
        calls += pieces[0] if len(pieces) == 1 else [Call(make_loop(pieces))]
    return calls


def _nothing() -> bool:
    return True


def _work_of(stage: LoweredStage, thread: int) -> Task:
    if stage.replicas is not None:
        return make_function(stage.replicas[thread]) if thread in stage.replicas else _nothing
    pieces = (stage.shards or [])[thread]
    return make_loop(pieces) if pieces else _nothing


class _Run:
    """One run of a threaded program, with what its threads share."""

    def __init__(
        self,
        replay: ThreadedReplay,
        steps: int,
        feeds: Mapping[int, Feeder],
        after: After,
    ) -> None:
        self._draws = replay._draws
        self._work = [[tasks[i] for tasks in replay._work] for i in range(replay._threads)]
        self._shared = replay._shared
        self._steps = steps
        self._feeds = feeds
        # Where parts of a batch share inputs, the first thread fills them for all.
        self._shares_inputs = bool(feeds) and max(feeds) < replay._threads - 1
        self._after = after
        self._barrier = replay._new_barrier(replay._threads)
        self.going_on = True

    def lead(self) -> None:
        """Do the first thread's part and what is shared."""
        barrier, last = self._barrier, len(self._shared) - 1
        try:
            for i in range(self._steps):
                self._feed(0, i)
                if self._shares_inputs:
                    barrier.lead()
                for number, work in enumerate(self._work[0]):
                    work()
                    barrier.lead(partial(self._meet, number, i, number == last))
                if not self.going_on:
                    return
        except BaseException:
            barrier.dismiss()
            raise

    def follow(self, thread: int) -> None:
        """Do another thread's part."""
        barrier = self._barrier
        try:
            for i in range(self._steps):
                self._feed(thread, i)
                if self._shares_inputs:
                    barrier.follow(thread)
                for work in self._work[thread]:
                    work()
                    barrier.follow(thread)
                if not self.going_on:
                    return
        finally:
            barrier.leave(thread)

    def _feed(self, thread: int, step: int) -> None:
        feed = self._feeds.get(thread)
        if feed is not None:
            feed(step)

    def _meet(self, number: int, step: int, is_last: bool) -> None:
        if not self._shared[number]():
            raise GuardFailed(step)
        if is_last:
            self.going_on = self._after is None or self._after(step)
            if self._draws and self.going_on and step + 1 < self._steps:
                self._draws.take()
