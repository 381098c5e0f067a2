"""Functions on NumPy arrays, which the CPU alone can run."""

import logging
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def test_one_result() -> None:
    result = ops.numpy_function(np.sinh, [ops.constant([1.0, 2.0])], ops.float32)
    np.testing.assert_array_equal(result.numpy(), np.sinh(np.float32([1.0, 2.0])))


def test_several_results() -> None:
    results = ops.numpy_function(
        lambda x, y: (x + y, x.size), [[1.0, 2.0], 3.0], ["float32", ops.int64]
    )
    np.testing.assert_array_equal(results[0].numpy(), [4.0, 5.0])
    assert results[1].dtype == ops.int64
    assert int(results[1]) == 2
    assert ops.numpy_function(lambda: [1.0], [], [ops.float32])[0].shape == ()


def test_numbers_of_python_take_the_dtype() -> None:
    assert ops.numpy_function(lambda: 1, [], ops.float64).dtype == ops.float64
    with pytest.raises(TypeError, match=r"Cannot convert 1.5 to a tensor of dtype int32"):
        ops.numpy_function(lambda: 1.5, [], ops.int32)


def test_arrays_are_copies() -> None:
    x = ops.constant([1.0])

    def write(array: Any) -> Any:
        array[0] = 5.0
        return array

    assert float(ops.numpy_function(write, [x], ops.float32)[0]) == 5.0
    assert float(x[0]) == 1.0


