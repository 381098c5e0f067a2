"""`cache` with a filename: elements are made once, and later programs read them."""

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr

Dataset = mr.data.Dataset
Pair = namedtuple("Pair", ["first", "second"])


def values(dataset: Any) -> list[Any]:
    return mr.nest.map_structure(np.ndarray.tolist, list(map(arrays, dataset.as_numpy_iterator())))


def arrays(element: Any) -> Any:
    return mr.nest.map_structure(np.asarray, element)


def counted(calls: list[int], count: int = 4) -> Any:
    def note(x: Any) -> Any:
        calls.append(int(x))
        return {"b": mr.cast(x, mr.bfloat16), "a": (x, mr.ones([2, 1]) * 0.5)}

    return Dataset.range(count).map(note)


def test_elements_are_made_once(tmp_path: Path) -> None:
    path, calls = tmp_path / "elements", []
    expected = values(counted([]))
    dataset = counted(calls).cache(path).repeat(2)
    unfinished = iter(dataset)
    next(unfinished)
    unfinished.close()
    assert not list(tmp_path.iterdir())
    assert values(dataset) == expected * 2
    assert calls == [0, 0, 1, 2, 3]
    assert [each.name for each in tmp_path.iterdir()] == ["elements"]
    other = counted(calls, 9).cache(str(path))  # The file counts, as in TensorFlow.
    assert values(other.shuffle(1)) == expected
    element = next(iter(other))
    assert list(element) == ["b", "a"]
    assert element["b"].dtype == mr.bfloat16
    assert len(calls) == 5


def test_what_could_not_be_made_is_left_out(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return mr.debugging.check_numerics(1 / x, "an inverse")

    dataset = Dataset.from_tensor_slices([1.0, 0.0, 4.0]).map(function).cache(tmp_path / "x")
    iterator = iter(dataset)
    next(iterator)
    with pytest.raises(mr.errors.InvalidArgumentError):
        next(iterator)
    assert [float(each) for each in iterator] == [0.25]
    assert values(dataset) == [1.0, 0.25]


def test_known_structures_stay(tmp_path: Path) -> None:
    dataset = Dataset.from_tensor_slices(Pair([1, 2], [3.0, 4.0])).cache(tmp_path / "pairs")
    for _ in range(2):
        assert [(int(each.first), float(each.second)) for each in dataset] == [(1, 3), (2, 4)]
    empty = Dataset.range(0).cache(tmp_path / "empty")
    assert values(empty) == values(empty) == []


def test_another_structure_is_refused(tmp_path: Path) -> None:
    values(Dataset.from_tensor_slices({"a": [1, 2], "b": [3, 4]}).cache(tmp_path / "x"))
    swapped = Dataset.from_tensor_slices({"b": [0, 0], "a": [0, 0]}).cache(tmp_path / "x")
    assert values(swapped) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    for other in ({"a": [1, 2], "c": [3, 4]}, {"a": [1], "b": [1.5]}, ([1], [2]), [1]):
        dataset = Dataset.from_tensor_slices(other).cache(tmp_path / "x")
        with pytest.raises(ValueError, match=r"'b': 'int32'.*the dataset has.* Delete"):
            values(dataset)


def test_damage_is_found(tmp_path: Path) -> None:
    path = tmp_path / "elements"
    dataset = Dataset.range(3).cache(path)
    values(dataset)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[place] ^= 4
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"cannot be read from .*elements.* Delete the file"):
            values(dataset)
        path.write_bytes(content[:place])
        with pytest.raises(ValueError, match="Delete the file"):
            values(dataset)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        Dataset.range(1).cache(tmp_path)
    with pytest.raises(FileNotFoundError, match="create it first"):
        Dataset.range(1).cache(tmp_path / "none" / "x")
    with pytest.raises(TypeError, match="values of type Dataset"):
        Dataset.range(4).window(2).cache(tmp_path / "x")
