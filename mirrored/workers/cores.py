"""The number of threads for matrix products: the workers of a host share its cores.

Without this each would use all of them, and wait for the others in every product.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mirrored.backends import product_settings

# By these users say how many threads the BLAS uses.
_ASKED = (
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OMP_NUM_THREADS",
)


def share_cores(local: Any) -> int | None:
    """Let products of this worker use its part of the cores; all workers of the host call it.

    Args:
        local: The communicator of the workers of this host.

    Returns:
        The number of threads; None: the user has set it.
    """
    mine = _cores()
    everybody = local.allgather(mine)
    if any(os.environ.get(variable, "").strip() for variable in _ASKED):
        return None
    threads = part_of(mine, everybody)
    product_settings.limit(threads)
    return threads


def part_of(mine: Sequence[int], everybody: Sequence[Sequence[int]]) -> int:
    """Return how many threads a worker uses, by the cores that each of its host may use.

    A launcher that gives each worker cores of its own has shared them out already.

    Example:
        >>> part_of([0, 1, 2, 3], [[0, 1, 2, 3]] * 2), part_of([0, 1], [[0, 1], [2, 3]])
        (2, 2)
    """
    sharing = sum(1 for other in everybody if not set(mine).isdisjoint(other))
    return max(1, len(mine) // max(1, sharing))


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
