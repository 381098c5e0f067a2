"""Finding objects inside attributes."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from mirrored.layers.tracking import find


class Part:
    """What the tests look for."""


def test_containers_are_searched_in_order_at_any_depth() -> None:
    a, b, c, d = (Part() for _ in range(4))
    assert find([a, 1, [b, ("x", {"k": c})], None, {"l": [d]}], Part) == [a, b, c, d]


def test_each_object_is_found_once_by_identity() -> None:
    a, b = Part(), Part()
    assert find([a, [b, a], {"again": b}], Part) == [a, b]


def test_a_container_that_holds_itself_ends() -> None:
    part = Part()
    loop: list[object] = [part]
    loop.append(loop)
    assert find([loop], Part) == [part]


def test_other_containers_and_strings_are_not_searched() -> None:
    assert find([deque([Part()]), "Part", iter([Part()]), {1, "a"}], Part) == []


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_are_refused(kind: Callable[[list[Part]], Any]) -> None:
    """Keras looks into them, in an order that differs from process to process."""
    with pytest.raises(ValueError, match=r"that holds <.*Part object.* Use a list or a dict"):
        find([[kind([Part()])]], Part)
