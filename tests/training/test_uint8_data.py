"""Images and labels of uint8: in losses and metrics, and in `fit` as they come from files."""

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.devices import work_timing

pytestmark = pytest.mark.usefixtures("one_blas_thread")

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (20, 4, 4)).astype(np.uint8)
LABELS = RNG.integers(0, 3, 20).astype(np.uint8)
P = np.float32([[0.1, 0.9], [0.8, 0.2]])
ONE_HOT = np.uint8([[0, 1], [1, 0]])
keras = mr.keras

# Targets and predictions, and what Keras 3.15 computes of them.
LOSSES: dict[str, tuple[Callable[[], Any], Any, Any, float]] = {
    "labels": (keras.losses.SparseCategoricalCrossentropy, [1, 0], P, 0.16425206),
    "labels, logits": (
        lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        [1, 0],
        P,
        0.40429434,
    ),
    "classes": (keras.losses.CategoricalCrossentropy, ONE_HOT, P, 0.16425204),
    "flags": (keras.losses.BinaryCrossentropy, ONE_HOT, P, 0.16425204),
    "values": (keras.losses.MeanSquaredError, ONE_HOT, P, 0.025),
    "predictions too": (
        keras.losses.MeanSquaredError,
        [[0, 1]],
        np.uint8([[200, 100]]),
        24900.5,
    ),
    "accuracy": (keras.metrics.Accuracy, [1, 0], np.uint8([1, 1]), 0.5),
    "accuracy of labels": (keras.metrics.SparseCategoricalAccuracy, [1, 1], P, 0.5),
    "accuracy of classes": (keras.metrics.CategoricalAccuracy, [[0, 1], [1, 1]], P, 1.0),
    "accuracy of flags": (keras.metrics.BinaryAccuracy, [[0, 1], [1, 1]], P, 0.75),
    "squared error": (keras.metrics.MeanSquaredError, [[0, 1], [1, 1]], P, 0.175),
}


@pytest.mark.behaviour("loss-dtype")
@cases(("make", "y", "p", "expected"), LOSSES.values(), ids=LOSSES)
def test_losses_and_metrics(make: Any, y: Any, p: Any, expected: float) -> None:
    y = np.asarray(y, np.uint8)
    for targets, predictions in ((y, p), (mr.constant(y), mr.constant(p))):
        np.testing.assert_allclose(float(make()(targets, predictions)), expected, rtol=1e-6)


def test_mean_of_bytes() -> None:
    metric = keras.metrics.Mean()
    metric.update_state(np.uint8([200, 100]))
    assert float(metric.result()) == 150.0


def test_large_integers_are_compared_as_such() -> None:
    metric = keras.metrics.Accuracy()
    metric.update_state([2**24, 2**24 + 1], [2**24 + 1, 2**24 + 1])
    assert float(metric.result()) == 0.5


@pytest.mark.behaviour("loss-dtype")
def test_losses_of_integers_are_floats() -> None:
    """Keras' losses cast to float32 first."""
    loss = keras.losses.MeanSquaredError()(np.array([[0, 1]]), np.array([[1, 1]]))
    assert (loss.dtype, float(loss)) == (mr.float32, 0.5)


class Looking(mr.layers.Layer):
    """Notes the dtypes that reach a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        self.seen.add(inputs.dtype.name)
        return inputs


def trained(x: Any, y: Any, *, dataset: bool, eager: bool) -> tuple[list[bytes], mr.Model]:
    """Return the bytes of all that training, evaluation and prediction give."""
    mr.random.set_seed(1)
    with mr.MirroredStrategy().scope():
        looking = Looking()
        model = keras.Sequential([looking, mr.layers.Flatten(), mr.layers.Dense(3)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, metrics=["accuracy"], run_eagerly=eager)
    if dataset:
        batches = mr.data.Dataset.from_tensor_slices((x, y)).batch(6)
        assert [each.dtype for each in batches.element_spec] == [x.dtype, y.dtype]
        history = model.fit(batches, epochs=2, verbose=0)
        results = [model.evaluate(batches, verbose=0), model.predict(batches, verbose=0)]
    else:
        history = model.fit(x, y, batch_size=6, epochs=2, verbose=0)
        results = [model.evaluate(x, y, batch_size=6, verbose=0), model.predict(x, verbose=0)]
    assert looking.seen == {"float32"}
    values = [*model.get_weights(), history.history["loss"], history.history["accuracy"], *results]
    return [np.asarray(each).tobytes() for each in values], model


@pytest.mark.behaviour("input-dtype")
@pytest.mark.parametrize(
    ("replicas", "dataset", "eager"),
    [
        pytest.param(1, False, False, id="recorded, arrays", marks=pytest.mark.slow),
        pytest.param(3, True, False, id="recorded, dataset"),
        pytest.param(3, False, True, id="eager, arrays", marks=pytest.mark.slow),
        pytest.param(1, True, True, id="eager, dataset"),
    ],
)
def test_fit_has_the_bits_of_floats(
    replicas: int, dataset: bool, eager: bool, simulate: Any
) -> None:
    simulate(replicas)
    small, _ = trained(IMAGES, LABELS, dataset=dataset, eager=eager)
    floats = IMAGES.astype(np.float32), LABELS.astype(np.int64)
    assert small == trained(*floats, dataset=dataset, eager=eager)[0]


def test_an_emulated_card_is_fed_bytes(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda(seed=1)
    model = keras.Sequential([mr.layers.Flatten(), mr.layers.Dense(1, kernel_initializer="ones")])
    found = model.predict(IMAGES, batch_size=7, verbose=0)
    assert found.tolist() == IMAGES.sum(axis=(1, 2), dtype=int)[:, np.newaxis].tolist()


class Fed:
    """Counts the bytes that are copied from the host."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, work: Any, replica: int | None, start: int, end: int) -> None:
        if work.name == "Infeed" or work.source == "host":
            self.bytes += work.bytes_out


