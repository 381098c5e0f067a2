"""The style of pictures: what they share, and settings of the user's that stay."""

from typing import Any

import pytest
from matplotlib import pyplot as plt

from mirrored import _drawing


@pytest.fixture(autouse=True)
def close_figures() -> Any:
    yield
    plt.close("all")


@_drawing.styled
def draw(heights: list[float]) -> Any:
    figure, (axes,) = _drawing.picture(1, 4.0, 2.7)
    axes.set_ylim(0, 10)
    _drawing.label_ends(axes, [(height, f"{height}", "red") for height in heights])
    return figure


def test_labels_are_a_line_apart_within_the_plot() -> None:
    texts = draw([9.9, 5.0, 5.1, 10.0]).axes[0].texts
    assert [text.get_text() for text in texts] == ["5.0", "5.1", "9.9", "10.0"]
    places = [text.get_position()[1] for text in texts]
    assert places == pytest.approx([0.5, 0.6, 0.9, 1.0])


def test_a_setting_of_the_users_is_kept() -> None:
    default = plt.rcParams["text.color"]
    assert draw([1.0]).axes[0].title.get_color() == _drawing.INK
    with plt.rc_context({"text.color": "green"}):
        assert draw([1.0]).axes[0].title.get_color() == "green"
    assert plt.rcParams["text.color"] == default


def test_pictures_are_transparent() -> None:
    figure = draw([1.0])
    assert figure.get_facecolor()[3] == figure.axes[0].get_facecolor()[3] == 0


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("color", [*_drawing.COLORS, _drawing.INK, _drawing.LIMIT])
def test_colors_have_contrast_on_white_and_on_dark(color: str) -> None:
    # 3 to 1 is what the WCAG ask of graphics.
    assert 1.05 / (luminance(color) + 0.05) >= 3
    assert (luminance(color) + 0.05) / (luminance("#131416") + 0.05) >= 3


def test_rows_of_plots() -> None:
    figure, plots = _drawing.picture(5, 2.0, 1.0, columns=2)
    assert len(plots) == len(figure.axes) == 5
    assert figure.get_size_inches().tolist() == [4.0, 3.0]
