"""Whole models in Keras' format: what comes back is what was saved, and training goes on."""

import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import WeightsFileError

pytest.importorskip("h5py")

X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
Y = X[:, :2]
load_model = mr.keras.models.load_model


@mr.keras.utils.register_keras_serializable("tests")
class Own(mr.Model):
    """A subclass with a random stream and numbers of its own."""

    def __init__(self, units: int, **options: Any) -> None:
        super().__init__(**options)
        self.units = units
        self.hidden, self.out = mr.layers.Dense(units), mr.layers.Dense(2)
        self.drop = mr.layers.Dropout(0.5)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return self.out(self.drop(self.hidden(inputs)))


def sequential() -> mr.Model:
    layers = [mr.layers.Dense(3), mr.layers.Dropout(0.5), mr.layers.BatchNormalization()]
    return mr.Sequential([mr.layers.Input((4,)), *layers, mr.layers.Dense(2)])


def functional() -> mr.Model:
    x = mr.layers.Input((4,))
    inner = sequential()
    return mr.Model(x, inner(x) + mr.layers.Dense(2)(x))


MODELS: dict[str, Callable[[], mr.Model]] = {
    "sequential": sequential,
    "functional": functional,
    "subclass": lambda: Own(3),
}


def state(model: mr.Model) -> list[bytes]:
    """Return the bits of all that training changes."""
    return [each.numpy().tobytes() for each in (*model.weights, *model.optimizer.variables)]


def train(model: mr.Model, seed: int) -> None:
    """Train with what global seeds say alike; dropout has streams of its own."""
    mr.random.set_seed(seed)
    model.fit(X, Y, batch_size=5, epochs=2, verbose=0)


@pytest.mark.behaviour("keras-models")
@pytest.mark.parametrize(
    ("kind", "zipped"),
    [("sequential", False), ("functional", None), ("subclass", None)],
)
def test_training_goes_on(kind: str, zipped: Any, simulate: Any, tmp_path: Path) -> None:
    """With the bits of a model that was not saved, in a strategy's scope too."""
    simulate(2)
    path = tmp_path / ("m" if zipped is False else "m.keras")
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model = MODELS[kind]()
        model.compile(mr.optim.Adam(0.01, use_ema=True), "mse", metrics=["mae"])
    train(model, 1)
    model.save(path, zipped=zipped)
    with strategy.scope():
        loaded = load_model(path)
    assert state(loaded) == state(model)
    assert all(len(each.copies) == 2 for each in loaded.weights)
    train(model, 2)
    train(loaded, 2)
    assert state(loaded) == state(model)
    assert loaded.evaluate(X, Y, verbose=0) == model.evaluate(X, Y, verbose=0)


def test_what_is_not_trained_yet(tmp_path: Path) -> None:
    """The optimizer has no slots then; as in Keras it gets them when it is loaded."""
    path = tmp_path / "m.keras"
    model = sequential()
    model.compile(mr.optim.Nadam(0.25), "mse")
    model.save(path)
    loaded = load_model(path)
    assert loaded.optimizer.built
    assert float(loaded.optimizer.learning_rate) == 0.25
    plain = load_model(path, compile=False)
    assert plain.optimizer is None
    np.testing.assert_array_equal(plain.predict(X, verbose=0), model.predict(X, verbose=0))
    train(loaded, 1)
    train(model, 1)
    assert state(loaded) == state(model)
    with pytest.warns(UserWarning, match="saving a model that has not yet been built"):
        Own(3).save(path)
    assert load_model(path).units == 3


def test_the_files_in_it(tmp_path: Path) -> None:
    model = sequential()
    model.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["metadata.json", "config.json", "model.weights.h5"]
        assert json.loads(archive.read("metadata.json"))["keras_version"] == "3.15.1"
        assert json.loads(archive.read("config.json"))["class_name"] == "Sequential"
    other = sequential()
    other.load_weights(tmp_path / "m.keras")
    assert [each.tobytes() for each in other.get_weights()] == [
        each.tobytes() for each in model.get_weights()
    ]


