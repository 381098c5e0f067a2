"""Flattening."""

import re

import numpy as np
import pytest
from case_table import cases

from mirrored.layers import Flatten, Input
from mirrored.layers.shapes import Shape


@cases(
    ("shape", "expected"),
    [
        ((8, 8), (None, 64)),
        ((5,), (None, 5)),
        ((), (None, 1)),
        ((None, 2), (None, None)),
        ((0, 2), (None, 0)),
    ],
)
def test_placeholders_give_the_product_where_it_is_known(shape: Shape, expected: Shape) -> None:
    assert Flatten()(Input(shape)).shape == expected


def test_elements_keep_their_order() -> None:
    x = np.arange(12.0).reshape(2, 2, 3)
    np.testing.assert_array_equal(Flatten()(x).numpy(), [np.arange(6), np.arange(6, 12)])


def test_a_scalar_is_refused() -> None:
    text = (
        'Input 0 of layer "flatten" is incompatible with the layer: expected min_ndim=1, found '
        "ndim=0. Full shape received: ()"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        Flatten()(3.0)
