"""Areas under curves of rates over thresholds."""

from collections.abc import Sequence
from typing import Any

from mirrored import ops
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import deserialized
from mirrored.training.losses.values import EPSILON, cast
from mirrored.training.metrics.counting import (
    ALL,
    Counting,
    Thresholds,
    are_even,
    check_number,
    confusion,
)

_CURVES = ("PR", "ROC", "PRGAIN")
_SUMS = ("interpolation", "majoring", "minoring")


class AUC(Counting):
    """The area under a curve of rates, as closely as thresholds can tell.

    Args:
        num_thresholds: How many thresholds there are, evenly in [0, 1]: more than 1.
        curve: "ROC": recall over the part of false targets that is positive; "PR": precision over
            recall; "PRGAIN": their gains (Flach and Kull, 2015).
        summation_method: "interpolation": between thresholds the curve is straight, for "PR" the
            counts are (Davis and Goadrich, 2006); "minoring", "majoring": it is the lower or the
            higher of two neighbours.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.
        thresholds: Thresholds in [0, 1] to take in place of `num_thresholds`; 0 and 1 are added.
        multi_label: Whether each column of targets and predictions, which are of rank 2, has a
            curve of its own; the result is the mean of their areas.
        num_labels: How many columns there are, with `multi_label`; None: as the first batch has.
        label_weights: A weight for each column, or None: in that mean, or else of predictions.
        from_logits: Whether predictions are logits, not probabilities.

    Raises:
        ValueError: An argument is none of these.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.AUC(num_thresholds=3)
        >>> metric.update_state([0, 0, 1, 1], [0.0, 0.5, 0.3, 0.9])
        >>> float(metric.result())
        0.75
    """

    _direction = "up"
    _unknown = "labels"
    _advice = "Pass `num_labels`, or call"

    _kept_otherwise = ("thresholds", "from_logits")

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: DTypeLike | None = None,
        thresholds: Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: TensorLike | None = None,
        from_logits: bool = False,
    ) -> None:
        inner = _inner(num_thresholds, thresholds)
        self.curve = _one_of("AUC curve", curve, _CURVES)
        self.summation_method = _one_of("AUC summation method", summation_method, _SUMS)
        if num_labels and not multi_label:
            raise ValueError("`num_labels` is needed only when `multi_label` is True.")
        super().__init__(dtype, name)
        self.num_thresholds = len(inner) + 2
        even = thresholds is None or are_even([0.0, *inner, 1.0])
        self._levels = Thresholds([-EPSILON, *inner, 1.0 + EPSILON], even)
        self.multi_label, self.num_labels = multi_label, num_labels
        label_weights = deserialized(label_weights, None)
        self.label_weights = (
            None if label_weights is None else ops.constant(label_weights, self.dtype)
        )
        self._from_logits = from_logits
        self._given_thresholds = None if thresholds is None else inner
        if not multi_label or num_labels:
            self._build((None, num_labels))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a metric like it, by name, as plain values."""
        config = {**super().get_config(), "from_logits": self._from_logits}
        thresholds = self._given_thresholds
        return config if thresholds is None else {**config, "thresholds": thresholds}

    @property
    def thresholds(self) -> list[float]:
        """What predictions are compared with."""
        return list(self._levels.values)

    def _build(self, shape: tuple[Any, ...]) -> None:
        """Make the counts for predictions of a shape."""
        if len(shape) != 2 and self.multi_label:
            raise ValueError(
                "`y_pred` must have rank 2 when `multi_label=True`. "
                f"Found rank {len(shape)}. Full shape received for `y_pred`: {shape}"
            )
        columns = shape[1:] if self.multi_label else ()
        self._start((self.num_thresholds, *columns))

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: The targets, true where they are not 0.
            y_pred: The predictions, of the same shape.
            sample_weight: Weights that broadcast to the predictions, or None.

        Raises:
            ValueError: The shapes do not fit.
        """
        y_pred = cast(ops.convert_to_tensor(y_pred), self.dtype)
        if not self._built:
            self._build(y_pred.shape)
        if self._from_logits:
            y_pred = ops.sigmoid(y_pred)
        counts = confusion(
            ALL,
            y_true,
            y_pred,
            sample_weight,
            self._levels,
            dtype=self.dtype,
            by_label=self.multi_label,
            label_weights=None if self.multi_label else self.label_weights,
        )
        self._count(counts)

    def _of(self, *counts: Tensor) -> Tensor:
        if self.curve == "PR" and self.summation_method == "interpolation":
            areas = _interpolated(*counts)
        else:
            x, y = _POINTS[self.curve](*counts)
            areas = (x[:-1] - x[1:]) * _HEIGHTS[self.summation_method](y[:-1], y[1:])
        area = ops.reduce_sum(areas, axis=0)
        if not self.multi_label:
            return area
        if self.label_weights is None:
            return ops.reduce_mean(area)
        weights = ops.cast(self.label_weights, area.dtype)
        return ops.divide_no_nan(ops.reduce_sum(area * weights), ops.reduce_sum(weights))


