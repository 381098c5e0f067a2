"""Who runs a program: thread pools of threads, and where they meet."""

import gc
import os
import subprocess
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked_programs import run_program

import mirrored as mr
from mirrored.program import ThreadPool
from mirrored.program.thread_pool import Barrier, Stopped


class Broken(Exception):
    """What a thread raises here."""


# ------------------------------------------------------------------------------ thread pools


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    pool = ThreadPool(3)
    yield pool
    pool.close()


def ended() -> bool:
    """Wait for the threads to end that were told to, and return whether they did."""
    for each in threading.enumerate():
        if "mirrored" in each.name:
            each.join(5)
    return workers() == []


def workers() -> list[str]:
    return sorted(each.name for each in threading.enumerate() if "mirrored" in each.name)


def test_a_pool_works_at_the_same_time(pool: ThreadPool) -> None:
    barrier = threading.Barrier(3, timeout=10)
    seen: dict[int, str] = {}

    def task(number: int) -> Callable[[], None]:
        def work() -> None:
            barrier.wait()
            seen[number] = threading.current_thread().name

        return work

    assert workers() == []  # Threads start with the first work.
    for _ in range(3):
        pool.run([task(number) for number in range(3)])
        assert seen[0] == threading.current_thread().name
        assert [seen[1], seen[2]] == workers() == ["mirrored-worker-1", "mirrored-worker-2"]
    pool.close()
    assert workers() == []
    pool.run([task(number) for number in range(3)])
    assert len(workers()) == 2
    pool.close()
    pool.close()
    assert workers() == []


@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("failing", [{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}])
def test_what_a_thread_raises(
    failing: set[int], error: type[BaseException], pool: ThreadPool
) -> None:
    """The first thread's error is raised once all have ended; a stop is no error."""
    done: list[int] = []

    def task(number: int) -> Callable[[], None]:
        def work() -> None:
            done.append(number)
            raise error(number) if number in failing else Stopped

        return work

    for _ in range(2):
        with pytest.raises(error) as caught:
            pool.run([task(number) for number in range(3)])
        assert caught.value.args == (min(failing),)
        assert sorted(done) == [0, 1, 2]
        done.clear()
    pool.run([lambda: done.append(1)] * 3)
    assert len(done) == 3


def test_an_error_keeps_nothing_alive(pool: ThreadPool) -> None:
    class Large:
        pass

    kept = weakref.ref(large := Large())

    def work(large: Large = large) -> None:
        raise Broken

    del large
    gc.disable()
    try:
        with pytest.raises(Broken):
            pool.run([lambda: None, work, lambda: None])
        del work
        pool.run([lambda: None] * 3)
        assert kept() is None
    finally:
        gc.enable()


def test_threads_end_when_their_team_is_collected() -> None:
    pool = ThreadPool(3)
    pool.run([lambda: None] * 3)
    assert len(workers()) == 2
    del pool
    gc.collect()
    assert ended()


COLLECTED = """
import faulthandler, gc, threading
from mirrored.program import ThreadPool

faulthandler.dump_traceback_later(10, exit=True)
for i in range(20):
    pool = ThreadPool(3)
    pool.run([lambda: None] * 3)
    cycle = [pool]
    cycle.append(cycle)
    gc.disable()
    del pool, cycle
    gc.set_threshold(1)
    with threading._active_limbo_lock:  # As in `threading.enumerate` or the start of a thread.
        gc.enable()
        [[] for _ in range(50)]
    gc.set_threshold(700)
print("collected")
"""


Run = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return what runs code in a process of its own."""

    def run(code: str) -> "subprocess.CompletedProcess[str]":
        program = tmp_path / "program.py"
        program.write_text(code)
        return run_program(program, folder=tmp_path, environment=os.environ)

    return run


def test_a_pool_may_be_collected_anywhere(run: Run) -> None:
    """Even inside Python's own code for threads: to wait for a thread there would be for ever."""
    done = run(COLLECTED)
    assert done.stdout == "collected\n", done.stderr


def test_calls_of_one_pool_from_several_threads_take_turns(pool: ThreadPool) -> None:
    running: list[int] = []

    def task() -> None:
        running.append(1)
        assert len(running) <= 3
        barrier.wait()

    barrier = threading.Barrier(3, action=running.clear, timeout=10)
    callers = [threading.Thread(target=lambda: pool.run([task] * 3)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    assert not any(caller.is_alive() for caller in callers)
    assert not barrier.broken


# ------------------------------------------------------------------------------ strategies


def trained(strategy: mr.MirroredStrategy) -> mr.Model:
    x = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    mr.random.set_seed(1)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(3, "tanh"), mr.layers.Dense(1)])
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse")
    model.fit(x, x[:, :1], batch_size=6, verbose=0)
    return model


