"""What a step of each optimizer costs, beside PyTorch's Adam and AdamW, by the size of a network.

`python -m benchmarks.optimizers` prints the table of docs/reference/benchmarks.md.
Each library has a
process of its own, in the environment that `python -m benchmarks.environments` made.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders.optimizers import NAMES, SIZES
from benchmarks.environments import SCRIPTS, default_cache, install_checkout, python_of
from benchmarks.processes import clean_environment

Found = dict[str, dict[str, float]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short timing per optimizer")
    parser.add_argument(
        "--rounds", type=int, default=15, help="timings per optimizer (default: 15)"
    )
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="folder of the environments"
    )
    parser.add_argument(
        "--here", action="store_true", help="measure this checkout with this Python, uninstalled"
    )
    options = parser.parse_args()
    pythons = {name: python_of(options.cache / name) for name in NAMES}
    if options.here:
        pythons["mirrored"] = Path(sys.executable)
    else:
        install_checkout(options.cache / "mirrored", ())
    rounds, seconds = (1, 0.01) if options.quick else (options.rounds, 0.1)
    found: dict[str, dict[str, Found]] = {}
    for library, python in pythons.items():
        if not python.exists():
            print(f"{library} is left out: there is no {python}.\n")
            continue
        found[library] = {size: measured(python, library, size, rounds, seconds) for size in SIZES}
    check(found)
    numbers = [sum(map(math.prod, shapes)) for shapes in SIZES.values()]
    heads = [f"{size}, us" for size in SIZES]
    print(f"Weights: {', '.join(f'{number:,}' for number in numbers)}; {rounds} turns of each\n")
    print(f"| optimizer | {' | '.join(heads)} |")
    print("| --- " + "| ---: " * len(heads) + "|")
    for line in lines(found):
        print(line)


def measured(
    python: Path, library: str, size: str, rounds: int, seconds: float, names: Sequence[str] = ()
) -> Found:
    """Return what `contenders/optimizers.py` finds of a library.

    Raises:
        SystemExit: It failed.
    """
    script = str(SCRIPTS / "optimizers.py")
    command = [str(python), script, library, size, str(rounds), str(seconds), *names]
    environment = clean_environment(os.environ)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{library}, {size}: {done.stderr[-2000:]}")
    found: Found = json.loads(done.stdout)
    return found


def check(found: Mapping[str, Mapping[str, Found]]) -> None:
    """See to it that rules of one name make the same weights.

    Raises:
        ValueError: They do not.
    """
    for size in SIZES:
        weights: dict[str, list[float]] = {}
        for sizes in found.values():
            for name, row in sizes[size].items():
                weights.setdefault(name.split()[0], []).append(row["weights"])
        for name, values in weights.items():
            if name != "SGD" and not all(math.isclose(v, values[0], rel_tol=1e-4) for v in values):
                raise ValueError(f"The weights of {name} differ, of {size}: {values}.")


def lines(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the rows of the table."""
    rows = []
    for library, sizes in found.items():
        title = {"torch": "PyTorch's "}.get(library, "")
        for name in NAMES[library]:
            cells = [f"{sizes[size][name]['us']:.0f}" for size in SIZES]
            rows.append(f"| {title}{name} | {' | '.join(cells)} |")
    return rows


if __name__ == "__main__":
    main()
