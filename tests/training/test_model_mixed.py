"""Models under the policy mixed_bfloat16: training, N replicas against one, and what files hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.layers import policy as policies

EXAMPLES, FEATURES, CLASSES = 96, 8, 3


@pytest.fixture(autouse=True)
def mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make layers under the policy."""
    monkeypatch.setattr(policies, "_global", [])
    mr.keras.mixed_precision.set_global_policy("mixed_bfloat16")


@pytest.fixture
def data() -> tuple[Any, Any]:
    """Return inputs, and the class that a random linear map gives each."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(EXAMPLES, FEATURES)).astype(np.float32)
    return x, (x @ rng.normal(size=(FEATURES, CLASSES))).argmax(axis=1)


def make(strategy: mr.MirroredStrategy, last: Any = None, **options: Any) -> mr.Model:
    mr.random.set_seed(1)
    with strategy.scope():
        model = mr.Sequential(
            [
                mr.layers.Input((FEATURES,)),
                mr.layers.Dense(16, activation="relu"),
                mr.layers.Dropout(0.1, seed=2),
                mr.layers.Dense(CLASSES, activation="softmax", dtype=last),
            ]
        )
        loss = "sparse_categorical_crossentropy"
        model.compile(mr.optim.Adam(0.02), loss, metrics=["accuracy"], **options)
    return model


@pytest.mark.behaviour("mixed-precision")
@pytest.mark.parametrize(("last", "strategy"), [("float32", 1), (None, 3)], indirect=["strategy"])
def test_training_converges(strategy: mr.MirroredStrategy, data: Any, last: Any) -> None:
    model = make(strategy, last)
    history = model.fit(*data, batch_size=32, epochs=25, verbose=0).history
    assert history["loss"][-1] < 0.35 * history["loss"][0]
    assert history["accuracy"][-1] > 0.85
    assert {weight.dtype for weight in model.weights} == {mr.float32}
    assert {slot.dtype for slot in model.optimizer.variables[2:]} <= {mr.float32}
    assert model.predict(data[0], verbose=0).dtype == (last or mr.bfloat16)
    assert (model.dtype, model.compute_dtype) == (mr.float32, mr.bfloat16)


@pytest.mark.parametrize(("last", "strategy"), [("float32", 1), (None, 3)], indirect=["strategy"])
def test_recorded_equals_eager(
    strategy: mr.MirroredStrategy, data: Any, last: Any, one_blas_thread: None, bits: Any
) -> None:
    weights = []
    for eager in (False, True):
        model = make(strategy, last, run_eagerly=eager)
        loss = model.fit(*data, batch_size=40, epochs=2, verbose=0).history["loss"]
        outputs = model.predict(data[0], batch_size=20, verbose=0).astype(np.float32)
        weights.append(bits([*model.get_weights(), loss, outputs]))
    assert weights[0] == weights[1]


@pytest.mark.behaviour("mixed-replicas")
def test_replicas_equal_one(data: Any, simulate: Callable[..., Any]) -> None:
    """But for each replica's gradients being rounded to bfloat16 before they are summed."""
    simulate(3)
    weights = []
    for devices in (["GPU:0"], ["GPU:0", "GPU:1", "GPU:2"]):
        with mr.MirroredStrategy(devices).scope():
            model = make(mr.distribute.get_strategy())
            model.compile(mr.optim.SGD(0.05), "sparse_categorical_crossentropy")
        before = model.get_weights()
        model.fit(*data, batch_size=20, epochs=2, shuffle=False, verbose=0)
        pairs = zip(model.get_weights(), before, strict=True)
        weights.append(np.concatenate([(after - first).ravel() for after, first in pairs]))
    one, three = weights
    assert np.abs(one - three).max() < 2.0**-6 * np.abs(one).max()
    assert np.abs(one).max() > 0.05


