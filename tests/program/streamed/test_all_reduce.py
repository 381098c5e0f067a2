"""Sums over cards in a recorded step: what they wait for, and what waits for them.

Each seed of the emulator is another order in which the cards, and their streams, get on.
"""

import functools
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.backends.communication.connection import MULTI_RANK, Connection
from mirrored.backends.communication.watch import WATCH
from mirrored.errors import CollectiveTimeoutError
from mirrored.ops.hooks import active_recorder
from mirrored.program.concurrency import Streams
from mirrored.program.schedule import make_schedule
from mirrored.program.streamed import StreamedProgram
from mirrored.program.streamed.kept_casts import _WithoutCasts

RNG = np.random.default_rng(5)
SEEDS = pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])


def draw(count: int) -> list[np.ndarray]:
    return [RNG.normal(size=(4, 3)).astype(np.float32) for _ in range(count)]


def run(program: StreamedProgram, arrays: list[np.ndarray]) -> list[np.ndarray]:
    assert program.run(1, arrays)
    values = zip(program.graph.outputs, program.outputs, strict=True)
    return [value.device.backend.to_host(array) for value, array in values]


@pytest.mark.parametrize(
    ("parts", "seed"),
    [((1, 1), 0), pytest.param((1, 1), 1, marks=pytest.mark.slow), ((1, 1, 1), 2)],
    ids=str,
)
def test_a_way_back_with_sums(parts: tuple[int, ...], seed: int, cards: Any) -> None:
    """Run kernel by kernel, captured, and launched again, the sums are those of eager calls."""
    names = cards.make(*parts, seed=seed)
    connection = cards.connected()
    like = draw(len(names))
    function = functools.partial(cards.gradients, connection, 3)
    program = StreamedProgram(cards.record(function, *like, replicas=len(names)))
    for _ in range(3):
        arrays = draw(len(names))
        inputs = []
        for name, array in zip(names, arrays, strict=True):
            with mr.device(name):
                inputs.append(ops.constant(array))
        expected = [each.numpy() for each in cards.gradients(None, 3, *inputs)]
        found = run(program, arrays)
        assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
    connection.close()


@SEEDS
def test_sums_that_nothing_waits_for(seed: int, cards: Any) -> None:
    """They are done when the step is: its results are read then."""
    cards.make(1, 1, seed=seed)
    connection = cards.connected()

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        return recorder.all_reduce(inputs, connection, what="inputs", timeout=60.0)

    program = StreamedProgram(cards.record(function, *draw(2), replicas=2))
    for _ in range(3):
        arrays = draw(2)
        for found in run(program, arrays):
            np.testing.assert_array_equal(found, arrays[0] + arrays[1])
    connection.close()


@SEEDS
def test_what_reads_sums_waits_for_them(seed: int, cards: Any) -> None:
    names = cards.make(1, 1, seed=seed)
    connection = cards.connected()

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        first = recorder.all_reduce(inputs, connection, what="first", timeout=60.0)
        second = recorder.all_reduce(inputs, connection, what="second", timeout=60.0)
        results = []
        for name, *sums in zip(names, first, second, strict=True):
            with mr.device(name):
                results += [sums[0] * 2.0, sums[1] * 3.0]
        return results

    program = StreamedProgram(cards.record(function, *draw(2), replicas=2))
    for _ in range(3):
        arrays = draw(2)
        for found, factor in zip(run(program, arrays), (2, 3, 2, 3), strict=True):
            expected = (arrays[0] + arrays[1]) * np.float32(factor)
            np.testing.assert_array_equal(found, expected)
    connection.close()


@SEEDS
def test_sums_of_sums_on_other_streams(seed: int, cards: Any) -> None:
    cards.make(1, 1, seed=seed)
    connections = [cards.connected() for _ in range(3)]

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        values = list(inputs)
        for connection in connections:
            values = recorder.all_reduce(values, connection, what="values", timeout=60.0)
        return values

    program = StreamedProgram(cards.record(function, *draw(2), replicas=2))
    for _ in range(3):
        arrays = draw(2)
        for found in run(program, arrays):
            np.testing.assert_array_equal(found, (arrays[0] + arrays[1]) * np.float32(4))
    for connection in connections:
        connection.close()


