"""What the model says of many cards, where that can be said without computing it."""

import pytest
from case_table import cases

from benchmarks.scaling.assumptions import COUNTS, MODELS, NETWORKS, NVLINK, PUBLISHED, cluster
from benchmarks.scaling.curves import efficiency, speedup, step
from benchmarks.scaling.links import GB


def test_clusters() -> None:
    few, many = cluster(4, 100), cluster(64, 100)
    assert (few.hosts, few.cards, few.inside) == (1, 4, NVLINK)
    assert (many.hosts, many.cards, many.ranks) == (8, 8, 64)
    assert many.between == pytest.approx(0.92 * 12.5 * GB)


@cases("name", MODELS)
def test_efficiency_falls_with_cards_and_rises_with_links(name: str) -> None:
    network = MODELS[name]
    for gigabits in NETWORKS.values():
        values = [efficiency(network, cards, gigabits) for cards in COUNTS]
        assert values[0] == 1.0
        assert all(0 < each <= 1 for each in values)
        assert values == sorted(values, reverse=True)
    among = [efficiency(network, 64, gigabits) for gigabits in NETWORKS.values()]
    assert among == sorted(among)


def test_one_batch_for_all_is_no_faster_than_its_sums() -> None:
    huge = MODELS["huge"]
    assert speedup(huge, 1, 400) == 1.0
    assert speedup(huge, 8, 400) < 8
    assert step(huge, 8, 400, shared=True) < step(huge, 8, 400)


def test_what_is_published_is_a_time_or_a_bandwidth() -> None:
    for each in PUBLISHED:
        assert (each.seconds is None) != (each.bandwidth is None)
        assert each.address.startswith("https://")
