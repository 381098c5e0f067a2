"""Replaying steps: what runs where, what stops them, and that a failure anywhere ends all threads.

The program has a part for each replica, a part that joins them, a guard, long vectors that are
cut into pieces, and a variable that is written.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.ops.hooks import recorded_by
from mirrored.program import GraphRecorder, GuardFailed, Program, ThreadPool

LONG = 1000
SHAPE = (2, 3)
SLOW = pytest.mark.slow
THREADS = pytest.mark.parametrize("threads", [1, 3], ids=["in turn", "on threads"])


class Broken(Exception):
    """What a kernel raises here."""


class Replicas:
    """A program of three replicas that counts the steps it has taken in a variable."""

    def __init__(self, as_replica: Callable[[int], Any], threads: int) -> None:
        self.count = mr.Variable(0.0)
        self.long = mr.Variable(np.zeros(LONG, np.float32))
        recorder, device = GraphRecorder(), devices.get_device("CPU:0")
        spec = ops.TensorSpec(SHAPE, ops.float32)
        inputs = [recorder.input(spec, device, replica) for replica in range(3)]
        with recorded_by(recorder):
            parts = []
            for replica, x in enumerate(inputs):
                with as_replica(replica):
                    parts.append(ops.tanh(ops.tanh(x) * float(replica + 1)))
            total = ops.tanh(ops.add_n(parts))
            recorder.require_finite((total,))
            self.count.assign_add(1.0)
            self.long.assign(ops.tanh(self.long + total[0, 0]))
            again = []
            for replica, part in enumerate(parts):
                with as_replica(replica):
                    again.append(ops.tanh(part + total))
        self.program = Program(recorder.finish([total, *again]), threads)
        self.pool = ThreadPool(threads)
        # Two of each replica, one that joins, a piece of the vector for each thread, and a last one
        # of each replica.
        self.calls = 3 * 2 + 1 + threads + 3

    def run(self, steps: int = 1, **options: Any) -> bool:
        options = {"feeds": {replica: self.feed(replica) for replica in range(3)}, **options}
        after = options.get("after", lambda _: True)
        return self.program.run(
            steps, lambda _: options["feeds"], lambda _, step: after(step), self.pool
        )

    def feed(self, replica: int) -> Callable[[int], None]:
        def write(step: int) -> None:
            self.program.inputs[replica][...] = replica - 0.25 * step

        return write

    def outputs(self) -> list[bytes]:
        return [each.tobytes() for each in self.program.outputs]

    def state(self) -> tuple[float, bytes]:
        return float(self.count), self.long.numpy().tobytes()


Make = Callable[[int], Replicas]


@pytest.fixture
def make(as_replica: Callable[[int], Any]) -> Iterator[Make]:
    made: list[Replicas] = []

    def make(threads: int) -> Replicas:
        made.append(Replicas(as_replica, threads))
        return made[-1]

    yield make
    for each in made:
        each.pool.close()


@pytest.mark.behaviour("deterministic")
def test_threads_change_no_bits(make: Make) -> None:
    in_turn, on_threads = make(1), make(3)
    for each in (in_turn, on_threads):
        each.run(4)
    assert in_turn.outputs() == on_threads.outputs()
    assert in_turn.state() == on_threads.state()
    assert float(in_turn.count) == 4


def test_a_replica_runs_on_a_thread_of_its_own(make: Make, at_tanh: Callable[..., None]) -> None:
    names: list[str] = []
    for call in range(6):
        at_tanh(call, lambda: names.append(threading.current_thread().name))
    make(3).run()
    main = threading.current_thread().name
    assert sorted(names) == sorted([main, "mirrored-worker-1", "mirrored-worker-2"] * 2)


@pytest.mark.parametrize("step", [pytest.param(0, marks=pytest.mark.slow), 1])
@pytest.mark.parametrize(
    ("call", "threads"),
    [
        *((call, 3) for call in range(13)),
        *(pytest.param(call, 1, marks=[] if call in (0, 7) else [SLOW]) for call in range(11)),
    ],
)
def test_a_failure_of_any_call(
    call: int, step: int, threads: int, make: Make, ends: Callable[..., Any], at_tanh: Any
) -> None:
    """It is raised, all threads have ended their part, and the next run works."""

    def fail() -> None:
        raise Broken

    at_tanh(10**9, fail)  # From here on the function is one that counts.
    replicas, reference = make(threads), make(threads)
    reference.run()
    at_tanh(2 * replicas.calls - replicas.calls + call + step * replicas.calls, fail)
    with pytest.raises(Broken):
        ends(lambda: replicas.run(3))
    if call < 7 or step:  # Until then nothing was written in this step.
        assert float(replicas.count) >= step
    assert ends(lambda: replicas.run(1))
    assert replicas.outputs()[0] == reference.outputs()[0]


@pytest.mark.parametrize(("replica", "step"), [(0, 1), (1, 2), (2, 0)])
@THREADS
def test_a_failure_of_a_feed(
    replica: int, step: int, threads: int, make: Make, ends: Callable[..., Any]
) -> None:
    """Steps before it are whole; its own has changed nothing."""
    replicas, reference = make(threads), make(threads)

    def feed(number: int) -> None:
        if number == step:
            raise Broken
        replicas.feed(replica)(number)

    feeds = {each: feed if each == replica else replicas.feed(each) for each in range(3)}
    with pytest.raises(Broken):
        ends(lambda: replicas.run(3, feeds=feeds))
    if step:
        reference.run(step)
    assert replicas.state() == reference.state()
    assert replicas.run()
    assert reference.run()
    assert replicas.outputs() == reference.outputs()


@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt])
@THREADS
def test_a_failure_after_a_step(
    error: type[BaseException], threads: int, make: Make, ends: Callable[..., Any]
) -> None:
    replicas = make(threads)

    def after(step: int) -> bool:
        if step == 1:
            raise error
        return True

    with pytest.raises(error):
        ends(lambda: replicas.run(5, after=after))
    assert float(replicas.count) == 2
    assert replicas.run()


@pytest.mark.parametrize("step", [0, 2])
@THREADS
def test_a_guard_that_fails(step: int, threads: int, make: Make, ends: Callable[..., Any]) -> None:
    """The step writes nothing, whichever replica's part is not finite."""
    replicas, reference = make(threads), make(threads)

    def feed(number: int) -> None:
        # The hyperbolic tangent of an infinity is finite, that of what is no number is not.
        replicas.program.inputs[1][...] = np.nan if number == step else 1 - 0.25 * number

    feeds = {0: replicas.feed(0), 1: feed, 2: replicas.feed(2)}
    with pytest.raises(GuardFailed) as caught:
        ends(lambda: replicas.run(5, feeds=feeds))
    assert caught.value.step == step
    if step:
        reference.run(step)
    assert replicas.state() == reference.state()
    assert replicas.run()


