"""Sums of many tensors of one shape in the order in which they are given, and sums over a tree.

The summands are the leaves of the tree, in their order. The left branch of a node has the largest
power of two of the leaves below it, so the tree depends on the number of summands alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from mirrored._arguments import explained
from mirrored._types import DTypeLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import define_op
from mirrored.ops.spec import NUMBERS, TensorSpec, as_dtype, check_same_dtype, has_shape, shape_text
from mirrored.ops.tensor import Tensor

_T = TypeVar("_T")


def _infer_add_n(*specs: TensorSpec) -> TensorSpec:
    check_same_dtype("AddN", *specs)
    for i, spec in enumerate(specs):
        if spec.shape != specs[0].shape:
            raise InvalidArgumentError(
                f"Inputs to operation AddN must have the same size and shape. Input 0: "
                f"{shape_text(specs[0].shape)} != input {i}: {shape_text(spec.shape)} [Op:AddN]"
            )
    return specs[0]


def _add_n(xp: Any, out: Any, *arrays: Any) -> None:
    # In the order of the inputs, so that the sum over replicas has the same bits every time.
    if len(arrays) == 1:
        xp.copyto(out, arrays[0])
        return
    xp.add(arrays[0], arrays[1], out=out)
    for array in arrays[2:]:
        xp.add(out, array, out=out)


ADD_N = define_op(
    name="AddN",
    infer=_infer_add_n,
    kernel=_add_n,
    gradient=lambda call, g: [g] * len(call.inputs),
    dtypes=NUMBERS,
    may_alias=(0,),
    elementwise=True,
)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """Return the sum of tensors of one shape and dtype, added in the order given.

    Raises:
        ValueError: `inputs` is empty.
        InvalidArgumentError: Shapes or dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.add_n([[1, 2], [3, 4], [5, 6]]).numpy()
        array([ 9, 12], dtype=int32)
    """
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError(
            "add_n takes a list of at least one tensor, all of the same dtype and shape. "
            f"Received: {inputs!r}"
        )
    return ADD_N(*inputs)


@explained
def accumulate_n(
    inputs: Sequence[Any],
    shape: Sequence[int | None] | None = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the sum of tensors of one shape and dtype, as `add_n` does.

    Args:
        inputs: The tensors.
        shape: The shape that they are said to have; None: any.
        tensor_dtype: The dtype that they are said to have; None: any.
        name: Accepted for compatibility.

    Raises:
        ValueError: `inputs` is empty, or the first one has another shape.
        TypeError: It has another dtype.
        InvalidArgumentError: Shapes or dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.math.accumulate_n([[1, 2], [3, 4]]).numpy()
        array([4, 6], dtype=int32)
    """
    total = add_n(inputs)
    if shape is not None and not has_shape(total.shape, shape):
        raise ValueError(f"Shapes {tuple(shape)} and {tuple(total.shape)} are not compatible")
    if tensor_dtype is not None and as_dtype(tensor_dtype) != total.dtype:
        raise TypeError(
            f"The `tensor_dtype` argument is {as_dtype(tensor_dtype).name}, but `input` is of type "
            f"{total.dtype.name}. These must be equal. Try casting the input to the desired type."
        )
    return total


def tree_sum(values: Sequence[_T], add: Callable[[_T, _T], _T]) -> _T:
    """Return the sum of values over the tree.

    Args:
        values: The values of the parts.
        add: Returns the sum of two values.

    Example:
        >>> tree_sum("abcdef", lambda left, right: f"({left}{right})")
        '(((ab)(cd))(ef))'
    """
    known = {range(i, i + 1): value for i, value in enumerate(values)}
    return join_subtrees(range(len(values)), known, add)


def join_subtrees(parts: range, known: Mapping[range, _T], add: Callable[[_T, _T], _T]) -> _T:
    """Return the sum of a subtree.

    Args:
        parts: The parts of the subtree.
        known: The sums of subtrees that all of it is made of, by their parts.
        add: Returns the sum of two values.
    """
    if parts in known:
        return known[parts]
    left, right = _halves(parts)
    return add(join_subtrees(left, known, add), join_subtrees(right, known, add))


def subtrees(parts: range, own: range) -> list[range]:
    """Return the largest subtrees that consist of some parts alone, in order.

    Args:
        parts: The parts of the whole tree.
        own: Those parts.

    Example:
        >>> subtrees(range(8), range(1, 8))
        [range(1, 2), range(2, 4), range(4, 8)]
    """
    if own.start <= parts.start and parts.stop <= own.stop:
        return [parts] if parts else []
    if own.stop <= parts.start or parts.stop <= own.start:
        return []
    return [part for half in _halves(parts) for part in subtrees(half, own)]


def _halves(parts: range) -> tuple[range, range]:
    half = 1 << (len(parts) - 1).bit_length() - 1
    return parts[:half], parts[half:]
