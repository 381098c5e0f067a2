"""Parts' processes: how each ended, what it printed, and that nothing of it is left."""

import sys
import time
from pathlib import Path

import pytest
from case_table import cases

from benchmarks.gpu.parts import ROOT, Deadline, run

LONG = 60.0
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@cases(
    ("code", "status", "how"),
    [
        ("print('done')", 0, "ended with status 0"),
        ("print('done'); raise SystemExit(3)", 3, "ended with status 3"),
        ("import os; os.write(1, b'done'); os.abort()", -6, "ended by SIGABRT"),
    ],
)
def test_how_a_process_ends(code: str, status: int, how: str) -> None:
    ended = run(python(code), LONG, {})
    assert (ended.status, ended.how) == (status, how)
    assert "done" in ended.output
    assert 0 < ended.seconds < LONG


def test_both_streams_and_the_last_lines() -> None:
    code = (
        "import sys\nfor i in range(40): print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=True)"
    )
    ended = run(python(code), LONG, {})
    assert ended.output.split() == [str(i) for i in range(40)]
    assert ended.last_lines.split() == [str(i) for i in range(25, 40)]


def test_it_runs_in_the_checkout_with_variables_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "1")
    code = "import os; print(os.getcwd(), os.environ['ONE'], os.environ['TWO'])"
    assert run(python(code), LONG, {"TWO": "2"}).output.split() == [str(ROOT), "1", "2"]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@linux
@pytest.mark.parametrize("ends", [False, True])
def test_what_it_started_is_ended_with_it(ends: bool) -> None:
    """A process that hangs is killed; one that ends leaves nobody behind."""
    code = (
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        f"print(child.pid, flush=True); {'' if ends else 'time.sleep(1000)'}"
    )
    ended = run(python(code), LONG if ends else 1.0, {})
    assert ended.status == (0 if ends else None)
    assert ends or "killed" in ended.how
    deadline = time.monotonic() + LONG
    while is_running(int(ended.output)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_deadline() -> None:
    assert 0 < Deadline(LONG).left() <= LONG
    assert Deadline(0.0).left() == 0
    assert Deadline(-1.0).left() == 0
