"""CUDA_VISIBLE_DEVICES is read as CUDA reads it."""

import logging

import pytest
from case_table import cases

from mirrored.backends.backend import visible_ordinals


@pytest.mark.behaviour("cuda-visible-devices")
@cases(
    ("setting", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ("0,1,2,3", [0, 1, 2, 3]),
        ("1", [1]),
        ("2,0", [2, 0]),
        (" 3 , 1 ", [3, 1]),
        ("+1", [1]),
        ("1gpu2,2ampere", [1, 2]),
        ("", []),
        ("-1", []),
        ("-1,0", []),
        ("none", []),
        ("NoDevFiles", []),
        ("0,7,1", [0]),
        ("0,-1,1", [0]),
        ("0,,1", [0]),
        ("0,x,1", [0]),
        ("1,1", []),
        ("0,1,0", []),
    ],
)
def test_entries(setting: str | None, expected: list[int]) -> None:
    assert visible_ordinals(setting, count=4) == expected


@pytest.mark.behaviour("cuda-visible-devices")
@cases(
    ("setting", "expected"),
    [
        ("GPU-beef", [1]),
        ("GPU-beef,0", [1, 0]),
        ("GPU-be", []),  # Two cards begin like this.
        ("GPU-bead1,GPU-nowhere,1", [0]),
    ],
)
def test_unique_ids(setting: str, expected: list[int]) -> None:
    assert visible_ordinals(setting, 2, ids=["GPU-bead1", "GPU-beef2"]) == expected


@pytest.mark.behaviour("cuda-visible-devices")
@pytest.mark.parametrize(
    ("setting", "expected", "warned"),
    [
        ("MIG-8932f937-d72c-4106-c12f-20bd9faed9f6", [], True),
        ("1, MIG-GPU-beef2/1/0,0", [1], True),
        ("7,MIG-1", [], False),  # CUDA does not come to it.
        ("GPU-nowhere", [], False),
    ],
)
def test_parts_of_cards_are_not_supported(
    caplog: pytest.LogCaptureFixture, setting: str, expected: list[int], warned: bool
) -> None:
    assert visible_ordinals(setting, 2, ids=["GPU-bead1", "GPU-beef2"]) == expected
    assert [r.levelno for r in caplog.records] == [logging.WARNING] * warned
    if warned:
        assert "from its entry 'MIG-" in caplog.text
        assert "Name whole cards, by number or id (`nvidia-smi -L`)" in caplog.text


def test_no_cards() -> None:
    assert visible_ordinals("0", count=0) == []
