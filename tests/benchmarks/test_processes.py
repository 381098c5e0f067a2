"""Contenders' processes: asked, suspended while they wait, killed in time; their variables."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.processes import ContenderError, Process, clean_environment

Stub = Callable[[str], list[str]]
LONG = 60.0
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@contextmanager
def running(command: list[str], limit: float = LONG) -> Iterator[Process]:
    process = Process(command, limit)
    try:
        yield process
    finally:
        process.kill()


def state_of(pid: int) -> str:
    """Return the state of a process: T is suspended, Z ended but not waited for."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def waits_for(condition: Callable[[], bool]) -> bool:
    """Say whether a condition comes true in reasonable time."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_answers_requests(stub: Stub) -> None:
    with running(stub("answer = {'twice': 2 * request['number']}")) as process:
        assert [process.ask("double", number=n)["twice"] for n in (1, 2, 3)] == [2, 4, 6]
        assert process.started < process.answered


def test_an_error_is_raised_and_the_contender_goes_on(stub: Stub) -> None:
    body = "answer = {'error': 'ValueError: no'} if request['do'] == 'fail' else {'fine': 1}"
    with running(stub(body)) as process:
        with pytest.raises(ContenderError, match="ValueError: no"):
            process.ask("fail")
        assert process.ask("work") == {"fine": 1}


@linux
def test_waiting_contenders_are_suspended(stub: Stub) -> None:
    with running(stub("answer = {}")) as process:
        assert waits_for(lambda: state_of(process.pid) == "T")
        process.ask("anything")
        assert waits_for(lambda: state_of(process.pid) == "T")


@linux
def test_one_that_hangs_is_killed_with_its_children(stub: Stub, tmp_path: Path) -> None:
    children = tmp_path / "children"
    body = (
        "import subprocess; child = subprocess.Popen(['sleep', '1000']); "
        f"open({str(children)!r}, 'w').write(str(child.pid)); time.sleep(1000)"
    )
    with running(stub(body), limit=2.0) as process:
        with pytest.raises(ContenderError, match="timed out after 2 s"):
            process.ask("hang")
        child = int(children.read_text())
        assert waits_for(lambda: not Path(f"/proc/{child}").exists() or state_of(child) == "Z")
        with pytest.raises(ContenderError, match="ended already"):
            process.ask("again")


def test_one_that_never_comes_up_is_killed() -> None:
    with pytest.raises(ContenderError, match="timed out"):
        Process([sys.executable, "-c", "import time; time.sleep(1000)"], limit=1.0)


def test_one_that_ends_says_why(stub: Stub) -> None:
    said = pytest.raises(ContenderError, match="ended with status 1: there is no such module")
    with running(stub("sys.exit('there is no such module')")) as process, said:
        process.ask("work")


@linux
def test_peak_memory_counts_the_process(stub: Stub) -> None:
    with running(stub("block = b'x' * 50_000_000; answer = {}")) as process:
        process.ask("allocate")
        assert (process.peak_memory() or 0) > 50_000_000


def test_settings_of_blas_and_frameworks_are_unset() -> None:
    names = ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "NVPL_BLAS_X"]
    names += ["OMP_NUM_THREADS", "XLA_FLAGS", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"]
    cleaned = clean_environment({"PATH": "/bin", "HOME": "/root", **dict.fromkeys(names, "1")})
    assert cleaned.keys() == {"PATH", "HOME", "TF_CPP_MIN_LOG_LEVEL"}


def test_contenders_do_not_see_them(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    body = "answer = {'seen': [name for name in os.environ if name.startswith('OPENBLAS')]}"
    with running(stub(body)) as process:
        assert process.ask("look") == {"seen": []}
