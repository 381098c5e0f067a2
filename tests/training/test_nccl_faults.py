"""NCCL fails in a step of training: a typed error, whole steps on all replicas, and on it goes.

Calls of the first steps fail, one by one; training goes on from where the weights are then,
and ends as if nothing had been.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from card_training import BATCH, Keeps, X, Y, ended, make_devices, make_model, make_strategy, states
from card_training import train as train_with

import mirrored as mr
from mirrored import _interrupt
from mirrored.backends.communication import connection
from mirrored.backends.communication.watch import WATCH
from mirrored.errors import (
    CollectiveError,
    CollectiveTimeoutError,
    DeviceLostError,
    ResourceExhaustedError,
)

pytestmark = pytest.mark.usefixtures("no_deadlock")

# Ways to run steps: one by one, all asked for before the first is seen done, and Python for each.
WAYS = [{"steps_per_execution": 1}, {"steps_per_execution": 4}, {"run_eagerly": True}]
SUMS = 4  # In a step: three buckets of gradients, and the loss with the metrics.
STEPS = 4
DEADLINE = 0.25  # By a clock that stands still, but while a sum hangs.
DATA = np.resize(X, (STEPS * BATCH, X.shape[1])), np.resize(Y, STEPS * BATCH)  # Of whole batches.
train = partial(train_with, data=DATA)

# What models go through, by layout and whether Python runs each step.
_references: dict[Any, Keeps] = {}


class Clock:
    """Goes on by a little at each look while something holds: no machine is too slow for it."""

    def __init__(self, runs: Callable[[], bool]) -> None:
        self.runs = runs
        self._now = time.monotonic()

    def __call__(self) -> float:
        if self.runs():
            self._now += DEADLINE / 10
        return self._now


class Cards:
    """Models on emulated cards, and the states that they have to go through.

    Args:
        emulator: The cards.
        clock: What deadlines go by.
        layout: How many logical devices each has.
        options: How steps are run.
    """

    def __init__(
        self, emulator: Any, clock: Clock, layout: tuple[int, ...], **options: Any
    ) -> None:
        self.emulator = emulator
        self.clock = clock
        self._names = make_devices(layout)
        self._options = options
        self._threads = set(threading.enumerate())
        kind = layout, options.get("run_eagerly", False)
        if kind not in _references:
            _references[kind] = Keeps()
            train(self.model(steps_per_execution=1), 0, _references[kind])
        self._reference = _references[kind]
        self._connect()

    def _connect(self) -> None:
        """Sum once: what fails later are the sums of steps."""
        strategy = make_strategy(self._names)

        def one() -> Any:
            context = mr.distribute.get_replica_context()
            assert context is not None
            return context.all_reduce("sum", mr.constant(1.0))

        strategy.run(one)

    def model(self, timeout: float | None = None, **options: Any) -> mr.Model:
        """Return a model whose sums have a deadline."""
        strategy = make_strategy(self._names, nbytes=64, timeout=timeout)
        options = {**self._options, **options}
        return make_model(strategy, widths=(8,), penalty=None, optimizer=_optimizer, **options)

    def fails(
        self, error: type[BaseException], path: Path | None = None, timeout: float | None = None
    ) -> tuple[Any, int]:
        """Train until an error, and after it to the end; return it, and how many steps it left.

        Args:
            error: What is raised.
            path: Where to save the weights that the error has left.
            timeout: The deadline of sums.
        """
        model = self.model(timeout)
        with pytest.raises(error) as caught:
            train(model)
        ended(set(threading.enumerate()) - self._threads)
        assert WATCH.idle
        done = self._reference.steps_done(model)
        if path is not None:
            model.save_weights(path)
            model.load_weights(path)
        if done < STEPS:
            train(model, done)
        assert self._reference.steps_done(model) == STEPS
        return caught.value, done


def _optimizer() -> mr.optim.Optimizer:
    return mr.optim.SGD(0.1, momentum=0.9)  # It has slots, and few ops.


either_way = pytest.mark.parametrize(
    "way",
    [
        pytest.param(WAYS[1], id="ahead"),
        pytest.param(WAYS[2], id="eager", marks=pytest.mark.slow),
    ],
)


@pytest.fixture
def on_cards(
    emulated_cuda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Cards]:
    """Return ``on_cards(layout, seed=0, **options)``: models on emulated cards; see `Cards`."""

    def make(layout: tuple[int, ...], seed: int = 0, **options: Any) -> Cards:
        emulator = emulated_cuda(cards=len(layout), seed=seed)
        clock = Clock(lambda: emulator.nccl.hangs)
        monkeypatch.setattr(WATCH._in_flight, "_clock", clock)
        return Cards(emulator, clock, layout, **options)

    return make


def press(cards: Cards, times: int) -> None:
    """Interrupt the process so often, from when a sum hangs."""
    while not cards.emulator.nccl.hangs:
        time.sleep(0.01)
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)


def check(error: Any, done: int) -> None:
    """Look whether an error says what failed."""
    assert error.devices[0].endswith("GPU:0")
    assert str(error.what).startswith("bucket ")
    assert len(error.devices) == 2
    assert "can be saved" in str(error)
    assert error.aborted
    assert 0 <= done < STEPS


def some_of(calls: int) -> range:
    """Return each of a step's calls, in one of three steps."""
    return range(1, 3 * calls + 1, 3)


