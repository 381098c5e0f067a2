"""TensorFlow 1's `tf.metrics`: sums over all batches so far, in local variables of the graph.

Each function returns the metric so far, and an update: it adds a batch, and is the new metric.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored import ops
from mirrored.compat.v1.graph import Graph, graph_of
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.listing import named
from mirrored.compat.v1.losses import check_weights
from mirrored.compat.v1.scopes import variable_scope
from mirrored.compat.v1.sources import constant, converted
from mirrored.compat.v1.variables import GraphKeys, Variable

_Sums = Callable[..., Sequence[Any]]
_Metric = tuple[Tensor, Tensor]


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> _Metric:
    """Return the weighted mean of values, and the update that adds a batch.

    Args:
        values: The values.
        weights: A number, or numbers for elements or rows; None: 1.
        metrics_collections: The collections that the metric is put into.
        updates_collections: The collections that the update is put into.
        name: The scope of its variables.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, [None])
        ...     so_far, update = tf.metrics.mean(x)
        ...     session.run(tf.local_variables_initializer())
        ...     for batch in ([1.0, 2.0], [6.0]):
        ...         last = session.run(update, {x: batch})
        ...     float(last), float(session.run(so_far))
        (3.0, 3.0)
    """
    collections = (metrics_collections, updates_collections)
    return _metric("mean", name, ("total", "count"), _sums, _ratio, (values, weights), collections)


def _metric(
    default: str,
    name: str | None,
    names: Sequence[str],
    sums: _Sums,
    value: Callable[[Any, Any], Any],
    inputs: Sequence[Any],
    collections: Sequence[Any],
) -> _Metric:
    """Draw a metric of two sums, which are variables.

    Args:
        default: The scope of the variables where nothing else is said.
        name: What is said.
        names: The names of the two.
        sums: From a batch to what is added to them.
        value: From the two to the metric.
        inputs: The batch.
        collections: The collections of the metric, and those of what takes a batch into it.
    """
    graph = graph_of(inputs)
    with graph.as_default(), variable_scope(name, default):
        variables = [_sum(part) for part in names]
        batch = [None if part is None else converted(part) for part in inputs]
        parts = graph.draw(sums, batch, kind="MetricSums", name="sums").outputs
        so_far = _value(graph, value, variables, "value")
        added = [v.assign_add(part) for v, part in zip(variables, parts, strict=True)]
        update = _value(graph, value, added, "update_op")
    for some, tensor in zip(collections, (so_far, update), strict=True):
        for collection in some or ():
            graph.add_to_collection(collection, tensor)
    return so_far, update


def _sum(name: str) -> Variable:
    kept = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    zero = lambda: constant(0.0, name="zeros")  # noqa: E731
    return Variable(zero, trainable=False, collections=kept, name=name)


def _value(graph: Graph, function: Any, variables: Sequence[Any], name: str) -> Tensor:
    (tensor,) = graph.draw(function, tuple(variables), kind="DivNoNan", name=name).outputs
    return tensor


def _ratio(total: Any, count: Any) -> Any:
    return ops.divide_no_nan(total, ops.maximum(count, 0.0))


def _root(total: Any, count: Any) -> Any:
    return ops.sqrt(_ratio(total, count))


def _part(first: Any, other: Any) -> Any:
    return ops.divide_no_nan(first, first + other)


def _sums(values: Any, weights: Any) -> Sequence[Any]:
    """Return the weighted sum of values, and the sum of the weights."""
    values = ops.cast(values, "float32")
    every = _weights(weights, values)
    return [ops.reduce_sum(values * every), ops.reduce_sum(every)]


def _weights(weights: Any, values: Any) -> Any:
    """Return a weight for each value.

    Raises:
        ValueError: They fit neither elements nor rows.
    """
    if weights is None:
        return ops.ones_like(values)
    weights = ops.cast(weights, "float32")
    if weights.shape and len(weights.shape) + 1 == len(values.shape):
        weights = ops.expand_dims(weights, -1)
    check_weights(values.shape, weights.shape)
    return weights * ops.ones_like(values)


def _alike(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Return both without a last axis of size 1 that one of them has alone.

    Raises:
        ValueError: They have other shapes.
    """
    labels, predictions = ops.convert_to_tensor(labels), ops.convert_to_tensor(predictions)
    more = len(predictions.shape) - len(labels.shape)
    if more == 1:
        predictions = ops.squeeze(predictions, [-1])
    elif more == -1:
        labels = ops.squeeze(labels, [-1])
    if predictions.shape != labels.shape:
        raise ValueError(f"Shapes {predictions.shape} and {labels.shape} are incompatible")
    return labels, predictions


