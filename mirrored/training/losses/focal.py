"""Cross-entropies for classes that are rare, and for labels that are not to be trusted.

The focal ones let what is predicted well count little, the generalized one what contradicts its
label.
"""

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._numbers import as_real
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.training.losses.crossentropy import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    binary_entropies,
    class_targets,
    smoothed,
)
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.values import (
    EPSILON,
    as_predictions,
    check_class_axis,
    check_not_batch,
    check_same_shape,
    class_indices,
    converted,
    mean_of_axis,
)


def focal_entropies(
    y_true: Tensor,
    y_pred: Tensor,
    apply_class_balancing: bool,
    alpha: float,
    gamma: float,
    from_logits: bool,
    label_smoothing: float,
) -> Tensor:
    """Return (1 - p_t)^gamma times the binary cross-entropy, element by element."""
    check_same_shape(y_true, y_pred)
    y_true = smoothed(y_true, label_smoothing, 0.5)
    p = ops.sigmoid(y_pred) if from_logits else y_pred
    entropies = binary_entropies(y_true, p, from_logits=False)
    likely = y_true * p + (1.0 - y_true) * (1.0 - p)
    values = ops.pow(1.0 - likely, gamma) * entropies
    if apply_class_balancing:
        values = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * values
    return values


def binary_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return the mean binary focal cross-entropy over an axis (Lin et al. 2017).

    Args:
        y_true: Targets in [0, 1] of shape (batch, ...).
        y_pred: Probabilities, or logits, of the same shape.
        apply_class_balancing: Whether class 1 counts by `alpha`, class 0 by 1 - `alpha`.
        alpha: How much class 1 counts.
        gamma: How little counts what is predicted well; 0 is the binary cross-entropy.
        from_logits: Whether predictions are logits.
        label_smoothing: How far targets are moved towards 1/2: 0 not at all, 1 all the way.
        axis: The axis that the mean is taken over.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.binary_focal_crossentropy([[1.0]], [[0.5]]).numpy().round(4)
        array([0.1733], dtype=float32)
    """
    true, pred = converted(y_true, y_pred)
    values = focal_entropies(
        true, pred, apply_class_balancing, alpha, gamma, from_logits, label_smoothing
    )
    return ops.reduce_mean(values, axis=axis)


class BinaryFocalCrossentropy(BinaryCrossentropy):
    """The mean of (1 - p_t)^gamma times the binary cross-entropy (Lin et al. 2017).

    Args:
        apply_class_balancing: Whether class 1 counts by `alpha`, class 0 by 1 - `alpha`.
        alpha: How much class 1 counts.
        gamma: How little counts what is predicted well; 0 is the binary cross-entropy.
        from_logits: Whether predictions are logits, p = sigmoid(y_pred), not probabilities.
        label_smoothing: How far targets are moved towards 1/2: 0 not at all, 1 all the way.
        axis: The axis that the mean is taken over, not that of the batch.
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Raises:
        ValueError: `axis` is no integer, or that of the batch.

    Example:
        >>> import mirrored as mr
        >>> loss = mr.losses.BinaryFocalCrossentropy(gamma=2)
        >>> round(float(loss([[1.0], [0.0]], [[0.5], [0.5]])), 4)
        0.1733
    """

    _name = "binary_focal_crossentropy"

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(from_logits, label_smoothing, axis, reduction, name, dtype)
        self.apply_class_balancing = apply_class_balancing
        self.alpha = alpha
        self.gamma = gamma

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the axis."""
        weights = self.apply_class_balancing, self.alpha, self.gamma
        options = self.from_logits, self.label_smoothing
        return mean_of_axis(focal_entropies(y_true, y_pred, *weights, *options), self.axis)


