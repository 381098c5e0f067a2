"""`VerifySteps` repeats steps, finds devices that compute wrong, and changes nothing else.

Devices are simulated GPUs, or emulated cards, whose steps are launched and summed by NCCL.
"""

import itertools
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import needs_mpi
from wrong_devices import wrong_lowering

import mirrored as mr
from mirrored.distribute.distributed_variables import copies_of
from mirrored.errors import ResourceExhaustedError, StepDiffersError
from mirrored.program.lowering import HostLowering
from mirrored.training import step_verification

X = np.random.default_rng(0).normal(size=(20, 8)).astype("float32")
Y = X[:, :4]


def _make(policy: str | None = None, **options: Any) -> mr.Model:
    mr.keras.utils.set_random_seed(7)
    options.setdefault("deterministic", "replicas" not in options)
    with mr.MirroredStrategy(**options).scope():
        model = mr.Sequential(
            [
                mr.layers.Input((8,)),
                mr.layers.Dense(16, activation="relu", name="d", dtype=policy),
                mr.layers.Dropout(0.2),
                mr.layers.BatchNormalization(),
                mr.layers.Dense(4, name="e", dtype=policy),
            ]
        )
        model.compile(mr.optim.Adam(0.01), "mse", metrics=["mae"])
    return model


Start = Callable[[int], Callable[..., None]]