def test_losses_and_metrics_compute_in_float32() -> None:
    logits = mr.constant([[2.0, 1.0, 0.1]], mr.bfloat16)
    probabilities = mr.nn.softmax(logits)
    sparse = mr.losses.SparseCategoricalCrossentropy()([0], probabilities)
    exact = mr.losses.SparseCategoricalCrossentropy(from_logits=True)(
        [0], mr.cast(logits, mr.float32)
    )
    assert sparse.dtype == mr.float32
    assert float(sparse) == float(exact)  # By way of the logits, not of the rounded probabilities.
    for function in (mr.losses.mse, mr.losses.binary_crossentropy):
        assert function([[0.0, 1.0, 0.0]], probabilities).dtype == mr.float32
    for metric in (mr.metrics.MeanSquaredError(), mr.metrics.CategoricalAccuracy()):
        metric.update_state([[1.0, 0.0, 0.0]], probabilities)
        assert np.isfinite(float(metric.result()))


def test_a_mean_over_many_is_not_that_of_bfloat16() -> None:
    """1000 ones and as many thousandths: bfloat16 would lose the latter in the sum."""
    predictions = mr.cast(mr.concat([mr.ones((1000, 1)), mr.zeros((1000, 1))], 0), mr.bfloat16)
    targets = np.zeros((2000, 1))
    assert float(mr.losses.MeanSquaredError()(targets, predictions)) == pytest.approx(0.5, rel=1e-6)
    metric = mr.metrics.MeanSquaredError()
    metric.update_state(targets, predictions)
    assert float(metric.result()) == pytest.approx(0.5, rel=1e-6)


def test_targets_and_weights_stay_float32(data: Any) -> None:
    """1.001 is no bfloat16: as one the loss would be another."""
    model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    loss = model.evaluate([[1.0]], [[1.001]], sample_weight=np.array([1.001]), verbose=0)
    assert loss == pytest.approx(0.001**2 * 1.001, rel=1e-3)


def test_a_first_layer_in_float32_gets_float32_inputs() -> None:
    model = mr.Sequential([mr.layers.Dense(1, kernel_initializer="ones", dtype="float32")])
    assert float(model(np.array([[1.001]]))[0, 0]) == np.float32(1.001)
    x = mr.layers.Input((1,))
    functional = mr.Model(x, model.layers[0](x))
    assert float(functional(np.array([[1.001]]))[0, 0]) == np.float32(1.001)


@pytest.mark.behaviour("mixed-precision")
def test_files_hold_float32(tmp_path: Path, data: Any, simulate: Callable[..., Any]) -> None:
    simulate(2)
    model = make(mr.MirroredStrategy())
    model.fit(*data, batch_size=32, epochs=1, verbose=0)
    model.save_weights(tmp_path / "model.weights.safetensors")
    path = mr.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "ckpt")
    mr.keras.mixed_precision.set_global_policy("float32")
    plain = make(mr.MirroredStrategy(["GPU:0"]))
    plain.load_weights(tmp_path / "model.weights.safetensors")
    for one, other in zip(plain.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    plain.fit(*data, batch_size=32, epochs=1, verbose=0)
    mr.train.Checkpoint(model=plain, optimizer=plain.optimizer).restore(path)
    for one, other in zip(plain.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_subclassed_model_and_a_loop_of_ones_own(data: Any) -> None:
    class Net(mr.Model):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.out = mr.layers.Dense(8, "relu"), mr.layers.Dense(CLASSES)

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            assert inputs.dtype == mr.bfloat16
            return self.out(self.hidden(inputs) * 0.5)

    x, y = data
    model, optimizer = Net(), mr.optim.SGD(0.5)
    loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
    losses = []

    @mr.function
    def step(x: mr.Tensor, y: mr.Tensor) -> mr.Tensor:
        with mr.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    model.build((None, FEATURES))
    for _ in range(30):
        losses.append(float(step(mr.constant(x), mr.constant(y))))
    assert losses[-1] < 0.5 * losses[0]
