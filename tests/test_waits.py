"""All that the library waits for, times what the other side does: an error or a result, no hang.

`ROWS` is the table; tests are made of it, and the page for users has a line for each of its rows.
"""

import ast
import contextlib
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import _files, _interrupt
from mirrored._stalls import WAITS, StallReporter
from mirrored.data import prefetching, py_dataset

pytestmark = pytest.mark.usefixtures("no_deadlock")

TESTS = Path(__file__).parent
LIBRARY = Path(mr.__file__).parent
PAGE = TESTS.parent / "docs" / "howto" / "stalls.md"
REPLICAS = 3

Act = Callable[[], None]


class Broken(Exception):
    """What the other side raises."""


# ------------------------------------------------------------------ what runs on the other side


def met(act: Act, number: int, tmp_path: Path) -> Any:
    """Replicas meet, of which one acts before that."""

    def replica() -> Any:
        context: Any = mr.distribute.get_replica_context()
        if context.replica_id_in_sync_group == number:
            act()
        return context.all_reduce("sum", mr.constant(1.0))

    return float(mr.MirroredStrategy().run(replica).values[0])


def ended(act: Act, number: int, tmp_path: Path) -> Any:
    """Replicas end, of which one acts after they have met."""

    def replica() -> Any:
        context: Any = mr.distribute.get_replica_context()
        total = context.all_reduce("sum", mr.constant(1.0))
        if context.replica_id_in_sync_group == number:
            act()
        return total

    return float(mr.MirroredStrategy().run(replica).values[number])


def turned(act: Act, number: int, tmp_path: Path) -> Any:
    """Replicas meet twice, of which one acts in between, when the others wait for their turns."""

    def replica() -> Any:
        context: Any = mr.distribute.get_replica_context()
        total = context.all_reduce("sum", mr.constant(1.0))
        if context.replica_id_in_sync_group == number:
            act()
        return context.all_reduce("sum", total)

    return float(mr.MirroredStrategy().run(replica).values[0])


def prefetched(act: Act, number: int, tmp_path: Path) -> Any:
    """An element is created ahead, by a generator that acts before one of them."""

    def rows() -> Iterator[Any]:
        for i in range(REPLICAS):
            if i == number:
                act()
            yield np.full(2, i)

    spec = mr.TensorSpec((2,), "int64")
    dataset = mr.data.Dataset.from_generator(rows, output_signature=spec)
    return [int(element[0]) for element in dataset.prefetch(1)]


def left(act: Act, number: int, tmp_path: Path) -> Any:
    """The thread acts while nobody waits for an element, and then nobody wants one any more."""
    acts = threading.Event()

    def rows() -> Iterator[Any]:
        yield np.zeros(2)
        acts.set()
        act()
        yield np.zeros(2)

    spec = mr.TensorSpec((2,), "float64")
    dataset = mr.data.Dataset.from_generator(rows, output_signature=spec)
    elements = iter(dataset.prefetch(1))
    next(elements)
    assert acts.wait(60.0)
    del elements
    return 1


class Batches(mr.keras.utils.PyDataset):
    """Batches made by two threads; one of them acts."""

    def __init__(self, act: Act, number: int) -> None:
        super().__init__(workers=2)
        self.act, self.number = act, number

    def __len__(self) -> int:
        return REPLICAS

    def __getitem__(self, index: int) -> Any:
        if index == self.number:
            self.act()
        return np.full((2, 1), index, "float32"), np.ones((2, 1), "float32")


def batched(act: Act, number: int, tmp_path: Path) -> Any:
    """Threads make batches, of which one acts."""
    batches = py_dataset.batches_of(Batches(act, number), range(REPLICAS))
    return [int(inputs[0, 0]) for inputs, _ in batches]


def saved(act: Act, number: int, tmp_path: Path) -> Any:
    """A thread writes a file."""
    path = tmp_path / "file"

    def write() -> None:
        act()
        path.write_text("new")

    _files.settle()
    _files.save_in_thread(path, "test", write, lambda: None)
    _files.settle()
    return path.read_text()


# ------------------------------------------------------------------------------------- the table

