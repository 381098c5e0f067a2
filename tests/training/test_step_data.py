"""One step: in which dtype it is taken, and which part of a batch goes to which device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.arange(4.0, dtype=np.float32)[:, np.newaxis]
Y = 2 * (X + 1)
FEATURES = np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2)
VALUES = FEATURES @ np.array([[1.0], [2.0]], dtype=np.float32) + np.float32(0.5)
LABELS = np.array([0, 1, 2, 1, 0])


# ------------------------------------------------------------------------------ dtypes


@pytest.mark.behaviour("input-dtype")
def test_float64_end_to_end(strategy: mr.MirroredStrategy) -> None:
    mr.keras.backend.set_floatx("float64")
    with strategy.scope():
        x = mr.layers.Input(shape=(2,))
        hidden = mr.layers.Dense(3, "tanh", kernel_regularizer="l2")(x)
        model = mr.Model(x, mr.layers.Dense(1)(hidden))
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse", metrics=["mse"])
    x64 = np.random.default_rng(0).normal(size=(5, 2))
    history = model.fit(x64, VALUES, 2, epochs=2, verbose=0, sample_weight=np.ones(5))
    dtypes = {variable.dtype.name for variable in model.optimizer.variables[1:]}
    assert dtypes == {variable.dtype.name for variable in model.variables} == {"float64"}
    outputs = model.predict(x64, verbose=0)
    assert outputs.dtype == model(x64).dtype == np.float64
    kernel, bias, last, shift = model.get_weights()
    by_hand = np.tanh(x64 @ kernel + bias) @ last + shift
    np.testing.assert_allclose(outputs, by_hand, rtol=1e-14)
    error = float(((by_hand - VALUES) ** 2).mean())
    loss, metric = model.evaluate(x64, VALUES, verbose=0)
    assert metric == pytest.approx(error, rel=1e-14)
    assert loss == pytest.approx(error + 0.01 * float((kernel**2).sum()), rel=1e-14)
    assert type(history.history["loss"][0]) is float


@pytest.mark.behaviour("input-dtype")
def test_data_are_cast_to_the_dtype_of_the_model(strategy: mr.MirroredStrategy) -> None:
    seen = []

    class Looks(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            seen.append(inputs.dtype.name)
            return inputs

    with strategy.scope():
        model = mr.Sequential([Looks(), mr.layers.Dense(1, dtype="float64")])
        model.compile("sgd", "mse", metrics=["mse"])
    model.fit(X.astype(np.float64), Y.astype(int), verbose=0, sample_weight=[1, 2, 3, 4])
    assert set(seen) == {"float32"}
    assert model.predict(X, verbose=0).dtype == np.float64
    assert model.output_dtype == np.float64


def test_integer_inputs_reach_the_model(strategy: mr.MirroredStrategy) -> None:
    class OneHot(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            assert inputs.dtype == mr.int32
            return mr.cast(mr.equal(inputs, np.arange(3, dtype=np.int32)), "float32")

        def compute_output_shape(self, input_shape: Any) -> Any:
            return (*input_shape[:-1], 3)

    with strategy.scope():
        x = mr.layers.Input(shape=(1,), dtype="int32")
        model = mr.Model(x, mr.layers.Dense(1)(OneHot(dtype="int32")(x)))
        model.compile("sgd", "mse")
    model.fit(LABELS[:, np.newaxis], VALUES, verbose=0)


# ------------------------------------------------------------------------------ shards


@pytest.mark.behaviour("shard-sizes")
def test_a_batch_is_cut_and_brought_to_the_devices(simulate: Callable[..., Any]) -> None:
    simulate(3)
    seen: list[tuple[str, list[float]]] = []

    class Looks(mr.layers.Layer):
        def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
            if training:
                seen.append((inputs.device[-5:], inputs.numpy().ravel().tolist()))
            return inputs

    with mr.MirroredStrategy().scope():
        model = mr.Sequential([Looks(), mr.layers.Dense(1)])
        model.compile("sgd", "mse", run_eagerly=True)
    model.fit(X, Y, batch_size=4, verbose=0)
    sizes = [len(values) for _, values in seen]
    assert [device for device, _ in seen] == ["GPU:0", "GPU:1", "GPU:2"]
    assert sizes == [2, 1, 1]
    seen.clear()
    model.fit(X[:2], Y[:2], batch_size=4, verbose=0, shuffle=False)
    # A replica without examples need not run the model, unless others meet it there.
    assert seen == [("GPU:0", [0.0]), ("GPU:1", [1.0])]


class Pair(mr.Model):
    """A subclass, which is built by running it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = mr.layers.Dense(4, "relu"), mr.layers.Dense(1)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return self.last(self.first(inputs))


@pytest.mark.behaviour("listing-takes-no-memory", "memory-where-asked")
@pytest.mark.parametrize(
    "make", [lambda: mr.Sequential([mr.layers.Dense(1)]), Pair], ids=["sequential", "subclass"]
)
def test_only_the_devices_of_the_strategy_are_used(
    make: Callable[[], mr.Model], simulate: Callable[..., Any]
) -> None:
    simulate(3)
    with mr.MirroredStrategy(["GPU:1", "GPU:2"]).scope():
        model = make()
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse", metrics=["mse"])
    model.fit(X, Y, validation_data=(X, Y), verbose=0)
    model.predict(X, verbose=0)
    memory = mr.config.experimental.get_memory_info
    assert [memory(f"GPU:{i}")["peak"] > 0 for i in range(3)] == [False, True, True]
