"""Training on an emulated card: checkpoints, memory, and no torn step; ways: `test_ways_to_train`.

A step that fails leaves the model as it was before or after a whole step, and training goes on.
"""

import gc
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from card_training import State, X, Y, ended, make_devices, make_model, same, state, states
from user_optimizers import made_with

import mirrored as mr
from mirrored.errors import (
    DeviceLostError,
    NonFiniteGradientError,
    NonFiniteLossError,
    ResourceExhaustedError,
)
from mirrored.program.streamed import stream_plan
from mirrored.program.streamed.staging import Result

TOLERANCE = 2e-5

Emulate = Callable[..., Any]


def make(names: Sequence[str]) -> mr.Model:
    return make_model(mr.MirroredStrategy(names), widths=(8,))


def test_files_in_the_middle(emulated_cuda: Emulate, tmp_path: Path) -> None:
    """Who goes on from it ends with the bits of who never stopped."""
    emulated_cuda()
    names = make_devices((2,))

    def train(model: mr.Model) -> None:
        model.fit(X[:20], Y[:20], batch_size=10, verbose=0)

    model = make(names)
    train(model)
    mr.random.set_seed(3)  # Of which a file of the model alone has nothing.
    path = mr.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "c")
    model.save(tmp_path / "model.keras")
    train(model)
    other = make(names)
    train(other)
    mr.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path)
    train(other)
    assert same(state(other), state(model))
    with mr.MirroredStrategy(names).scope():
        loaded = mr.keras.models.load_model(tmp_path / "model.keras")
    mr.random.set_seed(3)
    train(loaded)
    assert same(state(loaded), state(model))


def one_epoch(model: mr.Model) -> list[float]:
    x, y = X[:36], Y[:36]  # Of whole batches, which are one recording.
    fitted = model.fit(x, y, batch_size=18, validation_data=(x, y), verbose=0)
    return [value for values in fitted.history.values() for value in values]


@pytest.mark.parametrize(
    "names",
    [
        ["CPU:0", "GPU:0"],
        pytest.param(["GPU:1", "CPU:0", "GPU:0"], marks=pytest.mark.slow),
        pytest.param(["GPU:0", "CPU:0"], marks=pytest.mark.slow),
    ],
)
def test_the_cpu_among_the_replicas(names: list[str], emulated_cuda: Emulate) -> None:
    """Whichever comes first: what it draws, what is summed there, and a loss that is not finite."""
    expected = one_epoch(make(["CPU:0"]))
    emulated_cuda(cards=2)
    model = make(names)
    np.testing.assert_allclose(one_epoch(model), expected, rtol=TOLERANCE, atol=TOLERANCE)
    before = [[copy.numpy() for copy in variable.copies] for variable in model.weights]
    with pytest.raises(NonFiniteLossError):
        model.fit(X * np.nan, Y, batch_size=37, verbose=0)
    for variable, values in zip(model.weights, before, strict=True):
        for copy, value in zip(variable.copies, values, strict=True):
            np.testing.assert_array_equal(copy.numpy(), value)


def test_a_gradient_that_is_not_finite(emulated_cuda: Emulate) -> None:
    emulated_cuda(cards=2)
    model = make(make_devices((1, 1)))
    root = lambda _, outputs: mr.sqrt(mr.abs(outputs - outputs))  # noqa: E731
    model.compile("sgd", root, check_gradients=True)
    before = [[copy.numpy() for copy in variable.copies] for variable in model.weights]
    with pytest.raises(NonFiniteGradientError, match=r"replica 0 .* and replica 1"):
        model.fit(X, Y, batch_size=37, verbose=0)
    for variable, values in zip(model.weights, before, strict=True):
        for copy, value in zip(variable.copies, values, strict=True):
            np.testing.assert_array_equal(copy.numpy(), value)