Program = Callable[[Act, int, Path], Any]
# By what is waited for, as in `WAITS` and on the page: what waits, and the number of places where
# the other side acts; or the tests that hold the row, in the folder of tests.
_POOL, _THREADS = "program/test_thread_pool.py", "test_threads.py:test_a_thread_is_refused"
_WORKERS, _CONNECTION = "workers/test_failures.py", "backends/communication/test_connection.py"
_WAITING, _FAULTS = "workers/test_waiting.py", "training/test_nccl_faults.py"
_DEATHS = "test_worker_deaths.py"
_REPLACED = f"{_DEATHS}:test_new_processes_take_the_places_of_workers_that_die"
_HANGS = f"{_WORKERS}:test_who_hangs_is_named_by_the_deadline"
_CONNECTS = f"{_WORKERS}:test_who_never_connects_is_named"
ROWS: dict[str, tuple[Program, int] | list[str]] = {
    "replicas to meet or end": (met, REPLICAS),
    "its turn, after the other replicas": (turned, REPLICAS),
    "the end of a replica's thread": (ended, REPLICAS),
    "an element that `prefetch` creates": (prefetched, REPLICAS),
    "the end of the thread of `prefetch`": (left, 1),
    "a batch that a thread of a PyDataset creates": (batched, REPLICAS),
    "an asynchronous save": (saved, 1),
    "the other threads of a recorded step": [
        f"{_POOL}:test_what_a_thread_raises",
        f"{_POOL}:test_threads_meet",
        _THREADS,
    ],
    "the first thread of a recorded step": [
        f"{_POOL}:test_a_thread_that_leaves_stops_the_others",
        _THREADS,
    ],
    "another run on the same threads": [
        f"{_POOL}:test_calls_of_one_pool_from_several_threads_take_turns"
    ],
    "the end of a thread of recorded steps": [
        f"{_POOL}:test_the_interpreter_ends_with_threads_that_wait",
        f"{_POOL}:test_threads_end_when_their_team_is_collected",
    ],
    "another call of the recorded function": [
        "program/test_function_threads.py:test_an_interrupt_waits_for_the_end_of_a_call"
    ],
    "the threads of a Coordinator": [
        "compat/test_coordinator.py:test_the_first_error_is_raised",
        "compat/test_coordinator.py:test_threads_that_go_on",
    ],
    "a stop of a Coordinator": ["compat/test_coordinator.py:test_workers_count_to_a_number"],
    "devices, and collectives in flight": [
        f"{_CONNECTION}:test_whatever_happens_the_next_collective_works",
        f"{_CONNECTION}:test_no_thread_can_be_started",
        f"{_FAULTS}:test_a_sum_that_hangs",
        f"{_FAULTS}:test_an_interrupt_while_a_sum_hangs",
    ],
    "a card": [f"{_FAULTS}:test_a_card_that_is_lost"],
    "a process that tests cards": [
        "backends/selftest/test_process.py:test_a_program_that_hangs_is_killed_with_all_that_it_started",
        "backends/selftest/test_process.py:test_an_interrupt_ends_it",
    ],
    "a C compiler": [
        "backends/test_host_compiling.py:test_it_is_refused_a_thread",
        "backends/test_host_compiling.py:test_no_compiler",
        "backends/test_host_compiling.py:test_nothing_is_left_of_a_process_that_compiles",
    ],
    "other workers": [
        _HANGS,
        f"{_WORKERS}:test_all_hear_of_it",
        f"{_WORKERS}:test_who_is_slow_is_waited_for",
        f"{_WORKERS}:test_an_interrupt_ends_all",
    ],
    "a sum over workers": [
        f"{_WORKERS}:test_in_the_midst_of_sums",
        "workers/test_background.py:test_an_error_is_raised_where_the_sum_is_waited_for",
    ],
    "a sum over workers that has failed": [f"{_WORKERS}:test_in_the_midst_of_sums"],
    "notices to other workers": [f"{_WAITING}:test_others_are_heard_of_beside_calls"],
    "the start of all workers": [f"{_WORKERS}:test_who_never_starts_is_not_waited_for"],
    "all workers to connect": [_CONNECTS],
    "another thread that connects workers": [_CONNECTS],
    "the other workers of this host": [_CONNECTS, _HANGS],
    "the workers that are left": [
        "workers/test_regrouping.py:test_a_worker_that_does_not_come_is_a_timeout",
        f"{_DEATHS}:test_a_death_at_each_place_leaves_what_one_device_leaves",
    ],
    "new processes in place of dead workers": [_REPLACED],
    "the workers that a new process joins": [_REPLACED],
    "the end of the other workers": [
        f"{_WORKERS}:test_who_is_frozen_after_its_last_call_ends_the_job"
    ],
}
PROGRAMS = [
    (target, row[0], place)
    for target, row in ROWS.items()
    if isinstance(row, tuple)
    for place in range(row[1])
]