@mr.keras.utils.register_keras_serializable("tests")
class Drawing(mr.layers.Layer):
    """A layer with Keras' generators, whose states are variables."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seeds = [mr.keras.random.SeedGenerator(seed) for seed in (5, 6)]

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        first, _ = self.seeds
        return inputs + mr.keras.random.uniform((4,), seed=first) if training else inputs


def test_generators_of_seeds(simulate: Any, tmp_path: Path) -> None:
    simulate(2)
    model = mr.Sequential([mr.layers.Input((4,)), Drawing()])
    for _ in range(3):
        model(X, training=True)
    model.save(tmp_path / "m.keras")
    with mr.MirroredStrategy().scope():
        (layer,) = load_model(tmp_path / "m.keras").layers
    states = [[copy.numpy().tolist() for copy in each.state.copies] for each in layer.seeds]
    assert states == [[[5, 3]] * 2, [[6, 0]] * 2]


class Words(mr.layers.Layer):
    """A layer with a file of its own."""

    words: tuple[str, ...] = ()

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return inputs

    def save_assets(self, folder: str) -> None:
        Path(folder, "words.txt").write_text("\n".join(self.words))

    def load_assets(self, folder: str) -> None:
        self.words = tuple(Path(folder, "words.txt").read_text().split())


@pytest.mark.parametrize("zipped", [None, False], ids=["file", "folder"])
def test_files_of_layers(zipped: Any, tmp_path: Path) -> None:
    path = tmp_path / ("m" if zipped is False else "m.keras")
    layer = Words()
    model = mr.Sequential([mr.layers.Input((4,)), layer])
    layer.words = ("a", "b")
    model.save(path, zipped=zipped)
    (found,) = load_model(path, custom_objects={"Words": Words}).layers
    assert found.words == ("a", "b")
    with pytest.raises(
        TypeError, match=r"^Could not locate class 'Words'.*`custom_objects={'Words': Words}`"
    ):
        load_model(path)


REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "no ending": ("m", {}, ValueError, "Invalid filepath extension for saving"),
    "Keras 2's": ("m.h5", {}, ValueError, "Keras 2's format, which is not written here"),
    "a folder with an ending": ("m.keras", {"zipped": False}, ValueError, "should not end in"),
    "a format": ("m", {"save_format": "tf"}, ValueError, "`save_format` argument is deprecated"),
    "a hub": ("hf://me/m", {}, ValueError, "saved only to files"),
    "other arguments": ("m.keras", {"signatures": 1}, ValueError, r"not supported: \['signatures'"),
    "no path": (3, {}, TypeError, "A model file needs a path"),
    "no folder": (
        "no/m.keras",
        {},
        FileNotFoundError,
        "The folder for the model file does not exist",
    ),
    "an existing file": ("old.keras", {"overwrite": False}, FileExistsError, "overwrite=True"),
}


@pytest.mark.parametrize(("name", "options", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_written(
    name: Any,
    options: Any,
    error: type[Exception],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.keras").write_text("old")
    with pytest.raises(error, match=text):
        sequential().save(name, **options)
    assert os.listdir() == ["old.keras"]
    assert Path("old.keras").read_text() == "old"


@cases(
    ("name", "text"),
    [
        ("no.keras", "File not found: filepath=.*accessible `.keras` zip file"),
        ("m.h5", "Keras 2's format, which is not read here"),
        ("m", "File format not supported: filepath="),
        (".", "File format not supported: filepath="),
    ],
)
def test_what_is_not_read(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        load_model(name)


def test_models_without_a_configuration(tmp_path: Path) -> None:
    """Nothing is written, and a file that was there stays."""
    path = tmp_path / "m.keras"
    path.write_text("old")
    model = mr.Sequential([mr.layers.Input((4,)), mr.layers.Dense(2, lambda x: x)])
    with pytest.raises(ValueError, match="A lambda has no name"):
        model.save(path)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("name", ["m.keras", "m.weights.h5"])
def test_without_the_package(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which says what to install, before there is a file."""
    monkeypatch.setitem(sys.modules, "h5py", None)
    model = sequential()
    for method in (model.save if name == "m.keras" else model.save_weights, model.load_weights):
        with pytest.raises(
            ImportError, match=r"extra `hdf5`, or run pip install h5py\. .*safetensors"
        ):
            method(tmp_path / name)
    assert [*tmp_path.iterdir()] == []


def test_a_file_of_another_model(tmp_path: Path) -> None:
    path = tmp_path / "m"
    sequential().save(path, zipped=False)
    mr.Sequential([mr.layers.Input((4,)), mr.layers.Dense(9)]).save(tmp_path / "n", zipped=False)
    (tmp_path / "n" / "model.weights.h5").replace(path / "model.weights.h5")
    with pytest.raises(WeightsFileError, match="A total of 3 objects could not be loaded"):
        load_model(path)


def test_models_saved_while_training(tmp_path: Path) -> None:
    save = mr.callbacks.ModelCheckpoint(tmp_path / "{epoch}-{loss:.3f}.keras")
    model = sequential()
    model.compile("adam", "mse")
    history = model.fit(X, Y, epochs=2, verbose=0, callbacks=[save])
    first, last = sorted(tmp_path.iterdir())
    assert first.name == f"1-{history.history['loss'][0]:.3f}.keras"
    assert state(load_model(last)) == state(model)


class HalfLoaded(mr.layers.Layer):
    """Loads one of its two weights by itself."""

    def build(self, input_shape: Any) -> None:
        self.first = self.add_weight(shape=(3, 3), initializer="orthogonal", name="first")
        self.second = self.add_weight(shape=(3, 3), initializer="orthogonal", name="second")

    def call(self, inputs: Any) -> Any:
        return inputs

    def save_own_variables(self, store: Any) -> None:
        store["0"] = self.first

    def load_own_variables(self, store: Any) -> None:
        self.first.assign(store["0"])


def test_initializers_that_take_long_run_only_where_the_file_lacks_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = mr.layers.Dense(3, kernel_initializer="orthogonal")
    model = mr.Sequential([mr.layers.Input((3,)), dense, HalfLoaded()])
    for weight in model.weights:
        weight.assign(mr.ones_like(weight))
    model.save(tmp_path / "m.keras")
    decompositions: list[Any] = []
    compute = np.linalg.qr
    monkeypatch.setattr(np.linalg, "qr", lambda x: (decompositions.append(x), compute(x))[1])
    again = mr.keras.models.load_model(tmp_path / "m.keras", {"HalfLoaded": HalfLoaded})
    *loaded, lacking = again.get_weights()
    assert all((each == 1.0).all() for each in loaded)
    np.testing.assert_allclose(lacking @ lacking.T, np.eye(3), atol=1e-6)
    assert len(decompositions) == 2  # Those of the layer that loads by itself.
