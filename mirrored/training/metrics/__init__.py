"""What is reported beside the loss: the metrics there are, and how they are found by name.

Those that there are are quotients of a total and a count, summed over all batches.
"""

import sys
import typing as _typing
from collections.abc import Mapping
from typing import Any

from mirrored._arguments import explained
from mirrored._late import late_module as _late_module
from mirrored.layers.identifiers import find as _find
from mirrored.layers.identifiers import spelt as _spelt
from mirrored.serialization.configured import LateClasses as _LateClasses
from mirrored.serialization.configured import deserialized as _deserialized
from mirrored.serialization.configured import serialized as _serialized
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

if _typing.TYPE_CHECKING:
    from mirrored.training.losses import KLD as KLD
    from mirrored.training.losses import MAE as MAE
    from mirrored.training.losses import MAPE as MAPE
    from mirrored.training.losses import MSLE as MSLE
    from mirrored.training.losses import binary_focal_crossentropy as binary_focal_crossentropy
    from mirrored.training.losses import (
        categorical_focal_crossentropy as categorical_focal_crossentropy,
    )
    from mirrored.training.losses import categorical_hinge as categorical_hinge
    from mirrored.training.losses import hinge as hinge
    from mirrored.training.losses import huber as huber
    from mirrored.training.losses import kl_divergence as kl_divergence
    from mirrored.training.losses import kld as kld
    from mirrored.training.losses import kullback_leibler_divergence as kullback_leibler_divergence
    from mirrored.training.losses import log_cosh as log_cosh
    from mirrored.training.losses import logcosh as logcosh
    from mirrored.training.losses import mae as mae
    from mirrored.training.losses import mape as mape
    from mirrored.training.losses import mean_absolute_error as mean_absolute_error
    from mirrored.training.losses import (
        mean_absolute_percentage_error as mean_absolute_percentage_error,
    )
    from mirrored.training.losses import (
        mean_squared_logarithmic_error as mean_squared_logarithmic_error,
    )
    from mirrored.training.losses import msle as msle
    from mirrored.training.losses import poisson as poisson
    from mirrored.training.losses import squared_hinge as squared_hinge
    from mirrored.training.metrics.confusion import FalseNegatives as FalseNegatives
    from mirrored.training.metrics.confusion import FalsePositives as FalsePositives
    from mirrored.training.metrics.confusion import Precision as Precision
    from mirrored.training.metrics.confusion import Recall as Recall
    from mirrored.training.metrics.confusion import TrueNegatives as TrueNegatives
    from mirrored.training.metrics.confusion import TruePositives as TruePositives
    from mirrored.training.metrics.correlations import (
        ConcordanceCorrelation as ConcordanceCorrelation,
    )
    from mirrored.training.metrics.correlations import PearsonCorrelation as PearsonCorrelation
    from mirrored.training.metrics.correlations import R2Score as R2Score
    from mirrored.training.metrics.correlations import (
        concordance_correlation as concordance_correlation,
    )
    from mirrored.training.metrics.correlations import pearson_correlation as pearson_correlation
    from mirrored.training.metrics.curves import AUC as AUC
    from mirrored.training.metrics.entropies import BinaryCrossentropy as BinaryCrossentropy
    from mirrored.training.metrics.entropies import (
        CategoricalCrossentropy as CategoricalCrossentropy,
    )
    from mirrored.training.metrics.entropies import (
        SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
    )
    from mirrored.training.metrics.f_scores import F1Score as F1Score
    from mirrored.training.metrics.f_scores import FBetaScore as FBetaScore
    from mirrored.training.metrics.hits import binary_accuracy as binary_accuracy
    from mirrored.training.metrics.hits import categorical_accuracy as categorical_accuracy
    from mirrored.training.metrics.hits import (
        sparse_categorical_accuracy as sparse_categorical_accuracy,
    )
    from mirrored.training.metrics.hits import (
        sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy,
    )
    from mirrored.training.metrics.hits import (
        top_k_categorical_accuracy as top_k_categorical_accuracy,
    )
    from mirrored.training.metrics.means import CategoricalHinge as CategoricalHinge
    from mirrored.training.metrics.means import CosineSimilarity as CosineSimilarity
    from mirrored.training.metrics.means import Hinge as Hinge
    from mirrored.training.metrics.means import KLDivergence as KLDivergence
    from mirrored.training.metrics.means import LogCoshError as LogCoshError
    from mirrored.training.metrics.means import MeanAbsoluteError as MeanAbsoluteError
    from mirrored.training.metrics.means import (
        MeanAbsolutePercentageError as MeanAbsolutePercentageError,
    )
    from mirrored.training.metrics.means import MeanMetricWrapper as MeanMetricWrapper
    from mirrored.training.metrics.means import (
        MeanSquaredLogarithmicError as MeanSquaredLogarithmicError,
    )
    from mirrored.training.metrics.means import Poisson as Poisson
    from mirrored.training.metrics.means import RootMeanSquaredError as RootMeanSquaredError
    from mirrored.training.metrics.means import SquaredHinge as SquaredHinge
    from mirrored.training.metrics.means import Sum as Sum
    from mirrored.training.metrics.operating_points import PrecisionAtRecall as PrecisionAtRecall
    from mirrored.training.metrics.operating_points import RecallAtPrecision as RecallAtPrecision
    from mirrored.training.metrics.operating_points import (
        SensitivityAtSpecificity as SensitivityAtSpecificity,
    )
    from mirrored.training.metrics.operating_points import (
        SpecificityAtSensitivity as SpecificityAtSensitivity,
    )
    from mirrored.training.metrics.overlaps import BinaryIoU as BinaryIoU
    from mirrored.training.metrics.overlaps import IoU as IoU
    from mirrored.training.metrics.overlaps import MeanIoU as MeanIoU
    from mirrored.training.metrics.overlaps import OneHotIoU as OneHotIoU
    from mirrored.training.metrics.overlaps import OneHotMeanIoU as OneHotMeanIoU
    from mirrored.training.metrics.top_k import (
        SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy,
    )
    from mirrored.training.metrics.top_k import TopKCategoricalAccuracy as TopKCategoricalAccuracy

