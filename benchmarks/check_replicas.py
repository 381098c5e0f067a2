"""The time of one call of `strategy.check_replicas()`, by the size of the weights.

`python -m benchmarks.check_replicas` prints a row per size and number of devices; started by
`mpiexec -n 2`, it compares two workers. Reading memory is most of it, so the other work of the
machine counts.
"""

import argparse
import logging
import statistics
import time
from collections.abc import Iterator, Sequence

import numpy as np

import mirrored as mr
from benchmarks import machine


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--calls", type=int, default=15)
    options = parser.parse_args(arguments)
    logging.getLogger("mirrored").setLevel(logging.WARNING)
    heading = "| replicas | MB of a copy | ms per call, median | least |"
    lines = [str(machine.describe()), "", heading, "| ---: | ---: | ---: | ---: |"]
    for replicas, size, seconds in rows(options.devices, options.megabytes, options.calls):
        times = [statistics.median(seconds) * 1e3, min(seconds) * 1e3]
        lines.append(f"| {replicas} | {size} | {times[0]:.1f} | {times[1]:.1f} |")
    if mr.distribute.MultiWorkerMirroredStrategy().cluster_resolver.task_id == 0:
        print("\n".join(lines))


def rows(
    devices: Sequence[int], megabytes: Sequence[int], calls: int
) -> Iterator[tuple[int, int, list[float]]]:
    """Yield the replicas and the size of each row, and the seconds of each call."""
    for count in devices:
        mr.config.experimental.reset_devices()
        mr.config.experimental.set_simulated_gpus(count)
        strategy = mr.distribute.MultiWorkerMirroredStrategy()
        for size in megabytes:
            with strategy.scope():
                values = np.ones((size * 250_000 // 20,), np.float32)
                variables = [mr.Variable(values) for _ in range(20)]
            strategy.check_replicas(variables)  # The first one allocates.
            seconds = [_timed(strategy, variables) for _ in range(calls)]
            yield strategy.num_replicas_in_sync, size, seconds


def _timed(strategy: mr.distribute.Strategy, variables: Sequence[mr.Variable]) -> float:
    start = time.perf_counter()
    strategy.check_replicas(variables)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
