"""float16 and the integers of 8, 16 and unsigned bits, on the emulated card."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from tests.ops.test_small_dtypes import DTYPES, OTHER, SAME, pair

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


HALVES: dict[str, Callable[..., Any]] = {
    "matmul": lambda x: mr.matmul(x, x, transpose_b=True),
    "batch": lambda x: mr.matmul(mr.stack([x, -x]), x, transpose_b=True),
    "softmax": mr.nn.softmax,
    "log_softmax": mr.nn.log_softmax,
    "labels": lambda x: mr.nn.sparse_softmax_cross_entropy_with_logits([0, 2], x),
    "entropy": lambda x: mr.nn.softmax_cross_entropy_with_logits(mr.nn.softmax(x), x),
    "mean": lambda x: mr.reduce_mean(x, 0),
    "segments": lambda x: mr.math.unsorted_segment_prod(x, [1, 1], 3),
    "cumsum": lambda x: mr.cumsum(x, 1, reverse=True),
    "top": lambda x: mr.math.top_k(x, 2).values,
    "gelu": mr.nn.gelu,
    "floor": lambda x: -1e-7 // x,
    "where": lambda x: mr.where(x > 0.0, mr.exp(x), mr.sqrt(-x)),
}


@pytest.mark.parametrize("function", HALVES.values(), ids=HALVES)
def test_halves_are_those_of_the_host(function: Callable[..., Any]) -> None:
    results = []
    for device in ("CPU:0", "GPU:0"):
        with mr.device(device):
            x = mr.Variable([[0.1, -2.0, 300.0], [1.5, 0.001, -4.0]], dtype=mr.float16)
            with mr.GradientTape() as tape:
                result = function(x)
            slope = tape.gradient(result, x)
            results.append([result, *([] if slope is None else [slope])])
    for host, card in zip(*results, strict=True):
        assert card.device.endswith("GPU:0")
        np.testing.assert_allclose(card.numpy(), host.numpy(), rtol=2.0**-10, atol=2.0**-24)
