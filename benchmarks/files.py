"""What it takes to save a model of a gigabyte and to load it again, by format.

`python -m benchmarks.files` prints the table of docs/reference/benchmarks.md.
Each format has a process of
its own, in the environment that `python -m benchmarks.environments` made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.contenders.files import FORMATS
from benchmarks.environments import SCRIPTS, default_cache, install_checkout, python_of
from benchmarks.processes import clean_environment


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--layers", type=int, default=16, help="number of layers of 64 MiB (default: 16)"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="timings per format, of which the best counts (default: 3)",
    )
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="folder of the environments"
    )
    options = parser.parse_args()
    install_checkout(options.cache / "mirrored", (), "h5py")
    print(
        "| file | save, s | load, s | save, GB/s | load, GB/s | save, MiB more | load, MiB more |"
    )
    print("| --- " + "| ---: " * 6 + "|")
    for name in options.formats:
        python = python_of(options.cache / name.partition(".")[0])
        print(line(name, measured(python, name, options.layers, options.rounds)), flush=True)


def measured(python: Path, name: str, layers: int, rounds: int) -> dict[str, Any]:
    """Return what `contenders/files.py` finds of a format.

    Raises:
        SystemExit: It failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python), str(SCRIPTS / "files.py"), name, str(layers), str(rounds), folder]
        environment = clean_environment(os.environ)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def line(name: str, found: Mapping[str, Any]) -> str:
    """Return a row of the table."""
    seconds = [found["save_s"], found["load_s"]]
    cells = [f"{taken:.2f}" for taken in seconds]
    cells += [f"{found['bytes'] / taken / 1e9:.2f}" for taken in seconds]
    cells += [f"{found[key] / 2**20:.0f}" for key in ("save_bytes", "load_bytes")]
    return "| " + " | ".join([name, *cells]) + " |"


if __name__ == "__main__":
    main()
