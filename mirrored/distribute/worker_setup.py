"""What a worker does before it trains: it takes its devices, and the first one's random numbers."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from mirrored import devices
from mirrored.ops.rng_state import RngState, global_rng_state, set_global_rng_state
from mirrored.workers import Workers


def own_devices(workers: Workers) -> Sequence[Any] | None:
    """Return this worker's devices; None: all that it sees."""
    alike = [rank for rank, host in enumerate(workers.hosts) if host == workers.hosts[workers.rank]]
    gpus = devices.logical_devices("GPU")
    if len(alike) == 1 or not gpus or any(gpu.simulated for gpu in gpus):
        return None
    if "CUDA_VISIBLE_DEVICES" in os.environ:  # Somebody has shared them out.
        return None
    own = gpus[workers.local_rank :: len(alike)]
    return own or [gpus[workers.local_rank % len(gpus)]]


def described(counts: Sequence[int], hosts: Sequence[str]) -> str:
    """Return which worker has which replicas.

    Args:
        counts: How many each has.
        hosts: The host of each.

    Example:
        >>> described([2, 1], ["a", "b"])
        '0 to 1 on worker 0 (a), 2 on worker 1 (b)'
    """
    first, parts = 0, []
    for rank, (count, host) in enumerate(zip(counts, hosts, strict=True)):
        numbers = f"{first}" if count == 1 else f"{first} to {first + count - 1}"
        parts.append(f"{numbers} on worker {rank} ({host})")
        first += count
    return ", ".join(parts)


def draw_alike(of_each_worker: Callable[[Any, str], list[Any]]) -> None:
    """Let all workers draw what the first one draws: shuffles, masks and weights are then alike.

    Args:
        of_each_worker: Gathers a small object of each, given what errors call it.
    """
    state = global_rng_state()
    own = state.seed, state.draws, dict(state.draws_by_seed)
    first = of_each_worker(own, "the state of random numbers")[0]
    if first != own:
        set_global_rng_state(RngState(*first))
