"""Adds CONTRIBUTING's examples to a copy of the repository, in the places that the guide names."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("mirrored", "layers", "optim", "tests", "docs", "pyproject.toml")
_SECTION = re.compile(
    r"^## How to add an? (\w+)(?: of datasets)?\n(.*?)^```python\n(.*?)^```\n", re.DOTALL | re.M
)
_NAMED = re.compile(r"[\w/.]*\w/[\w-]+\.(?:py|md|toml|h)\b")

# What a section adds: the file of its code, the package and the public module that name it, and
# lines in other files, each after what matches a pattern first.
Lines = tuple[tuple[str, str, str], ...]
_PARITY = "tests/training/test_recorded_parity.py"


def _row(heading: str, names: str) -> tuple[str, str, str]:
    pattern = rf"\n### {heading}: .*\n\n\| name \| here \|\n\| --- \| --- \|\n"
    return "docs/from-tensorflow.md", pattern, f"| {names} | ours: an example. |\n"


_METHOD = '''
    def pairwise(self) -> "Dataset[Any]":
        """Return pairs of an element and the next one.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.range(3).pairwise())
            2
        """
        from mirrored.data.pairwise import Pairwise

        return Dataset(Pairwise(self._transform))
'''

ADDED: dict[str, tuple[str, str, str, tuple[str, ...], Lines]] = {
    "operation": (
        *("mirrored/ops/cube_roots.py", "mirrored/ops/__init__.py", "mirrored/math.py"),
        ("cbrt",),
        (
            _row("Operations, tensors and dtypes", "`cbrt`"),
            (
                "mirrored/backends/cuda/expressions.py",
                r"\nEXPRESSIONS.*\n",
                '    "Cbrt": _call("cbrt"),\n',
            ),
            (
                "tests/support/emulated_cuda/shim.h",
                r"MULATED_UNARY\(sqrt\)",
                " EMULATED_UNARY(cbrt)",
            ),
            ("tests/backends/cuda/test_expressions.py", r"\nROUNDED = {", '"Cbrt", '),
            (
                "tests/support/op_table.py",
                r"\nTABLE.*\n",
                '    "Cbrt": one(np.cbrt, "positive"),\n',
            ),
        ),
    ),
    "layer": (
        *("layers/scale.py", "layers/__init__.py", "mirrored/keras/layers.py"),
        ("Scale",),
        (
            _row("Layers", "`Scale`"),
            (_PARITY, r"\nLAYERS.*\n", '    "Scale": dense(lambda: mr.layers.Scale()),\n'),
            (
                "tests/layers/test_package.py",
                r"\nCASES.*\n",
                '    "Scale": Case(layers.Scale, (5, 3), lambda x, factor: x * factor),\n',
            ),
            (
                "tests/training/test_exporting.py",
                r"\nMODELS.*\n",
                '    "Scale": lambda: chain(layers.Scale()),\n',
            ),
        ),
    ),
    "loss": (
        "mirrored/training/losses/quartic.py",
        *("mirrored/training/losses/__init__.py", "mirrored/keras/losses.py"),
        ("MeanQuarticError", "mean_quartic_error"),
        (
            _row("Losses", "`MeanQuarticError` `mean_quartic_error`"),
            (
                _PARITY,
                r"\nLOSSES.*\n",
                '    "MeanQuarticError": [Row(loss=mr.losses.MeanQuarticError)],\n',
            ),
            (
                "tests/training/losses/test_package.py",
                r"\nCASES.*\n",
                '    "MeanQuarticError": (losses.MeanQuarticError, losses.mean_quartic_error, '
                "lambda y, p: ((y - p) ** 4).mean(-1), random, probabilities),\n",
            ),
        ),
    ),
    "metric": (
        "mirrored/training/metrics/bounded.py",
        *("mirrored/training/metrics/__init__.py", "mirrored/keras/metrics.py"),
        ("MeanBoundedError",),
        (
            _row("Metrics", "`MeanBoundedError`"),
            (
                _PARITY,
                r"\nMETRICS.*\n",
                '    "MeanBoundedError": Row(metrics=lambda: ["MeanBoundedError"]),\n',
            ),
            (
                "tests/training/metrics/test_package.py",
                r"\nCASES.*\n",
                '    "MeanBoundedError": (metrics.MeanBoundedError, BITS, 3 * SCORES[:, :3], '
                "np.minimum(np.abs(3 * SCORES[:, :3] - BITS), 1.0)),\n",
            ),
        ),
    ),
    "optimizer": (
        "optim/signed_momentum.py",
        *("optim/__init__.py", "mirrored/keras/optimizers/__init__.py"),
        ("SignedMomentum",),
        (
            _row("Optimizers", "`SignedMomentum`"),
            (_PARITY, r"\nSETTINGS.*\n", '    "SignedMomentum": [{"decay": 0.5}],\n'),
            ("tests/optim/test_get.py", r"\nOPTIMIZERS.*\n", '    "SignedMomentum": 0.999,\n'),
        ),
    ),
    "transform": (
        *("mirrored/data/pairwise.py", "", ""),
        (),
        (
            ("mirrored/data/dataset.py", r"\n    _transform: Transform\n", _METHOD),
            (
                "tests/data/test_dataset.py",
                r"\nMETHODS.*\n",
                '    "pairwise": (lambda: Dataset.range(3).pairwise(), [(0, 1), (1, 2)], 2),\n',
            ),
        ),
    ),
    "callback": (
        *("mirrored/training/callbacks/stop_at_loss.py", "", "mirrored/keras/callbacks.py"),
        ("StopAtLoss",),
        (
            _row("Callbacks", "`StopAtLoss`"),
            (
                "tests/training/callbacks/test_travel.py",
                r"\nMADE.*\n",
                '    "StopAtLoss": lambda _: C.StopAtLoss(),\n',
            ),
        ),
    ),
}


def _module(file: str) -> str:
    path = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return path if path.startswith("mirrored.") else f"mirrored.{path}"


def _insert(file: Path, pattern: str, text: str) -> None:
    before = file.read_text()
    found = re.search(pattern, before)
    if found is None:
        raise LookupError(f"{file} has no {pattern!r}")
    file.write_text(before[: found.end()] + text + before[found.end() :])


def _run_stubs(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "tests/support/stubs.py"]
    subprocess.run(command, cwd=folder, env=environment, check=True)


def added_to_copy(folder: Path) -> tuple[list[str], dict[str, set[str]]]:
    """Copy the repository and add the guide's examples.

    Args:
        folder: An empty folder.

    Returns:
        The tests that the guide names, and for each kind the files that change without being named.
    """
    for name in _COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    sections = {kind: code for kind, _, code in _SECTION.findall(guide)}
    unnamed = {}
    for kind, (file, package, keras, names, lines) in ADDED.items():
        opening = '"""An example of the guide.\n\nIt is as the guide has it.\n"""\n\n'
        (folder / file).write_text(opening + sections[kind])
        row = f'        "{_module(file)}": "{" ".join(names)}",\n'
        if package or keras:
            _insert(folder / (package or keras), r"__name__,\n    {\n", row)
        if package:
            known = rf'"{re.escape(_module(package))}": "+\s*'
            _insert(folder / keras, known, " ".join((*names, "")))
        for where, pattern, text in lines:
            _insert(folder / where, pattern, text)
        section = guide.partition(f"## How to add a{'n' * (kind[0] == 'o')} {kind}")[2]
        said = set(_NAMED.findall(section.partition("\n## ")[0]))
        said |= {f"mirrored/{path}" for path in said if path == "ops/__init__.py"}
        unnamed[kind] = {package, keras, *(where for where, *_ in lines)} - {""} - said
    _run_stubs(folder)
    tests = sorted(
        {path for path in _NAMED.findall(guide) if "/test_" in path and path[:5] == "tests"}
    )
    return tests, unnamed
