"""The distribution holds what it should and nothing else, and installs as the README says.

What users meet first is the archive, its metadata and two pasted lines: all are checked here.
"""

import ast
import importlib
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest
from packaging.metadata import Metadata

import mirrored as mr

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWN_FOLDERS = ["layers", "optim"]
FILES_BESIDE = (".editorconfig", ".pre-commit-config.yaml", "CITATION.cff", "LICENSE", "Makefile")


@cache
def source_files() -> list[Path]:
    """Return the project's Python files, each by its real path."""
    folders = ["mirrored", *OWN_FOLDERS, "tests", "examples"]
    return sorted({path.resolve() for name in folders for path in (ROOT / name).rglob("*.py")})


def is_library(path: Path) -> bool:
    """Say whether a file is installed."""
    return path.relative_to(ROOT).parts[0] in {"mirrored", *OWN_FOLDERS}


def imported(paths: list[Path], hint: str) -> list[tuple[str, str]]:
    """Return files and what they import; only those whose text has a hint of it are parsed."""
    pattern = re.compile(hint, re.MULTILINE)
    return [
        (path.relative_to(ROOT).as_posix(), name)
        for path in paths
        if pattern.search(text := path.read_text())
        for name in imported_modules(text)
    ]


def imported_modules(text: str) -> list[str]:
    """Return the absolute names that a file imports, ``a.b`` for ``from a import b``."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return found


def readme_commands() -> list[str]:
    """Return the README's lines that make an environment."""
    lines = (ROOT / "README.md").read_text().splitlines()
    return [line for line in lines if line.startswith("python3 -m venv")]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build both archives from a copy of the checkout and return where they are."""
    copy = tmp_path_factory.mktemp("source") / "mirrored"
    ignored = shutil.ignore_patterns(
        ".git", ".venv*", ".*_cache", "build", "dist", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    code = "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = copy.glob("dist/*.whl")
    (sdist,) = copy.glob("dist/*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def archives(built: dict[str, Path]) -> dict[str, list[str]]:
    """Return the names in each archive."""
    with zipfile.ZipFile(built["wheel"]) as wheel, tarfile.open(built["sdist"]) as sdist:
        inner = [name.partition("/")[2] for name in sdist.getnames()]
        return {"wheel": wheel.namelist(), "sdist": inner}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_archive_holds_every_module(archives: dict[str, list[str]], kind: str) -> None:
    package = [path.relative_to(ROOT) for path in (ROOT / "mirrored").rglob("*.py")]
    linked = [
        Path("mirrored", path.relative_to(ROOT))
        for folder in OWN_FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    ]
    expected = {path.as_posix() for path in [*package, *linked]}
    if kind == "wheel":  # What pytest loads stands beside the package there.
        expected = {name.removeprefix("mirrored/_plugins/") for name in expected}
    assert expected <= set(archives[kind])
    assert {"mirrored/py.typed", "mirrored/_absent/names.toml"} <= set(archives[kind])


@pytest.mark.slow  # As are all that look into archives: they are built once for all of them.
def test_wheel_installs_the_package_and_what_pytest_loads(archives: dict[str, list[str]]) -> None:
    top_level = {name.partition("/")[0] for name in archives["wheel"]}
    installed = f"mirrored-{mr.__version__}.dist-info"
    assert top_level == {"mirrored", "pytest_mirrored", installed}
    assert f"{installed}/entry_points.txt" in archives["wheel"]
    # By the name of its module, pytest finds it once, though it is asked for twice.
    assert PROJECT["entry-points"] == {"pytest11": {"pytest_mirrored": "pytest_mirrored"}}


@pytest.mark.slow
def test_archives_have_no_links_and_the_wheel_all_extras(built: dict[str, Path]) -> None:
    """They install where there are no symbolic links, as on Windows."""
    with tarfile.open(built["sdist"]) as sdist:
        assert [member.name for member in sdist if member.issym() or member.islnk()] == []
    with zipfile.ZipFile(built["wheel"]) as wheel:
        modes = {info.filename: info.external_attr >> 16 for info in wheel.infolist()}
        (name,) = (name for name in modes if name.endswith("/METADATA"))
        metadata = wheel.read(name).decode()
    assert [name for name, mode in modes.items() if stat.S_ISLNK(mode)] == []
    assert set(re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE)) == set(
        PROJECT["optional-dependencies"]
    )


@pytest.mark.slow
def test_sdist_has_the_tests_and_what_they_look_at(archives: dict[str, list[str]]) -> None:
    folders = ("tests", "examples", "docs", "benchmarks", ".ci", ".github")
    files = [path for name in folders for path in (ROOT / name).rglob("*") if path.is_file()]
    files += [*ROOT.glob("*.md"), *map(ROOT.joinpath, FILES_BESIDE)]
    pruned = re.findall(r"^prune (.+)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE)
    names = {path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".pyc"}
    kept = {name for name in names if not name.startswith(tuple(pruned))}
    assert kept <= set(archives["sdist"])


@pytest.mark.slow
def test_metadata_of_both_archives_are_valid(built: dict[str, Path]) -> None:
    """Which `twine check` of a release looks at too."""
    with zipfile.ZipFile(built["wheel"]) as wheel, tarfile.open(built["sdist"]) as sdist:
        (of_wheel,) = (name for name in wheel.namelist() if name.endswith("dist-info/METADATA"))
        of_sdist = sdist.extractfile(f"mirrored-{mr.__version__}/PKG-INFO")
        assert of_sdist is not None
        for text in (wheel.read(of_wheel), of_sdist.read()):
            metadata = Metadata.from_email(text, validate=True)
            assert str(metadata.version) == mr.__version__
            assert metadata.description_content_type == "text/markdown"
            assert metadata.description == (ROOT / "README.md").read_text()


FIRST_PROGRAM = """
import numpy as np
import mirrored as mr
mr.config.experimental.set_simulated_gpus(2)
with mr.MirroredStrategy().scope():
    model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(np.ones((8, 3)), np.ones((8, 1)), verbose=0)
