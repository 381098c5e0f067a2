"""Workers change nothing but the time: any layout of replicas over them equals one replica."""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import launch, needs_mpi
from replica_cases import Case, check_alike, train
from worker_loops import WAYS, run
from worker_tasks import OPTIONS, QUICK, SIZES, cases, choices, pairs_of
from worker_tasks import WAYS as SOME_WAYS

import mirrored as mr

TOLERANCES = {"float64": 1e-12, "float32": 1e-5}


# Computed once for all layouts.
@functools.cache
def train_on_one(case: Case, floatx: str) -> dict[str, Any]:
    return train(case, 1, floatx)


@functools.cache
def run_on_one(name: str) -> dict[str, Any]:
    return run(WAYS[name], 1, mr.MirroredStrategy)


def check_same(found: Sequence[dict[str, Any]]) -> None:
    """Fail unless all workers have the same bits."""
    for worker in found[1:]:
        for name, value in found[0].items():
            np.testing.assert_array_equal(worker[name], value, err_msg=name)


def check(
    chosen: Sequence[tuple[Case, str]], names: Sequence[str], found: Sequence[tuple[Any, Any]]
) -> None:
    """Fail unless all workers have the same bits, and they are what one replica has.

    Of cases of `fit`, and of ways of training.
    """
    for i, (case, floatx) in enumerate(chosen):
        check_same([fits[i] for fits, _ in found])
        check_alike(train_on_one(case, floatx), found[0][0][i], TOLERANCES[floatx])
    for name in names:
        check_same([ways[name] for _, ways in found])
        check_alike(run_on_one(name), found[0][1][name], 1e-12)


def test_each_two_values_of_two_options_meet_in_a_case() -> None:
    met = set().union(*map(pairs_of, choices()))
    for (one, ones), (other, others) in itertools.combinations(OPTIONS.items(), 2):
        for a, b in itertools.product(ones, others):
            assert ((one, a), (other, b)) in met or ((other, b), (one, a)) in met
    first = [(case.examples, case.batch_size) for case, _ in cases()[: len(SIZES)]]
    assert sorted(first) == sorted(SIZES)


@pytest.mark.behaviour("workers-equal-one", "workers-predict")
@needs_mpi
def test_workers_equal_one_replica(two_workers: dict[str, list[Any]]) -> None:
    check(cases()[:QUICK], SOME_WAYS, two_workers["trained"])


@pytest.mark.behaviour("workers-equal-one")
@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "count", "names"),
    [
        ((4,), len(SIZES), ()),
        ((1, 2, 1), None, ()),
        ((2, 2), len(SIZES), SOME_WAYS),
    ],
    ids=["4", "1 2 1", "2 2"],
)
def test_any_layout_of_workers_equals_one_replica(
    layout: tuple[int, ...], count: int | None, names: Sequence[str], tmp_path: Path
) -> None:
    check_layout(cases()[:count], list(names), layout, None, tmp_path)


@needs_mpi
@pytest.mark.slow
def test_every_way_of_training_on_several_hosts(tmp_path: Path) -> None:
    check_layout([], list(WAYS), (1, 2), "a,b", tmp_path)


def check_layout(
    chosen: Sequence[tuple[Case, str]],
    names: Sequence[str],
    layout: Sequence[int],
    hosts: str | None,
    folder: Path,
) -> None:
    """Hold workers of a layout to one replica."""
    given = list(chosen), list(names)
    (found,) = launch([("trained", given)], layout, folder, hosts=hosts)
    check(chosen, names, found)


@needs_mpi
@pytest.mark.slow
def test_sums_beside_a_step_change_no_bits(tmp_path: Path) -> None:
    given = cases()[::6], ["own step", "loop"]  # With every optimizer, loss and way to clip.
    (found,) = launch([("meanwhile", given)], (1, 2, 1), tmp_path, hosts="a,b")
    for at_the_end, beside in found:
        for before, after in zip(at_the_end[0], beside[0], strict=True):
            check_same([before, after])
        for name, left in at_the_end[1].items():
            check_same([left, beside[1][name]])
    check_same([beside[0][0] for _, beside in found])
