"""Joining tensors along an axis, taking them apart, repeating, reversing and surrounding them.

All of it is made of a few ops that move values: views, slices, `concat` and broadcasting.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, SupportsIndex

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.comparison import LESS
from mirrored.ops.conversion import adopt, as_tensors, constant, convert_to_tensor
from mirrored.ops.creation import FILL
from mirrored.ops.elementwise import MINIMUM
from mirrored.ops.gathering import gather
from mirrored.ops.indices import check_index_dtype
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import (
    BROADCAST_TO,
    CONCAT,
    EXPAND_DIMS,
    PACK,
    RESHAPE,
    TRANSPOSE,
    cast,
    expand_dims,
    normalize_axis,
)
from mirrored.ops.slicing import STRIDED_SLICE, sliced_along
from mirrored.ops.spec import Shape, as_integer, as_integers, int64, shape_text
from mirrored.ops.tensor import Operators, Tensor


def axis_of(axis: Any, rank: int) -> int:
    """Return an axis counted from the front, as functions that are not one op have it."""
    number = as_integer(axis, "The axis")
    if not -rank <= number < rank:
        raise ValueError(f"Argument `axis` = {number} not in range [{-rank}, {rank})")
    return number % rank


def stack(values: TensorLike, axis: int = 0, name: str | None = "stack") -> Tensor:
    """Return tensors of one shape joined along a new axis.

    Args:
        values: A list of them, or a tensor, whose rows they are.
        axis: Where the new axis is.
        name: Accepted for compatibility.

    Raises:
        ValueError: There is no such axis.
        InvalidArgumentError: Their shapes or dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.stack([[1, 2], [3, 4]], axis=1).numpy()
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    if axis == 0:
        with suppress(ValueError):  # Rows of unequal shapes are named below.
            return adopt(values, None)
    items = values if isinstance(values, list | tuple) else unstack(values)
    if not items:
        raise ValueError(f"stack takes at least one tensor. Received: {values!r:.80}")
    tensors = as_tensors(tuple(items))
    place = axis_of(axis, tensors[0].ndim + 1)
    PACK.infer(*(tensor.spec for tensor in tensors))  # It says where shapes differ.
    shape = tensors[0].shape
    wide = (*shape[:place], 1, *shape[place:])
    return CONCAT(*(EXPAND_DIMS(tensor, shape=wide) for tensor in tensors), axis=place)


def unstack(
    value: TensorLike, num: int | None = None, axis: int = 0, name: str | None = "unstack"
) -> list[Tensor]:
    """Return a tensor's parts along an axis, each without it.

    Args:
        value: The tensor.
        num: How many they are said to be; None: any number.
        axis: The axis.
        name: Accepted for compatibility.

    Raises:
        ValueError: There is no such axis.
        InvalidArgumentError: They are not `num`.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().tolist() for each in mr.unstack([[1, 2], [3, 4]], axis=1)]
        [[1, 3], [2, 4]]
    """
    x = adopt(value, None)
    place = axis_of(axis, x.ndim)
    count = x.shape[place]
    if num is not None and num != count:
        raise InvalidArgumentError(
            f"Input shape axis {place} must equal {num}, got shape {shape_text(x.shape)} "
            "[Op:Unpack]"
        )
    return [sliced_along(x, place, i) for i in range(count)]


def split(
    value: TensorLike,
    num_or_size_splits: ShapeLike,
    axis: int = 0,
    num: int | None = None,
    name: str | None = "split",
) -> list[Tensor]:
    """Return a tensor cut along an axis.

    Args:
        value: The tensor.
        num_or_size_splits: Into how many parts of one size, or the sizes of all parts, of which one
            may be -1 for what is left.
        axis: The axis.
        num: How many sizes there are said to be; None: any number.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no such axis, its size is not that of the parts together, or
            there are not `num` sizes.
        ValueError: The sizes are one number that is no integer.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().tolist() for each in mr.split([1, 2, 3, 4], [1, -1])]
        [[1], [2, 3, 4]]
    """
    x, several = adopt(value, None), not isinstance(num_or_size_splits, int | np.integer)
    parts_of: Any = num_or_size_splits
    if several and not np.ndim(parts_of):
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. "
            f"Received: {num_or_size_splits!r}"
        )
    numbers = as_integers(num_or_size_splits, "`num_or_size_splits`")
    place = normalize_axis("SplitV" if several else "Split", axis, x.ndim)
    whole = x.shape[place]
    sizes = _sizes(list(numbers), whole) if several else _equal_sizes(numbers[0], place, whole)
    if num is not None and num != len(sizes):
        raise InvalidArgumentError(
            f"size of the split_tensor must be 1-D and have the same elements as outputs got shape "
            f"[{len(sizes)}], for num={num} [Op:SplitV]"
        )
    parts, begin = [], 0
    for size in sizes:
        parts.append(sliced_along(x, place, slice(begin, begin + size)))
        begin += size
    return parts


