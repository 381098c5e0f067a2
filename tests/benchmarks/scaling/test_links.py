"""What an all-reduce between cards takes, held to cases that were computed by hand."""

import pytest
from case_table import cases

from benchmarks.scaling.links import (
    RING,
    TREE,
    Cluster,
    Protocol,
    all_reduce,
    bus_bandwidth,
    ring_seconds,
    tree_seconds,
)

PLAIN = Protocol("plain", base=1.0, inside=2.0, between=10.0, share=0.5)
ONE_HOST = Cluster(hosts=1, cards=4, inside=100.0, between=20.0)
TWO_HOSTS = Cluster(hosts=2, cards=2, inside=100.0, between=20.0)


@cases(
    ("cluster", "size", "seconds"),
    [
        # 6 steps of 2 s, and 6/4 of the bytes at half of 100 a second.
        (ONE_HOST, 400, 1 + 6 * 2 + 600 / 50),
        # 4 of 6 steps go between hosts, whose 20 a second are the least.
        (TWO_HOSTS, 40, 1 + 2 * 2 + 4 * 10 + 60 / 10),
        # A card a host: no more than the two steps that there are, which never save time.
        (Cluster(2, 1, 100.0, 20.0), 40, 1 + (2 - 4) * 2 + 4 * 10 + 40 / 10),
    ],
)
def test_ring(cluster: Cluster, size: int, seconds: float) -> None:
    assert ring_seconds(size, cluster, PLAIN) == pytest.approx(seconds)


@cases(
    ("cluster", "size", "seconds"),
    [
        (ONE_HOST, 400, 1 + 2 * 3 * 2 + 800 / 50),
        (TWO_HOSTS, 40, 1 + 2 * (2 + 10) + 80 / 10),
        (Cluster(5, 2, 100.0, 20.0), 40, 1 + 2 * (2 + 3 * 10) + 80 / 10),  # Three levels.
    ],
)
def test_tree(cluster: Cluster, size: int, seconds: float) -> None:
    assert tree_seconds(size, cluster, PLAIN) == pytest.approx(seconds)


def test_a_protocol_reaches_no_more_than_its_most() -> None:
    capped = Protocol("capped", 0.0, 0.0, 0.0, 1.0, most=(50.0, 5.0))
    assert ring_seconds(400, ONE_HOST, capped) == pytest.approx(600 / 50)
    assert ring_seconds(40, TWO_HOSTS, capped) == pytest.approx(60 / 5)


def test_the_fastest_is_taken() -> None:
    hosts = Cluster(16, 8, 370e9, 46e9)
    for size in (8, 1 << 20, 1 << 30):
        every = [ring_seconds(size, hosts, each) for each in RING]
        every += [tree_seconds(size, hosts, each) for each in TREE]
        assert all_reduce(size, hosts)[0] == min(every)
    assert all_reduce(8, hosts)[1] == "tree, LL"
    assert all_reduce(1 << 30, Cluster(1, 8, 370e9, 46e9))[1] == "ring, Simple"
    assert all_reduce(1 << 30, Cluster(1, 1, 370e9, 46e9)) == (0.0, "none")


def test_more_bytes_and_more_hosts_take_no_less() -> None:
    sizes = [1 << n for n in range(3, 31, 3)]
    clusters = [Cluster(1 << n, 8, 370e9, 46e9) for n in range(8)]
    times = [[all_reduce(size, each)[0] for size in sizes] for each in clusters]
    for row in times:
        assert row == sorted(row)
    for column in zip(*times, strict=True):
        assert list(column) == sorted(column)


def test_bus_bandwidth_is_that_of_the_links() -> None:
    seconds, _ = all_reduce(1 << 36, Cluster(1, 8, 370e9, 46e9))
    assert bus_bandwidth(1 << 36, 8, seconds) == pytest.approx(370e9, rel=1e-3)
