"""Functions on NumPy arrays, which the CPU alone can run."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

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


@cases(
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


@cases("several", [False, True])
@cases("kind", [list, tuple, None])
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


@pytest.mark.behaviour("cpu-only")
def test_soft_placement_runs_it_on_the_cpu(simulate: Any, caplog: pytest.LogCaptureFixture) -> None:
    simulate(2)
    x = ops.constant([1.0])
    assert x.device.endswith("GPU:0")
    devices.set_log_device_placement(True)
    with caplog.at_level(logging.INFO, "mirrored"), devices.device("GPU:1"):
        result = ops.numpy_function(np.exp, [x], ops.float32)
    assert result.device == CPU
    assert caplog.messages[-1] == f"Executing op PyFunc in device {CPU}"


@pytest.mark.behaviour("cpu-only")
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


@cases(
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


@cases(
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


@cases(
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


OneOfBoth = Callable[..., Any]
BOTH = [mr.numpy_function, mr.py_function]
both = pytest.mark.parametrize("call", BOTH, ids=["numpy_function", "py_function"])
X = np.array([1.0, 2.0], np.float32)


def twice(x: Any) -> Any:
    return np.asarray(x) * 2


def by_set_shape(y: Any, shape: Any) -> Any:
    y.set_shape([None for _ in shape])  # Which says nothing that is of use.
    y.set_shape(shape)
    return y


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "ensure_shape": mr.ensure_shape,
    "set_shape": by_set_shape,
    "reshape": mr.reshape,
}


@pytest.mark.behaviour("recorded-python")
@both
@cases("say", WAYS.values(), ids=WAYS)
def test_a_shape_that_is_said(say: Callable[[Any, Any], Any], call: OneOfBoth) -> None:
    given: list[Any] = []

    def kept(x: Any) -> Any:
        given.append(np.asarray(x))
        return np.asarray(x) * 2

    @mr.function
    def step(x: Any) -> Any:
        y = say(call(kept, [x + 1.0], mr.float32), [2])
        return y * y + y[0]

    for i in range(3):
        np.testing.assert_array_equal(step(mr.constant(X + i)), (z := (X + i + 1) * 2) * z + z[0])
    # What it is given is its own: the next run does not change it.
    np.testing.assert_array_equal(given, [X + 1, X + 2, X + 3])
    assert step.experimental_get_tracing_count() == 1


@both
def test_what_is_returned_needs_no_shape(call: OneOfBoth) -> None:
    @mr.function
    def step(n: Any) -> Any:
        ones = call(lambda n: np.ones(int(n), np.float32), [n], mr.float32)
        several = call(lambda n: [n, n * 0.5], [mr.cast(n, "float64")], [mr.float64, mr.float64])
        return {"ones": ones, "n": n + 1, "several": several}

    for n in (3, 1, 4):
        result = step(mr.constant(n))
        assert result["ones"].shape == (n,)
        assert [float(each) for each in result["several"]] == [n, n / 2]
        assert int(result["n"]) == n + 1
    spec = step.get_concrete_function(mr.constant(1)).structured_outputs["ones"]
    assert (spec.shape, spec.dtype) == (None, mr.float32)


@pytest.mark.behaviour("recorded-python")
@both
def test_what_nobody_reads_is_called_in_order(call: OneOfBoth) -> None:
    told: list[Any] = []

    @mr.function
    def step(x: Any) -> Any:
        call(lambda x: told.append(("first", float(x))), [x], [])
        call(lambda: told.append("none"), [], [])
        call(lambda x: told.append(("last", float(x))), [x * 2.0], [])
        return x

    for value in (1.0, 2.0):
        step(mr.constant(value))
    assert told == [("first", 1), "none", ("last", 2), ("first", 2), "none", ("last", 4)]


@both
@cases("dtype", ["float16", "float64", "int8", "uint64", "bool"])
def test_dtypes_come_as_they_are(dtype: str, call: OneOfBoth) -> None:
    seen: list[Any] = []

    def same(x: Any) -> Any:
        seen.append(np.asarray(x).dtype.name)
        return x

    result = mr.function(lambda x: mr.ensure_shape(call(same, [x], dtype), (2,)))(
        mr.constant(np.array([1, 0], dtype))
    )
    assert ([result.dtype, *seen], result.numpy().tolist()) == ([dtype, dtype], [1, 0])


@pytest.mark.behaviour("recorded-python")
@both
def test_another_shape_in_a_later_run_stops_it_before_anything_is_written(call: OneOfBoth) -> None:
    v, w = mr.Variable(X), mr.Variable(X)

    @mr.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        y = mr.ensure_shape(call(lambda x: np.asarray(x)[: int(x[0])], [x], mr.float32), (2,))
        w.assign_add(y)
        return y

    step(mr.constant([2.0, 5.0]))
    for _ in range(2):
        with pytest.raises(mr.errors.InvalidArgumentError, match=r"shape \[1\], but .* \[2\]"):
            step(mr.constant([1.0, 5.0]))
    with pytest.raises(IndexError):
        mr.function(lambda x: (v.assign(x), call(lambda x: [][0], [x], mr.float32))[1])(X)
    for each in (v, w):
        np.testing.assert_array_equal(each.numpy(), [3, 7])


REFUSED: dict[str, Callable[[Any], Any]] = {
    "an operator": lambda y: y * 2.0,
    "a function": mr.reduce_sum,
    "an element": lambda y: y[0],
    "its shape": lambda y: y.shape,
    "its values": lambda y: y.numpy(),
    "its truth": lambda y: 1 if y else 2,
    "a number": float,
    "an array": np.asarray,
    "a size that follows": lambda y: mr.reshape(y, (2, -1)),
    "no shape": lambda y: mr.ensure_shape(y, None),
    "a part of one": lambda y: mr.ensure_shape(y, (None,)),
    "a variable": lambda y: mr.Variable(X).assign(y),
}


@pytest.mark.behaviour("recorded-python")
@both
@cases("use", REFUSED.values(), ids=REFUSED)
def test_what_needs_its_shape(use: Callable[[Any], Any], call: OneOfBoth) -> None:
    ran: list[int] = []
    function = mr.function(lambda x: use(call(lambda x: ran.append(1), [x], mr.float32)))
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match=r"mr\.ensure_shape"):
        function(mr.constant(X))
    assert not ran


@pytest.mark.behaviour("recorded-python")
def test_gradients() -> None:
    """NumPy's have none, as in TensorFlow; of what computes with tensors it is refused."""

    def gradient(call: OneOfBoth) -> Any:
        @mr.function
        def step(x: Any) -> Any:
            with mr.GradientTape() as tape:
                tape.watch(x)
                y = mr.ensure_shape(call(twice, [x], mr.float32), (2,)) * 3.0
            return tape.gradient(y, x)

        return step(mr.constant(X))

    assert gradient(mr.numpy_function) is None
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match=r"mr\.custom_gradient"):
        gradient(mr.py_function)