def test_many_small_fits_take_no_more_memory(emulated_cuda: Emulate) -> None:
    """Also where the garbage collector never comes by."""
    emulator = emulated_cuda()
    model = make(make_devices((1,)))
    used = set()
    gc.disable()
    try:
        for number in range(11):
            model.fit(X[:20], Y[:20], batch_size=10, verbose=0)
            if number >= 6 and number % 2:
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
    model = make(make_devices((2,)))
    model.fit(X[:20], Y[:20], batch_size=10, verbose=0)
    made: list[Any] = []
    for name in ("make_schedule", "plan_stream_memory"):
        monkeypatch.setattr(stream_plan, name, lambda *args: made.append(args))
    model.fit(X[:20], Y[:20], batch_size=10, verbose=0)
    assert made == []


# ------------------------------------------------------------------ faults

# What a card without memory fails at, each at several of its calls, and what a launch is; and at
# which calls else in the slow form.
FAULTS = {
    "malloc": ((9,), (1, 2)),
    "hostAlloc": ((6,), (1, 4, 9)),
    "moduleLoad": ((), (1, 3)),
    "memcpyAsync": ((20,), (30, 45, 60)),
    "launchKernel": ((), (3, 10, 20)),
    "graphLaunch": ((2,), (1, 4)),
}


LOST = {("memcpyAsync", 3), ("launchKernel", 3), ("graphLaunch", 3)}


@pytest.fixture(scope="module")
def whole_steps() -> list[State]:
    """Return an empty list, in which the states after each step of a run are kept."""
    return []


def fit(model: mr.Model, *callbacks: mr.callbacks.Callback) -> None:
    model.fit(X, Y, batch_size=10, epochs=2, shuffle=False, callbacks=list(callbacks), verbose=0)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        pytest.param(name, call, marks=[pytest.mark.slow] if call in slow else [])
        for name, (quick, slow) in FAULTS.items()
        for call in (*quick, *slow)
    ],
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

        fit(make([name]), Keeps())
    model = make([name])
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


# All that asks a card for work, and which a full card may refuse.
LAUNCHES = ("launchKernel", "graphLaunch", "graphUpload", "memcpyAsync", "memcpyPeerAsync")
LAUNCHES += ("memsetAsync", "streamBeginCapture")


def make_loop(model: mr.Model, strategy: mr.MirroredStrategy) -> Callable[[], object]:
    """Return a step of the user's own."""
    loss = mr.losses.SparseCategoricalCrossentropy(True, reduction="sum")

    def step(x: Any, y: Any) -> None:
        with mr.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        variables = model.trainable_variables
        model.optimizer.apply_gradients(
            zip(tape.gradient(value, variables), variables, strict=True)
        )

    @mr.function
    def two_steps(x: Any, y: Any) -> None:
        strategy.run(step, (x, y))
        strategy.run(step, (x, y))

    return lambda: two_steps(X[:10], Y[:10])


