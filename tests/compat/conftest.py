"""Where the tests of TensorFlow 1's programs run: on the host, on simulated GPUs and on cards."""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr


@pytest.fixture(params=["host", "card"])
def hardware(request: pytest.FixtureRequest) -> None:
    """Have the host alone, and then an emulated card too, where everything runs by default."""
    if request.param == "card":
        request.getfixturevalue("emulated_cuda")()


@pytest.fixture(params=["simulated", "emulated"])
def make_gpus(request: pytest.FixtureRequest) -> Callable[..., list[str]]:
    """Return ``make_gpus(count)``: so many GPUs of a kind, and what sessions tell of each."""

    def make(count: int) -> list[str]:
        if not count:
            return []
        if request.param == "simulated":
            mr.config.experimental.set_simulated_gpus(count)
            return ["simulated"] * count
        cards: Any = request.getfixturevalue("emulated_cuda")
        cards(cards=count)
        return [f"name: Emulated H200, pci bus id: 0000:{i:02x}:00.0" for i in range(1, count + 1)]

    return make
