"""Losses by name: `get`, `serialize` and `deserialize`."""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from mirrored._arguments import explained
from mirrored._late import LISTS
from mirrored._naming import snake_case
from mirrored.serialization.constructor_arguments import serialized
from mirrored.serialization.registry import Registry
from mirrored.training.losses.loss import FunctionLoss, Loss

_PACKAGE = "mirrored.training.losses"
_NAMES = LISTS[_PACKAGE]
_NO_LOSSES = frozenset(("Reduction", "as_loss", "deserialize", "get", "serialize"))

# The name of its function for each name of a loss, and the class of each function.
_FUNCTIONS = {name: snake_case(_NAMES.home(name)[1]) for name in _NAMES}
_CLASSES = {
    function: name
    for name, function in _FUNCTIONS.items()
    if not _NAMES.home(name)[1].islower() and name not in ("Loss", "Reduction")
}
_SHORT = ("bce", "BCE")  # Of binary cross-entropy, which no function is called.
_BY_NAME: Registry[Loss] = Registry(
    "losses",
    _PACKAGE,
    {
        **{name: _CLASSES[of] for name, of in _FUNCTIONS.items() if of in _CLASSES},
        **dict.fromkeys(_SHORT, "BinaryCrossentropy"),
    },
)
# In configurations, as in Keras, the name of a function is that of the function.
_DESCRIBED: Registry[Any] = Registry(
    "loss",
    _PACKAGE,
    {
        **{name: name for name in _NAMES if name not in _NO_LOSSES},
        **dict.fromkeys(_SHORT, "binary_crossentropy"),
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
    return None if identifier is None else _DESCRIBED.resolve(identifier)


def as_loss(identifier: Any) -> Loss:
    """Return the loss that a model is compiled with.

    Args:
        identifier: As for `get`; a function may also return one number, the mean over the examples.

    Raises:
        ValueError: There is no such loss.
    """
    if isinstance(identifier, dict):
        identifier = deserialize(identifier)
    return _BY_NAME.create(identifier, Loss, _of_function)


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
def deserialize(
    name: str | Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """Return the loss, or the function, that a configuration describes.

    Args:
        name: What `serialize` returned, or a name.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.losses.deserialize("mse") is mr.losses.mean_squared_error
        True
    """
    return _DESCRIBED.deserialize(name, custom_objects)


def _of_function(function: Callable[..., Any]) -> Loss:
    name = function.__name__ if inspect.isfunction(function) else ""
    if name in _BY_NAME and getattr(sys.modules[_PACKAGE], name) is function:
        loss: Loss = _BY_NAME[name]()
        return loss
    return FunctionLoss(function)
