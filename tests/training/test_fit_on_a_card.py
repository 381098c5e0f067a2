"""Training on an emulated card in every way that there is: the host's results, and no torn step.

A step that fails leaves the model as it was before or after a whole step, and training goes on.
"""

import functools
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from card_training import State, X, Y, make_devices, same, state

import mirrored as mr
from mirrored.errors import DeviceLostError, NonFiniteLossError, ResourceExhaustedError
from mirrored.program.streamed import program as streamed

TOLERANCE = 2e-5

Emulate = Callable[..., Any]
Layout = tuple[int, ...]  # How many logical devices each card has.


def ended(threads: set[threading.Thread]) -> None:
    """Hold that threads end by themselves: what looks after sums does, once none is in flight."""
    for thread in threads:
        thread.join(10.0)
        assert not thread.is_alive()


def make_model(names: list[str], steps_per_execution: int = 1, floatx: str = "float32") -> mr.Model:
    mr.random.set_seed(3)
    mr.keras.backend.set_floatx(floatx)
    mr.config.experimental.enable_tensor_float_32_execution(False)
    with mr.MirroredStrategy(names).scope():
        model = mr.Sequential(
            [
                mr.layers.Input(shape=(6,)),
                mr.layers.Dense(8, activation="relu", kernel_regularizer="l2"),
                mr.layers.Dropout(0.3),
                mr.layers.Dense(4),
            ]
        )
        model.compile(
            optimizer=mr.optim.Adam(0.01),
            loss=mr.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            steps_per_execution=steps_per_execution,
        )
    return model


class At(mr.callbacks.Callback):
    """Does something at the end of one batch, and notes the loss of all."""

    def __init__(self, batch: int, act: Callable[[mr.Model], None]) -> None:
        super().__init__()
        self.losses: list[float] = []
        self._batch, self._act = batch, act

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(logs["loss"])
        if len(self.losses) == self._batch:
            self._act(self.model)


def stop(model: mr.Model) -> None:
    model.stop_training = True


def fail(model: mr.Model) -> None:
    raise OSError("no space left")


def interrupt(model: mr.Model) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def dataset(batch: int) -> mr.data.Dataset:
    return mr.data.Dataset.from_tensor_slices((X, Y)).shuffle(37, seed=1).batch(batch).prefetch(2)


# ------------------------------------------------------------------ ways to train


def of_arrays(model: mr.Model) -> list[float]:
    validation = (X, Y)
    fitted = model.fit(X, Y, batch_size=10, epochs=3, validation_data=validation, verbose=0)
    return [value for values in fitted.history.values() for value in values]


def of_weighted_examples(model: mr.Model) -> list[float]:
    weights = np.linspace(0.1, 2.0, len(X))
    return model.fit(X, Y, sample_weight=weights, batch_size=3, verbose=0).history["loss"]


def of_a_dataset(model: mr.Model) -> list[float]:
    return model.fit(dataset(5), epochs=2, validation_data=dataset(8), verbose=0).history["loss"]


def of_a_distributed_dataset(model: mr.Model) -> list[float]:
    strategy = model.distribute_strategy
    data = strategy.experimental_distribute_dataset(dataset(8))
    return model.fit(data, epochs=2, verbose=0).history["loss"]


def of_a_generator(model: mr.Model) -> list[float]:
    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for i in range(8):
            yield X[4 * i : 4 * i + 4], Y[4 * i : 4 * i + 4]

    return model.fit(batches(), steps_per_epoch=8, verbose=0).history["loss"]


def from_a_later_epoch(model: mr.Model) -> list[float]:
    return model.fit(X, Y, batch_size=7, initial_epoch=1, epochs=3, verbose=0).history["loss"]


def stopped_in_the_middle(model: mr.Model) -> list[float]:
    at = At(5, stop)
    model.fit(X, Y, batch_size=3, epochs=4, callbacks=[at], verbose=0)
    return at.losses


