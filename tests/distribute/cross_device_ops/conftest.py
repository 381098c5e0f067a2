"""What the tests of collectives share: values that lie on several devices, and lines of the log."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import mirrored as mr
from mirrored import ops


def _spread(values: Sequence[Any], kind: str = "GPU") -> list[ops.Tensor]:
    tensors = []
    for i, value in enumerate(values):
        with mr.device(f"{kind}:{i}"):
            tensors.append(mr.constant(value))
    return tensors


@pytest.fixture
def spread() -> Callable[..., list[ops.Tensor]]:
    """Return ``spread(values, kind="GPU")``: tensors, each on the device of its number."""
    return _spread


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[str]]:
    """Return ``lines(start)``: the lines of the log, at INFO, that begin so."""

    def find(start: str) -> list[str]:
        records = [each for each in caplog.records if each.levelname == "INFO"]
        return [each.getMessage() for each in records if each.getMessage().startswith(start)]

    return find
