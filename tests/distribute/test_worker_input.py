"""What the replicas of each worker are given, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from launching import needs_mpi
from replica_cases import check_alike
from worker_datasets import CASES, OTHERS, SOME, fit_on_one
from worker_tasks import LAYOUT, LAYOUT_OF_THREE

REFUSED = [
    "Workers share datasets by rows, or have separate datasets. Received: `AutoShardPolicy.FILE`",
    "`predict` returns the whole result on every worker",
    "`predict` returns the whole result on every worker",
    "`fit` needs `steps_per_epoch` for a dataset that never ends",
    "A dataset that differs per worker needs a model that the workers share",
]


@pytest.mark.behaviour("workers-input", "workers-own-input")
@needs_mpi
def test_each_way_to_share_a_dataset(two_workers: dict[str, list[Any]]) -> None:
    first, second = two_workers["inputs"]
    # Batches of 4, of which three replicas get 2, 1 and 1; then of 2, of which the last gets none.
    assert first["data"] == [[[0, 1]], [[4]]]
    assert second["data"] == [[[2], [3]], [[5], []]]
    # The same parts, of which the first worker takes one a step, and the second two.
    assert first["off"] == [[[0, 1]], [[2]], [[3]], [[4]], [[5]], [[]]]
    assert second["off"] == [[[0, 1], [2]], [[3], [4]], [[5], []], *[[[], []]] * 3]
    # Each of its own, in batches of 2: the second worker needs one step, and takes part in two.
    assert first["own"] == [[[0, 2]], [[4]]]
    assert second["own"] == [[[1, 3], [5]], [[], []]]
    assert (first["values"], second["values"]) == ((0,), (1, 2))
    for worker in (first, second):
        np.testing.assert_array_equal(worker["gathered"], np.ones(6))
        for text, begin in zip(worker["refused"], REFUSED, strict=True):
            assert text.startswith(begin)


@pytest.mark.behaviour("workers-own-input")
@needs_mpi
def test_fit_takes_what_each_worker_has(two_workers: dict[str, list[Any]]) -> None:
    check_own(SOME, LAYOUT, two_workers["fitted_on_own"])


@needs_mpi
@pytest.mark.slow
def test_fit_takes_what_each_of_three_workers_has(three_workers: dict[str, list[Any]]) -> None:
    check_own(OTHERS, LAYOUT_OF_THREE, three_workers["fitted_on_own"])


def check_own(
    names: Sequence[str], layout: Sequence[int], found: Sequence[dict[str, dict[str, Any]]]
) -> None:
    """Fail unless all workers have the same bits, and what one device makes of their batches."""
    for name in names:
        first, *others = [worker[name] for worker in found]
        for other in others:
            for key, value in first.items():
                np.testing.assert_array_equal(other[key], value, err_msg=f"{name}: {key}")
        check_alike(fit_on_one(CASES[name], layout), first, 1e-12)
