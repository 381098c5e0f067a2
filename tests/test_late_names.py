"""Names that are loaded when they are first asked for, and what an import loads without that."""

import json
import pkgutil
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
import stubs
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored._late import LISTS, LateNames, late_module
from mirrored.ops.op import OPS

# What an import loads of this package. Who comes to more lets names be loaded when they are asked
# for, as the table in `mirrored/__init__.py` does, or imports within the function that needs it.
MODULES = 54

HUBS = list(stubs.modules())


def late(module: ModuleType) -> dict[str, set[str]]:
    """Return which names a module has late, by the modules that they are from."""
    names = LISTS[module.__name__]
    late: dict[str, set[str]] = {}
    for name in names:
        late.setdefault(names.home(name)[0], set()).add(name)
    return late


@cases("module", HUBS, ids=lambda module: module.__name__)
def test_type_checkers_read_the_same_names(module: ModuleType) -> None:
    old = "python tests/support/stubs.py writes the stubs again"
    assert stubs.path_of(module).read_text() == stubs.text_of(module), old


@cases("module", HUBS, ids=lambda module: module.__name__)
def test_no_late_name_is_that_of_a_file_beside(module: ModuleType) -> None:
    """Whoever imports the file would put it in the name's place."""
    files = {each.name for each in pkgutil.iter_modules(getattr(module, "__path__", ()))}
    names = [names for home, names in late(module).items() if home != module.__name__]
    assert files.isdisjoint(set().union(*names))


PROGRAM = """
import json, os, sys, threading
import mirrored as mr
report = {"imported": sorted(sys.modules)}

read, write = os.pipe()
if not os.fork():
    os.write(write, b"%d" % mr.linalg.det(mr.linalg.diag([3.0, 3.0])).numpy())
    os._exit(0)
os.wait()
report["forked"] = os.read(read, 9).decode()

@mr.function
def recorded(x):
    pair = mr.convert_to_tensor([x[0], x[1]])
    return mr.linalg.trace(mr.stack([pair, mr.sort(pair)])) // 2

report["recorded"] = recorded(mr.constant([4.0, 1.0])).numpy().item()

start = threading.Barrier(4)
def ask(found):
    start.wait()
    found += [getattr(each, name) for each in (mr, mr.nn, mr.math) for name in dir(each)]

found = [[] for _ in range(4)]
threads = [threading.Thread(target=ask, args=[each]) for each in found]
for each in threads: each.start()
for each in threads: each.join()
report["asked"] = sum(name[0] != "_" for each in (mr, mr.nn, mr.math) for name in dir(each))
report["same"] = all(len({*map(id, each)}) == 1 for each in zip(*found, strict=True))

from mirrored.ops.op import OPS
report["ops"] = sorted(OPS)
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """Return what a process of its own finds, which asks for names in all ways."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_an_import_loads_what_programs_need(report: dict[str, Any]) -> None:
    loaded = [name for name in report["imported"] if name.partition(".")[0] == "mirrored"]
    assert len(loaded) <= MODULES, "let what not every program needs be loaded later: see MODULES"


def test_late_names_in_a_forked_child(report: dict[str, Any]) -> None:
    assert report["forked"] == "9"


def test_late_names_while_a_function_is_recorded(report: dict[str, Any]) -> None:
    assert report["recorded"] == (4 + 4) // 2  # Of [[4, 1], [1, 4]].


def test_threads_that_ask_at_once_get_the_same(report: dict[str, Any]) -> None:
    names = [name for each in (mr, mr.nn, mr.math) for name in dir(each)]
    assert report["asked"] == len([name for name in names if name[0] != "_"])
    assert report["same"]


def test_who_goes_over_the_ops_meets_them_all(report: dict[str, Any]) -> None:
    assert report["ops"] == sorted(OPS)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module of the name "example", which is gone with its list after the test."""
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    monkeypatch.setitem(LISTS, "example", LISTS["mirrored"])
    return module


def test_a_module_has_late_names_from_the_first_time_on(example: ModuleType) -> None:
    late_module("example", {"mirrored.ops": "sort stack"})
    assert {"sort", "stack"} <= {*dir(example)} - vars(example).keys()
    assert getattr(example, "sort") is ops.sort is vars(example)["sort"]  # noqa: B009
    with pytest.raises(AttributeError, match="'example' has no attribute 'search'"):
        getattr(example, "search")  # noqa: B009


def test_what_somebody_sets_meanwhile_stays(example: ModuleType) -> None:
    names = LateNames("example", {"mirrored.ops": "sort"})
    setattr(example, "sort", sorted)  # noqa: B010
    assert names.load("sort") is sorted
