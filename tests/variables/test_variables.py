"""Variables: values that can be assigned, and the creators that make them."""

import gc
import logging
import weakref
from typing import Any

import numpy as np
import pytest

from mirrored import devices, ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError, ResourceExhaustedError
from mirrored.variables import (
    DeviceVariable,
    Home,
    Variable,
    VariableAggregation,
    VariableSynchronization,
    variable_creator_scope,
)


def test_attributes() -> None:
    v = Variable([1.0, 2.0], name="q", trainable=False, aggregation=VariableAggregation.SUM)
    assert (v.name, v.shape, v.dtype, v.trainable) == ("q:0", (2,), ops.float32, False)
    assert v.aggregation is VariableAggregation.SUM
    assert v.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert isinstance(v, Variable)
    assert Variable(1).name == "Variable:0"
    assert Variable(1).trainable is True
    assert Variable(1).aggregation is VariableAggregation.NONE


def test_repr_and_format() -> None:
    v = Variable([1.0, 2.0], name="q")
    text = "<mr.Variable 'q:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"
    assert repr(v) == str(v) == f"{v}" == text
    scalar = Variable(3.0)
    assert repr(scalar) == "<mr.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>"
    assert f"{scalar:.2f}" == "3.00"


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, None, "int32"),
        (3, "float64", "float64"),
        (np.float64(3), None, "float64"),
        (lambda: 3.0, None, "float32"),
        (lambda: ops.constant(3, "int64"), None, "int64"),
        (lambda: ops.constant(3.0), "float64", "float64"),
        (np.int64(3), "float32", "float32"),
    ],
)
def test_initial_value(value: Any, dtype: Any, expected: str) -> None:
    v = Variable(value, dtype=dtype)
    assert v.dtype == np.dtype(expected)
    assert v.numpy() == 3


def test_initial_values_made_of_tensors() -> None:
    x = ops.constant([1.0, 2.0], "float64")
    assert Variable(x).dtype == ops.float64
    assert Variable([x, x]).shape == (2, 2)
    assert Variable(Variable(x)).numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "The `initial_value` arg to `mr.Variable` is required"),
        ({"initial_value": "a"}, TypeError, "Received: 'a'"),
        ({"initial_value": 1.5, "dtype": "int32"}, TypeError, "Cannot convert 1.5"),
        ({"initial_value": 1.0, "dtype": "complex64"}, TypeError, "Received: 'complex64'"),
        (
            {"initial_value": 1.0, "name": "v", "aggregation": "sum"},
            ValueError,
            "Invalid variable aggregation mode: sum for variable: v",
        ),
    ],
)
def test_bad_arguments(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Variable(**arguments)


def test_assign() -> None:
    v = Variable([1.0, 2.0])
    assert v.assign([3.0, 4.0]) is v
    assert v.assign_add([1.0, 1.0]) is v
    assert v.assign_sub(np.float64([0.5, 0.5])) is v
    np.testing.assert_array_equal(v.numpy(), [3.5, 4.5])
    v.assign(v * 2.0)
    v.assign_add(v)
    np.testing.assert_array_equal(v.numpy(), [14.0, 18.0])
    counter = Variable(1, dtype="int64")
    counter.assign_add(1)
    assert counter.dtype == ops.int64
    assert int(counter) == 2


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_an_assign_that_does_not_fit_changes_nothing(method: str) -> None:
    v = Variable([1.0, 2.0])
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        getattr(v, method)([1.0, 2.0, 3.0])
    assert str(caught.value) == (
        "Cannot assign value to variable ' Variable:0': Shape mismatch.The variable shape (2,), "
        "and the assigned value shape (3,) are incompatible."
    )
    with pytest.raises(ValueError, match="Shape mismatch"):
        getattr(v, method)(1.0)
    with pytest.raises(InvalidArgumentError, match="a float tensor but is a double tensor"):
        getattr(v, method)(ops.constant(np.ones(2)))
    with pytest.raises(TypeError, match="Received: 'a'"):
        getattr(v, method)("a")
    np.testing.assert_array_equal(v.numpy(), [1.0, 2.0])


def test_a_read_is_a_snapshot() -> None:
    v = Variable([1.0, 2.0])
    reads = (v.read_value, v.value, lambda: ops.convert_to_tensor(v), lambda: ops.identity(v))
    for read in reads:
        before = read()
        v.assign_add([1.0, 1.0])
        np.testing.assert_array_equal(before.numpy() + 1.0, v.numpy())


def test_the_initial_tensor_and_the_variable_do_not_share_changes() -> None:
    x = ops.constant([1.0])
    v = Variable(x)
    v.assign_add([1.0])
    assert (float(x[0]), float(v[0])) == (1.0, 2.0)


def test_it_computes_as_a_tensor() -> None:
    v = Variable([1.0, 2.0])
    np.testing.assert_array_equal((v + v).numpy(), [2.0, 4.0])
    np.testing.assert_array_equal((2.0 * v - np.ones(2)).numpy(), [1.0, 3.0])
    np.testing.assert_array_equal(ops.reduce_sum(v).numpy(), 3.0)
    np.testing.assert_array_equal(np.asarray(v), [1.0, 2.0])
    assert len(v) == 2
    assert float(v[1]) == 2.0
    assert [float(each) for each in v] == [1.0, 2.0]
    assert (v.ndim, v.size) == (1, 2)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**", "@"])
def test_assignment_operators_are_errors(symbol: str) -> None:
    names = {"v": Variable([[1.0]], name="w")}
    with pytest.raises(RuntimeError, match=r"Use `variable.assign_add\(value\)`.*variable 'w:0'"):
        exec(f"v {symbol}= 1.0", names)
    assert isinstance(names["v"], Variable)


def test_log(caplog: pytest.LogCaptureFixture) -> None:
    devices.set_log_device_placement(True)

    def logged(function: Any) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.INFO, "mirrored"):
            function()
        return [message.split()[2] for message in caplog.messages if "Executing" in message]

    v = Variable(1.0)
    assert logged(lambda: Variable(1.0)) == ["_EagerConst", "VarHandleOp", "AssignVariableOp"]
    assert logged(lambda: v.assign(2.0)) == ["_EagerConst", "AssignVariableOp"]
    assert logged(lambda: v.assign_add(2.0)) == ["_EagerConst", "AssignAddVariableOp"]
    assert logged(lambda: v.assign_sub(2.0)) == ["_EagerConst", "AssignSubVariableOp"]
    assert logged(lambda: v + v) == ["ReadVariableOp", "ReadVariableOp", "AddV2"]


