"""Weights in Keras' layout: what Keras wrote is read, and what is written has the same places."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import WeightsFileError
from tests.support import keras_models
from tests.support.keras_files import FOLDER, unpacked

h5py = pytest.importorskip("h5py")

OUTPUTS = json.loads((FOLDER / "outputs.json").read_text())
OPTIMIZERS = json.loads((FOLDER / "optimizers.json").read_text())


def places(path: Path) -> dict[str, Any]:
    """Return what stands where in a file, without the values and our checksums of them."""
    found: dict[str, Any] = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, each: found.update(
                {name: (sorted({*each.attrs} - {"crc32"}), getattr(each, "shape", None))}
            )
        )
    return found


def bits(model: mr.Model) -> list[bytes]:
    state = [*model.weights, *(model.optimizer.variables if model.optimizer else ())]
    return [each.numpy().tobytes() for each in state]


@pytest.mark.behaviour("keras-weights")
@pytest.mark.parametrize("name", keras_models.MODELS)
def test_what_keras_wrote(name: str, tmp_path: Path) -> None:
    """Outputs are Keras', and so are those after a step, which Adam's state decides."""
    theirs = unpacked(f"{name}.weights.h5", tmp_path)
    if name == "zoo":  # A file of the whole model is read besides.
        model = mr.keras.models.load_model(unpacked("zoo.keras", tmp_path))
    else:
        model = keras_models.compiled(name, mr.keras)
        model.load_weights(theirs)
    assert int(model.optimizer.iterations) == 2
    for when in ("before", "after"):
        outputs = model.predict(keras_models.inputs_of(name), verbose=0)
        np.testing.assert_allclose(outputs, OUTPUTS[name][when], rtol=2e-5, atol=1e-5)
        keras_models.step(model, 3)
    model.save_weights(tmp_path / "ours.weights.h5")
    assert places(tmp_path / "ours.weights.h5") == places(theirs)


@pytest.mark.behaviour("keras-weights")
@cases("name", OPTIMIZERS)
def test_the_order_of_what_optimizers_keep(name: str) -> None:
    """And its values, after two steps of Keras' own."""
    optimizer = keras_models.optimizers(mr.keras)[name]
    keras_models.dense(mr.keras, optimizer)
    kept, wanted = optimizer.variables, OPTIMIZERS[name]
    assert [each.shape for each in kept] == [np.shape(each) for each in wanted]
    for variable, value in zip(kept, wanted, strict=True):
        np.testing.assert_allclose(variable.numpy(), value, rtol=1e-5, atol=1e-6)


def test_on_replicas(simulate: Any, tmp_path: Path) -> None:
    """All copies are the file's, and training goes on with the bits of the model that was saved."""
    simulate(3)
    models = []
    for seed in (1, 2):
        with mr.MirroredStrategy().scope():
            mr.random.set_seed(seed)
            models.append(keras_models.subclass(mr.keras))
            models[-1].compile(mr.optim.Adam(use_ema=True), "mse")
        models[-1].fit(keras_models.X, np.ones((3, 2)), verbose=0)
    saved, loaded = models
    saved.save_weights(tmp_path / "x.weights.h5")
    assert bits(loaded) != bits(saved)
    loaded.load_weights(tmp_path / "x.weights.h5")
    for weight in loaded.weights:
        assert len({each.numpy().tobytes() for each in weight.copies}) == 1
    for model in models:
        model.fit(keras_models.X, np.ones((3, 2)), epochs=2, shuffle=False, verbose=0)
    assert bits(loaded) == bits(saved)


def test_an_optimizer_that_is_not_built_and_slots_that_are_missing(tmp_path: Path) -> None:
    """As in Keras, whose optimizers have slots for what got no gradient too."""
    path = tmp_path / "x.weights.h5"
    models = [mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(2)]) for _ in range(3)]
    for model in models:
        model.compile("adam", "mse")
    built, other, fresh = models
    kernel = built.weights[0]
    built.optimizer.apply([np.ones((2, 2), np.float32)], [kernel])
    built.save_weights(path)
    with h5py.File(path) as file:
        state = [np.array(file[f"optimizer/vars/{i}"]) for i in range(6)]
    assert [int(state[0]), state[2].shape, state[4].tolist()] == [1, (2, 2), [0.0, 0.0]]
    with pytest.warns(UserWarning, match="it has 2 variables whereas the saved optimizer has 6"):
        fresh.load_weights(path)
    assert int(fresh.optimizer.iterations) == 0
    np.testing.assert_array_equal(fresh.weights[0], kernel)
    other.optimizer.build(other.weights)
    other.load_weights(path)
    assert int(other.optimizer.iterations) == 1
    for model in (built, other):
        gradients = [np.ones((2, 2), np.float32), np.ones(2, np.float32)]
        model.optimizer.apply(gradients, model.weights)
    assert bits(built) == bits(other)


def two(units: int) -> mr.Model:
    return mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(3), mr.layers.Dense(units)])


