"""The check runs where no more is installed than it names."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu import machine
from benchmarks.gpu.parts import ROOT

SUPPORT = ROOT / "tests" / "support"
# What is asked for first when a file of tests runs, and what the command itself imports.
BEGIN = [
    ROOT / "tests" / "conftest.py",
    *sorted((ROOT / "tests" / "gpu").rglob("*.py")),
    *sorted((ROOT / "benchmarks" / "gpu").glob("*.py")),
]


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that are imported with a file."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def test_what_is_imported_is_named() -> None:
    left, seen, others = list(BEGIN), set[Path](), set[str]()
    while left:
        path = left.pop()
        seen.add(path)
        for name in imported(path):
            there = (SUPPORT / f"{name}.py", *path.parent.glob(f"{name}.py"))
            found = [each for each in there if each.exists()]
            left += [each for each in found if each not in seen]
            if not found:
                others.add(name.partition(".")[0])
    others -= {*sys.stdlib_module_names, "mirrored", "benchmarks"}
    assert others <= {*machine._NEEDED}
    assert SUPPORT / "op_table.py" in seen
