"""The table of what ops cost beside NumPy: all three compute the same, and each has its cell."""

import pytest

from benchmarks import ops


def test_they_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "_TURN", 0.0)
    for name, row in ops.rows().items():
        taken = ops.times(row, rounds=1)
        assert min(taken) > 0
        assert ops.line(name, taken).count("|") == 7


def test_what_differs_is_not_measured() -> None:
    row = next(iter(ops.rows().values()))
    with pytest.raises(ValueError, match="do not compute the same"):
        ops.times(row._replace(numpys=lambda ids: 0.0 * row.numpys(ids)), rounds=1)
