"""Reading weights to the host takes no memory of a device: what fits can be looked at and saved."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.backends.cuda.cuda_backend import CudaBackend

memory = mr.config.experimental
WIDE = 200  # The largest weight has 40,000 elements, more than all else that a step keeps.
RNG = np.random.default_rng(5)
X = RNG.normal(size=(8, WIDE)).astype(np.float32)
Y = RNG.normal(size=(8, 1)).astype(np.float32)
LARGEST = 4 * WIDE * WIDE

Look = Callable[[mr.Model, Path], Any]
LOOKS: dict[str, Look] = {
    "get_weights": lambda model, path: model.get_weights(),
    "save_weights": lambda model, path: model.save_weights(path / "w.safetensors"),
    "a checkpoint": lambda model, path: mr.train.Checkpoint(model=model).save(path / "ckpt"),
    "numpy": lambda model, path: [each.numpy() for each in model.weights],
    "np.asarray": lambda model, path: [np.asarray(each) for each in model.weights],
    "repr": lambda model, path: [repr(each) for each in model.weights],
    "format": lambda model, path: [f"{each}" for each in model.weights],
    "slots": lambda model, path: [each.numpy() for each in model.optimizer.variables],
    "set_weights": lambda model, path: model.set_weights(model.get_weights()),
}


def make() -> mr.Model:
    with mr.MirroredStrategy().scope():
        model = mr.Sequential(
            [
                mr.layers.Input((WIDE,)),
                mr.layers.Dense(WIDE, activation="relu"),
                mr.layers.Dense(1),
            ]
        )
        model.compile(mr.optim.SGD(0.01, momentum=0.9), "mse")
    return model


def fit(model: mr.Model, *callbacks: mr.callbacks.Callback) -> None:
    model.fit(X, Y, batch_size=4, epochs=2, verbose=0, callbacks=list(callbacks))


class Looks(mr.callbacks.Callback):
    """Looks at the weights in every way, and notes what that takes of any device at most."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.taken: dict[str, int] = {}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Look."""
        names = [device.name for device in self.model.distribute_strategy.devices]
        for key, look in LOOKS.items():
            for name in names:
                memory.reset_memory_stats(name)
            before = [memory.get_memory_info(name)["current"] for name in names]
            look(self.model, self.path)
            after = [memory.get_memory_info(name)["peak"] for name in names]
            self.taken[key] = max(b - a for a, b in zip(before, after, strict=True))


@pytest.mark.behaviour("host-reads")
def test_a_look_takes_nothing(simulate: Callable[..., Any], tmp_path: Path) -> None:
    simulate(2)
    looks = Looks(tmp_path)
    fit(make(), looks)
    assert looks.taken == dict.fromkeys(LOOKS, 0)


def test_a_look_at_a_card_takes_nothing(emulated_cuda: Callable[..., Any], tmp_path: Path) -> None:
    emulated_cuda()
    looks = Looks(tmp_path)
    looks.model = make()
    for weight in looks.model.weights:
        for copy in weight.copies:
            copy.pinned()  # As the first recorded step does.
    looks.on_epoch_end(0)
    assert looks.taken == dict.fromkeys(LOOKS, 0)


class HasNoRoom(mr.callbacks.Callback):
    """Holds that there is no room for a copy of the largest weight, and that none is needed."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Use the model; and try to make a copy, which a read on the device is."""
        self.model.evaluate(X, Y, verbose=0)
        self.model.predict(X, verbose=0)
        with pytest.raises(mr.errors.ResourceExhaustedError):
            self.model.weights[0].read_value()


@pytest.mark.behaviour("host-reads")
def test_what_just_fits_is_trained_and_saved(simulate: Callable[..., Any], tmp_path: Path) -> None:
    """There is room for what training takes, and for less than a copy of the largest weight."""
    simulate(1, memory_limit=8)
    model = make()
    fit(model)  # The weights are brought together.
    memory.reset_memory_stats("GPU:0")
    fit(model)
    gc.collect()
    free = (8 << 20) - memory.get_memory_info("GPU:0")["peak"]
    hog = mr.zeros(((free - LARGEST // 2) // 4,))
    looks = Looks(tmp_path)
    fit(model, looks, HasNoRoom())
    assert looks.taken == dict.fromkeys(LOOKS, 0)
    model.evaluate(X, Y, verbose=0)
    model.predict(X, verbose=0)
    model.load_weights(tmp_path / "w.safetensors")
    del hog


@cases("aggregation", ["SUM", "MEAN", "ONLY_FIRST_REPLICA"])
def test_what_is_brought_together_on_reads(aggregation: str, simulate: Callable[..., Any]) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        variable = mr.Variable(
            mr.zeros((1000,)),
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation[aggregation],
        )
    for copy, value in zip(variable.copies, (1.0, 3.0), strict=True):
        copy.assign(np.full(1000, value, np.float32))
        copy.pinned()
        memory.reset_memory_stats(copy.device)
    expected = {"SUM": 4.0, "MEAN": 2.0, "ONLY_FIRST_REPLICA": 1.0}[aggregation]
    np.testing.assert_array_equal(variable.numpy(), np.full(1000, expected, np.float32))
    for copy in variable.copies:
        assert memory.get_memory_info(copy.device) == {"current": 4000, "peak": 4000}
    kept = variable.read_value()  # That one stays as it is.
    variable.assign(np.zeros(1000, np.float32))
    assert float(kept[0]) == expected


def test_what_is_asked_for_meanwhile_comes_later(
    emulated_cuda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may ask the card for a step while this one waits for its copy."""
    emulated_cuda()
    variable = mr.Variable(mr.ones((1000,)))
    variable.pinned()
    wait, asked = CudaBackend.wait_on_host, []

    def asking(self: Any, event: Any) -> None:
        if not asked:
            asked.append(variable.assign_add(mr.ones((1000,))))
        wait(self, event)

    monkeypatch.setattr(CudaBackend, "wait_on_host", asking)
    assert variable.numpy().tolist() == [1.0] * 1000
    assert variable.numpy().tolist() == [2.0] * 1000


@pytest.mark.parametrize("call", [1, 2, 4])
def test_new_weights_without_pinned_memory(call: int, emulated_cuda: Callable[..., Any]) -> None:
    """The host may have none left for one of them: it is copied all the same, and no half is."""
    emulator = emulated_cuda()
    model = make()
    for weight in model.weights:
        weight.copies[0].pinned()
    new = [RNG.normal(size=each.shape).astype(np.float32) for each in model.weights]
    emulator.fail("hostAlloc", 2, after=call)
    model.set_weights(new)
    for weight, value in zip(model.weights, new, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


def test_a_wait_that_is_interrupted_keeps_the_memory_that_is_copied_to(
    emulated_cuda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated_cuda()
    variable = mr.Variable(mr.ones((1000,)))

    def interrupted(self: Any, event: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CudaBackend, "wait_on_host", interrupted)
        with pytest.raises(KeyboardInterrupt):
            variable.numpy()
    assert variable.numpy().tolist() == [1.0] * 1000


def test_a_tape_knows_of_what_was_looked_at() -> None:
    variable = mr.Variable([1.0, 2.0])
    variable.pinned()
    with mr.GradientTape() as tape:
        assert variable.numpy().tolist() == [1.0, 2.0]
    assert tape.watched_variables() == (variable,)
