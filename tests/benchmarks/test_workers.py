"""Several workers as one contender: started, suspended and ended together, without a deadline."""

import contextlib
import math
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from launching import needs_mpi

import mirrored.workers
from benchmarks.contenders import workers
from benchmarks.environments import MIRRORED, WORKERS
from benchmarks.processes import Process, _members
from benchmarks.reference import check_losses, largest_relative_error
from benchmarks.results import LOSS_TOLERANCE
from benchmarks.workloads import TIMED
from mirrored.workers.worker import Workers

ROOT = Path(__file__).resolve().parents[2]
LONG = 60.0
has_gforker = pytest.mark.skipif(
    not Path(sys.executable).with_name(workers.LAUNCHER).exists(),
    reason="the launcher is MPICH's: install mirrored's extra `mpich`",
)
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
STUB = f"""
import json, os, sys, time
sys.path.append({str(ROOT)!r})
from benchmarks.contenders import workers
if not workers.is_worker():
    workers.start(2, apart=True)
if os.environ["PMI_RANK"] == "1":
    time.sleep(1000)
print(json.dumps({{"ready": True}}), flush=True)
for line in sys.stdin:
    names = ["PMI_SIZE", "MPIR_CVAR_NOLOCAL", "OPENBLAS_NUM_THREADS"]
    print(json.dumps({{name: os.environ[name] for name in names}}), flush=True)
"""


def states_of(group: int) -> set[str]:
    states = set()
    for folder in _members(group):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # It has just gone.
            states.add((folder / "stat").read_text().rpartition(")")[2].split()[0])
    return states


def states_at_the_end(group: int) -> set[str]:
    """Return the states of processes that were killed: a busy machine takes a while to end them."""
    deadline = time.monotonic() + LONG
    while (states := states_of(group)) - {"Z"} and time.monotonic() < deadline:
        time.sleep(0.01)
    return states


@linux
@has_gforker
def test_all_are_suspended_woken_and_ended(tmp_path: Path) -> None:
    script = tmp_path / "stub.py"
    script.write_text(STUB)
    process = Process([sys.executable, script], LONG)
    try:
        assert len(_members(process.pid)) == 3  # The launcher and both workers.
        assert states_of(process.pid) == {"T"}
        answer = process.ask("anything")
        assert answer["PMI_SIZE"] == "2"
        assert answer["MPIR_CVAR_NOLOCAL"] == "1"
        assert int(answer["OPENBLAS_NUM_THREADS"]) >= 1
        assert states_of(process.pid) == {"T"}
    finally:
        process.kill()
    assert states_at_the_end(process.pid) <= {"Z"}


def test_without_the_launcher_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(SystemExit, match=r"benchmarks.environments mirrored"):
        workers.start(2, apart=False)


def test_clocks_of_the_suspended_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrored.workers, "connect", Workers)
    assert workers.connect().deadline == math.inf


def test_requests_end_with_an_empty_line() -> None:
    lines = ["one\n", "two\n", ""]

    class Follower:
        def gather(self, value: str, what: str) -> list[str]:
            return [lines.pop(0), value]

    assert list(workers.Requests(Follower())) == ["one\n", "two\n"]
    sent: list[str] = []

    class Chief:
        def gather(self, value: str, what: str) -> list[Any]:
            sent.append(value)
            return [value, ""]

    workers.Requests(Chief()).send("one\n")
    assert sent == ["one\n"]


@pytest.mark.slow
@needs_mpi
@has_gforker
def test_two_workers_do_the_same_work() -> None:
    workload = TIMED["digits"]
    arguments = ["--workload", workload.name, "--replicas", "2", *WORKERS.options]
    process = Process([sys.executable, MIRRORED.script, *arguments], LONG)
    try:
        process.ask("first_step")
        losses = process.ask("check")["losses"]
        assert largest_relative_error(losses, check_losses(workload)) <= LOSS_TOLERANCE
    finally:
        process.kill()
