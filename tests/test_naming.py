"""Automatic layer names."""

import pytest
from case_table import cases

from mirrored import _naming as naming
from mirrored.layers import Dense, InputLayer, reset_names


@cases(
    ("class_name", "expected"),
    [
        ("Dense", "dense"),
        ("InputLayer", "input_layer"),
        ("BatchNormalization", "batch_normalization"),
        ("Conv2D", "conv2d"),
        ("MLP", "mlp"),
        ("RGBToGrey", "rgb_to_grey"),
        ("_Block", "block"),
    ],
)
def test_class_names_become_snake_case(class_name: str, expected: str) -> None:
    assert naming.snake_case(class_name) == expected


def test_automatic_names_are_numbered_per_class_until_reset() -> None:
    assert [Dense(1).name for _ in range(3)] == ["dense", "dense_1", "dense_2"]
    assert InputLayer((2,)).name == "input_layer"
    reset_names()
    assert Dense(1).name == "dense"


def test_a_given_name_does_not_use_up_an_automatic_one() -> None:
    assert Dense(1, name="head").name == "head"
    assert Dense(1).name == "dense"


def test_a_name_may_be_empty() -> None:
    """As in Keras 3, whose tutorials name models so."""
    assert Dense(1, name="").name == ""


@pytest.mark.parametrize("name", ["a/b", 3])
def test_bad_names_are_refused(name: object) -> None:
    with pytest.raises(ValueError, match="must be a string and cannot contain character `/`"):
        Dense(1, name=name)  # type: ignore[arg-type]


@cases(
    ("names", "expected"),
    [
        (["abcde", ""], ["abcde", ""]),
        (["abcdef"], ["ab…ef"]),
        (["abcdefgh"], ["ab…gh"]),
        (["abc1xdefg", "abc2xdefg"], ["abc1…efg", "abc2…efg"]),
    ],
)
def test_long_names_lose_their_middle(names: list[str], expected: list[str]) -> None:
    assert naming.shortened(names, 5) == expected


def test_a_free_name_is_none_of_those_taken() -> None:
    assert naming.free_name("a", {"b"}) == "a"
    assert naming.free_name("a", {"a", "a_1", "a_3"}) == "a_2"
    assert naming.free_name("a", {"a_2", "a"}, 2) == "a_3"
