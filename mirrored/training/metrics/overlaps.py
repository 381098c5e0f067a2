"""How far the areas of classes overlap: intersections over unions."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mirrored import ops
from mirrored._logging import warn_caller
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INTEGERS
from mirrored.training.losses.values import EPSILON, cast
from mirrored.training.metrics.counting import Counting
from mirrored.training.metrics.quotient import is_first_axis


class IoU(Counting):
    """The mean of some classes' intersections over unions: those of targets and predictions.

    A class's is true positives / (true positives + false positives + false negatives). Classes that
    are in neither do not count, nor do elements of a class that is outside [0, num_classes).

    Args:
        num_classes: How many classes there are.
        target_class_ids: Those that the mean is of.
        name: The name in logs and history.
        dtype: The dtype of labels and weights; None: int64, in which weights are cut to integers.
        ignore_class: The target of elements that do not count, or None.
        sparse_y_true: Whether targets are labels, not one-hot rows.
        sparse_y_pred: Whether predictions are labels, not a score a class.
        axis: The axis of one-hot rows and scores.

    Raises:
        ValueError: There is no such class.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.IoU(num_classes=2, target_class_ids=[0])
        >>> metric.update_state([0, 0, 1, 1], [0, 1, 0, 1])
        >>> round(float(metric.result()), 4)
        0.3333
    """

    _direction = "up"
    _counted = ("total_cm",)
    _variable_names: ClassVar[Mapping[str, str]] = {"total_cm": "total_confusion_matrix"}

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(ops.int64 if dtype is None else dtype, name)
        self._start((num_classes, num_classes))  # Before as many ids are listed.
        ids = list(target_class_ids)
        if max(ids) >= num_classes or min(ids) < -num_classes:
            wrong = max(ids) if max(ids) >= num_classes else min(ids)
            raise ValueError(
                f"Target class id {wrong} is out of range, which is [0, {num_classes})."
            )
        self.num_classes, self.target_class_ids = num_classes, ids
        self.ignore_class, self.axis = ignore_class, axis
        self.sparse_y_true, self.sparse_y_pred = sparse_y_true, sparse_y_pred

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: The targets: labels, or one-hot rows.
            y_pred: The predictions: labels, or scores.
            sample_weight: A weight for each label, or one for all, or None.

        Raises:
            ValueError: There are not as many predictions as targets.
        """
        labels = self._labels(y_true, self.sparse_y_true)
        predictions = self._labels(y_pred, self.sparse_y_pred)
        if labels.shape != predictions.shape:
            raise ValueError(
                "The numbers of predictions and targets must be the same. Received: "
                f"{predictions.size} predictions and {labels.size} targets."
            )
        weights = ops.ones(labels.shape, ops.float64)
        if sample_weight is not None:
            weights = ops.broadcast_to(self._weights(sample_weight), labels.shape)
        counts = self._is_class(labels) & self._is_class(predictions)
        if self.ignore_class is not None:
            counts &= ops.not_equal(labels, self.ignore_class)
        places = ops.cast(labels, ops.int64) * self.num_classes + ops.cast(predictions, ops.int64)
        matrix = ops.unsorted_segment_sum(
            ops.where(counts, weights, ops.zeros_like(weights)),
            ops.where(counts, places, ops.zeros_like(places)),
            self.num_classes**2,
        )
        self._count([ops.reshape(matrix, (self.num_classes, self.num_classes))])

    def _mixes_examples(self, y_true: Any, y_pred: Any) -> bool:
        rows = ((y_true, self.sparse_y_true), (y_pred, self.sparse_y_pred))
        return any(not sparse and is_first_axis(self.axis, value) for value, sparse in rows)

    def _labels(self, values: Any, sparse: bool) -> Tensor:
        labels = ops.convert_to_tensor(values)
        if not sparse:
            if labels.ndim < 2:
                raise ValueError(
                    "One-hot rows and scores need an axis of classes in addition to the axis of "
                    f"examples. Received: a tensor of shape {labels.shape}."
                )
            # argmax knows no bool, which one-hot rows from a comparison are.
            labels = cast(labels, ops.uint8) if labels.dtype.kind == "b" else labels
            labels = ops.argmax(labels, axis=self.axis)
        return ops.reshape(cast(labels, self.dtype), (-1,))

    def _weights(self, sample_weight: Any) -> Tensor:
        weights = ops.convert_to_tensor(sample_weight)
        if weights.dtype in FLOATS and self.dtype in INTEGERS and hasattr(sample_weight, "dtype"):
            warn_caller(
                f"The metric {self.name!r} truncates weights to integers because its dtype is "
                f"{self.dtype}. Pass a float `dtype` for float weights.",
            )
        weights = cast(cast(weights, self.dtype), ops.float64)
        return ops.reshape(weights, (-1,)) if weights.ndim > 1 else weights

    def _is_class(self, labels: Tensor) -> Tensor:
        return ops.greater_equal(labels, 0) & ops.less(labels, self.num_classes)

    def _of(self, *counts: Tensor) -> Tensor:
        (matrix,) = counts
        right = ops.diag_part(matrix)
        union = ops.reduce_sum(matrix, axis=0) + ops.reduce_sum(matrix, axis=1) - right
        ids = [class_id % self.num_classes for class_id in self.target_class_ids]
        right, union = ops.gather(right, ids), ops.gather(union, ids)
        there = ops.greater(union, 1e-9)
        shares = ops.where(there, right / (union + EPSILON), ops.zeros_like(union))
        return ops.reduce_sum(shares) / (ops.reduce_sum(ops.cast(there, ops.float64)) + EPSILON)


