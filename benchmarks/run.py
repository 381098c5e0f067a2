"""Measures mirrored and its peers on the same work, one after the other in many rounds.

Speed, first steps, memory, results and all-reduce come from one run, so that they can be compared.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import machine, plot, report_text
from benchmarks.environments import (
    ALL,
    BY_NAME,
    FIXED,
    FORMS,
    IN_WORKERS,
    MIRRORED,
    PEERS,
    PRODUCTS,
    PRODUCTS_OF_PARTS,
    ROOT,
    TENSORFLOW_ARRAYS,
    Contender,
    default_cache,
    import_seconds,
    install_checkout,
    installed_size,
    pairs,
    python_of,
)
from benchmarks.processes import ContenderError, Process
from benchmarks.reference import Reference, check_losses, largest_relative_error
from benchmarks.results import AllReduce, Outcome, Report, Series
from benchmarks.workloads import (
    IN_EVERY_FORM,
    RESULT_EPOCHS,
    TIMED,
    UNEVEN,
    Array,
    Workload,
    make_data,
)

PARTS = ("speed", "results", "all-reduce", "scaling")
# Those that are measured with a fixed number of replicas too.
FIXED_WORKLOADS = ("mnist", "wide", "lenet")
SCALING_WORKLOADS = ("digits", "mnist")
SCALING_REPLICAS = range(1, 9)
RESULT_REPLICAS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Settings:
    """What is measured, and how long.

    Attributes:
        names: The contenders that are asked for.
        environments: The virtual environments that there are, by name.
        replicas: On how many replicas, beside one.
        rounds: How often each contender has its turn.
        seconds: How long a turn is, about.
        limit: The seconds after which a contender that does not answer is killed.
    """

    names: Sequence[str]
    environments: dict[str, Path]
    replicas: int
    rounds: int
    seconds: float
    limit: float

    def start(self, contender: Contender, workload: str, replicas: int) -> Process:
        """Start a contender's process."""
        python = python_of(self.environments[contender.environment])
        arguments = ["--workload", workload, "--replicas", str(replicas), *contender.options]
        return Process([python, contender.script, *arguments], self.limit)

    def present(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return those that are asked for and have an environment."""
        return [
            contender
            for contender in contenders
            if contender.name in self.names and contender.environment in self.environments
        ]


def say(text: str) -> None:
    """Show progress, beside the report."""
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------- speed


def measure_together(
    workload: Workload, entries: Sequence[tuple[Contender, int]], settings: Settings
) -> list[Series]:
    """Return the steps of several contenders, which take turns."""
    expected = check_losses(workload)
    running: list[tuple[Series, Process]] = []
    all_series = []
    try:
        for contender, replicas in entries:
            series = Series(contender.name, replicas)
            all_series.append(series)
            process = _prepare(contender, workload, series, expected, settings)
            if process is not None:
                running.append((series, process))
        for index in range(settings.rounds):
            # Another one begins each round, so that none always follows the same one.
            first = index % max(1, len(running))
            for series, process in [*running[first:], *running[:first]]:
                if series.problem is None:
                    _take_turn(series, process, index, settings)
        for series, process in running:
            series.memory = process.peak_memory() or series.memory
    finally:
        for _, process in running:
            process.kill()
    return all_series


def _prepare(
    contender: Contender,
    workload: Workload,
    series: Series,
    expected: list[float],
    settings: Settings,
) -> Process | None:
    """Start a contender, take its first step, and hold its losses to the reference's."""
    say(f"  {workload.name}: {contender.name} on {series.replicas}")
    process, ready = None, False
    try:
        process = settings.start(contender, workload.name, series.replicas)
        answer = process.ask("first_step")
        series.from_start_s = process.answered - process.started
        series.from_fit_s, series.facts = answer["fit_s"], answer["facts"]
        if contender not in (PRODUCTS, PRODUCTS_OF_PARTS):
            losses = process.ask("check")["losses"]
            series.loss_error = largest_relative_error(losses, expected)
        epoch = process.ask("measure", epochs=1)["us"] * 1e-6 * workload.steps
        series.epochs = max(1, round(settings.seconds / epoch))
        ready = True
    except ContenderError as error:
        say(f"    {error}")
        series.problem = str(error)
    finally:
        if process is not None and not ready:
            process.kill()
    return process if ready else None


def _take_turn(series: Series, process: Process, index: int, settings: Settings) -> None:
    try:
        series.samples.append(process.ask("measure", epochs=series.epochs)["us"])
        series.memory = process.peak_memory()
    except ContenderError as error:
        say(f"    {series.contender} on {series.replicas}, round {index + 1}: {error}")
        series.problem = f"{error} (round {index + 1} of {settings.rounds})"


def speed_entries(name: str, settings: Settings) -> list[tuple[Contender, int]]:
    """Return who is measured on a workload: everybody, on one device and on several replicas."""
    forms = FORMS if name in IN_EVERY_FORM else ()
    is_fixed = name in FIXED_WORKLOADS
    contenders = settings.present([MIRRORED, *forms, *[FIXED] * is_fixed, *PEERS])
    entries = [
        (contender, replicas) for replicas in (1, settings.replicas) for contender in contenders
    ]
    if name in IN_EVERY_FORM and settings.replicas % 2 == 0:
        entries += [(contender, settings.replicas) for contender in settings.present(IN_WORKERS)]
    limits = settings.present([PRODUCTS, *[PRODUCTS_OF_PARTS] * is_fixed])
    return entries + [(contender, 1) for contender in limits]


def scaling_entries(name: str, settings: Settings) -> list[tuple[Contender, int]]:
    """Return mirrored alone, on one to eight replicas, where a workload is measured so."""
    contenders = settings.present([MIRRORED]) if name in SCALING_WORKLOADS else ()
    return [(contender, replicas) for replicas in SCALING_REPLICAS for contender in contenders]


# ---------------------------------------------------------------------------- results, all-reduce


def measure_outcomes(settings: Settings) -> list[Outcome]:
    """Return where training ends on data that do not divide evenly over replicas."""
    reference = Reference(UNEVEN)
    reference.fit(*make_data(UNEVEN), RESULT_EPOCHS)
    outcomes = []
    # Both forms of TensorFlow do the same here: without whole batches it is given arrays.
    peers = [peer for peer in PEERS if peer is not TENSORFLOW_ARRAYS]
    for contender in settings.present([MIRRORED, *peers]):
        one: tuple[float, list[Array]] | None = None
        for replicas in RESULT_REPLICAS:
            outcome = Outcome(contender.name, replicas)
            outcomes.append(outcome)
            found = _train_uneven(contender, outcome, settings)
            if found is None:
                continue
            one = one or (found if replicas == 1 else None)
            outcome.loss = found[0]
            outcome.reference_difference = largest_difference(found[1], reference.weights)
            if one is not None:
                outcome.loss_difference = abs(found[0] - one[0])
                outcome.weight_difference = largest_difference(found[1], one[1])
    return outcomes


def _train_uneven(
    contender: Contender, outcome: Outcome, settings: Settings
) -> tuple[float, list[Array]] | None:
    say(f"  results: {contender.name} on {outcome.replicas}")
    try:
        process = settings.start(contender, UNEVEN.name, outcome.replicas)
        try:
            answer = process.ask("results")
        finally:
            process.kill()
    except ContenderError as error:
        outcome.problem = str(error)
        return None
    return answer["losses"][-1], [np.asarray(weight) for weight in answer["weights"]]


def largest_difference(values: Sequence[Array], expected: Sequence[Array]) -> float:
    """Return the largest difference between any two numbers of the same place."""
    return max(float(np.abs(a - b).max()) for a, b in zip(values, expected, strict=True))


def measure_all_reduce(name: str, settings: Settings) -> AllReduce:
    """Return what an all-reduce of a workload's gradients costs, and a copy of its bytes."""
    say(f"  all-reduce: {name}")
    size = TIMED[name].parameter_bytes
    result = AllReduce(name, settings.replicas, size)
    times = max(5, min(200, int(settings.rounds * 2e7 / size)))
    try:
        process = settings.start(MIRRORED, name, settings.replicas)
        try:
            process.ask("first_step")
            answer = process.ask("all_reduce", bytes=size, times=times)
        finally:
            process.kill()
        result.all_reduce_s, result.copy_s = answer["all_reduce_s"], answer["copy_s"]
    except ContenderError as error:
        result.problem = str(error)
    return result


def measure_imports(names: Sequence[str], environments: dict[str, Path]) -> dict[str, float | None]:
    """Return the least of the seconds that imports take, each in a new process."""
    return {
        name: import_seconds(python_of(environments[BY_NAME[name].environment]), BY_NAME[name])
        for name in names
        if BY_NAME[name].environment in environments
    }


# ---------------------------------------------------------------------------- the command


def add_environments(parser: argparse.ArgumentParser) -> None:
    """Let a command line say which environments contenders run in, and how long they may take."""
    parser.add_argument("--limit", type=float, default=120.0, help="seconds to wait for an answer")
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="folder of the environments"
    )
    parser.add_argument(
        "--environment",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="an existing virtual environment for a contender",
    )


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line, with the lengths that ``--quick`` stands for."""
    names = [contender.name for contender in ALL]
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=TIMED, default=list(TIMED))
    parser.add_argument("--contenders", nargs="+", choices=names, default=names)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--replicas", type=int, default=2, help="number of replicas, in addition to one device"
    )
    parser.add_argument("--rounds", type=int, help="timings per contender")
    parser.add_argument("--seconds", type=float, help="approximate length of a timing")
    add_environments(parser)
    parser.add_argument(
        "--out",
        type=Path,
        help="file of the report (default: docs/reference/benchmarks.md, none with --quick)",
    )
    parser.add_argument(
        "--json",
        type=Path,
        help="file of all figures; figures that it has are not measured again",
    )
    parser.add_argument("--quick", action="store_true", help="3 short rounds, no report")
    parsed = parser.parse_args(arguments)
    if parsed.replicas < 2:
        parser.error(
            f"--replicas is 2 or more: one is always measured. Received: {parsed.replicas}"
        )
    parsed.rounds = parsed.rounds or (3 if parsed.quick else 15)
    parsed.seconds = parsed.seconds or (0.2 if parsed.quick else 0.5)
    if parsed.out is None and not parsed.quick:
        parsed.out = ROOT / "docs" / "reference" / "benchmarks.md"
    return parsed


def find_environments(arguments: argparse.Namespace) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the environment of each contender, and why others are skipped.

    The checkout is installed again, so that what is measured is what is here.
    """
    wanted = {BY_NAME[name].environment for name in arguments.contenders}
    named = pairs(
        arguments.environment, "--environment", [contender.environment for contender in ALL]
    )
    found, skipped = {}, {}
    for name in sorted(wanted):
        path = Path(named.get(name, arguments.cache / name))
        if not python_of(path).exists():
            skipped[name] = f"no environment; python -m benchmarks.environments {name} makes it"
            continue
        if name == MIRRORED.environment and name not in named:
            say("Installing the checkout")
            try:
                install_checkout(path)
            except subprocess.CalledProcessError:
                skipped[name] = "the checkout could not be installed"
                continue
        found[name] = path
    return found, skipped


