"""Keras' names of losses, as ``mr.keras.losses``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.training.losses import MSE as MSE
from mirrored.training.losses import BinaryCrossentropy as BinaryCrossentropy
from mirrored.training.losses import CategoricalCrossentropy as CategoricalCrossentropy
from mirrored.training.losses import Loss as Loss
from mirrored.training.losses import MeanSquaredError as MeanSquaredError
from mirrored.training.losses import Reduction as Reduction
from mirrored.training.losses import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from mirrored.training.losses import binary_crossentropy as binary_crossentropy
from mirrored.training.losses import categorical_crossentropy as categorical_crossentropy
from mirrored.training.losses import deserialize as deserialize
from mirrored.training.losses import get as get
from mirrored.training.losses import mean_squared_error as mean_squared_error
from mirrored.training.losses import mse as mse
from mirrored.training.losses import serialize as serialize
from mirrored.training.losses import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)

if _typing.TYPE_CHECKING:
    from mirrored.training.losses import KLD as KLD
    from mirrored.training.losses import MAE as MAE
    from mirrored.training.losses import MAPE as MAPE
    from mirrored.training.losses import MSLE as MSLE
    from mirrored.training.losses import BinaryFocalCrossentropy as BinaryFocalCrossentropy
    from mirrored.training.losses import (
        CategoricalFocalCrossentropy as CategoricalFocalCrossentropy,
    )
    from mirrored.training.losses import (
        CategoricalGeneralizedCrossEntropy as CategoricalGeneralizedCrossEntropy,
    )
    from mirrored.training.losses import CategoricalHinge as CategoricalHinge
    from mirrored.training.losses import Circle as Circle
    from mirrored.training.losses import CosineSimilarity as CosineSimilarity
    from mirrored.training.losses import Dice as Dice
    from mirrored.training.losses import Hinge as Hinge
    from mirrored.training.losses import Huber as Huber
    from mirrored.training.losses import KLDivergence as KLDivergence
    from mirrored.training.losses import LogCosh as LogCosh
    from mirrored.training.losses import MeanAbsoluteError as MeanAbsoluteError
    from mirrored.training.losses import MeanAbsolutePercentageError as MeanAbsolutePercentageError
    from mirrored.training.losses import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
    from mirrored.training.losses import Poisson as Poisson
    from mirrored.training.losses import SquaredHinge as SquaredHinge
    from mirrored.training.losses import Tversky as Tversky
    from mirrored.training.losses import binary_focal_crossentropy as binary_focal_crossentropy
    from mirrored.training.losses import (
        categorical_focal_crossentropy as categorical_focal_crossentropy,
    )
    from mirrored.training.losses import (
        categorical_generalized_cross_entropy as categorical_generalized_cross_entropy,
    )
    from mirrored.training.losses import categorical_hinge as categorical_hinge
    from mirrored.training.losses import circle as circle
    from mirrored.training.losses import cosine_similarity as cosine_similarity
    from mirrored.training.losses import dice as dice
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
    from mirrored.training.losses import tversky as tversky

_LATE = {
    "mirrored.training.losses": """
        MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredLogarithmicError Huber
        LogCosh CosineSimilarity mean_absolute_error mean_absolute_percentage_error
        mean_squared_logarithmic_error huber log_cosh cosine_similarity MAE mae MAPE mape
        MSLE msle logcosh Poisson KLDivergence poisson kl_divergence KLD kld
        kullback_leibler_divergence Hinge SquaredHinge CategoricalHinge hinge
        squared_hinge categorical_hinge BinaryFocalCrossentropy CategoricalFocalCrossentropy
        CategoricalGeneralizedCrossEntropy binary_focal_crossentropy
        categorical_focal_crossentropy categorical_generalized_cross_entropy
        Dice Tversky dice tversky Circle circle
    """,
}
_public_module("tf.keras.losses", __name__, _LATE)
