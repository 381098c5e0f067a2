"""The command: tests first, file by file, then the measurements, all within a deadline.

What is known is written down whenever a part has ended.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.gpu import all_reduces, machine, outcomes, parts, report
from benchmarks.gpu.parts import ROOT, Deadline
from benchmarks.gpu.results import Results, TestFile
from benchmarks.gpu.speed import Speed, say
from benchmarks.gpu.workloads import PRECISIONS, WORKLOADS

TESTS = ROOT / "tests" / "gpu"
NAME = "gpu-results"
FILE_LIMIT = 150.0  # Seconds of a file of tests, of which each is expected to take a fifth.
ANSWER_LIMIT = 60.0  # Seconds of a contender's answer, compiling included.
TESTS_SHARE = 0.6  # Of the whole time, where the benchmark comes after them.
ALL_REDUCES_SHARE = 0.5  # Of what the tests leave, and a minute at most.
DESCRIBE_LIMIT = 60.0
STATUS_FAILED, STATUS_NO_GPU = 1, 2
# pytest's statuses for tests that all passed, for some that failed, and for none.
_PYTEST_ENDED = (0, 1, 5)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line, with the lengths that ``--quick`` stands for."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__.splitlines()[0])
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--tests-only", action="store_true", help="run the tests, and not the benchmark"
    )
    only.add_argument(
        "--benchmark-only", action="store_true", help="run the benchmark, and not the tests"
    )
    parser.add_argument("--quick", action="store_true", help="2 short rounds per contender")
    parser.add_argument("--deadline", type=float, default=8.0, help="total minutes (default: 8)")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument(
        "--out", type=Path, help="folder of the page and the JSON (default: docs, without JSON)"
    )
    parser.add_argument("--simulated", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if not parsed.deadline > 0:
        parser.error(f"--deadline is a number of minutes above 0. Received: {parsed.deadline}")
    if parsed.simulated and parsed.out is None:
        parser.error(
            "--simulated tries the command itself: give a folder for what it writes, --out"
        )
    parsed.rounds = 2 if parsed.quick else 5
    parsed.seconds = 0.05 if parsed.quick else 0.2
    return parsed


def writer(results: Results, arguments: argparse.Namespace) -> Callable[[], None]:
    """Return a function that writes down what is known by now.

    The page goes into the folder `docs`, or with the JSON into a folder that was asked for.
    """
    folder = arguments.out or ROOT / "docs"
    folder.mkdir(parents=True, exist_ok=True)

    def write() -> None:
        replace(folder / f"{NAME}.md", report.markdown(results, arguments.seconds))
        if arguments.out:
            text = json.dumps(results.to_json(), indent=1)
            replace(folder / f"{NAME}.json", text + "\n")

    return write


def replace(path: Path, text: str) -> None:
    """Write a file as a whole, so that a crash leaves the one before."""
    new = path.with_suffix(".part")
    new.write_text(text)
    os.replace(new, path)


# ---------------------------------------------------------------------------- the tests


def run_tests(
    results: Results, files: Sequence[Path], deadline: Deadline, write: Callable[[], None]
) -> None:
    """Run each file of tests in a process of its own."""
    for path in files:
        say(f"  {path.name}")
        left = deadline.left()
        if left:
            results.files.append(run_file(path, min(FILE_LIMIT, left), results.simulated))
        else:
            results.files.append(TestFile(path.name, problem="was not run: no time was left"))
        last = results.files[-1]
        say(f"    {'FAILED' if last.failed else 'passed'} in {last.seconds:.0f} s")
        write()


def run_file(path: Path, limit: float, simulated: bool) -> TestFile:
    """Run a file of tests; return what became of it, however it ended."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "outcomes"
        environment = {
            outcomes.VARIABLE: str(said),
            # Of plugins that happen to be installed none is needed, and one may break the tests.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            # Whatever else is asked for here: results are of the card, or say that they are not.
            "MIRRORED_GPU_CHECK": "simulated" if simulated else "",
        }
        plugins = ("-p", outcomes.__name__, "-p", "no:cacheprovider")
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", *plugins, str(path)]
        ended = parts.run(command, limit, environment)
        found = TestFile(path.name, ended.seconds, outcomes.read(said))
    if ended.status not in _PYTEST_ENDED:
        found.problem = ended.how
    elif not found.tests:
        found.problem = "has run no test"
    if found.failed:
        found.last_lines = ended.last_lines
    return found


# ---------------------------------------------------------------------------- the command


def describe_devices(simulated: bool) -> str:
    """Return what ``python -m mirrored devices`` prints."""
    environment = {"MIRRORED_SIMULATED_GPUS": "1"} if simulated else {}
    command = [sys.executable, "-m", "mirrored", "devices"]
    ended = parts.run(command, DESCRIBE_LIMIT, environment)
    return ended.output if ended.status == 0 else f"{ended.how}\n{ended.last_lines}"


def main(command_line: Sequence[str] | None = None) -> int:
    """Run the tests and the benchmark, and write down what they find.

    Returns:
        The exit status: 0, 1 where a test failed, 2 where there is no GPU.
    """
    arguments = parse_arguments(command_line)
    deadline = Deadline(arguments.deadline * 60)
    gpu = machine.gpu(arguments.simulated)
    if gpu is None:
        say("No GPU: the library finds none to run on, so nothing was run and nothing written.")
        return STATUS_NO_GPU
    results = Results(machine.describe(gpu), machine.missing(), rounds=arguments.rounds)
    results.simulated = arguments.simulated
    write = writer(results, arguments)
    results.devices = describe_devices(arguments.simulated)
    write()
    if not arguments.benchmark_only:
        say("Tests")
        share = 1.0 if arguments.tests_only else TESTS_SHARE
        own = Deadline(deadline.left() * share)
        run_tests(results, sorted(TESTS.glob("test_*.py")), own, write)
    if not arguments.tests_only:
        say("All-reduces")
        all_reduces.measure(
            results,
            all_reduces.kinds(machine.cards(arguments.simulated)),
            Deadline(min(all_reduces.LIMIT_OF_ALL, deadline.left() * ALL_REDUCES_SHARE)),
            write,
            quick=arguments.quick,
        )
        say("Benchmark")
        card = machine.address(gpu)
        device = "cpu" if arguments.simulated else "cuda"
        speed = Speed(
            results,
            deadline,
            arguments.rounds,
            arguments.seconds,
            ANSWER_LIMIT,
            device,
            lambda: machine.clock(card),
        )
        speed.measure(arguments.workloads, arguments.precisions, write)
    results.complete = True
    write()
    say(f"Written: {(arguments.out or ROOT / 'docs') / NAME}.md")
    return STATUS_FAILED if results.failed else 0
