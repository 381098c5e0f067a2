"""NumPy's functions that select elements by conditions and indices, and that sort them.

What depends on values is known on the host: it is refused in a recorded function.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.numpy_functions.array_conversion import array, axis_of, booleans, promoted
from mirrored.numpy_functions.array_manipulation import atleast_1d, moveaxis, ravel
from mirrored.ops import Tensor
from mirrored.ops.spec import INTEGERS, bool_, int64


def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None) -> Any:
    """Return elements of one value or of another; or without these what `nonzero` returns.

    Args:
        condition: Of which value the element is: of `x` where it is not 0.
        x: The one value.
        y: The other one.

    Raises:
        ValueError: One of both is given without the other.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.where([True, False], [1, 2], 0.5).numpy()
        array([1. , 0.5])
    """
    if (x is None) != (y is None):
        raise ValueError("Both x and y must be ndarrays, or both must be None.")
    chosen = booleans(condition)
    if x is None:
        return nonzero(chosen)
    x, y = promoted(x, y)
    return ops.where(chosen, x, y)


def nonzero(a: TensorLike) -> list[Tensor]:
    """Return where the elements are that are not 0: their indices along each axis.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.nonzero([3, 0, 5])[0].numpy()
        array([0, 2])
    """
    return list(ops.unstack(ops.where(booleans(atleast_1d(a))), axis=1))


def select(
    condlist: Sequence[TensorLike], choicelist: Sequence[TensorLike], default: TensorLike = 0
) -> Tensor:
    """Return elements of the first value whose condition is true.

    Args:
        condlist: The conditions.
        choicelist: As many values.
        default: The value where no condition is true.

    Raises:
        ValueError: There are none, or not equally many.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.select([[True, False]], [[1, 2]], 9).numpy()
        array([1, 9])
    """
    if len(condlist) != len(choicelist):
        counts = f"{len(condlist)} vs {len(choicelist)}"
        raise ValueError(f"condlist must have length equal to choicelist ({counts})")
    if not condlist:
        raise ValueError("condlist must be non-empty")
    result, *choices = promoted(default, *choicelist)
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        result = ops.where(booleans(condition), choice, result)
    return result


def compress(condition: TensorLike, a: TensorLike, axis: int | None = None) -> Tensor:
    """Return the slices along an axis whose condition is true.

    Args:
        condition: A vector; slices behind its end are left out.
        a: The elements.
        axis: The axis; None: that of all elements in a row.

    Raises:
        ValueError: The condition is no vector.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.compress([True, False], [1, 2, 3]).numpy()
        array([1])
    """
    chosen, tensor = booleans(condition), array(a)
    if chosen.ndim != 1:
        raise ValueError("condition must be a 1-d array.")
    if axis is None or not tensor.ndim:
        tensor, axis = ravel(tensor), axis or 0
    axis = axis_of(axis, tensor.ndim)
    missing = max(0, tensor.shape[axis] - len(chosen))
    return ops.boolean_mask(tensor, ops.pad(chosen, [[0, missing]]), axis=axis)


def take(
    a: TensorLike,
    indices: TensorLike,
    axis: int | None = None,
    out: None = None,
    mode: str = "clip",
) -> Any:
    """Return the slices along an axis that indices name.

    Args:
        a: The elements.
        indices: Their indices.
        axis: The axis; None: that of all elements in a row.
        out: None alone.
        mode: "clip", by which an index that is outside is the next one inside, or "wrap".

    Raises:
        ValueError: `out` is given, or the mode is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.take([1, 2, 3], [5, 0]).numpy()
        array([3, 1])
    """
    if out is not None:
        raise ValueError("out argument is not supported in take.")
    if mode not in ("clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for take: it must be 'clip' or 'wrap'.")
    tensor, places = array(a), array(indices)
    if axis is None:
        tensor, axis = ravel(tensor), 0
    length = tensor.shape[axis]
    inside = ops.clip_by_value(places, 0, length - 1) if mode == "clip" else places % length
    return ops.gather(tensor, inside, axis=axis)


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: int | None) -> Tensor:
    """Return for each place the element that an index names along an axis.

    Args:
        arr: The elements.
        indices: The indices, of a shape that broadcasts along the other axes.
        axis: The axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.take_along_axis([[3, 1]], [[1]], 1).numpy()
        array([[1]])
    """
    tensor, places = array(arr), array(indices)
    if axis is None:
        tensor, axis = ravel(tensor), 0
    rank = tensor.ndim
    rows, wanted = moveaxis(tensor, axis, -1), moveaxis(places, axis, -1)
    together = np.broadcast_shapes(tuple(rows.shape[:-1]), tuple(wanted.shape[:-1]))
    wanted = ops.where(wanted < 0, wanted + rows.shape[-1], wanted)
    rows = ops.broadcast_to(rows, (*together, rows.shape[-1]))
    wanted = ops.broadcast_to(wanted, (*together, wanted.shape[-1]))
    return moveaxis(ops.gather(rows, wanted, axis=-1, batch_dims=rank - 1), -1, axis)


def ix_(*args: Any) -> list[Tensor]:
    """Return vectors of indices, each along a separate axis.

    Args:
        *args: Vectors of integers, or of booleans, of which it takes the places of those that are
            true.

    Raises:
        ValueError: They are no such vectors.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.ix_([0, 1], [2])[0].shape
        (2, 1)
    """
    grids = []
    for i, index in enumerate(args):
        vector = array(index)
        if vector.ndim != 1:
            raise ValueError(f"Arguments must be 1-d, got arg {i} of rank {vector.ndim}")
        if vector.dtype not in INTEGERS | {bool_}:
            raise ValueError(f"Only integer and bool dtypes are supported, got {vector.dtype.name}")
        places = nonzero(vector)[0] if vector.dtype == bool_ else vector
        grids.append(ops.reshape(places, [-1 if i == at else 1 for at in range(len(args))]))
    return grids


def sort(
    a: TensorLike, axis: int | None = -1, kind: str = "quicksort", order: str | None = None
) -> Tensor:
    """Return the elements in order along an axis.

    Args:
        a: The elements.
        axis: The axis; None: that of all elements in a row.
        kind: "quicksort".
        order: None alone.

    Raises:
        ValueError: `kind` or `order` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.sort([3, 1, 2]).numpy()
        array([1, 2, 3])
    """
    _check_order(kind, order, ("quicksort",))
    return ops.sort(ravel(a), 0) if axis is None else ops.sort(array(a), axis)


def argsort(
    a: TensorLike, axis: int | None = -1, kind: str = "quicksort", order: str | None = None
) -> Tensor:
    """Return the indices of the elements in order along an axis.

    Args:
        a: The elements.
        axis: The axis; None: that of all elements in a row.
        kind: "quicksort" or "stable"; equal elements keep their order by both.
        order: None alone.

    Raises:
        ValueError: `kind` or `order` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.argsort([3, 1, 2]).numpy()
        array([1, 2, 0])
    """
    _check_order(kind, order, ("quicksort", "stable"))
    tensor = array(a)
    if not tensor.ndim:
        return ops.zeros((1,), int64)
    if axis is None:
        tensor, axis = ravel(tensor), 0
    return ops.cast(ops.argsort(tensor, axis), int64)


def _check_order(kind: str, order: Any, kinds: tuple[str, ...]) -> None:
    if kind not in kinds:
        raise ValueError(
            f"Invalid value for argument `kind`. Only {', '.join(kinds)} are supported. "
            f"Received: kind={kind}"
        )
    if order is not None:
        raise ValueError("The `order` argument is not supported. Pass order=None")


explain_functions(__name__)
