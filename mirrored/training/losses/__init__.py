"""The losses that there are, and how they are found by name.

Each is a formula, with a check of the targets that go with it, in a file of its own.
"""

import inspect
import sys
import typing as _typing
from collections.abc import Callable, Mapping
from typing import Any

from mirrored._arguments import explained
from mirrored._late import late_module as _late_module
from mirrored.layers.identifiers import find as _find
from mirrored.layers.identifiers import resolve as _resolved
from mirrored.layers.identifiers import spelt as _spelt
from mirrored.serialization.configured import LateClasses as _LateClasses
from mirrored.serialization.configured import deserialized as _deserialized
from mirrored.serialization.configured import serialized as _serialized
from mirrored.training.losses.crossentropy import BinaryCrossentropy as BinaryCrossentropy
from mirrored.training.losses.crossentropy import CategoricalCrossentropy as CategoricalCrossentropy
from mirrored.training.losses.crossentropy import (
    SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
)
from mirrored.training.losses.crossentropy import binary_crossentropy as binary_crossentropy
from mirrored.training.losses.crossentropy import (
    categorical_crossentropy as categorical_crossentropy,
)
from mirrored.training.losses.crossentropy import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from mirrored.training.losses.elementwise import MeanSquaredError as MeanSquaredError
from mirrored.training.losses.elementwise import mean_squared_error as mean_squared_error
from mirrored.training.losses.loss import FunctionLoss as _FunctionLoss
from mirrored.training.losses.loss import Loss as Loss
from mirrored.training.losses.loss import Reduction as Reduction

if _typing.TYPE_CHECKING:
    from mirrored.training.losses.focal import BinaryFocalCrossentropy as BinaryFocalCrossentropy
    from mirrored.training.losses.focal import (
        CategoricalFocalCrossentropy as CategoricalFocalCrossentropy,
    )
    from mirrored.training.losses.focal import (
        CategoricalGeneralizedCrossEntropy as CategoricalGeneralizedCrossEntropy,
    )
    from mirrored.training.losses.focal import (
        binary_focal_crossentropy as binary_focal_crossentropy,
    )
    from mirrored.training.losses.focal import (
        categorical_focal_crossentropy as categorical_focal_crossentropy,
    )
    from mirrored.training.losses.focal import (
        categorical_generalized_cross_entropy as categorical_generalized_cross_entropy,
    )
    from mirrored.training.losses.margins import CategoricalHinge as CategoricalHinge
    from mirrored.training.losses.margins import Hinge as Hinge
    from mirrored.training.losses.margins import SquaredHinge as SquaredHinge
    from mirrored.training.losses.margins import categorical_hinge as categorical_hinge
    from mirrored.training.losses.margins import hinge as hinge
    from mirrored.training.losses.margins import squared_hinge as squared_hinge
    from mirrored.training.losses.overlap import Dice as Dice
    from mirrored.training.losses.overlap import Tversky as Tversky
    from mirrored.training.losses.overlap import dice as dice
    from mirrored.training.losses.overlap import tversky as tversky
    from mirrored.training.losses.pairs import Circle as Circle
    from mirrored.training.losses.pairs import circle as circle
    from mirrored.training.losses.probabilistic import KLD as KLD
    from mirrored.training.losses.probabilistic import KLDivergence as KLDivergence
    from mirrored.training.losses.probabilistic import Poisson as Poisson
    from mirrored.training.losses.probabilistic import kl_divergence as kl_divergence
    from mirrored.training.losses.probabilistic import kld as kld
    from mirrored.training.losses.probabilistic import (
        kullback_leibler_divergence as kullback_leibler_divergence,
    )
    from mirrored.training.losses.probabilistic import poisson as poisson
    from mirrored.training.losses.regression import MAE as MAE
    from mirrored.training.losses.regression import MAPE as MAPE
    from mirrored.training.losses.regression import MSLE as MSLE
    from mirrored.training.losses.regression import CosineSimilarity as CosineSimilarity
    from mirrored.training.losses.regression import Huber as Huber
    from mirrored.training.losses.regression import LogCosh as LogCosh
    from mirrored.training.losses.regression import MeanAbsoluteError as MeanAbsoluteError
    from mirrored.training.losses.regression import (
        MeanAbsolutePercentageError as MeanAbsolutePercentageError,
    )
    from mirrored.training.losses.regression import (
        MeanSquaredLogarithmicError as MeanSquaredLogarithmicError,
    )
    from mirrored.training.losses.regression import cosine_similarity as cosine_similarity
    from mirrored.training.losses.regression import huber as huber
    from mirrored.training.losses.regression import log_cosh as log_cosh
    from mirrored.training.losses.regression import logcosh as logcosh
    from mirrored.training.losses.regression import mae as mae
    from mirrored.training.losses.regression import mape as mape
    from mirrored.training.losses.regression import mean_absolute_error as mean_absolute_error
    from mirrored.training.losses.regression import (
        mean_absolute_percentage_error as mean_absolute_percentage_error,
    )
    from mirrored.training.losses.regression import (
        mean_squared_logarithmic_error as mean_squared_logarithmic_error,
    )
    from mirrored.training.losses.regression import msle as msle

