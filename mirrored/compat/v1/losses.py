"""TensorFlow 1's `tf.losses`: weighted means, which the graph collects."""

from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored.compat.v1.drawn_calls import drawn
from mirrored.compat.v1.graph import drawing, get_default_graph
from mirrored.compat.v1.listing import named
from mirrored.compat.v1.variables import GraphKeys


class Reduction:
    """How losses of elements are reduced to one loss."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_BY_NONZERO_WEIGHTS = SUM_OVER_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Return all of them."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)


def _weighted(losses: Any, weights: Any, reduction: str) -> Any:
    losses = ops.convert_to_tensor(losses)
    dtype = losses.dtype if losses.dtype.kind == "f" else ops.float32
    losses, weights = ops.cast(losses, dtype), ops.cast(weights, dtype)
    weighted = losses * weights
    if reduction == Reduction.NONE:
        return weighted
    total = ops.reduce_sum(weighted)
    if reduction == Reduction.SUM:
        return total
    every = weights * ops.ones_like(losses)
    if reduction == Reduction.MEAN:
        return ops.divide_no_nan(total, ops.reduce_sum(every))
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return ops.divide_no_nan(total, ops.reduce_sum(ops.ones_like(losses)))
    present = ops.reduce_sum(ops.cast(ops.not_equal(every, 0.0), dtype))
    return ops.divide_no_nan(total, present)


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the weighted mean of losses, over those whose weight is not 0.

    Args:
        losses: A tensor.
        weights: A number, or a tensor of as many axes whose sizes are 1 or the losses'.
        scope: What its operations' names begin with.
        loss_collection: The collection that it is put into; None: none.
        reduction: One of `Reduction`.

    Raises:
        ValueError: The reduction is none of them, or the weights do not fit.
    """
    name = scope or "weighted_loss"
    return _lost(lambda values: values, (losses,), weights, name, loss_collection, reduction)


def _lost(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    weights: Any,
    scope: str,
    collection: str | None,
    reduction: str,
) -> Any:
    """Draw a loss of elements, its weighted mean, and put that into a collection."""
    if reduction not in Reduction.all():
        raise ValueError(f"Invalid Reduction Key {reduction}.")

    def compute(tensors: Any, weights: Any) -> Any:
        losses = function(*tensors)
        check_weights(losses.shape, ops.convert_to_tensor(weights).shape)
        return _weighted(losses, weights, reduction)

    with drawing(scope, args, weights):
        loss = drawn(compute, (args, weights), "WeightedLoss", "value")
        add_loss(loss, collection)
    return loss


def check_weights(losses: Any, weights: Any) -> None:
    """Raise ValueError unless weights of a shape are numbers for losses of a shape."""
    fits = not weights or (
        len(weights) == len(losses)
        and all(size in (1, other) for size, other in zip(weights, losses, strict=True))
    )
    if not fits:
        raise ValueError(
            f"weights can not be broadcast to values. values.shape={losses}. "
            f"weights.shape={weights}."
        )


def _check_same(first: Any, other: Any) -> None:
    if first.shape != other.shape:
        raise ValueError(f"Shapes {first.shape} and {other.shape} are incompatible")


def _smoothed(labels: Any, logits: Any, amount: float, classes: int | None = None) -> Any:
    """Return labels of the logits' dtype, moved towards one part for each class."""
    labels = ops.cast(labels, logits.dtype)
    _check_same(logits, labels)
    if amount > 0:
        labels = labels * (1 - amount) + amount / (classes or labels.shape[1])
    return labels


