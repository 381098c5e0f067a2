"""Figures of the code: they are those of a file that is counted by hand."""

import re
from pathlib import Path

import pytest

from benchmarks import structure
from benchmarks.structure import count_lines, fits, packages, private_words

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


def test_code_looks_at_no_frames_and_no_byte_code() -> None:
    reads = re.compile(
        r"_getframe|currentframe|walk_stack|f_back|co_code|^import (dis|opcode)$", re.M
    )
    readers = [
        path for path in structure.sources(structure._LIBRARY) if reads.search(path.read_text())
    ]
    # One reports stacks; the other asks whether an interrupt came in a user's function.
    assert sorted(path.name for path in readers) == ["_interrupt.py", "_stalls.py"]


def test_a_second_fit_is_a_fraction_of_the_first() -> None:
    first, second = fits(2)
    assert 0 < second.calls.total() < first.calls.total() / 3
    assert any(name == "fit" for _, name in second.calls)
    assert first.upward > 0
    assert second.upward > 0


def test_names_that_hide_their_noun(tmp_path: Path) -> None:
    path = tmp_path / "made.py"
    path.write_text(
        "def told(_given): return [each for each in (found := _given)]\nlayer = each = 1\n"
    )
    assert sorted(private_words(path)) == ["_given", "each", "each", "found", "made", "told"]


def test_packages_are_those_of_the_architecture() -> None:
    names = packages()
    assert names[0] == "errors"
    assert names.index("ops") < names.index("layers") < names.index("training")


@pytest.mark.parametrize(
    ("figure", "lines", "status"),
    [
        ("library code lines", 10, None),
        ("library code lines", 11, "library code lines: more"),
        ("test code lines", 11, None),
    ],
)
def test_more_than_a_limit_of_the_library_ends_with_an_error(
    figure: str,
    lines: int,
    status: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["structure"])
    monkeypatch.setattr(structure, "_TESTS", ())  # Counting the tests takes long.
    monkeypatch.setattr(structure, "_LIBRARY", ("optim",))
    monkeypatch.setattr(structure, "figures_of", lambda _: {figure: lines})
    monkeypatch.setattr(structure, "limits_of", lambda _: {figure: 10})
    if status is None:
        structure.main()
    else:
        with pytest.raises(SystemExit, match=status):
            structure.main()
    printed = capsys.readouterr().out
    assert f"{lines - 10:+}" in printed
    assert re.search(r"^optim +\d+ +\d+ +\d+$", printed, re.MULTILINE)


def test_every_figure_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = structure.limits_of(structure.ROOT / "pyproject.toml")
    monkeypatch.setattr(structure, "sources", lambda _: iter(()))  # Counting takes long.
    assert limits.keys() == structure.figures_of(1).keys()
