"""What is reported beside the loss: the metrics there are, and how they are found by name.

Those that there are are quotients of a total and a count, summed over all batches.
"""

from typing import Any

from mirrored._arguments import explained
from mirrored.layers.identifiers import by_name as _by_name
from mirrored.layers.identifiers import find as _find
from mirrored.training.losses import MSE as MSE
from mirrored.training.losses import Loss as _Loss
from mirrored.training.losses import binary_crossentropy as binary_crossentropy
from mirrored.training.losses import categorical_crossentropy as categorical_crossentropy
from mirrored.training.losses import mean_squared_error as mean_squared_error
from mirrored.training.losses import mse as mse
from mirrored.training.losses import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from mirrored.training.metrics.accuracy import Accuracy as Accuracy
from mirrored.training.metrics.accuracy import BinaryAccuracy as BinaryAccuracy
from mirrored.training.metrics.accuracy import CategoricalAccuracy as CategoricalAccuracy
from mirrored.training.metrics.accuracy import (
    SparseCategoricalAccuracy as SparseCategoricalAccuracy,
)
from mirrored.training.metrics.accuracy import accuracy_for as _accuracy_for
from mirrored.training.metrics.mean import Mean as Mean
from mirrored.training.metrics.mean import MeanSquaredError as MeanSquaredError
from mirrored.training.metrics.metric import Metric as Metric
from mirrored.training.metrics.quotient import FunctionMetric as _FunctionMetric

__all__ = [
    "MSE",
    "Accuracy",
    "BinaryAccuracy",
    "CategoricalAccuracy",
    "Mean",
    "MeanSquaredError",
    "Metric",
    "SparseCategoricalAccuracy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "get",
    "mean_squared_error",
    "mse",
    "sparse_categorical_crossentropy",
]

# Each metric with its names beside its own and that in snake case.
_METRICS: tuple[tuple[type[Metric], tuple[str, ...]], ...] = (
    (Accuracy, ()),
    (BinaryAccuracy, ()),
    (CategoricalAccuracy, ()),
    (Mean, ()),
    (MeanSquaredError, ("mse", "MSE")),
    (SparseCategoricalAccuracy, ()),
)
_BY_NAME = _by_name(_METRICS)
# What is the kind of accuracy that fits the loss and the shapes.
AUTOMATIC = ("accuracy", "acc")


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
    return _find("metrics", identifier, Metric, _BY_NAME, _FunctionMetric, AUTOMATIC)


def resolve(identifier: Any, loss: _Loss | None, output_shape: tuple[int | None, ...]) -> Metric:
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
    metric = _accuracy_for(loss, output_shape) if automatic else get(identifier)
    if isinstance(identifier, str):
        metric.name = identifier  # So that the logs speak as the user does.
    return metric
