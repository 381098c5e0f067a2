"""Steps that are fed and told of while others are on their way, and what ends such a run early."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.ops.hooks import active_recorder
from mirrored.program.replay import GuardFailed
from mirrored.program.streamed import StreamedProgram, small_results

STEPS = 13  # More than there are reports and sides.
RNG = np.random.default_rng(2)
# Before the first report, where the sides and the reports begin again, and the last step.
SOME = (0, 1, 2, 8, STEPS - 1)
EVERY = [
    pytest.param(step, marks=[] if step in SOME else [pytest.mark.slow]) for step in range(STEPS)
]
BATCHES = [RNG.normal(size=(4, 3)).astype(np.float32) for _ in range(STEPS)]


class Summing:
    """A program that adds what it is fed to a variable, and returns that and twice the batch.

    Args:
        cards: The emulated cards.
        guarded: Whether it writes only what is finite.
    """

    def __init__(self, cards: Any, *, guarded: bool = False) -> None:
        with mr.device(cards.names[0]):
            self.variable = mr.Variable(np.zeros((4, 3), np.float32))

        def function(x: Any) -> list[Any]:
            recorder: Any = active_recorder()
            if guarded:
                recorder.require_finite((ops.reduce_sum(x),))
            self.variable.assign_add(x)
            return [self.variable.read_value(), x * 2.0]

        self.program = StreamedProgram(cards.record(function, BATCHES[0]))
        self.told: list[int] = []
        self.results: list[list[np.ndarray]] = []

    def run(
        self,
        batches: Sequence[np.ndarray] = BATCHES,
        *,
        feed_fails_at: int = -1,
        after: Callable[[int], bool] = lambda step: True,
    ) -> bool:
        """Run all steps, and note what is told."""

        def feeds(inputs: Sequence[Any]) -> Mapping[int, Callable[[int], None]]:
            def feed(step: int) -> None:
                if step == feed_fails_at:
                    raise OSError(f"no batch {step}")
                inputs[0][...] = batches[step]

            return {0: feed}

        def note(arrays: Sequence[Any], step: int) -> bool:
            self.told.append(step)
            self.results.append([each.copy() for each in arrays])
            return after(step)

        return self.program.run(len(batches), feeds, note)

    def check(self, steps: int, batches: Sequence[np.ndarray] = BATCHES) -> None:
        """Hold the variable, and what was told, to so many steps."""
        total = np.zeros((4, 3), np.float32)
        assert self.told == list(range(steps))
        for batch, (read, twice) in zip(batches, self.results, strict=False):
            total = total + batch
            np.testing.assert_array_equal(read, total)
            np.testing.assert_array_equal(twice, batch * 2)
        np.testing.assert_array_equal(self.variable.numpy(), total)

    def start_again(self) -> None:
        """Forget what happened, and see that the next call works."""
        self.variable.assign(np.zeros((4, 3), np.float32))
        self.told, self.results = [], []
        assert self.run()
        self.check(STEPS)


@pytest.mark.parametrize("seed", range(4))
def test_batches_and_results_in_order(seed: int, cards: Any) -> None:
    cards.make(1, seed=seed)
    summing = Summing(cards)
    assert summing.run()
    summing.check(STEPS)
    summing.start_again()


@pytest.mark.parametrize("step", EVERY)
def test_a_feed_that_fails(step: int, cards: Any) -> None:
    """The steps before it are done, and told of."""
    cards.make(1, seed=step)
    summing = Summing(cards)
    with pytest.raises(OSError, match=f"no batch {step}"):
        summing.run(feed_fails_at=step)
    summing.check(step)
    summing.start_again()


@pytest.mark.parametrize("step", EVERY)
def test_a_run_that_is_stopped(step: int, cards: Any) -> None:
    """What the device was asked for by then is done, and told of."""
    cards.make(1, seed=step)
    summing = Summing(cards)
    assert not summing.run(after=lambda told: told != step)
    assert len(summing.told) > step
    summing.check(len(summing.told))
    summing.start_again()


@pytest.mark.parametrize("step", [0, 1, 4])
def test_who_is_told_raises(step: int, cards: Any) -> None:
    cards.make(1, seed=step)
    summing = Summing(cards)

    def after(told: int) -> bool:
        if told == step:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        summing.run(after=after)
    summing.check(len(summing.told))
    summing.start_again()


@pytest.mark.parametrize("step", SOME)
def test_a_guard_that_fails(step: int, cards: Any) -> None:
    """Nothing is written from that step on, with others on their way behind it."""
    cards.make(1, seed=step)
    summing = Summing(cards, guarded=True)
    batches = list(BATCHES)
    batches[step] = np.full((4, 3), np.inf, np.float32)
    with pytest.raises(GuardFailed) as failed:
        summing.run(batches)
    assert failed.value.step == step
    np.testing.assert_array_equal(failed.value.outputs[1], batches[step] * 2)
    summing.check(step)
    with pytest.raises(GuardFailed):  # Once more, for the flag has to be set again.
        summing.run([batches[step]])
    summing.check(step)
    summing.start_again()


@pytest.mark.parametrize("fails_at", [3, 9])
def test_a_guard_that_fails_behind_a_feed_that_does(fails_at: int, cards: Any) -> None:
    """Both go wrong: the steps before the first of them are done."""
    cards.make(1)
    summing = Summing(cards, guarded=True)
    batches = list(BATCHES)
    batches[2] = np.full((4, 3), np.nan, np.float32)
    with pytest.raises(GuardFailed) as failed:
        summing.run(batches, feed_fails_at=fails_at)
    assert failed.value.step == 2
    summing.check(2)
    summing.start_again()


def test_large_results_are_told_one_at_a_time(cards: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinned memory for them is limited: the device waits instead."""
    cards.make(1)
    monkeypatch.setattr(small_results, "_RESULT_BYTES", 100)
    made = cards.emulator.cupy.cuda.alloc_pinned_memory
    taken: list[int] = []

    def noting(nbytes: int) -> Any:
        taken.append(nbytes)
        return made(nbytes)

    monkeypatch.setattr(cards.emulator.cupy.cuda, "alloc_pinned_memory", noting)
    summing = Summing(cards)
    assert summing.run()
    assert sum(taken) < 4 * 256 + 2 * 48
    summing.check(STEPS)
    assert not summing.run(after=lambda step: False)
    assert summing.told[STEPS:] == [0]  # The one that was on its way.


