"""What to look at first on a card that nothing has run on: one fact each, in a process of its own.

Nothing here passes or fails by itself; who reads the facts knows what they are to be.
"""

import time
from collections import Counter
from typing import Any

import numpy as np
from collectives import Ranks
from faults import LeavingOut, failed, overfill

import mirrored as mr
from mirrored.backends import selftest
from mirrored.backends.cuda import nccl, toolkit
from mirrored.backends.cuda.cuda_backend import CudaBackend
from mirrored.errors import CollectiveError

SIZES = (384, 640, 512)  # Rows, the axis that is summed over, and columns.


def products() -> dict[str, Any]:
    """Multiply in each precision; return the largest error by the sum of the terms' magnitudes."""
    rng = np.random.default_rng(20)
    rows, inner, columns = SIZES
    a, b = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    found: dict[str, Any] = {}
    for precision in ("float64", "float32", "tf32", "bfloat16", "float16"):
        mr.config.experimental.enable_tensor_float_32_execution(precision == "tf32")
        dtype = "float32" if precision == "tf32" else precision
        with mr.device("GPU:0"):
            factors = [mr.cast(mr.constant(x), dtype) for x in (a, b)]
            product = mr.cast(mr.matmul(*factors), "float64").numpy()
            # Those that were multiplied: what a narrow dtype rounds is not the product's error.
            x, y = (mr.cast(each, "float64").numpy() for each in factors)
        found[precision] = float((np.abs(product - x @ y) / (np.abs(x) @ np.abs(y))).max())
    return found


def small_numbers() -> dict[str, Any]:
    """Return what a fused chain and single ops make of what is below the normal numbers."""
    values = np.array([1e-40, -1e-40, 1e-45, 3e-39], np.float32)

    @mr.function
    def chain(x: Any) -> Any:
        return mr.abs(x * 0.5 + x) - x

    with mr.device("GPU:0"):
        x = mr.constant(values)
        found = {"chain": chain(x).numpy(), "is not 0": mr.cast(x, "bool").numpy()}
    return {**found, "chain, by NumPy": np.abs(values * np.float32(0.5) + values) - values}


# ---------------------------------------------------------------------------- NCCL


def ranks(count: int) -> dict[str, Any]:
    """Connect ranks on one card; return seconds and bytes that it takes, and what sums wrong."""
    ranks = Ranks([count])
    first, *others = ranks.backends
    reason = first.why_not_connected(others)
    if reason is not None:
        return {"cannot be": reason}
    began = time.monotonic()
    try:
        selftest.require(ranks.backends, ranks.names)
    except CollectiveError as error:
        return {"self-test": str(error)}
    found: dict[str, Any] = {"self-test, s": time.monotonic() - began}
    prepared = ranks.prepare(300_007, "float32")
    before, began = _free(first), time.monotonic()
    ranks.connection.open()
    found |= {"connecting, s": time.monotonic() - began, "its bytes": before - _free(first)}
    found |= {"wrong": ranks.check(prepared), "bytes with a sum": before - _free(first)}
    ranks.connection.close()
    return {**found, "bytes after closing": before - _free(first)}


def _free(backend: CudaBackend) -> int:
    with backend.entered():
        return int(toolkit.toolkit().cuda.runtime.memGetInfo()[0])


def aborts(count: int, times: int, seconds: float) -> dict[str, Any]:
    """Let sums hang until the driver's queue is full, and abort, again and again.

    Args:
        count: How many ranks.
        times: How often.
        seconds: After which it is not done again.

    Returns:
        What was raised, how often, and how many elements other sums had wrong.
    """
    library = LeavingOut(nccl.load())
    vars(nccl)["load"] = lambda: library
    ranks, raised, wrong = Ranks([count]), Counter[str](), 0
    until = time.monotonic() + seconds
    told = ""
    while raised.total() < times and time.monotonic() < until:
        wrong += ranks.check(ranks.prepare(4099, "float32"))
        error = failed(lambda: overfill(ranks, library, 1.0))
        raised[f"{error['error']}, aborted: {error['aborted']}"] += 1
        told = str(error["text"])
    wrong += ranks.check(ranks.prepare(4099, "float32"))
    ranks.connection.close()
    kinds = [f"{number} times {kind}" for kind, number in raised.items()]
    return {"raised": kinds, "wrong": wrong, "the last": told}


def one_rank() -> dict[str, Any]:
    """Return how long NCCL takes to connect one card, and to sum with no other."""
    ranks = Ranks([1])
    began = time.monotonic()
    wrong = ranks.check(ranks.prepare(300_007, "float32"))
    found = {"first sum, s": time.monotonic() - began, "wrong": wrong}
    prepared, times = ranks.prepare(1024, "float32"), 200
    began = time.monotonic()
    for _ in range(times):
        ranks.ask(*prepared[:2])
    found["a call, us"] = round((time.monotonic() - began) / times * 1e6, 1)
    ranks.connection.finish()
    ranks.connection.close()
    return {**found, "version": nccl.version(nccl.load())}