def _errors(error: Callable[[Any, Any], Any]) -> _Sums:
    """Return what sums the errors of predictions."""

    def sums(labels: Any, predictions: Any, weights: Any) -> Sequence[Any]:
        floats = (ops.cast(value, "float32") for value in (labels, predictions))
        return _sums(error(*_alike(*floats)), weights)

    return sums


def _hits(labels: Any, predictions: Any, weights: Any) -> Sequence[Any]:
    labels, predictions = _alike(labels, predictions)
    right = ops.equal(predictions, ops.cast(labels, predictions.dtype))
    return _sums(ops.cast(right, "float32"), weights)


def _counts(*pairs: tuple[bool, bool]) -> _Sums:
    """Return what counts where labels and predictions are these pairs."""

    def sums(labels: Any, predictions: Any, weights: Any) -> Sequence[Any]:
        labels, predictions = (ops.cast(value, "bool") for value in _alike(labels, predictions))
        counts = []
        for label, predicted in pairs:
            both = ops.logical_and(ops.equal(labels, label), ops.equal(predictions, predicted))
            values = ops.cast(both, "float32")
            counts.append(ops.reduce_sum(values * _weights(weights, values)))
        return counts

    return sums


def _of_labels(
    called: str, scope: str | None, names: Sequence[str], sums: _Sums, value: Any, words: str
) -> Callable[..., _Metric]:
    """Return a function that draws a metric of labels and predictions.

    Args:
        called: Its name.
        scope: The scope of the variables; None: one of its name that no other has.
        names: As `_metric` has them, like `sums` and `value`.
        sums: From a batch to what is added to the variables.
        value: From the variables to the metric.
        words: What it returns.
    """

    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> _Metric:
        """Return the {words}, and the update that adds a batch.

        Args:
            labels: The labels.
            predictions: Tensors of their shape.
            weights: As for `mean`, like the rest.
            metrics_collections: The collections that the metric is put into.
            updates_collections: The collections that the update is put into.
            name: The scope of its variables.
        """
        collections = metrics_collections, updates_collections
        batch = labels, predictions, weights
        return _metric(called, name or scope, names, sums, value, batch, collections)

    return named(metric, called, words=words)


_MEAN = ("total", "count")
accuracy = _of_labels(
    "accuracy", None, _MEAN, _hits, _ratio, "share of predictions that equal the labels"
)
_squares = _errors(ops.squared_difference)
_absolutes = _errors(lambda labels, predictions: ops.abs(predictions - labels))
mean_squared_error, root_mean_squared_error, mean_absolute_error = (
    _of_labels(called, called, _MEAN, sums, value, words)
    for called, sums, value, words in (
        ("mean_squared_error", _squares, _ratio, "mean of squared differences"),
        ("root_mean_squared_error", _squares, _root, "root of the mean of squared differences"),
        ("mean_absolute_error", _absolutes, _ratio, "mean of absolute differences"),
    )
)
precision = _of_labels(
    "precision",
    None,
    ("true_positives/count", "false_positives/count"),
    _counts((True, True), (False, True)),
    _part,
    "precision, 0 if no prediction is true",
)
recall = _of_labels(
    "recall",
    None,
    ("true_positives/count", "false_negatives/count"),
    _counts((True, True), (True, False)),
    _part,
    "recall, 0 if no label is true",
)
