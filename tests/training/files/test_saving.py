"""Weights to a file and back: between any two models of the same layers, on any replicas."""

import re
import signal
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from safetensors.numpy import load_file

import mirrored as mr
from mirrored.variables import DeviceVariable

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
Y = X[:, :2]


class Subclass(mr.Model):
    def __init__(self) -> None:
        super().__init__()
        self.first = mr.layers.Dense(3, "relu")
        self.second = mr.layers.Dense(2)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return self.second(self.first(inputs))


def functional() -> mr.Model:
    x = mr.layers.Input(shape=(4,))
    return mr.Model(x, mr.layers.Dense(2)(mr.layers.Dense(3, "relu")(x)))


KINDS: dict[str, Callable[[], mr.Model]] = {
    "functional": functional,
    "sequential": lambda: mr.Sequential(
        [mr.layers.Input(shape=(4,)), mr.layers.Dense(3, "relu"), mr.layers.Dense(2)]
    ),
    "lazy sequential": lambda: mr.Sequential([mr.layers.Dense(3, "relu"), mr.layers.Dense(2)]),
    "subclass": Subclass,
}


def make(kind: str, replicas: int) -> mr.Model:
    """Return a built model, trained a little, on so many replicas; 0: outside strategies."""
    if replicas == 0:
        model = KINDS[kind]()
        model.compile(mr.optim.SGD(0.1), "mse")
    else:
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            model = KINDS[kind]()
            model.compile(mr.optim.SGD(0.1), "mse")
    model.fit(X, Y, batch_size=3, verbose=0)
    return model


def bits(model: mr.Model) -> list[bytes]:
    return [weight.tobytes() for weight in model.get_weights()]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(source, target, marks=[pytest.mark.slow] if (i + j) % 2 else [])
        for i, source in enumerate(KINDS)
        for j, target in enumerate(KINDS)
    ],
)
def test_between_kinds_of_models(
    source: str, target: str, simulate: Callable[..., Any], tmp_path: Path
) -> None:
    simulate(2)
    saved, loaded = make(source, 1), make(target, 2)
    assert bits(saved) != bits(loaded)
    saved.save_weights(tmp_path / "w.safetensors")
    loaded.load_weights(tmp_path / "w.safetensors")
    assert bits(loaded) == bits(saved)