@SEEDS
def test_a_replica_that_is_done_early(
    seed: int, cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other goes on with alone does not hide that its work is still to be waited for."""
    monkeypatch.setenv(MULTI_RANK, "1")
    names = cards.make(2, seed=seed)
    backends = [devices.get_device(name).backend for name in names]
    connection = Connection(backends, names)

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        with cards.replica(0):
            x = ops.softmax(inputs[0])
            later = ops.softmax(x @ ops.transpose(x) @ x)
        with cards.replica(1):
            y = ops.softmax(inputs[1])
        early = recorder.all_reduce([x, y], connection, what="early", timeout=60.0)
        late = recorder.all_reduce([later, inputs[1]], connection, what="late", timeout=60.0)
        joint = recorder.sum_over_devices([later, y], devices.get_device(names[0]))
        return [joint, *early, *late]

    program = StreamedProgram(cards.record(function, *draw(2), replicas=2))
    for _ in range(3):
        joint, *sums = run(program, arrays := draw(2))
        x, y = map(ops.softmax, arrays)
        later = ops.softmax(x @ ops.transpose(x) @ x)
        for found, expected in zip(
            (joint, *sums[::2]), (later + y, x + y, later + arrays[1]), strict=True
        ):
            np.testing.assert_array_equal(found, expected.numpy())
        assert [sums[0].tobytes(), sums[2].tobytes()] == [sums[1].tobytes(), sums[3].tobytes()]
    connection.close()


@pytest.mark.parametrize(("guarded", "seed"), [(False, 0), (True, 2)])
def test_a_sum_that_hangs_writes_nothing(seed: int, guarded: bool, cards: Any) -> None:
    """The error names it; variables stay as the last whole step left them; the next call works."""
    names = cards.make(1, 1, seed=seed)
    connection = cards.connected()
    variables = []
    for name in names:
        with mr.device(name):
            variables.append(mr.Variable(np.zeros((4, 3), np.float32)))

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        sums = recorder.all_reduce(inputs, connection, what="gradients", timeout=0.2)
        if guarded:
            recorder.require_finite((ops.reduce_sum(sums[0]),))
        for name, variable, total in zip(names, variables, sums, strict=True):
            with mr.device(name):
                variable.assign_add(total)
        return []

    program = StreamedProgram(cards.record(function, *draw(2), replicas=2))
    arrays = draw(2)

    def step() -> None:
        if guarded:
            feed = {0: lambda step: None}

            def feeds(inputs: Any) -> Any:
                for target, array in zip(inputs, arrays, strict=True):
                    target[...] = array
                return feed

            assert program.run(1, feeds, lambda outputs, step: True)
        else:
            assert program.run(1, arrays)
        for name in names:
            devices.get_device(name).backend.synchronize()

    step()
    first = [variable.numpy() for variable in variables]
    np.testing.assert_array_equal(first[0], arrays[0] + arrays[1])
    cards.emulator.nccl.hang(after=1)
    with pytest.raises(CollectiveTimeoutError, match="gradients"):
        step()
    assert WATCH.idle
    for variable, value in zip(variables, first, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    step()
    for variable in variables:
        np.testing.assert_array_equal(variable.numpy(), first[0] * np.float32(2))
    connection.close()


@pytest.mark.parametrize("guarded", [False, True], ids=["plain", "guarded"])
@pytest.mark.parametrize("parts", [(1,), (1, 1), (2, 1)], ids=str)
def test_all_processes_ask_for_sums_in_one_order(
    parts: tuple[int, ...], guarded: bool, cards: Any
) -> None:
    """It is that of recording, and each comes once, whoever needs it, and whenever it is ready."""
    cards.make(*parts)
    for seed in range(3):
        connection = cards.unconnected()
        connection.peers = object()
        graph = cards.random(seed, sum(parts), guarded=guarded, connection=connection)
        for made in (graph, _WithoutCasts(graph, {}).graph([])):
            launches = make_schedule(made, Streams(made)).launches()
            assert [each.collective for each in launches if each.collective] == made.collectives
            first, *others = made.collectives
            assert first.after is None
            assert [each.after in made.nodes for each in others] == [True] * len(others)