def _inner(num_thresholds: int, thresholds: Any) -> list[float]:
    """Return the thresholds between the first and the last."""
    if thresholds is not None:
        return sorted(thresholds)
    check_number(num_thresholds, above=1)
    return [step / (num_thresholds - 1) for step in range(1, num_thresholds - 1)]


def _one_of(argument: str, value: Any, names: tuple[str, ...]) -> str:
    """Return the name that a value is, in small letters too, or with a capital one."""
    for name in names:
        if value in (name, name.lower() if name.isupper() else name.capitalize()):
            return name
    expected = "[" + ", ".join(f'"{name}"' for name in names) + "]"
    raise ValueError(f'Invalid {argument} value: "{value}". Expected values are {expected}')


def _roc(right: Tensor, wrong: Tensor, left: Tensor, missed: Tensor) -> tuple[Tensor, Tensor]:
    return ops.divide_no_nan(wrong, wrong + left), ops.divide_no_nan(right, right + missed)


def _pr(right: Tensor, wrong: Tensor, _: Tensor, missed: Tensor) -> tuple[Tensor, Tensor]:
    return ops.divide_no_nan(right, right + missed), ops.divide_no_nan(right, right + wrong)


def _pr_gain(right: Tensor, wrong: Tensor, left: Tensor, missed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gains, 0 and 1 where nothing is found; a recall below that of chance gains 0."""
    odds = ops.divide_no_nan(right + missed, left + wrong)
    hits = ops.not_equal(right, 0.0)
    recall = 1.0 - odds * ops.divide_no_nan(missed, right)
    precision = 1.0 - odds * ops.divide_no_nan(wrong, right)
    recall = ops.where(hits, recall, ops.zeros_like(recall))
    precision = ops.where(hits, precision, ops.ones_like(precision))
    return ops.maximum(recall, 0.0), precision


def _interpolated(right: Tensor, wrong: Tensor, _: Tensor, missed: Tensor) -> Tensor:
    """Return the areas between thresholds of precision over recall, where counts are straight.

    With P positive predictions, T of them right, and a slope of dT / dP between two thresholds,
    the precision's integral is slope (dT + (T - slope P) log(P / P_next)).
    """
    positive = right + wrong
    first, following = positive[:-1], positive[1:]
    more = right[:-1] - right[1:]
    slope = ops.divide_no_nan(more, ops.maximum(first - following, 0.0))
    intercept = right[1:] - slope * following
    both = ops.logical_and(ops.greater(first, 0.0), ops.greater(following, 0.0))
    ratio = ops.where(both, ops.divide_no_nan(first, following), ops.ones_like(first))
    return ops.divide_no_nan(
        slope * (more + intercept * ops.log(ratio)), ops.maximum(right[1:] + missed[1:], 0.0)
    )


_POINTS = {"ROC": _roc, "PR": _pr, "PRGAIN": _pr_gain}
_HEIGHTS: dict[str, Any] = {
    "interpolation": lambda first, following: (first + following) / 2.0,
    "minoring": ops.minimum,
    "majoring": ops.maximum,
}
