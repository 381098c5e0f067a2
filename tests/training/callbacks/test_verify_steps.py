"""`VerifySteps` repeats steps, finds devices that compute wrong, and changes nothing else."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import StepDiffersError
from mirrored.program.kernel_calls import Call
from mirrored.program.lowering import HostLowering
from mirrored.training import step_verification

X = np.random.default_rng(0).normal(size=(20, 8)).astype("float32")
Y = X[:, :4]


def _make(**options: Any) -> mr.Model:
    mr.keras.utils.set_random_seed(7)
    with mr.MirroredStrategy(**options).scope():
        model = mr.Sequential(
            [
                mr.layers.Input((8,)),
                mr.layers.Dense(16, activation="relu", name="d"),
                mr.layers.Dropout(0.2),
                mr.layers.BatchNormalization(),
                mr.layers.Dense(4, name="e"),
            ]
        )
        model.compile(mr.optim.Adam(0.01), "mse", metrics=["mae"])
    return model


def _trained(simulate: Any, devices: int, callbacks: list[Any], **options: Any) -> list[Any]:
    mr.config.experimental.reset_devices()
    simulate(devices)
    model = _make(**options)
    history = model.fit(X, Y, batch_size=8, epochs=3, verbose=0, callbacks=callbacks)
    values = [variable.numpy() for variable in [*model.variables, *model.optimizer.variables]]
    return [*values, mr.random.uniform((3,)).numpy(), *history.history.values()]


@pytest.mark.parametrize(("devices", "options"), [(1, {}), (3, {}), (2, {"replicas": 4})])
def test_a_verified_run_has_the_bits_of_another(
    devices: int, options: dict[str, Any], simulate: Any
) -> None:
    plain = _trained(simulate, devices, [], **options)
    verified = _trained(simulate, devices, [mr.callbacks.VerifySteps(every=2)], **options)
    for expected, value in zip(plain, verified, strict=True):
        np.testing.assert_array_equal(value, expected)


def _break(
    monkeypatch: pytest.MonkeyPatch, device: str, fails: Callable[[int], bool] = lambda _: True
) -> None:
    """Let a device flip a bit of each value of the first product."""
    lower: Any = HostLowering._node
    runs = [0]

    def flip(out: Any) -> None:
        runs[0] += 1
        if fails(runs[0]):
            out.view(np.uint32)[...] ^= 1 << 22

    def broken(lowering: Any, node: Any, backend: Any) -> list[Call]:
        calls: list[Call] = lower(lowering, node, backend)
        own = node.device.short_name == device and node.op.name == "MatMul"
        if own and node.inputs[1].spec.shape == (8, 16):
            calls = [*calls, Call(flip, (lowering.arrays.of(node.output),))]
        return calls

    monkeypatch.setattr(HostLowering, "_node", broken)


@pytest.mark.behaviour("verify-steps")
@pytest.mark.parametrize(
    ("devices", "wrong", "found"),
    [(2, "GPU:1", None), (3, "GPU:0", "GPU:0"), (3, "GPU:1", "GPU:1"), (4, "GPU:2", "GPU:2")],
)
def test_a_device_that_is_always_wrong_is_named(
    devices: int, wrong: str, found: str | None, simulate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(devices)
    model = _make()
    _break(monkeypatch, wrong)
    with pytest.raises(StepDiffersError, match="first in the result of") as caught:
        model.fit(X, Y, batch_size=20, epochs=6, verbose=0, callbacks=mr.callbacks.VerifySteps(4))
    error = caught.value
    assert (error.step, error.wrong_device) == (4, found)
    assert wrong in error.devices
    assert int(model.optimizer.iterations.numpy()) == 3
    before = model.get_weights()
    monkeypatch.undo()
    model.fit(X, Y, batch_size=20, epochs=1, verbose=0)
    assert not np.array_equal(before[0], model.get_weights()[0])


@pytest.mark.parametrize(
    ("run", "text"),
    [(2, "A third run agrees with the step."), (3, "A third run agrees with the repetition.")],
)
def test_an_error_of_a_moment_is_found_on_one_device(
    run: int, text: str, simulate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(1)
    model = _make()
    _break(monkeypatch, "GPU:0", lambda count: count == run)  # The first step is not repeated.
    with pytest.raises(StepDiffersError, match=text) as caught:
        model.fit(X, Y, batch_size=20, epochs=2, verbose=0, callbacks=mr.callbacks.VerifySteps(2))
    assert caught.value.devices == ("GPU:0", "GPU:0")
    assert caught.value.step == 2
    assert caught.value.variable
    assert int(model.optimizer.iterations.numpy()) == 1


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


@pytest.mark.parametrize("case", ["eager", "python"])
def test_steps_that_cannot_be_repeated_are_refused_before_the_first(
    case: str, simulate: Any
) -> None:
    simulate(1)
    model = _make()
    if case == "eager":
        model.run_eagerly = True
    else:
        model.train_step = _calls_python.__get__(model)
    before = model.get_weights()
    with pytest.raises(ValueError, match="`VerifySteps` repeats"):
        model.fit(X, Y, verbose=0, callbacks=mr.callbacks.VerifySteps(1))
    for value, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert int(model.optimizer.iterations.numpy()) == 0
