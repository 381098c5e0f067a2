"""How many predictions are right and wrong, on each side of thresholds.

Counts are of float64, which adds up weights and batches exactly for as long as an epoch lasts.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mirrored import devices, ops
from mirrored.ops import Tensor
from mirrored.training.losses.values import EPSILON, cast, check_same_shape, of_one_rank
from mirrored.training.metrics.metric import Metric, add

NEGATIVE_INFINITY = -1e10  # Keras': what is below all scores that count.
ALL = ("true_positives", "false_positives", "true_negatives", "false_negatives")  # Keras' order.


_MOST_THRESHOLDS = 2**20


def check_number(num_thresholds: int, *, above: int) -> None:
    """Raise ValueError if there are too few thresholds, or lists of them would fill memory.

    Args:
        num_thresholds: Their number, as a configuration may say it.
        above: What it has to be larger than.
    """
    if num_thresholds <= above:
        raise ValueError(
            f"Argument `num_thresholds` must be an integer > {above}. "
            f"Received: num_thresholds={num_thresholds!r}"
        )
    if num_thresholds > _MOST_THRESHOLDS:
        raise ValueError(
            f"Argument `num_thresholds` must be at most {_MOST_THRESHOLDS}. "
            f"Received: num_thresholds={num_thresholds!r}"
        )


class Thresholds(NamedTuple):
    """What predictions are compared with.

    Attributes:
        values: The thresholds.
        even: Whether they part [0, 1] evenly, so that each prediction's place can be computed.
    """

    values: Sequence[float]
    even: bool

    @property
    def around(self) -> bool:
        """Whether the first and the last are beyond [0, 1], so that all is above the first."""
        return self.values[0] < 0.0 or self.values[-1] > 1.0


class Counting(Metric):
    """Sums of weights, by what is counted: a subclass says what, and what the counts result in."""

    _counted: ClassVar[tuple[str, ...]] = ALL
    _variable_names: ClassVar[Mapping[str, str]] = {}  # Where Keras' differ from the attributes'.
    _unknown: ClassVar[str] = ""  # What the first batch tells.
    _advice: ClassVar[str] = "Call"

    @property
    def _built(self) -> bool:
        return self._counted[0] in vars(self)

    def _start(self, shape: tuple[int, ...]) -> None:
        """Make the variables of the counts, 0."""
        for name in self._counted:
            kept = self._variable_names.get(name, name)
            setattr(self, name, self.add_variable(shape, "zeros", ops.float64, name=kept))

    def _count(self, counts: Iterable[Tensor]) -> None:
        """Add a batch's counts, in the order of their names."""
        for name, count in zip(self._counted, counts, strict=True):
            add(getattr(self, name), count)

    def _check_rows(self, true: Tensor, predicted: Tensor) -> None:
        """Raise ValueError unless both have one shape, of two axes."""
        if true.ndim != 2 or predicted.ndim != 2:
            raise ValueError(
                f"{type(self).__name__} expects 2D inputs with shape (batch_size, output_dim). "
                f"Received input shapes: y_pred.shape={predicted.shape} and "
                f"y_true.shape={true.shape}."
            )
        check_same_shape(true, predicted)

    def result(self) -> Any:
        """Return what the counts since the last reset say.

        Raises:
            ValueError: There was no batch yet, where that tells how many counts there are.
        """
        if not self._built:
            raise ValueError(
                f"The metric {self.name!r} has not received a batch yet, so the number of "
                f"{self._unknown} is not known. {self._advice} `update_state` before `result`."
            )
        counts = [getattr(self, name).read_value() for name in self._counted]
        with devices.device(counts[0].device):  # No other device is to be used for it.
            return self._of(*counts)

    def _of(self, *counts: Tensor) -> Any:
        raise NotImplementedError


def parsed(thresholds: Any, default: float) -> Thresholds:
    """Return the thresholds that a user gave, or the default.

    Raises:
        ValueError: One is outside [0, 1].
    """
    if thresholds is None:
        return Thresholds([default], even=False)
    values = list(thresholds) if isinstance(thresholds, list | tuple | np.ndarray) else [thresholds]
    wrong = [value for value in values if value is None or not 0 <= value <= 1]
    if wrong:
        raise ValueError(f"Threshold values must be in [0, 1]. Received: {wrong}")
    return Thresholds(values, are_even(values))


def are_even(thresholds: Sequence[float]) -> bool:
    """Return whether thresholds part [0, 1] evenly, as closely as Keras looks."""
    count = len(thresholds)
    even = np.arange(count, dtype=np.float32) / max(count - 1, 1)
    return count >= 3 and np.allclose(thresholds, even, atol=EPSILON)


