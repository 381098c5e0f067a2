"""Layers of convolution: their arguments, in Keras' words."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from mirrored import layers

POSITIVE = "Expected a strictly positive value. Received "


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: layers.Conv2D(0, 3), f"argument `filters`. {POSITIVE}filters=0."),
        (lambda: layers.Conv1DTranspose(-1, 3), f"argument `filters`. {POSITIVE}filters=-1."),
        (lambda: layers.DepthwiseConv2D(3, depth_multiplier=0), f"{POSITIVE}depth_multiplier=0."),
        (
            lambda: layers.Conv2D(4, (1, 0)),
            "`kernel_size` argument must be a tuple of 2 integers. Received kernel_size=(1, 0), "
            "including values {0} that do not satisfy `value > 0`",
        ),
        (lambda: layers.Conv2D(4, 3, groups=3), "evenly divisible by the number of groups"),
    ],
)
def test_arguments_that_are_wrong(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        make()
