"""Tensors from and for NumPy and whatever has the protocol of DLPack."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError

to, back = mr.experimental.dlpack.to_dlpack, mr.experimental.dlpack.from_dlpack
# NumPy 2.0 reads a copy, since its capsules cannot say that memory is read-only.
READS_COPIES = np.lib.NumpyVersion(np.__version__) < "2.1.0"
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


class Exported:
    """Has the protocol of DLPack and no other, as a tensor of another library may."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@cases("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
@cases("values", [[[1, 0], [1, 1]], 1, np.zeros((0, 2))])
def test_values_travel(values: Any, dtype: str) -> None:
    tensor = mr.constant(np.asarray(values, dtype))
    for array in (np.from_dlpack(tensor), back(to(tensor)).numpy(), np.array(tensor, copy=False)):
        assert (array.dtype, array.shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_array_equal(array, tensor.numpy())
    assert tensor.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(
            np.from_dlpack, marks=pytest.mark.skipif(READS_COPIES, reason="NumPy 2.1 shares memory")
        ),
        lambda x: np.array(x, copy=False),
    ],
)
def test_what_is_shared_cannot_be_written_and_is_counted(read: Callable[..., Any]) -> None:
    tensor = mr.constant(np.arange(1000.0))
    before = mr.config.experimental.get_memory_info("CPU:0")["current"]
    array = read(tensor)
    assert np.shares_memory(array, tensor._array)
    assert not array.flags.writeable
    del tensor
    assert mr.config.experimental.get_memory_info("CPU:0")["current"] == before
    assert array[-1] == 999.0
    del array
    assert mr.config.experimental.get_memory_info("CPU:0")["current"] == before - 8000


def test_what_is_not_shared_is_a_copy_or_refused() -> None:
    tensor = mr.constant([1.0, 2.0])
    copied = np.array(tensor) if READS_COPIES else np.from_dlpack(tensor, copy=True)
    old = np.from_dlpack(Exported(copied))
    assert not np.shares_memory(old, tensor._array)
    assert np.asarray(tensor).flags.writeable  # A copy.
    for value, dtype in [(tensor, "float64"), (mr.Variable([1.0]), None)]:
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            np.array(value, dtype, copy=False)
    with pytest.raises(BufferError, match="copy=False"):
        tensor.__dlpack__(copy=False)
    with pytest.raises(OperatorNotAllowedInGraphError):
        mr.function(lambda x: np.from_dlpack(x))(tensor)


def test_bfloat16_is_read_where_it_is() -> None:
    tensor = mr.cast([1.5, 2.0], mr.bfloat16)
    array = np.array(tensor, copy=False)
    assert array.dtype == mr.bfloat16
    assert array.tolist() == [1.5, 2.0]


def test_other_libraries_values_become_tensors() -> None:
    array = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    for value in (Exported(array.T), Exported(np.ascontiguousarray(array.T))):
        tensor = mr.convert_to_tensor(value)
        assert tensor.dtype == mr.float32
        np.testing.assert_array_equal(tensor.numpy(), array.T)
        np.testing.assert_array_equal((tensor + value).numpy(), array.T * 2)
    np.testing.assert_array_equal(back(array.T.__dlpack__()).numpy(), array.T)


def test_arrays_of_objects_are_refused_as_ever() -> None:
    with pytest.raises(TypeError, match="Cannot make a tensor of dtype object"):
        mr.convert_to_tensor(np.array([1, None]))


def test_what_is_no_capsule_and_no_tensor() -> None:
    capsule = to(mr.constant([1.0]))
    back(capsule)
    with pytest.raises(BufferError, match="read only once"):
        back(capsule)
    with pytest.raises(TypeError, match="takes a capsule"):
        back(np.ones(2))
    for value in (3, [1.0], mr.Variable([1.0])):
        with pytest.raises(InvalidArgumentError, match="must be a tensor"):
            to(value)


def test_tensors_of_a_card_are_copied_to_the_host(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    tensor = mr.constant([1.0, 2.0])
    assert tensor.device.endswith("GPU:0")
    assert np.from_dlpack(tensor).tolist() == back(to(tensor)).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(tensor, copy=False)
