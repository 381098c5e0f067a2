"""float16 and the integers that few ops compute with, on the emulated card."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from tests.ops.test_stored_dtypes import DTYPES, OTHER, SAME, pair

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def card(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda(seed=2)


def test_halves_are_read_and_written_as_numpy_does() -> None:
    halves = np.arange(0, 2**16, 7, dtype=np.uint16).view(np.float16)
    exact = halves.astype(np.float32)
    with np.errstate(invalid="ignore"):
        others = np.nextafter(exact, np.float32(3)), exact * np.float32(0.5)
    singles = np.concatenate([exact, *others])
    singles = np.append(singles, np.float32([65519.9, 65520.0, 2.0**-25, 1.5 * 2.0**-25, 1e30]))
    with mr.device("GPU:0"):
        read = mr.cast(mr.constant(halves), mr.float32)
        written = mr.cast(mr.constant(singles), mr.float16)
    assert read.device.endswith("GPU:0")
    np.testing.assert_array_equal(read.numpy(), halves.astype(np.float32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(written.numpy(), singles.astype(np.float16))


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_those_of_the_host(dtype: str) -> None:
    functions = [function for function, _ in (*SAME.values(), *OTHER.values())]
    results = []
    for device in ("CPU:0", "GPU:0"):
        with mr.device(device):
            results.append([function(*pair(dtype)) for function in functions])
    for host, card in zip(*results, strict=True):
        assert card.device.endswith("GPU:0")
        assert card.dtype == host.dtype
        np.testing.assert_array_equal(card.numpy(), host.numpy())
