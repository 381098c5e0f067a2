"""The gallery of the examples: each has a thumbnail, of what it draws or prints."""

import example_pictures
import pytest


def test_each_example_has_one_thumbnail() -> None:
    examples = (example_pictures.ROOT / "examples").glob("*.py")
    pictures = example_pictures.FOLDER.iterdir()
    assert sorted(path.stem for path in pictures) == sorted(path.stem for path in examples)


@pytest.mark.slow
def test_a_thumbnail_shows_what_an_example_prints() -> None:
    stored = (example_pictures.FOLDER / "manual_placement.svg").read_bytes()
    assert example_pictures.draw("manual_placement") == ("svg", stored)