def categorical_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: TensorLike = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return the focal cross-entropy over the axis of the classes (Lin et al. 2017).

    Args:
        y_true: Probabilities, as one-hot rows, of shape (batch, ..., classes).
        y_pred: Probabilities, or logits, of the same shape.
        alpha: How much it counts: a number, or one for each class.
        gamma: How little counts what is predicted well.
        from_logits: Whether predictions are logits.
        label_smoothing: How far targets are moved towards one part for each class, by the size of
            the last axis: 0 not at all, 1 all the way.
        axis: The axis of the classes.

    Raises:
        ValueError: The shapes differ, or `axis` is a boolean.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.categorical_focal_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4)
        array([0.0433], dtype=float32)
    """
    check_class_axis(axis)
    true, pred = converted(y_true, y_pred)
    true = class_targets("categorical_focal_crossentropy", true, pred, label_smoothing)
    pred = ops.softmax(pred, axis=axis) if from_logits else pred
    p = pred / ops.reduce_sum(pred, axis=axis, keepdims=True)
    p = ops.clip_by_value(p, EPSILON, 1.0 - EPSILON)
    factor = ops.pow(1.0 - p, gamma) * alpha
    return ops.reduce_sum(factor * (-true * ops.log(p)), axis=axis)


class CategoricalFocalCrossentropy(CategoricalCrossentropy):
    """The sum over the classes of -alpha (1 - p)^gamma y log p (Lin et al. 2017).

    Args:
        alpha: How much it counts: a number, or one for each class.
        gamma: How little counts what is predicted well.
        from_logits: Whether predictions are logits, p = softmax(y_pred), not probabilities.
        label_smoothing: How far targets are moved towards one part for each class, by the size of
            the last axis: 0 not at all, 1 all the way.
        axis: The axis of the classes, not that of the batch.
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Raises:
        ValueError: `axis` is no integer, or that of the batch.

    Example:
        >>> import mirrored as mr
        >>> loss = mr.losses.CategoricalFocalCrossentropy()
        >>> round(float(loss([[0.0, 1.0]], [[0.5, 0.5]])), 4)
        0.0433
    """

    _name = "categorical_focal_crossentropy"

    def __init__(
        self,
        alpha: TensorLike = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(from_logits, label_smoothing, axis, reduction, name, dtype)
        self.alpha = alpha
        self.gamma = gamma

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the axis of the classes."""
        check_not_batch(self.axis, y_pred)
        options = self.alpha, self.gamma, self.from_logits, self.label_smoothing, self.axis
        return categorical_focal_crossentropy(y_true, y_pred, *options)


def categorical_generalized_cross_entropy(
    y_true: TensorLike, y_pred: TensorLike, q: float
) -> Tensor:
    """Return (1 - p^q) / q of the classes' probabilities (Zhang and Sabuncu 2018).

    Args:
        y_true: Labels in [0, classes) of shape (batch, ...) or (batch, ..., 1).
        y_pred: Probabilities of shape (batch, ..., classes).
        q: How little a label counts that the predictions contradict: near 0 it is the
            cross-entropy, near 1 the absolute error.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.categorical_generalized_cross_entropy([1], [[0.75, 0.25]], 0.5).numpy()
        array([1.], dtype=float32)
    """
    y_pred = as_predictions(y_pred)
    labels = class_indices(ops.convert_to_tensor(y_true), y_pred)
    rows = ops.one_hot(labels, y_pred.shape[-1], dtype=y_pred.dtype)
    p = ops.reduce_sum(y_pred * rows, axis=-1)
    return (1.0 - ops.pow(p, q)) / q


class CategoricalGeneralizedCrossEntropy(LossByLastAxis):
    """(1 - p^q) / q of the classes that labels name (Zhang and Sabuncu 2018).

    Args:
        q: How little a label counts that the predictions contradict: near 0 it is the
            cross-entropy, near 1 the absolute error.
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Raises:
        ValueError: `q` is not between 0 and 1.

    Example:
        >>> import mirrored as mr
        >>> loss = mr.losses.CategoricalGeneralizedCrossEntropy(q=0.5)
        >>> float(loss([1, 0], [[0.75, 0.25], [1.0, 0.0]]))
        0.5
    """

    targets_are_labels = True

    def __init__(
        self,
        q: float = 0.5,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "categorical_generalized_cross_entropy",
        dtype: DTypeLike | None = None,
    ) -> None:
        number = as_real(q)
        if number is None or not 0 < number < 1:
            raise ValueError("q must be in the interval (0, 1)")
        super().__init__(name, reduction, dtype)
        self.q = number

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return categorical_generalized_cross_entropy(y_true, y_pred, self.q)


explain_functions(__name__, all_but="focal_entropies")
