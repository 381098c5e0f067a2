"""A plugin of pytest that writes each test's outcome to a file as soon as it is known.

What ran before a crash, and which test it was in, is there to read afterwards.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VARIABLE = "MIRRORED_GPU_OUTCOMES"
LAST_LINES = 12


def read(path: Path) -> list[dict[str, Any]]:
    """Return each test's outcome; one that began and did not end is "crashed".

    Args:
        path: What the plugin wrote, possibly cut short.
    """
    tests: dict[str, dict[str, Any]] = {}
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        try:
            said = json.loads(line)
        except json.JSONDecodeError:  # The process ended while it wrote this.
            continue
        test = tests.setdefault(said["test"], {"outcome": "crashed", "seconds": 0.0, "text": ""})
        test.update({name: value for name, value in said.items() if name != "test"})
    return [{"test": name, **facts} for name, facts in tests.items()]


def _say(**facts: Any) -> None:
    with Path(os.environ[VARIABLE]).open("a") as file:
        file.write(json.dumps(facts) + "\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Say that a test begins."""
    _say(test=nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Say how a test ended: by its call, or by what stopped it before or broke after."""
    if report.when == "call" or report.outcome != "passed":
        text = "" if report.outcome == "passed" else _last(_lines(report))
        _say(
            test=report.nodeid,
            outcome=report.outcome,
            seconds=round(report.duration, 3),
            text=text,
        )


def pytest_collectreport(report: Any) -> None:
    """Say which file could not even be read."""
    if report.failed:
        text = _last(str(report.longrepr).splitlines())
        _say(test=report.nodeid or "collection", outcome="failed", seconds=0.0, text=text)


def _lines(report: Any) -> Iterable[str]:
    if isinstance(report.longrepr, tuple):  # A skip: file, line and reason.
        return [str(report.longrepr[-1])]
    return str(report.longreprtext).splitlines()


def _last(lines: Iterable[str]) -> str:
    return "\n".join(list(lines)[-LAST_LINES:])