def begin(arguments: argparse.Namespace) -> Report:
    """Return the report to be filled: a new one, or that which a run before has kept.

    Raises:
        SystemExit: What was kept is of another machine, day or number of rounds.
    """
    report = Report(machine.describe(), arguments.replicas, arguments.rounds)
    if arguments.json is None or not arguments.json.exists():
        return report
    kept = Report.from_json(json.loads(arguments.json.read_text()))
    if _conditions(kept) != _conditions(report):
        sys.exit(
            f"{arguments.json} has figures of other conditions, which do not compare. There: "
            f"{_conditions(kept)}. Here: {_conditions(report)}. Give the name of a new file."
        )
    return kept


def _conditions(report: Report) -> dict[str, object]:
    here = {name: value for name, value in report.machine.items() if name != "load before"}
    return {**here, "replicas": report.replicas, "rounds": report.rounds}


def measure(arguments: argparse.Namespace, report: Report) -> None:
    """Measure what is asked for and not in the report, and keep each part as it is done."""
    environments, skipped = find_environments(arguments)
    report.skipped = skipped
    for name, reason in skipped.items():
        say(f"Skipped: {name}: {reason}")
    report.imports |= measure_imports(arguments.contenders, environments)
    report.sizes |= {name: installed_size(path) for name, path in environments.items()}
    settings = Settings(
        arguments.contenders,
        environments,
        arguments.replicas,
        arguments.rounds,
        arguments.seconds,
        arguments.limit,
    )

    def keep() -> None:
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(report.to_json(), indent=1) + "\n")

    for part, entries_of, found in (
        ("speed", speed_entries, report.speed),
        ("scaling", scaling_entries, report.scaling),
    ):
        for name in arguments.workloads if part in arguments.parts else ():
            entries = entries_of(name, settings)
            if entries and name not in found:
                found[name] = measure_together(TIMED[name], entries, settings)
                keep()
    if "results" in arguments.parts and not report.outcomes:
        report.outcomes = measure_outcomes(settings)
    if "all-reduce" in arguments.parts and settings.present([MIRRORED]):
        done = {result.workload for result in report.all_reduces}
        names = [name for name in arguments.workloads if name not in done]
        report.all_reduces += [measure_all_reduce(name, settings) for name in names]
    keep()


def main(command_line: Sequence[str] | None = None) -> None:
    """Measure, print the report, and store it where it is asked for."""
    arguments = parse_arguments(command_line)
    report = begin(arguments)
    measure(arguments, report)
    picture = plot.draw(report, arguments.out.with_suffix(".svg")) if arguments.out else None
    text = report_text.markdown(report, picture.name if picture else None)
    print(text)
    if arguments.out:
        before = arguments.out.read_text() if arguments.out.exists() else ""
        arguments.out.write_text(report_text.with_notes(text, before))
        figures = json.dumps(report.figures(), indent=1) + "\n"
        arguments.out.with_suffix(".json").write_text(figures)
        say(f"Written: {arguments.out}{f' and {picture}' if picture else ''}")
