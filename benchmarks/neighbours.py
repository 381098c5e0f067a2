"""How much longer a training step on one device takes beside a busy process, by executor.

`python -m benchmarks.neighbours` prints the table of docs/performance.md. Each row is a process of
its own, which trains alone and beside the busy process alternately.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

from benchmarks.blas_threads import busy_neighbours
from benchmarks.processes import clean_environment
from benchmarks.workloads import TIMED, make_data

WORKLOADS = ("mnist", "wide", "lenet")
EXECUTORS = ("auto", "threads", "serial")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="timings per row (default: 9)")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a timing")
    parser.add_argument("--row", nargs=2, metavar=("WORKLOAD", "EXECUTOR"), help="one row")
    options = parser.parse_args()
    if options.row is not None:
        print(row(*options.row, options.rounds, options.seconds), flush=True)
        return
    environment = clean_environment(os.environ) | {"MIRRORED_LOG_LEVEL": "WARNING"}
    print("| network | executor | alone, ms | beside a busy process, ms | ratio |")
    print("| --- | --- | ---: | ---: | ---: |", flush=True)
    for workload in WORKLOADS:
        for executor in EXECUTORS:
            command = [sys.executable, "-m", "benchmarks.neighbours", "--row", workload, executor]
            command += ["--rounds", str(options.rounds), "--seconds", str(options.seconds)]
            subprocess.run(command, env=environment, check=True)


def row(name: str, executor: str, rounds: int, seconds: float) -> str:
    """Return the medians of one workload as a row of the table.

    Args:
        name: The workload.
        executor: The executor.
        rounds: The number of timings.
        seconds: The length of a timing, about.
    """
    from benchmarks.contenders.mirrored_ import Mirrored  # The parent needs no mirrored.

    workload = TIMED[name]
    session = Mirrored(workload, 1, executor=executor)
    data = session.load(*make_data(workload))

    def timed(epochs: int) -> float:
        started = time.perf_counter()
        session.fit(data, epochs, shuffle=True)
        return (time.perf_counter() - started) * 1e3 / (epochs * workload.steps)

    timed(1)
    epochs = max(1, round(seconds * 1e3 / (timed(1) * workload.steps)))
    alone, beside = [], []
    for _ in range(rounds):
        alone.append(timed(epochs))
        with busy_neighbours(1):
            beside.append(timed(epochs))
    first, second = statistics.median(alone), statistics.median(beside)
    cells = [name, executor, f"{first:.1f}", f"{second:.1f}", f"{second / first:.2f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
