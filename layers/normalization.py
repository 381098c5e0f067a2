"""Brings features to mean 0 and variance 1 by what the data are, which is known before training.

It is for inputs; `BatchNormalization` and `LayerNormalization` go by what passes through them.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import chain
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mirrored import ops
from mirrored._types import AxisLike, TensorLike
from mirrored.distribute import get_strategy, in_cross_replica_context
from mirrored.errors import InvalidArgumentError
from mirrored.layers.layer import LayerOptions, SameShape, shared_config
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.variables import Variable

_PART = 2**18  # Elements, of 2 MB in double precision: they stay in a cache.
_EPSILON = 1e-7  # The least deviation, Keras' for all that is divided by.


class Normalization(SameShape):
    """Computes (inputs - mean) / sqrt(variance), by a mean and a variance of the data.

    They are given, or ``adapt`` finds them. Training does not change them.

    Args:
        axis: The axis of the features, or several: each has a mean and a variance of its own.
            Behind the batch's; None has one mean and one variance for all.
        mean: The mean: a number, or one a feature; None leaves it to ``adapt``.
        variance: The variance, likewise.
        invert: Whether to compute inputs * sqrt(variance) + mean instead.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: There is one of ``mean`` and ``variance``, or their shapes differ, or have more
            axes than ``axis`` names.

    Example:
        >>> import numpy as np
        >>> layer = Normalization()
        >>> layer.adapt(np.array([[1.0, 10.0], [3.0, 30.0]]))
        >>> layer(np.array([[1.0, 30.0]])).numpy().tolist()
        [[-1.0, 1.0]]
        >>> Normalization(mean=2.0, variance=4.0)([[0.0, 6.0]]).numpy().tolist()
        [[-1.0, 2.0]]
    """

    _casts_all = True
    adapt_mean: Variable
    adapt_variance: Variable
    count: Variable

    def __init__(
        self,
        axis: AxisLike | None = -1,
        mean: TensorLike | None = None,
        variance: TensorLike | None = None,
        invert: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.axis = _as_axes(axis)
        _check_given(mean, variance, self.axis)
        self.input_mean = mean
        self.input_variance = variance
        self.invert = bool(invert)
        self._strategy = get_strategy()
        self._kept: tuple[int, ...] = ()
        self._broadcasting: tuple[int, ...] | None = None  # Of means; None: not built.

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {
            **shared_config(self),
            "axis": self.axis,
            "invert": self.invert,
            "mean": np.array(self.input_mean).tolist(),
            "variance": np.array(self.input_variance).tolist(),
        }

    def build(self, input_shape: Shape) -> None:
        """Create the mean and the variance, unless they were given."""
        rank = len(input_shape)
        kept = tuple(sorted(axis % rank for axis in self.axis))
        for axis in kept:
            if input_shape[axis] is None:
                raise ValueError(
                    "All `axis` values to be kept must have a known shape. Received axis="
                    f"{self.axis}, inputs.shape={input_shape}, with unknown axis at index {axis}"
                )
        spread = tuple(size or 0 if i in kept else 1 for i, size in enumerate(input_shape))
        shape = tuple(input_shape[axis] for axis in kept)
        if self.input_mean is None:
            self.adapt_mean = self.__add("mean", shape, "zeros")
            self.adapt_variance = self.__add("variance", shape, "ones")
            self.count = self.__add("count", (), "zeros", ops.int64)
        else:
            _spread(self.input_mean, kept, spread)
        self._kept, self._broadcasting = kept, spread

    def __add(self, name: str, shape: Shape, initializer: str, dtype: Any = None) -> Variable:
        return self.add_weight(shape, initializer, dtype, name=name, trainable=False)

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is one input, whose features are those there were first."""
        super().check_input_shape(input_shape)
        rank = len(input_shape)
        if any(not -rank <= axis < rank for axis in self.axis):
            raise ValueError(
                "All `axis` values must be in the range [-ndim, ndim). Received inputs with ndim="
                f"{rank}, while axis={self.axis}"
            )
        spread = self._broadcasting
        if spread is None:
            return
        last = input_shape[rank - len(spread) :]
        if rank < len(spread) or any(last[axis] != spread[axis] for axis in self._kept):
            raise ValueError(
                f"The layer was built for the sizes {[spread[axis] for axis in self._kept]} of the "
                f"axes {list(self._kept)} of {len(spread)}. Received: an input of incompatible "
                f"shape {input_shape}"
            )

    def adapt(self, data: Any) -> None:
        """Replace the mean and the variance by those of data.

        Args:
            data: An array, a tensor, a dataset, a ``PyDataset``, or an iterable of arrays: of
                inputs, or of tuples that begin with them.

        Raises:
            TypeError: It is none of these.
            ValueError: There are no data, they do not have the features that there were, or the
                mean was given.
        """
        if self.input_mean is not None:
            raise ValueError(
                "`adapt` computes the mean and the variance, but they were passed to this layer. "
                "Create the layer without `mean=` and `variance=`."
            )
        total = _Moments()
        for batch in batches_to_adapt_to(data):
            self.check_input_shape(batch.shape)
            if not self.built:
                # Within the scope that the layer was made in, wherever `adapt` is called.
                inside = in_cross_replica_context()
                with nullcontext() if inside else self._strategy.scope():
                    self.build(batch.shape)
            first = len(batch.shape) - len(self._broadcasting or ())
            kept = tuple(first + axis for axis in self._kept)
            for part in _parts(batch, kept):
                total.add(part, kept)
        if not total.count:
            raise ValueError("`adapt` needs at least one example. Received: no examples.")
        self.adapt_mean.assign(total.mean)
        self.adapt_variance.assign(total.variance)
        self.finalize_state()

    def finalize_state(self) -> None:
        """Do nothing: what the weights are counts at once, which in Keras this sees to."""

    @property
    def mean(self) -> Tensor | None:
        """What is subtracted, of a shape that broadcasts to the inputs; None before it is built."""
        return self.__statistic(self.input_mean, "adapt_mean")

    @property
    def variance(self) -> Tensor | None:
        """What the inputs are divided by the root of; likewise."""
        return self.__statistic(self.input_variance, "adapt_variance")

    def __statistic(self, statistic: Any, weight: str) -> Tensor | None:
        if self._broadcasting is None:
            return None
        if statistic is not None:
            value = ops.constant(_spread(statistic, self._kept, self._broadcasting))
        else:
            value = ops.reshape(getattr(self, weight).read_value(), self._broadcasting)
        return ops.cast(value, self.compute_dtype)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the normalized inputs, of shape (batch, ...)."""
        mean, variance = self.mean, self.variance
        if mean is None or variance is None:
            raise ValueError("You must call `.build(input_shape)` on the layer before using it.")
        deviation = ops.maximum(ops.sqrt(variance), _EPSILON)
        if self.invert:
            return mean + inputs * deviation
        return (inputs - mean) / deviation


class _Moments:
    """The mean and the variance of batches so far, in double precision.

    Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
    Variances, 1979.
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: Any = 0.0
        self.variance: Any = 0.0

    def add(self, batch: NDArray[Any], kept: tuple[int, ...]) -> None:
        """Take in a batch: all of its axes are averaged over, but for some."""
        lost = tuple(i for i in range(batch.ndim) if i not in kept)
        count = math.prod(batch.shape[axis] for axis in lost)
        if not count:
            return
        mean = batch.mean(axis=lost, dtype=np.float64)
        variance = batch.var(axis=lost, dtype=np.float64)
        self.count += count
        part = count / self.count
        new = self.mean + (mean - self.mean) * part
        before = self.variance + (self.mean - new) ** 2
        self.variance = before * (1 - part) + (variance + (mean - new) ** 2) * part
        self.mean = new


