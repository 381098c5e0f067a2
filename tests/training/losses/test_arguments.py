"""What losses take and refuse: shapes, dtypes, weights, names, reductions and own functions."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.training import losses
from mirrored.training.losses import Loss

Array = Any  # What NumPy's own operators are annotated to return.


@cases(
    ("y_shape", "p_shape"),
    [
        ((3,), (3, 1)),
        ((3, 1), (3,)),
        ((3, 1), (3, 1)),
        ((1,), (1, 1)),
        ((0,), (0, 1)),
        ((3, 2), (3, 2, 1)),
        ((3, 2, 1), (3, 2)),
    ],
)
def test_a_last_axis_of_one_is_not_broadcast(y_shape: Any, p_shape: Any) -> None:
    y = np.arange(float(np.prod(y_shape))).reshape(y_shape)
    p = y[::-1].reshape(p_shape)
    expected = (y.reshape(p_shape) - p) ** 2
    result = losses.MeanSquaredError(reduction="none")(y, p)
    np.testing.assert_array_equal(result.numpy(), expected.mean(-1) if p.ndim > 1 else expected)


@cases("dtype", ["int32", "int64", "float64", "bool"])
def test_targets_are_cast_to_the_predictions_dtype(dtype: str) -> None:
    y = np.array([[0], [1]], dtype)
    p = np.array([[0.5], [0.5]], np.float32)
    assert losses.MeanSquaredError()(y, p).dtype == "float32"
    assert losses.as_loss(lambda y_true, y_pred: y_true - y_pred)(y, p).dtype == "float32"


@cases("y", [[1.0, 0.0], [[1], [0]], np.array([1, 0], np.int32)])
def test_labels_of_any_form(y: Any) -> None:
    p = np.array([[0.25, 0.75], [0.5, 0.5]])
    result = losses.SparseCategoricalCrossentropy(reduction="none", dtype="float64")(y, p)
    np.testing.assert_allclose(result.numpy(), -np.log([0.75, 0.5]))


@cases(
    ("loss", "y", "p", "message"),
    [
        (
            losses.MeanSquaredError(),
            np.zeros((3, 2)),
            np.zeros((3, 4)),
            r"must have the same shape. Received: y_true with shape \(3, 2\) and y_pred with shape",
        ),
        (losses.BinaryCrossentropy(), np.zeros((3, 1)), np.zeros((3, 4)), "the same shape"),
        (losses.CategoricalCrossentropy(), np.zeros(3), np.zeros((3, 4)), "the same shape"),
        (losses.MeanSquaredError(), 1.0, 2.0, r"predictions of shape \(batch, ...\). .* scalar"),
        (
            losses.SparseCategoricalCrossentropy(),
            np.zeros((3, 4)),
            np.zeros((3, 4)),
            r"without the last axis.* y_true with shape \(3, 4\) .*For one-hot targets use",
        ),
        (
            losses.SparseCategoricalCrossentropy(),
            np.zeros(2),
            np.zeros((3, 4)),
            "Labels must have the shape of the predictions without the last axis",
        ),
        (losses.MeanSquaredError(), np.zeros(3), np.zeros((3, 2)), "the same shape"),
        (losses.MeanSquaredError(), np.zeros((3, 2)), np.zeros(3), "the same shape"),
        (
            losses.SparseCategoricalCrossentropy(),
            [0, 4],
            np.full((2, 4), 0.25),
            r"Received a label value of 4 which is outside the valid range of \[0, 4\)",
        ),
        (
            losses.as_loss(lambda y_true, y_pred: ops.reduce_mean(y_pred, axis=0)),
            np.zeros((3, 4)),
            np.zeros((3, 4)),
            r"'<lambda>' must return one value per example, shape \(3,\) or \(3, ...\), or one "
            r"number for the batch. Received: a tensor of shape \(4,\).*the mean over the batch "
            r"is",
        ),
    ],
)
def test_shapes_refused(loss: Loss, y: Any, p: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loss(y, p)


@cases("weights", [np.ones(3), np.ones((2, 2)), np.ones((1, 2))])
def test_weights_refused(weights: Array) -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\) or \(2, 1\). Received: sample_weight with"):
        losses.MeanSquaredError()(np.zeros((2, 1)), np.zeros((2, 1)), weights)


def test_weights_of_a_mean_by_weights() -> None:
    """They count as they are given, before they broadcast, as in Keras 3.15.1."""
    loss = losses.MeanSquaredError(reduction="mean_with_sample_weight")
    y, p = np.arange(12.0).reshape(3, 2, 2), np.ones((3, 2, 2))
    for weights, expected in (
        ([[1.0], [2.0], [3.0]], 265.0 / 3.0),
        ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 283.0 / 6.0),
        (2.0, 193.0),
        ([0.0, 0.0, 0.0], 0.0),
    ):
        assert float(loss(y, p, weights)) == pytest.approx(expected)
    with pytest.raises(ValueError, match="must have one weight an example"):
        loss(y, p, [[1.0, 2.0]])


@cases("reduction", ["sum_over_batch_size", "sum", "none", "mean_with_sample_weight"])
def test_one_number_for_the_batch(reduction: str) -> None:
    """It is the loss, whatever the reduction, as in Keras 3.15."""

    class Largest(Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return ops.reduce_max(ops.abs(y_true - y_pred))

    loss, y, p = Largest(reduction=reduction), np.zeros((3, 2)), np.array([[0, 1], [2, 0], [5, 4]])
    assert (float(loss(y, p * 1.0)), float(loss(y, p * 1.0, 2.0))) == (5.0, 10.0)
    assert loss.per_example(y, p * 1.0).numpy().tolist() == [5.0] * 3
    with pytest.raises(ValueError, match=r"'largest' returned one number for the batch, so we"):
        loss(y, p * 1.0, [1.0, 2.0, 3.0])


def test_own_losses() -> None:
    def absolute(y_true: Any, y_pred: Any) -> Any:
        return ops.abs(y_true - y_pred)

    class Absolute(Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return absolute(y_true, y_pred)

    y, p = np.array([[1, 2], [3, 4]]), np.array([[1.0, 4.0], [0.0, 4.0]])
    for loss, name in (
        (losses.as_loss(absolute), "absolute"),
        (losses.as_loss(Absolute), "absolute"),
        (losses.as_loss(Absolute(name="mine", reduction="sum")), "mine"),
    ):
        assert loss.name == name
        np.testing.assert_array_equal(loss.per_example(y, p).numpy(), [1.0, 1.5])


def test_a_loss_without_call() -> None:
    class Empty(Loss):
        pass

    with pytest.raises(NotImplementedError, match=r"The loss Empty has no `call`. Define"):
        Empty()([1.0], [1.0])


NAMES: dict[str, type[Loss]] = {
    "mse": losses.MeanSquaredError,
    "MSE": losses.MeanSquaredError,
    "mean_squared_error": losses.MeanSquaredError,
    "MeanSquaredError": losses.MeanSquaredError,
    "bce": losses.BinaryCrossentropy,
    "binary_crossentropy": losses.BinaryCrossentropy,
    "BinaryCrossentropy": losses.BinaryCrossentropy,
    "categorical_crossentropy": losses.CategoricalCrossentropy,
    "CategoricalCrossentropy": losses.CategoricalCrossentropy,
    "sparse_categorical_crossentropy": losses.SparseCategoricalCrossentropy,
    "SparseCategoricalCrossentropy": losses.SparseCategoricalCrossentropy,
}


@cases(("name", "cls"), NAMES.items())
def test_names(name: str, cls: type[Loss]) -> None:
    assert type(losses.as_loss(name)) is cls


@cases(
    ("function", "cls"),
    [
        (losses.mse, losses.MeanSquaredError),
        (losses.binary_crossentropy, losses.BinaryCrossentropy),
        (losses.categorical_crossentropy, losses.CategoricalCrossentropy),
        (losses.sparse_categorical_crossentropy, losses.SparseCategoricalCrossentropy),
    ],
)
def test_our_functions_are_checked_as_our_classes_are(function: Any, cls: type[Loss]) -> None:
    assert type(losses.as_loss(function)) is cls


def test_get_has_functions_by_their_names() -> None:
    """As Keras': a function has a value an example, where the class has their mean."""
    others = {"as_loss", "deserialize", "get", "serialize"}
    names = [name for name in losses.__all__ if name.islower() and name not in others]
    assert [losses.get(each) for each in names] == [getattr(losses, each) for each in names]
    for name in ("bce", "BCE", "binary_crossentropy"):
        assert losses.get(name) is losses.deserialize(name) is losses.binary_crossentropy
    assert losses.get("MSE") is losses.mse
    for made in ("Huber", losses.Huber, {"class_name": "Huber", "config": {}}):
        assert type(losses.get(made)) is losses.Huber
    own = losses.Huber(2.0)
    assert (losses.get(own), losses.get(print), losses.get(None)) == (own, print, None)
    for wrong in ("foo", 3, ["mse"]):
        with pytest.raises(ValueError, match="Could not interpret loss identifier: "):
            losses.get(wrong)