def confusion(
    names: Sequence[str],
    y_true: Any,
    y_pred: Any,
    sample_weight: Any,
    thresholds: Thresholds,
    *,
    dtype: Any,
    top_k: int | None = None,
    class_id: int | None = None,
    by_label: bool = False,
    label_weights: Any = None,
) -> list[Tensor]:
    """Return the sums of weights of what is asked for, at each threshold.

    Args:
        names: What to count, of `ALL`.
        y_true: The targets, true where they are not 0.
        y_pred: The predictions, of the same shape but for a last axis of size 1.
        sample_weight: Weights that broadcast to the predictions, behind which an axis is added
            where they have not as many as the targets; or None.
        thresholds: A prediction above one is positive there.
        dtype: The dtype of the comparison.
        top_k: How many of the last axis can be positive; None: all.
        class_id: Which of the last axis counts; None: all.
        by_label: Whether the columns are counted on their own.
        label_weights: A weight for each column, or None.

    Raises:
        ValueError: The shapes do not fit.
    """
    true, predicted = of_one_rank(_tensor(y_true, dtype), _tensor(y_pred, dtype))
    check_same_shape(true, predicted)
    axes = true.ndim
    if top_k is not None:
        predicted = _best(predicted, top_k)
    if class_id is not None:
        if predicted.ndim == 1:
            raise ValueError(
                "When class_id is provided, y_pred must be a 2D array with shape (num_samples, "
                f"num_classes), found shape: {predicted.shape}"
            )
        true, predicted = true[..., class_id, None], predicted[..., class_id, None]
    weights = _weights(sample_weight, label_weights, predicted.shape, axes, dtype)
    if not by_label:
        true, predicted, weights = (ops.reshape(part, (-1,)) for part in (true, predicted, weights))
    positive = ops.not_equal(true, 0.0)
    nothing = ops.zeros_like(weights)
    sums = _even_sums if thresholds.even else _sums
    counts: dict[str, Tensor] = {}
    for kinds, parts in (
        (("true_positives", "false_negatives"), (weights, nothing)),
        (("false_positives", "true_negatives"), (nothing, weights)),
    ):
        if set(kinds) & set(names):
            counted = sums(ops.where(positive, *parts), predicted, thresholds)
            counts |= zip(kinds, counted, strict=True)
    return [counts[name] for name in names]


def _sums(weights: Tensor, predicted: Tensor, thresholds: Thresholds) -> tuple[Tensor, Tensor]:
    """Return the weights of predictions above each threshold, and of the others."""
    shape = (-1, *[1] * predicted.ndim)
    levels = ops.reshape(ops.constant(list(thresholds.values), predicted.dtype), shape)
    above = ops.greater(predicted[None], levels)
    weights = ops.broadcast_to(weights[None], above.shape)
    nothing = ops.zeros_like(weights)
    return (
        ops.reduce_sum(ops.where(above, weights, nothing), axis=1),
        ops.reduce_sum(ops.where(above, nothing, weights), axis=1),
    )


def _even_sums(weights: Tensor, predicted: Tensor, thresholds: Thresholds) -> tuple[Tensor, Tensor]:
    """Return the same by how many thresholds each prediction is above, rounded as in Keras."""
    count = len(thresholds.values)
    columns = math.prod(predicted.shape[1:])
    levels = ops.ceil(ops.clip_by_value(predicted, 0.0, 1.0) * float(count - 1))
    if thresholds.around:
        levels = ops.maximum(levels, 1.0)
    levels = ops.where(ops.is_nan(levels), ops.zeros_like(levels), levels)  # Above nothing.
    places = ops.cast(levels, ops.int64)
    if columns > 1:
        places = places * columns + ops.range(columns, dtype=ops.int64)
    flat = ops.reshape(weights, (-1,)), ops.reshape(places, (-1,))
    sums = ops.unsorted_segment_sum(*flat, (count + 1) * columns)
    sums = ops.reshape(sums, (count + 1, *predicted.shape[1:]))
    above = ops.cumsum(sums, axis=0, reverse=True)[1:]
    return above, ops.cumsum(sums, axis=0)[:-1]


def _tensor(x: Any, dtype: Any) -> Tensor:
    return cast(ops.convert_to_tensor(x), dtype)


def _weights(
    sample_weight: Any, label_weights: Any, shape: tuple[int, ...], axes: int, dtype: Any
) -> Tensor:
    """Return a weight for each prediction."""
    weights = ops.ones(shape, ops.float64)
    if sample_weight is not None:
        tensor = _tensor(sample_weight, dtype)
        tensor = tensor if tensor.ndim == axes else tensor[..., None]
        weights = ops.broadcast_to(cast(tensor, ops.float64), shape)
    if label_weights is not None:
        weights = weights * ops.broadcast_to(cast(label_weights, ops.float64)[None], shape)
    return weights


def _best(predicted: Tensor, k: int) -> Tensor:
    """Return the k best of the last axis, and what is below all thresholds for the others."""
    places = ops.top_k(predicted, k).indices
    kept = ops.reduce_sum(ops.one_hot(places, predicted.shape[-1], dtype=predicted.dtype), axis=-2)
    return predicted * kept + NEGATIVE_INFINITY * (1.0 - kept)
