"""The guard of a step: whether it writes is decided once, on one device, for all of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.backends.communication.watch import WATCH
from mirrored.errors import CollectiveError
from mirrored.ops.hooks import active_recorder
from mirrored.program.lowering import WriteGuard
from mirrored.program.streamed import StreamedProgram

X = np.full((4, 3), 2.0, np.float32)


@pytest.mark.parametrize("name", ["GPU:0", "CPU:0"])
def test_a_step_reads_what_the_host_says(name: str, cards: Any) -> None:
    cards.make(1)
    device = devices.get_device(name)
    guard = WriteGuard(device)

    def read() -> float:
        for call in guard.read():
            call.run()
        return float(device.backend.to_host(guard.array)[0])

    assert np.isnan(read())
    for _ in range(2):
        guard.open()
        assert read() == 0.0
        guard.shut()
        assert np.isnan(read())


@pytest.mark.parametrize(
    ("parts", "seed"),
    [
        *(((1, 1), 0), ((1, 1), 1), ((1, 1, 1), 2)),
        *(pytest.param((1, 1), i, marks=pytest.mark.slow) for i in range(2, 6)),
        *(pytest.param((1, 1, 1), i, marks=pytest.mark.slow) for i in range(2)),
    ],
    ids=str,
)
def test_a_step_that_is_stopped_writes_everywhere_or_nowhere(
    parts: tuple[int, ...], seed: int, cards: Any
) -> None:
    """A sum fails while the writes of steps before it are on their way, on some cards further."""
    names = cards.make(*parts, seed=seed)
    connection = cards.connected()
    variables = []
    for name in names:
        with mr.device(name):
            variables += [mr.Variable(np.zeros((4, 3), np.float32)), mr.Variable(0)]

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        sums = recorder.all_reduce(inputs, connection, what="gradients", timeout=60.0)
        for number, (name, total) in enumerate(zip(names, sums, strict=True)):
            with mr.device(name):
                variables[2 * number].assign_add(total)
                variables[2 * number + 1].assign_add(1)
        return [ops.identity(sums[0])]

    like = [X] * len(names)
    program = StreamedProgram(cards.record(function, *like, replicas=len(names)))
    program.run(1, like)
    cards.emulator.nccl.break_async(after=4)

    def run() -> None:
        for _ in range(40):
            program.run(1)
            WATCH.check()

    with pytest.raises(CollectiveError):
        run()
    values = [variable.numpy() for variable in variables]
    steps = int(values[1])
    assert 0 <= steps <= 4  # None of them was waited for.
    for sums, count in zip(values[::2], values[1::2], strict=True):
        assert count == steps
        np.testing.assert_array_equal(sums, X * np.float32(len(names) * steps))
    program.run(2)
    assert [int(variable.numpy()) for variable in variables[1::2]] == [steps + 2] * len(names)
    connection.close()


def make_variables(names: list[str], count: int = 1) -> list[list[mr.Variable]]:
    """Return so many variables for each device, of zeros."""
    made = []
    for name in names:
        with mr.device(name):
            made.append([mr.Variable(np.zeros((4, 3), np.float32)) for _ in range(count)])
    return made


@pytest.mark.parametrize(("failing", "seed"), [(1, 0), (2, 1)])
def test_nothing_is_written_before_all_sums_are_there(failing: int, seed: int, cards: Any) -> None:
    """One variable needs the first sum alone, the other one the second."""
    names = cards.make(1, 1, seed=seed)
    connection = cards.connected()
    variables = make_variables(names, 2)

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        for number in range(2):
            sums = recorder.all_reduce(inputs, connection, what=f"sum {number}", timeout=0.2)
            for name, mine, total in zip(names, variables, sums, strict=True):
                with mr.device(name):
                    mine[number].assign_add(total * float(number + 1))
        return []

    run_and_fail(cards, function, names, failing)
    assert not any(each.numpy().any() for mine in variables for each in mine)


@pytest.mark.parametrize(("failing", "seed"), [(1, 0), (2, 1), (3, 0)])
def test_several_steps_in_one_call_are_written_as_one(failing: int, seed: int, cards: Any) -> None:
    names = cards.make(1, 1, seed=seed)
    connection = cards.connected()
    variables = make_variables(names)

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        for number in range(3):
            parts = []
            for name, mine, x in zip(names, variables, inputs, strict=True):
                with mr.device(name):
                    parts.append(x + mine[0])
            sums = recorder.all_reduce(parts, connection, what=f"step {number}", timeout=0.2)
            for name, mine, total in zip(names, variables, sums, strict=True):
                with mr.device(name):
                    mine[0].assign_add(total)
        return []

    program = run_and_fail(cards, function, names, failing)
    assert not any(mine[0].numpy().any() for mine in variables)
    program.run(1)
    expected = np.zeros_like(X)
    for _ in range(3):
        expected += 2 * (X + expected)
    for mine in variables:
        np.testing.assert_array_equal(mine[0].numpy(), expected)
    connection.close()


@pytest.mark.parametrize("seed", range(2))
def test_what_is_asked_for_behind_a_sum_that_hangs(seed: int, cards: Any) -> None:
    """Another program's first step waits there already when everything is stopped."""
    names = cards.make(1, 1, seed=seed)
    connection = cards.connected()
    variables = [make_variables(names) for _ in range(2)]
    programs = []
    for mine in variables:

        def function(*inputs: Any, mine: Any = mine) -> list[Any]:
            recorder: Any = active_recorder()
            sums = recorder.all_reduce(inputs, connection, what="gradients", timeout=0.2)
            for name, (variable,), total in zip(names, mine, sums, strict=True):
                with mr.device(name):
                    variable.assign_add(total)
            return []

        programs.append(StreamedProgram(cards.record(function, X, X, replicas=2)))
    cards.emulator.nccl.hang(after=1)
    with pytest.raises(CollectiveError):
        run_and_wait(programs, names[0])
    assert not any(each.numpy().any() for mine in variables for (each,) in mine)
    for program, mine in zip(programs, variables, strict=True):
        program.run(1, [X, X])
        for (variable,) in mine:
            np.testing.assert_array_equal(variable.numpy(), X * 2)
    connection.close()


def run_and_fail(cards: Any, function: Any, names: list[str], failing: int) -> StreamedProgram:
    """Run a step of which one sum hangs."""
    program = StreamedProgram(cards.record(function, X, X, replicas=2))
    cards.emulator.nccl.hang(after=failing)
    with pytest.raises(CollectiveError):
        run_and_wait([program], names[0])
    return program


def run_and_wait(programs: Sequence[StreamedProgram], name: str) -> None:
    for program in programs:
        program.run(1, [X, X])
    devices.get_device(name).backend.synchronize()
