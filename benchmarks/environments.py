"""Makes a virtual environment for each contender, outside the checkout.

`python -m benchmarks.environments` makes all of them once; the peers are pinned, so that figures of
another day are of the same versions.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import clean_environment

ROOT = Path(__file__).resolve().parents[1]
_NOT_COUNTED = ("pip", "setuptools", "mpi4py", "mpich")  # One process needs no MPI.
IMPORTS = 3  # The least of so many counts.
SCRIPTS = Path(__file__).resolve().parent / "contenders"


@dataclass(frozen=True)
class Contender:
    """What is measured, and where it runs.

    Attributes:
        name: What options and the report call it.
        title: What the report's tables call it.
        module: What a program imports first.
        environment: Whose virtual environment it runs in.
        requirements: What pip installs there; empty for the checkout.
        options: What its script is given beside workload and replicas.
    """

    name: str
    title: str
    module: str
    environment: str
    requirements: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def script(self) -> Path:
        """What its process runs."""
        name = "products" if self.module == "numpy" else f"{self.environment}_"
        return SCRIPTS / f"{name}.py"


MIRRORED = Contender("mirrored", "mirrored", "mirrored", "mirrored")
LOOP = Contender(
    "mirrored-loop", "mirrored, own loop", "mirrored", "mirrored", options=("--steps-a-call", "1")
)
LOOP_16 = Contender(
    "mirrored-loop-16",
    "mirrored, own loop, 16 steps a call",
    "mirrored",
    "mirrored",
    options=("--steps-a-call", "16"),
)
SHORT_FITS = Contender(
    "mirrored-short-fits",
    "mirrored, fits of 64 steps",
    "mirrored",
    "mirrored",
    options=("--steps-a-fit", "64"),
)
WORKERS = Contender(
    "mirrored-workers",
    "mirrored, two workers",
    "mirrored",
    "mirrored",
    options=("--workers", "2"),
)
APART = Contender(
    "mirrored-apart",
    "mirrored, two workers that send messages",
    "mirrored",
    "mirrored",
    options=("--workers", "2", "--apart"),
)
TENSORFLOW = Contender(
    "tensorflow", "TensorFlow", "tensorflow, keras", "tensorflow", ("tensorflow-cpu==2.21.*",)
)
TENSORFLOW_ARRAYS = Contender(
    "tensorflow-arrays",
    "TensorFlow, arrays",
    TENSORFLOW.module,
    TENSORFLOW.environment,
    TENSORFLOW.requirements,
    ("--arrays",),
)
TORCH = Contender("torch", "PyTorch", "torch", "torch", ("torch==2.13.0", "numpy>=2"))
JAX = Contender("jax", "JAX", "jax", "jax", ("jax==0.10.*",))
FIXED = Contender(
    "mirrored-fixed",
    "mirrored, replicas=8",
    "mirrored",
    "mirrored",
    options=("--fixed-replicas", "8"),
)
PRODUCTS = Contender("products", "products alone", "numpy", "mirrored")
PRODUCTS_OF_PARTS = Contender(
    "products-of-parts",
    "products and sums of eight parts",
    "numpy",
    "mirrored",
    options=("--fixed-replicas", "8"),
)
FORMS = (LOOP, LOOP_16, SHORT_FITS)  # What is measured of mirrored beside one long `fit`.
IN_WORKERS = (WORKERS, APART)  # What is measured of mirrored in two processes.
ALL = (
    MIRRORED,
    *FORMS,
    FIXED,
    *IN_WORKERS,
    TENSORFLOW,
    TENSORFLOW_ARRAYS,
    TORCH,
    JAX,
    PRODUCTS,
    PRODUCTS_OF_PARTS,
)
PEERS = (TENSORFLOW, TENSORFLOW_ARRAYS, TORCH, JAX)
BY_NAME = {contender.name: contender for contender in ALL}


def default_cache() -> Path:
    """Return the folder for the environments in the user's folder of caches."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mirrored-benchmarks"


def python_of(environment: Path) -> Path:
    """Return a virtual environment's interpreter."""
    return environment / "bin" / "python"


def make(contender: Contender, environment: Path, pip_options: Sequence[str] = ()) -> None:
    """Make or complete one environment.

    Raises:
        subprocess.CalledProcessError: pip could not install what it needs.
    """
    if not python_of(environment).exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    if contender.requirements:
        _pip_install(environment, [*pip_options, *contender.requirements])
    else:
        install_checkout(environment, pip_options)


def install_checkout(environment: Path, pip_options: Sequence[str] = (), *more: str) -> None:
    """Install this checkout as it is now, with MPI for several workers, and further packages.

    It is installed from a copy, so that nothing is built in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "mirrored"
        ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
        _pip_install(environment, [*pip_options, f"{copy}[mpich]", *more])
        _pip_install(environment, [*pip_options, "--force-reinstall", "--no-deps", str(copy)])


def installed_size(environment: Path) -> int | None:
    """Return the bytes of what is installed, without pip, setuptools, MPI and compiled Python."""
    folders = list(environment.glob("lib/python*/site-packages"))
    if not folders:
        return None
    return sum(
        path.lstat().st_size
        for path in folders[0].rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.relative_to(folders[0]).parts[0].startswith(_NOT_COUNTED)
    )


def import_seconds(python: Path, contender: Contender) -> float | None:
    """Return the least of three times of a contender's import, or None where it fails."""
    code = (
        "import time; started = time.perf_counter()\n"
        f"import {contender.module}\n"
        "print(time.perf_counter() - started)"
    )
    times = []
    for _ in range(IMPORTS):
        done = subprocess.run(
            [python, "-P", "-c", code],
            capture_output=True,
            text=True,
            env=clean_environment(os.environ),
        )
        if done.returncode:
            return None
        times.append(float(done.stdout.split()[-1]))
    return min(times)


def _pip_install(environment: Path, arguments: Sequence[str]) -> None:
    command = [str(python_of(environment)), "-m", "pip", "install", "--quiet", *arguments]
    subprocess.run(command, check=True)


def pairs(texts: Sequence[str], option: str, names: Sequence[str]) -> dict[str, str]:
    """Return what ``name=value`` options say.

    Raises:
        SystemExit: One is not of this form, or of no such name.
    """
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or name not in names:
            sys.exit(f"{option} is NAME=VALUE, of {', '.join(names)}. Received: {text}")
        found[name] = value
    return found


def main() -> None:
    """Make the environments that are asked for."""
    names = list(dict.fromkeys(contender.environment for contender in ALL))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("contenders", nargs="*", default=names, help=", ".join(names))
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="folder of the environments"
    )
    parser.add_argument(
        "--pip",
        action="append",
        default=[],
        metavar="NAME=OPTIONS",
        help="more options of pip for one of them, such as the index of PyTorch's CPU build",
    )
    arguments = parser.parse_args()
    options = pairs(arguments.pip, "--pip", names)
    for name in arguments.contenders:
        if name not in names:
            parser.error(f"there is no contender {name!r}, only {', '.join(names)}")
    failed = []
    for name in arguments.contenders:
        print(f"{name}: {arguments.cache / name}", flush=True)
        try:
            make(BY_NAME[name], arguments.cache / name, shlex.split(options.get(name, "")))
        except subprocess.CalledProcessError as error:
            failed.append(f"{name} ({error})")
    if failed:
        sys.exit(f"Not made: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
