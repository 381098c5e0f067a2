"""Each row of docs/reference/behaviour-rows.md has tests, which are marked with its key.

`pytest -m behaviour` runs them. A row without a test fails here, and a mark without a row.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "reference" / "behaviour-rows.md").read_text()
HEADING = "## Unverified"
KEYS = re.findall(r"^- \*\*([a-z0-9-]+)\*\*\s", PAGE, re.MULTILINE)


def marked_keys() -> Iterator[str]:
    """Yield the keys in the marks of all tests; those of decorators alone."""
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        if "mark.behaviour(" not in text:
            continue
        for node in ast.parse(text).body:
            for decorator in getattr(node, "decorator_list", ()):
                if "mark.behaviour(" in ast.unparse(decorator):
                    yield from map(ast.literal_eval, decorator.args)


def test_keys_are_unique() -> None:
    assert [key for key, count in Counter(KEYS).items() if count > 1] == []


def test_every_bullet_is_a_row_but_what_is_not_there_yet() -> None:
    rows, heading, rest = PAGE.partition(f"\n{HEADING}\n")
    assert heading
    assert len(re.findall(r"^\s*[-*] ", rows, re.MULTILINE)) == len(KEYS)
    assert "**" not in rest


def test_every_row_has_a_test_and_every_mark_a_row() -> None:
    held = set(marked_keys())
    assert set(KEYS) - held == set(), "mark a test with @pytest.mark.behaviour(key)"
    assert held - set(KEYS) == set(), "docs/reference/behaviour-rows.md has no such row"
