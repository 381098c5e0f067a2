"""Whether the right class is among the best ones: metrics of what `hits` has as functions."""

from typing import Any, ClassVar

from mirrored._arguments import explained
from mirrored._numbers import check_count
from mirrored.ops import Tensor
from mirrored.training.losses.values import class_indices
from mirrored.training.metrics.hits import among, classes
from mirrored.training.metrics.quotient import Comparison


@explained
class _TopK(Comparison):
    """The part of examples whose class is among the k best: a subclass says what targets are."""

    _direction = "up"
    _default: ClassVar[str]

    def __init__(self, k: int = 5, name: str | None = None, dtype: Any = None) -> None:
        self.k = check_count("k", k, least=1)
        super().__init__(dtype, name or self._default)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return among(self._classes(y_true, y_pred), y_pred, self.k)

    def _classes(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        raise NotImplementedError


class TopKCategoricalAccuracy(_TopK):
    """The part of one-hot targets whose class is among the k best predictions.

    Args:
        k: How many of the best count.
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Raises:
        ValueError: `k` is less than 1.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.TopKCategoricalAccuracy(k=1)
        >>> metric.update_state([[0.0, 1.0], [1.0, 0.0]], [[0.1, 0.9], [0.2, 0.8]])
        >>> float(metric.result())
        0.5
    """

    _default = "top_k_categorical_accuracy"

    def _classes(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return classes(y_true, y_pred)


class SparseTopKCategoricalAccuracy(_TopK):
    """The part of labels whose class is among the k best predictions.

    Args:
        k: How many of the best count.
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Raises:
        ValueError: `k` is less than 1.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SparseTopKCategoricalAccuracy(k=1)
        >>> metric.update_state([1, 0], [[0.1, 0.9], [0.2, 0.8]])
        >>> float(metric.result())
        0.5
    """

    _default = "sparse_top_k_categorical_accuracy"

    def _classes(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return class_indices(y_true, y_pred)
