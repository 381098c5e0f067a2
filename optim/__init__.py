"""Optimizers: how gradients change weights. One rule a file.

`get` finds one by its name.
"""

import inspect
import typing as _typing
from collections.abc import Callable, Mapping
from typing import Any

from mirrored._absent import public_module as _public_module
from mirrored._arguments import explained
from mirrored.optim.adam import Adam as Adam
from mirrored.optim.optimizer import Optimizer as Optimizer
from mirrored.optim.sgd import SGD as SGD
from mirrored.serialization.configured import LateClasses, deserialized, serialized

if _typing.TYPE_CHECKING:
    from mirrored.optim import schedules as schedules
    from mirrored.optim.adadelta import Adadelta as Adadelta
    from mirrored.optim.adafactor import Adafactor as Adafactor
    from mirrored.optim.adagrad import Adagrad as Adagrad
    from mirrored.optim.adamax import Adamax as Adamax
    from mirrored.optim.adamw import AdamW as AdamW
    from mirrored.optim.ftrl import Ftrl as Ftrl
    from mirrored.optim.lamb import Lamb as Lamb
    from mirrored.optim.lion import Lion as Lion
    from mirrored.optim.loss_scale_optimizer import LossScaleOptimizer as LossScaleOptimizer
    from mirrored.optim.multi_optimizer import MultiOptimizer as MultiOptimizer
    from mirrored.optim.multi_optimizer import OptimizerMap as OptimizerMap
    from mirrored.optim.muon import Muon as Muon
    from mirrored.optim.nadam import Nadam as Nadam
    from mirrored.optim.rmsprop import RMSprop as RMSprop
    from mirrored.optim.schedule_free_adamw import ScheduleFreeAdamW as ScheduleFreeAdamW

__all__ = [
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lamb",
    "Lion",
    "LossScaleOptimizer",
    "MultiOptimizer",
    "Muon",
    "Nadam",
    "Optimizer",
    "OptimizerMap",
    "RMSprop",
    "ScheduleFreeAdamW",
    "deserialize",
    "get",
    "schedules",
    "serialize",
]

_LATE = {
    "mirrored.optim": "schedules",
    "mirrored.optim.adadelta": "Adadelta",
    "mirrored.optim.adafactor": "Adafactor",
    "mirrored.optim.adagrad": "Adagrad",
    "mirrored.optim.adamw": "AdamW",
    "mirrored.optim.adamax": "Adamax",
    "mirrored.optim.ftrl": "Ftrl",
    "mirrored.optim.lamb": "Lamb",
    "mirrored.optim.lion": "Lion",
    "mirrored.optim.loss_scale_optimizer": "LossScaleOptimizer",
    "mirrored.optim.multi_optimizer": "MultiOptimizer OptimizerMap",
    "mirrored.optim.muon": "Muon",
    "mirrored.optim.nadam": "Nadam",
    "mirrored.optim.rmsprop": "RMSprop",
    "mirrored.optim.schedule_free_adamw": "ScheduleFreeAdamW",
}
_public_module("tf.keras.optimizers", __name__, _LATE)

# Those around others cannot be made without them.
_NO_RULES = ("schedules", "LossScaleOptimizer", "MultiOptimizer", "OptimizerMap")
_RULES = [name for names in _LATE.values() for name in names.split() if name not in _NO_RULES]
_NAMES = {name.lower(): name for name in ("SGD", "Adam", *_RULES)}
_BY_NAME = _NAMES | {name.lower(): name for name in _NO_RULES if name != "schedules"}


@explained
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
        f"Could not interpret optimizer identifier: {identifier}. The optimizers there are: "
        f"{', '.join(sorted(_NAMES))}; or pass an `Optimizer`."
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


@explained
def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
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
        config = {**config, "class_name": name.lower() if name.lower() in _BY_NAME else name}
    return deserialized(config, LateClasses(__name__, _BY_NAME), custom_objects)
