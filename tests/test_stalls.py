"""Threads that make no progress are reported: what they wait for, for whom, and their stacks."""

import ast
import functools
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import _stalls
from mirrored._stalls import WAITS, StallReporter, seconds_from_environment
from mirrored._threads import Task, start

LIBRARY = Path(mr.__file__).parent


@functools.cache
def functions_in(path: Path) -> set[str]:
    """Return the qualified names of a file's functions and methods."""
    names: set[str] = set()

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                names.add(prefix + child.name)
            elif isinstance(child, ast.ClassDef):
                walk(child, f"{prefix}{child.name}.")

    walk(ast.parse(path.read_text()), "")
    return names


def test_the_table_names_functions_that_are_there() -> None:
    for key, wait in WAITS.items():
        file, _, name = key.partition(":")
        path = LIBRARY / file
        assert name in functions_in(path), key
        if wait.began:
            assert wait.began in path.read_text(), key


# ---------------------------------------------------------------------------- reports


class Held:
    """What blocks until a test lets it go on."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()

    def block(self, *_: Any) -> None:
        self.entered.set()
        self.released.wait()


@contextmanager
def blocked(program: Callable[[Held], object]) -> Iterator[None]:
    """Run a program in a thread, up to where it blocks; at the end it goes on, and ends."""
    held = Held()
    thread = threading.Thread(target=program, args=(held,), name="user")
    thread.start()
    try:
        assert held.entered.wait(60.0)
        yield
    finally:
        held.released.set()
        thread.join(60.0)
        assert not thread.is_alive()


def reported(done: Callable[[str], bool], pause: float = 0.002) -> str:
    """Return the report of a stall, once all threads have come to where they wait."""
    reporter, now = StallReporter(10.0), 0.0
    for _ in range(10_000):
        now += 10.0
        text = reporter.look(now)
        if text is not None and done(text):
            return text
        time.sleep(pause)
    pytest.fail("no such report")


def replicas(held: Held, number: int) -> None:
    strategy = mr.MirroredStrategy()

    def step() -> Any:
        context: Any = mr.distribute.get_replica_context()
        if context.replica_id_in_sync_group == number:
            held.block()
        return context.all_reduce("sum", mr.constant(1.0))

    strategy.run(step)


def prefetched(held: Held) -> None:
    def rows() -> Any:
        yield np.ones(2)
        held.block()
        yield np.ones(2)

    spec = mr.TensorSpec((2,), "float64")
    dataset = mr.data.Dataset.from_generator(rows, output_signature=spec)
    assert len(list(dataset.prefetch(1))) == 2


class Batches(mr.keras.utils.PyDataset):
    """Batches of which one blocks."""

    def __init__(self, held: Held) -> None:
        super().__init__(workers=2)
        self.held = held

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        if index == 2:
            self.held.block()
        return np.ones((4, 1)), np.ones((4, 1))


def fitted(held: Held) -> None:
    model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Batches(held), verbose=0, shuffle=False)


def pooled(held: Held) -> None:
    pool = mr.program.ThreadPool(3)
    pool.run([lambda: None, held.block, lambda: None])
    pool.close()


def saved(held: Held) -> None:
    task = Task("mirrored-save", held.block, lambda: None, None)
    start(task.thread)
    task.wait()


@cases(
    ("program", "texts"),
    [
        (lambda held: replicas(held, 0), ["replica 0 is in `Held.block`"]),
        (
            lambda held: replicas(held, 2),
            ["replica 2 is in `Held.block`", "thread 'user' waits for replicas to meet or end"],
        ),
        (prefetched, ["`Held.block`", "waits for an element that `prefetch` creates"]),
        (fitted, ["`Held.block`", "waits for a batch that a thread of a PyDataset creates"]),
        (saved, ["thread 'user' waits for an asynchronous save"]),
        (pooled, ["'mirrored-worker-1'", "waits for the other threads of a recorded step"]),
    ],
)
def test_who_waits_and_for_whom(program: Callable[[Held], object], texts: list[str]) -> None:
    mr.config.experimental.set_simulated_gpus(3)
    with blocked(program):
        text = reported(lambda text: all(part in text for part in texts))
    assert text.startswith("No progress for ")
    assert "self.released.wait()" in text  # Stacks have the line that is run.


def test_what_makes_progress_is_not_reported() -> None:
    reporter = StallReporter(10.0)
    mr.config.experimental.set_simulated_gpus(3)
    with blocked(lambda held: replicas(held, 1)):
        assert [reporter.look(now) for now in (0.0, 5.0)] == [None, None]  # Not for long enough.
    assert reporter.look(100.0) is None


def test_a_stall_is_reported_at_doubling_intervals() -> None:
    with blocked(saved):
        reporter = StallReporter(10.0)
        reported(lambda text: "asynchronous save" in text)
        times = [now for now in range(0, 200, 5) if reporter.look(float(now)) is not None]
    assert times == [10, 20, 40, 80, 160]


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", "nan"])
def test_bad_values(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRRORED_REPORT_STALL", text)
    with pytest.raises(ValueError, match="must be a positive number of seconds"):
        seconds_from_environment()


@pytest.mark.parametrize(("text", "seconds"), [("", None), (" 2.5 ", 2.5)])
def test_values(text: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRRORED_REPORT_STALL", text)
    assert seconds_from_environment() == seconds


def test_the_environment_starts_the_reports(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MIRRORED_REPORT_STALL", "0.05")
    monkeypatch.setattr(_stalls, "_LONGEST_PAUSE", 0.02)
    mr.config.experimental.reset_devices()
    mr.config.experimental.set_simulated_gpus(3)
    with caplog.at_level(logging.WARNING, logger="mirrored"), blocked(lambda h: replicas(h, 1)):
        while not any("replica 1 is in" in record.getMessage() for record in caplog.records):
            time.sleep(0.02)
    mr.config.experimental.reset_devices()
    assert "mirrored-stalls" not in [thread.name for thread in threading.enumerate()]


# ---------------------------------------------------------------------------- interrupts

PROGRAM = """
import os, signal, threading, time
import mirrored as mr
signal.signal(signal.SIGINT, signal.default_int_handler)
mr.config.experimental.set_simulated_gpus(2)
strategy = mr.MirroredStrategy()
def step():
    context = mr.distribute.get_replica_context()
    if context.replica_id_in_sync_group == 1:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            time.sleep(0.01)
    return context.all_reduce("sum", mr.constant(1.0))
try:
    strategy.run(step)
except KeyboardInterrupt:
    print("interrupted", [t.name for t in threading.enumerate() if "replica" in t.name])
print(float(strategy.reduce("sum", strategy.run(lambda: mr.constant(1.0)))))
"""


@pytest.mark.slow
def test_an_interrupt_ends_a_replica_that_others_wait_for() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.splitlines() == ["interrupted []", "2.0"], run.stderr
