"""Metrics by name: `get`, `serialize`, `deserialize`, and the accuracy that fits a loss."""

import sys
from collections.abc import Mapping
from typing import Any

from mirrored._arguments import explained
from mirrored._late import LISTS
from mirrored.serialization.constructor_arguments import serialized
from mirrored.serialization.registry import Registry, spelt
from mirrored.training.losses import Loss
from mirrored.training.metrics.accuracy import accuracy_for
from mirrored.training.metrics.metric import Metric
from mirrored.training.metrics.quotient import FunctionMetric

_PACKAGE = "mirrored.training.metrics"

# Each metric with its names beside its own and that in snake case.
_METRICS: dict[str, tuple[str, ...]] = {
    **{
        name: ()
        for name in LISTS[_PACKAGE]
        if ".metrics." in LISTS[_PACKAGE].home(name)[0] and not name.islower()
        # Which metric is meant by two names, the base class, and what wraps a function.
        if name not in ("AUTOMATIC", "Metric", "MeanMetricWrapper")
    },
    "MeanSquaredError": ("mse", "MSE"),
    "MeanAbsoluteError": ("mae", "MAE"),
    "MeanAbsolutePercentageError": ("mape", "MAPE"),
    "MeanSquaredLogarithmicError": ("msle", "MSLE"),
    "KLDivergence": ("kl_divergence", "kld", "KLD", "kullback_leibler_divergence"),
    "LogCoshError": ("logcosh", "log_cosh"),
    "F1Score": ("f1_score",),
    "R2Score": ("r2_score",),
    "BinaryCrossentropy": ("bce", "BCE"),
}

_NAMES = spelt(_METRICS)
_BY_NAME: Registry[Metric] = Registry("metrics", _PACKAGE, _NAMES)
_NO_METRICS = frozenset(
    ("AUTOMATIC", "Metric", "deserialize", "get", "kind_of", "resolve", "serialize")
)
# In configurations, as in Keras, the name of a function that is no metric's is the function's.
_DESCRIBED: Registry[Any] = Registry(
    "metric",
    _PACKAGE,
    {**{name: name for name in LISTS[_PACKAGE] if name not in _NO_METRICS}, **_NAMES},
)
# What is the kind of accuracy that fits the loss and the shapes.
AUTOMATIC = ("accuracy", "acc")


@explained
def get(identifier: Any) -> Any:
    """Return the metric that `identifier` names or is; None for None.

    Args:
        identifier: A name such as "mse" or "BinaryAccuracy", a `Metric`, a subclass of it, a
            configuration, or a function of (y_true, y_pred) that returns one value an example, or
            one number.

    Raises:
        ValueError: There is no such metric.

    Example:
        >>> import mirrored as mr
        >>> mr.metrics.get("BinaryAccuracy").name
        'binary_accuracy'
    """
    return None if identifier is None else _metric(identifier)


def _metric(identifier: Any) -> Metric:
    if isinstance(identifier, dict):
        identifier = deserialize(identifier)
    return _BY_NAME.create(identifier, Metric, FunctionMetric, AUTOMATIC)


def serialize(metric: Any) -> Any:
    """Return the configuration of a metric, without its state, or of a function.

    Args:
        metric: The metric, or a function of targets and predictions.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.metrics.serialize(mr.metrics.Mean())["config"]["name"]
        'mean'
    """
    return serialized(metric)


@explained
def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the metric, or the function, that a configuration describes.

    Args:
        config: What `serialize` returned, or a name.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.metrics.deserialize("mse").name
        'mean_squared_error'
    """
    return _DESCRIBED.deserialize(config, custom_objects)


def kind_of(identifier: Any) -> type[Any] | None:
    """Return the class of the metric that `identifier` names or is; None where it is a function.

    Args:
        identifier: As in `get`.

    Example:
        >>> from mirrored.training.metrics import kind_of
        >>> kind_of("mae").__name__
        'MeanAbsoluteError'
    """
    if isinstance(identifier, str):
        class_name = _NAMES.get(identifier)
        return None if class_name is None else getattr(sys.modules[_PACKAGE], class_name)
    if isinstance(identifier, type):
        return identifier
    return type(identifier) if isinstance(identifier, Metric) else None


def resolve(identifier: Any, loss: Loss | None, output_shape: tuple[int | None, ...]) -> Metric:
    """Return the metric for a model that is compiled; "accuracy" is of the kind that fits it.

    Args:
        identifier: As in `get`, or "accuracy" or "acc".
        loss: The output's loss; None where it has none.
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
    automatic = isinstance(identifier, str) and identifier in AUTOMATIC
    metric = accuracy_for(loss, output_shape) if automatic else _metric(identifier)
    if isinstance(identifier, str):
        metric.name = identifier  # So that the logs speak as the user does.
    return metric