mse = MSE = mean_squared_error

__all__ = [
    "KLD",
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "CategoricalHinge",
    "Circle",
    "CosineSimilarity",
    "Dice",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "Reduction",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "Tversky",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy",
    "categorical_hinge",
    "circle",
    "cosine_similarity",
    "deserialize",
    "dice",
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
    "poisson",
    "serialize",
    "sparse_categorical_crossentropy",
    "squared_hinge",
    "tversky",
]

_LATE = {
    "mirrored.training.losses.regression": """
        MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredLogarithmicError Huber LogCosh
        CosineSimilarity mean_absolute_error mean_absolute_percentage_error
        mean_squared_logarithmic_error huber log_cosh cosine_similarity MAE mae MAPE mape MSLE
        msle logcosh
    """,
    "mirrored.training.losses.probabilistic": """
        Poisson KLDivergence poisson kl_divergence KLD kld kullback_leibler_divergence
    """,
    "mirrored.training.losses.margins": """
        Hinge SquaredHinge CategoricalHinge hinge squared_hinge categorical_hinge
    """,
    "mirrored.training.losses.focal": """
        BinaryFocalCrossentropy CategoricalFocalCrossentropy CategoricalGeneralizedCrossEntropy
        binary_focal_crossentropy categorical_focal_crossentropy
        categorical_generalized_cross_entropy
    """,
    "mirrored.training.losses.overlap": "Dice Tversky dice tversky",
    "mirrored.training.losses.pairs": "Circle circle",
}
_late_module(__name__, _LATE)

# Each loss with its names beside its own and that in snake case, which its function has too.
_LOSSES: dict[str, tuple[str, ...]] = {
    "MeanSquaredError": ("mse", "MSE"),
    "MeanAbsoluteError": ("mae", "MAE"),
    "MeanAbsolutePercentageError": ("mape", "MAPE"),
    "MeanSquaredLogarithmicError": ("msle", "MSLE"),
    "CosineSimilarity": (),
    "Huber": (),
    "LogCosh": ("logcosh",),
    "Poisson": (),
    "KLDivergence": ("kld", "KLD", "kullback_leibler_divergence"),
    "Hinge": (),
    "SquaredHinge": (),
    "CategoricalHinge": (),
    "BinaryCrossentropy": ("bce", "BCE"),
    "CategoricalCrossentropy": (),
    "SparseCategoricalCrossentropy": (),
    "Circle": (),
    "Dice": (),
    "Tversky": (),
    "BinaryFocalCrossentropy": (),
    "CategoricalFocalCrossentropy": (),
    "CategoricalGeneralizedCrossEntropy": (),
}
_BY_NAME = _LateClasses(__name__, _spelt(_LOSSES))
_NO_LOSSES = frozenset(("Reduction", "deserialize", "get", "serialize"))
# In configurations, as in Keras, the name of a function is that of the function.
_DESCRIBED = _LateClasses(
    __name__,
    {
        **_spelt(_LOSSES),
        **{name: name for name in __all__ if name not in _NO_LOSSES},
        **dict.fromkeys(("bce", "BCE"), "binary_crossentropy"),
    },
)


@explained
def get(identifier: Any) -> Any:
    """Return the function or the `Loss` that `identifier` names or is; None for None.

    The function of a name has one value an example; a `Loss` has their mean.

    Args:
        identifier: A function's name such as "mse", a class's such as "MeanSquaredError", a
            configuration, a `Loss`, a subclass of it, or a function of (y_true, y_pred).

    Raises:
        ValueError: There is no such loss.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.get("mse") is mr.losses.mean_squared_error
        True
        >>> mr.losses.get("MeanSquaredError").name
        'mean_squared_error'
    """
    return None if identifier is None else _resolved("loss", identifier, _DESCRIBED)


def as_loss(identifier: Any) -> Loss:
    """Return the loss that a model is compiled with.

    Args:
        identifier: As for `get`; a function may also return one number, the mean over the examples.

    Raises:
        ValueError: There is no such loss.
    """
    if isinstance(identifier, dict):
        identifier = deserialize(identifier)
    return _find("losses", identifier, Loss, _BY_NAME, _of_function)


def serialize(loss: Any) -> Any:
    """Return the configuration of a loss, or of a function.

    Args:
        loss: The loss, or a function of targets and predictions.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.losses.serialize(mr.losses.Poisson())["config"]["name"]
        'poisson'
    """
    return _serialized(loss)


@explained
def deserialize(name: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the loss, or the function, that a configuration describes.

    Args:
        name: What `serialize` returned, or a name.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.losses.deserialize("mse") is mr.losses.mean_squared_error
        True
    """
    return _deserialized(name, _DESCRIBED, custom_objects)


def _of_function(function: Callable[..., Any]) -> Loss:
    name = function.__name__ if inspect.isfunction(function) else ""
    if name in _BY_NAME and getattr(sys.modules[__name__], name, None) is function:
        made: Loss = _BY_NAME[name]()
        return made
    return _FunctionLoss(function)
