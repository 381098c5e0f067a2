"""What ops cost beside NumPy's own functions: called one by one, and recorded.

`python -m benchmarks.ops` prints the table of docs/reference/benchmarks.md.
All three compute the same, on
the CPU, on the same arrays; what is measured of an op includes the call, and its result.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contenders.blas import blas_facts
from benchmarks.processes import clean_environment

Array = np.ndarray[Any, Any]
_TURN = 0.05  # Seconds that one of them is measured for in each round.


class Row(NamedTuple):
    """An op: what it is called on, by us and by NumPy."""

    inputs: tuple[Array, ...]
    ours: Callable[..., Any]
    numpys: Callable[..., Any]


def rows() -> dict[str, Row]:
    """Return the ops that are measured."""
    import mirrored as mr

    rng = np.random.default_rng(0)
    table, ids = _floats(rng, 10_000, 64), rng.integers(0, 10_000, 1024)
    matrix, few = _floats(rng, 256, 1024), rng.integers(0, 1000, 1024)
    batches = _floats(rng, 32, 64, 64), _floats(rng, 32, 64, 64)

    weights = mr.Variable(table)  # A recorded function reads it where it is.

    def slope(ids: Any) -> Any:
        with mr.GradientTape() as tape:
            total = mr.reduce_sum(mr.square(mr.gather(weights, ids)))
        return tape.gradient(total, weights)

    def slope_by_numpy(ids: Array) -> Array:
        found = np.zeros_like(table)
        np.add.at(found, ids, 2.0 * table[ids])
        return found

    return {
        "`gather`, 1024 of 10,000 rows of 64": Row(
            (ids,), lambda ids: mr.gather(weights, ids), lambda ids: table[ids]
        ),
        "its gradient, of the squares' sum": Row((ids,), slope, slope_by_numpy),
        "`where`, 256 x 1024": Row((matrix > 0, matrix, -matrix), mr.where, np.where),
        "`one_hot`, 1024 of 1000": Row((few,), lambda x: mr.one_hot(x, 1000), _one_hot),
        "`math.top_k`, 5 of 1024, 256 rows": Row(
            (matrix,), lambda x: tuple(mr.math.top_k(x, 5)), _top_five
        ),
        "`cumsum`, 256 x 1024": Row(
            (matrix,), lambda x: mr.cumsum(x, axis=1), lambda x: np.cumsum(x, axis=1)
        ),
        "`einsum`, bij,bjk->bik of 32 x 64 x 64": Row(
            batches, lambda x, y: mr.einsum("bij,bjk->bik", x, y), _by_einsum
        ),
    }


def _floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, dtype=np.float32)


def _one_hot(ids: Array) -> Array:
    found = np.zeros((ids.size, 1000), np.float32)
    found[np.arange(ids.size), ids] = 1.0
    return found


def _top_five(x: Array) -> tuple[Array, Array]:
    places = np.argsort(-x, axis=-1, kind="stable")[:, :5]
    return np.take_along_axis(x, places, axis=-1), places.astype(np.int32)


def _by_einsum(x: Array, y: Array) -> Array:
    return np.einsum("bij,bjk->bik", x, y, optimize=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="timings per op (default: 15)")
    options = parser.parse_args()
    if not os.environ.get("_BENCHMARK_CLEAN"):  # BLAS reads its settings when it is loaded.
        environment = clean_environment(os.environ) | {"_BENCHMARK_CLEAN": "1"}
        command = [sys.executable, "-m", "benchmarks.ops", *sys.argv[1:]]
        raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)
    print(f"{blas_facts()}; medians of {options.rounds} rounds\n")
    print("| op | NumPy, us | eager, us | recorded, us | eager to NumPy | recorded to NumPy |")
    print("| --- " + "| ---: " * 5 + "|")
    for name, row in rows().items():
        print(line(name, times(row, options.rounds)), flush=True)


def times(row: Row, rounds: int) -> list[float]:
    """Return the microseconds that NumPy, the op called alone and the op recorded take.

    Raises:
        ValueError: They do not compute the same.
    """
    import mirrored as mr

    tensors = [mr.constant(array) for array in row.inputs]
    recorded = mr.function(row.ours)
    calls = [(row.numpys, row.inputs), (row.ours, tensors), (recorded, tensors)]
    expected = row.numpys(*row.inputs)
    for function, inputs in calls[1:]:
        if not np.allclose(_arrays(function(*inputs)), _arrays(expected), rtol=1e-4, atol=1e-5):
            raise ValueError("An op and NumPy do not compute the same.")
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for found, (function, inputs) in zip(taken, calls, strict=True):
            found.append(microseconds(function, inputs))
    return [statistics.median(times) for times in taken]


def _arrays(result: Any) -> Array:
    """Return a result, or all of several, as one array."""
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.ravel(np.asarray(part)).astype(np.float64) for part in parts])


def microseconds(function: Callable[..., Any], inputs: Any) -> float:
    """Return how long a call takes."""
    started = time.perf_counter()
    count = 0
    while (taken := time.perf_counter() - started) < _TURN or not count:
        function(*inputs)
        count += 1
    return taken / count * 1e6


def line(name: str, taken: list[float]) -> str:
    """Return a row of the table."""
    numpys, eager, recorded = taken
    cells = [f"{times:.0f}" for times in taken]
    cells += [f"{eager / numpys:.2f}", f"{recorded / numpys:.2f}"]
    return "| " + " | ".join([name, *cells]) + " |"


if __name__ == "__main__":
    main()
