"""`mr.nest`: forms, orders and errors, which are those that TensorFlow 2.21 gives."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from types import SimpleNamespace
from typing import Any

import pytest
from case_table import cases

import mirrored as mr

Point = namedtuple("Point", "x y")


class Items(list[Any]):
    pass


class Pair:
    """A class as attrs makes them."""

    __attrs_attrs__ = (SimpleNamespace(name="b"), SimpleNamespace(name="a"))

    def __init__(self, b: Any, a: Any) -> None:
        self.b, self.a = b, a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and (self.b, self.a) == (other.b, other.a)


@dataclasses.dataclass
class Flat:
    """A dataclass that says how it is flat."""

    kind: str
    value: Any

    def __tf_flatten__(self) -> tuple[Any, ...]:
        return (self.kind,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, parts: Any) -> "Flat":
        return cls(*metadata, *parts)


STRUCTURES = [
    (3, [3]),
    (None, [None]),
    ("ab", ["ab"]),
    (b"ab", [b"ab"]),
    ([], []),
    ([1, [2, (3, {"b": 4, "a": 5})]], [1, 2, 3, 5, 4]),
    (OrderedDict([("b", 1), ("a", 2)]), [2, 1]),
    (defaultdict(list, b=1, a=2), [2, 1]),
    ({2: 1, 1: 5}, [5, 1]),
    (Point(1, [2]), [1, 2]),
    (deque([1, 2]), [1, 2]),
    (Items([1, 2]), [1, 2]),
    (Pair(1, 2), [1, 2]),
    (Flat("k", 2), [2]),
    (mr.TensorShape((2, 3)), [mr.TensorShape((2, 3))]),
    (mr.TensorSpec((2,)), [mr.TensorSpec((2,))]),
    ({1, 2}, [{1, 2}]),
]


@cases(("structure", "leaves"), STRUCTURES, ids=lambda each: type(each).__name__)
def test_structures(structure: Any, leaves: list[Any]) -> None:
    assert mr.nest.flatten(structure) == leaves
    assert mr.nest.is_nested(structure) == (leaves != [structure])
    packed = mr.nest.pack_sequence_as(structure, leaves)
    mapped = mr.nest.map_structure(lambda leaf: leaf, structure)
    assert packed == mapped == structure
    assert type(packed) is type(mapped) is type(structure)


@cases(
    ("structure", "leaves"),
    [(range(3), [0, 1, 2]), ({"a": 1}.items(), ["a", 1]), ({"b": 1, "a": 2}.keys(), ["b", "a"])],
)
def test_ranges_and_views_become_lists(structure: Any, leaves: list[Any]) -> None:
    assert mr.nest.flatten(structure) == leaves
    assert mr.nest.map_structure(lambda leaf: leaf, structure) == list(structure)


SAME: list[tuple[Any, Any, type[Exception] | None, type[Exception] | None]] = [
    ([1], ["a"], None, None),
    (1, None, None, None),
    ([1], (2,), TypeError, None),
    ([1], [2, 3], ValueError, ValueError),
    ([1], 1, ValueError, ValueError),
    ([[1], 2], [1, [2]], ValueError, ValueError),
    ("ab", [1], ValueError, ValueError),
    ({"a": 1}, {"b": 1}, ValueError, None),
    ({"a": 1}, {"a": 1, "b": 2}, ValueError, ValueError),
    ({"a": 1}, OrderedDict(a=2), None, None),
    (Point(1, 2), namedtuple("Point", "x y")(1, 2), None, None),
    (Point(1, 2), namedtuple("Other", "x y")(1, 2), TypeError, None),
    (Point(1, 2), (1, 2), TypeError, None),
    (Items([1]), [1], None, None),
    (deque([1]), [1], TypeError, None),
    ([], {}, TypeError, None),
]


@cases(("first", "second", "error", "unchecked"), SAME)
@cases("check_types", [True, False])
def test_same_structures(
    first: Any,
    second: Any,
    error: type[Exception] | None,
    unchecked: type[Exception] | None,
    check_types: bool,
) -> None:
    wanted = error if check_types else unchecked
    if wanted is None:
        mr.nest.assert_same_structure(first, second, check_types=check_types)
        return
    with pytest.raises(wanted, match=r"^The two structures don't have") as caught:
        mr.nest.assert_same_structure(first, second, check_types)
    assert type(caught.value) is wanted
    with pytest.raises(wanted):
        mr.nest.map_structure(lambda *_: 0, first, second, check_types=check_types)


@cases(
    ("call", "error", "text"),
    [
        (lambda: mr.nest.flatten({1: 1, "a": 2}), TypeError, "'<' not supported"),
        (lambda: mr.nest.map_structure(3, [1]), TypeError, "func must be callable"),
        (lambda: mr.nest.map_structure(len), ValueError, "at least one structure"),
        (lambda: mr.nest.map_structure(len, [], foo=2), ValueError, "not: `foo`"),
        (lambda: mr.nest.pack_sequence_as([1, 2], [1]), ValueError, "had 2 atoms, but .* had 1"),
        (lambda: mr.nest.pack_sequence_as([1], 4), TypeError, "Attempted to pack value"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_tensors_are_mapped_in_structures() -> None:
    mapped = mr.nest.map_structure(lambda x, y: x + y, {"a": mr.constant(1)}, {"a": mr.constant(2)})
    assert int(mapped["a"]) == 3