@pytest.mark.parametrize(
    ("way", "calls"),
    [
        pytest.param(WAYS[0], some_of(SUMS), id="one by one", marks=pytest.mark.slow),
        pytest.param(WAYS[1], [3 * SUMS], id="ahead"),
        pytest.param(WAYS[1], some_of(SUMS), id="ahead, each", marks=pytest.mark.slow),
        pytest.param(WAYS[2], some_of(SUMS), id="eager", marks=pytest.mark.slow),
    ],
)
def test_a_sum_with_an_error_of_its_own(
    way: dict[str, Any], calls: Iterable[int], on_cards: Callable[..., Cards], tmp_path: Path
) -> None:
    """The error is seen at once, or while later steps are on their way."""
    cards = on_cards((1, 1), **way)
    for call in calls:
        cards.emulator.nccl.break_async(after=call)
        error, done = cards.fails(CollectiveError, tmp_path / "w.weights.safetensors")
        check(error, done)
        assert done <= (call - 1) // SUMS  # Nothing of the step is kept.
        assert "ncclRemoteError" in str(error)


@pytest.mark.parametrize(
    ("function", "number", "calls"),
    [
        pytest.param("ncclAllReduce", 2 * SUMS, some_of(2 * SUMS), marks=pytest.mark.slow),
        pytest.param("ncclGroupEnd", SUMS, [3 * SUMS]),
        pytest.param("ncclGroupEnd", SUMS, some_of(SUMS), marks=pytest.mark.slow),
    ],
    ids=["ncclAllReduce", "ncclGroupEnd", "ncclGroupEnd, each"],
)
def test_a_call_that_is_refused(
    function: str, number: int, calls: Iterable[int], on_cards: Callable[..., Cards]
) -> None:
    cards = on_cards((2, 1), seed=1, **WAYS[1])
    for call in calls:
        cards.emulator.fail(function, 3, after=call)
        error, done = cards.fails(CollectiveError)
        check(error, done)
        assert done <= (call - 1) // number
        assert f"{function} answered ncclInternalError" in str(error)


@pytest.mark.parametrize(
    ("way", "call"),
    [
        pytest.param(WAYS[0], 3 * SUMS, id="one by one-last", marks=pytest.mark.slow),
        pytest.param(WAYS[1], 1, id="ahead-first"),
        pytest.param(WAYS[1], 3 * SUMS, id="ahead-last", marks=pytest.mark.slow),
        pytest.param(WAYS[2], SUMS + 1, id="eager-middle", marks=pytest.mark.slow),
    ],
)
def test_a_sum_that_hangs(
    on_cards: Callable[..., Cards], way: dict[str, Any], call: int, tmp_path: Path
) -> None:
    cards = on_cards((1, 1), seed=2, **way)
    cards.emulator.nccl.hang(after=call)
    error, done = cards.fails(
        CollectiveTimeoutError, tmp_path / "w.weights.safetensors", timeout=DEADLINE
    )
    check(error, done)
    assert done == (call - 1) // SUMS


