"""The model of several workers on one machine, held to cases that were computed by hand."""

import pytest

from benchmarks.scaling.host import Line, fit, predicted


def test_a_line_is_found_again() -> None:
    line = Line(alpha=2e-6, beta=3e-9)
    found = fit([(size, line.seconds(size)) for size in (4, 1000, 10**6, 10**8)])
    assert (found.alpha, found.beta) == pytest.approx((2e-6, 3e-9))


def test_small_sums_count_as_much_as_large_ones() -> None:
    # By absolute differences the large one would draw alpha far away.
    points = [(0.0, 1.0), (1.0, 1.1), (1000.0, 150.0)]
    assert fit(points).alpha == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(
    ("workers", "seconds"),
    [
        (2, 6 + 4 + (1 + 0.5 * 24)),
        (4, 6 + 2 * 4 + (1 + 0.5 * 24)),  # Two on a core.
    ],
)
def test_prediction(workers: int, seconds: float) -> None:
    line = Line(alpha=1.0, beta=0.5)
    assert predicted(10.0, 6.0, workers, 2, 20, line) == pytest.approx(seconds)


def test_products_that_took_longer_than_the_step_leave_nothing() -> None:
    assert predicted(5.0, 6.0, 4, 2, 0, Line(0.0, 0.0)) == 5.0
