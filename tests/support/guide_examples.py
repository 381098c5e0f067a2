"""Adds CONTRIBUTING's examples to a copy of the repository, in the places that the guide names."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("mirrored", "layers", "optim", "tests", "docs", "benchmarks", "pyproject.toml")
_SECTION = re.compile(
    r"^## How to add an? ([\w .]+?)(?: of datasets)?\n(.*?)^```(?:python)?\n(.*?)^```\n",
    re.DOTALL | re.M,
)
_NAMED = re.compile(r"[\w/.]*\w/[\w-]+\.(?:py|md|toml|h)\b")

# What a section adds: the file of its code, the package and the public module that name it, and
# lines in other files, each after what matches a pattern first.
Lines = tuple[tuple[str, str, str], ...]

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
        *("mirrored/ops/powers_of_two.py", "mirrored/ops/__init__.py", "mirrored/math.py"),
        ("exp2",),
        (
            (
                "mirrored/backends/cuda/expressions.py",
                r"\nEXPRESSIONS.*\n",
                '    "Exp2": _call("exp2"),\n',
            ),
            ("tests/backends/cuda/test_expressions.py", r"\nROUNDED = {", '"Exp2", '),
            ("tests/support/op_table.py", r"\nTABLE.*\n", '    "Exp2": one(lambda x: 2.0**x),\n'),
        ),
    ),
    "layer": (
        *("layers/scale.py", "layers/__init__.py", ""),
        ("Scale",),
        (
            (
                "tests/layers/test_package.py",
                r"\nCASES.*\n",
                '    "Scale": Case(layers.Scale, (5, 3), lambda x, factor: x * factor),\n',
            ),
        ),
    ),
    "loss": (
        *("mirrored/training/losses/quartic.py", "mirrored/training/losses/__init__.py", ""),
        ("MeanQuarticError", "mean_quartic_error"),
        (
            (
                "tests/training/losses/test_package.py",
                r"\nCASES.*\n",
                '    "MeanQuarticError": (losses.MeanQuarticError, losses.mean_quartic_error, '
                "lambda y, p: ((y - p) ** 4).mean(-1), random, probabilities),\n",
            ),
        ),
    ),
    "metric": (
        *("mirrored/training/metrics/bounded.py", "mirrored/training/metrics/__init__.py", ""),
        ("MeanBoundedError",),
        (
            (
                "tests/training/metrics/test_package.py",
                r"\nCASES.*\n",
                '    "MeanBoundedError": (metrics.MeanBoundedError, BITS, 3 * SCORES[:, :3], '
                "np.minimum(np.abs(3 * SCORES[:, :3] - BITS), 1.0)),\n",
            ),
        ),
    ),
    "optimizer": (
        *("optim/signed_momentum.py", "optim/__init__.py", ""),
        ("SignedMomentum",),
        (("tests/optim/test_get.py", r"\nOPTIMIZERS.*\n", '    "SignedMomentum": 0.999,\n'),),
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
    "collective": (
        "mirrored/distribute/cross_device_ops/chain.py",
        "mirrored/distribute/cross_device_ops/__init__.py",
        "mirrored/distribute/__init__.py",
        ("ChainAllReduce",),
        (
            (
                "tests/distribute/cross_device_ops/test_against_reference.py",
                r"\nfrom mirrored.distribute import \(\n",
                "    ChainAllReduce,\n",
            ),
            (
                "tests/distribute/cross_device_ops/test_against_reference.py",
                r"\nALL_REDUCES = \[",
                "ChainAllReduce, ",
            ),
        ),
    ),
    "backend": (
        *("mirrored/backends/mapped.py", "", ""),
        (),
        (
            (
                "tests/backends/test_registering.py",
                r"\nPLATFORMS = \[\n",
                '    pytest.param(Mapped(), id="mapped"),\n',
            ),
            (
                "tests/backends/test_registering.py",
                r"\nimport mirrored as mr\n",
                "from mirrored.backends.mapped import Mapped\n",
            ),
            (
                "tests/test_mirroring.py",
                r'"backends/test_registering.py": "',
                "backends/mapped ",
            ),
        ),
    ),
    "callback": (
        *("mirrored/training/callbacks/stop_at_loss.py", "", "mirrored/keras/callbacks.py"),
        ("StopAtLoss",),
        (
            (
                "tests/training/callbacks/test_travel.py",
                r"\nMADE.*\n",
                '    "StopAtLoss": lambda _: C.StopAtLoss(),\n',
            ),
        ),
    ),
}
# What is a line of a file that is there.
LINES: dict[str, Lines] = {
    "name of TensorFlow 1": (("mirrored/compat/v1/call_table.py", r'_TABLE = """\n', ""),),
    "function of keras.ops": (
        ("mirrored/keras_functions/numpy/elementwise.py", r"\n(?=square = )", ""),
        (
            "mirrored/keras/ops/__init__.py",
            r'"mirrored.keras_functions.numpy.elementwise": """\s+',
            "cubes ",
        ),
        (
            "tests/keras_functions/test_promotion.py",
            r"\nRESULTS.*\n",
            '    (lambda: K.cubes(2.0), 8.0, "float32"),\n',
        ),
    ),
}
# How many files each may touch; besides there are the stubs, which `stubs.py` writes.
LIMITS = {
    **dict.fromkeys((*ADDED, *LINES), 4),
    **{"operation": 6, "transform": 3, "name of TensorFlow 1": 1},
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
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "tests/support/stubs.py"]
    subprocess.run(command, cwd=folder, env=environment, check=True)


