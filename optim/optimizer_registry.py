"""Optimizers by name: `get`, `serialize` and `deserialize`."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._late import LISTS
from mirrored.optim.optimizer import Optimizer
from mirrored.serialization.constructor_arguments import serialized
from mirrored.serialization.registry import Registry, meant

_PACKAGE = "mirrored.optim"

# Those around others cannot be made without them.
_NO_RULES = ("Optimizer", "LossScaleOptimizer", "MultiOptimizer", "OptimizerMap")
_NAMES = {
    name.lower(): name for name in LISTS[_PACKAGE] if not name.islower() and name not in _NO_RULES
}
_REGISTRY: Registry[Optimizer] = Registry(
    "optimizer", _PACKAGE, _NAMES | {name.lower(): name for name in _NO_RULES[1:]}
)


def get(identifier: Any) -> Any:
    """Return the optimizer that `identifier` names or is; None for None.

    Args:
        identifier: A name such as "adam", in any case; an optimizer, a class of optimizers, or a
            configuration.

    Raises:
        ValueError: There is no such optimizer.

    Example:
        >>> import mirrored as mr
        >>> type(mr.optim.get("rmsprop")).__name__
        'RMSprop'
    """
    if identifier is None:
        return None
    kind = identifier
    if isinstance(identifier, str):  # One of the user's own too, where a scope says so.
        kind = deserialize({"class_name": identifier, "config": {}})
    elif isinstance(identifier, dict):
        kind = deserialize(identifier)
    if isinstance(kind, Optimizer):
        return kind
    if inspect.isclass(kind) and issubclass(kind, Optimizer) and kind is not Optimizer:
        make: Callable[..., Optimizer] = kind  # The settings of each have defaults.
        return make()
    raise ValueError(
        f"Could not interpret optimizer identifier: {identifier}.{meant(identifier, _NAMES)} Known "
        f"optimizers: {', '.join(sorted(_NAMES))}; or pass an `Optimizer`."
    )


def serialize(optimizer: Any) -> Any:
    """Return the configuration of an optimizer, without its state.

    Args:
        optimizer: The optimizer.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.optimizers.serialize(mr.optim.SGD(0.5))["config"]["learning_rate"]
        0.5
    """
    return serialized(optimizer)


def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the optimizer that a configuration describes.

    Args:
        config: What `serialize` returned.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> import mirrored as mr
        >>> config = mr.keras.optimizers.serialize(mr.optim.SGD(0.5))
        >>> float(mr.keras.optimizers.deserialize(config).learning_rate)
        0.5
    """
    if isinstance(config, dict):
        name = str(config.get("class_name"))
        config = {**config, "class_name": name.lower() if name.lower() in _REGISTRY else name}
    return _REGISTRY.deserialize(config, custom_objects)


explain_functions(__name__, all_but="serialize")
