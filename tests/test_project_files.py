"""The files around the code: workflows, changelog, licence, templates, and what they name."""

import ast
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import mirrored as mr

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SETTINGS = [*sorted(ROOT.glob(".github/**/*.yml")), ROOT / ".pre-commit-config.yaml"]
PIP = [sys.executable, "-m", "pip", "install", "-q", "--dry-run"]
PIP += ["--no-deps", "--ignore-installed"]
APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def ci_steps() -> list[str]:
    """Return the names of the steps of .ci/run."""
    lists = re.findall(r"^(?:more_)?steps=\((.+)\)", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    return [step for names in lists for step in names.split()]


def workflow_lines() -> list[str]:
    """Return what the workflows run, a line each."""
    yaml = pytest.importorskip("yaml")
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values()]
    lines = []
    for job in jobs:
        names = job.get("strategy", {}).get("matrix", {}).get("step", [""])
        for step in job["steps"]:
            for line in step.get("run", "").splitlines():
                lines += [line.replace("${{ matrix.step }}", name) for name in names]
    return list(dict.fromkeys(lines))


def test_workflows_run_every_step_and_no_check_of_their_own() -> None:
    lines = workflow_lines()
    run = [line.removeprefix(".ci/run ") for line in lines if line.startswith(".ci/run ")]
    assert sorted(run) == sorted(ci_steps())
    others = [line for line in lines if not line.startswith((".ci/run ", "echo ", "test "))]
    assert others == []


def test_the_guide_for_contributors_has_every_step() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Why")[0]
    assert re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE) == ci_steps()


def test_the_workflow_for_users_collects_their_tests_alone(
    pytestconfig: pytest.Config,
) -> None:
    page = (ROOT / "docs/howto/testing.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    steps = pytest.importorskip("yaml").safe_load(text)["jobs"]["tests"]["steps"]
    (folder,) = [step["with"]["path"] for step in steps if "path" in step.get("with", {})]
    assert any(fnmatch(folder, left_out) for left_out in pytestconfig.getini("norecursedirs"))
    assert f"pip install pytest ./{folder}" in [step.get("run") for step in steps]


def test_workflows_try_every_python_and_the_lowest_numpy() -> None:
    text = (ROOT / ".github/workflows/checks.yml").read_text()
    tried = set(re.findall(r'"(3\.\d+)"', text))
    tested = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: 3." in name}
    assert tested <= tried
    assert PROJECT["requires-python"] == f">={min(tried, key=lambda name: int(name[2:]))}"
    (lowest,) = re.findall(r'numpy: "(\d+)\.0"', text)
    assert f"numpy>={lowest}" in PROJECT["dependencies"]


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.name)
def test_settings_are_yaml(path: Path) -> None:
    assert pytest.importorskip("yaml").safe_load(path.read_text())


