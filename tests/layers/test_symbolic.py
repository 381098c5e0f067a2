"""Placeholders and the way back along them."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mirrored import ops
from mirrored.layers import Dense, Dropout, Flatten, Input, SymbolicTensor
from mirrored.layers.symbolic import trace


def test_a_layer_called_on_a_placeholder_returns_one_that_remembers_it() -> None:
    x = Input((8, 8), name="pixels")
    layer = Dense(3, dtype="float64")
    y = layer(x)
    assert isinstance(y, SymbolicTensor)
    assert (y.shape, y.ndim, y.dtype, y.name) == ((None, 8, 3), 3, ops.float64, "dense")
    assert y.producer[0] is layer
    assert y.producer[1] is x
    assert (layer.input_shape, layer.output_shape) == ((None, 8, 8), (None, 8, 3))
    assert repr(x) == "<SymbolicTensor shape=(None, 8, 8), dtype=float32, name=pixels>"


def test_trace_returns_the_layers_in_the_order_they_are_called() -> None:
    flatten, shared, dropout = Flatten(), Dense(4), Dropout(0.5)
    x = Input((2, 2))
    hidden = flatten(x)
    y = shared(dropout(shared(hidden)))
    assert trace(y, x) == [flatten, shared, dropout, shared]
    assert trace(y, hidden) == [shared, dropout, shared]
    assert trace(x, x) == []


def test_a_disconnected_graph_names_both_ends() -> None:
    y = Dense(1)(Input((4,), name="a"))
    text = "'dense' is not connected to `inputs`, 'b': it is computed from 'a'"
    with pytest.raises(ValueError, match=text):
        trace(y, Input((4,), name="b"))


@pytest.mark.parametrize("wrong", [np.ones((2, 2)), None, []])
def test_only_placeholders_can_be_traced(wrong: Any) -> None:
    x = Input((4,))
    with pytest.raises(ValueError, match="`outputs` must be one symbolic tensor"):
        trace(wrong, x)
    with pytest.raises(ValueError, match="`inputs` must be one symbolic tensor"):
        trace(x, wrong)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: np.ones(4) * x,
        lambda x: 2 / x,
        lambda x: -x,
        lambda x: x @ x,
        lambda x: x[0],
        lambda x: x > 0,
        bool,
        len,
        list,
        float,
        abs,
        np.asarray,
        ops.relu,
        lambda x: ops.add(ops.ones((4,)), x),
        operator.neg,
    ],
)
def test_anything_but_a_layer_is_refused_with_the_way_out(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"is a placeholder without values.*Layer subclass"):
        use(Input((4,)))


def test_placeholders_hash_and_compare_by_identity() -> None:
    x, y = Input((4,)), Input((4,))
    assert len({x, y}) == 2
    assert x == x
    assert x != y


def test_a_mode_cannot_be_fixed_in_a_functional_model() -> None:
    with pytest.raises(ValueError, match="on a placeholder with training=True"):
        Dropout(0.5)(Input((4,)), training=True)