def test_the_table_and_the_page_have_all_waits() -> None:
    targets = {wait.target for wait in WAITS.values() if wait.target}
    assert set(ROWS) == targets
    lines = re.findall(r"^\| (.+?) \|.+\|.+\|.+\|$", PAGE.read_text(), re.MULTILINE)
    assert sorted(lines[2:] if lines[1:2] == ["---"] else lines[1:]) == sorted(targets)


def test_the_tests_that_the_table_names_are_there() -> None:
    for row in ROWS.values():
        for test in row if isinstance(row, list) else ():
            file, _, name = test.partition(":")
            assert f"\ndef {name}(" in (TESTS / file).read_text(), test


BLOCKING = {"acquire", "allgather", "allreduce", "Barrier", "Dup", "get", "join", "sleep", "wait"}
# Functions that call these and are not in `WAITS`, by why they need not be.
OTHERS = {
    "it calls what is in the table": {
        "_files.py:wait_for_save",
        "_threads.py:Task.end",
        "backends/communication/connection.py:Connection._abort",
        "backends/communication/connection.py:Connection._issued",
        "backends/communication/connection.py:Connection._locked",
        "backends/communication/connection.py:Connection._returned",
        "backends/communication/connection.py:Connection._see_interrupted",
        "backends/communication/in_flight.py:CallLock.acquire",
        "backends/communication/watch.py:Watch.finish",
        "compat/v1/coordinator.py:Coordinator.__exit__",
        "distribute/bandwidth.py:_seconds.timed",
        "distribute/cross_device_ops/sums_meanwhile.py:SumsMeanwhile._wait",
        "distribute/loop_joining.py:join_loop",
        "program/streamed/streamed_program.py:StreamedProgram._settle",
        "program/streamed/streamed_program.py:StreamedProgram.run",
        "program/thread_pool.py:ThreadPool._end_all",
        "program/thread_pool.py:_wait_for",
        "training/fit_joining.py:Joining.meet",
        "workers/background.py:Background.drain",
    },
    "it does not block, or for a bounded time": {
        "backends/communication/in_flight.py:CallLock.try_acquire",
        "backends/communication/in_flight.py:Handle.failure",
        "backends/communication/in_flight.py:_Lent.join",
        "backends/cuda/nccl.py:NcclCommunicator.abort",
        "backends/selftest/__init__.py:_end",
        "distribute/cross_device_ops/connections.py:WorkerCards._expect_death",
        "program/thread_pool.py:_taken",
        "workers/mpi_workers.py:MPIWorkers._kill",
        "workers/notices.py:Notices.look",
        "workers/replacements.py:leave_launcher",
    },
    "who waits for its thread is in the table": {"workers/replacements.py:begin.watch"},
    "a card's stream waits, not the thread": {
        "backends/cuda/cuda_backend.py:CudaBackend.copy_across",
        "distribute/bandwidth.py:_Queued.__init__",
        "distribute/cross_device_ops/nccl_all_reduce.py:_all_reduce",
        "program/streamed/graph_launch.py:_Sums.start",
        "program/streamed/graph_launch.py:_fork",
        "program/streamed/graph_launch.py:_join",
        "program/streamed/graph_launch.py:_wait",
    },
    "who waits for its thread has a deadline, and is in the table": {
        "backends/communication/in_flight.py:Handle._alone",
        "backends/selftest/sums.py:_Check._late",
        "backends/selftest/sums.py:_abort",
    },
    "it makes the reports": {"_stalls.py:StallReporter._run", "_stalls.py:StallReporter.stop"},
}


def blocking_functions(path: Path) -> set[str]:
    """Return the qualified names of a file's functions that call what may block."""
    text = path.read_text()
    names: set[str] = set()

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}".removeprefix(".")
            elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
                called, receiver = child.func.attr, child.func.value
                takes = bool(child.args) or isinstance(receiver, ast.Constant)
                if called in BLOCKING and not (
                    (called == "join" and takes) or (called == "get" and (takes or not queues))
                ):
                    names.add(name)
            walk(child, inner)

    queues = "SimpleQueue" in text
    if any(f".{name}(" in text for name in BLOCKING):
        walk(ast.parse(text), "")
    return names - {""}