def test_it_stays_on_its_device(simulate: Any) -> None:
    simulate(2)
    with devices.device("GPU:1"):
        v = Variable([1.0])
    assert v.device.endswith("GPU:1")
    v.assign([2.0])
    v.assign_add(ops.constant([1.0]))
    assert v.read_value().device.endswith("GPU:1")
    assert (v + 1.0).device.endswith("GPU:0")
    assert float(v[0]) == 3.0
    elsewhere, pool = ops.ones((1,)), devices.get_device("GPU:1").pool
    v.assign(elsewhere)
    assert pool.current == v.numpy().nbytes
    assert v.read_value().device.endswith("GPU:1")


def test_memory(simulate: Any) -> None:
    simulate(1)
    pool = devices.get_device("GPU:0").pool
    v = Variable(lambda: ops.zeros((100, 10)))
    assert pool.current == 4000
    for _ in range(3):
        v.assign(ops.ones((100, 10)))
        v.assign_add(ops.ones((100, 10)))
    assert pool.current == 4000
    del v
    assert pool.current == 0


def test_it_does_not_keep_the_logits_of_probabilities_alive() -> None:
    logits = ops.constant([[1.0, 2.0]])
    v = Variable(ops.softmax(logits))
    alive = weakref.ref(logits)
    del logits
    gc.collect()
    assert alive() is None
    assert v.shape == (1, 2)


def test_an_assign_without_room_changes_nothing(simulate: Any) -> None:
    simulate(1, 1)
    v = Variable(lambda: ops.ones((200_000,)))
    with pytest.raises(ResourceExhaustedError):
        v.assign_add(np.ones(200_000, np.float32))
    assert devices.get_device("GPU:0").pool.current == 800_000
    assert float(v[0]) == 1.0


