"""Workers that fail, end early, hang or do something else: nobody waits for them for ever.

All that is done to a job here ends it, and each start takes time, so most of these are slow tests.
"""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ranks import Finished, run_ranks

from mirrored.workers.host_memory import remove_left_behind

# Three workers sum again and again; what worker 1 does in step 3 is filled in.
PROGRAM = """
import os, signal, sys, time
import numpy as np
from mirrored.workers import connect

workers = connect()
workers.deadline = DEADLINE
print("pid", os.getpid())
vector = np.ones(SIZE)

def train():
    for step in range(STEPS):
        if step == 3 and workers.rank == 1:
            FAULT
        workers.sum_in_order(vector, vector, f"gradients of step {step}")

try:
    train()
except BaseException as error:
    print(type(error).__name__, "|", *str(error).splitlines())
    print("of", getattr(error, "worker", None), getattr(error, "missing", None))
    raise
print("done")
"""


def program(fault: str, *, deadline: float = 60.0, steps: int = 6, size: int = 100) -> str:
    text = PROGRAM.replace("FAULT", fault).replace("STEPS", str(steps))
    return text.replace("DEADLINE", str(deadline)).replace("SIZE", str(size))


def others(done: Finished) -> list[str]:
    return [text for rank, text in enumerate(done.out) if rank != 1]


def hears(done: Finished, error: str, said: str) -> None:
    """Check that all workers but worker 1 raised an error about it."""
    for text in others(done):
        assert re.search(rf"^{error} \| .*{said}", text, re.MULTILINE), (text, done)
        assert "of 1 " in text