@pytest.mark.behaviour("input-dtype")
@pytest.mark.parametrize("eager", [False, True], ids=["recorded", "eager"])
def test_bytes_are_copied_to_the_devices_as_such(eager: bool, simulate: Any) -> None:
    simulate(1)
    _, model = trained(IMAGES, LABELS, dataset=False, eager=eager)
    for images in (IMAGES, IMAGES.astype(np.float32)):
        fed = Fed()
        work_timing.observers.append(fed)
        try:
            model.predict(images, verbose=0)
        finally:
            work_timing.observers.remove(fed)
        assert fed.bytes == images.nbytes


def load_data(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return digits as TensorFlow's quickstart loads them: images and labels of uint8."""
    rng = np.random.default_rng(size)
    patterns = np.random.default_rng(0).integers(0, 256, (10, 28, 28))
    labels = rng.integers(0, 10, size).astype(np.uint8)
    noise = rng.integers(-40, 40, (size, 28, 28))
    return np.clip(patterns[labels] + noise, 0, 255).astype(np.uint8), labels


def test_the_quickstart_for_beginners() -> None:
    """TensorFlow's tutorial, cell by cell, with drawn digits."""
    (x_train, y_train), (x_test, y_test) = load_data(600), load_data(100)
    x_train, x_test = x_train / 255.0, x_test / 255.0
    layers = keras.layers
    model = keras.models.Sequential(
        [
            layers.Flatten(input_shape=(28, 28)),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )
    predictions = model(x_train[:1]).numpy()
    assert predictions.shape == (1, 10)
    np.testing.assert_allclose(mr.nn.softmax(predictions).numpy().sum(), 1.0, rtol=1e-5)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    assert 0.5 < loss_fn(y_train[:1], predictions).numpy() < 8.0
    model.compile(optimizer="sgd", loss=loss_fn, metrics=["accuracy"])
    model.fit(x_train, y_train, epochs=5, verbose=0)
    assert model.evaluate(x_test, y_test, verbose=0)[1] > 0.9
    # Its last cell has the layer Softmax, which is not here.
    probability_model = keras.Sequential([model, layers.Activation("softmax")])
    np.testing.assert_array_equal(probability_model(x_test[:5]).numpy().argmax(1), y_test[:5])


def test_a_loop_of_ones_own(simulate: Any) -> None:
    """The batches of a distributed dataset are uint8 on each replica."""
    simulate(2)
    strategy = mr.MirroredStrategy()
    dataset = mr.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(8)

    @mr.function
    def step(x: mr.Tensor, y: mr.Tensor) -> mr.Tensor:
        assert x.dtype == y.dtype == mr.uint8
        return mr.reduce_sum(mr.cast(x, mr.float32)) + mr.cast(mr.reduce_max(y), mr.float32)

    total = 0.0
    for x, y in strategy.experimental_distribute_dataset(dataset):
        total += float(strategy.reduce("sum", strategy.run(step, (x, y)), axis=None))
    parts = [y for start in (0, 8, 16) for y in np.array_split(LABELS[start : start + 8], 2)]
    assert total == IMAGES.sum(dtype=int) + sum(int(part.max()) for part in parts)


def test_functions_of_datasets_are_given_them() -> None:
    """The numbers are TensorFlow 2.21's."""
    dataset = mr.data.Dataset.from_tensor_slices(np.uint8([200, 3]))
    assert list(dataset.as_numpy_iterator()) == [200, 3]
    doubled = dataset.map(lambda x: x + x)
    assert doubled.element_spec == mr.TensorSpec((), mr.uint8)
    assert [int(each) for each in doubled] == [144, 6]
    scaled = next(iter(dataset.map(lambda x: mr.cast(x, mr.float32) / 255.0)))
    assert scaled.numpy() == np.float32(200) / np.float32(255)
    generated = mr.data.Dataset.from_generator(
        lambda: iter([300, -1, 2.5]), output_signature=mr.TensorSpec((), mr.uint8)
    )
    assert [int(each) for each in generated] == [44, 255, 2]
    numbers = mr.data.Dataset.range(254, 258, output_type=mr.uint8)
    assert [int(each) for each in numbers] == [254, 255, 0, 1]


def test_weights_of_bytes_in_files(tmp_path: pathlib.Path) -> None:
    table = mr.Variable(np.uint8([[1, 200], [3, 255]]), name="table")
    path = mr.train.Checkpoint(table=table).save(tmp_path / "run")
    table.assign(np.zeros((2, 2), np.uint8))
    mr.train.Checkpoint(table=table).restore(path)
    assert table.numpy().tolist() == [[1, 200], [3, 255]]


@pytest.mark.behaviour("uint8")
def test_mirrored_variables_of_bytes(simulate: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(np.uint8([250]), aggregation=mr.VariableAggregation.SUM, trainable=False)
    strategy.run(lambda: v.assign_add(mr.constant(np.uint8([4]))))
    assert [each.numpy().tolist() for each in strategy.experimental_local_results(v)] == [[2]] * 2
