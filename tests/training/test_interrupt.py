"""Ctrl-C during training: the step that is running ends first, and nothing is left behind."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored._interrupt import InterruptGuard
from mirrored.ops.hooks import shapes_alone

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


pytestmark = pytest.mark.usefixtures("python_interrupts")


def interrupt() -> None:
    """Do what Ctrl-C does, from whichever thread this is."""
    os.kill(os.getpid(), signal.SIGINT)


class Interrupts(mr.layers.Layer):
    """Interrupts one call of the mode that it is told to, in the first replica that gets to it.

    For models that run eagerly: a recorded step does not call it again.
    """

    def __init__(self, training: bool) -> None:
        super().__init__()
        self.when = training
        self.calls_left = -1

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        context = mr.distribute.get_replica_context()
        runs = training is self.when and not shapes_alone()
        if runs and context and context.replica_id_in_sync_group == 0:
            self.calls_left -= 1
            if self.calls_left == 0:
                interrupt()
        return inputs


class At(mr.callbacks.Callback):
    """Interrupts in one hook of one step of one epoch."""

    def __init__(self, hook: str, epoch: int, batch: int | None = None) -> None:
        super().__init__()
        self.epoch = -1
        wanted = (epoch, batch)

        def act(index: int | None = None, logs: Any = None) -> None:
            here = index if batch is not None else None
            if (self.epoch, here) == wanted:
                interrupt()

        setattr(self, hook, act if "batch" in hook or "epoch" in hook else lambda logs: act())

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.epoch = epoch


def make(
    strategy: mr.MirroredStrategy, layer: mr.layers.Layer | None = None, **compile: Any
) -> mr.Model:
    mr.random.set_seed(3)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(3,))])
        if layer is not None:
            model.add(layer)
        model.add(mr.layers.Dense(4, "tanh"))
        model.add(mr.layers.Dense(1))
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse", **compile)
    return model


def state(model: mr.Model) -> list[bytes]:
    """Return the bits of all weights and slots, on every replica."""
    variables = [*model.variables, *model.optimizer.variables]
    return [copy.numpy().tobytes() for variable in variables for copy in variable.copies]


def after_steps(strategy: mr.MirroredStrategy, steps: int) -> list[bytes]:
    """Return the state after so many steps that nobody interrupts: many tests compare with it."""
    key = strategy.num_replicas_in_sync, steps
    if key not in _after_steps:
        _after_steps[key] = _take_steps(strategy, steps)
    return _after_steps[key]


_after_steps: dict[tuple[int, int], list[bytes]] = {}


def _take_steps(strategy: mr.MirroredStrategy, steps: int) -> list[bytes]:
    class Stop(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_training = int(self.model.optimizer.iterations) == steps

    model = make(strategy)
    if steps:
        train(model, callbacks=[Stop()])
    assert int(model.optimizer.iterations) == steps
    return state(model)


def train(model: mr.Model, **options: Any) -> mr.callbacks.History:
    return model.fit(X, Y, batch_size=4, epochs=3, shuffle=False, verbose=0, **options)


def check_interrupted(
    model: mr.Model, strategy: mr.MirroredStrategy, steps: int, epochs: list[int], **options: Any
) -> None:
    """Train until the interrupt, and check what it left."""
    with pytest.raises(KeyboardInterrupt):
        train(model, **options)
    assert int(model.optimizer.iterations) == steps
    assert state(model) == after_steps(strategy, steps)
    assert model.history is not None
    assert model.history.epoch == epochs
    assert len(model.history.history.get("loss", [])) == len(epochs)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert threading.enumerate() == [threading.main_thread()]
    assert not mr.distribute.has_strategy()
    assert train(model).epoch == [0, 1, 2]


@pytest.mark.parametrize(
    ("step", "epochs", "strategy"), [(1, [], 3), (4, [0], 1)], indirect=["strategy"]
)
def test_in_the_middle_of_a_step(
    step: int, epochs: list[int], strategy: mr.MirroredStrategy
) -> None:
    """The step is finished: it happened on all replicas."""
    layer = Interrupts(training=True)
    model = make(strategy, layer, run_eagerly=True)
    layer.calls_left = step
    check_interrupted(model, strategy, step, epochs)


# With "auto" an epoch is one execution: it ends after the running step, not after the epoch.
EXECUTIONS = pytest.mark.parametrize("steps_per_execution", ["auto", 1, 2])
AtTanh = Callable[[int, Callable[[], None]], None]


@pytest.mark.parametrize(
    ("step", "steps_per_execution", "strategy"),
    [
        *((1, "auto", 3), (2, 2, 1), (3, 1, 3), (4, "auto", 1), (8, 2, 3)),
        *(pytest.param(step, 1, 3, marks=pytest.mark.slow) for step in (1, 2, 4, 8)),
        *(pytest.param(step, 2, 3, marks=pytest.mark.slow) for step in (1, 3, 4)),
        *(pytest.param(step, "auto", 3, marks=pytest.mark.slow) for step in (2, 3, 8)),
    ],
    indirect=["strategy"],
)
def test_in_the_middle_of_a_step_that_is_replayed(
    step: int,
    steps_per_execution: Any,
    strategy: mr.MirroredStrategy,
    at_tanh: AtTanh,
) -> None:
    model = make(strategy, steps_per_execution=steps_per_execution)
    at_tanh((step - 1) * strategy.num_replicas_in_sync, interrupt)
    check_interrupted(model, strategy, step, [*range((step - 1) // 3)])


def test_while_a_step_is_recorded(strategy: mr.MirroredStrategy) -> None:
    """Recording is part of the first step, which is finished."""
    layer = Interrupts(training=True)
    model = make(strategy, layer)
    layer.calls_left = 1
    check_interrupted(model, strategy, 1, [])


@pytest.mark.parametrize("thread", [0, 1, 2])
def test_in_the_middle_of_a_step_on_threads(
    thread: int, simulate: Callable[..., Any], at_tanh: AtTanh
) -> None:
    """Whichever thread the interrupt comes from, all of them finish the step."""
    simulate(3)
    strategy = mr.MirroredStrategy(executor="threads")
    model, reference = make(strategy), make(strategy)
    threads: list[str] = []

    def act() -> None:
        name = threading.current_thread().name
        if name not in threads:
            threads.append(name)
        if len(threads) == thread + 1:
            interrupt()
            threads.append("interrupted")

    for call in range(6):
        at_tanh(call, act)
    with pytest.raises(KeyboardInterrupt):
        train(model)
    steps = int(model.optimizer.iterations)
    assert 1 <= steps <= 2
    reference.fit(X, Y, batch_size=4, steps_per_epoch=steps, shuffle=False, verbose=0)
    assert state(model) == state(reference)
    assert train(model).epoch == [0, 1, 2]
    strategy.close()
    assert threading.enumerate() == [threading.main_thread()]


def test_in_a_replayed_validation(strategy: mr.MirroredStrategy, at_tanh: AtTanh) -> None:
    """Nothing has to be waited for: validation changes nothing."""
    model = make(strategy)
    # Two epochs of three steps, and the first of the second validation's three.
    at_tanh(9 * strategy.num_replicas_in_sync, interrupt)
    check_interrupted(model, strategy, 6, [0], validation_data=(X, Y))


def test_in_validation(strategy: mr.MirroredStrategy) -> None:
    """Nothing has to be waited for: validation changes nothing."""
    layer = Interrupts(training=False)
    model = make(strategy, layer, run_eagerly=True)
    layer.calls_left = 4  # The first of the second epoch's three.
    check_interrupted(model, strategy, 6, [0], validation_data=(X, Y))


HOOKS = {
    "before a batch": (At("on_train_batch_begin", 1, 1), 4, [0]),
    "after a batch": (At("on_train_batch_end", 1, 1), 5, [0]),
    "after an epoch": (At("on_epoch_end", 1), 6, [0]),
    "in validation": (At("on_test_batch_end", 1, 0), 6, [0]),
    "before the first epoch": (At("on_train_begin", -1), 0, []),
}


@pytest.mark.parametrize(("callback", "steps", "epochs"), HOOKS.values(), ids=HOOKS)
def test_in_a_callback(
    callback: At, steps: int, epochs: list[int], strategy: mr.MirroredStrategy
) -> None:
    callback.epoch = -1
    options: dict[str, Any] = {"callbacks": [callback], "validation_data": (X, Y)}
    check_interrupted(make(strategy), strategy, steps, epochs, **options)


def test_a_handler_of_the_applications_own(strategy: mr.MirroredStrategy) -> None:
    """It is called once the step has ended; where it does not raise, training goes on."""
    steps: list[int] = []
    layer = Interrupts(training=True)
    model = make(strategy, layer, run_eagerly=True)

    def handler(number: int, frame: Any) -> None:
        assert number == signal.SIGINT
        steps.append(int(model.optimizer.iterations))

    signal.signal(signal.SIGINT, handler)
    layer.calls_left = 5
    history = train(model)
    assert steps == [5]
    assert history.epoch == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is handler


@EXECUTIONS
def test_a_handler_of_the_applications_own_in_a_replayed_step(
    steps_per_execution: Any, strategy: mr.MirroredStrategy, at_tanh: AtTanh
) -> None:
    steps: list[int] = []
    model = make(strategy, steps_per_execution=steps_per_execution)

    def handler(number: int, frame: Any) -> None:
        steps.append(int(model.optimizer.iterations))

    signal.signal(signal.SIGINT, handler)
    at_tanh(3 * strategy.num_replicas_in_sync, interrupt)
    history = train(model)
    assert steps == [4]
    assert history.epoch == [0, 1, 2]
    assert state(model) == after_steps(strategy, 9)


def test_an_application_that_ignores_interrupts(strategy: mr.MirroredStrategy) -> None:
    layer = Interrupts(training=True)
    model = make(strategy, layer, run_eagerly=True)
    layer.calls_left = 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert train(model).epoch == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize("eager", [True, False])
def test_a_step_that_fails_and_is_interrupted(strategy: mr.MirroredStrategy, eager: bool) -> None:
    """The interrupt is raised, and tells of the failure."""

    class Fails(mr.layers.Layer):
        def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
            if training:
                if not interrupted:  # A second one would not wait for the end of the step.
                    interrupted.append(True)
                    interrupt()
                raise ValueError("no such thing")
            return inputs

    interrupted: list[bool] = []
    model = make(strategy, Fails(), run_eagerly=eager)
    before = state(model)
    with pytest.raises(KeyboardInterrupt) as caught:
        train(model)
    assert isinstance(caught.value.__context__, ValueError)
    assert state(model) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_the_handler_is_given_back_after_any_exception(
    error: type[BaseException], strategy: mr.MirroredStrategy
) -> None:
    class Fails(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise error

    with pytest.raises(error):
        train(make(strategy), callbacks=[Fails()])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_another_thread(strategy: mr.MirroredStrategy) -> None:
    """Python gives signals to the main thread alone, so there is nothing to hold back."""
    results: list[Any] = []
    model = make(strategy)

    def work() -> None:
        try:
            results.append(train(model).epoch)
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == [[0, 1, 2]]
    assert state(model) == after_steps(strategy, 9)


def test_the_guard_holds_back_within_a_step_only() -> None:
    guard = InterruptGuard()
    events: list[str] = []

    def handler(number: int, frame: Any) -> None:
        events.append("handled")

    signal.signal(signal.SIGINT, handler)
    with guard:
        interrupt()
        with guard.step():
            interrupt()
            interrupt()
            events.append("end of the step")
        events.append("after the step")
    assert events == ["handled", "end of the step", "handled", "after the step"]


def test_guards_nest() -> None:
    """A callback may train another model: its guard gives interrupts back to the outer one."""
    events: list[str] = []
    with pytest.raises(KeyboardInterrupt), InterruptGuard() as outer:  # noqa: PT012
        with outer.step():
            with InterruptGuard() as inner, inner.step():
                interrupt()
                events.append("inner step")
            events.append("rest of the outer step")
        events.append("never")
    assert events == ["inner step", "rest of the outer step"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
