"""A row of the table of steps beside a busy process."""

import pytest

from benchmarks import neighbours


@pytest.mark.slow
def test_a_row() -> None:
    cells = neighbours.row("digits", "threads", 1, 0.01).strip("| ").split(" | ")
    assert cells[:2] == ["digits", "threads"]
    assert all(float(cell) > 0 for cell in cells[2:])
