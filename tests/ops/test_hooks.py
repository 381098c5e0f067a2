"""Who is told of ops."""

from typing import Any

import pytest

from mirrored import ops
from mirrored.ops.hooks import active_listeners, add_listener, only, remove_listener


class Notes:
    """A listener that writes down the names of ops."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_op(self, op: ops.Op, inputs: Any, attrs: Any, output: ops.Tensor) -> None:
        self.seen.append((op.name, len(inputs), dict(attrs), output.shape))

    def on_read(self, variable: Any, value: ops.Tensor) -> None:
        self.seen.append(variable)


def test_listeners_are_told_until_they_are_removed() -> None:
    notes = Notes()
    x = ops.constant([1.0, 2.0])
    add_listener(notes)
    ops.reduce_sum(x, axis=0)
    remove_listener(notes)
    remove_listener(notes)
    ops.negative(x)
    assert notes.seen == [("Sum", 1, {"axis": (0,), "keepdims": False}, ())]
    assert active_listeners() == ()


def test_all_listeners_are_told() -> None:
    outer, inner = Notes(), Notes()
    x = ops.constant(1.0)
    add_listener(outer)
    add_listener(inner)
    assert active_listeners() == (outer, inner)
    ops.negative(x)
    with only(outer):
        ops.exp(x)
    with only():
        ops.log(x)
    remove_listener(outer)
    remove_listener(inner)
    assert [each[0] for each in outer.seen] == ["Neg", "Exp"]
    assert [each[0] for each in inner.seen] == ["Neg"]


def test_only_restores_after_an_error() -> None:
    notes = Notes()
    add_listener(notes)
    with pytest.raises(KeyError), only():
        raise KeyError
    assert active_listeners() == (notes,)
    remove_listener(notes)


def test_a_failed_op_is_not_told() -> None:
    notes = Notes()
    add_listener(notes)
    with pytest.raises(ValueError, match="Incompatible shapes"):
        ops.add([1.0, 2.0], [1.0, 2.0, 3.0])
    remove_listener(notes)
    assert notes.seen == []