@pytest.mark.parametrize(("parts", "seed"), [((2,), 0), ((1, 1), 1), ((2, 1), 2)], ids=str)
def test_replicas_are_fed_each_its_own(parts: tuple[int, ...], seed: int, cards: Any) -> None:
    names = cards.make(*parts, seed=seed)

    def function(*inputs: Any) -> list[Any]:
        results = []
        for number, x in enumerate(inputs):
            with cards.replica(number):
                results.append(ops.tanh(x) * float(number + 1))
        return [*results, ops.add_n([ops.identity(each) for each in results])]

    graph = cards.record(function, *[BATCHES[0]] * len(names), replicas=len(names))
    program = StreamedProgram(graph)

    def feeds(inputs: Sequence[Any]) -> Mapping[int, Callable[[int], None]]:
        def feed(replica: int, step: int) -> None:
            inputs[replica][...] = BATCHES[step] + np.float32(replica)

        return {
            replica: lambda step, replica=replica: feed(replica, step)
            for replica in range(len(names))
        }

    told = []

    def after(arrays: Sequence[Any], step: int) -> bool:
        expected = [np.tanh(BATCHES[step] + np.float32(i)) * (i + 1) for i in range(len(names))]
        for found, each in zip(arrays, [*expected, sum(expected)], strict=True):
            np.testing.assert_allclose(found, each, rtol=1e-5, atol=1e-6)
        told.append(step)
        return True

    assert program.run(STEPS, feeds, after)
    assert told == list(range(STEPS))


def test_nothing_is_fed_or_told(cards: Any) -> None:
    cards.make(1)
    with mr.device(cards.names[0]):
        variable = mr.Variable(0.0)

    def function() -> list[Any]:
        variable.assign_add(1.0)
        return []

    program = StreamedProgram(cards.record(function))
    assert program.run(STEPS, lambda inputs: {}, lambda arrays, step: not arrays)
    assert float(variable.numpy()) == STEPS


@pytest.mark.parametrize("shape", [(0, 3), (0,)])
def test_empty_batches(shape: tuple[int, ...], cards: Any) -> None:
    cards.make(1)
    empty = np.zeros(shape, np.float32)
    program = StreamedProgram(cards.record(lambda x: [x * 2.0, ops.reduce_sum(x)], empty))
    results = []

    def after(arrays: Sequence[Any], step: int) -> bool:
        results.append([(each.shape, each.tolist()) for each in arrays])
        return True

    assert program.run(3, lambda inputs: {0: lambda step: None}, after)
    assert results == [[(shape, []), ((), 0.0)]] * 3


def test_no_room_for_batches_on_their_way(cards: Any) -> None:
    """It is said before the first step, which leaves the variables as they are."""
    cards.make(1)
    with mr.device(cards.names[0]):
        variable = mr.Variable(1.0)
    large = np.zeros((7 << 18,), np.float32)  # 7 MB of 16: there is room for two of them.

    def function(x: Any) -> list[Any]:
        variable.assign_add(x[0])
        return []

    program = StreamedProgram(cards.record(function, large))
    with pytest.raises(mr.errors.ResourceExhaustedError, match="device:GPU:0"):
        program.run(1, lambda inputs: pytest.fail("It is fed."), lambda arrays, step: True)
    assert float(variable.numpy()) == 1
