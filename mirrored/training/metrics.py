"""What is reported beside the loss: the metrics there are, and how they are found by name.

Each is a quotient of a total and a count, summed over all batches.
"""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from mirrored import ops
from mirrored._arguments import explained
from mirrored.layers.naming import snake_case
from mirrored.ops import Tensor
from mirrored.ops.spec import INTEGERS
from mirrored.training.loss_functions import (
    aligned,
    as_predictions,
    cast,
    check_one_weight,
    check_same_shape,
    check_values,
    class_indices,
    squared_errors,
)
from mirrored.training.losses import Loss, SparseCategoricalCrossentropy
from mirrored.training.metric import Metric as Metric
from mirrored.training.metric import Statistics, float_dtype, weighted_sums


@explained
class Mean(Metric):
    """The mean of values, weighted if weights are given.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mean = mr.metrics.Mean()
        >>> mean.update_state([1.0, 3.0])
        >>> mean.update_state(5.0)
        >>> float(mean.result())
        3.0
    """

    def __init__(self, name: str = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def statistics(self, values: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum of the values and their number, or the sum of their weights.

        Args:
            values: Numbers of shape () or (batch, ...).
            sample_weight: Weights of shape (batch,), (batch, 1) or (), weights that broadcast to
                the values or to their first axes, or None.

        Raises:
            ValueError: The weights' shape does not fit.
        """
        values = ops.convert_to_tensor(values)
        values = cast(values, float_dtype(values))
        return weighted_sums(
            ops.reshape(values, (1,)) if values.ndim == 0 else values, sample_weight
        )


class _Comparison(Metric):
    """The mean of what a comparison of targets and predictions gives, element by element."""

    _averaged: ClassVar[int] = 0  # The last axes that sample weights cannot tell apart.

    def statistics(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum over a batch and the number of elements, or the sum of their weights.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).
            sample_weight: Weights of shape (batch,), (batch, 1) or (), weights that broadcast to
                the values or to their first axes, or None.

        Raises:
            ValueError: The shapes do not fit.
        """
        y_pred = self._as_predictions(y_pred)
        values = self._values(ops.convert_to_tensor(y_true), y_pred)
        averaged = self._averaged if values.ndim > 1 else 0
        return weighted_sums(cast(values, float_dtype(y_pred)), sample_weight, averaged)

    def _as_predictions(self, y_pred: Any) -> Tensor:
        return as_predictions(y_pred)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return a value for each element, of shape (batch, ...)."""
        raise NotImplementedError


@explained
class MeanSquaredError(_Comparison):
    """The mean of (y_true - y_pred)^2.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.MeanSquaredError()
        >>> metric.update_state([[0.0], [1.0]], [[2.0], [1.0]])
        >>> float(metric.result())
        2.0
    """

    _averaged = 1

    def __init__(self, name: str = "mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return squared_errors(aligned(cast(y_true, y_pred.dtype), y_pred), y_pred)


@explained
class Accuracy(_Comparison):
    """The part of predictions that equal their targets.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.Accuracy()
        >>> metric.update_state([1, 2, 3, 4], [1.0, 2.0, 0.0, 4.0])
        >>> float(metric.result())
        0.75
    """

    def __init__(self, name: str = "accuracy", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def _as_predictions(self, y_pred: Any) -> Tensor:
        # Integers are compared as such: floats would not tell large ones apart.
        y_pred = ops.convert_to_tensor(y_pred)
        return y_pred if y_pred.dtype in INTEGERS else as_predictions(y_pred)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y_true = aligned(cast(y_true, y_pred.dtype), y_pred)
        check_same_shape(y_true, y_pred)
        return ops.equal(y_true, y_pred)


@explained
class BinaryAccuracy(_Comparison):
    """The part of predictions that are on the same side of the threshold as their targets, 0 or 1.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        threshold: The probability above which a prediction counts as 1.

    Raises:
        ValueError: The threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.BinaryAccuracy()
        >>> metric.update_state([[1.0], [0.0]], [[0.9], [0.8]])
        >>> float(metric.result())
        0.5
    """

    def __init__(
        self, name: str = "binary_accuracy", dtype: Any = None, threshold: float = 0.5
    ) -> None:
        if not 0 <= threshold <= 1:
            raise ValueError(
                "Invalid value for argument `threshold`. Expected a value in interval [0, 1]. "
                f"Received: threshold={threshold}"
            )
        super().__init__(name, dtype)
        self.threshold = threshold

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _same_side(y_true, y_pred, self.threshold)


@explained
class CategoricalAccuracy(_Comparison):
    """The part of predictions whose largest class is that of their one-hot target.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.CategoricalAccuracy()
        >>> metric.update_state([[0.0, 1.0], [1.0, 0.0]], [[0.1, 0.9], [0.2, 0.8]])
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name: str = "categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _same_class(y_true, y_pred)


@explained
class SparseCategoricalAccuracy(_Comparison):
    """The part of predictions whose largest class is that of their integer label.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SparseCategoricalAccuracy()
        >>> metric.update_state([1, 0], [[0.1, 0.9], [0.2, 0.8]])
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name: str = "sparse_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _right_label(y_true, y_pred)


class _AccuracyByShape(_Comparison):
    """The kind of accuracy that the shapes call for, as a loss of the user's own does not tell."""

    def __init__(self) -> None:
        super().__init__("accuracy")

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if y_pred.ndim == 1 or y_pred.shape[-1] == 1:
            return _same_side(y_true, y_pred, 0.5)
        if y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1:
            return _right_label(y_true, y_pred)
        return _same_class(y_true, y_pred)


class _FunctionMetric(_Comparison):
    """A user's function of targets and predictions that returns a value an example, or one in all.

    One number for a batch counts once, as in Keras, however many examples the batch has.
    """

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        name = getattr(function, "__name__", None) or type(function).__name__
        underscores = name[: len(name) - len(name.lstrip("_"))]
        super().__init__(underscores + snake_case(name))  # As in Keras' logs.
        self._function = function

    def shard_statistics(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None, share: float
    ) -> Statistics:
        values = self._values_in_its_dtype(y_true, y_pred)
        total, count = self._counted(values, sample_weight)
        return (total, count) if values.shape or share == 1 else (total * share, count * share)

    def statistics(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Statistics:
        return self._counted(self._values_in_its_dtype(y_true, y_pred), sample_weight)

    def _counted(self, values: Tensor, sample_weight: Any) -> Statistics:
        if values.shape:
            return weighted_sums(values, sample_weight)
        if sample_weight is None:
            return values, ops.constant(1.0, dtype=values.dtype)
        weight = cast(check_one_weight(f"metric {self.name!r}", sample_weight), values.dtype)
        return values * weight, weight

    def _values_in_its_dtype(self, y_true: Any, y_pred: Any) -> Tensor:
        y_pred = as_predictions(y_pred)
        values = self._values(ops.convert_to_tensor(y_true), y_pred)
        return cast(values, float_dtype(y_pred))

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if y_true.dtype not in INTEGERS:
            y_true = cast(y_true, y_pred.dtype)
        values = ops.convert_to_tensor(self._function(y_true, y_pred))
        advice = "Leave the mean over the batch to the metric."
        check_values(f"metric {self.name!r}", values, y_pred, advice)
        return values


def _same_side(y_true: Tensor, y_pred: Tensor, threshold: float) -> Tensor:
    y_true = aligned(cast(y_true, y_pred.dtype), y_pred)
    check_same_shape(y_true, y_pred)
    return ops.equal(y_true, cast(ops.greater(y_pred, threshold), y_pred.dtype))


def _same_class(y_true: Tensor, y_pred: Tensor) -> Tensor:
    check_same_shape(y_true, y_pred)
    # argmax knows no bool, which one-hot rows from a comparison are.
    classes = ops.argmax(cast(y_true, y_pred.dtype), axis=-1)
    return ops.equal(classes, ops.argmax(y_pred, axis=-1))


def _right_label(y_true: Tensor, y_pred: Tensor) -> Tensor:
    labels = class_indices(y_true, y_pred)
    return ops.equal(labels, ops.argmax(y_pred, axis=-1, output_type=labels.dtype))


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


@explained
def get(identifier: Any) -> Metric:
    """Return the metric that `identifier` names or is.

    Args:
        identifier: A name such as "mse" or "BinaryAccuracy", a `Metric`, a subclass of it, or a
            function of (y_true, y_pred) that returns one value an example, or one number.

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
