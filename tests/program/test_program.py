"""Programs: fed, run step after step, and what a run leaves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import mirrored as mr
from mirrored import devices, ops
from mirrored.backends.product_settings import run_on_threads, use_all_threads, use_one_thread
from mirrored.errors import ResourceExhaustedError
from mirrored.ops import convolutions
from mirrored.ops.hooks import recorded_by
from mirrored.program import GraphRecorder, Program, lowering

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_each_step_is_fed_and_reported(record: Any) -> None:
    program = record(lambda x: [x * 2.0], [X]).program
    seen: list[Any] = []

    def feed(inputs: Any) -> Any:
        return {0: lambda step: np.copyto(inputs[0], X + step)}

    def after(outputs: Any, step: int) -> bool:
        seen.append((step, outputs[0].copy()))
        return step < 2

    assert program.run(5, feed, after) is False
    assert [step for step, _ in seen] == [0, 1, 2]
    for step, output in seen:
        np.testing.assert_array_equal(output, 2 * (X + step))
    assert program.run(0, feed, after) is True
    assert len(seen) == 3


def test_infinities_are_results_and_no_warnings(record: Any) -> None:
    recorded = record(lambda x: [1.0 / x, ops.log(-x), ops.exp(x * 1e9)], [X])
    with np.errstate(all="raise"):
        inverse, logarithm, large = recorded(X)
        assert np.geterr()["divide"] == "raise"
    assert np.isinf(inverse[0, 0])
    assert np.isnan(logarithm[1]).all()
    assert np.isinf(large[1]).all()


def test_a_program_without_inputs_or_ops(record: Any) -> None:
    (constant,) = record(lambda: [ops.constant([1.0, 2.0])], [])()
    np.testing.assert_array_equal(constant, [1, 2])
    same, row = record(lambda x: [x, x[1]], [X])(X)
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(row, X[1])


def test_no_room_for_a_program(simulate: Callable[..., Any]) -> None:
    """Recording takes none, the program takes all at once or nothing."""
    (gpu,) = simulate(1, memory_limit=1)
    device = devices.get_device(gpu.name)
    used = device.pool.current
    recorder = GraphRecorder()
    x = recorder.input(ops.TensorSpec((500, 500), ops.float32), device, 0)
    with recorded_by(recorder):
        graph = recorder.finish([x @ x])
    with pytest.raises(ResourceExhaustedError, match="device:GPU:0: "):
        Program(graph)
    assert device.pool.current == used
    recorder = GraphRecorder()
    x = recorder.input(ops.TensorSpec((300, 300), ops.float32), device, 0)
    with recorded_by(recorder):
        graph = recorder.finish([ops.tanh(x)])
    program = Program(graph)
    assert device.pool.current - used >= 2 * 300 * 300 * 4
    with pytest.raises(ResourceExhaustedError):
        Program(graph), Program(graph)
    del program
    assert device.pool.current == used


def test_functions_return_values_of_their_own() -> None:
    """What a function returned once stays as it was when it is called again."""
    v = mr.Variable([1.0, 2.0])

    @mr.function
    def step(x: mr.Tensor) -> list[mr.Tensor]:
        old = v.read_value()
        v.assign_add(x)
        return [old, v * 1.0, x]

    first = [each.numpy().tolist() for each in step(mr.constant([1.0, 1.0]))]
    kept = step(mr.constant([2.0, 2.0]))
    step(mr.constant([9.0, 9.0]))
    assert first == [[1, 2], [2, 3], [1, 1]]
    assert [each.numpy().tolist() for each in kept] == [[2, 3], [4, 5], [2, 2]]


@pytest.mark.parametrize(("most_calls", "whole"), [(3, True), (10_000, False)])
def test_a_kernel_of_many_calls_is_called_as_a_whole(
    most_calls: int, whole: bool, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "_MOST_CALLS", most_calls)
    images = np.arange(4 * 400 * 400, dtype=np.float32).reshape(4, 400, 400, 1)
    filters = np.ones((2, 2, 1, 1), np.float32)

    def convolve(x: Any, w: Any) -> Any:
        return [ops.conv2d(x, w, 1, "VALID")]

    recorded = record(convolve, [images, filters])
    runs: list[Any] = []
    product = convolutions.product
    monkeypatch.setattr(
        convolutions, "product", lambda xp, *args: runs.append(xp) or product(xp, *args)
    )
    (result,) = recorded(images, filters)
    assert bool(runs) == whole
    runs.clear()
    np.testing.assert_array_equal(result, convolve(images, filters)[0].numpy())


def test_each_product_has_threads_by_its_size(record: Any) -> None:
    """In a program of one thread large products use all threads of the BLAS, the others one."""
    large, small = np.ones((400, 400), np.float32), np.ones((40, 400), np.float32)
    program = record(lambda x, y: [x @ x, y @ x], [large, small]).program
    names = {use_all_threads: "all", use_one_thread: "one"}
    calls = [call for stage in program.stages for call in stage.calls or ()]
    seen = [names.get(call.function, call.function.__name__) for call in calls]
    assert seen == ["all", "dot", "one", "dot"]
    threads = record(lambda x, y: [x @ x, y @ x], [large, small], threads=2).program
    calls = [call for stage in threads.stages for call in stage.calls or ()]
    assert calls
    assert not {call.function for call in calls} & set(names)


def test_threads_of_products_are_those_of_the_user() -> None:
    """A limit that a user sets around a program stays what it was, and is what products use."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers

    def counts() -> list[int]:
        return [library.num_threads for library in libraries]

    seen: list[list[int]] = []
    with threadpool_limits(1, user_api="blas"):
        run_on_threads(1, lambda: (use_all_threads(), seen.append(counts()), use_one_thread()))
        assert seen == [counts()]
    before = counts()
    run_on_threads(1, lambda: (seen.append(counts()), use_all_threads(), seen.append(counts())))
    assert seen[1:] == [[1] * len(before), before]
    assert counts() == before