def failed_in_a_callback(model: mr.Model) -> list[float]:
    at = At(6, fail)
    with pytest.raises(OSError, match="no space"):
        model.fit(X, Y, batch_size=3, callbacks=[at], verbose=0)
    return [*at.losses, *model.fit(X, Y, batch_size=3, verbose=0).history["loss"]]


def interrupted(model: mr.Model) -> list[float]:
    at = At(6, interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, batch_size=3, callbacks=[at], verbose=0)
    finally:
        signal.signal(signal.SIGINT, before)
    return [*at.losses, *model.fit(X, Y, batch_size=3, verbose=0).history["loss"]]


def in_turns(model: mr.Model) -> list[float]:
    other = make_model(list(model.distribute_strategy.extended.worker_devices))
    losses = []
    for _ in range(3):
        losses += model.fit(X, Y, batch_size=10, verbose=0).history["loss"]
        losses += other.fit(X, Y, batch_size=9, verbose=0).history["loss"]
        losses += other.evaluate(X, Y, verbose=0)
        losses += model.predict(X, batch_size=16, verbose=0).ravel().tolist()
    return losses


WAYS = [
    of_arrays,
    of_weighted_examples,
    of_a_dataset,
    of_a_distributed_dataset,
    of_a_generator,
    from_a_later_epoch,
    stopped_in_the_middle,
    failed_in_a_callback,
    interrupted,
    in_turns,
]


@functools.cache
def on_the_host(way: Callable[[mr.Model], list[float]], **options: Any) -> tuple[Any, State]:
    """Return what a way to train finds on the CPU, and leaves; once for all layouts of cards."""
    host = make_model(["CPU:0"], **options)
    return way(host), state(host)


