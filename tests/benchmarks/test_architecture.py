"""docs/architecture.md names files that are there, and a `fit` goes the way that it describes."""

import re
from pathlib import Path

import pytest

import mirrored as mr
from benchmarks.structure import fits

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs/architecture.md", ROOT / "CONTRIBUTING.md"]
FILE = re.compile(r"`([\w./]+\.py)`")


def walk() -> list[str]:
    """Return the files of the walk of one batch, in its order."""
    text = PAGES[0].read_text()
    section = text[text.index("## One batch") : text.index("## Devices")]
    return re.findall(r"^\| `([\w/]+\.py)` \|", section, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_are_there(page: Path) -> None:
    paths = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py")]
    named = FILE.findall(page.read_text())
    assert named
    assert [
        name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in paths)
    ] == []


def test_a_fit_goes_the_way_of_the_walk() -> None:
    package = Path(mr.__file__).parent
    files = walk()
    assert len(files) == len(set(files)) > 30
    passed = {str(Path(file).relative_to(package)) for file, _ in fits(2)[0]}
    assert [name for name in files if name.removeprefix("mirrored/") not in passed] == []
