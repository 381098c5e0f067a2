"""The command: measures what is not kept, and writes the page and its curves.

With figures that are kept it only computes.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine, run
from benchmarks.environments import ROOT
from benchmarks.scaling import plot, report
from benchmarks.scaling.measured import ENTRIES, Measured, measure, settings_of


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.scaling", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="timings per contender (default: 9)")
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="approximate length of a timing (default: 0.5)"
    )
    run.add_environments(parser)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "explanation" / "scaling.md")
    parser.add_argument(
        "--json", type=Path, help="file of all figures; figures that it has are not measured again"
    )
    parser.add_argument("--note", help="a note on the machine, for the page")
    parsed = parser.parse_args(arguments)
    parsed.contenders = list(dict.fromkeys(_known(entry.name) for entry, _ in ENTRIES))
    return parsed


def _known(name: str) -> str:
    """Return the name of a contender that has the environment of another one."""
    from benchmarks.environments import BY_NAME, MIRRORED

    return name if name in BY_NAME else MIRRORED.name


def main(command_line: Sequence[str] | None = None) -> None:
    """Measure, compute, and write the page."""
    arguments = parse_arguments(command_line)
    found = begin(arguments)
    if arguments.note:
        found.machine["note"] = arguments.note

    def keep() -> None:
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(found.to_json(), indent=1) + "\n")

    environments, skipped = run.find_environments(arguments)
    for name, reason in skipped.items():
        run.say(f"Skipped: {name}: {reason}")
    settings = settings_of(environments, arguments.rounds, arguments.seconds, arguments.limit)
    measure(found, settings, keep)
    picture = plot.draw(arguments.out.with_suffix(".svg"))
    arguments.out.write_text(report.markdown(found, picture.name if picture else None))
    run.say(f"Written: {arguments.out}{f' and {picture}' if picture else ''}")


def begin(arguments: argparse.Namespace) -> Measured:
    """Return what is to be filled: nothing yet, or what a run before has kept.

    Raises:
        SystemExit: What was kept had another number of rounds.
    """
    if arguments.json is None or not arguments.json.exists():
        return Measured(machine.describe(), arguments.rounds)
    found = Measured.from_json(json.loads(arguments.json.read_text()))
    if found.rounds != arguments.rounds:
        sys.exit(
            f"{arguments.json} has figures of {found.rounds} rounds. Here: {arguments.rounds}. "
            "Give the name of a new file."
        )
    return found
