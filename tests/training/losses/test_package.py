"""Losses against formulas written out in NumPy's float64, at the edges and on empty batches."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.training import losses
from mirrored.training.losses import Loss
from tests.support import loss_values

EPSILON = 1e-7
RNG = np.random.default_rng(8)
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}
Array = Any  # What NumPy's own operators are annotated to return.


def squared(y: Array, p: Array) -> Array:
    return ((y - p) ** 2).mean(-1)


def binary(y: Array, p: Array) -> Array:
    p = np.clip(p, EPSILON, 1 - EPSILON)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


def binary_logits(y: Array, z: Array) -> Array:
    return (y * np.logaddexp(0, -z) + (1 - y) * np.logaddexp(0, z)).mean(-1)


def categorical(y: Array, p: Array) -> Array:
    p = np.clip(p / p.sum(-1, keepdims=True), EPSILON, 1 - EPSILON)
    return -(y * np.log(p)).sum(-1)


def categorical_logits(y: Array, z: Array) -> Array:
    return (y * (np.logaddexp.reduce(z, -1, keepdims=True) - z)).sum(-1)


def sparse(y: Array, p: Array) -> Array:
    return categorical(np.eye(p.shape[-1])[y], p)


def sparse_logits(y: Array, z: Array) -> Array:
    return categorical_logits(np.eye(z.shape[-1])[y], z)


def random(shape: tuple[int, ...], seed: int = 3) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def probabilities(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(4).uniform(0.02, 0.98, shape)


def distribution(shape: tuple[int, ...]) -> Array:
    p = probabilities(shape)
    return p / p.sum(-1, keepdims=True)


def labels(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(5).integers(0, shape[-1], shape[:-1])


Case = tuple[Callable[..., Loss], Any, Callable[..., Array], Callable[..., Any], Callable[..., Any]]
# The class, the function, the formula, and where targets and predictions come from.
CASES: dict[str, Case] = {
    "mse": (losses.MeanSquaredError, losses.mean_squared_error, squared, random, probabilities),
    "binary": (
        losses.BinaryCrossentropy,
        losses.binary_crossentropy,
        binary,
        lambda shape: (random(shape) > 0) * 1.0,
        probabilities,
    ),
    "binary, soft targets": (
        losses.BinaryCrossentropy,
        losses.binary_crossentropy,
        binary,
        lambda shape: probabilities(shape) ** 2,
        probabilities,
    ),
    "binary from logits": (
        lambda **options: losses.BinaryCrossentropy(from_logits=True, **options),
        lambda y, p: losses.binary_crossentropy(y, p, from_logits=True),
        binary_logits,
        lambda shape: (random(shape) > 0) * 1.0,
        lambda shape: 9 * random(shape, 6),
    ),
    "categorical": (
        losses.CategoricalCrossentropy,
        losses.categorical_crossentropy,
        categorical,
        lambda shape: np.eye(shape[-1])[labels(shape)],
        distribution,
    ),
    "categorical, soft targets, sums other than one": (
        losses.CategoricalCrossentropy,
        losses.categorical_crossentropy,
        categorical,
        distribution,
        probabilities,
    ),
    "categorical from logits": (
        lambda **options: losses.CategoricalCrossentropy(from_logits=True, **options),
        lambda y, p: losses.categorical_crossentropy(y, p, from_logits=True),
        categorical_logits,
        distribution,
        lambda shape: 9 * random(shape, 6),
    ),
    "sparse": (
        losses.SparseCategoricalCrossentropy,
        losses.sparse_categorical_crossentropy,
        sparse,
        labels,
        distribution,
    ),
    "sparse from logits": (
        lambda **options: losses.SparseCategoricalCrossentropy(from_logits=True, **options),
        lambda y, p: losses.sparse_categorical_crossentropy(y, p, from_logits=True),
        sparse_logits,
        labels,
        lambda shape: 9 * random(shape, 6),
    ),
}
all_losses = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
both_dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


def test_the_table_names_every_public_loss() -> None:
    public = [getattr(losses, name) for name in losses.__all__]  # Some load when asked for.
    classes = {each for each in public if inspect.isclass(each) and issubclass(each, Loss)}
    against_keras = {getattr(losses, name) for name, *_ in loss_values.LOSSES}
    assert {type(make()) for make, *_ in CASES.values()} | against_keras == classes - {Loss}
    functions = {
        each
        for each in public
        if inspect.isfunction(each) and [*inspect.signature(each).parameters][:1] == ["y_true"]
    }
    assert len(functions) == len(classes) - 1
    # The others are those that the classes call, with the same formulas.
    known = {function for _, function, *_ in CASES.values()}
    others = against_keras - {type(make()) for make, *_ in CASES.values()}
    assert {type(losses.as_loss(each)) for each in functions - known} == others


@all_losses
@cases(
    ("shape", "dtype"),
    [((5, 4), "float32"), ((1, 2), "float64"), ((3, 2, 4), "float32"), ((3, 2, 4), "float64")],
)
def test_values(case: Case, dtype: str, shape: tuple[int, ...]) -> None:
    make, function, formula, make_targets, make_predictions = case
    y, p = make_targets(shape), make_predictions(shape).astype(dtype)
    expected = formula(y, p.astype("float64"))
    values = function(y, p)
    assert values.dtype == dtype
    np.testing.assert_allclose(values.numpy(), expected, rtol=TOLERANCE[dtype], atol=1e-7)
    by_example = expected.reshape(shape[0], -1).mean(-1)
    # As in Keras 3.15 "none" keeps all axes but the last, and "sum" adds up all values.
    for result, wanted in (
        (make(dtype=dtype).per_example(y, p), by_example),
        (make(dtype=dtype, reduction="none")(y, p), expected),
        (make(dtype=dtype, reduction="sum")(y, p), expected.sum()),
        (make(dtype=dtype)(y, p), expected.mean()),
    ):
        assert result.shape == wanted.shape
        assert result.dtype == dtype
        np.testing.assert_allclose(result.numpy(), wanted, rtol=TOLERANCE[dtype], atol=1e-7)


@all_losses
@both_dtypes
def test_reductions_and_weights(case: Case, dtype: str) -> None:
    make, _, formula, make_targets, make_predictions = case
    y, p = make_targets((6, 4)), make_predictions((6, 4)).astype(dtype)
    weights = np.array([0.0, 1.0, 2.0, 0.5, 0.25, 3.0])
    expected = formula(y, p.astype("float64"))
    tolerance = TOLERANCE[dtype]
    for given, factor in ((None, 1.0), (weights, weights), (weights[:, None], weights), (2.0, 2.0)):
        weighted = expected * factor
        for reduction, reduced in (
            ("none", weighted),
            (None, weighted),
            ("sum", weighted.sum()),
            ("sum_over_batch_size", weighted.sum() / 6),  # Examples, not the sum of weights.
            ("mean", weighted.sum() / 6),
            ("mean_with_sample_weight", weighted.sum() / (6 if given is None else np.sum(given))),
        ):
            result = make(reduction=reduction, dtype=dtype)(y, p, given)
            assert result.dtype == dtype
            np.testing.assert_allclose(result.numpy(), reduced, rtol=tolerance, atol=1e-7)


@all_losses
@both_dtypes
def test_no_examples(case: Case, dtype: str) -> None:
    make, _, _, make_targets, _ = case
    y, p = make_targets((0, 4)), np.zeros((0, 4), dtype)
    assert make().per_example(y, p).shape == (0,)
    assert make(reduction="none")(y, p).shape == (0,)
    for reduction in ("sum", "sum_over_batch_size", "mean_with_sample_weight"):
        for weights in (None, np.zeros(0)):
            result = make(reduction=reduction, dtype=dtype)(y, p, weights)
            assert result.shape == ()
            assert result.dtype == dtype
            assert float(result) == 0.0


@all_losses
def test_gradients_of_shards_add_up_to_that_of_the_batch(case: Case) -> None:
    make, _, _, make_targets, make_predictions = case
    y, p = make_targets((5, 4)), make_predictions((5, 4))

    def gradient(rows: slice) -> Array:
        predictions = ops.constant(p[rows])
        with mr.GradientTape() as tape:
            tape.watch(predictions)
            loss = make(reduction="sum")(y[rows], predictions)
        return np.asarray(tape.gradient(loss, predictions))

    whole = gradient(slice(0, 5))
    parts = [gradient(slice(*ends)) for ends in ((0, 3), (3, 5), (5, 5))]
    assert parts[-1].shape == (0, 4)
    assert np.abs(whole).max() > 0
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12)


Z = np.array([[300.0, 0.0, -300.0], [-300.0, 0.0, 300.0]], np.float32)


@cases("from_logits", [True, False])
@cases(
    ("loss", "activation", "y", "expected"),
    [
        (losses.SparseCategoricalCrossentropy, ops.softmax, [2, 2], [600.0, 0.0]),
        (losses.CategoricalCrossentropy, ops.softmax, [[0, 0, 1], [0, 0, 1]], [600.0, 0.0]),
        (losses.BinaryCrossentropy, ops.sigmoid, [[0, 0.5, 1], [0, 0.5, 1]], None),
    ],
)
def test_saturated_predictions_are_exact_by_their_logits(
    loss: Any, activation: Any, y: Any, expected: Any, from_logits: bool
) -> None:
    if expected is None:
        expected = [(600 + np.log(2)) / 3, np.log(2) / 3]
    predictions = Z if from_logits else activation(Z)
    values = loss(from_logits=from_logits).per_example(y, predictions)
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-6, atol=1e-6)


@cases(
    ("loss", "y"),
    [
        (losses.SparseCategoricalCrossentropy, [0]),
        (losses.CategoricalCrossentropy, [[1.0, 0.0]]),
        (losses.BinaryCrossentropy, [[1.0, 0.0]]),
    ],
)
def test_saturated_probabilities_are_clipped(loss: Any, y: Any) -> None:
    value = float(loss(dtype="float64")(y, np.array([[0.0, 1.0]])))
    assert value == pytest.approx(-np.log(EPSILON), rel=1e-6)


@cases(
    ("loss", "activation", "y", "formula"),
    [
        (losses.BinaryCrossentropy, ops.softmax, np.eye(3)[[0, 2]], binary),
        (losses.CategoricalCrossentropy, ops.sigmoid, np.eye(3)[[0, 2]], categorical),
        (losses.SparseCategoricalCrossentropy, ops.sigmoid, np.array([0, 2]), sparse),
    ],
)
def test_logits_of_another_activation_are_not_used(
    loss: Any, activation: Any, y: Any, formula: Any
) -> None:
    predictions = activation(random((2, 3)))
    expected = formula(y, predictions.numpy())
    np.testing.assert_allclose(loss().per_example(y, predictions).numpy(), expected, rtol=1e-6)


@cases(
    "activation",
    [
        mr.keras.activations.softmax,
        mr.keras.ops.sigmoid,
        lambda x: mr.keras.activations.softmax(x, axis=0),
        mr.keras.layers.Activation("sigmoid"),
    ],
)
def test_every_cross_entropy_takes_the_logits_of_keras_activations(activation: Any) -> None:
    x, y, labels = random((3, 3)).astype(np.float32), np.eye(3)[[0, 2, 1]], np.array([0, 2, 1])
    for function, targets, formula in (
        (losses.binary_crossentropy, y, binary_logits),
        (losses.categorical_crossentropy, y, categorical_logits),
        (losses.sparse_categorical_crossentropy, labels, sparse_logits),
        (mr.keras.ops.categorical_crossentropy, y, categorical_logits),
        (mr.keras.ops.sparse_categorical_crossentropy, labels, sparse_logits),
    ):
        predictions = activation(mr.constant(x))
        expected = formula(targets, x)
        np.testing.assert_allclose(function(targets, predictions).numpy(), expected, rtol=1e-5)
        with pytest.warns(UserWarning, match="thus does not represent logits. Was this intended"):
            values = function(targets, predictions, from_logits=True)
        np.testing.assert_allclose(values.numpy(), expected, rtol=1e-5)


@cases("loss", ["binary_crossentropy", "categorical_crossentropy"])
@cases("activation", ["softmax", "sigmoid"])
def test_a_model_has_the_loss_of_its_logits(loss: str, activation: str) -> None:
    x, y = random((4, 3)).astype(np.float32), np.eye(3)[[0, 2, 1, 1]]
    inputs = mr.layers.Input((3,))
    made = getattr(mr.keras.activations, activation)(inputs)
    dense = mr.layers.Dense(3, activation, kernel_initializer="identity")(inputs)
    formula = binary_logits if loss[0] == "b" else categorical_logits
    for outputs in (made, dense):
        model = mr.Model(inputs, outputs)
        model.compile("sgd", loss, metrics=[loss])
        expected = formula(y, x).mean()
        assert model.evaluate(x, y, verbose=0) == pytest.approx([expected] * 2, rel=1e-5)


TWO_VECTORS = [
    (losses.MeanSquaredError, losses.mean_squared_error),
    (losses.KLDivergence, losses.kl_divergence),
    (losses.BinaryCrossentropy, losses.binary_crossentropy),
    (losses.CategoricalHinge, losses.categorical_hinge),
    (losses.CosineSimilarity, losses.cosine_similarity),
]


@cases(("kind", "function"), TWO_VECTORS)
def test_two_vectors_are_one_example(kind: Any, function: Any) -> None:
    y, p = (RNG.uniform(0.1, 0.9, 5).astype(np.float32) for _ in range(2))
    for reduction in ("none", "sum", "sum_over_batch_size"):
        value = kind(reduction=reduction)(y, p)
        assert value.shape == ()
        assert float(value) == pytest.approx(float(function(y, p)))
        # A column beside a vector makes one of it.
        rows = kind(reduction=reduction)(y[:, None], p[:, None]).numpy()
        for one, other in ((y[:, None], p), (y, p[:, None])):
            np.testing.assert_allclose(kind(reduction=reduction)(one, other).numpy(), rows)


def test_weights_tell_the_examples_of_vectors_apart() -> None:
    y, p, weights = np.array([1.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.25]), np.array([1.0, 0, 2])
    errors = (y - p) ** 2 * weights
    assert float(losses.MeanSquaredError()(y, p, weights)) == pytest.approx(errors.mean())
    with pytest.raises(ValueError, match="returned one number for the batch"):
        losses.CosineSimilarity()(y, p, weights)


@cases("reduction", ["sum", "sum_over_batch_size"])
@cases("kind", [losses.MeanSquaredError, losses.KLDivergence])
def test_vectors_on_replicas(kind: Any, reduction: str, simulate: Any) -> None:
    simulate(3)
    x, y = RNG.uniform(0.1, 0.9, (7, 2)), RNG.uniform(0.1, 0.9, 7)
    found = []
    for replicas in (1, 3):
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            inputs = mr.layers.Input((2,))
            outputs = mr.layers.Dense(1, "sigmoid", kernel_initializer="ones")(inputs)
            model = mr.Model(inputs, mr.keras.ops.squeeze(outputs, -1))
            metrics = [mr.metrics.KLDivergence(), mr.metrics.BinaryCrossentropy()]
            model.compile(mr.optim.SGD(0.5), kind(reduction=reduction), metrics=metrics)
        history = model.fit(x, y, batch_size=4, shuffle=False, verbose=0).history
        found.append([*np.ravel(list(history.values())), *model.get_weights()[0].ravel()])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    with mr.MirroredStrategy().scope():  # Cosines of shards are no part of that of the batch.
        model = mr.keras.models.clone_model(model)
        model.compile("sgd", losses.CosineSimilarity())
    with pytest.raises(ValueError, match="neither a mean nor a sum over a shard's examples"):
        model.fit(x, y, batch_size=4, verbose=0)


def test_one_class_is_a_warning() -> None:
    p = np.ones((2, 1), np.float32)
    for loss in (losses.CategoricalCrossentropy(), losses.categorical_focal_crossentropy):
        with pytest.warns(SyntaxWarning, match=r"num_classes > 1. Received: .*shape=\(2, 1\)"):
            loss(p, p)
    for softmax in (mr.keras.activations.softmax, mr.keras.ops.softmax, mr.layers.Softmax()):
        with pytest.warns(UserWarning, match=r"softmax over axis -1 .* shape \(2, 1\)"):
            softmax(mr.constant(p))


def test_keras_probabilities() -> None:
    """Values seen in Keras 3.15."""
    p = np.array([[0.2, 0.999999], [1.0, 0.0]], np.float32)
    loss = losses.BinaryCrossentropy(reduction="none")
    np.testing.assert_allclose(loss([[0, 1], [0, 0]], p).numpy(), [0.11157227, 7.9711924], 1e-6)
    rows = np.array([[0.2, 0.3, 0.1]])
    assert float(losses.CategoricalCrossentropy()([[1.0, 0, 0]], rows)) == pytest.approx(1.0986123)
    assert float(losses.SparseCategoricalCrossentropy()([0], rows)) == pytest.approx(1.0986123)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4)])
def test_functions_reduce_the_last_axis_only(shape: Any) -> None:
    p = np.full(shape, 0.25)
    for function in (losses.mean_squared_error, losses.binary_crossentropy):
        assert function(p, p).shape == shape[:-1]
    assert losses.categorical_crossentropy(p, p).shape == shape[:-1]
    labels = np.zeros(shape[:-1], np.int64)
    assert losses.sparse_categorical_crossentropy(labels, p).shape == shape[:-1]


@cases("name", [each for each in losses.__all__ if inspect.isclass(getattr(losses, each))])
def test_the_dtype_that_a_loss_is_computed_in(name: str) -> None:
    """It is the constructor's or floatx, whatever the predictions are; gradients have theirs."""
    kind: Any = getattr(losses, name)
    if name in ("Loss", "Reduction"):
        return
    labels = kind.targets_are_labels or name in ("Circle", "CategoricalGeneralizedCrossEntropy")
    predictions = distribution((6, 3)).astype(np.float32)
    y: Any = np.arange(6) % 3
    y = y if labels else np.eye(3)[y]
    made = kind(dtype="float64")
    assert made.dtype == "float64"
    assert kind().dtype == mr.keras.backend.floatx()
    assert kind()(y, predictions.astype(np.float64)).dtype == np.float32
    x = mr.constant(predictions)
    with mr.GradientTape() as tape:
        tape.watch(x)
        value = made(y, x)
    assert value.dtype == np.float64
    assert float(value) == float(made(y, predictions.astype(np.float64)))
    assert tape.gradient(value, x).dtype == np.float32
    with pytest.raises(ValueError, match="computed in float32 or float64"):
        kind(dtype="float16")


def test_a_model_has_a_loss_of_another_dtype() -> None:
    model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1, kernel_initializer="ones")])
    policy = mr.keras.DTypePolicy("float64")
    model.compile("sgd", losses.MeanSquaredError(dtype=policy), metrics=["mae"])
    history = model.fit(np.ones((4, 2)), np.zeros((4, 1)), batch_size=4, verbose=0).history
    assert history == {"loss": [4.0], "mae": [2.0]}
