"""A strategy of two simulated GPUs."""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr


@pytest.fixture
def strategy(simulate: Callable[..., Any]) -> mr.MirroredStrategy:
    """A strategy that owns what is made in its scope."""
    simulate(2)
    return mr.MirroredStrategy()
