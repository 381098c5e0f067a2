"""Losses by name: `get`, `serialize` and `deserialize`."""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from mirrored._arguments import explained
from mirrored._late import LISTS
from mirrored.layers.identifiers import find, spelt
from mirrored.layers.identifiers import resolve as resolved
from mirrored.serialization.constructor_arguments import LateClasses, deserialized, serialized
from mirrored.training.losses.loss import FunctionLoss, Loss

_PACKAGE = "mirrored.training.losses"

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
_BY_NAME = LateClasses(_PACKAGE, spelt(_LOSSES))
_NO_LOSSES = frozenset(("Reduction", "as_loss", "deserialize", "get", "serialize"))
# In configurations, as in Keras, the name of a function is that of the function.
_DESCRIBED = LateClasses(
    _PACKAGE,
    {
        **spelt(_LOSSES),
        **{name: name for name in LISTS[_PACKAGE] if name not in _NO_LOSSES},
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
    return None if identifier is None else resolved("loss", identifier, _DESCRIBED)


def as_loss(identifier: Any) -> Loss:
    """Return the loss that a model is compiled with.

    Args:
        identifier: As for `get`; a function may also return one number, the mean over the examples.

    Raises:
        ValueError: There is no such loss.
    """
    if isinstance(identifier, dict):
        identifier = deserialize(identifier)
    return find("losses", identifier, Loss, _BY_NAME, _of_function)


def serialize(loss: Any) -> Any:
    """Return the configuration of a loss, or of a function.

    Args:
        loss: The loss, or a function of targets and predictions.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.losses.serialize(mr.losses.Poisson())["config"]["name"]
        'poisson'
    """
    return serialized(loss)


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
    return deserialized(name, _DESCRIBED, custom_objects)


def _of_function(function: Callable[..., Any]) -> Loss:
    name = function.__name__ if inspect.isfunction(function) else ""
    if name in _BY_NAME and getattr(sys.modules[_PACKAGE], name) is function:
        loss: Loss = _BY_NAME[name]()
        return loss
    return FunctionLoss(function)
