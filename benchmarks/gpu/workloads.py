"""What is trained on the GPU: the networks of the host's benchmark, and one that fills a card.

The optimizer is plain SGD; one batch stays on the device, and is trained on again and again.
"""

import functools
from dataclasses import replace

from benchmarks.workloads import TIMED, Array, Workload, initial_weights, make_data

PRECISIONS = ("float32", "tf32", "bfloat16")
CHECK_STEPS = 3  # Whose losses are compared before anything is timed.
# Relative differences of losses over these steps from the middle one of all contenders.
LOSS_TOLERANCES = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 5e-2}


def _timed(name: str, batch: int, steps: int) -> Workload:
    """Return a workload of the host's benchmark with plain SGD and epochs of so many steps."""
    examples = batch * steps
    return replace(TIMED[name], batch=batch, examples=examples, momentum=0.0, learning_rate=0.01)


WORKLOADS: dict[str, Workload] = {
    "digits": _timed("digits", 256, 128),
    "mnist": _timed("mnist", 256, 64),
    "wide": _timed("wide", 512, 32),
    "huge": replace(_timed("wide", 4096, 4), name="huge", sizes=(4096, 8192, 8192, 4096)),
}


def one_batch(workload: Workload) -> Workload:
    """Return the workload with a single batch of examples."""
    return replace(workload, examples=workload.batch)


@functools.lru_cache(maxsize=1)
def starting_point(workload: Workload) -> tuple[list[Array], Array, Array]:
    """Return the initial weights, and the inputs and labels of one batch.

    They are kept for the next precision and mode: those of `huge` take seconds to draw.
    """
    return initial_weights(workload), *make_data(one_batch(workload))
