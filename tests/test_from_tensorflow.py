"""docs/reference/tensorflow-names.md and the code agree on same, different and absent names."""

import importlib
import inspect
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from case_table import cases

from mirrored._absent import tables

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "tensorflow-names.md").read_text()


class Row(NamedTuple):
    """A row of the page's tables, with the modules of the heading above it."""

    modules: tuple[str, ...]
    names: tuple[str, ...]
    kind: str
    text: str


def rows() -> list[Row]:
    """Return the rows of all tables."""
    found: list[Row] = []
    modules: tuple[str, ...] = ()
    for line in PAGE.splitlines():
        if line.startswith("## "):
            modules = tuple(re.findall(r"`([^`]+)`", line))
        elif line.startswith("| `"):
            _, names, here, _ = line.split("|")
            kind, _, text = here.strip().partition(": ")
            found.append(Row(modules, tuple(re.findall(r"`([^`]+)`", names)), kind, text))
    return found


ROWS = rows()
ADVICE = (*tables().absent, *tables().older)
NAMES = tables().modules
PRESENT = [row for row in ROWS if row.kind in ("same", "different")]


def public(module: str) -> set[str]:
    """Return the names that a module of ours makes public."""
    home = importlib.import_module("mirrored" + module.removeprefix("tf"))
    late = inspect.get_annotations(home)  # What is there when it is first asked for.
    return {name for name in (*dir(home), *home.__all__, *late) if not name.startswith("_")}


PUBLIC = {module: public(module) for module in NAMES}


def known(module: str) -> set[str]:
    """Return TensorFlow's names in a module."""
    return set(NAMES[module])


def test_rows_are_of_four_kinds_and_say_something() -> None:
    assert {row.kind for row in ROWS} == {"same", "different", "absent", "ours"}
    assert all(row.text.endswith(".") for row in ROWS if row.kind != "same")
    assert {module for row in ROWS for module in row.modules} == {*NAMES, *tables().classes}


def test_names_are_there_wherever_tensorflow_has_them() -> None:
    for row, name in [(r, name) for r in PRESENT for name in r.names]:
        homes = [module for module in row.modules if name in known(module)]
        assert homes, f"TensorFlow has no {name} in {row.modules}"
        assert [module for module in homes if name not in PUBLIC[module]] == [], name


def test_names_of_ours_are_not_tensorflow_s() -> None:
    for row, name in [(r, name) for r in ROWS if r.kind == "ours" for name in r.names]:
        homes = [module for module in row.modules if name in PUBLIC[module] - known(module)]
        assert homes, f"{name} is in none of {row.modules}, or TensorFlow has it"


def test_absent_names_are_those_of_the_errors() -> None:
    table = [(frozenset(r.names), r.text) for r in ROWS if r.kind == "absent"]
    code = [(frozenset(names), advice) for _, names, advice in ADVICE]
    assert Counter(table) == Counter(code)


def test_absent_names_stand_below_their_modules() -> None:
    for row in [row for row in ROWS if row.kind == "absent"]:
        (homes,) = [
            homes
            for homes, names, advice in ADVICE
            if (set(names), advice) == (set(row.names), row.text)
        ]
        assert set(homes) <= set(row.modules), row.names


@cases("module", NAMES)
def test_every_name_of_tensorflow_s_is_in_the_tables_once(module: str) -> None:
    listed = Counter(
        name
        for row in ROWS
        if module in row.modules and row.kind != "absent"
        for name in row.names
        if name in PUBLIC[module] and (name in known(module)) == (row.kind != "ours")
    )
    ours = PUBLIC[module] - known(module)
    assert {name: listed[name] for name in PUBLIC[module] - ours if listed[name] != 1} == {}
    assert {name: listed[name] for name in ours if listed[name] > 1} == {}
