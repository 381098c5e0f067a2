"""Updates brought to the places that indices along several axes name, in zeros or in a tensor."""

import math
from typing import Any

from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, convert_to_tensor, is_tensor
from mirrored.ops.elementwise import NEG, SUB
from mirrored.ops.flat_indices import flat_indices
from mirrored.ops.gathering import ignores
from mirrored.ops.index_range import check_index_dtype
from mirrored.ops.op import Op
from mirrored.ops.scattering import (
    TENSOR_SCATTER_ADD,
    TENSOR_SCATTER_MAX,
    TENSOR_SCATTER_MIN,
    TENSOR_SCATTER_UPDATE,
    UNSORTED_SEGMENT_SUM,
)
from mirrored.ops.shaping import RESHAPE, cast
from mirrored.ops.spec import SIGNED, Shape, as_shape, bool_, check_dtype, int32, shape_text
from mirrored.ops.tensor import Tensor


def _places_and_rows(
    op: str, places: Tensor, updates: Tensor, shape: Shape, policy: str
) -> tuple[Tensor, Tensor, tuple[int, int]]:
    """Return places in a matrix for indices in a tensor of a shape, their rows, and its shape."""
    check_index_dtype(op, places.spec)
    ignore = ignores(policy, op)
    for label, tensor in (("Indices", places), ("Updates", updates)):
        if not tensor.ndim:
            raise InvalidArgumentError(
                f"{label} shape must have rank at least one. Found:[] [Op:{op}]"
            )
    outer, depth = places.shape[:-1], places.shape[-1]
    if updates.shape[: len(outer)] != outer:
        raise InvalidArgumentError(
            "Outer dimensions of indices and update must match. Indices shape: "
            f"{shape_text(places.shape)}, updates shape:{shape_text(updates.shape)} [Op:{op}]"
        )
    if depth > len(shape) or updates.shape[len(outer) :] != shape[depth:]:
        raise InvalidArgumentError(
            "Inner dimensions of output shape must match inner dimensions of updates shape. "
            f"Output: {shape_text(shape)} updates: {shape_text(updates.shape)} [Op:{op}]"
        )
    sizes, width = shape[:depth], math.prod(shape[depth:])
    if updates.size and (not depth or not math.prod(shape)):
        raise InvalidArgumentError(
            f"Indices and updates specified for empty output shape [Op:{op}]"
        )
    flat = flat_indices(places, sizes, ignore=ignore, op=op)
    rows = RESHAPE(updates, shape=(flat.size, width))
    return flat, rows, (math.prod(sizes), width)


@explained
def scatter_nd(
    indices: Any,
    updates: Any,
    shape: Any,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return zeros of a shape, with updates added where their indices say.

    Args:
        indices: Int32 or int64, of which the last axis has one index for each of so many first axes
            of the shape.
        updates: For each of them an element, or a slice along the other axes.
        shape: The shape.
        bad_indices_policy: "IGNORE" leaves out updates whose indices are outside.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes do not fit, or an index is outside. On a GPU its update is left
            out.

    Example:
        >>> import mirrored as mr
        >>> mr.scatter_nd([[1], [3], [1]], [1.0, 2.0, 3.0], [4]).numpy()
        array([0., 4., 0., 2.], dtype=float32)
    """
    places, values = adopt(indices, None), adopt(updates, None)
    sizes = adopt(shape, None) if is_tensor(shape) else convert_to_tensor(shape, int32)
    check_index_dtype("ScatterNd", sizes.spec)
    if sizes.ndim != 1:
        raise InvalidArgumentError("Shape must be a vector [Op:ScatterNd]")
    whole = as_shape(sizes)
    flat, rows, (count, _) = _places_and_rows(
        "ScatterNd", places, values, whole, bad_indices_policy
    )
    if values.dtype == bool_:  # Their sum is whether one of them is true.
        some = UNSORTED_SEGMENT_SUM(cast(rows, int32), flat, num_segments=count)
        return cast(RESHAPE(some, shape=whole), bool_)
    sums = UNSORTED_SEGMENT_SUM(rows, flat, num_segments=count)
    return RESHAPE(sums, shape=whole)


def _scattered(
    op: Op, tensor: Any, indices: Any, updates: Any, policy: str = "", *, negated: bool = False
) -> Tensor:
    x, places = adopt(tensor, None), adopt(indices, None)
    check_dtype(op.name, op.dtypes, x.spec)
    typed = is_tensor(updates)
    values = adopt(updates, None) if typed else convert_to_tensor(updates, x.dtype)
    flat, rows, matrix = _places_and_rows(op.name, places, values, x.shape, policy)
    if negated:
        rows = NEG(rows) if rows.dtype in SIGNED else SUB(0, rows)
    return RESHAPE(op(RESHAPE(x, shape=matrix), flat, rows), shape=x.shape)


@explained
def tensor_scatter_nd_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """Return a tensor with updates in the place of the elements that their indices name.

    Args:
        tensor: The tensor.
        indices: Int32 or int64, of which the last axis has one index for each of so many first axes
            of the tensor. Of several updates of one element the last one stays.
        updates: For each of them an element, or a slice along the other axes.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit, or an index is outside. On a GPU its
            update is left out.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_update([1, 2, 3, 4], [[1], [3]], [9, 7]).numpy()
        array([1, 9, 3, 7], dtype=int32)
    """
    return _scattered(TENSOR_SCATTER_UPDATE, tensor, indices, updates)


@explained
def tensor_scatter_nd_add(
    tensor: Any,
    indices: Any,
    updates: Any,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a tensor with updates added; see `tensor_scatter_nd_update`.

    Updates are added one after the other. `bad_indices_policy="IGNORE"` leaves out those whose
    indices are outside.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_add([1, 2, 3], [[1], [1]], [10, 20]).numpy()
        array([ 1, 32,  3], dtype=int32)
    """
    return _scattered(TENSOR_SCATTER_ADD, tensor, indices, updates, bad_indices_policy)


@explained
def tensor_scatter_nd_sub(
    tensor: Any,
    indices: Any,
    updates: Any,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a tensor with updates subtracted; see `tensor_scatter_nd_add`.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_sub([1, 2, 3], [[1], [1]], [10, 20]).numpy()
        array([  1, -28,   3], dtype=int32)
    """
    return _scattered(
        TENSOR_SCATTER_ADD, tensor, indices, updates, bad_indices_policy, negated=True
    )


@explained
def tensor_scatter_nd_max(
    tensor: Any,
    indices: Any,
    updates: Any,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a tensor with updates where they are greater; see `tensor_scatter_nd_add`.

    What is as great shares the gradient, the tensor's own element among them.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_max([1, 2, 3], [[1], [2]], [9, 1]).numpy()
        array([1, 9, 3], dtype=int32)
    """
    return _scattered(TENSOR_SCATTER_MAX, tensor, indices, updates, bad_indices_policy)


@explained
def tensor_scatter_nd_min(
    tensor: Any,
    indices: Any,
    updates: Any,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a tensor with updates where they are less; see `tensor_scatter_nd_max`.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_min([1, 2, 3], [[1], [2]], [9, 1]).numpy()
        array([1, 2, 1], dtype=int32)
    """
    return _scattered(TENSOR_SCATTER_MIN, tensor, indices, updates, bad_indices_policy)
