"""Checks of shapes and sizes."""

import re
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.layers import shapes


@cases(
    ("given", "expected"),
    [
        ((), ()),
        ([None, 3], (None, 3)),
        ((np.int64(4), 0), (4, 0)),
        (np.array([2, 3]), (2, 3)),
    ],
)
def test_shapes_become_tuples_of_integers(given: Any, expected: shapes.Shape) -> None:
    result = shapes.as_shape(given)
    assert result == expected
    assert all(size is None or type(size) is int for size in result)


@cases(
    ("given", "text"),
    [
        (64, "Cannot convert '64' to a shape."),
        ("64", "Cannot convert '64' to a shape."),
        ((-1,), "Cannot convert '(-1,)' to a shape. Negative dimensions are not allowed."),
        ((2.5,), "Found invalid dimension '2.5' of type '<class 'float'>'"),
        ((True,), "Found invalid dimension 'True' of type '<class 'bool'>'"),
        (("a",), "Found invalid dimension 'a' of type '<class 'str'>'"),
    ],
)
def test_bad_shapes_are_named(given: Any, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        shapes.as_shape(given)


def test_a_weight_needs_every_size() -> None:
    with pytest.raises(ValueError, match=r"Received: shape=\(None, 3\) for variable path='d/k'"):
        shapes.as_known_shape((None, 3), "d/k")


@cases(("shape", "expected"), [((), ()), ((5,), (None,)), ((5, 2), (None, 2))])
def test_the_batch_axis_is_left_open(shape: tuple[int, ...], expected: shapes.Shape) -> None:
    assert shapes.without_batch(shape) == expected


@cases(
    ("expected", "received"),
    [((None, 4), (7, 4)), ((7, 4), (None, 4)), ((), ()), ((None, None), (3, 4))],
)
def test_shapes_match_where_both_are_known(expected: shapes.Shape, received: shapes.Shape) -> None:
    shapes.check_matches("model", expected, received)


@cases("received", [(7, 5), (7,), (7, 4, 1)])
def test_both_shapes_are_in_the_error(received: shapes.Shape) -> None:
    text = 'layer "model" is incompatible with the layer: expected shape=(None, 4), found shape='
    with pytest.raises(ValueError, match=re.escape(f"{text}{received}")):
        shapes.check_matches("model", (None, 4), received)
