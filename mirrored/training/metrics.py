"""What is reported beside the loss: quotients of a total and a count, summed over all batches.

Totals and counts add up exactly over batches and replicas, where means of means would not.
"""

import inspect
from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored.distribute import get_strategy
from mirrored.layers.naming import snake_case
from mirrored.ops import Tensor
from mirrored.training.loss_functions import (
    aligned,
    cast,
    check_same_shape,
    class_indices,
    example_weights,
    squared_errors,
)
from mirrored.training.losses import Loss, SparseCategoricalCrossentropy

Statistics = tuple[Tensor, Tensor]


class Metric:
    """Base of the metrics; a subclass gives the total and the count of a batch in `statistics`.

    Args:
        name: The name in logs and history; None takes that of the class.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.BinaryAccuracy()
        >>> metric.update_state([[1.0], [0.0]], [[0.9], [0.8]])
        >>> metric.result()
        0.5
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name or snake_case(type(self).__name__)
        # Training refuses a metric that was made for another strategy.
        self._strategy = get_strategy()
        self._total = 0.0
        self._count = 0.0

    def statistics(self, *args: Any, **kwargs: Any) -> Statistics:
        """Return the total and the count of a batch, scalars that add up over batches.

        It changes nothing, so that replicas can run it on their shards, empty ones included.
        Most metrics are given `(y_true, y_pred, sample_weight=None)`.
        """
        raise NotImplementedError(
            f"The metric {type(self).__name__} has no `statistics`. Define "
            "`statistics(self, y_true, y_pred, sample_weight=None)` that returns a total and a "
            "count."
        )

    def accumulate(self, total: float, count: float) -> None:
        """Add the total and the count of a batch, summed over its replicas.

        Args:
            total: The sum of the (weighted) values.
            count: The number of values, or the sum of their weights.
        """
        self._total += float(total)
        self._count += float(count)

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch: the arguments are those of `statistics`."""
        total, count = self.statistics(*args, **kwargs)
        self.accumulate(float(total), float(count))

    def result(self) -> float:
        """Return the total divided by the count since the last reset; 0 of nothing."""
        return self._total / self._count if self._count else 0.0

    def reset_state(self) -> None:
        """Forget all batches."""
        self._total = 0.0
        self._count = 0.0


