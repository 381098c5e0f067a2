"""The distribution holds what it should and nothing else, and installs as the README says.

What users meet first is the archive, its metadata and two pasted lines: all are checked here.
"""

import ast
import importlib.metadata
import json
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import mirrored as mr

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWN_FOLDERS = ["layers", "optim"]


def source_files() -> list[Path]:
    """Return the project's Python files, each by its real path."""
    folders = ["mirrored", *OWN_FOLDERS, "tests", "examples"]
    return sorted({path.resolve() for name in folders for path in (ROOT / name).rglob("*.py")})


def is_library(path: Path) -> bool:
    """Say whether a file is installed."""
    return path.relative_to(ROOT).parts[0] in {"mirrored", *OWN_FOLDERS}


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the absolute names that a file imports, ``a.b`` for ``from a import b``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def readme_commands() -> list[str]:
    """Return the README's lines that make an environment."""
    lines = (ROOT / "README.md").read_text().splitlines()
    return [line for line in lines if line.startswith("python3 -m venv")]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Build both archives from a copy of the checkout and return the names in each."""
    copy = tmp_path_factory.mktemp("source") / "mirrored"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    for kind in ("sdist", "wheel"):
        code = f"from setuptools import build_meta as b; b.build_{kind}('dist')"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=copy, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    (wheel,) = copy.glob("dist/*.whl")
    (sdist,) = copy.glob("dist/*.tar.gz")
    with zipfile.ZipFile(wheel) as opened_wheel, tarfile.open(sdist) as opened_sdist:
        inner = [name.partition("/")[2] for name in opened_sdist.getnames()]
        return {"wheel": opened_wheel.namelist(), "sdist": inner}


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_archive_holds_every_module(archives: dict[str, list[str]], kind: str) -> None:
    package = [path.relative_to(ROOT) for path in (ROOT / "mirrored").rglob("*.py")]
    linked = [
        Path("mirrored", path.relative_to(ROOT))
        for folder in OWN_FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert {path.as_posix() for path in [*package, *linked]} <= set(archives[kind])
    assert "mirrored/py.typed" in archives[kind]


def test_wheel_installs_one_top_level_name(archives: dict[str, list[str]]) -> None:
    top_level = {name.partition("/")[0] for name in archives["wheel"]}
    assert top_level == {"mirrored", f"mirrored-{mr.__version__}.dist-info"}


def test_wheel_carries_the_licence(archives: dict[str, list[str]]) -> None:
    assert any(name.endswith("/LICENSE") for name in archives["wheel"])
    assert importlib.metadata.metadata("mirrored")["License-Expression"] == "Apache-2.0"


def test_links_are_relative_and_lead_to_the_root_folders() -> None:
    for name in OWN_FOLDERS:
        link = ROOT / "mirrored" / name
        assert link.is_symlink(), f"{link} is a copy: switch on git's core.symlinks"
        assert link.readlink() == Path("..", name)


def test_nothing_imports_the_root_folders_by_their_own_names() -> None:
    found = [
        (str(path.relative_to(ROOT)), name)
        for path in source_files()
        for name in imported_modules(path)
        if name.partition(".")[0] in OWN_FOLDERS
    ]
    assert found == []


def test_parts_of_the_package_never_import_all_of_it() -> None:
    package = [path for path in source_files() if is_library(path)]
    found = [path for path in package if "mirrored" in imported_modules(path)]
    assert [path for path in found if path.name != "__main__.py"] == []


def test_only_the_cuda_backend_may_import_cupy() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in source_files()
        for name in imported_modules(path)
        if is_library(path) and name.partition(".")[0] in {"cupy", "cupyx"}
    ]
    assert [path for path in found if not path.startswith("mirrored/backends/cuda")] == []


def test_version_is_written_down_once() -> None:
    assert "version" in PROJECT["dynamic"]
    assert importlib.metadata.version("mirrored") == mr.__version__


def test_package_under_test_is_the_installed_one() -> None:
    if str(ROOT) in sys.path or "" in sys.path:
        pytest.skip("the checkout comes first on sys.path: run `pytest`, not `python -m pytest`")
    distribution = importlib.metadata.distribution("mirrored")
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    editable = origin.get("dir_info", {}).get("editable", False)
    expected = ROOT if editable else Path(str(distribution.locate_file("")))
    assert Path(mr.__file__).resolve().parents[1] == expected.resolve()


def test_import_is_light() -> None:
    code = "import sys, mirrored; print(*sorted(m.partition('.')[0] for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"sklearn", "scipy", "matplotlib", "cupy", "pytest", "setuptools"})
    assert done.stderr == ""


def test_readme_has_the_two_lines() -> None:
    example, tests = readme_commands()
    assert example.endswith("&& .venv/bin/python examples/digits.py --gpus 4")
    assert tests.endswith("&& .venv/bin/pytest -q")


@pytest.mark.parametrize("line", readme_commands())
def test_readme_lines_need_no_activated_environment(line: str) -> None:
    commands = [shlex.split(command) for command in line.split(" && ")]
    assert commands[0] == ["python3", "-m", "venv", ".venv"]
    assert all(command[0].startswith(".venv/bin/") for command in commands[1:])
    extras = re.fullmatch(r"\.\[([\w,]+)\]", commands[1][-1])
    assert extras is not None
    assert set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])


def test_ci_runs_exactly_the_readme_test_line() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    pattern = re.search(r"grep -E '(.+)' README\.md", script)
    assert pattern is not None
    found = [line for line in readme_commands() if re.search(pattern[1], line)]
    assert found == readme_commands()[1:]
    assert 'bash -c "${lines[0]}"' in script
    assert script.count("pytest") == 1, "tests are run by the README's line alone"


def test_test_extra_installs_what_the_examples_need() -> None:
    (extras,) = (
        re.findall(r"\w+", line.partition("[")[2])
        for line in PROJECT["optional-dependencies"]["test"]
        if line.startswith("mirrored[")
    )
    assert "examples" in extras
    assert "mirrored[test]" in PROJECT["optional-dependencies"]["dev"]
