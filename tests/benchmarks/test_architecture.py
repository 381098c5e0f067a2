"""docs/architecture.md names files that are there, and a `fit` goes the way that it describes."""

import re
from pathlib import Path

import mirrored as mr
from benchmarks.structure import fits

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("mirrored", "layers", "optim", "tests", "examples", "benchmarks")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
ARCHITECTURE = ROOT / "docs" / "architecture.md"
FILE = re.compile(r"`([\w./]+\.py)`")


def walk() -> list[str]:
    """Return the files of the walk of one batch, in its order."""
    text = ARCHITECTURE.read_text()
    section = text.partition("\n## One batch")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w/]+\.py)` \|", section, re.MULTILINE)


def test_files_that_are_named_are_there() -> None:
    files = [
        f"/{path.relative_to(ROOT)}" for each in FOLDERS for path in (ROOT / each).rglob("*.py")
    ]
    named = {(page.name, name) for page in PAGES for name in FILE.findall(page.read_text())}
    assert len(named) > 60
    gone = {each for each in named if not any(file.endswith(f"/{each[1]}") for file in files)}
    assert gone == set()


def test_a_fit_goes_the_way_of_the_walk() -> None:
    package = Path(mr.__file__).parent
    files = walk()
    assert len(files) == len(set(files)) > 30
    passed = {str(Path(file).relative_to(package)) for file, _ in fits(2)[0].calls}
    assert [name for name in files if name.removeprefix("mirrored/") not in passed] == []
