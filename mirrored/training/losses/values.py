"""Targets, predictions and weights as losses and metrics compute with them.

Their dtypes and shapes are made to fit here, so that no formula has to look at them.
"""

from typing import Any, TypeVar

from mirrored import ops
from mirrored._numbers import as_integer
from mirrored.distribute import get_replica_context
from mirrored.distribute.global_batch import global_batch
from mirrored.errors import InvalidArgumentError
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor
from mirrored.ops.activations import cast_with_logits, remember
from mirrored.ops.spec import DType, default_float, is_bfloat16
from mirrored.ops.tensor_views import masked

# Keras' epsilon: keeps probabilities away from 0 and 1, and quotients and logarithms finite.
EPSILON = 1e-7
_Values = TypeVar("_Values", Tensor, list[Tensor])


def converted(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Return a user's targets and predictions in one dtype and shape.

    Raises:
        ValueError: The shapes differ.
    """
    y_pred = as_predictions(y_pred)
    y_true = cast(ops.convert_to_tensor(y_true), y_pred.dtype)
    if y_pred.ndim == 1 and y_true.shape == (*y_pred.shape, 1):
        y_pred = column(y_pred)
    y_true = aligned(y_true, y_pred)
    check_same_shape(y_true, y_pred)
    return y_true, y_pred


def computed_in(dtype: Any) -> DType:
    """Return the dtype that a loss is asked to be computed in: a name, or a policy of layers.

    Args:
        dtype: It.

    Raises:
        ValueError: It is not float32 or float64.
    """
    compute_dtype = ops.as_dtype(getattr(dtype, "compute_dtype", dtype))
    if compute_dtype not in (ops.float32, ops.float64):
        raise ValueError(
            f"Losses are computed in float32 or float64. Received: dtype={dtype!r}. Leave it out: "
            "predictions in bfloat16 are cast to float32."
        )
    return compute_dtype


def as_predictions(y_pred: Any, dtype: DType | None = None) -> Tensor:
    """Return predictions as a tensor of the dtype that losses are computed in, or of another."""
    y_pred = ops.convert_to_tensor(y_pred)
    dtype = loss_dtype(y_pred.dtype) if dtype is None else dtype
    return y_pred if y_pred.dtype == dtype else cast_with_logits(y_pred, dtype)


def loss_dtype(dtype: DType) -> DType:
    """Return the dtype that losses of predictions are computed in.

    Bfloat16 would be too coarse; integers, which wrap around and have no halves, become floats.
    """
    if is_bfloat16(dtype):
        return ops.float32
    return dtype if dtype.kind == "f" else default_float()


def cast(x: Tensor, dtype: Any) -> Tensor:
    """Return `x` in `dtype`, itself where it has it."""
    return x if x.dtype == dtype else ops.cast(x, dtype)


def cast_values(values: Tensor, dtype: Any) -> Tensor:
    """Return what a loss's `call` returned in a dtype, with its mask."""
    if values.dtype == dtype or values._keras_mask is None:
        return cast(values, dtype)
    return masked(ops.cast(values, dtype), values._keras_mask)


def in_one_dtype(tensors: list[Tensor]) -> list[Tensor]:
    """Return tensors in the widest of their dtypes."""
    widest = max((tensor.dtype for tensor in tensors), key=lambda dtype: dtype.itemsize)
    return [cast(tensor, widest) for tensor in tensors]


def shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return `x` in a shape, itself where it has it."""
    return x if x.shape == shape else ops.reshape(x, shape)


def aligned(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return targets with a last axis of size 1 added or removed, where that gives y_pred's shape.

    Without this (batch,) against (batch, 1) would be broadcast to (batch, batch).
    """
    if y_pred.shape in ((*y_true.shape, 1), y_true.shape[:-1]) and y_true.size == y_pred.size:
        return ops.reshape(y_true, y_pred.shape)
    return y_true


def column(y_pred: Tensor) -> Tensor:
    """Return a vector of predictions as a column, with its mask and logits: a row per example."""
    made_by, logits = y_pred._logits or ("", None)
    result = ops.expand_dims(y_pred, -1)
    if y_pred._keras_mask is not None:
        result = masked(result, y_pred._keras_mask)
    return result if logits is None else remember(result, made_by, ops.expand_dims(logits, -1))


def of_one_rank(true: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor]:
    """Return both with a last axis of size 1 where one of them has it, and is of rank 2."""
    if predicted.ndim > true.ndim:
        predicted, true = of_one_rank(predicted, true)
    elif true.ndim == predicted.ndim + 1 and true.shape[-1] == 1:
        if predicted.ndim == 1:
            return true, ops.expand_dims(predicted, -1)
        return ops.squeeze(true, -1), predicted
    return true, predicted


def check_same_shape(y_true: Tensor, y_pred: Tensor) -> None:
    """Refuse shapes that would be broadcast against each other.

    Raises:
        ValueError: The shapes differ.
    """
    if y_true.shape != y_pred.shape:
        raise ValueError(
            "Targets and predictions must have the same shape. Received: y_true with shape "
            f"{y_true.shape} and y_pred with shape {y_pred.shape}."
        )


def labels_of(y_true: Tensor, y_pred: Tensor, advice: str = "") -> Tensor:
    """Return labels in the predictions' shape without its last axis.

    Raises:
        ValueError: The shapes do not fit; the message ends with `advice`.
    """
    expected = y_pred.shape[:-1]
    if not y_pred.shape or y_true.shape not in (expected, (*expected, 1)):
        raise ValueError(
            "Labels must have the shape of the predictions without the last axis, the classes. "
            f"Received: y_true with shape {y_true.shape} and y_pred with shape {y_pred.shape}."
            f"{advice}"
        )
    return shaped(y_true, expected)


def class_indices(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return labels as integers of the predictions' shape without its last axis.

    Raises:
        ValueError: The shapes do not fit.
    """
    advice = " For one-hot targets use categorical cross-entropy and accuracy."
    labels = labels_of(y_true, y_pred, advice)
    return labels if labels.dtype in (ops.int32, ops.int64) else cast(labels, ops.int64)


def mean_of_rest(values: Tensor) -> Tensor:
    """Return the mean over all axes but the first, the batch."""
    return ops.reduce_mean(values, axis=tuple(range(1, values.ndim))) if values.ndim > 1 else values


def weighted(values: Tensor, sample_weight: Any) -> Tensor:
    """Return the values times their weights.

    Raises:
        ValueError: The weights' shape does not fit.
    """
    if sample_weight is None:
        return values
    weights = example_weights(sample_weight, values)
    if weights.ndim == 1 and values.ndim > 1:
        weights = ops.reshape(weights, (*weights.shape, *[1] * (values.ndim - 1)))
    return values * weights


def of_examples(values: Tensor, y_pred: Tensor, sample_weight: Any) -> Tensor:
    """Return the weighted loss of each example, given what a loss's `call` returned.

    Raises:
        ValueError: The weights' shape does not fit.
    """
    if not values.shape:
        values = ops.broadcast_to(values, y_pred.shape[:1])
    if sample_weight is None:
        return mean_of_rest(values)
    weights = example_weights(sample_weight, values)
    if weights.ndim > 1:
        return mean_of_rest(values * weights)
    return mean_of_rest(values) * weights


def example_weights(sample_weight: Any, values: Tensor, axes: int | None = None) -> Tensor:
    """Return weights in the dtype of `values`, one an example, one for all, or as many axes.

    Returns:
        A tensor of shape () or (batch,), or of as many axes as the values.

    Raises:
        ValueError: The shape is another.
    """
    weights = cast(ops.convert_to_tensor(sample_weight), values.dtype)
    return shaped(weights, fitted_shape(weights.shape, values.shape[:axes]))


def check_one_weight(source: str, sample_weight: Any) -> Tensor:
    """Return the weight of a whole batch; refuse weights of examples.

    Raises:
        ValueError: It is no scalar.
    """
    weight = ops.convert_to_tensor(sample_weight)
    if weight.shape:
        raise ValueError(
            f"The {source} returned one number for the batch, so weights per example do not "
            f"apply. Received: sample_weight with shape {weight.shape}. Return one value per "
            "example."
        )
    return weight


def fitted_shape(weights: tuple[int, ...], values: Shape) -> tuple[int, ...]:
    """Return the shape in which weights broadcast to values of this shape.

    Returns:
        (), (batch,) for one weight an example, or a shape of as many axes as `values`.

    Raises:
        ValueError: They would not broadcast, or would along another axis than is meant.
    """
    shape = weights
    if len(shape) == len(values) + 1 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) == 2 and shape[1] == 1:
        shape = shape[:1]
    if not shape:
        return shape
    if len(shape) in (1, len(values)):
        pairs = zip(shape, values, strict=len(shape) > 1)
        if all(want is None or have in (1, want) for have, want in pairs):
            return shape
    raise ValueError(refusal(weights, values))


def refusal(weights: tuple[int, ...], values: Shape) -> str:
    """Return what an error says of weights that do not fit."""
    batch = "batch" if values[0] is None else values[0]
    more = f", or weights that broadcast to {values}" if len(values) > 1 else ""
    return (
        f"`sample_weight` must have one weight an example, shape ({batch},) or ({batch}, 1){more}. "
        f"Received: sample_weight with shape {weights}."
    )


def checked_class(ignore_class: Any) -> int | None:
    """Return a class that is ignored as an integer, None as it is."""
    number = None if ignore_class is None else as_integer(ignore_class)
    if number is None and ignore_class is not None:
        raise ValueError(f"`ignore_class` must be an integer or None. Received: {ignore_class!r}")
    return number


def example_axis(axis: Any) -> int:
    """Return the axis that makes one value; refuse that of the batch."""
    number = None if isinstance(axis, bool) else as_integer(axis)
    if number is None or number == 0:
        raise ValueError(f"`axis` must be an integer, and 0 is the batch. Received: axis={axis!r}")
    return number


def check_class_axis(axis: Any) -> None:
    """Refuse a boolean as axis, with Keras' sentence."""
    if isinstance(axis, bool):
        raise ValueError(
            f"`axis` must be of type `int`. Received: axis={axis} of type {type(axis)}"
        )


def check_last_axis(axis: int, y_pred: Tensor) -> None:
    """Refuse another axis than the last one, as Keras does on TensorFlow."""
    if axis not in (-1, y_pred.ndim - 1):
        raise ValueError(f"Only axis=-1 is currently supported. Received: axis={axis}")


def check_not_batch(axis: int, y_pred: Tensor) -> None:
    """Refuse an axis from the end that is the batch's."""
    if axis == -y_pred.ndim and y_pred.ndim > 1:
        raise ValueError(
            f"`axis` must not be the axis of the batch. Received: axis={axis} for predictions of "
            f"shape {y_pred.shape}."
        )


def mean_of_axis(values: Tensor, axis: int) -> Tensor:
    """Return the mean over an axis, which is the batch's where that is all there is."""
    check_not_batch(axis, values)
    return ops.reduce_mean(values, axis=axis)


def last_axis(x: Tensor, axis: int) -> Tensor:
    """Return `x` with an axis moved to the end.

    Raises:
        InvalidArgumentError: There is no such axis.
    """
    if not -x.ndim <= axis < x.ndim:
        raise InvalidArgumentError(f"`axis` is out of bounds for shape {x.shape}: axis={axis}")
    order = list(range(x.ndim))
    order.append(order.pop(axis))
    return ops.transpose(x, order)


def weighted_by_shard(value: Tensor, use: str = "loss") -> Tensor:
    """Return a replica's number for its shard as it counts in the sum over the replicas.

    Args:
        value: The number: a mean over the examples, or a sum.
        use: What it is; see `GlobalBatch.weights`.
    """
    batch, context = global_batch(), get_replica_context()
    if batch is None or context is None:
        return value
    (weight,) = batch.weights(use, context.replica_id_in_sync_group, [value])
    return value if weight == 1.0 else value * weight


def as_mean_of_shard(value: Tensor, use: str = "loss") -> Tensor:
    """Return a replica's number for its shard as one that counts by the shard's examples.

    Args:
        value: The number: a mean over the examples, or a sum.
        use: What it is; see `GlobalBatch.weights`.
    """
    batch, context = global_batch(), get_replica_context()
    if batch is None or context is None:
        return value
    return batch.as_mean(use, context.replica_id_in_sync_group, value)


def known_as_mean(value: Tensor) -> Tensor:
    """Return a number that counts by the shard's examples, whatever it was computed from."""
    batch = global_batch()
    if batch is not None:
        batch.note_means([value])
    return value


def refuse_parts(quantity: str, advice: str = "") -> None:
    """Refuse a replica's part of a batch, of which `fit` alone knows the rest.

    Raises:
        ValueError: There are other replicas, in a step that `fit` does not run.
    """
    context = get_replica_context()
    if global_batch() is None and context is not None and context.num_replicas_in_sync > 1:
        raise ValueError(
            f"{quantity}, and a replica has only a part of it. Let `fit` run the step{advice}."
        )


def sum_of_replicas(value: _Values) -> _Values:
    """Return the sum over all replicas of what each has, a tensor or several in a list."""
    context = get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    total: _Values = context.all_reduce("sum", value)
    return total
