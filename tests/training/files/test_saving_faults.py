"""A save is killed, or fails, at each of its system calls: the old file or the new one, whole.

Forked copies of this process save under strace, which lets system calls fail.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
    pytest.mark.forks,
]

# What system calls about files return; in others an error is no fault of a disk.
FAILING = re.compile(
    r"access|close|f?access(at2?)?|fchmod|flock|fsync|getdents64|ioctl|lseek|mkdir|(newf|f|l)?stat"
    r"(at|x)?|open(at)?|rename(at2?)?|write"
)
# System calls that change files. A kill at another call leaves the files of the next of these.
CHANGING = re.compile(r"f(chmod|lock|sync|truncate)|mkdir|open(at)?|rename(at2?)?|unlink|write")


def by_thread(model: mr.Model, path: Path) -> None:
    checkpoint = mr.train.Checkpoint(model=model)
    checkpoint.write(path, asynchronous=True)
    checkpoint.sync()


WAYS: dict[str, Callable[[mr.Model, Path], object]] = {
    "checkpoint": lambda model, path: mr.train.Checkpoint(model=model).write(path),
    "asynchronous checkpoint": by_thread,
    "Keras' weights": lambda model, path: model.save_weights(path),
}
KILL, ERRORS = "signal=KILL", ("error=ENOSPC", "error=EIO")  # The library handles all errors alike.
_CALL = re.compile(r"^(\d+) +(\w+)\(", re.M)
_ANY_TRACER = 0x59616D61, -1  # PR_SET_PTRACER, PR_SET_PTRACER_ANY: some systems ask for it.


def forked(act: Callable[[], object], strace: list[str]) -> int:
    """Do something in a copy of this process, under strace; return the exit status.

    It is 0 or a signal, or 1 where an OSError names a file, or else 2.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 2
        try:
            ctypes.CDLL(None).prctl(*_ANY_TRACER)
            os.read(reading, 1)
            act()
            status = 0
        except OSError as error:
            status = 1 if error.filename or error.__notes__ else 2
        finally:
            os._exit(status)
    tracer = subprocess.Popen([*strace, "-f", "-qq", "-p", str(child)], stderr=subprocess.PIPE)
    while "TracerPid:\t0\n" in Path(f"/proc/{child}/status").read_text():
        if tracer.poll() is not None:
            os.kill(child, signal.SIGKILL)
            break
        time.sleep(0.001)
    os.write(writing, b"x")
    for end in (reading, writing):
        os.close(end)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _, said = tracer.communicate()
    if tracer.returncode and b"attach" in said:
        pytest.skip(f"strace cannot look at a process here: {said.decode()}")
    return status


@pytest.mark.skipif(sys.platform != "linux", reason="strace is Linux'")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.behaviour("regular-files")
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, id=name, marks=pytest.mark.slow if "async" in name else pytest.mark.long)
        for name, way in WAYS.items()
    ],
)
def test_every_system_call_fails(way: Callable[[mr.Model, Path], object], tmp_path: Path) -> None:
    model = mr.Sequential([mr.layers.Input((40,)), mr.layers.Dense(100)])
    folder = tmp_path / "run"
    folder.mkdir()
    path = folder / "saved.weights.h5"

    def save() -> None:
        way(model, path)

    save()
    old = path.read_bytes()
    model.set_weights([weight + 1.0 for weight in model.get_weights()])
    log = tmp_path / "log"
    assert forked(save, ["strace", "-o", str(log)]) == 0
    new = path.read_bytes()
    assert new != old
    counts: Counter[str] = Counter()
    for (_, name), count in Counter(_CALL.findall(log.read_text())).items():
        counts[name] = max(counts[name], count)  # Each thread has its own count.
    assert {"openat", "write", "fsync", "rename", "close"} <= counts.keys()
    wrong: list[Any] = []
    faults = [
        (name, number, fault)
        for name, count in counts.items()
        for number in range(1, count + 1)
        for fault, names in ((KILL, CHANGING), (ERRORS[number % 2], FAILING))
        if names.fullmatch(name)
    ]
    for name, number, fault in faults:
        path.write_bytes(old)
        inject = f"inject={name}:{fault}:when={number}"
        status = forked(save, ["strace", "-o", "/dev/null", "-e", inject])
        there = {"old": old, "new": new}
        kind = next((kind for kind, data in there.items() if data == path.read_bytes()), "spoilt")
        left = [file for file in folder.iterdir() if file != path and file.stat().st_size]
        expected = {0: ["new"], 1: ["old"], -signal.SIGKILL: ["old", "new"]}.get(status, [])
        if kind not in expected or (left and status != -signal.SIGKILL):
            wrong.append((name, number, fault, status, kind, left))
        save()  # It deletes what was left.
        for file in folder.iterdir():
            assert file == path or not file.stat().st_size
            file.unlink()
    assert wrong == [], wrong