def test_a_strategys_threads(simulate: Callable[..., Any]) -> None:
    """They start with a fit, serve the next one, and end with `close` or with the strategy."""
    simulate(3)
    strategy = mr.MirroredStrategy(executor="threads")
    model = trained(strategy)
    threads = {each.ident for each in threading.enumerate()}
    assert workers() == ["mirrored-worker-1", "mirrored-worker-2"]
    model.fit(np.ones((6, 4)), np.ones((6, 1)), verbose=0)
    assert {each.ident for each in threading.enumerate()} == threads
    strategy.close()
    assert workers() == []
    model.predict(np.ones((6, 4)), verbose=0)
    assert len(workers()) == 2
    del strategy, model
    gc.collect()
    assert ended()


@pytest.mark.parametrize("executor", ["serial", "auto"])
def test_a_strategy_without_threads(executor: str, simulate: Callable[..., Any]) -> None:
    simulate(3)
    trained(mr.MirroredStrategy(executor=executor))
    assert workers() == []


def test_an_executor_that_there_is_not(simulate: Callable[..., Any]) -> None:
    simulate(2)
    with pytest.raises(
        ValueError, match=r"`executor` must be one of .*Received: executor='processes'"
    ):
        mr.MirroredStrategy(executor="processes")


FORK = """
import os, sys, threading
import numpy as np
import mirrored as mr

mr.config.experimental.set_simulated_gpus(2)
mr.config.list_logical_devices("GPU")
mr.random.set_seed(1)
strategy = mr.MirroredStrategy(executor="threads")
with strategy.scope():
    model = mr.Sequential([mr.layers.Dense(3, "tanh"), mr.layers.Dense(1)])
    model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse")
x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(12, 4)

def train():
    model.fit(x, x[:, :1], batch_size=4, epochs=2, shuffle=False, verbose=0)
    return b"".join(weight.tobytes() for weight in model.get_weights())

train()
read, write = os.pipe()
child = os.fork()
if child == 0:
    assert threading.active_count() == 1
    os.write(write, train())
    strategy.close()
    assert threading.active_count() == 1
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
os.close(write)
with os.fdopen(read, "rb") as pipe:
    assert pipe.read() == train()  # The parent's threads work as before.
assert threading.active_count() == 2
del strategy, model
print("both trained")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_starts_threads_of_its_own(run: Run) -> None:
    done = run(FORK)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "both trained\n"


def test_the_interpreter_ends_with_threads_that_wait(run: Run) -> None:
    code = "from mirrored.program import ThreadPool as P; p = P(3); p.run([list] * 3); print('end')"
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("end\n")


# ------------------------------------------------------------------------------ barriers


def test_threads_meet(pool: ThreadPool, ends: Callable[..., Any]) -> None:
    """Before each joint piece of work all have come, and none goes on before it is done."""
    barrier, events = Barrier(3), []

    def lead() -> None:
        for i in range(50):
            events.append(i)
            barrier.lead(lambda: events.append("joint"))

    def follow(number: int) -> Callable[[], None]:
        def work() -> None:
            for i in range(50):
                events.append(i)
                barrier.follow(number)
            barrier.leave(number)

        return work

    ends(lambda: pool.run([lead, follow(1), follow(2)]))
    assert events == [each for i in range(50) for each in (i, i, i, "joint")]


@pytest.mark.parametrize("last", [0, 1, 2, 10])
def test_a_thread_that_leaves_stops_the_others(
    last: int, pool: ThreadPool, ends: Callable[..., Any]
) -> None:
    barrier, rounds = Barrier(3), [0, 0, 0]

    def lead() -> None:
        try:
            while True:
                rounds[0] += 1
                barrier.lead()
        except BaseException:
            barrier.dismiss()
            raise

    def follow(number: int) -> Callable[[], None]:
        def work() -> None:
            try:
                while True:
                    if number == 2 and rounds[2] == last:
                        raise Broken
                    rounds[number] += 1
                    barrier.follow(number)
            finally:
                barrier.leave(number)

        return work

    with pytest.raises(Broken):
        ends(lambda: pool.run([lead, follow(1), follow(2)]))
    assert rounds == [last + 1, last + 1, last]
