"""Figures of the code: they are those of a file that is counted by hand."""

from pathlib import Path

from benchmarks.structure import count_lines, fits

TEXT = '''"""A module,
in two lines."""

import os  # Code, with a comment.

# A comment alone.


def cwd() -> str:
    """Return a path."""
    text = """
    Two lines of code and one of a string's
    """
    return text + os.getcwd()
'''


def test_lines_of_code_and_of_docstrings(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(TEXT)
    assert count_lines(path) == (6, 3)


def test_a_second_fit_is_a_fraction_of_the_first() -> None:
    first, second = fits(2)
    assert 0 < second.total() < first.total() / 3
    assert any(name == "fit" for _, name in second)
