"""Means of what losses measure, and of hits among the best classes: metrics of a line each.

Totals and counts are those of elements, so that any number of replicas adds up to the same.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from mirrored import ops
from mirrored._naming import snake_case
from mirrored._types import DTypeLike
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import deserialized, serialized
from mirrored.training.losses import crossentropy, regression
from mirrored.training.losses.values import checked_class
from mirrored.training.metrics.mean import Errors, MeanSquaredError
from mirrored.training.metrics.quotient import (
    Comparison,
    FunctionMetric,
    Quotient,
    Statistics,
    counted_values,
    weighted_sums,
)


class MeanMetricWrapper(FunctionMetric):
    """The mean of what a function of targets and predictions returns.

    Args:
        fn: Called as `fn(y_true, y_pred, **kwargs)`; it returns a value an example, or one number.
        name: The name in logs and history; None takes that of the class.
        dtype: Accepted for compatibility.
        **kwargs: Further arguments of the function.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.MeanMetricWrapper(mr.losses.mean_absolute_error, name="error")
        >>> metric.update_state([[0.0], [1.0]], [[2.0], [1.0]])
        >>> float(metric.result())
        1.0
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(fn, name or snake_case(type(self).__name__))
        del self._stands_for
        self.fn = fn
        self._options = kwargs
        del dtype

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a metric like it, by name, as plain values."""
        return {**super().get_config(), **serialized(self._options)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a metric that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.
        """
        return cls(**(deserialized(dict(config), None) if "fn" in config else config))


