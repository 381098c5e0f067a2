"""How workers of a host share its cores."""

import pytest
from case_table import cases

from mirrored.backends import product_settings
from mirrored.workers.connecting import part_of, share_cores

CORES = [0, 1, 2, 3, 4, 5, 6, 7]


@cases(
    ("mine", "everybody", "threads"),
    [
        (CORES, [CORES], 8),
        (CORES, [CORES] * 3, 2),
        (CORES, [CORES] * 20, 1),
        (CORES[:4], [CORES[:4], CORES[4:]], 4),
        (CORES[:4], [CORES[:4], CORES[:4], CORES[4:]], 2),
    ],
)
def test_parts(mine: list[int], everybody: list[list[int]], threads: int) -> None:
    assert part_of(mine, everybody) == threads


class Local:
    """Workers of a host with the same cores."""

    def __init__(self, count: int) -> None:
        self.count = count

    def allgather(self, mine: list[int]) -> list[list[int]]:
        return [mine] * self.count


def test_what_the_user_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(product_settings, "limit", limits.append)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert share_cores(Local(2)) is None
    assert limits == []
    for variable in ("OMP", "OPENBLAS", "MKL", "BLIS", "GOTO"):
        monkeypatch.delenv(f"{variable}_NUM_THREADS", raising=False)
    monkeypatch.delenv("VECLIB_MAXIMUM_THREADS", raising=False)
    assert share_cores(Local(1000)) == 1
    assert limits == [1]
