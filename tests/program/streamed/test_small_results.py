"""Small results that steps themselves put where they are wanted: each call's are its own."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.program.executor import make_program
from mirrored.program.streamed import small_results

X = np.arange(6, dtype=np.float32).reshape(2, 3)
LARGE = np.zeros((2000,), np.float32)


def several(x: Any) -> list[Any]:
    """Return small results of two dtypes and one that is too large to be told with them."""
    total = ops.reduce_sum(x)
    return [total, ops.cast(x * 2.0, "int32"), ops.fill((2000,), 1.0) * total]


def check(results: Any, number: float) -> None:
    total, doubled, large = (each.numpy() for each in results)
    np.testing.assert_array_equal(total, np.float32(15 * number))
    np.testing.assert_array_equal(doubled, (X * 2 * number).astype(np.int32))
    np.testing.assert_array_equal(large, np.full(2000, 15 * number, np.float32))


@pytest.mark.parametrize("calls", [1, 3, small_results._MOST_CALLS])
@pytest.mark.parametrize("seed", range(2))
def test_what_calls_return_stays(
    calls: int, seed: int, cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of calls whose results lie in other memory, and where some are let go of."""
    monkeypatch.setattr(small_results, "_MOST_CALLS", calls)
    cards.make(1, seed=seed)
    with mr.device(cards.names[0]):
        function = mr.function(several)
        kept = {number: function(X * np.float32(number)) for number in range(20)}
        for number in range(0, 20, 3):
            del kept[number]
        kept |= {number: function(X * np.float32(number)) for number in range(20, 30)}
    for number, results in kept.items():
        check(results, number)


def test_nothing_is_allocated_and_copied_between_calls(
    cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards.make(1)
    runtime, copies = cards.emulator.cupy.cuda.runtime, []
    program = make_program(cards.record(lambda x: several(x)[:2], X), 1)
    with mr.device(cards.names[0]):
        x = mr.constant(X)._array
    for _ in range(3):
        program.returned([x])
    copy = runtime.memcpyAsync
    monkeypatch.setattr(runtime, "memcpyAsync", lambda *args: (copies.append(args), copy(*args)))
    kept = [program.returned([x]) for _ in range(20)]
    assert [len(results) for results in kept] == [2] * 20
    assert len({id(storage) for results in kept for _, storage in results}) == 1
    assert copies == []


def test_runs_that_are_told_of_and_calls_by_turns(cards: Any) -> None:
    """And calls of which nobody wants the results."""
    cards.make(1)
    graph = cards.record(lambda x: several(x)[:2], X)
    program = make_program(graph, 1)
    found: list[Any] = []

    def report(arrays: Any, step: int) -> bool:
        found.append([each.copy() for each in arrays])
        return True

    kept = []
    for number in range(1, 5):
        x = X * np.float32(number)
        kept.append(program.returned([x]))
        program.run(11, [x], report)  # More than are on their way at a time.
        program.call([x])
        program.run(3, [x])
        kept.append(program.returned([x]))
    assert len(found) == 44
    for i, (total, doubled) in enumerate(found):
        assert total == 15 * (1 + i // 11)
        np.testing.assert_array_equal(doubled, X.astype(np.int32) * 2 * (1 + i // 11))
    for i, results in enumerate(kept):
        backend = graph.outputs[0].device.backend
        assert backend.to_host(results[0][0]) == 15 * (1 + i // 2)


@pytest.mark.parametrize("parts", [(2,), (1, 1)])
def test_several_devices(parts: tuple[int, ...], cards: Any) -> None:
    cards.make(*parts)

    def function(x: Any) -> list[Any]:
        here = ops.reduce_sum(x)
        with mr.device("GPU:1"):
            return [here, ops.reduce_sum(ops.identity(x) * 3.0)]

    graph = cards.record(function, X)
    program = make_program(graph, 1)
    kept = [program.returned([X * np.float32(number)]) for number in range(5)]
    found: list[Any] = []

    def report(arrays: Any, step: int) -> bool:
        found.append([float(each) for each in arrays])
        return True

    program.run(12, [X], report)
    assert found == [[15.0, 45.0]] * 12
    for number, results in enumerate(kept):
        values = [
            value.device.backend.to_host(array)
            for value, (array, _) in zip(graph.outputs, results, strict=True)
        ]
        assert values == [15 * number, 45 * number]


def test_what_a_call_that_failed_left_is_nobodys(cards: Any) -> None:
    cards.make(1)
    program = make_program(cards.record(lambda x: several(x)[:2], X), 1)
    before = program.returned([X])
    step, program._steps.run = program._steps.run, _interrupted
    with pytest.raises(KeyboardInterrupt):
        program.returned([X])
    program._steps.run = step
    after = program.returned([X * np.float32(2)])
    backend = program.graph.outputs[0].device.backend
    assert [backend.to_host(each[0][0]) for each in (before, after)] == [15, 30]


def _interrupted() -> None:
    raise KeyboardInterrupt


def test_calls_whose_results_nobody_wants_leave_those_of_others(
    cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_results, "_MOST_CALLS", 3)
    cards.make(1)
    graph = cards.record(lambda x: several(x)[:2], X)
    program = make_program(graph, 1)
    program.call([X])
    kept = [program.returned([X * np.float32(number)]) for number in range(3)]
    for _ in range(2):
        program.call([X * np.float32(9)])
    backend = graph.outputs[0].device.backend
    assert [backend.to_host(results[0][0]) for results in kept] == [0, 15, 30]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("where", ["asked", "_aim"])
def test_an_interrupt_leaves_later_results_where_they_are_looked_for(
    where: str, before: bool, cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it comes: behind a step, and before a place is told to the device or after it."""
    monkeypatch.setattr(small_results, "_MOST_CALLS", 4)
    cards.make(1)
    graph = cards.record(lambda x: several(x)[:2], X)
    program = make_program(graph, 1)
    backend = graph.outputs[0].device.backend
    function = getattr(small_results.DeviceResults, where)

    def interrupted(*args: Any) -> None:
        if not before:
            function(*args)
        raise KeyboardInterrupt

    def call_until_it_is_interrupted() -> None:
        for _ in range(5):  # One of which needs another place.
            program.returned([X * np.float32(99)])

    kept = []
    for number in range(10):
        if number in (4, 6):
            with monkeypatch.context() as patch:
                patch.setattr(small_results.DeviceResults, where, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    call_until_it_is_interrupted()
        kept.append(program.returned([X * np.float32(number)]))
    found = [float(backend.to_host(results[0][0])) for results in kept]
    assert found == [15.0 * number for number in range(10)]