__all__ = [
    "AUC",
    "KLD",
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "BinaryIoU",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "ConcordanceCorrelation",
    "CosineSimilarity",
    "F1Score",
    "FBetaScore",
    "FalseNegatives",
    "FalsePositives",
    "Hinge",
    "IoU",
    "KLDivergence",
    "LogCoshError",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanIoU",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Metric",
    "OneHotIoU",
    "OneHotMeanIoU",
    "PearsonCorrelation",
    "Poisson",
    "Precision",
    "PrecisionAtRecall",
    "R2Score",
    "Recall",
    "RecallAtPrecision",
    "RootMeanSquaredError",
    "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity",
    "SquaredHinge",
    "Sum",
    "TopKCategoricalAccuracy",
    "TrueNegatives",
    "TruePositives",
    "binary_accuracy",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_accuracy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "concordance_correlation",
    "deserialize",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "kld",
    "kullback_leibler_divergence",
    "log_cosh",
    "logcosh",
    "mae",
    "mape",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "mse",
    "msle",
    "pearson_correlation",
    "poisson",
    "serialize",
    "sparse_categorical_accuracy",
    "sparse_categorical_crossentropy",
    "sparse_top_k_categorical_accuracy",
    "squared_hinge",
    "top_k_categorical_accuracy",
]

_LATE = {
    "mirrored.training.metrics.top_k": "SparseTopKCategoricalAccuracy TopKCategoricalAccuracy",
    "mirrored.training.losses": """
        MAE mae MAPE mape MSLE msle KLD kld kullback_leibler_divergence kl_divergence logcosh
        log_cosh mean_absolute_error mean_absolute_percentage_error
        mean_squared_logarithmic_error huber poisson hinge squared_hinge categorical_hinge
        binary_focal_crossentropy categorical_focal_crossentropy
    """,
    "mirrored.training.metrics.means": """
        CategoricalHinge CosineSimilarity Hinge KLDivergence LogCoshError MeanAbsoluteError
        MeanAbsolutePercentageError MeanMetricWrapper MeanSquaredLogarithmicError Poisson
        RootMeanSquaredError SquaredHinge Sum
    """,
    "mirrored.training.metrics.entropies": """
        BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy
    """,
    "mirrored.training.metrics.confusion": """
        FalseNegatives FalsePositives Precision Recall TrueNegatives TruePositives
    """,
    "mirrored.training.metrics.f_scores": """
        F1Score FBetaScore
    """,
    "mirrored.training.metrics.curves": """
        AUC
    """,
    "mirrored.training.metrics.operating_points": """
        PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity
    """,
    "mirrored.training.metrics.overlaps": """
        BinaryIoU IoU MeanIoU OneHotIoU OneHotMeanIoU
    """,
    "mirrored.training.metrics.correlations": """
        ConcordanceCorrelation PearsonCorrelation R2Score concordance_correlation
        pearson_correlation
    """,
    "mirrored.training.metrics.hits": """
        binary_accuracy categorical_accuracy sparse_categorical_accuracy
        sparse_top_k_categorical_accuracy top_k_categorical_accuracy
    """,
}
_late_module(__name__, _LATE)

# Each metric with its names beside its own and that in snake case.
_METRICS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "Mean"), ()),
    **{
        name: ()
        for home, names in _LATE.items()
        if ".metrics." in home
        for name in names.split()
        # That of functions wants one.
        if not name.islower() and name != "MeanMetricWrapper"
    },
    "SparseCategoricalAccuracy": (),
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

_NAMES = _spelt(_METRICS)
_BY_NAME = _LateClasses(__name__, _NAMES)
_NO_METRICS = frozenset(("Metric", "deserialize", "get", "serialize"))
# In configurations, as in Keras, the name of a function that is no metric's is the function's.
_DESCRIBED = _LateClasses(
    __name__, {**{name: name for name in __all__ if name not in _NO_METRICS}, **_NAMES}
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
    return _find("metrics", identifier, Metric, _BY_NAME, _FunctionMetric, AUTOMATIC)


def serialize(metric: Any) -> Any:
    """Return the configuration of a metric, without its state, or of a function.

    Args:
        metric: The metric, or a function of targets and predictions.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.metrics.serialize(mr.metrics.Mean())["config"]["name"]
        'mean'
    """
    return _serialized(metric)


@explained
def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the metric, or the function, that a configuration describes.

    Args:
        config: What `serialize` returned, or a name.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.metrics.deserialize("mse").name
        'mean_squared_error'
    """
    return _deserialized(config, _DESCRIBED, custom_objects)


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
        found = _NAMES.get(identifier)
        return None if found is None else getattr(sys.modules[__name__], found)
    if isinstance(identifier, type):
        return identifier
    return type(identifier) if isinstance(identifier, Metric) else None


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
    metric = _accuracy_for(loss, output_shape) if automatic else _metric(identifier)
    if isinstance(identifier, str):
        metric.name = identifier  # So that the logs speak as the user does.
    return metric