@pytest.mark.parametrize(
    ("layout", "every"),
    [
        ("loop", 9),
        ("two", 23),
        *[
            pytest.param(layout, every, marks=pytest.mark.slow)
            for layout, every in {"two": 7, "one": 3, "three": 13, "host": 7, "loop": 2}.items()
        ],
        *[pytest.param(layout, 1, marks=pytest.mark.long) for layout in ("two", "three", "host")],
    ],
)
def test_a_full_card_refuses_all_of_a_step_or_nothing(
    layout: str, every: int, emulated_cuda: Emulate
) -> None:
    """Launches are refused, alternately twice and from then on: variables are of whole steps."""
    emulator = emulated_cuda(cards={"three": 3, "one": 1}.get(layout, 2))
    names = ["CPU:0", "GPU:0"] if layout == "host" else None
    x, y = np.tile(X[:10], (2, 1)), np.tile(Y[:10], 2)

    def make_run() -> tuple[mr.Model, Callable[..., object]]:
        strategy = mr.MirroredStrategy(names)
        model = make_model(strategy, widths=(8,))
        if layout == "loop":
            return model, make_loop(model, strategy)
        options: dict[str, Any] = {"batch_size": 10, "shuffle": False, "verbose": 0}
        return model, lambda *callbacks: model.fit(x, y, callbacks=callbacks, **options)

    model, run = make_run()
    run()
    emulator.fail(LAUNCHES, 2, after=1 << 20)  # To count the calls.
    run()
    count = (1 << 20) - emulator._injected.pop().after
    whole: dict[int, list[State]] = {}
    twin, run_twin = make_run()

    def keep(*_: Any) -> None:
        whole[int(twin.optimizer.iterations)] = states(twin)

    calls = range(count, 0, -every)
    for _ in range(len(calls) + 2):
        run_twin(*[mr.callbacks.LambdaCallback(on_train_batch_end=keep)] * (layout != "loop"))
        keep()
    model, run = make_run()
    run()
    raised = 0
    for call in calls:
        emulator.fail(LAUNCHES, 2, after=call, times=np.inf if call % 2 else 2)
        try:
            run()
        except ResourceExhaustedError:
            raised += 1
        emulator._injected.clear()
        expected = whole[int(model.optimizer.iterations)]
        assert all(map(same, states(model), expected)), call
    assert raised > len(calls) // 8  # Most refusals are asked again, or done another way.
    run()
    assert all(map(same, states(model), whole[int(model.optimizer.iterations)]))


def test_slots_of_a_step_whose_result_an_interrupt_hides(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated_cuda()
    model = make(make_devices((2,)))
    wait = Result.wait

    def interrupted(self: Result) -> bool:
        wait(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Result, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:10], Y[:10], batch_size=10, shuffle=False, verbose=0)
    monkeypatch.undo()
    assert int(model.optimizer.iterations) == 1
    assert any(np.any(slot.numpy()) for slot in model.optimizer.variables[2:])


@pytest.mark.parametrize(
    ("function", "call"),
    [
        pytest.param(name, call, marks=[] if (name, call) in LOST else [pytest.mark.slow])
        for name in FAULTS
        for call in (1, 3)
    ],
)
def test_a_card_that_is_lost(function: str, call: int, emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(seed=call)
    model = make(make_devices((1,)))
    before = set(threading.enumerate())
    emulator.fail(function, 700, after=call)
    with pytest.raises(DeviceLostError):
        fit(model)
    with pytest.raises(DeviceLostError):
        model.get_weights()
    with mr.device("CPU:0"):
        assert float(mr.constant(2.0) + 1.0) == 3.0
    ended(set(threading.enumerate()) - before)


@pytest.mark.parametrize(
    "name", ["scaled", *[pytest.param(each, marks=pytest.mark.slow) for each in ("several", "own")]]
)
def test_optimizers_around_others_and_of_users(name: str, emulated_cuda: Emulate) -> None:
    """Also where a batch is infinite, whose step is left out on the card."""
    x = X[:30].copy()
    x[10:20] *= 1.0 if name == "own" else np.inf

    def made() -> mr.optim.Optimizer:
        if name == "own":
            return made_with(mr.keras)["Means"](0.01)
        inner: mr.optim.Optimizer = mr.optim.Adam(0.01, use_ema=True)
        if name == "several":
            muon = mr.optim.OptimizerMap(inner, {".*kernel": mr.optim.Muon(0.01)})
            inner = mr.optim.MultiOptimizer(muon)
        return mr.optim.LossScaleOptimizer(inner, 8.0)

    def trained(names: list[str]) -> State:
        model = make_model(mr.MirroredStrategy(names), widths=(8,), optimizer=made)
        model.fit(x, Y[:30], batch_size=10, shuffle=False, verbose=0)
        return state(model)

    expected = trained(["CPU:0"])
    emulated_cuda(cards=2)
    for one, other in zip(trained(["GPU:0", "GPU:1"]), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=TOLERANCE)
