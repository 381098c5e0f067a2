"""What going on without dead workers costs per step, and how long a death holds up the others.

Open MPI starts it: `mpiexec --with-ft ulfm -n 2 python -m benchmarks.deaths`. Steps with
`on_worker_failure="continue"` and with "raise" are timed alternately. Then the last worker kills
itself in a callback, and the others say how long after that their next step ended.
"""

import logging
import os
import signal
import statistics
import time
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import mirrored as mr
from benchmarks import machine
from benchmarks.saving import batches, network
from benchmarks.workloads import TIMED

POLICIES = ("raise", "continue")
ROUNDS, DEATH = 9, 20  # The step after which a worker dies.


class _Death(mr.callbacks.Callback):
    """Kills the last worker after a step, and notes in the others when the next one ended."""

    def __init__(self, dies: bool, path: Path) -> None:
        super().__init__()
        self.dies, self.path, self.seconds = dies, path, 0.0

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Die, or note the time."""
        if batch == DEATH and self.dies:
            self.path.write_text(repr(time.time()), encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
        if batch == DEATH + 1:
            self.seconds = time.time() - float(self.path.read_text(encoding="utf-8"))


def main() -> None:
    """Print the tables, on the first worker that is left."""
    logging.getLogger("mirrored").setLevel(logging.ERROR)
    strategy = mr.distribute.MultiWorkerMirroredStrategy(on_worker_failure="continue")
    workers = strategy.workers
    count, rows = workers.count, []
    for name in ("digits", "mnist"):
        workload = TIMED[name]
        with strategy.scope():
            model = network(workload)
        data, steps = batches(workload), workload.steps
        seconds: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        for round_ in range(ROUNDS + 1):
            for policy in POLICIES:
                workers.go_on(policy, 1)
                start = time.perf_counter()
                model.fit(data, steps_per_epoch=2 * steps, verbose=0)
                if round_:  # The first one records.
                    seconds[policy].append((time.perf_counter() - start) / (2 * steps))
        ratios = [b / a for a, b in zip(*seconds.values(), strict=True)]
        middle = [f"{1e3 * statistics.median(seconds[policy]):.3f}" for policy in POLICIES]
        rows.append(f"| {name} | {' | '.join(middle)} | {statistics.median(ratios):.3f} |")
    path = Path(gettempdir(), f"mirrored-death-{workers.gather(os.getpid(), 'a process')[0]}")
    death = _Death(workers.rank == count - 1, path)
    model.fit(data, steps_per_epoch=DEATH + 5, verbose=0, callbacks=[death])
    if workers.is_chief:
        path.unlink()
        print(f"{machine.describe()}\n\n{count} workers.\n")
        print('| workload | ms per step with "raise" | with "continue" | ratio |')
        print("| --- | ---: | ---: | ---: |", *rows, sep="\n")
        print(f"\nFrom the death of a worker to the end of the next step: {death.seconds:.3f} s.")


if __name__ == "__main__":
    main()