class Sum(Quotient):
    """The sum of values, weighted if weights are given.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.Sum()
        >>> metric.update_state([1.0, 3.0])
        >>> metric.update_state(5.0)
        >>> float(metric.result())
        9.0
    """

    _has_count = False

    def __init__(self, name: str = "sum", dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype, name)

    def statistics(self, values: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum of the values, and a count that nothing is divided by.

        Args:
            values: Numbers of any shape.
            sample_weight: Weights that broadcast to the values or to their first axes, or None.
        """
        values, sample_weight = counted_values(values, sample_weight)
        values = ops.reshape(values, (1,)) if values.ndim == 0 else values
        total, _ = weighted_sums(values, sample_weight, by_example=False)
        return total, ops.zeros_like(total)


class MeanAbsoluteError(Errors):
    """The mean of |y_true - y_pred|."""

    _loss = regression.MeanAbsoluteError


class MeanAbsolutePercentageError(Errors):
    """The mean of 100 |y_true - y_pred| / |y_true|."""

    _loss = regression.MeanAbsolutePercentageError


class MeanSquaredLogarithmicError(Errors):
    """The mean of (log(y_true + 1) - log(y_pred + 1))^2."""

    _loss = regression.MeanSquaredLogarithmicError


class LogCoshError(Errors):
    """The mean of log(cosh(y_pred - y_true))."""

    _loss = regression.LogCosh
    _default = "logcosh"


class Poisson(Errors):
    """The mean of y_pred - y_true log(y_pred)."""

    _loss = regression.Poisson


class Hinge(Errors):
    """The mean of max(1 - y_true y_pred, 0), of targets -1 and 1, or 0 and 1."""

    _loss = regression.Hinge


class SquaredHinge(Errors):
    """The mean of max(1 - y_true y_pred, 0)^2, of targets -1 and 1, or 0 and 1."""

    _loss = regression.SquaredHinge


class CategoricalHinge(Errors):
    """The mean of what the best wrong class is above the right one, plus 1, where positive.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.CategoricalHinge()
        >>> metric.update_state([[0.0, 1.0]], [[0.5, 0.75]])
        >>> round(float(metric.result()), 4)
        0.75
    """

    _averaged = 0
    _default = "categorical_hinge"
    _errors = staticmethod(regression.categorical_hinge)


class KLDivergence(Errors):
    """The mean of the sums of y_true log(y_true / y_pred) over the last axis."""

    _loss = regression.KLDivergence


class RootMeanSquaredError(MeanSquaredError):
    """The root of the mean of (y_true - y_pred)^2.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.RootMeanSquaredError()
        >>> metric.update_state([[0.0], [1.0]], [[2.0], [3.0]])
        >>> float(metric.result())
        2.0
    """

    _default = "root_mean_squared_error"
    _heeds_masks = False  # As in Keras.

    def finished(self, quotient: Any) -> Any:
        """Return the root of the mean; see `Quotient`."""
        return quotient**0.5


class CosineSimilarity(Comparison):
    """The mean cosine of the angle between targets and predictions.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        axis: The axis of the vectors.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.CosineSimilarity()
        >>> metric.update_state([[0.0, 2.0], [2.0, 0.0]], [[0.0, 3.0], [0.0, 3.0]])
        >>> float(metric.result())
        0.5
    """

    _direction = "up"

    _if_changed = ("axis",)

    def __init__(
        self, name: str = "cosine_similarity", dtype: DTypeLike | None = None, axis: int = -1
    ) -> None:
        super().__init__(dtype, name)
        self.axis = axis

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return -regression.cosine_similarity(y_true, y_pred, self.axis)


class _Entropy(Comparison):
    """The mean of a cross-entropy: a subclass says which."""

    _direction = "down"
    _default: ClassVar[str]

    def __init__(
        self,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        super().__init__(dtype, name or self._default)
        self.from_logits = bool(from_logits)
        self.label_smoothing = label_smoothing


class BinaryCrossentropy(_Entropy):
    """The mean of -(y log p + (1 - y) log(1 - p)), over elements and examples.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        from_logits: Whether predictions are logits, not probabilities.
        label_smoothing: How far targets are moved towards 1/2.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.BinaryCrossentropy()
        >>> metric.update_state([[1.0], [0.0]], [[0.5], [0.5]])
        >>> round(float(metric.result()), 4)
        0.6931
    """

    _default = "binary_crossentropy"

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return crossentropy.binary_crossentropy(
            y_true, y_pred, self.from_logits, self.label_smoothing
        )


class CategoricalCrossentropy(_Entropy):
    """The mean of -sum(y log p), of one-hot rows.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        from_logits: Whether predictions are logits, not probabilities.
        label_smoothing: How far targets are moved towards one part for each class.
        axis: The axis of the classes.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.CategoricalCrossentropy()
        >>> metric.update_state([[1.0, 0.0]], [[0.5, 0.5]])
        >>> round(float(metric.result()), 4)
        0.6931
    """

    _default = "categorical_crossentropy"

    def __init__(
        self,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
        axis: int = -1,
    ) -> None:
        super().__init__(name, dtype, from_logits, label_smoothing)
        self.axis = axis

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return crossentropy.categorical_crossentropy(
            y_true, y_pred, self.from_logits, self.label_smoothing, self.axis
        )


class SparseCategoricalCrossentropy(Comparison):
    """The mean of -log p of the class that a label says.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        from_logits: Whether predictions are logits, not probabilities.
        ignore_class: The label whose values are 0; where there are sample weights it does not
            count in the mean either, as in Keras. None: there is none.
        axis: The axis of the classes, which is the last one: as in Keras on TensorFlow.

    Raises:
        ValueError: `ignore_class` is no integer.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SparseCategoricalCrossentropy()
        >>> metric.update_state([0], [[0.5, 0.5]])
        >>> round(float(metric.result()), 4)
        0.6931
    """

    _direction = "down"

    def __init__(
        self,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(dtype, name or "sparse_categorical_crossentropy")
        self.from_logits = bool(from_logits)
        self.ignore_class = checked_class(ignore_class)
        self.axis = axis

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return crossentropy.sparse_categorical_crossentropy(
            y_true, y_pred, self.from_logits, self.ignore_class, self.axis
        )