def _parts(batch: NDArray[Any], kept: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    """Yield parts of a batch, of which double precision takes little memory."""
    if not batch.size or 0 in kept or not batch.ndim:
        yield batch
        return
    rows = max(1, _PART * len(batch) // batch.size)
    for start in range(0, len(batch), rows):
        yield batch[start : start + rows]


def _as_axes(axis: Any) -> tuple[int, ...]:
    if axis is None:
        return ()
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _check_given(mean: Any, variance: Any, axes: tuple[int, ...]) -> None:
    if (mean is None) != (variance is None):
        raise ValueError(
            "When setting values directly, both `mean` and `variance` must be set. Received: "
            f"mean={mean} and variance={variance}"
        )
    if mean is None:
        return
    shape = np.shape(mean)
    if shape != np.shape(variance):
        raise ValueError(
            "When setting values directly, `mean` and `variance` must have the same shape. "
            f"Received: mean shape {shape} and variance shape {np.shape(variance)}"
        )
    if len(shape) > len(axes):
        raise ValueError(
            "The rank of `mean` must be less than or equal to the number of axes "
            f"({len(axes)}). Received: mean shape {shape} for axis {axes}"
        )


def _spread(numbers: Any, kept: tuple[int, ...], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return given values, which stand along the last kept axes, in a shape that broadcasts."""
    values = np.asarray(numbers, np.float32 if np.asarray(numbers).dtype.kind in "iub" else None)
    sizes = [1] * len(shape)
    for axis, size in zip(reversed(kept), reversed(values.shape), strict=False):
        sizes[axis] = size
    try:
        return np.broadcast_to(values.reshape(sizes), shape)
    except ValueError:
        raise InvalidArgumentError(
            f"`mean` and `variance` must have the sizes of the axes {list(kept)} of an input, of "
            f"shape {tuple(shape[axis] for axis in kept)}. Received: values of shape {values.shape}"
        ) from None


_WITHOUT_BATCHES = 128  # What Keras gathers of a dataset of vectors that has no batches.


def batches_to_adapt_to(data: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays of data: itself, or those of its batches, without their targets.

    Args:
        data: An array or a tensor; or a dataset, a `PyDataset` or another iterable of such, or of
            tuples that begin with one.

    Raises:
        TypeError: It is none of these.
        ValueError: There are no batches.
    """
    from mirrored.data import Dataset  # Programs that never adapt do not load datasets.
    from mirrored.data.py_dataset import PyDataset

    if isinstance(data, np.ndarray) or is_tensor(data):
        yield np.asarray(data)
        return
    if not isinstance(data, Dataset | PyDataset | Iterable):
        raise TypeError(
            f"Unsupported data type: {type(data)}. `adapt` supports `np.ndarray`, backend tensors, "
            "`tf.data.Dataset`, `keras.utils.PyDataset`, and iterables of batches (e.g. list, "
            "generator)."
        )
    batches = map(_inputs_of, data)
    first = next(batches, None)
    if first is None:
        raise ValueError(
            "adapt() received an empty iterable (no batches). Expected at least one batch. Pass a "
            "non-empty iterable of arrays or tensors, e.g. layer.adapt([x]) or "
            "layer.adapt(list_of_batches)."
        )
    if first.ndim == 1 and isinstance(data, Dataset):
        batches, first = map(_inputs_of, data.batch(_WITHOUT_BATCHES)), None
    yield from batches if first is None else chain([first], batches)


def _inputs_of(batch: Any) -> NDArray[Any]:
    inputs = batch[0] if isinstance(batch, tuple) else batch
    if not hasattr(inputs, "shape"):
        raise TypeError(
            "adapt() expects an iterable that yields arrays or tensors with a `.shape` attribute "
            "(e.g. numpy arrays or backend tensors). Got an element of type "
            f"{type(inputs).__name__}. Ensure each yielded element is array-like with a `.shape` "
            "attribute."
        )
    return np.asarray(inputs)
