"""The pages of environment variables and extras name what the code and pyproject.toml have."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
FAMILIES = "BLIS|CUDA|GOTO|KERAS|MIRRORED|MKL|MPI|NCCL|OMP|OMPI|OPENBLAS|PMI|PMIX|TF|VECLIB|XDG"
VARIABLE = re.compile(rf"\b(?:{FAMILIES})_[A-Z0-9_]*[A-Z0-9]\b")
# In quotes it is read or set; other texts may name C's constants.
USED = re.compile(rf"""["']({VARIABLE.pattern})["']""")
READ = re.compile(r"""environ(?:\.get\(|\[|\.setdefault\()["'](\w+)["']""")


def first_cells(page: str) -> list[str]:
    """Return the names in the first cells of a page's tables."""
    rows = re.findall(r"^\| (`[^|]+) \|", (REFERENCE / page).read_text(), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_the_page_of_environment_variables_has_those_of_the_code() -> None:
    folders = ("mirrored", "layers", "optim")
    code = "\n".join(path.read_text() for each in folders for path in (ROOT / each).rglob("*.py"))
    listed = first_cells("environment.md")
    assert len(listed) == len(set(listed))
    used = set(USED.findall(code)) | set(READ.findall(code))
    assert used - set(listed) == set()
    assert set(listed) - set(VARIABLE.findall(code)) == set()


def test_the_page_of_extras_has_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert sorted(first_cells("extras.md")) == sorted(extras)
    page = (REFERENCE / "extras.md").read_text()
    for name, brought in re.findall(
        r"^\| `(\w+)` \| [^|]+ \| ([a-z0-9_, X-]+) \|$", page, re.MULTILINE
    ):
        if not {"and", "the"} & set(brought.split()):
            wanted = extras[name] + (extras["mpi"] if "mirrored[mpi]" in extras[name] else [])
            packages = {re.match(r"[\w-]+", line)[0] for line in wanted} - {"mirrored"}
            assert set(brought.split(", ")) == packages, name
