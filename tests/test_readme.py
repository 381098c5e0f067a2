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
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def run_strictly(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run code in a process and a folder of its own, where a warning is an error."""
    program = folder / "program.py"
    program.write_text(code)
    return run_program(program, folder=folder, environment=os.environ, strict=True)


def test_code_for_users_runs(tmp_path: Path) -> None:
    code = "".join(PYTHON.findall((ROOT / "README.md").read_text()))  # One goes on from the other.
    done = run_strictly(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Epoch 10/10" in done.stdout
    (loss,) = re.findall(r"Loss of the last batch: (.*)", done.stdout)
    assert float(loss) < 0.5, "the loop goes on from where fit ended"
    predicted, expected = re.findall(r"\[(\d+ \d+ \d+)\]", done.stdout)[-2:]
    assert predicted == expected
    assert [line.partition(" ")[0] for line in done.stderr.splitlines()] == ["Using", "Reduce"]


@cases("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_code_for_contributors_runs(tmp_path: Path) -> None:
    """Each for itself, in a process that other tests do not meet: one registers an operation."""
    codes = PYTHON.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(codes) == 10
    done = run_strictly(f"for code in {codes!r}: exec(code, {{'__name__': '__main__'}})", tmp_path)
    assert done.returncode == 0, done.stderr