def _equal_sizes(count: int, axis: int, whole: int) -> list[int]:
    if count < 1:
        raise InvalidArgumentError(
            f"Number of ways to split should be > 0, but got {count} [Op:Split]"
        )
    if whole % count:
        raise InvalidArgumentError(
            "Number of ways to split should evenly divide the split dimension, but got split_dim "
            f"{axis} (size = {whole}) and num_split {count} [Op:Split]"
        )
    return [whole // count] * count


def _sizes(sizes: list[int], whole: int) -> list[int]:
    open_ones = [i for i, size in enumerate(sizes) if size == -1]
    known = sum(size for size in sizes if size != -1)
    if len(open_ones) == 1 and known <= whole:
        sizes[open_ones[0]] = whole - known
    if sum(sizes) != whole or any(size < 0 for size in sizes):
        raise InvalidArgumentError(
            "Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            f"specified. Got: {known}, for a size of {whole} [Op:SplitV]"
        )
    return sizes


def tile(input: TensorLike, multiples: ShapeLike, name: str | None = None) -> Tensor:
    """Return a tensor repeated as a whole along its axes.

    Args:
        input: The tensor.
        multiples: How often, one number an axis.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is not one number an axis, or one is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.tile([1, 2], [2]).numpy()
        array([1, 2, 1, 2], dtype=int32)
    """
    x, times = adopt(input, None), as_integers(multiples, "`multiples`")
    if isinstance(multiples, int | np.integer):
        raise InvalidArgumentError("Expected multiples to be 1-D, but got shape [] [Op:Tile]")
    if len(times) != x.ndim:
        raise InvalidArgumentError(
            f"Expected multiples argument to be a vector of length {x.ndim} but got length "
            f"{len(times)} [Op:Tile]"
        )
    for i, factor in enumerate(times):
        if factor < 0:
            raise InvalidArgumentError(f"Expected multiples[{i}] >= 0, but got {factor} [Op:Tile]")
    pairs = list(zip(times, x.shape, strict=True))
    apart = RESHAPE(x, shape=tuple(extent for _, size in pairs for extent in (1, size)))
    spread = BROADCAST_TO(apart, shape=tuple(extent for pair in pairs for extent in pair))
    return RESHAPE(spread, shape=tuple(count * size for count, size in pairs))


def reverse(tensor: TensorLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """Return a tensor with the elements along some axes in the other order.

    Args:
        tensor: The tensor.
        axis: The axes, a list.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no such axis, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> mr.reverse([[1, 2], [3, 4]], [1]).numpy()
        array([[2, 1],
               [4, 3]], dtype=int32)
    """
    x = adopt(tensor, None)
    if isinstance(axis, int | np.integer):
        raise InvalidArgumentError("'dims' must be 1-dimension, not 0 [Op:ReverseV2]")
    index = [slice(None)] * x.ndim
    for dimension in as_integers(axis, "The axis"):
        place = normalize_axis("ReverseV2", dimension, x.ndim)
        if index[place].step is not None:
            raise InvalidArgumentError(f"axis {place} specified more than once. [Op:ReverseV2]")
        index[place] = slice(None, None, -1)
    return STRIDED_SLICE(x, index=tuple(index))


def roll(input: TensorLike, shift: TensorLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """Return a tensor with the elements moved along axes, and those that fall off at the beginning.

    Args:
        input: The tensor.
        shift: By how many places; a number, or one an axis.
        axis: The axis, or a list of them.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no such axis, or there are not as many shifts as axes.

    Example:
        >>> import mirrored as mr
        >>> mr.roll([1, 2, 3, 4], shift=1, axis=0).numpy()
        array([4, 1, 2, 3], dtype=int32)
    """
    x = adopt(input, None)
    shifts, axes = as_integers(shift, "`shift`"), as_integers(axis, "The axis")
    if len(shifts) != len(axes):
        raise InvalidArgumentError(
            f"shift and axis must have the same size. Received: {len(shifts)} shifts and "
            f"{len(axes)} axes [Op:Roll]"
        )
    for by, dimension in zip(shifts, axes, strict=True):
        place = normalize_axis("Roll", dimension, x.ndim)
        first = by % max(1, x.shape[place])
        if first:
            at_end = slice(x.shape[place] - first, None)
            at_begin = slice(0, x.shape[place] - first)
            x = CONCAT(sliced_along(x, place, at_end), sliced_along(x, place, at_begin), axis=place)
    return x


_MODES = ("CONSTANT", "REFLECT", "SYMMETRIC")


def pad(
    tensor: TensorLike,
    paddings: Iterable[ShapeLike],
    mode: str = "CONSTANT",
    constant_values: TensorLike = 0,
    name: str | None = None,
) -> Tensor:
    """Return a tensor with more elements before and behind its own.

    Args:
        tensor: The tensor.
        paddings: For each axis how many before and how many behind.
        mode: "CONSTANT" puts one value there, "REFLECT" what is there in a mirror in the middle of
            the outermost elements, "SYMMETRIC" in one at their edge; in any case of letters.
        constant_values: That value.
        name: Accepted for compatibility.

    Raises:
        ValueError: The mode is unknown.
        InvalidArgumentError: There is not a pair an axis, or a number is negative, or larger than
            what a mirror has to show.

    Example:
        >>> import mirrored as mr
        >>> mr.pad([1, 2, 3], [[1, 2]]).numpy()
        array([0, 1, 2, 3, 0, 0], dtype=int32)
        >>> mr.pad([1, 2, 3], [[1, 2]], "REFLECT").numpy()
        array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    kind = str(mode).upper()
    if kind not in _MODES:
        raise ValueError(
            'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". '
            f"Received `mode` = {mode!r}"
        )
    x, pairs = adopt(tensor, None), [as_integers(padding, "A padding") for padding in paddings]
    _check_paddings(x.shape, pairs, kind)
    # Of any dtype there is a zero.
    is_zero = not isinstance(constant_values, Operators) and constant_values == 0
    value = 0 if is_zero else convert_to_tensor(constant_values, x.dtype).numpy().item()
    for axis, (before, behind) in enumerate(pairs):
        size, skipped = x.shape[axis], kind == "REFLECT"
        if kind == "CONSTANT":
            parts = [_filled(x, axis, before, value), x, _filled(x, axis, behind, value)]
        else:
            mirrored = sliced_along(x, axis, slice(None, None, -1))
            end = size - skipped
            parts = [
                sliced_along(mirrored, axis, slice(end - before, end)),
                x,
                sliced_along(mirrored, axis, slice(int(skipped), skipped + behind)),
            ]
        parts = [part for part in parts if part.shape[axis] or part is x]
        x = parts[0] if len(parts) == 1 else CONCAT(*parts, axis=axis)
    return x


def space_to_depth(
    input: TensorLike, block_size: SupportsIndex, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Return images whose blocks of pixels are pixels of more channels.

    Args:
        input: The images, of shape (batch, rows, columns, channels).
        block_size: The number of rows and columns of a block, 2 or more.
        data_format: "NHWC", or "NCHW" for images of shape (batch, channels, rows, columns).
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The images have other axes, rows or columns are no multiple of the
            block's, or an argument is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.space_to_depth(mr.ones((1, 4, 6, 3)), 2).shape
        (1, 2, 3, 12)
    """
    op = "SpaceToDepth"
    x, size = _in_rows(op, input, block_size, data_format)
    batch, rows, columns, channels = x.shape
    if rows % size or columns % size:
        raise InvalidArgumentError(
            f"Image width {columns} and height {rows} should be divisible by block_size: {size} "
            f"[Op:{op}]"
        )
    rows, columns = rows // size, columns // size
    blocks = RESHAPE(x, shape=(batch, rows, size, columns, size, channels))
    moved = TRANSPOSE(blocks, perm=(0, 1, 3, 2, 4, 5))
    outputs = RESHAPE(moved, shape=(batch, rows, columns, size * size * channels))
    return TRANSPOSE(outputs, perm=_TO_NCHW) if data_format == "NCHW" else outputs


def depth_to_space(
    input: TensorLike, block_size: SupportsIndex, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Return images whose pixels are blocks of pixels of fewer channels: a pixel shuffle.

    Args:
        input: The images, of shape (batch, rows, columns, channels).
        block_size: The number of rows and columns of a block, 2 or more.
        data_format: "NHWC", or "NCHW" for images of shape (batch, channels, rows, columns).
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The images have other axes, channels are no multiple of a block's
            pixels, or an argument is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.depth_to_space(mr.ones((1, 2, 3, 12)), 2).shape
        (1, 4, 6, 3)
    """
    op = "DepthToSpace"
    x, size = _in_rows(op, input, block_size, data_format)
    batch, rows, columns, depth = x.shape
    if depth % (size * size):
        raise InvalidArgumentError(
            f"Input depth dimension {depth} should be divisible by: {size * size} [Op:{op}]"
        )
    channels = depth // (size * size)
    blocks = RESHAPE(x, shape=(batch, rows, columns, size, size, channels))
    moved = TRANSPOSE(blocks, perm=(0, 1, 3, 2, 4, 5))
    outputs = RESHAPE(moved, shape=(batch, rows * size, columns * size, channels))
    return TRANSPOSE(outputs, perm=_TO_NCHW) if data_format == "NCHW" else outputs


_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def _in_rows(op: str, images: Any, block_size: Any, data_format: str) -> tuple[Tensor, int]:
    """Return images with their channels last, and the size of a block."""
    x, size = adopt(images, None), as_integer(block_size, "The block's size")
    if size < 2:
        raise InvalidArgumentError(
            f"Value for attr 'block_size' of {size} must be at least minimum 2 [Op:{op}]"
        )
    if data_format not in ("NHWC", "NCHW"):
        raise InvalidArgumentError(
            f"Value for attr 'data_format' of {data_format!r} is not in the list of allowed "
            f'values: "NHWC", "NCHW" [Op:{op}]'
        )
    if x.ndim != 4:
        raise InvalidArgumentError(f"Input rank should be 4 instead of {x.ndim} [Op:{op}]")
    return TRANSPOSE(x, perm=_TO_NHWC) if data_format == "NCHW" else x, size


def _filled(x: Tensor, axis: int, count: int, value: Any) -> Tensor:
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return FILL(shape=shape, value=value, dtype=x.dtype)


def _check_paddings(shape: Shape, pairs: Sequence[tuple[int, ...]], kind: str) -> None:
    op = "PadV2" if kind == "CONSTANT" else "MirrorPad"
    if len(pairs) != len(shape) or any(len(pair) != 2 for pair in pairs):
        raise InvalidArgumentError(
            "The first dimension of paddings must be the rank of inputs, and its second one 2. "
            f"Received: {pairs} for shape {shape_text(shape)} [Op:{op}]"
        )
    for size, pair in zip(shape, pairs, strict=True):
        if min(pair) < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {pair} [Op:{op}]")
        most = size - (kind == "REFLECT")
        if kind != "CONSTANT" and max(pair) > most:
            raise InvalidArgumentError(
                "paddings must be no greater than the dimension size"
                f"{' less 1' if kind == 'REFLECT' else ''}: {pair} for {size} [Op:{op}]"
            )


def _check_axis(axis: int, rank: int, label: str) -> None:
    if axis < 0:
        raise InvalidArgumentError(f"Invalid {label} {axis} [Op:ReverseSequence]")
    if axis >= rank:
        raise InvalidArgumentError(
            f"{label} must be < input rank ({axis} vs. {rank}) [Op:ReverseSequence]"
        )


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
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


explain_functions(__name__, all_but="axis_of")