def _of_pairs(called: str, function: Callable[[Any, Any], Any], what: str) -> Callable[..., Any]:
    """Return a loss of predictions and labels of one shape, as floats.

    Args:
        called: Its name.
        function: From predictions and labels to losses.
        what: What it is the mean of.
    """

    def compute(predictions: Any, labels: Any) -> Any:
        predictions, labels = (ops.cast(value, "float32") for value in (predictions, labels))
        _check_same(predictions, labels)
        return function(predictions, labels)

    def loss(
        labels: Any,
        predictions: Any,
        weights: Any = 1.0,
        scope: str | None = None,
        loss_collection: str | None = GraphKeys.LOSSES,
        reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    ) -> Any:
        """Return the weighted mean of {what}, in float32.

        Args:
            labels: A tensor.
            predictions: A tensor of its shape.
            weights: As for `compute_weighted_loss`, like the rest.
            scope: What its operations' names begin with.
            loss_collection: The collection that it is put into; None: none.
            reduction: One of `Reduction`.
        """
        args, name = (predictions, labels), scope or called
        return _lost(compute, args, weights, name, loss_collection, reduction)

    return named(loss, called, what=what)


mean_squared_error = _of_pairs("mean_squared_error", ops.squared_difference, "squared differences")
absolute_difference = _of_pairs(
    "absolute_difference",
    lambda predictions, labels: ops.abs(predictions - labels),
    "absolute differences",
)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the weighted mean of the cross entropies of elements.

    Args:
        multi_class_labels: A tensor of numbers from 0 to 1.
        logits: A tensor of its shape.
        weights: As for `compute_weighted_loss`, like the rest.
        label_smoothing: How far labels are moved to 1/2.
        scope: What its operations' names begin with.
        loss_collection: The collection that it is put into; None: none.
        reduction: One of `Reduction`.
    """

    def compute(logits: Any, labels: Any) -> Any:
        labels = _smoothed(labels, logits, label_smoothing, 2)
        return ops.sigmoid_cross_entropy_with_logits(labels, logits)

    name = scope or "sigmoid_cross_entropy_loss"
    args = (logits, multi_class_labels)
    return _lost(compute, args, weights, name, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the weighted mean of the cross entropies of rows.

    Args:
        onehot_labels: A tensor of probabilities, which nothing is differentiated by.
        logits: A tensor of its shape.
        weights: As for `compute_weighted_loss`, like the rest.
        label_smoothing: How far labels are moved to equal ones.
        scope: What its operations' names begin with.
        loss_collection: The collection that it is put into; None: none.
        reduction: One of `Reduction`.
    """

    def compute(logits: Any, labels: Any) -> Any:
        labels = _smoothed(labels, logits, label_smoothing)
        return ops.softmax_cross_entropy_with_logits(ops.stop_gradient(labels), logits)

    name = scope or "softmax_cross_entropy_loss"
    args = (logits, onehot_labels)
    return _lost(compute, args, weights, name, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the weighted mean of the cross entropies of rows, for integer labels.

    Args:
        labels: The numbers of classes, one a row, also with an axis of size 1 behind.
        logits: A tensor.
        weights: As for `compute_weighted_loss`, like the rest.
        scope: What its operations' names begin with.
        loss_collection: The collection that it is put into; None: none.
        reduction: One of `Reduction`.
    """

    def compute(labels: Any, logits: Any) -> Any:
        labels = ops.convert_to_tensor(labels)
        if len(labels.shape) == len(logits.shape):
            labels = ops.squeeze(labels, -1)
        return ops.sparse_softmax_cross_entropy_with_logits(labels, logits)

    name = scope or "sparse_softmax_cross_entropy_loss"
    return _lost(compute, (labels, logits), weights, name, loss_collection, reduction)


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add a loss to a collection."""
    if loss_collection is not None:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """Return the losses that were collected."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """Return the losses of regularizers."""
    return get_losses(scope, GraphKeys.REGULARIZATION_LOSSES)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Any:
    """Return the sum of the losses that were collected.

    Args:
        add_regularization_losses: Whether those of regularizers are among them.
        name: Its name.
        scope: What the names of losses begin with that it is the sum of.
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses += get_regularization_losses(scope)
    return drawn(ops.add_n, (losses,), "AddN", name)
