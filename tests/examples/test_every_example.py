"""A new example without a test, or without a word in its first lines, is found here."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from case_table import cases

HERE = Path(__file__).resolve().parent
EXAMPLES = sorted((HERE.parents[1] / "examples").glob("*.py"))


@cases("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_test_and_says_what_it_shows(example: Path) -> None:
    tests = [path.read_text() for path in HERE.glob("test_*.py") if path != Path(__file__)]
    assert any(f'"{example.name}"' in text for text in tests)
    assert ast.get_docstring(ast.parse(example.read_text()))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_takes_help_and_ends_bad_arguments_in_one_line(
    example: Path, ended_example: Callable[..., tuple[str, str]]
) -> None:
    printed, error = ended_example(example.name, "--help")
    assert printed.startswith(f"usage: {example.name} [-h]")
    assert (
        ast.get_docstring(ast.parse(example.read_text())).split()[:3]
        == (printed.partition("\n\n")[2].split()[:3])
    )
    assert error == ""
    printed, error = ended_example(example.name, "--no-such-option")
    assert printed == ""
    assert error.splitlines()[-1].startswith(f"{example.name}: error: ")
