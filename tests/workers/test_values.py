"""What several workers sum, gather and send: one launch a layout of the hosts."""

import os
from pathlib import Path

import pytest
from ranks import run_ranks

PROGRAM = Path(__file__).parents[1] / "support" / "worker_values.py"
PARTS = ["sums are right", "sums_meanwhile are right", "gathers are right", "broadcasts are right"]


@pytest.mark.behaviour("worker-sums")
@pytest.mark.parametrize(
    ("count", "hosts", "local_ranks"),
    [
        pytest.param(3, ("a", "b"), (0, 1, 0), id="hosts of two and one"),
        pytest.param(4, ("a", "b"), (0, 1, 0, 1), id="hosts of two", marks=pytest.mark.slow),
        pytest.param(3, (), (0, 1, 2), id="a host of three", marks=pytest.mark.long),
    ],
)
def test_sums_gathers_and_broadcasts(
    tmp_path: Path, count: int, hosts: tuple[str, ...], local_ranks: tuple[int, ...]
) -> None:
    placed = [f"{host}:{-(-count // len(hosts))}" for host in hosts]
    done = run_ranks(PROGRAM, tmp_path, count, hosts=placed)
    assert done.status == 0, done.err
    for rank, text in enumerate(done.out):
        *parts, place = text.splitlines()
        assert parts == PARTS
        number, total, local, chief, names = place.split()
        assert (int(number), int(total), int(local)) == (rank, count, local_ranks[rank])
        assert (chief == "True") == (rank == 0)
        on = names.split(",")
        if hosts:
            assert on == [
                hosts[rank * len(hosts) // count if count % 2 == 0 else rank // 2]
                for rank in range(count)
            ]
        else:
            assert on == [os.uname().nodename] * count
