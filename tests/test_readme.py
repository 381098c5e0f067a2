"""The Python in README and CONTRIBUTING is run as it stands, and all links lead somewhere.

It is the first code that people copy, so it may not be the code that is tested least.
"""

import os
import re
import subprocess
from pathlib import Path

from case_table import cases
from forked_programs import run_program

ROOT = Path(__file__).resolve().parents[1]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def run_strictly(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run code in a process and a folder of its own, where a warning is an error."""
    program = folder / "program.py"
    program.write_text(code)
    return run_program(program, folder=folder, environment=os.environ, strict=True)


def test_code_for_users_runs_on_as_many_gpus_as_the_environment_says(tmp_path: Path) -> None:
    program = tmp_path / "your_script.py"
    program.write_text(PYTHON.findall((ROOT / "README.md").read_text())[0])
    environment = {**os.environ, "MIRRORED_SIMULATED_GPUS": "8"}
    done = run_program(program, folder=tmp_path, environment=environment, strict=True)
    assert done.returncode == 0, done.stderr
    assert "Epoch 10/10" in done.stdout
    predicted, expected = re.findall(r"\[(\d+ \d+ \d+)\]", done.stdout)
    assert predicted == expected
    first, second = done.stderr.splitlines()
    assert first.startswith("Using MirroredStrategy")
    assert first.count("device:GPU:") == 8
    assert second.startswith("Reduce")


@cases("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_places_that_exist(page: Path) -> None:
    dead = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        if target == "api/index.rst":  # `make docs` writes it.
            continue
        file = page.parent / target if target else page
        if "://" not in target and not (file.exists() and (not anchor or anchor in anchors(file))):
            dead.append(f"{target}#{anchor}")
    assert dead == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings have, as GitHub and the site name them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", page.read_text()), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_each_of_twenty_questions_has_its_answer_s_place() -> None:
    rows = (ROOT / "docs" / "questions.md").read_text().splitlines()[4:]
    assert len(rows) == 20
    for row in rows:  # That the places exist is what the test of links says.
        assert re.fullmatch(
            r"\| [^|]+\? (?:[^|]+\? )?(?:What now\? )?\| \[[^]]+\]\([^)]+#[^)]+\) \|", row
        ), row


def test_code_for_contributors_runs(tmp_path: Path) -> None:
    """Each for itself, in a process that other tests do not meet: one registers an operation."""
    codes = PYTHON.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(codes) == 10
    done = run_strictly(f"for code in {codes!r}: exec(code, {{'__name__': '__main__'}})", tmp_path)
    assert done.returncode == 0, done.stderr