def test_a_spec_says_the_shape() -> None:
    spec = mr.TensorSpec([2], mr.float32)
    function = mr.function(lambda x: mr.py_function(lambda x: x * x, [x], spec) + 1.0)
    np.testing.assert_array_equal(function(mr.constant(X)), X * X + 1)


@pytest.mark.behaviour("recorded-python")
@both
def test_replicas_call_it_one_after_the_other(call: OneOfBoth, simulate: Any) -> None:
    """Also where each would have a thread: it may wait there for the thread that called."""
    simulate(2)
    strategy = mr.MirroredStrategy(executor="threads")
    seen, threads = mr.Variable(0.0), set()

    def count(x: Any) -> Any:
        threads.add(threading.get_ident())
        seen.assign_add(1.0)
        return np.asarray(x) + 1

    @mr.function
    def step(x: Any) -> Any:
        return strategy.run(
            lambda x: mr.ensure_shape(call(count, [x], mr.float32), (2,)) * 2.0, (x,)
        )

    for _ in range(2):
        parts = strategy.experimental_local_results(step(mr.constant(X)))
    np.testing.assert_array_equal([each.numpy() for each in parts], [(X + 1) * 2] * 2)
    assert (float(seen), threads) == (4, {threading.get_ident()})


@both
def test_not_on_a_card(call: OneOfBoth, emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match="real GPU"):
        mr.function(lambda x: call(twice, [x], mr.float32))(mr.constant(X))


@both
def test_a_layer_that_calls_it_is_trained(call: OneOfBoth) -> None:
    class Rounded(mr.layers.Layer):
        def call(self, inputs: Any) -> Any:
            y = call(lambda x: np.round(np.asarray(x)), [inputs], mr.float32)
            return inputs + mr.stop_gradient(mr.ensure_shape(y, inputs.shape) - inputs)

    def trained(*, eagerly: bool) -> Any:
        mr.random.set_seed(1)
        model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(4), Rounded()])
        model.compile("sgd", "mse", run_eagerly=eagerly)
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(8, 3)), rng.normal(size=(8, 4))
        model.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False)
        return model.get_weights()

    for recorded, eager in zip(trained(eagerly=False), trained(eagerly=True), strict=True):
        np.testing.assert_array_equal(recorded, eager)
