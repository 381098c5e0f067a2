"""The cost of a comparison of replicas is measured for all sizes and devices."""

from benchmarks import check_replicas


def test_a_row_per_size_and_number_of_devices() -> None:
    rows = list(check_replicas.rows([1, 3], [1, 2], calls=2))
    assert [row[:2] for row in rows] == [(1, 1), (1, 2), (3, 1), (3, 2)]
    assert all(len(seconds) == 2 and min(seconds) > 0 for _, _, seconds in rows)
