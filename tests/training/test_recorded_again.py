"""A step that was recorded and planned stays so: later calls take its memory again, and run it."""

import itertools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import ResourceExhaustedError
from mirrored.program import executor as factory
from mirrored.program import program as programs

memory = mr.config.experimental
X = np.linspace(-1, 1, 240, dtype=np.float32).reshape(-1, 1)
Y = 2 * X + 1
PLAIN: dict[str, Any] = {"batch_size": 48, "verbose": 0, "shuffle": False}
MOST_CALLS = 330


class Hook(mr.callbacks.Callback):
    """Calls a function at the beginning, or at the end, of each epoch."""

    def __init__(self, function: Callable[[], Any], *, first: bool = False) -> None:
        super().__init__()
        self.function, self.first = function, first

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self.first:
            self.function()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if not self.first:
            self.function()


def make(features: int = 1) -> Any:
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((features,)), mr.layers.Dense(1)])
        model.compile(mr.optim.SGD(0.05, momentum=0.5), "mse")
    return model


def in_use() -> list[int]:
    devices = mr.config.list_logical_devices()
    return [memory.get_memory_info(each)["current"] for each in devices]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made anew: schedules, plans, and calls of kernels on arrays."""
    notes: list[str] = []

    def noted(module: Any, name: str) -> Callable[..., Any]:
        original = getattr(module, name)

        def make(*args: Any, **kwargs: Any) -> Any:
            notes.append(name)
            return original(*args, **kwargs)

        return make

    modules = {"make_schedule": factory, "plan_memory": programs, "HostLowering": programs}
    for name, module in modules.items():
        monkeypatch.setattr(module, name, noted(module, name))
    return notes


@pytest.mark.parametrize("replicas", [1, 4])
def test_calls_before_the_first_step_of_a_second_fit(
    replicas: int, simulate: Callable[..., Any]
) -> None:
    simulate(replicas)
    model = make()
    model.fit(X, Y, **PLAIN)
    calls = 0
    before: list[int] = []

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call"
        if event == "call" and frame.f_code is programs.Program.run.__code__:
            before.append(calls)

    sys.setprofile(count)
    try:
        model.fit(X, Y, **PLAIN)
    finally:
        sys.setprofile(None)
    assert 0 < before[0] < MOST_CALLS
    assert calls < 2 * MOST_CALLS


@pytest.mark.parametrize("replicas", [1, 4])
def test_memory_is_given_back_and_taken_again(
    replicas: int, simulate: Callable[..., Any], made: list[str]
) -> None:
    simulate(replicas)
    model = make()
    model.fit(X, Y, validation_data=(X, Y), **PLAIN)
    assert set(made) == {"make_schedule", "plan_memory", "HostLowering"}
    made.clear()
    between = in_use()
    peaks = []
    for _ in range(2):
        for device in model.distribute_strategy.devices:
            memory.reset_memory_stats(device.name)
        model.fit(X, Y, validation_data=(X, Y), **PLAIN)
        model.evaluate(X, Y, batch_size=48, verbose=0)
        assert in_use() == between
        names = [device.name for device in model.distribute_strategy.devices]
        peaks.append([memory.get_memory_info(name)["peak"] for name in names])
    assert made == []
    assert peaks[0] == peaks[1]
    assert all(peak > held for peak, held in zip(peaks[0], between[1:], strict=True))


@pytest.mark.slow
def test_large_memory_goes_back_to_the_system(simulate: Callable[..., Any]) -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    simulate(1)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(4), mr.layers.Dense(2000), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    x = np.ones((5000, 4), np.float32)
    large: dict[str, Any] = {"batch_size": 5000, "verbose": 0}
    losses = [model.fit(x, x[:, :1], **large).history["loss"]]
    before, during = resident(), []
    for _ in range(2):
        look = Hook(lambda: during.append(resident()))
        losses.append(model.fit(x, x[:, :1], callbacks=look, **large).history["loss"])
        assert resident() - before < 1 << 24
    assert min(during) - before > 1 << 25  # One of its layers' outputs alone has 40 MB.
    assert np.isfinite(losses).all()


def test_no_room_when_it_is_to_be_taken_again(simulate: Callable[..., Any]) -> None:
    simulate(2, memory_limit=1)
    x = np.ones((2000, 64), np.float32)
    options: dict[str, Any] = {"batch_size": 2000, "verbose": 0}
    model, reference = make(64), make(64)
    for each in (model, reference):
        each.set_weights([np.ones((64, 1)), np.zeros(1)])
        each.fit(x, x[:, :1], **options)
    weights = model.get_weights()
    info = memory.get_memory_info("GPU:1")
    with mr.device("GPU:1"):
        full = mr.zeros(((1 << 20) - info["current"] - 100_000) // 4)
    held = in_use()
    for _ in range(2):
        with pytest.raises(ResourceExhaustedError, match="the step's memory for 1000 examples"):
            model.fit(x, x[:, :1], **options)
        assert in_use() == held
        for before, after in zip(weights, model.get_weights(), strict=True):
            np.testing.assert_array_equal(before, after)
    model.fit(x[:20], x[:20, :1], **options)  # As much as it needs, not as much as it once had.
    reference.fit(x[:20], x[:20, :1], **options)
    del full
    for each in (model, reference):
        each.fit(x, x[:, :1], **options)
    for one, other in zip(model.get_weights(), reference.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_memory_that_grows_binds_and_plans_nothing(
    simulate: Callable[..., Any], made: list[str]
) -> None:
    """Programs share one piece of memory; whoever was bound to a smaller one is bound again."""
    simulate(2)
    model, reference = make(), make()
    reference.set_weights(model.get_weights())
    sizes = [(8, 24), (24, 24), (96, 96), (8, 24), (96, 96)]
    for size, count in sizes:
        model.fit(X[:count], Y[:count], batch_size=size, verbose=0, shuffle=False)
    assert made.count("plan_memory") == 3
    assert made.count("HostLowering") == 4
    reference.run_eagerly = True
    for size, count in sizes:
        reference.fit(X[:count], Y[:count], batch_size=size, verbose=0, shuffle=False)
    for one, other in zip(model.get_weights(), reference.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_evaluate_and_fit_inside_of_fit(simulate: Callable[..., Any], made: list[str]) -> None:
    simulate(2)
    model, reference = make(), make()
    reference.set_weights(model.get_weights())
    model.fit(X, Y, **PLAIN)
    model.evaluate(X, Y, batch_size=48, verbose=0)
    made.clear()
    between = in_use()
    inside: list[float] = []

    def look() -> None:
        inside.append(model.evaluate(X, Y, batch_size=48, verbose=0))
        model.fit(X, Y, **PLAIN)
        assert in_use() != between

    model.fit(X, Y, epochs=2, callbacks=Hook(look), **PLAIN)
    assert made == []
    assert in_use() == between
    reference.fit(X, Y, epochs=5, **PLAIN)
    assert inside[0] > inside[1]
    for one, other in zip(model.get_weights(), reference.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_compiled_anew_within_fit(simulate: Callable[..., Any]) -> None:
    simulate(1)
    model = make()
    model.fit(X, Y, **PLAIN)
    between = in_use()

    def compile() -> None:
        model.compile(mr.optim.SGD(0.05), "mse")

    look = Hook(compile, first=True)
    model.fit(X, Y, callbacks=look, **PLAIN)
    model.fit(X, Y, **PLAIN)
    assert in_use()[1] <= between[1]


def test_predictions_of_several_threads(simulate: Callable[..., Any]) -> None:
    """They share one program, which runs for one of them at a time."""
    simulate(2)
    model = make(64)
    batches = [np.full((300, 64), value, np.float32) for value in range(4)]
    expected = [model.predict(each, batch_size=50, verbose=0) for each in batches]
    found: list[Any] = [None] * len(batches)

    def predict(i: int) -> None:
        for _ in range(20):
            found[i] = model.predict(batches[i], batch_size=50, verbose=0)
            np.testing.assert_array_equal(found[i], expected[i])

    threads = [threading.Thread(target=predict, args=(i,)) for i in range(len(batches))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for one, other in itertools.zip_longest(found, expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_has_memory_of_its_own(simulate: Callable[..., Any]) -> None:
    simulate(1)
    model = make(64)
    x = np.random.default_rng(0).normal(size=(6000, 64)).astype(np.float32)
    expected = model.predict(x, batch_size=6000, verbose=0)
    pid = os.fork()
    if pid == 0:
        model.predict(x * 0, batch_size=6000, verbose=0)
        os._exit(0)
    found = [model.predict(x, batch_size=6000, verbose=0) for _ in range(20)]
    assert os.waitpid(pid, 0)[1] == 0
    for each in found:
        np.testing.assert_array_equal(each, expected)
