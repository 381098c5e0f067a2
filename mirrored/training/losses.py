"""The losses that there are, and how they are found by name.

Each is a formula of `loss_functions`, with a check of the targets that go with it.
"""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mirrored._arguments import explained
from mirrored.layers.naming import snake_case
from mirrored.ops import Tensor
from mirrored.training import loss_functions as maths
from mirrored.training import targets
from mirrored.training.loss import Loss as Loss
from mirrored.training.loss import Reduction as Reduction
from mirrored.training.loss_functions import binary_crossentropy as binary_crossentropy
from mirrored.training.loss_functions import categorical_crossentropy as categorical_crossentropy
from mirrored.training.loss_functions import mean_squared_error as mean_squared_error
from mirrored.training.loss_functions import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from mirrored.training.sample_weights import fitted_shape
from mirrored.training.targets import OutputShape


class _ByLastAxis(Loss):
    """What the losses that there are share: the last axis of the predictions makes one value."""

    def check_weights(self, weights: np.ndarray, output_shape: OutputShape) -> None:
        """Raise ValueError unless weights broadcast to the outputs without their last axis."""
        losses = output_shape[:-1] if len(output_shape) > 1 else output_shape
        fitted_shape(weights.shape, (len(weights), *losses[1:]))


@explained
class MeanSquaredError(_ByLastAxis):
    """The mean of (y_true - y_pred)^2 over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.MeanSquaredError()([[0.0, 1.0]], [[1.0, 1.0]]))
        0.5
    """

    def __init__(
        self,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "mean_squared_error",
    ) -> None:
        super().__init__(name, reduction)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return maths.mean_of_last(maths.squared_errors(y_true, y_pred))

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        hint = "Reshape them, or change the units of the last layer."
        return targets.match_output(self.name, y, output_shape, hint=hint)


@explained
class _Crossentropy(_ByLastAxis):
    """What the cross-entropies share: predictions are probabilities, or logits."""

    _name: ClassVar[str]

    def __init__(
        self,
        from_logits: bool = False,
        *,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
    ) -> None:
        super().__init__(name or self._name, reduction)
        self.from_logits = from_logits


class BinaryCrossentropy(_Crossentropy):
    """The mean of -(y log p + (1 - y) log(1 - p)) over an example's elements.

    Args:
        from_logits: Whether predictions are logits, p = sigmoid(y_pred), not probabilities.
        reduction: As in `Loss`.
        name: The name that errors show.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.BinaryCrossentropy()([[1.0], [0.0]], [[0.5], [0.5]])), 4)
        0.6931
    """

    _name = "binary_crossentropy"

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return maths.mean_of_last(maths.binary_entropies(y_true, y_pred, self.from_logits))

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in [0, 1] in the shape of the model's output."""
        hint = "Labels of several classes go with 'sparse_categorical_crossentropy'."
        y = targets.match_output(self.name, y, output_shape, hint=hint)
        return targets.check_probabilities(self.name, y)


class CategoricalCrossentropy(_Crossentropy):
    """Minus the sum of y log p over the classes, which are the last axis.

    Args:
        from_logits: Whether predictions are logits, p = softmax(y_pred), not probabilities.
        reduction: As in `Loss`.
        name: The name that errors show.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]])), 4)
        0.6931
    """

    _name = "categorical_crossentropy"

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return maths.categorical_entropies(y_true, y_pred, self.from_logits)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        hint = "Integer labels go with 'sparse_categorical_crossentropy'."
        return targets.match_output(self.name, y, output_shape, hint=hint)


class SparseCategoricalCrossentropy(_Crossentropy):
    """Minus log p of each example's class, given by its index; the classes are the last axis.

    Args:
        from_logits: Whether predictions are logits, p = softmax(y_pred), not probabilities.
        reduction: As in `Loss`.
        name: The name that errors show.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.SparseCategoricalCrossentropy()([1], [[0.5, 0.5]])), 4)
        0.6931
    """

    _name = "sparse_categorical_crossentropy"
    targets_are_labels = True

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return maths.sparse_entropies(y_true, y_pred, self.from_logits)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return labels in [0, classes), one for each prediction."""
        return targets.check_labels(self.name, y, output_shape)


class _FunctionLoss(Loss):
    """A user's function of targets and predictions."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(getattr(function, "__name__", None) or type(function).__name__)
        self._function = function

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        return self._function(y_true, y_pred)


mse = MSE = mean_squared_error
bce = BCE = binary_crossentropy

_CLASSES: tuple[Callable[[], Loss], ...] = (
    MeanSquaredError,
    BinaryCrossentropy,
    CategoricalCrossentropy,
    SparseCategoricalCrossentropy,
)
_BY_NAME: dict[str, Callable[[], Loss]] = {
    **{cls.__name__: cls for cls in _CLASSES},
    **{snake_case(cls.__name__): cls for cls in _CLASSES},
    **dict.fromkeys(("mse", "MSE"), MeanSquaredError),
    **dict.fromkeys(("bce", "BCE"), BinaryCrossentropy),
}
_BY_FUNCTION: dict[Any, Callable[[], Loss]] = {
    mean_squared_error: MeanSquaredError,
    binary_crossentropy: BinaryCrossentropy,
    categorical_crossentropy: CategoricalCrossentropy,
    sparse_categorical_crossentropy: SparseCategoricalCrossentropy,
}


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
    if isinstance(identifier, Loss):
        return identifier
    if isinstance(identifier, str) and identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    if inspect.isclass(identifier) and issubclass(identifier, Loss):
        return identifier()
    if callable(identifier) and not inspect.isclass(identifier):
        known = _BY_FUNCTION.get(identifier) if inspect.isfunction(identifier) else None
        return _FunctionLoss(identifier) if known is None else known()
    raise ValueError(
        f"Could not interpret loss identifier: {identifier}. "
        f"The losses there are: {', '.join(sorted(_BY_NAME))}; or pass a `Loss` or a function."
    )