class Mean(Metric):
    """The mean of values, weighted if weights are given.

    Args:
        name: The name in logs and history.

    Example:
        >>> import mirrored as mr
        >>> mean = mr.metrics.Mean()
        >>> mean.update_state([1.0, 3.0])
        >>> mean.update_state(5.0)
        >>> mean.result()
        3.0
    """

    def __init__(self, name: str = "mean") -> None:
        super().__init__(name)

    def statistics(self, values: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum of the values and their number, or the sum of their weights.

        Args:
            values: Numbers of shape () or (batch, ...).
            sample_weight: Weights of shape (batch,), (batch, 1) or (), or None.

        Raises:
            ValueError: The weights' shape does not fit.
        """
        values = ops.convert_to_tensor(values)
        values = cast(values, _float_dtype(values))
        return _weighted(ops.reshape(values, (1,)) if values.ndim == 0 else values, sample_weight)


class _Comparison(Metric):
    """The mean of what a comparison of targets and predictions gives, element by element."""

    def statistics(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum over a batch and the number of elements, or the sum of their weights.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).
            sample_weight: Weights of shape (batch,), (batch, 1) or (), or None.

        Raises:
            ValueError: The shapes do not fit.
        """
        y_pred = ops.convert_to_tensor(y_pred)
        values = self._values(ops.convert_to_tensor(y_true), y_pred)
        return _weighted(cast(values, _float_dtype(y_pred)), sample_weight)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return a value for each element, of shape (batch, ...)."""
        raise NotImplementedError


class MeanSquaredError(_Comparison):
    """The mean of (y_true - y_pred)^2.

    Args:
        name: The name in logs and history.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.MeanSquaredError()
        >>> metric.update_state([[0.0], [1.0]], [[2.0], [1.0]])
        >>> metric.result()
        2.0
    """

    def __init__(self, name: str = "mean_squared_error") -> None:
        super().__init__(name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return squared_errors(aligned(cast(y_true, y_pred.dtype), y_pred), y_pred)


class Accuracy(_Comparison):
    """The part of predictions that equal their targets.

    Args:
        name: The name in logs and history.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.Accuracy()
        >>> metric.update_state([1, 2, 3, 4], [1.0, 2.0, 0.0, 4.0])
        >>> metric.result()
        0.75
    """

    def __init__(self, name: str = "accuracy") -> None:
        super().__init__(name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y_true = aligned(cast(y_true, y_pred.dtype), y_pred)
        check_same_shape(y_true, y_pred)
        return ops.equal(y_true, y_pred)


class BinaryAccuracy(_Comparison):
    """The part of predictions that are on the same side of the threshold as their targets, 0 or 1.

    Args:
        name: The name in logs and history.
        threshold: The probability above which a prediction counts as 1.

    Raises:
        ValueError: The threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.BinaryAccuracy()
        >>> metric.update_state([[1.0], [0.0]], [[0.9], [0.8]])
        >>> metric.result()
        0.5
    """

    def __init__(self, name: str = "binary_accuracy", *, threshold: float = 0.5) -> None:
        if not 0 <= threshold <= 1:
            raise ValueError(
                "Invalid value for argument `threshold`. Expected a value in interval [0, 1]. "
                f"Received: threshold={threshold}"
            )
        super().__init__(name)
        self.threshold = threshold

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y_true = aligned(cast(y_true, y_pred.dtype), y_pred)
        check_same_shape(y_true, y_pred)
        return ops.equal(y_true, cast(ops.greater(y_pred, self.threshold), y_pred.dtype))


class CategoricalAccuracy(_Comparison):
    """The part of predictions whose largest class is that of their one-hot target.

    Args:
        name: The name in logs and history.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.CategoricalAccuracy()
        >>> metric.update_state([[0.0, 1.0], [1.0, 0.0]], [[0.1, 0.9], [0.2, 0.8]])
        >>> metric.result()
        0.5
    """

    def __init__(self, name: str = "categorical_accuracy") -> None:
        super().__init__(name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        check_same_shape(y_true, y_pred)
        # argmax knows no bool, which one-hot rows from a comparison are.
        classes = ops.argmax(cast(y_true, y_pred.dtype), axis=-1)
        return ops.equal(classes, ops.argmax(y_pred, axis=-1))


class SparseCategoricalAccuracy(_Comparison):
    """The part of predictions whose largest class is that of their integer label.

    Args:
        name: The name in logs and history.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SparseCategoricalAccuracy()
        >>> metric.update_state([1, 0], [[0.1, 0.9], [0.2, 0.8]])
        >>> metric.result()
        0.5
    """

    def __init__(self, name: str = "sparse_categorical_accuracy") -> None:
        super().__init__(name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        labels = class_indices(y_true, y_pred)
        return ops.equal(labels, ops.argmax(y_pred, axis=-1, output_type=labels.dtype))


class _AccuracyByShape(_Comparison):
    """The kind of accuracy that the shapes call for, as a loss of the user's own does not tell."""

    def __init__(self) -> None:
        super().__init__("accuracy")
        self._binary = BinaryAccuracy()
        self._sparse = SparseCategoricalAccuracy()
        self._categorical = CategoricalAccuracy()

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if y_pred.ndim == 1 or y_pred.shape[-1] == 1:
            return self._binary._values(y_true, y_pred)
        if y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1:
            return self._sparse._values(y_true, y_pred)
        return self._categorical._values(y_true, y_pred)


class _FunctionMetric(_Comparison):
    """A user's function of targets and predictions that returns a value an example."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(getattr(function, "__name__", None) or type(function).__name__)
        self._function = function

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if y_true.dtype not in (ops.int32, ops.int64):
            y_true = cast(y_true, y_pred.dtype)
        values = ops.convert_to_tensor(self._function(y_true, y_pred))
        if values.shape[:1] != y_pred.shape[:1]:
            raise ValueError(
                f"The metric {self.name!r} must return one value an example, shape "
                f"({y_pred.shape[0]},) or ({y_pred.shape[0]}, ...). Received: a tensor of shape "
                f"{values.shape}. Leave the mean over the batch to the metric."
            )
        return values


_CLASSES: tuple[type[Metric], ...] = (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    Mean,
    MeanSquaredError,
    SparseCategoricalAccuracy,
)
_BY_NAME: dict[str, type[Metric]] = {
    **{cls.__name__: cls for cls in _CLASSES},
    **{snake_case(cls.__name__): cls for cls in _CLASSES},
    **dict.fromkeys(("mse", "MSE"), MeanSquaredError),
}
_AUTOMATIC = ("accuracy", "acc")


def get(identifier: Any) -> Metric:
    """Return the metric that `identifier` names or is.

    Args:
        identifier: A name such as "mse" or "BinaryAccuracy", a `Metric`, a subclass of it, or a
            function of (y_true, y_pred) that returns one value an example.

    Raises:
        ValueError: There is no such metric.

    Example:
        >>> import mirrored as mr
        >>> mr.metrics.get("BinaryAccuracy").name
        'binary_accuracy'
    """
    if isinstance(identifier, Metric):
        return identifier
    if isinstance(identifier, str) and identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    if inspect.isclass(identifier) and issubclass(identifier, Metric):
        return identifier()
    if callable(identifier) and not inspect.isclass(identifier):
        return _FunctionMetric(identifier)
    raise ValueError(
        f"Could not interpret metric identifier: {identifier}. The metrics there are: "
        f"{', '.join(sorted({*_BY_NAME, *_AUTOMATIC}))}; or pass a `Metric` or a function."
    )


def resolve(identifier: Any, loss: Loss, output_shape: tuple[int | None, ...]) -> Metric:
    """Return the metric for a model that is compiled; "accuracy" is of the kind that fits it.

    Args:
        identifier: As in `get`, or "accuracy" or "acc".
        loss: The model's loss.
        output_shape: The model's output shape, (None, ...).

    Returns:
        The metric, under the name that was given, where it was given by name.

    Raises:
        ValueError: There is no such metric.

    Example:
        >>> import mirrored as mr
        >>> from mirrored.training.metrics import resolve
        >>> loss = mr.losses.SparseCategoricalCrossentropy()
        >>> metric = resolve("accuracy", loss, (None, 9))
        >>> type(metric).__name__, metric.name
        ('SparseCategoricalAccuracy', 'accuracy')
    """
    automatic = isinstance(identifier, str) and identifier in _AUTOMATIC
    metric = _accuracy(loss, output_shape) if automatic else get(identifier)
    if isinstance(identifier, str):
        metric.name = identifier  # So that the logs speak as the user does.
    return metric


def _accuracy(loss: Loss, output_shape: tuple[int | None, ...]) -> Metric:
    if len(output_shape) == 1 or output_shape[-1] == 1:
        return BinaryAccuracy()
    if isinstance(loss, SparseCategoricalCrossentropy):
        return SparseCategoricalAccuracy()
    return _AccuracyByShape()


def _float_dtype(x: Tensor) -> Any:
    return x.dtype if x.dtype in (ops.float32, ops.float64) else ops.as_dtype(ops.floatx())


def _weighted(values: Tensor, sample_weight: Any) -> Statistics:
    """Return the sums of the values and of their weights, both in the values' dtype.

    Elements are summed, not means of an example's elements: ones and zeros add up exactly.
    """
    if sample_weight is None:
        return ops.reduce_sum(values), ops.constant(float(values.size), dtype=values.dtype)
    batch = values.shape[0]
    weights = ops.broadcast_to(example_weights(sample_weight, values), (batch,))
    elements = values.size // batch if batch else 1
    if values.ndim > 1:
        values = ops.reduce_sum(values, axis=tuple(range(1, values.ndim)))
    return ops.reduce_sum(values * weights), ops.reduce_sum(weights) * float(elements)
