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
from worker_tasks import OPTIONS, OTHER_WAYS, QUICK, SIZES, cases, choices, pairs_of
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
def test_three_workers_equal_one_replica(three_workers: dict[str, list[Any]]) -> None:
    check(cases()[QUICK : len(SIZES)], OTHER_WAYS, three_workers["trained"])


@pytest.mark.behaviour("workers-equal-one")
@needs_mpi
@pytest.mark.parametrize(
    ("layout", "hosts", "rows"),
    [
        pytest.param((4,), None, range(3, 4), id="4", marks=pytest.mark.slow),
        pytest.param((2, 2), "a,b", range(1, 2), id="2 2", marks=pytest.mark.slow),
        pytest.param((4,), None, range(4, 5), id="4, other cases", marks=pytest.mark.long),
        pytest.param((2, 2), "a,b", range(2, 3), id="2 2, other cases", marks=pytest.mark.long),
    ],
)
def test_any_layout_of_workers_equals_one_replica(
    layout: tuple[int, ...], hosts: str | None, rows: range, tmp_path: Path
) -> None:
    """Each case of the table is one layout's; each row of them has all sizes."""
    chosen = cases()[rows.start * len(SIZES) : rows.stop * len(SIZES)]
    (found,) = launch([("trained", (chosen, ()))], layout, tmp_path, hosts=hosts)
    check(chosen, (), found)


def same_bits(x: Any, y: Any) -> bool:
    return np.asarray(x).tobytes() == np.asarray(y).tobytes()


def check_fixed(
    chosen: Sequence[tuple[Case, str]],
    names: Sequence[str],
    found: Sequence[list[dict[str, Any]]],
) -> None:
    """Fail unless eight replicas of several workers have the bits that they have on one device."""
    alone = functools.partial(mr.MirroredStrategy, replicas=8)
    expected = [train(case, 1, floatx, alone) for case, floatx in chosen]
    expected += [run(WAYS[name], 1, alone) for name in names]
    expected.append({"gathered": np.tile(np.array([-0.0, 1.0], np.float32), 8)})
    for worker in found:
        for own, other in zip(worker, expected, strict=True):
            differing = [name for name in other if not same_bits(own[name], other[name])]
            assert differing == []


@pytest.mark.behaviour("fixed-replicas-of-workers")
@needs_mpi
def test_fixed_replicas_of_two_workers(two_workers: dict[str, list[Any]]) -> None:
    check_fixed(cases()[:2], ["loop"], two_workers["fixed"])


@needs_mpi
@pytest.mark.slow
def test_fixed_replicas_of_three_workers(three_workers: dict[str, list[Any]]) -> None:
    check_fixed(cases()[2:4], ["own step"], three_workers["fixed"])


@needs_mpi
@pytest.mark.parametrize(
    ("rows", "names"),
    [
        pytest.param(slice(4, 5), ["loop"], marks=pytest.mark.slow),
        pytest.param(slice(2, 12), list(WAYS), marks=pytest.mark.long),
    ],
    ids=["one", "all"],
)
def test_fixed_replicas_of_four_workers(rows: slice, names: list[str], tmp_path: Path) -> None:
    chosen = cases()[rows]
    (found,) = launch([("fixed", (chosen, names))], (1, 1, 1, 1), tmp_path)
    check_fixed(chosen, names, found)


@needs_mpi
@pytest.mark.slow
def test_sums_beside_a_step_change_no_bits(three_workers: dict[str, list[Any]]) -> None:
    found = three_workers["meanwhile"]
    for at_the_end, beside in found:
        for before, after in zip(at_the_end[0], beside[0], strict=True):
            check_same([before, after])
        for name, left in at_the_end[1].items():
            check_same([left, beside[1][name]])
    check_same([beside[0][0] for _, beside in found])