def test_no_gradient_passes() -> None:
    x = ops.constant([1.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.numpy_function(np.exp, [x], ops.float32)
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize(
    ("result", "wanted", "text"),
    [
        (np.ones(2), ops.float32, "0-th value returned by the function is float64, but expects"),
        ((np.float32(1), np.ones(1)), [ops.float32] * 2, "1-th value returned"),
        ((1.0, 2.0), [ops.float32], "returns 2 values, but Tout names 1 dtypes"),
        ([1.0, 2.0], ops.float32, "returns 2 values, but Tout names 1 dtypes"),
        (np.ones(2, np.float32), [ops.float32] * 2, "returns 1 values, but Tout names 2 dtypes"),
    ],
)
def test_results_that_are_not_as_said(result: Any, wanted: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        ops.numpy_function(lambda: result, [], wanted)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("kind", [list, tuple, None])
def test_lists_are_several_values(several: bool, kind: Any) -> None:
    array = np.ones(2, np.float32)
    result = ops.numpy_function(
        lambda: array if kind is None else kind([array]),
        [],
        [ops.float32] if several else ops.float32,
    )
    (tensor,) = result if several else (result,)
    assert tensor.numpy().tolist() == [1.0, 1.0]


def test_dtypes_are_checked_before_the_call() -> None:
    calls: list[int] = []
    with pytest.raises(TypeError, match="Received: 'complex64'"):
        ops.numpy_function(lambda: calls.append(1), [], "complex64")
    assert calls == []


def test_errors_of_the_function_pass() -> None:
    with pytest.raises(ZeroDivisionError):
        ops.numpy_function(lambda: 1 / 0, [], ops.float32)


def test_soft_placement_runs_it_on_the_cpu(simulate: Any, caplog: pytest.LogCaptureFixture) -> None:
    simulate(2)
    x = ops.constant([1.0])
    assert x.device.endswith("GPU:0")
    devices.set_log_device_placement(True)
    with caplog.at_level(logging.INFO, "mirrored"), devices.device("GPU:1"):
        result = ops.numpy_function(np.exp, [x], ops.float32)
    assert result.device == CPU
    assert caplog.messages[-1] == f"Executing op PyFunc in device {CPU}"


def test_hard_placement_is_an_error(simulate: Any) -> None:
    simulate(2)
    devices.set_soft_device_placement(False)
    calls: list[int] = []
    with devices.device("GPU:1"), pytest.raises(InvalidArgumentError) as caught:
        ops.numpy_function(lambda: calls.append(1), [], ops.float32)
    text = str(caught.value)
    assert (
        "Could not satisfy device specification '/job:localhost/replica:0/task:0/device:GPU:1'"
    ) in text
    assert "Supported device types [CPU]" in text
    assert f"All available devices [{CPU}, " in text
    assert calls == []
    with devices.device("CPU:0"):
        assert float(ops.numpy_function(lambda: 2.0, [], ops.float32)) == 2.0


def test_a_function_on_tensors_looks_at_values_and_has_a_gradient() -> None:
    def halved_if_large(x: ops.Tensor) -> ops.Tensor:
        return x / 2.0 if x > 4.0 else x * x

    for value, result, slope in [(6.0, 3.0, 0.5), (3.0, 9.0, 6.0)]:
        x = ops.constant(value)
        with GradientTape() as tape:
            tape.watch(x)
            y = ops.py_function(halved_if_large, [x], ops.float32)
        assert (float(y), float(tape.gradient(y, x))) == (result, slope)


@pytest.mark.parametrize(
    ("returned", "tout", "dtypes"),
    [
        (lambda x: 5, ops.float32, "float32"),
        (lambda x: np.array([1.0, 2.0]), "float32", "float32"),
        (lambda x: (x, x + 1), [ops.int32, ops.int32], ["int32", "int32"]),
        (lambda x: x, (ops.TensorSpec((), ops.int32),), ["int32"]),
        (lambda x: None, [], []),
    ],
)
def test_what_a_function_on_tensors_returns(returned: Any, tout: Any, dtypes: Any) -> None:
    for result in (ops.py_function(returned, [3], tout), ops.py_function(Tout=tout)(returned)(3)):
        several = isinstance(result, list)
        assert ([each.dtype for each in result] if several else result.dtype) == dtypes


@pytest.mark.parametrize(
    ("function", "tout", "error"),
    [
        (lambda x: x * 2, ops.float32, InvalidArgumentError),
        (lambda x: 5.5, ops.int32, InvalidArgumentError),
        (lambda x: None, ops.int32, InvalidArgumentError),
        (lambda x: [[1, 2], [3, 4]], ops.int32, InvalidArgumentError),
        (lambda x: x, None, TypeError),
        (lambda x: x, {"a": ops.int32}, TypeError),
        (3, ops.int32, ValueError),
        (lambda x: [][0], ops.int32, IndexError),
    ],
)
def test_what_is_refused_of_a_function_on_tensors(function: Any, tout: Any, error: Any) -> None:
    with pytest.raises(error) as caught:
        ops.py_function(function, [3], tout)
    assert type(caught.value) is error


def test_inputs_of_rank_0_are_scalars_in_graphs() -> None:
    """As in TensorFlow: NumPy's scalars there, arrays where ops run one by one."""
    seen: list[type] = []

    def note(x: Any, y: Any) -> Any:
        seen.extend([type(x), type(y)])
        return x

    def call(x: Any) -> Any:
        return ops.numpy_function(note, [x, mr.stack([x])], ops.float32)

    call(ops.constant(1.0))
    mr.function(call)(ops.constant(1.0))
    dataset = mr.data.Dataset.from_tensors(1.0)
    list(dataset.map(call))
    list(dataset.scan(0, lambda state, x: (state, call(x))))
    mr.data.Dataset.from_tensors(1.0).reduce(0.0, lambda state, x: call(x))
    assert seen[:2] == [np.ndarray, np.ndarray]
    assert seen[2:] == [np.float32, np.ndarray] * 4


def test_a_decorator_calls_the_function_on_arrays() -> None:
    @mr.numpy_function(Tout=mr.float32)
    def double(x: Any) -> Any:
        """Return twice the input."""
        return 2 * x

    assert double(mr.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert double.__doc__ == "Return twice the input."
    recorded = mr.function(lambda x: mr.ensure_shape(double(x), (2,)) + 1.0)
    assert recorded(mr.constant([1.0, 2.0])).numpy().tolist() == [3.0, 5.0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"inp": [1.0], "Tout": mr.float32}, "has no `inp`"),
        ({"func": abs, "Tout": mr.float32}, "Missing argument `inp`"),
        ({"func": abs, "inp": [1.0]}, "Missing required argument: 'Tout'"),
    ],
)
def test_arguments_that_are_missing(options: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        mr.numpy_function(**options)


def test_timestamps_are_read_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1.5, 2.5, 3.5])
    monkeypatch.setattr("mirrored.ops.host_function.time", lambda: next(times))
    now = mr.timestamp()
    assert (now.dtype, now.shape, float(now)) == (mr.float64, (), 1.5)
    recorded = mr.function(lambda: mr.timestamp() + 1.0)
    assert [float(recorded()), float(recorded())] == [3.5, 4.5]
