"""A streamed step that is measured: each kernel is told of once, and its results are the same."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.devices.work_timing import ALL_REPLICAS, Work, observers
from mirrored.ops.hooks import active_recorder
from mirrored.program.streamed import StreamedProgram

X = np.arange(12, dtype=np.float32).reshape(4, 3)


class Told:
    """What was told: the work, whose it was, and when it began and ended."""

    def __init__(self) -> None:
        self.all: list[tuple[Work, int | None, int, int]] = []

    def add(self, work: Work, replica: int | None, start: int, end: int) -> None:
        """Note it."""
        self.all.append((work, replica, start, end))


@pytest.fixture
def told() -> Iterator[Told]:
    made = Told()
    observers.append(made)
    yield made
    observers.remove(made)


def record(cards: Any) -> StreamedProgram:
    """Return a program in which two replicas meet, and update a variable behind a guard."""
    with mr.device("GPU:0"):
        variable = mr.Variable(X)

    def function(x: Any, y: Any) -> list[Any]:
        parts = []
        for number, each in enumerate((x, y)):
            with cards.replica(number):
                parts.append(ops.softmax(each))
        recorder: Any = active_recorder()
        total = recorder.sum_over_devices(parts, devices.get_device("GPU:0"))
        recorder.require_finite((ops.reduce_sum(total),))
        variable.assign_add(total)
        return [variable.read_value()]

    return StreamedProgram(cards.record(function, X, X, replicas=2))


def run(program: StreamedProgram, steps: int) -> list[np.ndarray]:
    """Return what the program tells of each step."""
    found: list[np.ndarray] = []

    def feeds(inputs: Sequence[Any]) -> Mapping[int, Callable[[int], None]]:
        def feed(step: int) -> None:
            for number, each in enumerate(inputs):
                each[...] = X * np.float32(step + number)

        return {0: feed}

    def after(arrays: Sequence[Any], step: int) -> bool:
        found.append(arrays[0].copy())
        return True

    assert program.run(steps, feeds, after)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_every_kernel_is_told_of_once(seed: int, cards: Any, told: Told) -> None:
    cards.make(2, seed=seed)
    program = record(cards)
    told.all.clear()
    run(program, 3)
    work = Counter((each.name, each.device, replica) for each, replica, _, _ in told.all)
    softmaxes = {("Softmax", f"GPU:{number}", number): 3 for number in (0, 1)}
    assert {key: n for key, n in work.items() if key[0] == "Softmax"} == softmaxes
    assert work["CheckNumerics", "GPU:0", None] == 3
    assert work["AssignAddVariableOp", "GPU:0", ALL_REPLICAS] == 3
    times = [(start, end) for _, _, start, end in told.all]
    assert all(start <= end for start, end in times)
    assert times == sorted(times)
    (softmax,) = {each for each, _, _, _ in told.all if each.device == "GPU:1"}
    assert softmax == Work("Softmax", "compute", "Softmax", "GPU:1", X.nbytes, X.nbytes)


def test_measuring_changes_no_bits(cards: Any, bits: Any) -> None:
    results = []
    for measured in (False, True, False):
        cards.make(2)
        program = record(cards)
        first = run(program, 4)
        observers.extend([Told()] * measured)
        try:
            results.append(bits([*first, *run(program, 4)]))
        finally:
            observers.clear()
    assert results[0] == results[1] == results[2]


def test_measured_steps_are_launched_kernel_by_kernel(cards: Any, told: Told) -> None:
    cards.make(1, 1)
    program = record_copies(cards)
    told.all.clear()
    before = cards.emulator.counts["graphs"]
    for _ in range(3):
        program.run(1, [X])
    assert cards.emulator.counts["graphs"] == before
    names = Counter((each.name, each.op, each.device) for each, _, _, _ in told.all)
    assert names["Tanh", "Tanh", "GPU:0"] == names["AddV2", "AddV2", "GPU:1"] == 3
    assert sum(count for (_, op, _), count in names.items() if op == "_Send") == 3


def record_copies(cards: Any) -> StreamedProgram:
    def function(x: Any) -> list[Any]:
        y = ops.tanh(x)
        with mr.device("GPU:1"):
            return [ops.identity(y) + 1.0]

    return StreamedProgram(cards.record(function, X))
