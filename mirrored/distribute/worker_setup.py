"""What a worker does before it trains: it takes its devices, and the first one's random numbers."""

import os
from collections.abc import Sequence
from typing import Any

from mirrored import devices
from mirrored.ops.rng_state import RngState, global_rng_state, set_global_rng_state
from mirrored.workers import Workers


def own_devices(workers: Workers) -> Sequence[Any] | None:
    """Return this worker's devices; None: all that it sees."""
    alike = [rank for rank, host in enumerate(workers.hosts) if host == workers.hosts[workers.rank]]
    gpus = devices.logical_devices("GPU")
    if len(alike) == 1 or not gpus or any(each.simulated for each in gpus):
        return None
    if "CUDA_VISIBLE_DEVICES" in os.environ:  # Somebody has shared them out.
        return None
    own = gpus[workers.local_rank :: len(alike)]
    return own or [gpus[workers.local_rank % len(gpus)]]


def draw_alike(workers: Workers) -> None:
    """Let all workers draw what the first one draws: shuffles, masks and weights are then alike."""
    state = global_rng_state()
    own = state.seed, state.draws, dict(state.draws_by_seed)
    first = workers.gather(own, "the state of random numbers")[0]
    if not workers.is_chief:
        set_global_rng_state(RngState(*first))
