"""`tf.app`: flags are read as absl reads them."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import mirrored.compat.v1 as tf

flags = tf.app.flags


@pytest.fixture(autouse=True)
def defined(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "argv", ["program", "--steps", "7"])
    flags.DEFINE_integer("steps", 100, "How many steps.")
    flags.DEFINE_float("rate", 1, "The rate.")
    flags.DEFINE_string("folder", None, "Where to write.")
    flags.DEFINE_boolean("verbose", False, "Whether it tells.")
    yield
    for name in ("steps", "rate", "folder", "verbose"):
        delattr(flags.FLAGS, name)
    flags.FLAGS.unparse_flags()


def values() -> list[Any]:
    return [flags.FLAGS.steps, flags.FLAGS.rate, flags.FLAGS.folder, flags.FLAGS.verbose]


# A command line, what the flags are then, and what is left of it.
LINES: list[tuple[str, list[Any], list[str]]] = [
    ("", [100, 1.0, None, False], []),
    ("--steps=3 --rate=0.5 --folder=a=b --verbose", [3, 0.5, "a=b", True], []),
    ("-steps 0x10 --folder --steps", [16, 1.0, "--steps", False], []),
    ("--verbose more --steps=3", [100, 1.0, None, True], ["more", "--steps=3"]),
    ("--verbose=true --noverbose -- --steps=3", [100, 1.0, None, False], ["--steps=3"]),
]


@pytest.mark.parametrize(("line", "expected", "rest"), LINES)
def test_command_lines(line: str, expected: list[Any], rest: list[str]) -> None:
    assert flags.FLAGS(["program", *line.split()]) == ["program", *rest]
    assert values() == expected


def test_flags_are_read_when_one_is_asked_for() -> None:
    assert not flags.FLAGS.is_parsed()
    assert flags.FLAGS.steps == 7
    flags.FLAGS.steps = 8
    assert flags.FLAGS.steps == 8


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("--other=1", "Unknown command line flag 'other'"),
        ("--steps=a", "flag --steps=a: invalid literal for int()"),
        ("--verbose=2", "flag --verbose=2: Non-boolean argument to boolean flag"),
        ("--rate", "Missing value for flag --rate"),
    ],
)
def test_what_is_wrong(line: str, text: str) -> None:
    with pytest.raises(flags.Error) as caught:
        flags.FLAGS(["program", *line.split()])
    assert text in str(caught.value)
    with pytest.raises(flags.Error, match="'steps' is defined twice"):
        flags.DEFINE_integer("steps", 1, "")


def test_a_program_ends_with_what_its_main_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as left:
        tf.app.run(lambda argv: (flags.FLAGS.steps, argv), ["p", "--steps=2", "--x=1", "y"])
    assert left.value.code == (2, ["p", "--x=1", "y"])
