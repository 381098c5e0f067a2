"""The first minutes on a card that nothing has run on: what decides most comes first.

Each look is a process of its own, and what it says is written down as soon as it has ended. Behind
it, `python -m benchmarks.gpu` checks and measures everything.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu import machine, parts
from benchmarks.gpu.command import STATUS_NO_GPU, TESTS, replace
from benchmarks.gpu.parts import ROOT, Deadline
from benchmarks.gpu.speed import say
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.backends.cuda.compiling import FOLDER
from mirrored.distribute.cross_device_ops.connections import SELFTEST

NAME = "gpu-first.txt"
STAND_IN = "MIRRORED_GPU_CHECK"
MOST_LINES = 120  # Of a look.
ABORTS = 50
SEVERAL_RANKS = {MULTI_RANK: "1", SELFTEST: "0"}
CASE = {"sizes": [64, 128, 10], "batch": 256, "examples": 2560, "epochs": 2}


@dataclass(frozen=True)
class Look:
    """Something to look at.

    Attributes:
        title: What it is.
        limit: The seconds that it may take.
        arguments: What Python runs; "{folder}" stands for a folder that goes with the last look.
        environment: Variables beside this process' own.
        facts: Whether its last argument is a file of arrays that it writes, which are shown.
    """

    title: str
    limit: float
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    facts: bool = False


def looks(stand_in: str) -> Iterator[Look]:
    """Yield what there is to look at, in order.

    Args:
        stand_in: What stands in for the card, an empty string where it is there.
    """
    simulated = ["--simulated"] if stand_in else []
    own = {"MIRRORED_SIMULATED_GPUS": "1"} if stand_in else {}
    yield Look("the devices", 60, ("-m", "mirrored", "devices"), own)
    yield _facts("products in each precision: their errors", "first_look.products")
    yield _facts("products that clip and sum columns", "epilogues.answers")
    yield _facts("numbers below the normal ones", "first_look.small_numbers")
    yield _facts("a new thread asks for an event", "devices.asked_by_a_thread")
    yield _facts("a number of the host that stops writes", "steps.gate")
    yield _tests("ops", "every op, with kernels that are compiled anew", {FOLDER: "{folder}"})
    yield _facts("steps that are captured", "training.captured", cases=[CASE], gpus=1)
    yield _tests("precision")
    yield _tests("matrices")
    yield _tests("steps")
    yield _tests("devices")
    yield _tests("bits", "the same bits in each way")
    yield from _of_nccl()
    quick = ["--quick", "--workloads", "digits"] if stand_in else []
    yield Look("choices", 100, ("-m", "benchmarks.gpu.variants", *quick, *simulated))
    yield _tests("training")
    options = ("--benchmark-only", "--quick", "--deadline", "2", "--out", "{folder}")
    chosen = ("--workloads", "digits", *(["wide"] if not stand_in else []))
    yield Look("speed", 150, ("-m", "benchmarks.gpu", *options, *chosen, *simulated))


def _of_nccl() -> Iterator[Look]:
    yield _facts("NCCL with one rank", "first_look.one_rank")
    for count in (2, 4):
        title = f"NCCL with {count} ranks on one card"
        yield _facts(title, "first_look.ranks", SEVERAL_RANKS, count=count)
    yield _facts("a rank is left out", "faults.left_out", SEVERAL_RANKS, parts=[2])
    how = {"count": 2, "times": ABORTS, "seconds": 80.0}
    yield _facts("aborts with a full queue", "first_look.aborts", SEVERAL_RANKS, **how)
    title = "Ctrl-C with a full queue"
    yield _facts(title, "faults.interrupted_in_a_full_queue", SEVERAL_RANKS, parts=[2])


def _facts(
    title: str, function: str, environment: Mapping[str, str] | None = None, **given: Any
) -> Look:
    """Return a look at what a function of `tests/gpu/scenarios` returns."""
    module, _, name = function.partition(".")
    program = str(TESTS / "scenarios" / "run.py")
    arguments = (program, module, name, json.dumps(given), "{folder}/facts.npz")
    growth = {"MIRRORED_FORCE_GPU_ALLOW_GROWTH": "true", **(environment or {})}
    return Look(title, 100, arguments, growth, facts=True)


def _tests(name: str, title: str = "", environment: Mapping[str, str] | None = None) -> Look:
    """Return a look at a file of tests."""
    options = ("-q", "--tb=short", "-rs", "--maxfail=20", "-p", "no:cacheprovider")
    path = str(TESTS / f"test_{name}.py")
    # Of plugins that happen to be installed none is needed, and one may break the tests.
    variables = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(environment or {})}
    return Look(title or f"tests of {name}", 150, ("-m", "pytest", *options, path), variables)


def taken(look: Look, limit: float) -> str:
    """Take a look, within so many seconds; return what it showed."""
    with tempfile.TemporaryDirectory() as folder:
        words = [argument.replace("{folder}", folder) for argument in look.arguments]
        variables = {
            name: value.replace("{folder}", folder) for name, value in look.environment.items()
        }
        ended = parts.run([sys.executable, *words], limit, variables)
        lines = ended.output.splitlines()[-MOST_LINES:]
        if look.facts and ended.status == 0:
            lines += _shown(Path(words[-1]))
        for page in sorted(Path(folder).glob("*.md")):
            lines += page.read_text().splitlines()
    return "\n".join([f"{ended.how}, {ended.seconds:.1f} s", *lines])


def _shown(path: Path) -> Iterator[str]:
    with np.load(path) as stored, np.printoptions(linewidth=200):
        for name, value in stored.items():
            yield f"{name}: {value[()]}"


def take_all(asked: Sequence[Look], minutes: float, path: Path, heading: str) -> None:
    """Take each look in turn, while there is time, and write down what is known by then."""
    deadline, text = Deadline(60 * minutes), heading
    for look in asked:
        say(look.title)
        left = deadline.left()
        found = taken(look, min(look.limit, left)) if left else "not taken: no time was left"
        say("  " + found.partition("\n")[0])
        text += f"\n\n## {look.title}\n{found}"
        replace(path, text + "\n")


def main(command_line: Sequence[str] | None = None) -> int:
    """Take the looks that the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.gpu.first", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--minutes", type=float, default=9.5, help="total minutes (default: 9.5)")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="run only the looks with this word in their titles"
    )
    parser.add_argument("--out", type=Path, default=ROOT / NAME, help="file of the report")
    asked = parser.parse_args(command_line)
    stand_in = os.environ.get(STAND_IN, "")
    gpu = machine.gpu(bool(stand_in))
    if gpu is None:
        say("No GPU: the library finds none to run on, so nothing was run and nothing written.")
        return STATUS_NO_GPU
    facts = machine.describe(gpu) | ({"stands in for a card": stand_in} if stand_in else {})
    heading = "\n".join(f"{name}: {fact}" for name, fact in facts.items())
    chosen = [look for look in looks(stand_in) if any(word in look.title for word in asked.only)]
    take_all(chosen, asked.minutes, asked.out, heading)
    say(f"Written: {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