print(mr.__version__)
"""


@pytest.mark.slow
def test_the_wheel_installs_in_a_bare_environment(built: dict[str, Path], tmp_path: Path) -> None:
    """It brings all that it needs, by itself; packages come from where pip takes them."""
    python = tmp_path / "bare" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python]  # One of its own takes longer.
    subprocess.run([*pip, "install", "-q", "--no-compile", built["wheel"]], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    first, module = [python, "-c", FIRST_PROGRAM], [python, "-m", "mirrored", "--version"]
    for words in (first, module, [python.with_name("mirrored"), "--version"]):
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[-1] == mr.__version__


@pytest.mark.slow
def test_pip_makes_the_same_wheel_of_the_sdist(built: dict[str, Path], tmp_path: Path) -> None:
    """By the tools that are here: README's line takes those that are declared."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    pip += ["-w", str(tmp_path)]
    subprocess.run([*pip, built["sdist"]], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == built["wheel"].name
    assert contents(wheel) == contents(built["wheel"])


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel, but for those that tell by which release it was built."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if Path(name).name not in ("WHEEL", "RECORD")]
        return {name: archive.read(name) for name in names}


@pytest.mark.slow
def test_the_tests_of_the_sdist_run(built: dict[str, Path], tmp_path: Path) -> None:
    with tarfile.open(built["sdist"]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    files = (
        "test_from_tensorflow.py",
        "layers/test_package.py",
        "examples/test_every_example.py",
    )
    command = [sys.executable, "-m", "pytest", "-q", "--assert=plain"]
    command += [f"tests/{name}" for name in files]
    # As if it were installed: the package, and what pytest loads, which stands beside it then.
    paths = (folder, folder / "mirrored" / "_plugins")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


@pytest.mark.slow
def test_wheel_carries_the_licence(archives: dict[str, list[str]]) -> None:
    assert any(name.endswith("/LICENSE") for name in archives["wheel"])


def test_metadata_name_the_licence() -> None:
    assert importlib.metadata.metadata("mirrored")["License-Expression"] == "Apache-2.0"


def test_links_are_relative_and_lead_to_the_root_folders() -> None:
    for name in OWN_FOLDERS:
        link = ROOT / "mirrored" / name
        assert link.is_symlink(), f"{link} is a copy: switch on git's core.symlinks"
        assert link.readlink() == Path("..", name)


def test_nothing_imports_the_root_folders_by_their_own_names() -> None:
    found = imported(source_files(), rf"(?:import|from|,)\s+(?:{'|'.join(OWN_FOLDERS)})\b")
    assert [each for each in found if each[1].partition(".")[0] in OWN_FOLDERS] == []


def test_parts_of_the_package_never_import_all_of_it() -> None:
    library = [path for path in source_files() if is_library(path)]
    found = imported(library, r"^\s*import\s.*\bmirrored\b")
    assert [path for path, name in found if name == "mirrored"] == []


def test_only_the_cuda_backend_may_import_cupy() -> None:
    library = [path for path in source_files() if is_library(path)]
    found = imported(library, r"\bcupyx?\b")
    paths = [path for path, name in found if name.partition(".")[0] in {"cupy", "cupyx"}]
    assert [path for path in paths if not path.startswith("mirrored/backends/cuda")] == []


def test_the_program_is_a_function_of_the_package() -> None:
    module, _, function = PROJECT["scripts"]["mirrored"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def skip_beside_the_checkout() -> None:
    """Skip a test of what is installed where Python imports the checkout."""
    if str(ROOT) in sys.path or "" in sys.path:
        pytest.skip("the checkout comes first on sys.path: run `pytest`, not `python -m pytest`")


def test_version_is_written_down_once() -> None:
    assert "version" in PROJECT["dynamic"]
    skip_beside_the_checkout()
    assert importlib.metadata.version("mirrored") == mr.__version__


def test_package_under_test_is_the_installed_one() -> None:
    skip_beside_the_checkout()
    distribution = importlib.metadata.distribution("mirrored")
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    editable = origin.get("dir_info", {}).get("editable", False)
    expected = ROOT if editable else Path(str(distribution.locate_file("")))
    assert Path(mr.__file__).resolve().parents[1] == expected.resolve()


def test_import_is_light() -> None:
    code = (
        "import sys, mirrored, mirrored.keras.layers, mirrored.training.model\n"
        "from mirrored._absent import tables\n"
        "assert tables.cache_info().currsize == 0\n"
        "print(*sorted(m.partition('.')[0] for m in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"sklearn", "scipy", "matplotlib", "cupy", "pytest", "setuptools"})
    assert "tensorboardX" not in loaded
    assert done.stderr == ""


def test_readme_has_the_two_lines() -> None:
    example, tests = readme_commands()
    assert example.endswith("&& .venv/bin/python examples/digits.py --gpus 4")
    assert tests.endswith("&& .venv/bin/pytest -q --assert=plain")


@pytest.mark.parametrize("line", readme_commands())
def test_readme_lines_need_no_activated_environment(line: str) -> None:
    commands = [shlex.split(command) for command in line.split(" && ")]
    # A new pip installs many packages in a third of the time.
    words = [word for word in commands[0] if word != "--upgrade-deps"]
    assert words == ["python3", "-m", "venv", ".venv"]
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
    assert 'run bash -c "${lines[0]}"' in script
    # Beside it run those that fail again, with the values of their asserts, and those left out.
    runs = ["/pytest -q --last-failed", '/pytest -q -m slow --assert=plain "${files[@]}" || {']
    runs += ["/pytest -q -m slow --last-failed", '/pytest -q "${files[@]}"']
    runs += ["/pytest -q -m openmpi tests/test_worker_deaths.py"]
    runs += ["/pytest -q -m docs tests/docs"]
    assert re.findall(r"/pytest\b.*", script) == runs


def test_ci_runs_its_steps_in_order_and_names_them() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    steps, more = (re.search(rf"^{name}=\((.+)\)", script, re.MULTILINE) for name in STEP_LISTS)
    assert steps is not None
    assert more is not None
    names = f"{steps[1]} {more[1]}"
    functions = re.findall(r"^(\w+)\(\) \{$", script, re.MULTILINE)
    assert set(names.split()) == set(functions) - {"run", "install_dev"}
    unknown = subprocess.run([ROOT / ".ci" / "run", "lint", "all"], capture_output=True, text=True)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr == f"There is no step all. The steps are: {names}.\n"


STEP_LISTS = ("steps", "more_steps")


def test_ci_finds_the_files_with_slow_tests() -> None:
    """By their text, so that no other file may mark tests for them."""
    pattern = re.search(r"grep -rl .*'(.+)' tests", (ROOT / ".ci" / "run").read_text())
    assert pattern is not None
    found = [path for path in source_files() if re.search(pattern[1], path.read_text())]
    assert Path(__file__) in found
    assert [path for path in found if not path.name.startswith("test_")] == []


def test_the_extra_of_all_others() -> None:
    """Those of CUDA, MPI and a compiler depend on the machine, those of tests on the checkout."""
    extras = PROJECT["optional-dependencies"]
    (installed,) = (re.findall(r"\w+", line.partition("[")[2]) for line in extras["all"])
    left_out = {"all", "docs", "examples", "emulator", "test", "dev", "release"}
    depends = {name for name in extras if name.startswith(("cuda", "mpi", "openmpi", "comp"))}
    assert set(installed) == set(extras) - left_out - depends
    brought = {line.partition(">")[0] for name in installed for line in extras[name]}
    assert {line.partition(">")[0] for line in extras["examples"]} <= brought


def test_dev_extra_installs_what_all_tests_need() -> None:
    (extras,) = (
        re.findall(r"\w+", line.partition("[")[2])
        for line in PROJECT["optional-dependencies"]["dev"]
        if line.startswith("mirrored[")
    )
    assert {"examples", "frames", "sklearn", "test"} <= set(extras)
