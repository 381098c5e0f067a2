"""Means of the cross-entropies: what their losses measure, as metrics.

Totals and counts are those of elements, so that any number of replicas adds up to the same.
"""

from typing import Any, ClassVar

from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses import crossentropy
from mirrored.training.losses.values import checked_class
from mirrored.training.metrics.quotient import Comparison, is_first_axis


@explained
class _Entropy(Comparison):
    """The mean of a cross-entropy: a subclass says which."""

    _direction = "down"
    _default: ClassVar[str]

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        super().__init__(dtype, name or self._default)
        self.from_logits = bool(from_logits)
        self.label_smoothing = label_smoothing


class BinaryCrossentropy(_Entropy):
    """The mean of -(y log p + (1 - y) log(1 - p)), over elements and examples.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        from_logits: Whether predictions are logits, not probabilities.
        label_smoothing: How far targets are moved towards 1/2.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.BinaryCrossentropy()
        >>> metric.update_state([[1.0], [0.0]], [[0.5], [0.5]])
        >>> round(float(metric.result()), 4)
        0.6931
    """

    _default = "binary_crossentropy"

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return crossentropy.binary_crossentropy(
            y_true, y_pred, self.from_logits, self.label_smoothing
        )


@explained
class CategoricalCrossentropy(_Entropy):
    """The mean of -sum(y log p), of one-hot rows.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        from_logits: Whether predictions are logits, not probabilities.
        label_smoothing: How far targets are moved towards one part for each class.
        axis: The axis of the classes.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.CategoricalCrossentropy()
        >>> metric.update_state([[1.0, 0.0]], [[0.5, 0.5]])
        >>> round(float(metric.result()), 4)
        0.6931
    """

    _default = "categorical_crossentropy"

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
        axis: int = -1,
    ) -> None:
        super().__init__(name, dtype, from_logits, label_smoothing)
        self.axis = axis

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return crossentropy.categorical_crossentropy(
            y_true, y_pred, self.from_logits, self.label_smoothing, self.axis
        )

    def _mixes_examples(self, y_true: Any, y_pred: Any) -> bool:
        return is_first_axis(self.axis, y_pred)


@explained
class SparseCategoricalCrossentropy(Comparison):
    """The mean of -log p of the class that a label says.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        from_logits: Whether predictions are logits, not probabilities.
        ignore_class: The label whose values are 0; where there are sample weights it does not
            count in the mean either, as in Keras. None: there is none.
        axis: The axis of the classes, which is the last one: as in Keras on TensorFlow.

    Raises:
        ValueError: `ignore_class` is no integer.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SparseCategoricalCrossentropy()
        >>> metric.update_state([0], [[0.5, 0.5]])
        >>> round(float(metric.result()), 4)
        0.6931
    """

    _direction = "down"

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(dtype, name or "sparse_categorical_crossentropy")
        self.from_logits = bool(from_logits)
        self.ignore_class = checked_class(ignore_class)
        self.axis = axis

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return crossentropy.sparse_categorical_crossentropy(
            y_true, y_pred, self.from_logits, self.ignore_class, self.axis
        )
