"""Programs in a process of their own: however they end, the caller learns it, and none is left."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from case_table import cases

from mirrored.backends.selftest import Then, run_child

SOON = 20.0  # Seconds: much longer than any of these takes that is not to be killed.


def run(program: str, given: str = "", timeout: float = SOON) -> tuple[int | None, str, str]:
    outcome = run_child([sys.executable, "-I", "-c", program], given, timeout)
    assert outcome.seconds >= 0
    return outcome.status, outcome.output, outcome.errors


def is_gone(pid: int) -> bool:
    """Return whether a process ends soon; one that is no child of ours is forgotten by init."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True  # Nobody asks for its status here, and it does nothing any more.
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


@cases(
    ("program", "expected"),
    [
        ("print('said')", (0, "said\n", "")),
        ("import sys; sys.exit('a reason')", (1, "", "a reason\n")),
        ("import sys; print(sys.stdin.read()[::-1], end='')", (0, "nevig", "")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", (-signal.SIGSEGV, "", "")),
        ("import os; os.write(1, bytes([255, 10]))", (0, "\ufffd\n", "")),
        ("import os; os.close(1); os.close(2)", (0, "", "")),
    ],
)
def test_what_it_said_and_how_it_ended(program: str, expected: tuple[int, str, str]) -> None:
    assert run(program, "given") == expected


def test_it_has_a_session_of_its_own_and_the_modules_of_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "only_here.py").write_text("import os; print(os.getsid(0) == os.getpid())")
    monkeypatch.syspath_prepend(str(tmp_path))
    outcome = run_child([sys.executable, "-c", "import only_here"], "", SOON)
    assert (outcome.status, outcome.output) == (0, "True\n"), outcome.errors


def test_a_program_that_hangs_is_killed_with_all_that_it_started() -> None:
    program = """
import os, subprocess, sys, time
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), inner.pid, flush=True)
time.sleep(600)
"""
    status, output, _ = run(program, timeout=1.0)
    assert status is None
    own, inner = map(int, output.split())
    assert is_gone(inner)
    with pytest.raises(ProcessLookupError):  # Not even as a zombie.
        os.kill(own, 0)


def test_what_it_left_behind_is_killed_too() -> None:
    program = """
import subprocess, sys
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(inner.pid, flush=True)
"""
    start = time.monotonic()
    status, output, _ = run(program)
    assert status == 0
    assert is_gone(int(output))
    assert time.monotonic() - start < SOON, "it was not waited for"


def test_a_flood_is_read_to_its_end_and_only_the_end_is_kept() -> None:
    program = "import sys\nfor i in range(20_000): print('line', i, file=sys.stderr)"
    status, output, errors = run(program)
    assert (status, output) == (0, "")
    assert errors.endswith("line 19999\n")
    assert len(errors) <= 1 << 16 < len("line\n") * 20_000


@pytest.mark.slow
def test_a_flood_without_end_is_ended() -> None:
    status, output, _ = run("while True: print('on and on')", timeout=0.5)
    assert status is None
    assert "on and on" in output


def test_much_that_is_given_is_not_waited_for() -> None:
    assert run("", "x" * (1 << 20))[0] == 0


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        run_child(["/no/such/program"], "", SOON)


def test_an_interrupt_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ctrl-C does not reach it by itself: it has a session of its own."""
    from mirrored.backends import selftest

    started = tmp_path / "started"

    def interrupt(pid: int) -> bool:
        if started.exists():
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(selftest, "_has_ended", interrupt)
    program = f"""
import os, pathlib, time
pathlib.Path({str(started)!r} + "_").write_text(str(os.getpid()))
os.rename({str(started)!r} + "_", {str(started)!r})
time.sleep(600)
"""
    with pytest.raises(KeyboardInterrupt):
        run(program)
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_its_time_begins_anew() -> None:
    """Once it has written so: with less time from then on it is killed, which it was not before."""
    program = "import time; print('so', flush=True); {}"
    for more, status in (("", 0), ("time.sleep(600)", None)):
        command = [sys.executable, "-c", program.format(more)]
        done = run_child(command, "", SOON, Then("so", 0.5 if more else SOON))
        assert (done.status, done.output) == (status, "so\n")
    command = [sys.executable, "-c", "print('other')"]
    assert run_child(command, "", SOON, Then("so", 0.0)).status == 0
