"""What training minimises: a number for each example, and their mean over the global batch.

Losses are kept by example for as long as possible: so that the mean can be that of the global
batch, however many replicas share it.
"""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mirrored import ops
from mirrored.distribute import has_strategy
from mirrored.layers.naming import snake_case
from mirrored.ops import Tensor
from mirrored.training import loss_functions as maths
from mirrored.training import targets
from mirrored.training.loss_functions import binary_crossentropy as binary_crossentropy
from mirrored.training.loss_functions import categorical_crossentropy as categorical_crossentropy
from mirrored.training.loss_functions import mean_squared_error as mean_squared_error
from mirrored.training.loss_functions import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from mirrored.training.targets import OutputShape


class Reduction:
    """The names of the reductions.

    Attributes:
        SUM_OVER_BATCH_SIZE: The sum divided by the number of examples.
        SUM: The sum over the examples.
        NONE: A value for each example.
    """

    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    SUM = "sum"
    NONE = "none"


_REDUCTIONS = (Reduction.SUM_OVER_BATCH_SIZE, Reduction.SUM, Reduction.NONE)


class Loss:
    """Base of the losses; a subclass gives the loss of each example in `call`.

    Args:
        name: The name that errors show; None takes that of the class.
        reduction: "sum_over_batch_size" (the sum divided by the number of examples, whatever
            their weights), "sum", or "none" for a value an example.

    Attributes:
        targets_are_labels: Whether targets are indices of classes, not numbers to be cast to the
            dtype of the predictions.

    Raises:
        ValueError: `reduction` is something else.

    Example:
        >>> import mirrored as mr
        >>> class AbsoluteError(mr.losses.Loss):
        ...     def call(self, y_true, y_pred):
        ...         return mr.abs(y_true - y_pred)
        >>> float(AbsoluteError()([[1.0], [2.0]], [[3.0], [2.0]]))
        1.0
    """

    targets_are_labels: ClassVar[bool] = False

    def __init__(
        self, name: str | None = None, reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE
    ) -> None:
        reduction = Reduction.NONE if reduction is None else reduction
        if reduction not in _REDUCTIONS:
            raise ValueError(
                "Invalid value for argument `reduction`. "
                f"Expected one of {', '.join(_REDUCTIONS)}. Received: reduction={reduction}"
            )
        self.name = name or snake_case(type(self).__name__)
        self.reduction = reduction

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """Return the loss of each example, or of each of its elements, to be averaged.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).
        """
        raise NotImplementedError(
            f"The loss {type(self).__name__} has no `call`. Define `call(self, y_true, y_pred)` "
            "that returns one value an example."
        )

    def per_example(self, y_true: Any, y_pred: Any) -> Tensor:
        """Return the loss of each example.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).

        Returns:
            A tensor of shape (batch,) in the dtype of the predictions; float32 for bfloat16.

        Raises:
            ValueError: The shapes do not fit, or `call` did not return a value an example.

        Example:
            >>> import mirrored as mr
            >>> mr.losses.MeanSquaredError().per_example([[1.0], [2.0]], [[3.0], [2.0]]).numpy()
            array([4., 0.], dtype=float32)
        """
        y_pred = maths.as_predictions(y_pred)
        y_true = ops.convert_to_tensor(y_true)
        if not y_pred.shape:
            raise ValueError(
                f"The loss {self.name!r} needs predictions of shape (batch, ...). "
                f"Received: the scalar y_pred={y_pred}."
            )
        if not self.targets_are_labels:
            y_true = maths.aligned(maths.cast(y_true, y_pred.dtype), y_pred)
        values = ops.convert_to_tensor(self.call(y_true, y_pred))
        if values.shape[:1] != y_pred.shape[:1]:
            raise ValueError(
                f"The loss {self.name!r} must return one value an example, shape "
                f"({y_pred.shape[0]},) or ({y_pred.shape[0]}, ...). Received: a tensor of shape "
                f"{values.shape}. Average over the other axes only: the mean over the batch is "
                "taken later, over all replicas."
            )
        return maths.mean_of_rest(maths.cast(values, y_pred.dtype))

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Return the loss of a batch, reduced as `reduction` says.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).
            sample_weight: Weights of shape (batch,) or (batch, 1), one for all, or None.

        Returns:
            A scalar, or with the reduction "none" a tensor of shape (batch,).

        Raises:
            ValueError: Shapes do not fit; or the mean over a batch was asked for in a strategy's
                scope, where a replica does not see the whole batch.
        """
        if self.reduction == Reduction.SUM_OVER_BATCH_SIZE and has_strategy():
            raise ValueError(
                "Please use `mr.losses.Reduction.SUM` or `mr.losses.Reduction.NONE` for loss "
                "reduction when losses are used with a strategy outside of the built-in training "
                f"loops. Received: {self.name!r} with reduction={self.reduction!r}. Divide the "
                "sum by the global batch size."
            )
        values = self.per_example(y_true, y_pred)
        if sample_weight is not None:
            values = values * maths.example_weights(sample_weight, values)
        if self.reduction == Reduction.NONE:
            return values
        total = ops.reduce_sum(values)
        if self.reduction == Reduction.SUM:
            return total
        return total / float(max(values.size, 1))  # The loss of no examples is 0.

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape that the loss wants, after checking them on the host.

        Args:
            y: Targets of shape (examples, ...).
            output_shape: The model's output shape, (None, ...).

        Raises:
            ValueError: Shape or values do not fit the loss and the model's output.

        Example:
            >>> import numpy as np
            >>> import mirrored as mr
            >>> mr.losses.MeanSquaredError().check_targets(np.zeros(3), (None, 1)).shape
            (3, 1)
        """
        return targets.align_last_axis(y, output_shape)


class MeanSquaredError(Loss):
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
        """Return the loss of each example."""
        return maths.mean_of_rest(maths.squared_errors(y_true, y_pred))

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        hint = "Reshape them, or change the units of the last layer."
        return targets.match_output(self.name, y, output_shape, hint=hint)


class _Crossentropy(Loss):
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
        """Return the loss of each example."""
        return maths.mean_of_rest(maths.binary_entropies(y_true, y_pred, self.from_logits))

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
        """Return the loss of each example."""
        return maths.mean_of_rest(maths.categorical_entropies(y_true, y_pred, self.from_logits))

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
        """Return the loss of each example."""
        return maths.mean_of_rest(maths.sparse_entropies(y_true, y_pred, self.from_logits))

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


def get(identifier: Any) -> Loss:
    """Return the loss that `identifier` names or is.

    Args:
        identifier: A name such as "mse" or "SparseCategoricalCrossentropy", a `Loss`, a subclass
            of it, or a function of (y_true, y_pred) that returns one value an example.

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