@pytest.mark.behaviour("one-copy-saved")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((0, 3), (3, 2), (1, 3)),
        *(pytest.param(3, after, marks=pytest.mark.slow) for after in (0, 3)),
    ],
)
def test_between_replicas(
    before: int, after: int, simulate: Callable[..., Any], tmp_path: Path
) -> None:
    """Every copy gets the values, and training goes on from them."""
    simulate(3)
    saved, loaded = make("functional", before), make("functional", after)
    saved.save_weights(str(tmp_path / "w"))
    loaded.load_weights(str(tmp_path / "w"))
    for weight, value in zip(loaded.weights, bits(saved), strict=True):
        copies = loaded.distribute_strategy.experimental_local_results(weight)
        assert [copy.numpy().tobytes() for copy in copies] == [value] * max(after, 1)
    for model in (saved, loaded):
        model.fit(X, Y, batch_size=6, shuffle=False, verbose=0)
    for a, b in zip(saved.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_names_in_the_file(tmp_path: Path) -> None:
    """Places and kinds, so that the counters in automatic names do not matter."""
    functional()
    model = functional()
    model.save_weights(tmp_path / "w")
    tensors = load_file(tmp_path / "w")
    assert sorted(tensors) == [
        "1.dense.bias",
        "1.dense.kernel",
        "2.dense.bias",
        "2.dense.kernel",
    ]
    np.testing.assert_array_equal(tensors["1.dense.kernel"], model.get_weights()[0])


def test_weights_of_one_name_and_shared_ones(tmp_path: Path) -> None:
    class Twins(mr.Model):
        def __init__(self, shared: mr.Variable) -> None:
            super().__init__()
            self.shared = [shared]
            self.a, self.b = mr.Variable(2.0), mr.Variable(3.0)
            self.inner = mr.layers.Dense(1, use_bias=False)
            self.inner.extra = shared

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            return self.inner(inputs) * (self.a + self.b + self.shared[0])

    model, other = Twins(mr.Variable(1.0)), Twins(mr.Variable(0.0))
    model(X)
    other(X)
    other.set_weights([np.zeros(weight.shape) for weight in other.weights])
    model.save_weights(tmp_path / "w")
    assert len(load_file(tmp_path / "w")) == len(model.weights) == 4
    other.load_weights(tmp_path / "w")
    assert bits(other) == bits(model)
    assert [float(each) for each in (*other.shared, other.a, other.b)] == [1.0, 2.0, 3.0]


def test_every_dtype_comes_back(tmp_path: Path) -> None:
    class Mixed(mr.Model):
        def __init__(self, value: int) -> None:
            super().__init__()
            self.count = mr.Variable(value, dtype="int64", trainable=False)
            self.flag = mr.Variable(value > 3, trainable=False)
            self.dense = mr.layers.Dense(2, dtype="float64")

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            return self.dense(inputs)

    saved, loaded = Mixed(2**40), Mixed(0)
    saved(X)
    loaded(X)
    saved.save_weights(tmp_path / "w")
    loaded.load_weights(tmp_path / "w")
    assert bits(saved) == bits(loaded)
    assert int(loaded.count) == 2**40


@pytest.mark.parametrize(
    ("use", "message"),
    [
        # In Keras' words (3.15.1), with the model's name.
        ("save_weights", "You are saving a model that has not yet been built, 'net'."),
        ("load_weights", "You are loading weights into a model that has not yet been built"),
    ],
)
def test_a_model_without_weights_yet(use: str, message: str, tmp_path: Path) -> None:
    model = mr.Sequential([mr.layers.Dense(1)], name="net")
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        getattr(model, use)(tmp_path / "w")
    assert "calling it on some data or by using `build()`" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_which_a_part_is_not_built(tmp_path: Path) -> None:
    """Its own `build` ran, but a layer inside has no weights: a file would lack them."""

    class Own(mr.Model):
        def build(self, input_shape: Any) -> None:
            self.dense = mr.layers.Dense(1)

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            return self.dense(inputs)

    model = Own()
    model.build((None, 4))
    with pytest.raises(ValueError, match="has not yet been built"):
        model.save_weights(tmp_path / "w")
    model(X)
    model.save_weights(tmp_path / "w")
    assert len(load_file(tmp_path / "w")) == 2


def test_an_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "w"
    model = functional()
    path.write_text("old")
    with pytest.raises(FileExistsError, match="Pass overwrite=True to replace it"):
        model.save_weights(path, overwrite=False)
    assert path.read_text() == "old"
    model.save_weights(path)
    model.load_weights(path)
    assert [each.name for each in tmp_path.iterdir()] == ["w"]


ENDINGS = [".h5", ".H5", ".hdf5", ".ckpt", ".npz", ".pt", ".weights.json"]


@pytest.mark.behaviour("weights-ending")
@pytest.mark.parametrize(
    ("use", "ending"),
    [(use, each) for use in ("save_weights", "load_weights") for each in ENDINGS]
    + [("save_weights", ".keras")],
)
def test_names_of_other_formats(use: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{ending}"
    message = rf"another format\. Received: filepath='{path}'\. Use .* in '\.safetensors' or"
    with pytest.raises(ValueError, match=message):
        getattr(functional(), use)(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["", ".safetensors", ".weights.safetensors", ".v1.5", ".bin"])
def test_names_of_no_other_format(ending: str, tmp_path: Path) -> None:
    model = functional()
    model.save_weights(tmp_path / f"model{ending}")
    model.load_weights(tmp_path / f"model{ending}")


@cases("path", [b"w", 3, None], ids=repr)
@cases("use", ["save_weights", "load_weights"])
def test_what_is_no_path(use: str, path: Any) -> None:
    with pytest.raises(TypeError, match=r"A weights file needs a path\. Received: "):
        getattr(functional(), use)(path)


WRITERS: dict[str, Callable[[mr.Model, Path], Any]] = {
    "weights": lambda model, path: model.save_weights(path),
    "Keras' weights": lambda model, path: model.save_weights(f"{path}.weights.h5"),
    "a checkpoint": lambda model, path: mr.train.Checkpoint(model=model).write(path),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_tensors_are_written_one_by_one(write: Any, tmp_path: Path) -> None:
    """So there is never a copy of all of them: of ten of 256 KB there is one at a time."""
    dense = [mr.layers.Dense(256, use_bias=False) for _ in range(10)]
    model = mr.Sequential([mr.layers.Input((256,)), *dense])
    write(model, tmp_path / "first")
    tracemalloc.start()
    try:
        write(model, tmp_path / "second")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 256 << 10 <= peak < 2 * (256 << 10)
    (path,) = tmp_path.glob("second*")
    assert path.stat().st_size > 10 * (256 << 10)


def test_get_and_set_weights(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = functional()
    values = [np.full(weight.shape, i + 1.0) for i, weight in enumerate(model.weights)]
    model.set_weights(values)
    for value, weight in zip(values, model.weights, strict=True):
        for copy in weight.copies:
            np.testing.assert_array_equal(copy.numpy(), value)
    model.get_weights()[0][:] = 9.0  # Copies: the model's are not written through them.
    assert float(model.weights[0][0, 0]) == 1.0
    before = bits(model)
    with pytest.raises(ValueError, match=r"weight shape \(2,\) is not compatible"):
        model.set_weights([*values[:3], np.ones(7)])
    assert bits(model) == before


@pytest.mark.usefixtures("python_interrupts")
def test_an_interrupt_waits_until_all_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = functional()
    model.save_weights(tmp_path / "w")
    saved = bits(model)
    model.set_weights([each + 1.0 for each in model.get_weights()])
    commit = DeviceVariable.commit

    def interrupted(self: Any, *args: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        commit(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(DeviceVariable, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.load_weights(tmp_path / "w")
    assert bits(model) == saved


def test_out_of_memory_while_loading_changes_nothing(simulate: Any, tmp_path: Path) -> None:
    """The second replica has room for some of the new weights, but not for all of them."""
    path = tmp_path / "w.safetensors"
    simulate(2, memory_limit=1)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Input((200,)), mr.layers.Dense(100), mr.layers.Dense(100)])
    model.save_weights(path)
    model.set_weights([weight + 1.0 for weight in model.get_weights()])
    before = bits(model)
    with mr.device("GPU:1"):
        hog = mr.zeros((207_000,))
    with pytest.raises(mr.errors.ResourceExhaustedError, match="GPU:1"):
        model.load_weights(path)
    assert bits(model) == before
    for variable in model.variables:
        first, second = (copy.numpy() for copy in variable.copies)
        np.testing.assert_array_equal(first, second)
    del hog
    model.load_weights(path)
    assert bits(model) != before
