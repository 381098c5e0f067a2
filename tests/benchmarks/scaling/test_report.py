"""The page on scaling: measurements, the model beside them, and what it says."""

from pathlib import Path

import pytest
from scaling_figures import found

from benchmarks.scaling import plot, report
from benchmarks.scaling.measured import Measured


def rows_of(text: str, first: str) -> list[list[str]]:
    """Return the cells of all table rows that begin so."""
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines()]
    return [each for each in cells if each[0] == first]


TEXT = report.markdown(found(), "scaling.svg")


def test_it_says_on_top_that_it_is_a_model() -> None:
    assert "a model, and not a measurement" in TEXT.partition("\n## ")[0]


def test_steps_and_ratios() -> None:
    assert rows_of(TEXT, "2 workers, shared memory")[0] == ["2 workers, shared memory", "160"]
    assert rows_of(TEXT, "ratio: 2 workers / 2 replicas of one process")[0][1] == "1.33"
    assert rows_of(TEXT, "ratio: PyTorch / 2 workers")[0][1] == "5.00"
    assert not rows_of(TEXT, "4 workers, messages")  # It was not measured.
    assert "- mirrored: 1, NumPy 2" in TEXT
    assert "- torch: 3" in TEXT
    assert "- MPI: MPICH 5" in TEXT
    assert "- no sums of 4 workers, shared memory: it ended" in TEXT


def test_sums_have_their_line_and_predictions_their_error() -> None:
    _, sums, predicted = rows_of(TEXT, "2 workers, shared memory")
    assert sums[1:3] == ["10.0", "14.1"]
    assert [float(each) for each in sums[-2:]] == [10.0, 1.0]
    # 100 us of one device, and a sum of 38,444 bytes.
    assert predicted[1] == "148 (-7%)"


def test_cards() -> None:
    assert len(rows_of(TEXT, "huge")) == 5  # Four networks of efficiency, and a row of speed-ups.
    assert rows_of(TEXT, "line")[-1][-1] == "-"  # 64 examples are not cut over 1,024 cards.
    assert "![Efficiency over the number of cards](scaling.svg)" in TEXT
    assert TEXT.count("https://") >= 10


def test_parts_that_are_missing_are_left_out() -> None:
    text = report.markdown(Measured({"cores": "2"}, 3), None)
    titles = [line for line in text.splitlines() if line.startswith("##")]
    assert "### Steps" not in titles
    assert "### What it says" in titles
    assert "svg" not in text


@pytest.mark.slow
def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "scaling.svg"
    assert plot.draw(path) == path
    first = path.read_bytes()
    plot.draw(path)
    assert path.read_bytes() == first