def check_against_the_host(
    way: Callable[[mr.Model], list[float]],
    layout: Layout,
    emulated_cuda: Emulate,
    **options: Any,
) -> None:
    expected, after = on_the_host(way, **options)
    emulated_cuda(cards=len(layout), seed=5)
    model = make_model(make_devices(layout), **options)
    before = set(threading.enumerate())
    found = way(model)
    ended(set(threading.enumerate()) - before)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
    for value, other in zip(state(model), after, strict=True):
        np.testing.assert_allclose(value, other, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("layout", [(1,), (3,), (1, 1)], ids=["one", "three", "two-cards"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_ways_to_train(way: Any, layout: Layout, emulated_cuda: Emulate) -> None:
    check_against_the_host(way, layout, emulated_cuda)


@pytest.mark.parametrize("steps", [3, 100])
def test_steps_per_execution(steps: int, emulated_cuda: Emulate) -> None:
    check_against_the_host(of_arrays, (2,), emulated_cuda, steps_per_execution=steps)


def test_a_checkpoint_in_the_middle(emulated_cuda: Emulate, tmp_path: Path) -> None:
    """Who goes on from it ends with the bits of who never stopped."""
    emulated_cuda()
    names = make_devices((2,))

    def train(model: mr.Model, epochs: int) -> None:
        model.fit(X, Y, batch_size=10, epochs=epochs, verbose=0)

    model = make_model(names)
    train(model, 1)
    path = mr.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "c")
    train(model, 2)
    other = make_model(names)
    train(other, 1)
    mr.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path)
    train(other, 2)
    assert same(state(other), state(model))


@pytest.mark.parametrize(
    "names", [["GPU:0", "CPU:0"], ["CPU:0", "GPU:0"], ["GPU:1", "CPU:0", "GPU:0"]]
)
def test_the_cpu_among_the_replicas(names: list[str], emulated_cuda: Emulate) -> None:
    """Whichever comes first: what it draws, what is summed there, and a loss that is not finite."""
    host = make_model(["CPU:0"])
    expected = of_arrays(host)
    emulated_cuda(cards=2)
    model = make_model(names)
    np.testing.assert_allclose(of_arrays(model), expected, rtol=TOLERANCE, atol=TOLERANCE)
    before = [[copy.numpy() for copy in variable.copies] for variable in model.variables]
    with pytest.raises(NonFiniteLossError):
        model.fit(X * np.nan, Y, batch_size=37, verbose=0)
    for variable, values in zip(model.variables, before, strict=True):
        for copy, value in zip(variable.copies, values, strict=True):
            np.testing.assert_array_equal(copy.numpy(), value)


@pytest.mark.parametrize("count", [1, 2])
def test_many_small_fits_take_no_more_memory(count: int, emulated_cuda: Emulate) -> None:
    """Also where the garbage collector never comes by."""
    emulator = emulated_cuda()
    model = make_model(make_devices((count,)))
    used = set()
    gc.disable()
    try:
        for number in range(21):
            model.fit(X[:20], Y[:20], batch_size=10, verbose=0)
            if number >= 10 and not number % 5:
                current = mr.config.experimental.get_memory_info("GPU:0")["current"]
                used.add((emulator.live_bytes(0), current))
    finally:
        gc.enable()
    assert len(used) == 1


def test_a_second_fit_plans_nothing_anew(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes memory anew, which may be elsewhere, and binds the same plan to it."""
    emulated_cuda()
    model = make_model(make_devices((2,)))
    model.fit(X[:20], Y[:20], batch_size=10, verbose=0)
    made: list[Any] = []
    for name in ("make_schedule", "plan_stream_memory"):
        monkeypatch.setattr(streamed, name, lambda *args: made.append(args))
    model.fit(X[:20], Y[:20], batch_size=10, verbose=0)
    assert made == []


# ------------------------------------------------------------------ faults

# What a card without memory fails at, each at several of its calls, and what a launch is.
FAULTS = [
    ("malloc", (1, 2, 9)),
    ("hostAlloc", (1, 4, 6, 9)),
    ("moduleLoad", (1, 3)),
    ("memcpyAsync", (20, 30, 45, 60)),
    ("launchKernel", (3, 10, 20)),
    ("graphLaunch", (1, 2, 4)),
]


@pytest.fixture(scope="module")
def whole_steps() -> list[State]:
    """Return an empty list, in which the states after each step of a run are kept."""
    return []


def fit(model: mr.Model, *callbacks: mr.callbacks.Callback) -> None:
    model.fit(X, Y, batch_size=10, epochs=2, shuffle=False, callbacks=list(callbacks), verbose=0)


@pytest.mark.parametrize(
    ("function", "call"), [(name, call) for name, calls in FAULTS for call in calls]
)
def test_no_memory_in_a_step(
    function: str, call: int, emulated_cuda: Emulate, whole_steps: list[State]
) -> None:
    emulator = emulated_cuda(seed=call)
    (name,) = make_devices((1,))
    if not whole_steps:

        class Keeps(mr.callbacks.Callback):
            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                whole_steps.append(state(self.model))

        fit(make_model([name]), Keeps())
    model = make_model([name])
    start = state(model)
    emulator.fail(function, 2, after=call)
    try:
        fit(model)
    except ResourceExhaustedError:
        # Slots that a first step made and did not use may be gone.
        left = state(model)
        assert any(same(left, each) for each in (start, *whole_steps)) or (
            same(left[: len(start)], start)
        )
    model.fit(X, Y, batch_size=10, verbose=0)
    assert all(np.isfinite(each).all() for each in state(model))


@pytest.mark.parametrize("function", [name for name, _ in FAULTS])
@pytest.mark.parametrize("call", [1, 3])
def test_a_card_that_is_lost(function: str, call: int, emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(seed=call)
    model = make_model(make_devices((1,)))
    before = set(threading.enumerate())
    emulator.fail(function, 700, after=call)
    with pytest.raises(DeviceLostError):
        fit(model)
    with pytest.raises(DeviceLostError):
        model.get_weights()
    with mr.device("CPU:0"):
        assert float(mr.constant(2.0) + 1.0) == 3.0
    ended(set(threading.enumerate()) - before)
