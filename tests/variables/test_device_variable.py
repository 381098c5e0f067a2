"""Variables on one device: their memory, their place in the log, and writes that fail."""

import gc
import logging
import weakref
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import devices, ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError, ResourceExhaustedError
from mirrored.program.variable_access import Writes
from mirrored.variables import DeviceVariable, Variable, VariableStorage


@cases(
    ("value", "dtype", "expected"),
    [
        (3, None, "int32"),
        (3, "float64", "float64"),
        (np.float64(3), None, "float64"),
        (lambda: 3.0, None, "float32"),
        (lambda: ops.constant(3, "int64"), None, "int64"),
        (lambda: np.float32(3.0), "float64", "float64"),
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


@pytest.mark.behaviour("assign-another-shape")
@cases("method", ["assign", "assign_add", "assign_sub"])
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


def test_the_initial_tensor_and_the_variable_do_not_share_changes() -> None:
    x = ops.constant([1.0])
    v = Variable(x)
    v.assign_add([1.0])
    assert (float(x[0]), float(v[0])) == (1.0, 2.0)


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


def test_prepare_and_commit() -> None:
    v = DeviceVariable(ops.constant([1.0]))
    ((copy, value),) = v.prepare("assign_add", [2.0])
    assert float(v[0]) == 1.0
    copy.commit(value, "assign_add")
    assert float(v[0]) == 3.0


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
    home = VariableStorage(v.pinned()[0].device, ops.float32, 5)
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


def test_what_is_there_already_is_not_written_again() -> None:
    v = Variable(0.0, dtype="float64")
    assert isinstance(v, DeviceVariable)
    v.set_in_place(np.array(2.0))
    written = Writes.count
    v.set_in_place(np.array(2.0))
    assert Writes.count == written
    v.set_in_place(np.array(-0.0))
    v.set_in_place(np.array(0.0))
    assert Writes.count == written + 2
    assert not np.signbit(v.numpy())
