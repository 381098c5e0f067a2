"""From what size on a matrix product gains by a thread a core, alone and beside a busy neighbour.

`python -m benchmarks.blas_threads` prints the table that the threshold of
`mirrored/backends/product_settings.py` is from: a product whose threads wait for each other is slow
where one of them waits for a core.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.contenders.blas import blas_facts
from benchmarks.processes import clean_environment

WIDTH = 512
ROWS = (4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512)
_TURN = 0.1  # Seconds that a row is measured for in each turn.
_BUSY = "while True: pass"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="timings per row (default: 9)")
    parser.add_argument(
        "--neighbours", type=int, default=1, help="busy processes next to it (default: 1)"
    )
    options = parser.parse_args()
    if not os.environ.get("_BENCHMARK_CLEAN"):  # BLAS reads its settings when it is loaded.
        environment = clean_environment(os.environ) | {"_BENCHMARK_CLEAN": "1"}
        command = [sys.executable, "-m", "benchmarks.blas_threads", *sys.argv[1:]]
        raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)
    print(f"{blas_facts()}; {options.rounds} rounds, {options.neighbours} neighbour(s)\n")
    print("| product | million operations | one thread, us | all, us | ratio alone |", end="")
    print(" one beside, us | all beside, us | worst | ratio beside | worst |")
    print("| --- " + "| ---: " * 9 + "|")
    for rows in ROWS:
        print(_row(rows, options.rounds, options.neighbours), flush=True)


def _row(rows: int, rounds: int, neighbours: int) -> str:
    taken: dict[tuple[bool, bool], list[float]] = {}
    for _ in range(rounds):
        for busy in (False, True):
            with busy_neighbours(neighbours if busy else 0):
                for every in (False, True):
                    taken.setdefault((busy, every), []).append(_time(rows, every))
    middle = {case: statistics.median(times) for case, times in taken.items()}
    worst = {case: max(times) for case, times in taken.items()}
    cells = [
        f"{rows} x {WIDTH} x {WIDTH}",
        f"{2 * rows * WIDTH * WIDTH / 1e6:.1f}",
        f"{middle[False, False]:.0f}",
        f"{middle[False, True]:.0f}",
        f"{middle[False, True] / middle[False, False]:.2f}",
        f"{middle[True, False]:.0f}",
        f"{middle[True, True]:.0f}",
        f"{worst[True, True]:.0f}",
        f"{middle[True, True] / middle[True, False]:.2f}",
        f"{worst[True, True] / worst[True, False]:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _time(rows: int, every_core: bool) -> float:
    """Return the microseconds of a product and of a ReLU behind it, as layers have it."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    a = rng.normal(size=(rows, WIDTH)).astype(np.float32)
    b = rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)
    out = np.empty((rows, WIDTH), np.float32)
    with threadpool_limits(None if every_core else 1, user_api="blas"):
        count, started = 0, time.perf_counter()
        while (now := time.perf_counter()) - started < _TURN:
            np.matmul(a, b, out=out)
            np.maximum(out, 0.0, out=out)
            count += 1
    return (now - started) / count * 1e6


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """Run processes that do nothing but use a core.

    Args:
        count: The number of processes.
    """
    busy = [subprocess.Popen([sys.executable, "-S", "-c", _BUSY]) for _ in range(count)]
    try:
        if busy:
            time.sleep(0.1)
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
