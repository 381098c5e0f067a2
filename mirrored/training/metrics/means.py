"""Means of what losses measure, and of hits among the best classes: metrics of a line each.

Totals and counts are those of elements, so that any number of replicas adds up to the same.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

from mirrored import ops
from mirrored._arguments import explained
from mirrored._naming import snake_case
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import deserialized, serialized
from mirrored.training.losses import margins, probabilistic, regression
from mirrored.training.losses.values import cast
from mirrored.training.metrics.mean import Errors, MeanSquaredError
from mirrored.training.metrics.quotient import (
    Comparison,
    FunctionMetric,
    Quotient,
    Statistics,
    counted_weights,
    float_dtype,
    is_first_axis,
    weighted_sums,
)


@explained
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
        dtype: Any = None,
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

    def _called(self, y_true: Tensor, y_pred: Tensor) -> Any:
        return self._function(y_true, y_pred, **self._options)


@explained
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

    def __init__(self, name: str = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)

    def statistics(self, values: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum of the values, and a count that nothing is divided by.

        Args:
            values: Numbers of any shape.
            sample_weight: Weights that broadcast to the values or to their first axes, or None.
        """
        values = ops.convert_to_tensor(values)
        dtype = float_dtype(values)
        if sample_weight is not None:
            sample_weight = counted_weights(sample_weight, values, dtype)
        values = cast(values, dtype)
        values = ops.reshape(values, (1,)) if values.ndim == 0 else values
        total, _ = weighted_sums(values, sample_weight, by_example=False)
        return total, ops.zeros_like(total)


class MeanAbsoluteError(Errors):
    """The mean of |y_true - y_pred|.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.MeanAbsoluteError()
        >>> metric.update_state([[0.0], [1.0]], [[2.0], [1.0]])
        >>> round(float(metric.result()), 4)
        1.0
    """

    _default = "mean_absolute_error"
    _errors = staticmethod(regression.absolute_errors)


class MeanAbsolutePercentageError(Errors):
    """The mean of 100 |y_true - y_pred| / |y_true|.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.MeanAbsolutePercentageError()
        >>> metric.update_state([[2.0], [4.0]], [[1.0], [4.0]])
        >>> round(float(metric.result()), 4)
        25.0
    """

    _default = "mean_absolute_percentage_error"
    _errors = staticmethod(regression.percentage_errors)


class MeanSquaredLogarithmicError(Errors):
    """The mean of (log(y_true + 1) - log(y_pred + 1))^2.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.MeanSquaredLogarithmicError()
        >>> metric.update_state([[0.0], [1.0]], [[0.0], [0.0]])
        >>> round(float(metric.result()), 4)
        0.2402
    """

    _default = "mean_squared_logarithmic_error"
    _errors = staticmethod(regression.squared_logarithmic_errors)


class LogCoshError(Errors):
    """The mean of log(cosh(y_pred - y_true)).

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.LogCoshError()
        >>> metric.update_state([[0.0], [1.0]], [[0.0], [1.0]])
        >>> round(float(metric.result()), 4)
        0.0
    """

    _default = "logcosh"
    _errors = staticmethod(regression.log_cosh_errors)


class Poisson(Errors):
    """The mean of y_pred - y_true log(y_pred).

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.Poisson()
        >>> metric.update_state([[1.0], [3.0]], [[1.0], [1.0]])
        >>> round(float(metric.result()), 4)
        1.0
    """

    _default = "poisson"
    _errors = staticmethod(probabilistic.poisson_losses)


class Hinge(Errors):
    """The mean of max(1 - y_true y_pred, 0), of targets -1 and 1, or 0 and 1.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.Hinge()
        >>> metric.update_state([[-1.0], [1.0]], [[0.0], [3.0]])
        >>> round(float(metric.result()), 4)
        0.5
    """

    _default = "hinge"
    _errors = staticmethod(margins.hinges)


class SquaredHinge(Errors):
    """The mean of max(1 - y_true y_pred, 0)^2, of targets -1 and 1, or 0 and 1.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SquaredHinge()
        >>> metric.update_state([[-1.0], [1.0]], [[1.0], [3.0]])
        >>> round(float(metric.result()), 4)
        2.0
    """

    _default = "squared_hinge"
    _errors = staticmethod(margins.squared_hinges)


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
    _errors = staticmethod(margins.categorical_hinge)


class KLDivergence(Errors):
    """The mean of the sums of y_true log(y_true / y_pred) over the last axis.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.KLDivergence()
        >>> metric.update_state([[0.5, 0.5]], [[0.5, 0.5]])
        >>> round(float(metric.result()), 4)
        0.0
    """

    _averaged = 0
    _default = "kl_divergence"
    _errors = staticmethod(probabilistic.kl_divergence)


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


@explained
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

    def __init__(self, name: str = "cosine_similarity", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(dtype, name)
        self.axis = axis

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return -regression.cosine_similarity(y_true, y_pred, self.axis)

    def _mixes_examples(self, y_true: Any, y_pred: Any) -> bool:
        return is_first_axis(self.axis, y_pred)
