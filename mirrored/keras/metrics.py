"""Keras' names of metrics, as ``mr.keras.metrics``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.training.metrics import MSE as MSE
from mirrored.training.metrics import Accuracy as Accuracy
from mirrored.training.metrics import BinaryAccuracy as BinaryAccuracy
from mirrored.training.metrics import CategoricalAccuracy as CategoricalAccuracy
from mirrored.training.metrics import Mean as Mean
from mirrored.training.metrics import MeanSquaredError as MeanSquaredError
from mirrored.training.metrics import Metric as Metric
from mirrored.training.metrics import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from mirrored.training.metrics import binary_crossentropy as binary_crossentropy
from mirrored.training.metrics import categorical_crossentropy as categorical_crossentropy
from mirrored.training.metrics import deserialize as deserialize
from mirrored.training.metrics import get as get
from mirrored.training.metrics import mean_squared_error as mean_squared_error
from mirrored.training.metrics import mse as mse
from mirrored.training.metrics import serialize as serialize
from mirrored.training.metrics import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)

if _typing.TYPE_CHECKING:
    from mirrored.training.metrics import AUC as AUC
    from mirrored.training.metrics import KLD as KLD
    from mirrored.training.metrics import MAE as MAE
    from mirrored.training.metrics import MAPE as MAPE
    from mirrored.training.metrics import MSLE as MSLE
    from mirrored.training.metrics import BinaryCrossentropy as BinaryCrossentropy
    from mirrored.training.metrics import BinaryIoU as BinaryIoU
    from mirrored.training.metrics import CategoricalCrossentropy as CategoricalCrossentropy
    from mirrored.training.metrics import CategoricalHinge as CategoricalHinge
    from mirrored.training.metrics import ConcordanceCorrelation as ConcordanceCorrelation
    from mirrored.training.metrics import CosineSimilarity as CosineSimilarity
    from mirrored.training.metrics import F1Score as F1Score
    from mirrored.training.metrics import FalseNegatives as FalseNegatives
    from mirrored.training.metrics import FalsePositives as FalsePositives
    from mirrored.training.metrics import FBetaScore as FBetaScore
    from mirrored.training.metrics import Hinge as Hinge
    from mirrored.training.metrics import IoU as IoU
    from mirrored.training.metrics import KLDivergence as KLDivergence
    from mirrored.training.metrics import LogCoshError as LogCoshError
    from mirrored.training.metrics import MeanAbsoluteError as MeanAbsoluteError
    from mirrored.training.metrics import MeanAbsolutePercentageError as MeanAbsolutePercentageError
    from mirrored.training.metrics import MeanIoU as MeanIoU
    from mirrored.training.metrics import MeanMetricWrapper as MeanMetricWrapper
    from mirrored.training.metrics import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
    from mirrored.training.metrics import OneHotIoU as OneHotIoU
    from mirrored.training.metrics import OneHotMeanIoU as OneHotMeanIoU
    from mirrored.training.metrics import PearsonCorrelation as PearsonCorrelation
    from mirrored.training.metrics import Poisson as Poisson
    from mirrored.training.metrics import Precision as Precision
    from mirrored.training.metrics import PrecisionAtRecall as PrecisionAtRecall
    from mirrored.training.metrics import R2Score as R2Score
    from mirrored.training.metrics import Recall as Recall
    from mirrored.training.metrics import RecallAtPrecision as RecallAtPrecision
    from mirrored.training.metrics import RootMeanSquaredError as RootMeanSquaredError
    from mirrored.training.metrics import SensitivityAtSpecificity as SensitivityAtSpecificity
    from mirrored.training.metrics import (
        SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
    )
    from mirrored.training.metrics import (
        SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy,
    )
    from mirrored.training.metrics import SpecificityAtSensitivity as SpecificityAtSensitivity
    from mirrored.training.metrics import SquaredHinge as SquaredHinge
    from mirrored.training.metrics import Sum as Sum
    from mirrored.training.metrics import TopKCategoricalAccuracy as TopKCategoricalAccuracy
    from mirrored.training.metrics import TrueNegatives as TrueNegatives
    from mirrored.training.metrics import TruePositives as TruePositives
    from mirrored.training.metrics import binary_accuracy as binary_accuracy
    from mirrored.training.metrics import binary_focal_crossentropy as binary_focal_crossentropy
    from mirrored.training.metrics import categorical_accuracy as categorical_accuracy
    from mirrored.training.metrics import (
        categorical_focal_crossentropy as categorical_focal_crossentropy,
    )
    from mirrored.training.metrics import categorical_hinge as categorical_hinge
    from mirrored.training.metrics import concordance_correlation as concordance_correlation
    from mirrored.training.metrics import hinge as hinge
    from mirrored.training.metrics import huber as huber
    from mirrored.training.metrics import kl_divergence as kl_divergence
    from mirrored.training.metrics import kld as kld
    from mirrored.training.metrics import kullback_leibler_divergence as kullback_leibler_divergence
    from mirrored.training.metrics import log_cosh as log_cosh
    from mirrored.training.metrics import logcosh as logcosh
    from mirrored.training.metrics import mae as mae
    from mirrored.training.metrics import mape as mape
    from mirrored.training.metrics import mean_absolute_error as mean_absolute_error
    from mirrored.training.metrics import (
        mean_absolute_percentage_error as mean_absolute_percentage_error,
    )
    from mirrored.training.metrics import (
        mean_squared_logarithmic_error as mean_squared_logarithmic_error,
    )
    from mirrored.training.metrics import msle as msle
    from mirrored.training.metrics import pearson_correlation as pearson_correlation
    from mirrored.training.metrics import poisson as poisson
    from mirrored.training.metrics import sparse_categorical_accuracy as sparse_categorical_accuracy
    from mirrored.training.metrics import (
        sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy,
    )
    from mirrored.training.metrics import squared_hinge as squared_hinge
    from mirrored.training.metrics import top_k_categorical_accuracy as top_k_categorical_accuracy

_LATE = {
    "mirrored.training.metrics": """
        BinaryCrossentropy CategoricalCrossentropy CategoricalHinge CosineSimilarity Hinge
        KLDivergence LogCoshError MeanAbsoluteError MeanAbsolutePercentageError
        MeanMetricWrapper MeanSquaredLogarithmicError Poisson RootMeanSquaredError
        SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy SquaredHinge Sum
        TopKCategoricalAccuracy MAE mae MAPE mape MSLE msle KLD kld kullback_leibler_divergence
        kl_divergence logcosh log_cosh mean_absolute_error mean_absolute_percentage_error
        mean_squared_logarithmic_error huber poisson hinge squared_hinge categorical_hinge
        binary_focal_crossentropy categorical_focal_crossentropy
        FalseNegatives FalsePositives Precision Recall TrueNegatives TruePositives
        F1Score FBetaScore
        AUC
        PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity
        BinaryIoU IoU MeanIoU OneHotIoU OneHotMeanIoU
        ConcordanceCorrelation PearsonCorrelation R2Score concordance_correlation
        pearson_correlation
        binary_accuracy categorical_accuracy sparse_categorical_accuracy
        sparse_top_k_categorical_accuracy top_k_categorical_accuracy
    """,
}
_public_module("tf.keras.metrics", __name__, _LATE)