def sections() -> dict[str, str]:
    """Return the guide's recipes by what they add, with their headings."""
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    return {
        match[1]: match[0].rstrip()
        for match in re.finditer(
            r"^## How to add an? ([\w .]+?)(?: of datasets)?\n.*?(?=^## )", guide, re.DOTALL | re.M
        )
    }


def copy_to(folder: Path) -> None:
    """Copy the repository's parts that a test needs into an empty folder."""
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True)  # With what is compiled.
        else:
            shutil.copy(ROOT / name, folder / name)


def files_of(kind: str) -> set[str]:
    """Return the files that change by a recipe, without the stubs that are written."""
    file, package, keras, _, lines = ADDED.get(kind, ("", "", "", (), LINES.get(kind, ())))
    return {file, package, keras, *(where for where, *_ in lines)} - {""}


def folder_of(kind: str) -> str:
    """Return where a recipe's own file is; the folder of a file that gets a line."""
    file = ADDED[kind][0] if kind in ADDED else LINES[kind][0][0]
    return file.rpartition("/")[0]


def changed(folder: Path) -> set[str]:
    """Return the files of a copy that are not as they are in the repository."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        str(path)
        for path in files
        if path.suffix in (".py", ".pyi", ".md", ".toml", ".h")
        and not any((folder / parent).is_symlink() for parent in path.parents)
        and not ((ROOT / path).exists() and filecmp.cmp(folder / path, ROOT / path, False))
    }


def add(folder: Path) -> None:
    """Add the guide's examples to a copy as it says.

    Args:
        folder: The copy.
    """
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    codes = {kind: code for kind, _, code in _SECTION.findall(guide)}
    for kind, (file, package, keras, names, lines) in ADDED.items():
        opening = '"""An example of the guide.\n\nIt is as the guide has it.\n"""\n\n'
        (folder / file).write_text(opening + codes[kind])
        row = f'        "{_module(file)}": "{" ".join(names)}",\n'
        if package or keras:
            _insert(folder / (package or keras), r"__name__,\n    {\n", row)
        if package and keras:
            known = rf'"{re.escape(_module(package))}": "+\s*'
            _insert(folder / keras, known, " ".join((*names, "")))
        for where, pattern, text in lines:
            _insert(folder / where, pattern, text)
    for kind, lines in LINES.items():
        for where, pattern, text in lines:
            _insert(folder / where, pattern, text or codes[kind])
    _run_stubs(folder)


def tests_named() -> list[str]:
    """Return the tests that the guide names."""
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    return sorted(
        {path for path in _NAMED.findall(guide) if re.match(r"tests/.*test_\w+\.py", path)}
    )