@cases("identifier", ["foo", 3, None, dict, ["mse"]])
def test_unknown(identifier: Any) -> None:
    with pytest.raises(
        ValueError, match=r"Could not interpret loss identifier: .*Known losses"
    ) as e:
        losses.as_loss(identifier)
    assert str(identifier) in str(e.value)
    assert all(name in str(e.value) for name in NAMES)


def test_reduction_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`reduction`. Expected one of .* Received: reduction=foo"
    ):
        losses.MeanSquaredError(reduction="foo")


def test_reduction_names() -> None:
    for reduction in (losses.Reduction.NONE, losses.Reduction.SUM):
        assert losses.MeanSquaredError(reduction=reduction).reduction == reduction
    assert losses.MeanSquaredError().reduction == losses.Reduction.SUM_OVER_BATCH_SIZE


@pytest.mark.behaviour("loss-reduction")
def test_the_mean_over_a_batch_is_refused_in_a_scope() -> None:
    y = p = np.zeros((2, 1))
    with mr.MirroredStrategy(["CPU:0"]).scope():
        with pytest.raises(
            ValueError, match=r"Please use `mr.losses.Reduction.SUM` or `mr.losses."
        ):
            losses.MeanSquaredError()(y, p)
        with pytest.raises(ValueError, match="with reduction='mean_with_sample_weight'"):
            losses.MeanSquaredError(reduction="mean_with_sample_weight")(y, p, [1.0, 1.0])
        assert float(losses.MeanSquaredError(reduction="sum")(y, p)) == 0.0
    assert float(losses.MeanSquaredError()(y, p)) == 0.0


@cases("reduction", ["none", "sum", "mean", "mean_with_sample_weight"])
def test_of_placeholders_it_is_a_node(reduction: str) -> None:
    loss = losses.MeanSquaredError(reduction=reduction)
    parts = [mr.layers.Input((2,)), mr.layers.Input((2,)), mr.layers.Input(())]
    model = mr.Model(parts, loss(*parts))
    assert model.output_shape == ((None,) if reduction == "none" else ())
    assert model.operations[-1].name.startswith("mean_squared_error")
    values = [np.arange(6.0).reshape(3, 2), np.ones((3, 2)), np.array([1.0, 2.0, 4.0])]
    np.testing.assert_allclose(model(values).numpy(), loss(*values).numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="the same shape"):
        loss(mr.layers.Input((2,)), mr.layers.Input((3,)))