def test_creators() -> None:
    calls: list[Any] = []

    def creator(name: str) -> Any:
        def create(next_creator: Any, **kwargs: Any) -> Variable:
            calls.append((name, kwargs["name"], kwargs["synchronization"]))
            return next_creator(**{**kwargs, "name": f"{name}/{kwargs['name']}"})

        return create

    with variable_creator_scope(creator("outer")), variable_creator_scope(creator("inner")):
        v = Variable(1.0, name="v", synchronization=VariableSynchronization.ON_READ)
    assert [call[:2] for call in calls] == [("inner", "v"), ("outer", "inner/v")]
    assert calls[0][2] is VariableSynchronization.ON_READ
    assert v.name == "outer/inner/v:0"
    assert Variable(1.0).name == "Variable:0"


def test_creators_are_forgotten_after_an_error() -> None:
    def failing(next_creator: Any, **kwargs: Any) -> Variable:
        raise KeyError(kwargs["name"])

    with pytest.raises(KeyError), variable_creator_scope(failing):
        Variable(1.0)
    assert Variable(2.0).numpy() == 2.0


def test_prepare_and_commit() -> None:
    v = DeviceVariable(ops.constant([1.0]))
    ((copy, value),) = v.prepare("assign_add", [2.0])
    assert float(v[0]) == 1.0
    copy.commit(value, "assign_add")
    assert float(v[0]) == 3.0


def test_assigning_a_tensor_that_a_tape_follows() -> None:
    """A variable's value is a constant to the tape; only reads of the variable are followed."""
    x, v = ops.constant([2.0]), Variable([1.0])
    with GradientTape() as tape:
        tape.watch(x)
        v.assign(x * x)
        y = v * 3.0
    by_x, by_v = tape.gradient(y, [x, v])
    assert by_x is None
    assert float(by_v[0]) == 3.0


# ------------------------------------------------------------------------------ memory that stays


def test_a_pinned_variable_is_as_it_was() -> None:
    v = DeviceVariable(ops.constant([1.0, 2.0]), name="q")
    home, offset = v.pinned()
    assert v.pinned() == (home, offset) == (home, 0)
    assert (v.name, v.shape, v.dtype) == ("q:0", (2,), ops.float32)
    np.testing.assert_array_equal(v.numpy(), [1, 2])
    v.assign([3.0, 4.0])
    v.assign_add([1.0, 1.0])
    assert v.pinned() == (home, 0)
    np.testing.assert_array_equal(home.storage.array, [4, 5])


def test_a_variable_moves_in_among_others() -> None:
    v = DeviceVariable(ops.constant([[1.0, 2.0]]))
    home = Home(v.pinned()[0].device, ops.float32, 5)
    home.storage.array[:] = 9
    v.move(home, 2)
    np.testing.assert_array_equal(home.storage.array, [9, 9, 1, 2, 9])
    assert v.pinned() == (home, 2)
    v.assign([[3.0, 4.0]])
    np.testing.assert_array_equal(home.storage.array, [9, 9, 3, 4, 9])
    assert v.shape == (1, 2)


def test_a_read_after_pinning_is_a_snapshot(record: Any) -> None:
    """Neither an assign nor a step of a program changes it, nor what was computed from it."""
    v = Variable([1.0, 2.0])
    before = v.read_value()
    v.pinned()
    pinned, view = v.read_value(), ops.reshape(v, (2, 1))
    v.assign_add([1.0, 1.0])
    between = v.read_value()

    def step(x: ops.Tensor) -> list[ops.Tensor]:
        v.assign(v * 10.0)
        return [x * 1.0]

    recorded = record(step, [np.zeros(1, np.float32)])
    recorded(np.zeros(1, np.float32))
    np.testing.assert_array_equal(v.numpy(), [20, 30])
    for each in (before, pinned, view):
        np.testing.assert_array_equal(each.numpy().ravel(), [1, 2])
    np.testing.assert_array_equal(between.numpy(), [2, 3])
    with GradientTape() as tape:
        y = v * v
        v.assign([0.0, 0.0])
    np.testing.assert_array_equal(tape.gradient(y, v).numpy(), [40, 60])


def test_a_pinned_variables_failed_write_changes_nothing(simulate: Any) -> None:
    simulate(1)
    v = Variable([1.0, 2.0])
    v.pinned()
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([1.0])
    np.testing.assert_array_equal(v.numpy(), [1, 2])
