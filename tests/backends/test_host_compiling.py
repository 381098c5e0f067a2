"""Loops of the host are compiled once, and without a compiler or a cache the bits are the same."""

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.backends import host_compiling
from mirrored.backends.host_compiling import HostKernel

TEXT = "void fused(const long long *p) { *(int *)p[0] += 3; }"


def process(monkeypatch: pytest.MonkeyPatch, text: str = TEXT) -> HostKernel:
    """Let a new process compile a text."""
    monkeypatch.setattr(host_compiling, "_state", host_compiling._State())
    kernel = host_compiling.kernel_of(text)
    assert host_compiling.kernel_of(text) is kernel
    host_compiling.compile_in_background()
    (thread,) = host_compiling._state.threads
    thread.join(60.0)
    return kernel


def works(kernel: HostKernel) -> bool:
    number, otherwise = np.zeros(1, np.int32), []
    host_compiling.run(kernel, np.array([number.ctypes.data]).ctypes, lambda: otherwise.append(1))
    return bool(number[0] == 3) and not otherwise


@pytest.fixture
def commands(compiled: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Compilers that were called, with a cache in `kernels`."""
    called, call = [], host_compiling._call
    monkeypatch.setenv("MIRRORED_KERNEL_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr(
        host_compiling, "_call", lambda *args: called.append(args[0]) or call(*args)
    )
    host_compiling._facts(("cc",))
    called.clear()
    return called


def test_a_text_is_compiled_once(
    commands: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for _ in range(2):
        assert works(process(monkeypatch))
        assert len(commands) == 1
    (path,) = (tmp_path / "kernels").iterdir()
    path.write_bytes(path.read_bytes()[:-1])  # Another process was killed; the next ones agree.
    kernels = [HostKernel(TEXT) for _ in range(2)]
    threads = [
        threading.Thread(target=host_compiling._compile_all, args=(None, [kernel]))
        for kernel in kernels
    ]
    for act in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            act(thread)
    assert all(map(works, kernels))
    assert works(process(monkeypatch))
    assert len(commands) == 3
    monkeypatch.setattr(host_compiling, "_FLAGS", (*host_compiling._FLAGS, "-g0"))
    assert works(process(monkeypatch))
    assert len(commands) == 4


def test_a_relative_name_that_is_not_utf8(
    compiled: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c\udcff").symlink_to(str(which("cc")))
    monkeypatch.setenv("MIRRORED_CC", "./c\udcff")
    assert works(process(monkeypatch))


@pytest.mark.parametrize("cache", ["", "a file", "full"])
def test_a_cache_that_keeps_nothing(
    cache: str, commands: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MIRRORED_KERNEL_CACHE", cache and str(tmp_path / cache))
    if cache == "a file":
        (tmp_path / cache).touch()
    if cache == "full":
        monkeypatch.setattr(os, "replace", lambda *_: os.truncate("/no/room", 1))
    assert works(process(monkeypatch))
    assert len(commands) == 1


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("/no/such/cc", "there is no program"),
        (" ", "there is no program"),
        ("cc '", "No closing quotation"),
        ("false", "false ends with 1: it says nothing"),
        ("cc --no-such-option", "unrecognized command-line option"),
        ("true", "No such file or directory"),
        (None, "there is no program 'cc'"),
    ],
)
def test_no_compiler(
    setting: str | None,
    why: str,
    compiled: dict[str, HostKernel],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if setting is None:
        monkeypatch.setenv("PATH", "")
    else:
        monkeypatch.setenv("MIRRORED_CC", setting)
    caplog.set_level(logging.DEBUG, "mirrored")
    x = mr.constant(np.arange(-9.0, 9.0))
    for scale in (2.0, 3.0):
        half = mr.function(lambda x, scale=scale: mr.nn.relu(x / scale) - x * x)
        assert half(x).numpy().tolist() == (np.maximum(x / scale, 0) - x * x).numpy().tolist()
    (line,) = (each for each in caplog.records if "NumPy's calls" in each.message)
    assert why in line.message
    assert line.levelno == (logging.DEBUG if setting is None else logging.WARNING)
    assert not any(kernel.function for kernel in compiled.values())


def test_it_is_refused_a_thread(
    compiled: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    caplog.set_level(logging.DEBUG, "mirrored")
    monkeypatch.setattr(threading.Thread, "start", refuse)
    x = np.arange(4.0)
    assert mr.function(lambda x: x * x + x)(mr.constant(x)).numpy().tolist() == [0, 2, 6, 12]
    assert [each.message for each in caplog.records if "can't start" in each.message]


def test_the_compiler_of_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_compiling, "find_spec", lambda name: name == "ziglang" or None)
    monkeypatch.setenv("PATH", "")
    assert host_compiling._command(None) == [sys.executable, "-m", "ziglang", "cc"]
    assert host_compiling._command("clang -v") == ["clang", "-v"]


ENDS = {
    "exit": "",
    "error": "raise KeyboardInterrupt",
    "interrupt": "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    "fork": """
if os.fork() == 0:
    host_compiling.compile_in_background()
    assert host_compiling.kernel_of(TEXT).function is None
    sys.exit()  # Its parent's compiler goes on.
os.wait()
assert host_compiling._state.running[0].poll() is None
""",
}
PROGRAM = """
import os, signal, sys, time
from mirrored.backends import host_compiling
TEXT = "void fused(void) {}"
host_compiling.kernel_of(TEXT)
host_compiling.compile_in_background()
while not os.path.exists("pid"):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_of_a_process_that_compiles(
    end: str, compiled: object, tmp_path: Path
) -> None:
    script, files = tmp_path / "slow", tmp_path / "files"
    script.write_text("#!/bin/sh\nsleep 60 &\necho $$ $! > new; mv new ../../pid\nwait\n")
    script.chmod(0o700)
    files.mkdir()
    settings = {"MIRRORED_CC": str(script), "TMPDIR": str(files)}
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", PROGRAM + ENDS[end]],
        cwd=tmp_path,
        env={**os.environ, **settings},
        check=end in ("exit", "fork"),
        stderr=subprocess.DEVNULL,
    )
    assert time.monotonic() - began < 30.0
    assert not [*files.iterdir()]
    for number in (tmp_path / "pid").read_text().split():
        status = Path(f"/proc/{number}/stat")  # Killed; who has to look at it may not have yet.
        assert not status.exists() or status.read_text().split()[2] == "Z"