@pytest.mark.usefixtures("python_interrupts")
@pytest.mark.parametrize(
    ("way", "patience", "presses"),
    [
        pytest.param(WAYS[0], 0.05, 1, id="one by one-once", marks=pytest.mark.slow),
        pytest.param(WAYS[1], 600.0, 2, id="ahead-twice"),
        pytest.param(WAYS[2], 0.05, 1, id="eager-once", marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_while_a_sum_hangs(
    patience: float,
    presses: int,
    on_cards: Callable[..., Cards],
    way: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C acts after a while, and at once when it is pressed again; the step is undone."""
    monkeypatch.setattr(_interrupt, "PATIENCE", patience)
    cards = on_cards((1, 1), seed=3, **way)
    cards.emulator.nccl.hang(after=SUMS + 3)
    thread = threading.Thread(target=press, args=(cards, presses))
    thread.start()
    error, done = cards.fails(KeyboardInterrupt)
    thread.join()
    assert done == 1
    assert "bucket " in error.__notes__[0]


@pytest.mark.usefixtures("python_interrupts")
def test_an_interrupt_that_an_application_handles(
    on_cards: Callable[..., Cards], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its handler does not raise, the sum keeps its deadline."""
    monkeypatch.setattr(_interrupt, "PATIENCE", 0.05)
    cards = on_cards((1, 1))
    calls: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    cards.emulator.nccl.hang()
    cards.clock.runs = lambda: bool(calls) and cards.emulator.nccl.hangs
    thread = threading.Thread(target=press, args=(cards, 1))
    thread.start()
    error, _ = cards.fails(CollectiveTimeoutError, timeout=DEADLINE)
    thread.join()
    assert calls == [signal.SIGINT]
    assert error.timeout == DEADLINE


@either_way
def test_cards_that_cannot_be_connected(
    on_cards: Callable[..., Cards], way: dict[str, Any]
) -> None:
    cards = on_cards((1, 1), **way)
    connection.close_all()
    cards.emulator.fail("ncclCommInitAll", 2)
    error, done = cards.fails(CollectiveError)
    assert done == 0
    assert "ncclSystemError" in str(error)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("launchKernel", 41),
        ("graphLaunch", 3),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [
                *(("launchKernel", 3), ("memcpyAsync", 20), ("memcpyAsync", 41)),
                *(("hostAlloc", 3), ("hostAlloc", 20)),
            ]
        ),
    ],
)
def test_a_card_without_memory(function: str, call: int, on_cards: Callable[..., Cards]) -> None:
    """Nobody waits for it; weights may be those of one step more on some of the cards."""
    cards = on_cards((1, 1), **WAYS[1])
    model = cards.model()
    cards.emulator.fail(function, 2, after=call)
    before = set(threading.enumerate())
    with contextlib.suppress(ResourceExhaustedError):
        train(model)
    emulator = cards.emulator  # It does what it was asked for, though nobody waits.
    with emulator.lock:
        emulator.synchronize(emulator.scheduler.queues)
    ended(set(threading.enumerate()) - before)
    assert all(np.isfinite(each).all() for copy in states(model) for each in copy)
    train(model)


@either_way
def test_a_card_that_is_lost(on_cards: Callable[..., Cards], way: dict[str, Any]) -> None:
    cards = on_cards((1, 1), **way)
    model = cards.model()
    train(model)
    before = set(threading.enumerate())
    cards.emulator.fail("launchKernel", 700, after=30)
    with pytest.raises(DeviceLostError):
        model.fit(*DATA, batch_size=BATCH, epochs=4, verbose=0)
    ended(set(threading.enumerate()) - before)
    with mr.device("CPU:0"):
        assert float(mr.constant(2.0) + 1.0) == 3.0
