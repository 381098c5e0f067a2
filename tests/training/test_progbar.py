"""`Progbar` shows the values that Keras' shows."""

import re
from typing import Any

import pytest

from mirrored.keras.utils import Progbar


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return re.sub(r"\d+\.\ds", "_s", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        # At the end the values are what is shown, as in Keras.
        ({}, "3/3 steps - _s - loss: 2.0000 - q: 2.0000\n"),
        ({"stateful_metrics": ["q"], "unit_name": "u"}, "3/3 us - _s - loss: 2.0000 - q: 2.0000\n"),
        ({"verbose": 2}, "3/3 steps - _s - loss: 2.0000 - q: 2.0000\n"),
        ({"verbose": 0}, ""),
    ],
)
def test_a_bar_ends_with_a_line(
    options: dict[str, Any], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bar = Progbar(3, **options)
    for i in range(3):
        bar.add(1, [("loss", i), ("q", i)])
    assert shown(capsys) == text


@pytest.mark.parametrize(
    ("options", "means"),
    [
        ({}, "loss: 1.0000 - q: 1.0000"),
        ({"stateful_metrics": ["q"]}, "loss: 1.0000 - q: 2.0000"),
        ({"stateless_metrics": ["q"]}, "loss: 2.0000 - q: 1.0000"),
    ],
)
def test_means(options: dict[str, Any], means: str, capsys: pytest.CaptureFixture[str]) -> None:
    bar = Progbar(None, **options)
    for i in range(3):
        bar.update(i + 1, [("loss", i), ("q", i)])
    bar.update(4, finalize=True)
    assert shown(capsys) == f"4 steps - _s - {means}\n"


def test_both_kinds_of_names() -> None:
    with pytest.raises(ValueError, match="Only one of `stateful_metrics` or `stateless_metrics`"):
        Progbar(3, stateful_metrics=["a"], stateless_metrics=["b"])
