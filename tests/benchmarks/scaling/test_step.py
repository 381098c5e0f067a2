"""A step on cards: what kernels take, when buckets are full, and which sums are hidden."""

import pytest

from benchmarks.scaling import step
from benchmarks.scaling.links import Cluster
from benchmarks.scaling.step import Card, Timeline, buckets, step_seconds, timeline
from benchmarks.workloads import Workload

ANY = Cluster(1, 2, 1.0, 1.0)


def test_kernels() -> None:
    card = Card(flops=10.0, memory=8.0, kernel=3.0)
    assert card.product(10, 2, 5) == pytest.approx(max(2 * 10 * 2 * 5 / 10, 4 * 80 / 8))
    assert Card(1.0, 1e9, 3.0).product(10, 2, 5) == pytest.approx(200.0)
    assert Card(1e9, 1e9, 3.0).product(10, 2, 5) == 3.0
    assert card.elementwise(10, 2) == pytest.approx(4 * 10 * 2 / 8)
    assert card.elementwise(1, 2) == 3.0


@pytest.mark.parametrize(("momentum", "arrays"), [(0.9, 5), (0.0, 3)])
def test_timeline_of_kernels_that_take_a_second_each(momentum: float, arrays: int) -> None:
    card = Card(flops=1e30, memory=1e30, kernel=1.0)
    network = Workload("two", (3, 4, 5), 8, 8, momentum=momentum)
    line = timeline(network, 8, card)
    assert line.forward == 2 * 2 + 1  # A product and what follows it for each layer, and the loss.
    # The last layer: through its outputs, its weights, its inputs; of the first no inputs.
    assert line.gradients == ((2.0, 4 * 5 * 5), (5.0, 4 * 4 * 4))
    assert (line.backward, line.update, line.step) == (5.0, 1.0, 11.0)
    slow = timeline(network, 8, Card(1e30, 1.0, 0.0))
    assert slow.update == network.parameter_bytes * arrays


def test_buckets_end_when_they_are_full() -> None:
    gradients = ((1.0, 6), (2.0, 6), (3.0, 20), (4.0, 5))
    assert buckets(gradients, 10) == [(2.0, 12), (3.0, 20), (4.0, 5)]
    assert buckets(gradients, 100) == [(4.0, 37)]
    assert buckets(gradients[:2], 12) == [(2.0, 12)]


@pytest.mark.parametrize(
    ("gradients", "seconds"),
    [
        # Full after 2 s, and summed until 5: hidden by a backward pass of 6.
        ([(2.0, 3)], 1 + 6 + 1),
        # Full with the end of it: nothing is hidden.
        ([(6.0, 3)], 1 + 6 + 3 + 1),
        # The second waits for the first, from 2 to 6, and ends at 11.
        ([(2.0, 4), (3.0, 5)], 1 + 11 + 1),
        # The second is full after the first is summed: from 5 to 10.
        ([(2.0, 1), (5.0, 5)], 1 + 10 + 1),
    ],
)
def test_sums_go_beside_the_backward_pass(
    gradients: list[tuple[float, int]], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "all_reduce", lambda size, cluster: (float(size), "by hand"))
    monkeypatch.setattr(step, "buckets", lambda found: found)
    assert step_seconds(Timeline(1.0, tuple(gradients), 6.0, 1.0), ANY) == seconds
