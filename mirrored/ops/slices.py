"""Slices by their beginnings and sizes, as functions; an index says the same in less."""

import builtins
from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.indices import check_index_dtype
from mirrored.ops.slicing import STRIDED_SLICE
from mirrored.ops.spec import shape_text
from mirrored.ops.tensor import Tensor


def _integers(value: Any, op: str) -> np.ndarray[Any, Any]:
    tensor = adopt(value, None)
    check_index_dtype(op, tensor.spec, "Index")
    return np.asarray(tensor.numpy())


def slice(input_: TensorLike, begin: ShapeLike, size: ShapeLike, name: str | None = None) -> Tensor:
    """Return a part of a tensor, with a number of elements along each axis.

    Args:
        input_: The tensor.
        begin: For each axis where it begins.
        size: For each axis how many elements; -1: all that are left.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is not one of both an axis, or they lead out of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, -1]).numpy()
        array([[2, 3],
               [5, 6]], dtype=int32)
    """
    x, begins, sizes = adopt(input_, None), _integers(begin, "Slice"), _integers(size, "Slice")
    if begins.shape != (x.ndim,) or sizes.shape != (x.ndim,):
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {x.ndim}, but got shapes "
            f"{shape_text(begins.shape)} and {shape_text(sizes.shape)} instead. [Op:Slice]"
        )
    index = []
    for axis, (whole, first, count) in enumerate(zip(x.shape, begins, sizes, strict=True)):
        if not 0 <= first <= whole:
            raise InvalidArgumentError(
                f"Expected begin[{axis}] in [0, {whole}], but got {first} [Op:Slice]"
            )
        if not -1 <= count <= whole - first:
            raise InvalidArgumentError(
                f"Expected size[{axis}] in [0, {whole - first}], but got {count} [Op:Slice]"
            )
        end = whole if count == -1 else first + count
        index.append(builtins.slice(int(first), int(end)))
    return STRIDED_SLICE(x, index=tuple(index))


def strided_slice(
    input_: TensorLike,
    begin: ShapeLike,
    end: ShapeLike,
    strides: ShapeLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: None = None,
    name: str | None = None,
) -> Tensor:
    """Return what an index gives, which is written as numbers and masks.

    Bit number i of a mask is about item number i.

    Args:
        input_: The tensor.
        begin: For each item of the index where its slice begins.
        end: Where it ends.
        strides: By how many elements it goes on; None: 1.
        begin_mask: Which begin where the axis does.
        end_mask: Which end where the axis does.
        ellipsis_mask: Which one is `...`.
        new_axis_mask: Which are new axes.
        shrink_axis_mask: Which are numbers, those of `begin`.
        var: Not provided: assign to an index of the variable.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: They are no vectors of one size, or the tensor has no such index.
        NotImplementedError: `var` is given.

    Example:
        >>> import mirrored as mr
        >>> mr.strided_slice([1, 2, 3, 4, 5], [4], [0], [-2], end_mask=1).numpy()
        array([5, 3, 1], dtype=int32)
    """
    if var is not None:
        raise NotImplementedError(
            "`strided_slice` takes no `var`. Use an index of the variable, as in `v[1:3]`."
        )
    x, op = adopt(input_, None), "StridedSlice"
    begins, ends = _integers(begin, op), _integers(end, op)
    steps = np.ones_like(begins) if strides is None else _integers(strides, op)
    shapes = [vector.shape for vector in (begins, ends, steps)]
    if begins.ndim != 1 or len(set(shapes)) > 1:
        first, second, third = map(shape_text, shapes)
        raise InvalidArgumentError(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"{first}, {second}, and {third} instead. [Op:StridedSlice]"
        )
    index: list[Any] = []
    for i, (start, stop, step) in enumerate(
        zip(begins.tolist(), ends.tolist(), steps.tolist(), strict=True)
    ):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            if step <= 0:
                raise InvalidArgumentError(
                    "only stride 1 allowed on non-range indexing. [Op:StridedSlice]"
                )
            index.append(start)
        else:
            ends_of = (None if begin_mask & bit else start, None if end_mask & bit else stop)
            index.append(builtins.slice(*ends_of, step))
    return STRIDED_SLICE(x, index=tuple(index))


explain_functions(__name__, all_but="")
