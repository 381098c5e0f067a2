"""The page of pictures: its code draws the pictures that it shows."""

import re
from pathlib import Path

import page_pictures
import pytest
from matplotlib import pyplot as plt

import mirrored as mr


@pytest.mark.slow
def test_the_code_draws_what_the_page_shows(tmp_path: Path) -> None:
    page_pictures.draw(tmp_path)
    plt.close("all")
    shown = set(re.findall(r"\]\(pictures/(.*?)\)", page_pictures.PAGE.read_text()))
    assert shown == {path.name for path in tmp_path.glob("*.svg")}
    assert shown == {path.name for path in page_pictures.FOLDER.iterdir()}
    # The steps of a trace take other times in each run; all else is the same.
    for name in ("model.svg", "placement.svg"):
        assert _texts(page_pictures.FOLDER / name) == _texts(tmp_path / name)
    assert mr.config.list_physical_devices("GPU")[3].name == "/physical_device:GPU:3"


def _texts(path: Path) -> list[str]:
    return re.findall(r"<!-- (.*?) -->|<text[^>]*>(.*?)</text>", path.read_text())