@pytest.mark.slow
def test_what_blocks_is_in_the_table() -> None:
    blocking = {
        f"{path.relative_to(LIBRARY)}:{name}"
        for path in LIBRARY.rglob("*.py")
        for name in blocking_functions(path)
    }
    others = set().union(*OTHERS.values())
    assert blocking - set(WAITS) - others == set()
    assert others <= blocking - set(WAITS)  # Those that are gone need no line.


# ------------------------------------------------------------------------------ the tests of it


def nothing() -> None:
    """What the other side does where nothing is wrong."""


class Held:
    """An act that blocks, as code in C does, until a test lets it go on."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        while not self.released.is_set():
            with contextlib.suppress(KeyboardInterrupt):
                self.released.wait()


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if "mirrored" in thread.name}


@pytest.fixture
def expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Any]]:
    """Return a function that gives what a program returns where nothing is wrong."""
    for module in (prefetching, py_dataset):
        monkeypatch.setattr(module, "_PATIENCE", 0.05)
    monkeypatch.setattr(_interrupt, "PATIENCE", 0.05)

    def call(program: Program) -> Any:
        mr.config.experimental.set_simulated_gpus(REPLICAS)
        return program(nothing, 0, tmp_path)

    yield call
    until = time.monotonic() + 60.0
    while threads() and time.monotonic() < until:  # Those of Python need a moment to be gone.
        time.sleep(0.001)
    assert not threads()


def raising(error: type[BaseException]) -> Act:
    def act() -> None:
        raise error("why")

    return act


@cases(("target", "program", "place"), PROGRAMS)
def test_it_raises_or_ends_or_is_slow(
    target: str, program: Program, place: int, expected: Any, tmp_path: Path
) -> None:
    result = expected(program)
    for error in (Broken, SystemExit):
        if program is left:  # Its error is dropped with the elements.
            assert program(raising(error), place, tmp_path) == result
            continue
        with pytest.raises(error, match="why"):
            program(raising(error), place, tmp_path)
    assert program(lambda: time.sleep(0.005), place, tmp_path) == result


@cases(("target", "program", "place"), [row for row in PROGRAMS if row[2] == 0])
def test_it_is_refused_a_thread(
    target: str, program: Program, place: int, expected: Any, tmp_path: Path
) -> None:
    result, start = expected(program), threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name.startswith("mirrored-"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="A thread could not be started"):
            program(nothing, place, tmp_path)
    assert program(nothing, place, tmp_path) == result


@cases(("target", "program", "place"), PROGRAMS)
def test_it_blocks_and_is_reported(
    target: str, program: Program, place: int, expected: Any, tmp_path: Path
) -> None:
    result, held, results = expected(program), Held(), []
    thread = threading.Thread(target=lambda: results.append(program(held, place, tmp_path)))
    thread.start()
    try:
        assert held.entered.wait(60.0)
        reporter, text = StallReporter(10.0), None
        for now in range(0, 10_000, 10):
            text = reporter.look(float(now))
            if text is not None and "Held.__call__" in text:
                break
            time.sleep(0.001)
        assert text is not None
        assert "Held.__call__" in text
    finally:
        held.released.set()
        thread.join(60.0)
    assert results == [result]


@pytest.mark.slow
@cases(("target", "program", "place"), [row for row in PROGRAMS if row[1] is not left])
def test_it_blocks_and_is_interrupted(
    target: str, program: Program, place: int, expected: Any, tmp_path: Path
) -> None:
    result, held = expected(program), Held()

    came = threading.Event()

    def handle(*_: object) -> None:
        if not came.is_set():
            came.set()
            raise KeyboardInterrupt

    def interrupt() -> None:
        assert held.entered.wait(60.0)
        while True:  # One that comes just before Python waits is seen only with the next.
            signal.pthread_kill(main, signal.SIGINT)
            if came.wait(0.05):
                return

    def act() -> None:
        if threading.current_thread() is threading.main_thread():
            held.entered.set()
            held.released.wait()  # Unlike `Held`, it ends with an interrupt.
        held()

    def run() -> None:
        program(act, place, tmp_path)
        time.sleep(60.0)

    main, thread = threading.get_ident(), threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, handle)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        held.released.set()
        thread.join(60.0)
        signal.signal(signal.SIGINT, before)
    _files.wait_for_save()
    assert program(nothing, place, tmp_path) == result
