"""Layers that learn from data before training: from which data, what of them, and where."""

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

DRAWS = np.random.default_rng(0)
X = (DRAWS.normal(size=(10, 3)) * 3 + 1000).astype(np.float32)
EXPECTED = (X - X.mean(axis=0, dtype=np.float64)) / X.std(axis=0, dtype=np.float64)
SLICES = mr.data.Dataset.from_tensor_slices


class Batches(mr.keras.utils.PyDataset):
    """Inputs and targets, in batches of unlike sizes."""

    @property
    def num_batches(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        part = slice(4 * index, 4 * index + 4)
        return X[part], X[part, 0]


def generated() -> Iterator[Any]:
    yield X[:0]
    yield X[:1]
    yield X[1:]


DATA: dict[str, Callable[[], Any]] = {
    "an array": lambda: X,
    "a tensor": lambda: mr.constant(X),
    "batches": lambda: SLICES(X).batch(4),
    "vectors": lambda: SLICES(X),
    "inputs and targets": lambda: SLICES((X, X[:, 0])).batch(3),
    "a PyDataset": Batches,
    "a list": lambda: [X[:4], mr.constant(X[4:])],
    "a generator": generated,
}


@cases("make", DATA.values(), ids=DATA)
def test_data_in_any_form_have_one_mean_and_variance(make: Callable[[], Any]) -> None:
    layer = mr.layers.Normalization()
    layer.adapt(make())
    np.testing.assert_allclose(layer(X), EXPECTED, rtol=1e-4, atol=1e-4)
    assert [weight.dtype.name for weight in layer.weights] == ["float32", "float32", "int64"]
    assert layer.trainable_weights == []


def test_large_arrays_are_gone_over_in_parts() -> None:
    x = (DRAWS.normal(size=(300_000, 3)) + np.array([0.0, 1.0, 1000.0])).astype(np.float32)
    layer = mr.layers.Normalization()
    tracemalloc.start()
    layer.adapt(x)
    assert tracemalloc.get_traced_memory()[1] < 8 * x.size  # A copy of all in float64.
    tracemalloc.stop()
    expected = x.mean(axis=0, dtype=np.float64), x.var(axis=0, dtype=np.float64)
    for found, one in zip((layer.adapt_mean, layer.adapt_variance), expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-6, atol=1e-6)


@cases(
    ("data", "error", "text"),
    [
        ([], ValueError, "empty iterable"),
        ([[1.0, 2.0]], TypeError, "an element of type list"),
        (3.0, TypeError, "Unsupported data type"),
        (X[:0], ValueError, "Received: no examples"),
        (X[:, :2], ValueError, "incompatible shape \\(10, 2\\)"),
        ([X, X[:, :2]], ValueError, "incompatible shape \\(10, 2\\)"),
    ],
)
def test_other_data_are_refused_before_anything_changes(
    data: Any, error: type[Exception], text: str
) -> None:
    layer = mr.layers.Normalization()
    layer.adapt(X)
    before = layer.get_weights()
    with pytest.raises(error, match=text):
        layer.adapt(data)
    np.testing.assert_equal(layer.get_weights(), before)


def test_a_mean_that_is_given_stays() -> None:
    layer = mr.layers.Normalization(mean=1.0, variance=4.0)
    with pytest.raises(ValueError, match="were passed to this layer"):
        layer.adapt(X)
    with pytest.raises(ValueError, match="both `mean` and `variance`"):
        mr.layers.Normalization(mean=1.0)
    with pytest.raises(mr.errors.InvalidArgumentError, match=r"of shape \(3,\)"):
        mr.layers.Normalization(mean=[1.0, 2.0], variance=[1.0, 2.0])(X)


def test_what_is_adapted_outside_of_the_scope_is_on_all_replicas(
    simulate: Callable[..., Any],
) -> None:
    simulate(3)
    found = []
    for devices in (["CPU:0"], None):
        mr.random.set_seed(0)
        strategy = mr.distribute.MirroredStrategy(devices)
        with strategy.scope():
            layer = mr.layers.Normalization()
            model = mr.keras.Sequential([layer, mr.layers.Dense(2)])
            model.compile("sgd", "mse")
        layer.adapt(SLICES(X).batch(4))
        model.fit(X, X[:, :2] / 1000, batch_size=5, epochs=2, shuffle=False, verbose=0)
        found.append(model.get_weights())
        layer.adapt(X + 1)  # A step that was recorded goes by what it is now.
        np.testing.assert_allclose(layer(X + 1), EXPECTED, rtol=1e-3, atol=1e-3)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_bins_hold_as_many_values_each() -> None:
    values = DRAWS.normal(size=4000)
    layer = mr.layers.Discretization(num_bins=4, epsilon=0.005)
    layer.adapt(SLICES(values.astype(np.float32)).batch(700))
    np.testing.assert_allclose(np.bincount(layer(values)), [1000] * 4, atol=40)
    assert layer.summary.shape == (2, 200)


def test_batches_are_taken_in_one_by_one() -> None:
    layer, whole = (mr.layers.Discretization(num_bins=3) for _ in range(2))
    for batch in (X[:5], X[5:]):
        layer.update_state(batch)
    assert layer.bin_boundaries is None
    layer.finalize_state()
    whole.adapt([X[:5], X[5:], X * np.nan], steps=2)
    assert layer.bin_boundaries == whole.bin_boundaries
    layer.reset_state()
    assert layer.summary.shape == (2, 0)
    assert layer.bin_boundaries == whole.bin_boundaries


@cases(
    ("call", "error", "text"),
    [
        (lambda: mr.layers.Discretization(), ValueError, "either `num_bins` or"),
        (lambda: mr.layers.Discretization([1.0], 2), ValueError, "should not be set"),
        (lambda: mr.layers.Discretization([1.0]).adapt(X), ValueError, "Cannot adapt"),
        (lambda: mr.layers.Discretization(num_bins=3)(X), ValueError, "call `adapt"),
        (lambda: mr.layers.Discretization([1.0, 0.0])(X), ValueError, "sorted boundaries"),
        (lambda: mr.layers.CategoryEncoding(), ValueError, "num_tokens must be set"),
        (lambda: mr.layers.CategoryEncoding(3, "tf_idf"), ValueError, "output_mode: tf_idf"),
        (lambda: mr.layers.CategoryEncoding(3, sparse=True), NotImplementedError, "dense"),
        (lambda: mr.layers.CategoryEncoding(3)([[1, -1]]), ValueError, "non-negative"),
        (
            lambda: mr.layers.CategoryEncoding(3)([[1]], count_weights=[[1.0]]),
            ValueError,
            "is not used when",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    call: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()


def test_weights_of_counts() -> None:
    layer = mr.layers.CategoryEncoding(3, "count")
    weights = np.array([[0.5, 2.0], [4.0, 8.0]])
    found = layer(np.array([[0, 2], [1, 1]]), count_weights=weights)
    np.testing.assert_array_equal(found, [[0.5, 0, 2], [0, 12, 0]])
    deep = layer(np.array([[[0, 2], [2, 1]]]), count_weights=weights[None])
    np.testing.assert_array_equal(deep, [[[0.5, 0, 4], [0, 8, 2]]])


def test_placeholders_have_the_dtypes_of_the_values() -> None:
    x = mr.keras.Input((3,))
    bins = mr.layers.Discretization([0.0, 1.0])(x)
    model = mr.keras.Model(x, [bins, mr.layers.CategoryEncoding(3, "one_hot")(bins)])
    values = model(np.array([[-1.0, 0.5, 2.0]]))
    assert [each.dtype.name for each in values] == [each.dtype.name for each in model.outputs]
    np.testing.assert_array_equal(values[1][0], np.eye(3))


@cases("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "uint64", "bool"])
def test_integers_of_all_dtypes_are_categories(dtype: str) -> None:
    ids = np.array([[1, 0]], dtype)
    vectors = mr.layers.Embedding(2, 2, embeddings_initializer="identity")(ids)
    assert vectors.numpy().tolist() == [[[0.0, 1.0], [1.0, 0.0]]]
    for mode, rows in {"one_hot": [[0, 1], [1, 0]], "count": [1, 1], "multi_hot": [1, 1]}.items():
        assert mr.layers.CategoryEncoding(2, mode)(ids).numpy().tolist() == [rows]
