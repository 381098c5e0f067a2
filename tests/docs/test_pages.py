"""The Python in each page runs: its blocks in order, as a reader copies them into one file.

Blocks that cannot run here, since they need another program, have the language `py`.
"""

import os
import re
from pathlib import Path

import pytest
from case_table import cases
from forked_programs import run_program

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"(?<=^```python\n).*?(?=^```)", re.DOTALL | re.MULTILINE)
PAGES = [path for path in sorted(DOCS.glob("**/*.md")) if BLOCK.search(path.read_text())]


def program_of(page: str) -> str:
    """Return the blocks of a page, on the lines that they have there, as a module's text."""
    program, end = '__name__ = "page"', 0  # What is below `if __name__ == "__main__"` is left out.
    for block in BLOCK.finditer(page):
        program += "\n" * page.count("\n", end, block.start()) + block[0]
        end = block.end()
    return program


@pytest.mark.docs
@cases("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    program = tmp_path / page.with_suffix(".py").name
    program.write_text(program_of(page.read_text()))
    done = run_program(
        program, folder=tmp_path, environment=os.environ, strict=True, torn_down=False
    )
    assert done.returncode == 0, done.stderr