def test_layers_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "x.weights.h5"
    saved, other = two(4), two(5)
    saved.save_weights(path)
    before = bits(other)
    text = (
        r"A total of 1 objects could not be loaded.*variable.shape=\(3, 5\), Received: value.shape"
    )
    with pytest.raises(WeightsFileError, match=f"(?s)x.weights.h5' does not fit the model. {text}"):
        other.load_weights(path)
    assert bits(other) == before
    with pytest.warns(UserWarning, match=f"(?s)^{text}"):
        other.load_weights(path, skip_mismatch=True)
    assert bits(other) == [*bits(saved)[:2], *before[2:]]
    third = two(4)
    before = bits(third)
    third.load_weights(path, objects_to_skip=[third.layers[0]])
    assert bits(third) == [*before[:2], *bits(saved)[2:]]
    with pytest.raises(ValueError, match="`by_name` only supports"):
        third.load_weights(path, by_name=True)
    with pytest.raises(ValueError, match="Received: max_shard_size=1"):
        saved.save_weights(tmp_path / "y.weights.h5", max_shard_size=1)
    saved.save_weights(tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match=r"`skip_mismatch` .* end in '\.weights\.h5'"):
        saved.load_weights(tmp_path / "w.safetensors", skip_mismatch=True)


class Counting(mr.layers.Dense):
    calls = 0

    def save_own_variables(self, store: Any) -> None:
        super().save_own_variables(store)
        store["calls"], store["gone"] = self.calls, [1]
        assert [*store] == ["0", "1", "calls", "gone"] == [*store.keys()]
        assert "gone" in store
        assert int(store["calls"]) == self.calls
        del store["gone"]

    def load_own_variables(self, store: Any) -> None:
        assert sorted(store.keys()) == ["0", "1", "calls"]
        assert "calls" in store
        super().load_own_variables({key: store[key] for key in ("0", "1")})
        self.calls = int(store["calls"])
        if self.calls == 13:
            raise ValueError("unlucky")


def test_layers_that_save_themselves(tmp_path: Path) -> None:
    models = [
        mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(2), Counting(2)]) for _ in range(2)
    ]
    for calls in (7, 13):
        models[0].layers[1].calls = calls
        models[0].save_weights(tmp_path / f"{calls}.weights.h5")
    models[1].load_weights(tmp_path / "7.weights.h5")
    assert bits(models[1]) == bits(models[0])
    assert models[1].layers[1].calls == 7
    models[1].set_weights([np.zeros(each.shape) for each in models[1].weights])
    with pytest.raises(WeightsFileError, match="unlucky"):
        models[1].load_weights(tmp_path / "13.weights.h5")
    assert not any(np.any(each) for each in models[1].get_weights())
    with pytest.raises(ValueError, match="expected 2 variables, but received 1 variables"):
        models[1].layers[0].load_own_variables({"0": np.zeros((2, 2))})
    models[0].layers[1].calls = "many"
    with pytest.raises(ValueError, match=r"numbers\. Received: 'layers/counting' with 'calls'"):
        models[0].save_weights(tmp_path / "8.weights.h5")
    assert sorted(each.name[:2] for each in tmp_path.iterdir()) == ["13", "7."]


def test_weights_that_no_path_leads_to(tmp_path: Path) -> None:
    """Keras looks into no attribute that every layer has; what is there must not be lost."""
    model = two(1)
    model.layers[0].activity_regularizer = hidden = mr.layers.Dense(1, name="hidden")
    hidden.build((None, 3))
    with pytest.raises(
        ValueError, match=r"of other layers, \['hidden/kernel:0', 'hidden/bias:0'\]"
    ):
        model.save_weights(tmp_path / "x.weights.h5")
    assert [*tmp_path.iterdir()] == []


def test_a_file_of_keras_2_13(tmp_path: Path) -> None:
    """Which calls the layers by another name."""
    path = tmp_path / "x.weights.h5"
    saved, other = two(4), two(4)
    saved.save_weights(path)
    with h5py.File(path, "r+") as file:
        file.move("layers", "_layer_checkpoint_dependencies")
    other.load_weights(path)
    assert bits(other) == bits(saved)


def test_dtypes(tmp_path: Path) -> None:
    class Mixed(mr.layers.Layer):
        def build(self, shape: Any) -> None:
            for dtype in ("float64", "float16", "bfloat16", "int64", "uint8", "bool"):
                weight = self.add_weight((2,), "ones", dtype, name=dtype, trainable=False)
                setattr(self, f"a_{dtype}", weight)

        def call(self, x: Any) -> Any:
            return x

    models = [mr.Sequential([mr.layers.Input((2,)), Mixed()]) for _ in range(2)]
    numbers = [[0.1, 2], [0.1, 2], [0.5, 2], [2**40, -1], [255, 0], [True, False]]
    models[0].set_weights(numbers)
    models[0].save_weights(tmp_path / "x.weights.h5")
    models[1].load_weights(tmp_path / "x.weights.h5")
    assert bits(models[0]) == bits(models[1])
    with h5py.File(tmp_path / "x.weights.h5", "r+") as file:
        group = file["layers/mixed/vars"]
        del group["0"], group["4"]
        group["0"], group["4"] = np.array([3, 4], ">i2"), np.array([256, 0], np.int64)
    with pytest.raises(
        WeightsFileError, match="uint8 cannot take the value in the file, which is int64"
    ):
        models[1].load_weights(tmp_path / "x.weights.h5")
    assert bits(models[0]) == bits(models[1])
    with h5py.File(tmp_path / "x.weights.h5", "r+") as file:
        file["layers/mixed/vars/4"][0] = 254
    models[1].load_weights(tmp_path / "x.weights.h5")
    assert [models[1].weights[i].numpy().tolist() for i in (0, 4)] == [[3.0, 4.0], [254, 0]]
