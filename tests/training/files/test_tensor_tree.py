"""What all formats of weights share: names, checksums, comparisons and errors."""

from pathlib import Path

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import WeightsFileError
from mirrored.training.files import tensor_tree


def test_a_checksum_is_of_the_values_in_the_order_of_files() -> None:
    """It depends neither on the byte order in memory nor on strides, but on a description."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    same = [array.astype(">f4"), np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, ::2]]
    assert {tensor_tree.checksum(x) for x in same} == {tensor_tree.checksum(array)}
    assert tensor_tree.checksum(array, "kernel") != tensor_tree.checksum(array)
    assert tensor_tree.checksum(array + 1) != tensor_tree.checksum(array)
    assert tensor_tree.little_endian(np.array(258, ">i2")).tolist() == [2, 1]


def test_words_come_back() -> None:
    words = [0, 1, 2**63, 2**64 - 1]
    integers = tensor_tree.as_integers(words)
    assert (integers.dtype, tensor_tree.as_words(integers)) == (np.int64, words)


def test_names_of_what_is_there_twice() -> None:
    first, second = mr.Variable(1.0), mr.Variable(2.0)
    named = tensor_tree.named_by_place([("w", first), ("w", second), ("other", first)])
    assert [*named.items()] == [("w", first), ("w_1", second)]


def test_differences_are_listed_with_the_rest_as_a_number() -> None:
    specs = {"a": ((2,), "float32"), "b": ((), "int64"), "c": ((), "bool")}
    expected = {"a": ((3,), np.float32), "b": ((), np.int32), "d": ((), np.bool_)}
    problems = tensor_tree.differences(specs, expected, "model")
    assert sorted(problems) == [
        "'a' has shape (2,), the model's has (3,)",
        "'b' is int64, the model's is int32",
        "no 'd'",
        "unexpected 'c'",
    ]
    tensor_tree.raise_differences("The file", [], "model")
    with pytest.raises(
        WeightsFileError, match=r"^The file belongs to another model: no 'd'; .*and 3 m"
    ):
        tensor_tree.raise_differences("The file", ["no 'd'"] * 8, "model")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with (
        pytest.raises(WeightsFileError, match=r"The log .* is a folder\. Pass the path"),
        tensor_tree.opened(str(tmp_path), "log"),
    ):
        pass