def test_the_first_version_of_the_changelog_is_this_one() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\S+) \((?:not released yet|\d{4}-\d\d-\d\d)\)$", changelog, re.M)
    number = mr.__version__.partition(".dev")[0]
    assert versions[0] == number
    assert len(versions) == changelog.count("\n## ")
    areas = re.findall(r"^- (\*\*.+?\*\*)?", changelog.split("\n## ")[1], re.MULTILINE)
    assert all(areas)
    assert len(set(areas)) == len(areas) <= 20  # Git has the details.
    (cited,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited in versions[:2]  # Between releases it is the one before.


def test_the_licence_is_the_text_of_the_apache_licence() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_0


def test_no_address_is_invented() -> None:
    assert "urls" not in PROJECT
    assert "authors" not in PROJECT
    pages = [ROOT / name for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff")]
    assert [path for path in pages if "@" in path.read_text() or "://" in path.read_text()] == []


def test_make_and_pre_commit_name_files_and_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    wanted = {"test", "smoke", "lint", "types", "docs", "bench", "gpu-first", "gpu-check"}
    assert wanted <= targets
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert set(phony.split()) == targets
    assert all((ROOT / path).exists() for path in re.findall(r"\btests/[\w/.]+", makefile))
    (build,) = re.findall(r"\$\(PYTHON\) (-m sphinx .+)", makefile)
    build = build.replace(" -j 2", "")  # A second process takes more of the processors' time.
    assert f"run .venv/bin/python {build}\n" in (ROOT / ".ci/run").read_text()
    hooks = re.findall(r"entry: (.+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert len(hooks) == 3
    for hook in hooks:
        program, *words = hook.split()
        known = targets if program == "make" else {"--installed", *ci_steps()}
        assert set(words) <= known


# ---------------------------------------------------------------------- extras


def named_extras() -> Iterator[tuple[str, str]]:
    """Yield pages and messages of the library, with each extra that they name."""
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.py")]
    for folder in ("mirrored", "layers", "optim"):
        paths += (ROOT / folder).rglob("*.py")
    for path in paths:
        text = re.sub(r"\s+", " ", path.read_text())
        names = re.findall(r"(?:pip install [^`|]*?|\bmirrored)\[([\w,]+)\]['\"]", text)
        names += re.findall(r"\bextras? `(\w+)`", text)
        for name in {name for group in names for name in group.split(",")}:
            yield path.relative_to(ROOT).as_posix(), name


def test_extras_that_texts_name_exist() -> None:
    named = list(named_extras())
    assert {"hdf5", "mpich", "onnx"} <= {name for _, name in named}
    assert [(path, name) for path, name in named if name not in EXTRAS] == []


def test_no_text_installs_mirrored_from_a_package_index() -> None:
    """It is on none: `pip install ".[hdf5]"` in a checkout is true."""
    pattern = re.compile(r"pip install (?:-\S+ )*[\"']?mirrored\b(?!-)")
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.py")]
    for folder in ("mirrored", "layers", "optim", "examples", "benchmarks"):
        paths += (ROOT / folder).rglob("*.py")
    assert [path.name for path in paths if pattern.search(path.read_text())] == []


def test_packages_that_errors_name_are_in_the_extras_that_they_name() -> None:
    calls = []
    for path in (ROOT / "mirrored").rglob("*.py"):
        if "_extras" in (text := path.read_text()):
            calls += [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [
        tuple(word.value for word in words[:2])
        for call in calls
        if getattr(call.func, "id", None) == "package" and len(words := arguments(call)) >= 2
        if all(isinstance(word, ast.Constant) for word in words[:2])
    ]
    assert len(named) >= 5
    for module, extra in named:
        assert module.partition(".")[0] in {requirement_name(line) for line in EXTRAS[extra]}


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return the positional arguments of a call, also those of a tuple that it unpacks."""
    lists = [arg.value.elts if isinstance(arg, ast.Starred) else [arg] for arg in call.args]
    return [arg for values in lists for arg in values]


def requirement_name(line: str) -> str:
    """Return the name of the distribution that a requirement names."""
    return re.split(r"[^\w.-]", line)[0]


def test_pip_and_older_tools_call_the_extras_the_same() -> None:
    assert [name for name in EXTRAS if canonical(name) != name] == []


def installed_by(*names: str) -> set[str]:
    """Return the extras that some extras install, themselves included."""
    lines = [line for name in names for line in EXTRAS[name] if line.startswith("mirrored[")]
    inner = {name for line in lines for name in re.findall(r"\w+", line.partition("[")[2])}
    return {*names, *(installed_by(*inner) if inner else ())}


def test_extras_that_extras_install_exist() -> None:
    assert installed_by(*EXTRAS) == set(EXTRAS)


@pytest.mark.slow  # pip asks the package index for metadata.
def test_pip_finds_the_packages_of_extras_that_no_check_installs(tmp_path: Path) -> None:
    others = set(EXTRAS) - installed_by("dev", "docs", "emulator")
    assert {"cuda13", "openmpi"} <= others
    lines = {line for name in others for line in EXTRAS[name] if not line.startswith("mirrored[")}
    report = tmp_path / "report.json"
    done = subprocess.run([*PIP, "--report", report, *lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "does not provide the extra" not in done.stderr
    packages = json.loads(report.read_text())["install"]
    names = {canonical(package["metadata"]["name"]) for package in packages}
    assert names == {canonical(requirement_name(line)) for line in lines}


def canonical(name: str) -> str:
    """Return the name that packages compare."""
    return re.sub(r"[-_.]+", "-", name).lower()
