"""Optimizers: how gradients change weights. One rule a file.

`get` finds one by its name.
"""

import inspect
from collections.abc import Callable
from typing import Any

from mirrored._absent import public_module as _public_module
from mirrored._arguments import explained
from mirrored.optim.adam import Adam as Adam
from mirrored.optim.optimizer import Optimizer as Optimizer
from mirrored.optim.sgd import SGD as SGD

__all__ = [
    "SGD",
    "Adam",
    "Optimizer",
    "get",
]

_public_module("tf.keras.optimizers", __name__)

_OPTIMIZERS: tuple[type[Optimizer], ...] = (Adam, SGD)
_BY_NAME = {each.__name__.lower(): each for each in _OPTIMIZERS}


@explained
def get(identifier: Any) -> Optimizer:
    """Return the optimizer that `identifier` names or is.

    Args:
        identifier: "sgd" or "adam" in any case, an optimizer, or a class of optimizers.

    Raises:
        ValueError: There is no such optimizer.

    Example:
        >>> import mirrored as mr
        >>> type(mr.optim.get("sgd")).__name__
        'SGD'
    """
    if isinstance(identifier, Optimizer):
        return identifier
    kind = _BY_NAME.get(identifier.lower()) if isinstance(identifier, str) else identifier
    if inspect.isclass(kind) and issubclass(kind, Optimizer) and kind is not Optimizer:
        make: Callable[[], Optimizer] = kind  # The settings of each have defaults.
        return make()
    raise ValueError(
        f"Could not interpret optimizer identifier: {identifier}. The optimizers there are: "
        f"{', '.join(sorted(_BY_NAME))}; or pass an `Optimizer`."
    )