STEPS = 12


class Run:
    """A loop that saves after every step, and goes on from the last checkpoint of its folder."""

    def __init__(self) -> None:
        mr.keras.utils.set_random_seed(3)
        layers = [mr.layers.Dense(8, "tanh"), mr.layers.Dropout(0.3), mr.layers.Dense(1)]
        self.model = mr.Sequential([mr.layers.Input((4,)), *layers])
        self.model.compile("adam", "mse")
        x = np.linspace(-1, 1, 160, dtype=np.float32).reshape(40, 4)
        data = mr.data.Dataset.from_tensor_slices((x, x[:, :1])).shuffle(40).batch(4).repeat()
        self.batches = iter(data)
        self.step = mr.Variable(0, dtype="int64")
        self.model.train_on_batch(*next(self.batches))  # What it records is there in each copy.

    def finish(self, folder: Path, result: Path) -> None:
        """Train to the end, and write the weights."""
        checkpoint = mr.train.Checkpoint(
            model=self.model, optimizer=self.model.optimizer, batches=self.batches, step=self.step
        )
        manager = mr.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        checkpoint.restore(manager.latest_checkpoint)
        while int(self.step) < STEPS:
            self.model.train_on_batch(*next(self.batches))
            self.step.assign_add(1)
            manager.save(asynchronous=int(self.step) % 3 > 0)
        manager.sync()
        left = [path for path in folder.iterdir() if path.stat().st_size]
        assert sorted(map(str, left)) == sorted(manager.checkpoints)
        result.write_bytes(b"".join(weight.tobytes() for weight in self.model.get_weights()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it needs copies of this process")
@pytest.mark.behaviour("regular-files")
@pytest.mark.parametrize(
    "kills", [pytest.param(20, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.long)]
)
def test_a_run_that_is_killed_at_random(kills: int, tmp_path: Path) -> None:
    """Each is killed a few times and started again; its weights are those of one that never was."""
    run, rng = Run(), np.random.default_rng(kills)

    def is_killed(name: str, seconds: float) -> bool:
        """Run in a copy of this process, for so long at most; return whether it was killed."""
        begun, child = time.monotonic(), os.fork()
        if not child:
            status = 1
            try:
                run.finish(tmp_path / name, tmp_path / f"{name}.weights")
                status = 0
            finally:
                os._exit(status)
        over, status = 0, 0
        while not over and time.monotonic() < begun + seconds:
            over, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.001)
        if not over:
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
        return status != 0

    begun = time.monotonic()
    assert not is_killed("whole", 60.0)
    whole = time.monotonic() - begun
    expected = (tmp_path / "whole.weights").read_bytes()
    number, killed = 0, 0
    while killed < kills:
        number += 1
        while is_killed(f"{number}", rng.uniform(0.05, 0.8) * whole):
            killed += 1
        assert (tmp_path / f"{number}.weights").read_bytes() == expected
