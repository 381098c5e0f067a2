"""The figures of kinds of data: each is measured, and has its row in the page."""

import re
from pathlib import Path

import pytest
from case_table import cases

from benchmarks import feeding

PAGE = Path(__file__).parents[2] / "docs/howto/feed-data.md"


FRAME = next(i for i, source in enumerate(feeding.SOURCES) if source.prepare is feeding.frame)


def check(index: int) -> None:
    here = Path.cwd()
    seconds, size = feeding.measure(index, 1500)
    assert seconds > 0
    assert size >= 0
    assert Path.cwd() == here


@cases("index", [index for index in range(len(feeding.SOURCES)) if index != FRAME])
def test_a_kind_of_data_is_measured(index: int) -> None:
    check(index)


@pytest.mark.slow
def test_a_data_frame_is_measured() -> None:
    check(FRAME)


def test_the_page_has_a_row_for_each() -> None:
    rows = re.findall(r"^\| ([^|]+) \|.* [\d.]+ \| \d+ \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [source.name for source in feeding.SOURCES]
