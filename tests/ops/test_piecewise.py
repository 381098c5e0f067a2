"""Functions that are computed a piece at a time."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops


@pytest.mark.parametrize("recorded", [False, True])
def test_pieces_are_what_the_whole_is(recorded: bool, bits: Any) -> None:
    """Of more elements than a piece has, and no multiple of them."""
    x = np.random.default_rng(7).normal(size=(3, 11_003)).astype(np.float32)
    erf = mr.function(ops.erf) if recorded else ops.erf
    rows = [ops.erf(row).numpy() for row in x]
    assert bits([erf(ops.constant(x)).numpy()]) == bits([np.stack(rows)])
