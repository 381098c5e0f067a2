"""The ratios that are drawn from a run, and the targets they are held to."""

import pytest
from case_table import cases

from benchmarks.results import (
    ARRAYS_SEVERAL,
    PEER_ONE,
    PEER_SEVERAL,
    TARGETS,
    TENSORFLOW_SEVERAL,
    TO_ONE,
    TO_PRODUCTS,
    WORKERS_TARGETS,
    Report,
    Series,
    Target,
    ratio,
    same_losses,
    value_of,
)
from benchmarks.workloads import TIMED


def make_report(**medians: float) -> Report:
    """Return a report of digits from ``contender_replicas=median``."""
    report = Report({}, replicas=2, rounds=3)
    for key, median in medians.items():
        name, _, replicas = key.rpartition("_")
        samples = [median * 3, median, median / 2]
        report.speed.setdefault("digits", []).append(Series(name, int(replicas), samples))
    return report


FULL = make_report(
    mirrored_1=50.0,
    mirrored_2=60.0,
    products_1=30.0,
    tensorflow_1=900.0,
    tensorflow_2=3000.0,
    torch_1=200.0,
    torch_2=1500.0,
    jax_1=75.0,
    jax_2=240.0,
    **{"tensorflow-arrays_1": 1000.0, "tensorflow-arrays_2": 3600.0, "mirrored-workers_2": 75.0},
)


@cases(
    ("target", "value"),
    [
        (TO_PRODUCTS, 50 / 30),
        (TO_ONE, 1.2),
        (PEER_ONE, 1.5),
        (TENSORFLOW_SEVERAL, 50.0),
        (ARRAYS_SEVERAL, 60.0),
        (PEER_SEVERAL, 4.0),
    ],
)
def test_ratios(target: Target, value: float) -> None:
    assert value_of(target, FULL, "digits") == pytest.approx(value)
    assert target.met("digits", value)


@pytest.mark.parametrize(("target", "value"), [*zip(WORKERS_TARGETS, [1.25, 20.0], strict=True)])
def test_ratios_of_workers(target: Target, value: float) -> None:
    assert value_of(target, FULL, "digits") == pytest.approx(value)


@cases("target", TARGETS)
def test_missing_contenders_have_no_ratio(target: Target) -> None:
    assert value_of(target, make_report(mirrored_1=50.0), "digits") is None
    assert value_of(target, make_report(), "digits") is None


def test_the_fastest_peer_is_among_those_that_are_there() -> None:
    report = make_report(mirrored_1=50.0, products_1=1.0, torch_1=200.0, tensorflow_1=900.0)
    assert value_of(PEER_ONE, report, "digits") == pytest.approx(4.0)


def test_limits() -> None:
    for target in TARGETS:
        assert set(target.limits) <= set(TIMED)
        for name, limit in target.limits.items():
            assert target.met(name, limit)
            assert target.met(name, limit - 0.1) == target.at_most
            assert target.met(name, limit + 0.1) != target.at_most


def test_best_and_median() -> None:
    assert (Series("jax", 1, [3.0, 1.0, 2.0]).best, Series("jax", 1, [3.0, 1.0, 2.0]).median) == (
        1.0,
        2.0,
    )
    assert Series("jax", 1).median is None
    assert ratio(1.0, None) is None
    assert ratio(3.0, 2.0) == 1.5


@cases(("error", "same"), [(None, True), (1e-7, True), (0.1, False), (float("inf"), False)])
def test_same_losses(error: float | None, same: bool) -> None:
    assert same_losses(Series("jax", 1, loss_error=error)) == same