class BinaryIoU(IoU):
    """The mean of the intersections over unions of what is above a threshold, and of the rest.

    Args:
        target_class_ids: Of which: 1 is what is above, 0 the rest.
        threshold: What a prediction is 1 from.
        name: The name in logs and history.
        dtype: The dtype of labels and weights; None: int64, in which weights are cut to integers.

    Raises:
        ValueError: There is no such class.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.BinaryIoU(threshold=0.3)
        >>> metric.update_state([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7])
        >>> round(float(metric.result()), 4)
        0.3333
    """

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float = 0.5,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: The targets, 0 or 1.
            y_pred: The predictions.
            sample_weight: A weight for each prediction, or one for all, or None.

        Raises:
            ValueError: There are not as many predictions as targets.
        """
        predicted = cast(ops.convert_to_tensor(y_pred), ops.float32)
        predictions = ops.cast(ops.greater_equal(predicted, self.threshold), self.dtype)
        super().update_state(y_true, predictions, sample_weight)


class MeanIoU(IoU):
    """The mean of all classes' intersections over unions.

    Args:
        num_classes: How many classes there are.
        name: The name in logs and history.
        dtype: The dtype of labels and weights; None: int64, in which weights are cut to integers.
        ignore_class: The target of elements that do not count, or None.
        sparse_y_true: Whether targets are labels, not one-hot rows.
        sparse_y_pred: Whether predictions are labels, not a score a class.
        axis: The axis of one-hot rows and scores.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.MeanIoU(num_classes=2)
        >>> metric.update_state([0, 0, 1, 1], [0, 1, 0, 1])
        >>> round(float(metric.result()), 4)
        0.3333
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        ids = range(num_classes)
        options = ignore_class, sparse_y_true, sparse_y_pred, axis
        super().__init__(num_classes, ids, name, dtype, *options)


class OneHotIoU(IoU):
    """The mean of some classes' intersections over unions, of one-hot targets.

    Args:
        num_classes: How many classes there are.
        target_class_ids: Those that the mean is of.
        name: The name in logs and history.
        dtype: The dtype of labels and weights; None: int64, in which weights are cut to integers.
        ignore_class: The target of elements that do not count, or None.
        sparse_y_pred: Whether predictions are labels, not a score a class.
        axis: The axis of one-hot rows and scores.

    Raises:
        ValueError: There is no such class.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.OneHotIoU(num_classes=2, target_class_ids=[1])
        >>> metric.update_state([[0, 1], [0, 1], [1, 0]], [[0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
        >>> round(float(metric.result()), 4)
        0.5
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        options = ignore_class, False, sparse_y_pred, axis
        super().__init__(num_classes, target_class_ids, name, dtype, *options)


class OneHotMeanIoU(MeanIoU):
    """The mean of all classes' intersections over unions, of one-hot targets.

    Args:
        num_classes: How many classes there are.
        name: The name in logs and history.
        dtype: The dtype of labels and weights; None: int64, in which weights are cut to integers.
        ignore_class: The target of elements that do not count, or None.
        sparse_y_pred: Whether predictions are labels, not a score a class.
        axis: The axis of one-hot rows and scores.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.OneHotMeanIoU(num_classes=2)
        >>> metric.update_state([[0, 1], [0, 1], [1, 0]], [[0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
        >>> round(float(metric.result()), 4)
        0.5
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)
