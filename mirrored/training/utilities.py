"""The small helpers that Keras keeps in ``keras.utils`` and that scripts begin with.

They set seeds and prepare labels on the host; no device takes part.
"""

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import ops
from mirrored._arguments import explained, explained_only
from mirrored._numbers import as_integer
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError


@explained
def set_random_seed(seed: int) -> None:
    """Set the seeds of Python's `random`, of NumPy and of this library.

    Args:
        seed: An integer from 0 to 2**32 - 1, which is what NumPy takes.

    Raises:
        ValueError: It is no such integer.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.set_random_seed(1)
        >>> first = np.random.rand(), float(mr.random.uniform(()))
        >>> mr.keras.utils.set_random_seed(1)
        >>> first == (np.random.rand(), float(mr.random.uniform(())))
        True
    """
    number = as_integer(seed)
    if number is None:
        raise InvalidArgumentError(
            f"Expected `seed` argument to be an integer. Received: seed={seed} "
            f"(of type {type(seed)})"
        )
    if not 0 <= number < 2**32:
        raise InvalidArgumentError(
            f"`seed` must be from 0 to 2**32 - 1, as for NumPy. Received: seed={seed}. For a "
            "larger seed call `random.set_seed`, which sets only this library's seed."
        )
    random.seed(number)
    np.random.seed(number)
    ops.set_seed(number)


@explained
def to_categorical(x: TensorLike, num_classes: int | None = None) -> NDArray[np.float64]:
    """Return labels as rows with a 1 at the index of the label, for `categorical_crossentropy`.

    Args:
        x: Labels from 0 to `num_classes` - 1, of shape (...) or (..., 1).
        num_classes: How many classes there are; None for one more than the largest label.

    Returns:
        An array of shape (..., num_classes) and dtype float64, as Keras returns.

    Raises:
        ValueError: A label is no whole number or is out of range, there is none to tell the
            number of classes by, or that number is no positive integer.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.to_categorical([0, 2])
        array([[1., 0., 0.],
               [0., 0., 1.]])
    """
    labels = _as_labels(x)
    if num_classes is None and not labels.size:
        raise InvalidArgumentError(
            f"Without labels the number of classes is not known. Received: x={x!r}. Pass "
            "`num_classes`."
        )
    count = as_integer(labels.max() + 1 if num_classes is None else num_classes)
    if count is None or count < 1:
        raise InvalidArgumentError(
            "`num_classes` must be a positive integer or None. Received: "
            f"num_classes={num_classes!r}"
        )
    outside = labels[(labels < 0) | (labels >= count)]
    if outside.size:
        raise InvalidArgumentError(
            f"Received a label value of {outside[0]} which is outside the valid range of "
            f"[0, {count}). Number the classes from 0."
        )
    rows: NDArray[np.float64] = np.equal(labels[..., None], np.arange(count)).astype(np.float64)
    return rows


@explained_only
def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Return data as the steps of a model are given them: x, (x, y) or (x, y, sample_weight).

    Args:
        x: The inputs, of any structure.
        y: The targets, likewise, or None.
        sample_weight: The weights, likewise, or None.

    Returns:
        A tuple without the None at its end; `x` itself where there is nothing else and it is no
        list and no tuple.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.pack_x_y_sample_weight("x", "y")
        ('x', 'y')
    """
    if y is not None:
        return (x, y) if sample_weight is None else (x, y, sample_weight)
    return (x,) if isinstance(x, list | tuple) else x


@explained_only
def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """Return the inputs, targets and weights of data that a step is given; None for what is absent.

    Args:
        data: x, (x,), (x, y) or (x, y, sample_weight), in a tuple or a list.

    Raises:
        ValueError: It has more parts, or none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.unpack_x_y_sample_weight(("x", "y"))
        ('x', 'y', None)
    """
    parts = tuple(data) if isinstance(data, list | tuple) else (data,)
    if not 1 <= len(parts) <= 3:
        raise InvalidArgumentError(
            "Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, sample_weight)`. "
            f"Received: {data!r:.200}"
        )
    x, y, sample_weight = (*parts, None, None)[:3]
    return x, y, sample_weight


def _as_labels(x: Any) -> NDArray[np.int64]:
    """Return labels as integers, without a last axis of size 1."""
    array = np.asarray(x)
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and _are_whole(array))
    if not whole:
        raise InvalidArgumentError(f"Labels must be whole numbers. Received: x={x!r:.200}")
    labels = array.astype(np.int64)
    return labels[..., 0] if labels.ndim > 1 and labels.shape[-1] == 1 else labels


def _are_whole(values: NDArray[Any]) -> bool:
    return bool((np.isfinite(values) & (values == np.floor(values))).all())
