"""Sequences of several lengths in one tensor."""

from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.ops.comparison import LESS
from mirrored.ops.conversion import adopt, constant
from mirrored.ops.elementwise import MINIMUM
from mirrored.ops.gathering import gather
from mirrored.ops.index_range import check_index_dtype
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import TRANSPOSE, cast, expand_dims
from mirrored.ops.spec import int64
from mirrored.ops.tensor import Tensor


def _check_axis(axis: int, rank: int, label: str) -> None:
    if axis < 0:
        raise InvalidArgumentError(f"Invalid {label} {axis} [Op:ReverseSequence]")
    if axis >= rank:
        raise InvalidArgumentError(
            f"{label} must be < input rank ({axis} vs. {rank}) [Op:ReverseSequence]"
        )


@explained
def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return sequences with their first elements in the other order, of each as many as it has.

    Args:
        input: The sequences, side by side.
        seq_lengths: Int32 or int64, the length of each; what is behind stays.
        seq_axis: The axis along which they go on.
        batch_axis: The axis along which they are side by side; None: 0.
        name: Accepted for compatibility.

    Raises:
        TypeError: There is no `seq_axis`.
        InvalidArgumentError: There are no such axes, or not as many lengths as sequences, or a
            length is negative, or larger than the axis.

    Example:
        >>> import mirrored as mr
        >>> mr.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1).numpy()
        array([[2, 1, 3],
               [6, 5, 4]], dtype=int32)
    """
    x, lengths, batch = adopt(input, None), adopt(seq_lengths, None), batch_axis or 0
    if seq_axis is None:
        raise TypeError("Expected int for argument 'seq_dim' not None.")
    check_index_dtype("ReverseSequence", lengths.spec, "Tlen")
    if lengths.ndim != 1:
        raise InvalidArgumentError(
            f"seq_lengths must be 1-dim, not {lengths.ndim} [Op:ReverseSequence]"
        )
    if batch == seq_axis:
        raise InvalidArgumentError(f"batch_dim == seq_dim == {batch} [Op:ReverseSequence]")
    _check_axis(seq_axis, x.ndim, "seq_dim")
    _check_axis(batch, x.ndim, "batch_dim")
    if lengths.size != x.shape[batch]:
        raise InvalidArgumentError(
            f"Length of seq_lengths != input.dims({batch}), ({lengths.size} vs. {x.shape[batch]}) "
            "[Op:ReverseSequence]"
        )
    rest = [axis for axis in np.arange(x.ndim).tolist() if axis not in (batch, seq_axis)]
    perm = (batch, seq_axis, *rest)
    back = tuple(perm.index(axis) for axis in np.arange(x.ndim).tolist())
    turned = gather(TRANSPOSE(x, perm=perm), _places(lengths, x.shape[seq_axis]), batch_dims=1)
    return TRANSPOSE(turned, perm=back)


def _places(lengths: Tensor, size: int) -> Tensor:
    """Return where each element comes from; outside where a length is."""
    here, length = constant(np.arange(size)), expand_dims(cast(lengths, int64), 1)
    behind = here + MINIMUM(length, 0) * size
    return SELECT(LESS(here, length), length - 1 - here, behind)
