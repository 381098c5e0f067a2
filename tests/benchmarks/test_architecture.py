"""docs/architecture.md names files that are there, and a `fit` goes the way that it describes."""

import itertools
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import mirrored as mr
from benchmarks.structure import fits, packages
from mirrored.data.arguments import DataArguments
from mirrored.data.arrays import Arrays
from mirrored.data.batches import Span
from mirrored.data.epochs import Epochs
from mirrored.data.passes import Passes
from mirrored.ops.op import OPS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("mirrored", "layers", "optim", "tests", "examples", "benchmarks", "docs")
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


def has_data(value: Any, x: np.ndarray) -> bool:
    """Return whether a value is the data of a run, or one of the types that carry them."""
    if isinstance(value, np.ndarray):
        return np.may_share_memory(value, x)
    if isinstance(value, DataArguments | Epochs | Passes):
        return has_data(list(vars(value).values()), x)
    if isinstance(value, Span):
        return has_data(getattr(value, "arrays", None), x)  # None while it is made.
    if isinstance(value, Arrays):
        return has_data(getattr(value, "columns", None), x)
    return isinstance(value, list | tuple) and any(has_data(item, x) for item in value)


def test_data_climb_to_a_higher_package_at_most_four_times() -> None:
    """From `Model.fit` to the first product, counted over the calls that have data as arguments."""
    x = np.arange(8, dtype=np.float32).reshape(-1, 1)
    model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    package, order = f"{Path(mr.__file__).parent}/", packages()
    product, heights = OPS["MatMul"].kernel.__code__, [len(order)]

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if code is product:
            sys.setprofile(None)
        if event != "call" or not code.co_filename.startswith(package):
            return
        top = code.co_filename.removeprefix(package).partition("/")[0].removesuffix(".py")
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        # Comprehensions and generators are parts of the functions that they are in.
        if top in order and not code.co_name.startswith("<"):
            local = frame.f_locals
            if has_data([local.get(name) for name in names], x):
                heights.append(order.index(top))

    sys.setprofile(note)
    try:
        model.fit(x, x, batch_size=8, verbose=0)
    finally:
        sys.setprofile(None)
    assert len(heights) > 40
    assert sum(after > before for before, after in itertools.pairwise(heights)) <= 4
