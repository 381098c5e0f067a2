"""`keras.tree`: what Keras 3.15 returns for the same structures, and its errors."""

import time
from collections import OrderedDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr

T = mr.keras.tree
Point = namedtuple("Point", ["x", "y"])
Other = namedtuple("Other", ["x", "y"])
NESTED = [(1, 2), [3], {"b": 4, "a": None}]
ORDERED = OrderedDict([("b", 1), ("a", [2])])


class OwnList(list):
    """A list of a user's, which is a leaf."""


def visited(top_down: bool) -> list[Any]:
    found: list[Any] = []
    T.traverse(found.append, [(1, 2), {"a": 4}], top_down=top_down)
    return found


CALLS: dict[str, tuple[Callable[[], Any], Any]] = {
    "flatten": (lambda: T.flatten(NESTED), [1, 2, 3, None, 4]),
    "flatten a leaf": (lambda: T.flatten(5), [5]),
    "flatten in an own order": (lambda: T.flatten(ORDERED), [1, 2]),
    "flatten a deque": (lambda: T.flatten(deque([1, (2,)])), [1, 2]),
    "flatten leaves": (lambda: T.flatten([range(2), OwnList([1])]), [range(2), OwnList([1])]),
    "is_nested": (
        lambda: [
            T.is_nested(each)
            for each in (ORDERED, Point(1, 2), deque(), (), time.gmtime(0), defaultdict(int))
        ],
        [True] * 6,
    ),
    "is_nested of leaves": (
        lambda: [
            T.is_nested(each)
            for each in (None, "ab", {1}, range(2), OwnList(), UserList(), {}.keys(), b"")
        ],
        [False] * 8,
    ),
    "flatten_with_path": (
        lambda: T.flatten_with_path(Point(1, [{"a": 2}])),
        [((0,), 1), ((1, 0, "a"), 2)],
    ),
    "map_structure": (lambda: T.map_structure(lambda x: -x, Point(1, (2,))), Point(-1, (-2,))),
    "map_structure of several": (
        lambda: T.map_structure(lambda x, y: x + y, ORDERED, {"a": [3], "b": 4}),
        OrderedDict([("b", 5), ("a", [5])]),
    ),
    "map_structure and None": (
        lambda: T.map_structure(str, [1, None], none_is_leaf=False),
        ["1", None],
    ),
    "map_structure_up_to": (
        lambda: T.map_structure_up_to([0, [0, 0]], str, [[1], [[2], 3]]),
        ["[1]", ["[2]", "3"]],
    ),
    "pack_sequence_as": (
        lambda: T.pack_sequence_as({"b": 0, "a": (0,)}, iter([1, 2])),
        {"b": 2, "a": (1,)},
    ),
    "pack_sequence_as a leaf": (lambda: T.pack_sequence_as(3, [[1]]), [1]),
    "pack_sequence_as a deque": (
        lambda: T.pack_sequence_as(deque([0], maxlen=3), [2]).maxlen,
        3,
    ),
    "pack_sequence_as a defaultdict": (
        lambda: T.pack_sequence_as(defaultdict(list, {"b": 0}), [2])["a"],
        [],
    ),
    "lists_to_tuples": (
        lambda: T.lists_to_tuples(NESTED),
        ((1, 2), (3,), {"b": 4, "a": None}),
    ),
    "map_shape_structure": (
        lambda: T.map_shape_structure(len, [(None, 2), {"a": [3]}, "abc", ()]),
        [2, {"a": 1}, 3, 0],
    ),
    "traverse to None": (
        lambda: T.traverse(lambda x: T.MAP_TO_NONE if x == 2 else None, [1, (2,)]),
        [1, (None,)],
    ),
    "traverse no part of what changes": (
        lambda: T.traverse(lambda x: len(x) if isinstance(x, tuple) else None, NESTED)[0],
        2,
    ),
    "traverse from the top": (
        lambda: visited(True),
        [[(1, 2), {"a": 4}], (1, 2), 1, 2, {"a": 4}, 4],
    ),
    "traverse to the top": (
        lambda: visited(False),
        [1, 2, (1, 2), 4, {"a": 4}, [(1, 2), {"a": 4}]],
    ),
    "assert_same_paths": (lambda: T.assert_same_paths([1, (2,)], Point(3, deque([4]))), None),
    "assert_same_structure": (
        lambda: T.assert_same_structure(ORDERED, defaultdict(int, {"a": [1], "b": 2})),
        None,
    ),
}


@cases(("call", "expected"), CALLS.values(), ids=CALLS)
def test_results(call: Callable[[], Any], expected: Any) -> None:
    result = call()
    assert (result, type(result)) == (expected, type(expected))


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: T.assert_same_structure([1], (1,)), ValueError, "same nested structure"),
    (lambda: T.assert_same_structure([1], [[1]]), ValueError, "same nested structure"),
    (lambda: T.assert_same_structure([[1]], [1]), ValueError, "same nested structure"),
    (lambda: T.assert_same_structure(Point(1, 2), Other(1, 2)), ValueError, "nested structure"),
    (lambda: T.assert_same_structure({"a": 1}, {"b": 1}), ValueError, "same nested structure"),
    (lambda: T.map_structure(max, [1], [1, 2]), ValueError, "same nested structure"),
    (lambda: T.map_structure(max, [None], [1], none_is_leaf=False), ValueError, "nested structure"),
    (lambda: T.map_structure_up_to([1, 2], len, [1]), ValueError, "same nested structure"),
    (lambda: T.map_structure_up_to([[1]], len, [1]), ValueError, "same nested structure"),
    (lambda: T.assert_same_paths({"a": 1}, {"b": 1}), ValueError, r"only in `b`: \[\('b'"),
    (lambda: T.pack_sequence_as([0], [1, 2]), ValueError, "1 leaves, but flat_sequence had 2"),
    (lambda: T.pack_sequence_as([0], 1), TypeError, "not iterable"),
    (lambda: T.map_structure(3, [1]), TypeError, "must be callable"),
    (lambda: T.map_structure(max), ValueError, "at least one"),
]


@cases(("call", "error", "text"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_an_argument_without_effect_is_warned_of() -> None:
    with pytest.warns(DeprecationWarning, match="no longer has any effect") as caught:
        T.assert_same_structure([1], [2], check_types=True)
    assert caught[0].filename == __file__