def check_none_is_left(done: Finished) -> None:
    """Check that no worker runs soon after the launcher has ended."""
    pids = re.findall(r"^pid (\d+)$", "\n".join(done.out), re.MULTILINE)
    assert len(pids) == len(done.out)
    until = time.monotonic() + 10
    while any(Path("/proc", pid).exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(Path("/proc", pid).exists() for pid in pids), "A worker is left behind."


@pytest.mark.behaviour("worker-failures")
@pytest.mark.parametrize(
    ("fault", "error", "said", "status"),
    [
        pytest.param(
            "raise ZeroDivisionError('no batch')",
            *(
                "WorkerError",
                "Worker 1 on host .* failed, after 3 calls: ZeroDivisionError: no batch",
            ),
            *(1,),
            id="raises",
        ),
        pytest.param(
            "return",
            *("WorkerError", "Worker 1 on host .* has ended after 3 calls, .*gradients of step 3"),
            *(1,),
            id="ends",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "sys.exit(0)",
            *("WorkerError", "Worker 1 on host .* has ended after 3 calls, .*gradients of step 3"),
            *(1,),
            id="exits with 0",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "sys.exit(3)",
            *("WorkerError", "Worker 1 on host .* failed, after 3 calls: SystemExit: 3"),
            *(None,),
            id="exits with 3",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "workers.gather(1, 'counts of epoch 1')",
            *("WorkerError", "gradients of step 3.*counts of epoch 1|counts of epoch 1"),
            *(1,),
            id="makes another call",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_all_hear_of_it(
    tmp_path: Path, fault: str, error: str, said: str, status: int | None
) -> None:
    # Two that hear are one more than it takes, and each takes time to start.
    relayed = fault == "return"  # A worker of the same host hears of it, and tells the third.
    count = 3 if relayed or "raise" in fault else 2
    done = run_ranks(program(fault), tmp_path, count, hosts=("a:2", "b:1") if relayed else ())
    hears(done, error, said)
    assert done.status != 0
    if status is not None:
        assert done.status == status
    assert done.seconds < 20


@pytest.mark.behaviour("worker-failures")
@pytest.mark.slow
@pytest.mark.parametrize("hosts", [(), ("a:2", "b:1")], ids=str)
def test_who_hangs_is_named_by_the_deadline(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    fault = "os.kill(os.getpid(), signal.SIGSTOP)"
    done = run_ranks(program(fault, deadline=1.0, size=500_000), tmp_path, 3, hosts=hosts)
    assert done.status != 0
    for text in others(done):  # One of them may have heard of it by the other.
        assert re.search(r"^Worker(Timeout)?Error \| .*[Ww]orker 1 on host", text, re.MULTILINE)
    assert any("of 1 (1,)" in text for text in others(done))
    assert done.seconds < 25
    check_none_is_left(done)


APART, STOP = ("a", "b"), "os.kill(os.getpid(), signal.SIGSTOP)"
# The same while three sums of each step are under way, of which worker 1 has begun one.
MEANWHILE = """
def train():
    for step in range(STEPS):
        vectors = [np.ones(SIZE) for _ in range(3)]
        pending = []
        for number, vector in enumerate(vectors):
            if (step, number, workers.rank) == (3, 1, 1):
                FAULT
            pending.append(workers.begin_sum(vector, vector, f"bucket {number} of step {step}"))
        for each in pending:
            each.wait()
"""


def program_meanwhile(fault: str, *, deadline: float) -> str:
    before, rest = PROGRAM.split("def train():")
    behind = rest[rest.index("\ntry:") :]
    text = before + MEANWHILE.strip().replace("FAULT", fault) + "\n" + behind
    text = text.replace("STEPS", "6").replace("DEADLINE", str(deadline))
    return text.replace("SIZE", "500_000")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hosts", "fault", "said"),
    [
        (
            APART,
            "raise ZeroDivisionError('no batch')",
            "WorkerError .* failed, .*ZeroDivisionError",
        ),
        ((), "sys.exit(0)", "WorkerError .*has ended after 10 calls, .*bucket 1 of step 3"),
        (APART, STOP, "WorkerTimeoutError .*did not come to call 1[01]"),
        ((), STOP, "WorkerTimeoutError .*did not come to call 1[01]"),
        ((), "signal.raise_signal(signal.SIGINT)", "WorkerError .* failed, .*KeyboardInterrupt"),
    ],
    ids=["raises-a b", "exits", "hangs-a b", "hangs", "is interrupted"],
)
def test_in_the_midst_of_sums(
    tmp_path: Path, hosts: tuple[str, ...], fault: str, said: str
) -> None:
    done = run_ranks(program_meanwhile(fault, deadline=2.0), tmp_path, 2, hosts=hosts)
    assert done.status != 0
    assert re.search(said.replace(" ", " [|] ", 1), done.out[0]), done
    assert "of 1 " in done.out[0]
    assert "done" not in "".join(done.out)
    assert done.seconds < 20
    check_none_is_left(done)


@pytest.mark.slow
def test_who_is_killed_ends_the_job(tmp_path: Path) -> None:
    fault = (
        "from mirrored.workers.host_memory import _mapped; print('file', *_mapped(), flush=True); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = run_ranks(program(fault), tmp_path, 3)
    assert done.status == signal.SIGKILL
    left = re.findall(r"^file (.+)$", done.out[1], re.MULTILINE)
    assert left
    remove_left_behind()  # As the next job does.
    assert not any(Path(path).exists() for path in left)
    assert "EXIT STRING: Killed (signal 9)" in done.launcher
    assert "done" not in "".join(done.out)
    assert done.seconds < 20


@pytest.mark.behaviour("worker-failures")
@pytest.mark.slow
def test_who_is_frozen_after_its_last_call_ends_the_job(tmp_path: Path) -> None:
    text = """
import os, signal, time
from mirrored.workers import connect
workers = connect()
workers.deadline = 1.0
print("pid", os.getpid(), flush=True)
workers.barrier("the end")
if workers.rank == 1:
    until = time.monotonic() + 1.6  # One that computes is waited for.
    while time.monotonic() < until:
        pass
    print("frozen", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""
    done = run_ranks(text, tmp_path, 2, module=None)
    assert done.status == 1
    assert "frozen" in done.out[1]
    assert "Worker 0 has finished and has waited 1 seconds for worker(s) 1." in done.err[0]
    assert "ends the job: worker(s) 1 did not finish" in done.err[0]
    assert done.seconds < 20
    check_none_is_left(done)


@pytest.mark.slow
def test_who_is_slow_is_waited_for(tmp_path: Path) -> None:
    done = run_ranks(program("time.sleep(1.5)", size=500_000), tmp_path, 3, hosts=("a:2", "b:1"))
    assert done.status == 0, done.err
    assert all(text.endswith("done\n") for text in done.out)


@pytest.mark.slow
@pytest.mark.parametrize("act", ["time.sleep(60)", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_an_interrupt_ends_all(tmp_path: Path, act: str) -> None:
    def interrupt(process: subprocess.Popen[str]) -> None:
        until = time.monotonic() + 30
        while not (tmp_path / "sleeps").exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)

    fault = f"(open('sleeps', 'w').close(), {act})"
    done = run_ranks(program(fault), tmp_path, 3, meanwhile=interrupt)
    assert done.status != 0
    assert done.seconds < 30
    assert "done" not in "".join(done.out)
    assert "KeyboardInterrupt |" in done.out[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raise ZeroDivisionError('no batch')", "failed, after 3 calls: ZeroDivisionError"),
        ("sys.exit(0)", "has ended after 3 calls"),
    ],
)
def test_python_itself_does_as_well(tmp_path: Path, fault: str, said: str) -> None:
    done = run_ranks(program(fault), tmp_path, 2, module=None)
    hears(done, "WorkerError", said)
    assert done.status != 0


@pytest.mark.slow
def test_mpi_without_threads_is_refused(tmp_path: Path) -> None:
    text = """
import mpi4py
mpi4py.rc.thread_level = "single"
from mpi4py import MPI
from mirrored.workers import connect
try:
    connect()
except Exception as error:
    print(type(error).__name__, error)
"""
    done = run_ranks(text, tmp_path, 2, module=None)
    for printed in done.out:
        assert printed.startswith("FailedPreconditionError Workers need an MPI that serves calls")
        assert "MPI_THREAD_SINGLE" in printed


@pytest.mark.slow
def test_who_never_connects_is_named(tmp_path: Path) -> None:
    text = """
import time
from mpi4py import MPI
from mirrored.workers import connecting
if MPI.COMM_WORLD.rank == 1:
    time.sleep(60)
try:
    connecting.connect(1.0)
except TimeoutError as error:
    print(error.missing, error)
"""
    done = run_ranks(text, tmp_path, 3, module=None)
    assert done.status != 0
    assert done.seconds < 30
    told = [text for text in others(done) if text]  # The first one that ends may end the other.
    assert told
    for text in told:
        assert text.startswith("(1,) Not all workers connected with worker")


@pytest.mark.slow
def test_who_never_starts_is_not_waited_for(tmp_path: Path) -> None:
    text = """
import os, sys
if os.environ["PMI_RANK"] == "1":
    sys.exit(0)
import mirrored as mr
options = mr.distribute.experimental.CommunicationOptions(timeout_seconds=1)
mr.distribute.MultiWorkerMirroredStrategy(communication_options=options)
"""
    done = run_ranks(text, tmp_path, 2, module=None)
    assert done.status != 0
    assert done.seconds < 30
    assert "_wait_until_all_workers_have_started" in done.err[0]
