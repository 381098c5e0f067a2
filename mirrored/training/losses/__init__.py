"""The losses that there are, and how they are found by name.

Each is a formula, with a check of the targets that go with it, in a file of its own.
"""

import inspect
from collections.abc import Callable
from typing import Any

from mirrored._arguments import explained
from mirrored.layers.identifiers import by_name as _by_name
from mirrored.layers.identifiers import find as _find
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
from mirrored.training.losses.loss import FunctionLoss as _FunctionLoss
from mirrored.training.losses.loss import Loss as Loss
from mirrored.training.losses.loss import Reduction as Reduction
from mirrored.training.losses.squared_error import MeanSquaredError as MeanSquaredError
from mirrored.training.losses.squared_error import mean_squared_error as mean_squared_error

mse = MSE = mean_squared_error

__all__ = [
    "MSE",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Loss",
    "MeanSquaredError",
    "Reduction",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "get",
    "mean_squared_error",
    "mse",
    "sparse_categorical_crossentropy",
]

# Each loss with its function, and its names beside its own and that in snake case.
_LOSSES: tuple[tuple[Callable[[], Loss], Any, tuple[str, ...]], ...] = (
    (MeanSquaredError, mean_squared_error, ("mse", "MSE")),
    (BinaryCrossentropy, binary_crossentropy, ("bce", "BCE")),
    (CategoricalCrossentropy, categorical_crossentropy, ()),
    (SparseCategoricalCrossentropy, sparse_categorical_crossentropy, ()),
)
_BY_NAME = _by_name((cls, more) for cls, _, more in _LOSSES)
_BY_FUNCTION = {function: cls for cls, function, _ in _LOSSES}


@explained
def get(identifier: Any) -> Loss:
    """Return the loss that `identifier` names or is.

    Args:
        identifier: A name such as "mse" or "SparseCategoricalCrossentropy", a `Loss`, a subclass
            of it, or a function of (y_true, y_pred) that returns one value an example, or one
            number: the mean over the examples.

    Raises:
        ValueError: There is no such loss.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.get("mse").name
        'mean_squared_error'
    """
    return _find("losses", identifier, Loss, _BY_NAME, _of_function)


def _of_function(function: Callable[..., Any]) -> Loss:
    known = _BY_FUNCTION.get(function) if inspect.isfunction(function) else None
    return _FunctionLoss(function) if known is None else known()
