"""Measures mirrored and its peers on the same work, one after the other in many rounds.

Speed, first steps, memory, results and all-reduce come from one run, so that they can be compared.
"""

import argparse
import json
import os
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
    FORMS,
    MIRRORED,
    PEERS,
    PRODUCTS,
    ROOT,
    TENSORFLOW_ARRAYS,
    Contender,
    default_cache,
    install_checkout,
    installed_size,
    pairs,
    python_of,
)
from benchmarks.processes import ContenderError, Process, clean_environment
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
SCALING_WORKLOADS = ("digits", "mnist")
SCALING_REPLICAS = range(1, 9)
RESULT_REPLICAS = (1, 2, 3, 4)
IMPORTS = 3


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
            each
            for each in contenders
            if each.name in self.names and each.environment in self.environments
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
        if contender is not PRODUCTS:
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


def measure_speed(names: Sequence[str], settings: Settings) -> dict[str, list[Series]]:
    """Return the steps of everybody, on one device and on several replicas."""
    contenders = settings.present([MIRRORED, *FORMS, *PEERS])
    entries = [(each, replicas) for replicas in (1, settings.replicas) for each in contenders]
    entries += [(each, 1) for each in settings.present([PRODUCTS])]
    found = {}
    for name in names if entries else ():
        every = name in IN_EVERY_FORM
        here = [(each, count) for each, count in entries if every or each not in FORMS]
        found[name] = measure_together(TIMED[name], here, settings)
    return found


def measure_scaling(names: Sequence[str], settings: Settings) -> dict[str, list[Series]]:
    """Return the steps of mirrored alone, on one to eight replicas."""
    entries = [(each, n) for n in SCALING_REPLICAS for each in settings.present([MIRRORED])]
    names = [name for name in names if name in SCALING_WORKLOADS and entries]
    return {name: measure_together(TIMED[name], entries, settings) for name in names}


# ---------------------------------------------------------------------------- results, all-reduce


def measure_outcomes(settings: Settings) -> list[Outcome]:
    """Return where training ends on data that do not divide evenly over replicas."""
    reference = Reference(UNEVEN)
    reference.fit(*make_data(UNEVEN), RESULT_EPOCHS)
    outcomes = []
    # Both forms of TensorFlow do the same here: without whole batches it is given arrays.
    peers = [each for each in PEERS if each is not TENSORFLOW_ARRAYS]
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
    return answer["losses"][-1], [np.asarray(each) for each in answer["weights"]]


def largest_difference(values: Sequence[Array], expected: Sequence[Array]) -> float:
    """Return the largest difference between any two numbers of the same place."""
    return max(float(np.abs(a - b).max()) for a, b in zip(values, expected, strict=True))


def measure_all_reduces(names: Sequence[str], settings: Settings) -> list[AllReduce]:
    """Return what an all-reduce of each workload's gradients costs, and a copy of its bytes."""
    found = []
    for contender in settings.present([MIRRORED]):
        for name in names:
            say(f"  all-reduce: {name}")
            size = TIMED[name].parameter_bytes
            result = AllReduce(name, settings.replicas, size)
            found.append(result)
            times = max(5, min(200, int(settings.rounds * 2e7 / size)))
            try:
                process = settings.start(contender, name, settings.replicas)
                try:
                    process.ask("first_step")
                    answer = process.ask("all_reduce", bytes=size, times=times)
                finally:
                    process.kill()
                result.all_reduce_s, result.copy_s = answer["all_reduce_s"], answer["copy_s"]
            except ContenderError as error:
                result.problem = str(error)
    return found


def measure_imports(names: Sequence[str], environments: dict[str, Path]) -> dict[str, float | None]:
    """Return the least of the seconds that imports take, each in a new process."""
    return {
        name: import_seconds(python_of(environments[BY_NAME[name].environment]), BY_NAME[name])
        for name in names
        if BY_NAME[name].environment in environments
    }


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


# ---------------------------------------------------------------------------- the command


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line, with the lengths that ``--quick`` stands for."""
    names = [each.name for each in ALL]
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=TIMED, default=list(TIMED))
    parser.add_argument("--contenders", nargs="+", choices=names, default=names)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--replicas", type=int, default=2, help="beside one device")
    parser.add_argument("--rounds", type=int, help="turns of each contender")
    parser.add_argument("--seconds", type=float, help="the length of a turn, about")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds to wait for an answer")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="the environments")
    parser.add_argument(
        "--environment",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="another virtual environment for a contender, as it is",
    )
    parser.add_argument("--out", type=Path, help="the report; docs/performance.md if not --quick")
    parser.add_argument("--json", type=Path, help="write all figures here too")
    parser.add_argument("--quick", action="store_true", help="3 short rounds, only printed")
    parsed = parser.parse_args(arguments)
    if parsed.replicas < 2:
        parser.error(
            f"--replicas is 2 or more: one is always measured. Received: {parsed.replicas}"
        )
    parsed.rounds = parsed.rounds or (3 if parsed.quick else 15)
    parsed.seconds = parsed.seconds or (0.2 if parsed.quick else 0.5)
    if parsed.out is None and not parsed.quick:
        parsed.out = ROOT / "docs" / "performance.md"
    return parsed


def find_environments(arguments: argparse.Namespace) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the environment of each contender, and why others are skipped.

    The checkout is installed again, so that what is measured is what is here.
    """
    wanted = {BY_NAME[name].environment for name in arguments.contenders}
    given = pairs(arguments.environment, "--environment", [each.environment for each in ALL])
    found, skipped = {}, {}
    for name in sorted(wanted):
        path = Path(given.get(name, arguments.cache / name))
        if not python_of(path).exists():
            skipped[name] = f"no environment; python -m benchmarks.environments {name} makes it"
            continue
        if name == MIRRORED.environment and name not in given:
            say("Installing the checkout")
            try:
                install_checkout(path)
            except subprocess.CalledProcessError:
                skipped[name] = "the checkout could not be installed"
                continue
        found[name] = path
    return found, skipped


def measure(arguments: argparse.Namespace) -> Report:
    """Measure what is asked for."""
    environments, skipped = find_environments(arguments)
    for name, reason in skipped.items():
        say(f"Skipped: {name}: {reason}")
    report = Report(machine.describe(), arguments.replicas, arguments.rounds, skipped=skipped)
    report.imports = measure_imports(arguments.contenders, environments)
    report.sizes = {name: installed_size(path) for name, path in environments.items()}
    settings = Settings(
        arguments.contenders,
        environments,
        arguments.replicas,
        arguments.rounds,
        arguments.seconds,
        arguments.limit,
    )
    names = arguments.workloads
    if "speed" in arguments.parts:
        report.speed = measure_speed(names, settings)
    if "results" in arguments.parts:
        report.outcomes = measure_outcomes(settings)
    if "all-reduce" in arguments.parts:
        report.all_reduces = measure_all_reduces(names, settings)
    if "scaling" in arguments.parts:
        report.scaling = measure_scaling(names, settings)
    return report


def main(command_line: Sequence[str] | None = None) -> None:
    """Measure, print the report, and store it where it is asked for."""
    arguments = parse_arguments(command_line)
    report = measure(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(report.to_json(), indent=1) + "\n")
    picture = plot.draw(report, arguments.out.with_suffix(".svg")) if arguments.out else None
    text = report_text.markdown(report, picture.name if picture else None)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)
        say(f"Written: {arguments.out}{f' and {picture}' if picture else ''}")