@pytest.mark.parametrize("last", [0, 1, 3])
@THREADS
def test_after_says_when_to_stop(last: int, threads: int, make: Make) -> None:
    replicas, seen = make(threads), []

    def after(step: int) -> bool:
        seen.append((step, float(replicas.count)))  # The step is whole when it is called.
        return step < last

    assert replicas.run(4, after=after) is False
    assert seen == [(step, step + 1.0) for step in range(last + 1)]
    assert replicas.run(2) is True
    assert float(replicas.count) == last + 3


@THREADS
def test_lanes_that_wait_for_one_another(
    threads: int, as_replica: Callable[[int], Any], record: Any
) -> None:
    """The first replica has nothing to do until the last one has computed something."""

    def function(*xs: ops.Tensor) -> list[ops.Tensor]:
        with as_replica(2):
            last = ops.tanh(xs[2])
        with as_replica(1):
            middle = ops.exp(last) * xs[1]
        with as_replica(0):
            first = ops.square(middle) - xs[0]
        with as_replica(2):
            return [first, first * last]

    arrays = [np.full(SHAPE, value, np.float32) for value in (0.5, 1.5, 2.5)]
    recorded = record(function, arrays, replicas=[0, 1, 2], threads=threads)
    expected = [each.numpy() for each in function(*map(ops.constant, arrays))]
    for _ in range(2):
        for result, array in zip(recorded(*arrays), expected, strict=True):
            np.testing.assert_array_equal(result, array)


@THREADS
def test_draws_are_those_of_eager_steps(threads: int, as_replica: Any, bits: Any) -> None:
    """One draw a step on all replicas, none for a step that is not taken."""
    programs = []
    for count in (threads, None):
        source = ops.SeedGenerator(3)
        if count is None:
            expected = [source.uniform((4,)).numpy() for _ in range(6)]
            break
        recorder = GraphRecorder()
        with recorded_by(recorder):
            outputs = []
            for replica in range(2):
                with as_replica(replica):
                    outputs.append(source.uniform((4,)) * 1.0)
        programs.append(Program(recorder.finish(outputs), 1 if count == 1 else 2))
    (program,) = programs
    pool, drawn = ThreadPool(program.threads), []

    def after(outputs: Any, step: int) -> bool:
        drawn.append(outputs[0].copy())
        assert bits([outputs[1]]) == bits([drawn[-1]])
        return step < 1

    for steps in (1, 3, 2):  # After the second step of a run it stops.
        program.run(steps, None, after, pool)
    assert bits(drawn) == bits(expected[:5])
