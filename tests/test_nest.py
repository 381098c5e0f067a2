"""Structures of lists, tuples and dicts."""

from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrored import _nest

Point = namedtuple("Point", "x y")
STRUCTURES = st.recursive(
    st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3)
        | st.tuples(inner, inner).map(lambda pair: Point(*pair))
    ),
)


@cases(
    ("structure", "leaves"),
    [
        (3, [3]),
        (None, [None]),
        ("ab", ["ab"]),
        ([], []),
        ([1, (2, [3])], [1, 2, 3]),
        ({"b": 1, "a": [2, 3]}, [2, 3, 1]),
        ({1: "x", "a": "y"}, ["x", "y"]),
        (Point(1, {"k": 2}), [1, 2]),
    ],
)
def test_flatten(structure: Any, leaves: list[Any]) -> None:
    assert _nest.flatten(structure) == leaves


@settings(max_examples=30)
@given(STRUCTURES)
def test_packing_what_was_flattened_gives_the_structure(structure: Any) -> None:
    packed = _nest.pack_like(structure, _nest.flatten(structure))
    assert packed == structure
    assert type(packed) is type(structure)


@settings(max_examples=30)
@given(STRUCTURES)
def test_map_meets_the_leaves_in_the_order_of_flatten(structure: Any) -> None:
    met: list[Any] = []
    mapped = _nest.map_structure(lambda x, y: met.append(x) or (x + y), structure, structure)
    assert met == _nest.flatten(structure)
    assert _nest.flatten(mapped) == [2 * leaf for leaf in met]


def test_named_tuples_and_orders_of_keys_stay() -> None:
    mapped = _nest.map_structure(lambda x: -x, Point(1, {"b": 2, "a": 3}))
    assert mapped == Point(-1, {"b": -2, "a": -3})
    assert list(mapped.y) == ["b", "a"]


@cases(
    ("first", "second", "where"),
    [
        ([1, 2], [1], "at the top: number 0 has a list of 2, number 1 has a list of 1"),
        ([1], (1,), "at the top: number 0 has a list of 1, number 1 has a tuple of 1"),
        (1, [1], "at the top: number 0 has a int, number 1 has a list of 1"),
        ([1], 1, "at the top: number 0 has a list of 1, number 1 has a int"),
        ({"a": [1]}, {"a": 1}, r"at \['a'\]: number 0 has a list of 1, number 1 has a int"),
        ([{"a": 1}], [{"b": 1}], r"at \[0\]: .* keys \['a'\], .* keys \['b'\]"),
        ({"a": (1, [2, 3])}, {"a": (1, [2])}, r"at \['a'\]\[1\]: number 0 has a list of 2"),
        (Point(1, 2), (1, 2), "number 0 has a Point of 2, number 1 has a tuple of 2"),
    ],
)
def test_structures_that_differ(first: Any, second: Any, where: str) -> None:
    with pytest.raises(ValueError, match=where):
        _nest.map_structure(lambda x, y: x, first, second)


def test_messages_say_what_differs() -> None:
    with pytest.raises(ValueError, match="replica 0 has a int, replica 2 has a list of 0"):
        _nest.map_structure(lambda *xs: xs, 1, 2, [], label="replica")


class Batch(dict[str, Any]):
    """A dict of a user's own kind."""


@cases(
    ("mapping", "kind"),
    [
        ({"b": 1, "a": 2}, dict),
        (OrderedDict(b=1, a=2), OrderedDict),
        (Batch(b=1, a=2), Batch),
        (defaultdict(int, b=1, a=2), dict),
    ],
)
def test_dicts_keep_their_type_and_order(mapping: dict[str, int], kind: type) -> None:
    doubled = _nest.map_structure(lambda leaf: 2 * leaf, [mapping])[0]
    assert type(doubled) is kind
    assert list(doubled.items()) == [("b", 2), ("a", 4)]
