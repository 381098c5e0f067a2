# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._late import late_module as _late_module
from mirrored.training.losses.crossentropy import BinaryCrossentropy as BinaryCrossentropy
from mirrored.training.losses.focal import BinaryFocalCrossentropy as BinaryFocalCrossentropy
from mirrored.training.losses.crossentropy import CategoricalCrossentropy as CategoricalCrossentropy
from mirrored.training.losses.focal import CategoricalFocalCrossentropy as CategoricalFocalCrossentropy
from mirrored.training.losses.focal import CategoricalGeneralizedCrossEntropy as CategoricalGeneralizedCrossEntropy
from mirrored.training.losses.regression import CategoricalHinge as CategoricalHinge
from mirrored.training.losses.batch_losses import Circle as Circle
from mirrored.training.losses.regression import CosineSimilarity as CosineSimilarity
from mirrored.training.losses.batch_losses import Dice as Dice
from mirrored.training.losses.regression import Hinge as Hinge
from mirrored.training.losses.regression import Huber as Huber
from mirrored.training.losses.regression import kl_divergence as _kl_divergence
KLD = _kl_divergence
from mirrored.training.losses.regression import KLDivergence as KLDivergence
from mirrored.training.losses.regression import LogCosh as LogCosh
from mirrored.training.losses.loss import Loss as Loss
from mirrored.training.losses.regression import mean_absolute_error as _mean_absolute_error
MAE = _mean_absolute_error
from mirrored.training.losses.regression import mean_absolute_percentage_error as _mean_absolute_percentage_error
MAPE = _mean_absolute_percentage_error
from mirrored.training.losses.elementwise_losses import mean_squared_error as _mean_squared_error
MSE = _mean_squared_error
from mirrored.training.losses.regression import mean_squared_logarithmic_error as _mean_squared_logarithmic_error
MSLE = _mean_squared_logarithmic_error
from mirrored.training.losses.regression import MeanAbsoluteError as MeanAbsoluteError
from mirrored.training.losses.regression import MeanAbsolutePercentageError as MeanAbsolutePercentageError
from mirrored.training.losses.elementwise_losses import MeanSquaredError as MeanSquaredError
from mirrored.training.losses.regression import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
from mirrored.training.losses.regression import Poisson as Poisson
from mirrored.training.losses.loss import Reduction as Reduction
from mirrored.training.losses.crossentropy import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from mirrored.training.losses.regression import SquaredHinge as SquaredHinge
from mirrored.training.losses.batch_losses import Tversky as Tversky
from mirrored.training.losses.loss_registry import as_loss as as_loss
from mirrored.training.losses.crossentropy import binary_crossentropy as binary_crossentropy
from mirrored.training.losses.focal import binary_focal_crossentropy as binary_focal_crossentropy
from mirrored.training.losses.crossentropy import categorical_crossentropy as categorical_crossentropy
from mirrored.training.losses.focal import categorical_focal_crossentropy as categorical_focal_crossentropy
from mirrored.training.losses.focal import categorical_generalized_cross_entropy as categorical_generalized_cross_entropy
from mirrored.training.losses.regression import categorical_hinge as categorical_hinge
from mirrored.training.losses.batch_losses import circle as circle
from mirrored.training.losses.regression import cosine_similarity as cosine_similarity
from mirrored.training.losses.loss_registry import deserialize as deserialize
from mirrored.training.losses.batch_losses import dice as dice
from mirrored.training.losses.loss_registry import get as get
from mirrored.training.losses.regression import hinge as hinge
from mirrored.training.losses.regression import huber as huber
from mirrored.training.losses.regression import kl_divergence as kl_divergence
from mirrored.training.losses.regression import kl_divergence as _kl_divergence
kld = _kl_divergence
from mirrored.training.losses.regression import kl_divergence as _kl_divergence
kullback_leibler_divergence = _kl_divergence
from mirrored.training.losses.regression import log_cosh as log_cosh
from mirrored.training.losses.regression import log_cosh as _log_cosh
logcosh = _log_cosh
from mirrored.training.losses.regression import mean_absolute_error as _mean_absolute_error
mae = _mean_absolute_error
from mirrored.training.losses.regression import mean_absolute_percentage_error as _mean_absolute_percentage_error
mape = _mean_absolute_percentage_error
from mirrored.training.losses.regression import mean_absolute_error as mean_absolute_error
from mirrored.training.losses.regression import mean_absolute_percentage_error as mean_absolute_percentage_error
from mirrored.training.losses.elementwise_losses import mean_squared_error as mean_squared_error
from mirrored.training.losses.regression import mean_squared_logarithmic_error as mean_squared_logarithmic_error
from mirrored.training.losses.elementwise_losses import mean_squared_error as _mean_squared_error
mse = _mean_squared_error
from mirrored.training.losses.regression import mean_squared_logarithmic_error as _mean_squared_logarithmic_error
msle = _mean_squared_logarithmic_error
from mirrored.training.losses.regression import poisson as poisson
from mirrored.training.losses.loss_registry import serialize as serialize
from mirrored.training.losses.crossentropy import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from mirrored.training.losses.regression import squared_hinge as squared_hinge
from mirrored.training.losses.batch_losses import tversky as tversky
