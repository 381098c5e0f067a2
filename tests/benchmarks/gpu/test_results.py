"""Ratios and targets of a GPU's figures, and losses that take a contender out of them."""

import math

import pytest

from benchmarks.gpu.results import (
    PEER,
    TARGETS,
    TO_PRODUCTS,
    Figure,
    Results,
    compare_losses,
    value_of,
)
from benchmarks.gpu.results import (
    TestFile as FileResult,
)
from benchmarks.gpu.workloads import PRECISIONS, WORKLOADS


def measured(**medians: float) -> Results:
    """Return results of `wide` in float32, of these contenders."""
    return Results(
        figures=[
            Figure(name.replace("_", "-"), "wide", "float32", [each - 1, each, each + 50])
            for name, each in medians.items()
        ]
    )


def test_ratios_are_of_medians() -> None:
    results = measured(mirrored=110, torch=140, torch_graph=121, jax=132, products=100)
    assert value_of(TO_PRODUCTS["float32"], results, "wide", "float32") == pytest.approx(1.1)
    assert value_of(PEER, results, "wide", "float32") == pytest.approx(1.1)
    assert value_of(PEER, results, "wide", "tf32") is None
    assert value_of(PEER, results, "huge", "float32") is None


def test_what_is_missing_gives_no_ratio() -> None:
    assert value_of(PEER, measured(mirrored=110, products=100), "wide", "float32") is None
    assert (
        value_of(TO_PRODUCTS["float32"], measured(mirrored=110, jax=100), "wide", "float32") is None
    )


def test_other_losses_take_a_contender_out_of_ratios() -> None:
    results = measured(mirrored=110, torch=100, jax=132)
    peer = results.figures[1]
    for figure in results.figures:
        figure.losses = [2.0, 1.0]
    peer.losses = [2.0, 1.01]
    compare_losses(results.figures)
    assert peer.loss_error == pytest.approx(0.01)
    assert not peer.trusted
    assert value_of(PEER, results, "wide", "float32") == pytest.approx(1.2)


def test_losses_that_are_not_numbers_are_not_trusted() -> None:
    figures = [Figure(name, "wide", "tf32", losses=[2.0]) for name in ("a", "b", "c")]
    figures[0].losses = [math.nan]
    compare_losses(figures)
    assert figures[0].loss_error == math.inf
    assert not figures[0].trusted


def test_losses_of_one_alone_are_compared_with_nothing() -> None:
    figures = [Figure("a", "wide", "tf32", losses=[2.0]), Figure("b", "wide", "tf32")]
    compare_losses(figures)
    assert [each.loss_error for each in figures] == [None, None]
    assert figures[0].trusted


def test_targets_are_of_precisions_and_workloads_that_there_are() -> None:
    for by_precision in TARGETS:
        assert set(by_precision) == set(PRECISIONS)
        for target in by_precision.values():
            assert set(target.limits) <= set(WORKLOADS)


def test_targets_at_their_limits() -> None:
    assert TO_PRODUCTS["bfloat16"].met("huge", 1.3)
    assert not TO_PRODUCTS["bfloat16"].met("huge", 1.31)
    assert PEER.met("digits", 1.5)
    assert not PEER.met("digits", 1.49)
    assert PEER.met("wide", 1.0)


def test_a_file_fails_by_a_test_or_by_its_process() -> None:
    assert not FileResult("a", tests=[{"outcome": "passed"}, {"outcome": "skipped"}]).failed
    assert FileResult("a", tests=[{"outcome": "crashed"}]).failed
    assert FileResult("a", problem="ended").failed


def test_workloads() -> None:
    assert len(PRECISIONS) == 3
    assert WORKLOADS["huge"].sizes == (4096, 8192, 8192, 4096)
    for name, workload in WORKLOADS.items():
        assert workload.name == name
        assert workload.momentum == 0
        assert workload.examples % workload.batch == 0