@pytest.fixture(params=["simulated", "cards"])
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Return ``start(count)``, which makes devices, and returns what breaks one of them.

    ``break_device(name, fails)`` lets it flip bits of the first product of a step, in the runs of
    it whose numbers `fails` accepts.
    """
    if request.param == "cards":
        emulate = request.getfixturevalue("emulated_cuda")
        return lambda count: partial(_break_card, monkeypatch, emulate(cards=count))
    simulate = request.getfixturevalue("simulate")
    return lambda count: (simulate(count), partial(_break_simulated, monkeypatch))[1]


def _break_simulated(
    monkeypatch: pytest.MonkeyPatch, device: str, fails: Callable[[int], bool]
) -> None:
    monkeypatch.setattr(HostLowering, "_node", wrong_lowering(device, (8, 16), fails))


def _break_card(
    monkeypatch: pytest.MonkeyPatch,
    emulator: Any,
    device: str,
    fails: Callable[[int], bool],
) -> None:
    from emulated_cuda import cublas

    run, runs = cublas._Product.run, itertools.count(1)

    def broken(product: Any) -> None:
        run(product)
        own = emulator.addresses.region(product.c.address).card == int(device[-1])
        if own and (product.a.rows, product.a.columns) == (16, 8) and fails(next(runs)):
            values = product.c.view()
            place = values.argmax()  # ReLU lets it pass.
            values.flat[place] = (values.flat[place].view(np.uint32) ^ (1 << 22)).view(np.float32)

    monkeypatch.setattr(cublas._Product, "run", broken)


def _trained(callbacks: list[Any], **options: Any) -> list[Any]:
    model = _make(**options)
    history = model.fit(X, Y, batch_size=8, epochs=2, verbose=0, callbacks=callbacks)
    variables = [*model.variables, *model.optimizer.variables]
    values = [copy.numpy() for variable in variables for copy in copies_of(variable)]
    return [*values, mr.random.uniform((3,)).numpy(), *history.history.values()]


@pytest.mark.parametrize(
    ("devices", "options"),
    [
        (1, {}),
        (2, {}),
        (2, {"replicas": 4}),
        (2, {"policy": "mixed_bfloat16"}),
        pytest.param(3, {}, marks=pytest.mark.long),
    ],
)
def test_a_verified_run_has_the_bits_of_another(
    devices: int, options: dict[str, Any], start: Start
) -> None:
    start(devices)
    plain = _trained([], **options)
    verified = _trained([mr.callbacks.VerifySteps(every=2)], **options)
    for expected, value in zip(plain, verified, strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.behaviour("verify-steps")
@pytest.mark.parametrize(
    ("devices", "wrong", "found"),
    [
        (2, "GPU:1", None),
        (3, "GPU:0", "GPU:0"),
        pytest.param(3, "GPU:1", "GPU:1", marks=pytest.mark.long),
        pytest.param(4, "GPU:2", "GPU:2", marks=pytest.mark.long),
    ],
)
def test_a_device_that_is_always_wrong_is_named(
    devices: int, wrong: str, found: str | None, start: Start
) -> None:
    break_device, broken = start(devices), [True]
    model = _make()
    break_device(wrong, lambda _: bool(broken))
    with pytest.raises(StepDiffersError, match="first in the result of MatMul") as caught:
        model.fit(X, Y, batch_size=20, epochs=6, verbose=0, callbacks=mr.callbacks.VerifySteps(4))
    error = caught.value
    assert (error.step, error.wrong_device) == (4, found)
    assert wrong in error.devices
    assert len(set(error.devices)) == 2
    assert int(model.optimizer.iterations.numpy()) == 3
    before = model.get_weights()
    broken.clear()
    model.fit(X, Y, batch_size=20, epochs=1, verbose=0)
    assert not np.array_equal(before[0], model.get_weights()[0])


# Runs of a product: of a step that is not repeated, of the repetition, of the step, of a third run.
@pytest.mark.parametrize(
    ("devices", "run", "text", "places"),
    [
        (1, 2, "A third run agrees with the step.", ("GPU:0", "GPU:0")),
        (1, 3, "A third run agrees with the repetition.", ("GPU:0", "GPU:0")),
        (2, 2, "A third run agrees with the step.", ("GPU:0", "GPU:1")),
        (2, 3, "A third run agrees with the repetition.", ("GPU:0", "GPU:1")),
        (3, 3, "A third run agrees with the repetition.", ("GPU:0", "GPU:1")),
    ],
)
def test_an_error_of_a_moment_is_found(
    devices: int, run: int, text: str, places: tuple[str, str], start: Start
) -> None:
    break_device = start(devices)
    model = _make()
    break_device("GPU:0", lambda count: count == run)
    with pytest.raises(StepDiffersError, match=text) as caught:
        model.fit(X, Y, batch_size=20, epochs=2, verbose=0, callbacks=mr.callbacks.VerifySteps(2))
    assert caught.value.devices == places
    assert caught.value.step == 2
    assert caught.value.variable
    assert int(model.optimizer.iterations.numpy()) == 1


@pytest.mark.parametrize(("wrong", "devices"), [("GPU:0", ("GPU:0", "GPU:1")), ("GPU:2", None)])
def test_cards_of_another_name_repeat_their_own_work(
    wrong: str,
    devices: tuple[str, str] | None,
    emulated_cuda: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from emulated_cuda import Card

    cards = [Card(pci_bus=1), Card(pci_bus=2), Card("Emulated B200", pci_bus=3)]
    emulator, model = emulated_cuda(cards=cards), _make()
    _break_card(monkeypatch, emulator, wrong, lambda _: True)
    with nullcontext() if devices is None else pytest.raises(StepDiffersError) as caught:
        model.fit(X, Y, batch_size=20, verbose=0, callbacks=mr.callbacks.VerifySteps(1))
    if devices is not None:
        assert (caught.value.devices, caught.value.wrong_device) == (devices, None)


def test_where_there_is_no_room_no_step_is_taken(emulated_cuda: Any) -> None:
    emulated_cuda(cards=2, memory=64 << 20)
    with mr.MirroredStrategy(deterministic=True).scope():
        model = mr.Sequential([mr.layers.Input((1000,)), mr.layers.Dense(1000)])
        model.compile("adam", "mse")
    data = np.ones((2, 1000), np.float32)
    with pytest.raises(ResourceExhaustedError):
        model.fit(data, data, verbose=0, callbacks=mr.callbacks.VerifySteps())
    assert int(model.optimizer.iterations.numpy()) == 0
    model.fit(data, data, verbose=0)


class _WithEmptyWeight(mr.layers.Dense):
    """A layer with an empty weight, after which the kernel begins in the same place."""

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.empty = self.add_weight(name="empty", shape=(0,))

    def call(self, inputs: Any) -> Any:
        return super().call(inputs) + mr.reduce_sum(self.empty)


def test_a_variable_after_an_empty_one_is_compared(
    simulate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Input((8,)), _WithEmptyWeight(4, use_bias=False)])
        model.compile("sgd", "mse")
    # The gradient alone is wrong, and not the loss.
    monkeypatch.setattr(HostLowering, "_node", wrong_lowering("GPU:1", (10, 4)))
    with pytest.raises(StepDiffersError, match=r"other bits of .*kernel"):
        model.fit(X, Y, batch_size=20, verbose=0, callbacks=mr.callbacks.VerifySteps(1))


@needs_mpi
@pytest.mark.parametrize(
    "several", ["two_workers", pytest.param("three_workers", marks=pytest.mark.slow)]
)
def test_all_workers_agree(several: str, request: pytest.FixtureRequest) -> None:
    first, *others = request.getfixturevalue(several)["verified"]
    assert all(other == first for other in others)
    same, (step, devices, wrong, text) = first
    assert same
    assert "Received on worker 1: other bits of " in text
    assert (step, set(devices), wrong) == (4, {"GPU:0", "GPU:1"}, None)


def test_a_resumed_run_repeats_the_steps_of_the_whole(
    simulate: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    simulate(1)
    repeated: list[tuple[int, int]] = []
    verified: Any = step_verification._Step.verified

    def noted(step: Any, feed: Any, report: Any, number: int) -> Any:
        repeated.append((number, int(model.optimizer.iterations.numpy()) + 1))
        return verified(step, feed, report, number)

    def stop(batch: int, logs: Any) -> None:
        if batch == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(step_verification._Step, "verified", noted)
    for more in ([mr.callbacks.LambdaCallback(on_train_batch_end=stop)], []):
        model = _make()
        backup = mr.callbacks.BackupAndRestore(str(tmp_path), save_freq=1)
        callbacks = [backup, mr.callbacks.VerifySteps(5), *more]
        with pytest.raises(KeyboardInterrupt) if more else nullcontext():
            model.fit(X, Y, batch_size=4, epochs=2, verbose=0, callbacks=callbacks)
    assert repeated == [(5, 5), (10, 10)]


@pytest.mark.parametrize("every", [0, -1, 1.5, True, "epoch"])
def test_what_is_no_number_of_steps(every: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="every"):
        mr.callbacks.VerifySteps(every=every)


def _calls_python(self: Any, data: Any) -> dict[str, Any]:
    x, y = data
    with mr.GradientTape() as tape:
        y = mr.ensure_shape(mr.py_function(lambda v: v, [y], mr.float32), y.shape)
        loss = mr.reduce_mean((self(x, training=True) - y) ** 2)
    gradients = tape.gradient(loss, self.trainable_variables)
    self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
    return {"loss": loss}


@pytest.mark.parametrize("case", ["eager", "python", "any order"])
def test_steps_that_cannot_be_repeated_are_refused_before_the_first(
    case: str, request: pytest.FixtureRequest
) -> None:
    if case == "any order":
        request.getfixturevalue("emulated_cuda")(cards=2)
    else:
        request.getfixturevalue("simulate")(1)
    model = _make(deterministic=False)
    if case == "eager":
        model.run_eagerly = True
    elif case == "python":
        model.train_step = _calls_python.__get__(model)
    before = model.get_weights()
    with pytest.raises(ValueError, match=r"`VerifySteps` (repeats|needs)"):
        model.fit(X, Y, verbose=0, callbacks=mr.callbacks.VerifySteps(1))
    for value, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert int(model.optimizer.iterations.numpy()) == 0
