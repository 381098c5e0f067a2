"""Where the windows of convolutions and of pooling lie: sizes, padding and the taps in range.

A *tap* is one position in a window. Arrays have the axes (batch, spatial axes, channels). A block
is a part of the positions whose values stay in a processor's cache.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from mirrored.errors import InvalidArgumentError
from mirrored.ops.spec import Shape, TensorSpec, shape_text

Pairs = tuple[tuple[int, int], ...]
Index = tuple[slice, ...]

# Bytes that a block takes: half of a core's second-level cache, or less, on today's processors.
BLOCK_BYTES = 1 << 20


class Axis(NamedTuple):
    """The windows along one spatial axis.

    Attributes:
        size: How many elements there are to read.
        taps: How many of them are in a window.
        stride: The distance of two windows.
        dilation: The distance of two taps.
        before: How many elements of padding are before the first; negative: elements are skipped.
        windows: How many windows there are.
    """

    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    windows: int

    @property
    def start(self) -> int:
        """The element that the first tap of the first window reads."""
        return -self.before

    @property
    def stop(self) -> int:
        """The element behind the last one that a window reads."""
        return self.start + (self.windows - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    @property
    def is_inside(self) -> bool:
        """Whether no window reads padding."""
        return self.start >= 0 and self.stop <= self.size

    def windows_of(self, tap: int, first: int, last: int) -> tuple[slice, slice]:
        """Return the windows in which a tap reads an element, and the elements that it reads.

        Args:
            tap: The tap.
            first: The first window to look at.
            last: The window behind the last one to look at.
        """
        place = tap * self.dilation - self.before
        first = max(first, -(place // self.stride) if place < 0 else 0)
        last = min(last, (self.size - 1 - place) // self.stride + 1)
        count = max(0, last - first)
        start = place + first * self.stride if count else 0
        reach = start + max(0, count - 1) * self.stride + (1 if count else 0)
        return slice(first, first + count), slice(start, reach, self.stride)


def padding_of(padding: Any, sizes: Shape, taps: Shape, strides: Shape, dilations: Shape) -> Pairs:
    """Return how many elements of padding are before and after each axis.

    Args:
        padding: "SAME", "VALID", or these numbers.
        sizes: The spatial sizes of the input.
        taps: The sizes of the windows.
        strides: The strides.
        dilations: The dilations.
    """
    if padding == "VALID":
        return ((0, 0),) * len(sizes)
    if padding != "SAME":
        return tuple((before, after) for before, after in padding)
    pairs = []
    for size, count, stride, dilation in zip(sizes, taps, strides, dilations, strict=True):
        reach = (count - 1) * dilation + 1
        total = max(0, (-(-size // stride) - 1) * stride + reach - size)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


@lru_cache(maxsize=128)
def axes_of(
    name: str, sizes: Shape, taps: Shape, *, strides: Shape, padding: Pairs, dilations: Shape
) -> tuple[Axis, ...]:
    """Return the windows along each spatial axis.

    Args:
        name: The op that errors name.
        sizes: The spatial sizes of the input.
        taps: The sizes of the windows.
        strides: The strides.
        padding: For each axis the elements of padding before and after it.
        dilations: The dilations.

    Raises:
        InvalidArgumentError: A window is larger than the padded input by more than a stride.
    """
    axes = []
    for size, tap_count, stride, (before, after), dilation in zip(
        sizes, taps, strides, padding, dilations, strict=True
    ):
        reach = (tap_count - 1) * dilation + 1
        room = size + before + after - reach + stride
        count = room // stride if room >= 0 else -(-room // stride)
        if count < 0:
            raise InvalidArgumentError(
                f"Computed output size would be negative: {count} [input_size: "
                f"{size + before + after}, effective_filter_size: {reach}, stride: {stride}] "
                f"[Op:{name}]"
            )
        axes.append(Axis(size, tap_count, stride, dilation, before, count))
    return tuple(axes)


class Block(NamedTuple):
    """A part of the windows of a batch: several images, or some rows of windows of one.

    Attributes:
        images: The images.
        rows: The windows along the first spatial axis.
    """

    images: slice
    rows: slice


@lru_cache(maxsize=128)
def blocks(images: int, axes: tuple[Axis, ...], window_bytes: int) -> tuple[Block, ...]:
    """Return the blocks of a batch, all but the last of one size.

    Args:
        images: The number of images.
        axes: The windows along each spatial axis.
        window_bytes: The bytes that a window takes in a block.
    """
    rows = axes[0].windows
    row_bytes = math.prod(axis.windows for axis in axes[1:]) * window_bytes
    together = max(1, BLOCK_BYTES // max(1, rows * row_bytes))
    if together > 1 or rows * row_bytes <= BLOCK_BYTES:
        # The same number of blocks, more evenly.
        together = -(-images // max(1, -(-images // together)))
        return tuple(
            Block(slice(i, min(i + together, images)), slice(0, rows))
            for i in range(0, images, max(1, together))
        )
    height = max(1, BLOCK_BYTES // max(1, row_bytes))
    height = -(-rows // -(-rows // height))
    return tuple(
        Block(slice(i, i + 1), slice(j, min(j + height, rows)))
        for i in range(images)
        for j in range(0, rows, height)
    )


def blocks_of_passes(x: Shape, axes: tuple[Axis, ...], itemsize: int) -> tuple[Block, ...]:
    """Return blocks of windows for passes tap by tap, which read the images where they are.

    Args:
        x: The shape of the images.
        axes: The windows along each spatial axis.
        itemsize: The bytes of an element.
    """
    read = math.prod(axis.stride for axis in axes)
    return blocks(x[0], axes, (read + 2) * x[-1] * itemsize)


def scratch_shape(x: Shape, axes: tuple[Axis, ...], itemsize: int) -> Shape:
    """Return the shape of scratch memory that has a value for each window of the largest block.

    Args:
        x: The shape of the images.
        axes: The windows along each spatial axis.
        itemsize: The bytes of an element.
    """
    parts = blocks_of_passes(x, axes, itemsize)
    if not parts:
        return (0,)
    images, rows = parts[0]
    return (images.stop, rows.stop, *(axis.windows for axis in axes[1:]), x[-1])


def taps_in(axes: Sequence[Axis], block: Block) -> Iterator[tuple[Shape, Index, Index]]:
    """Yield each tap, with the windows of a block in which it reads, and what it reads there.

    Args:
        axes: The windows along each spatial axis.
        block: The block.
    """
    for tap in itertools.product(*(range(axis.taps) for axis in axes)):
        to: list[slice] = [block.images]
        source: list[slice] = [block.images]
        for number, (axis, place) in enumerate(zip(axes, tap, strict=True)):
            ends = (block.rows.start, block.rows.stop) if number == 0 else (0, axis.windows)
            windows, elements = axis.windows_of(place, *ends)
            to.append(windows)
            source.append(elements)
        if all(part.stop > part.start for part in to):
            yield tap, tuple(to), tuple(source)


def is_covered(axes: Sequence[Axis], block: Block, windows: Index) -> bool:
    """Return whether these windows are all of a block."""
    counts = (block.rows.stop - block.rows.start, *(axis.windows for axis in axes[1:]))
    return tuple(part.stop - part.start for part in windows[1:]) == counts


class Phase(NamedTuple):
    """The inputs that one set of taps contributes to, along one axis, in a transposed convolution.

    Attributes:
        elements: The inputs: every stride-th one.
        taps: The taps, in the order in which their windows come.
        axis: The windows of these taps over the outputs.
    """

    elements: slice
    taps: slice
    axis: Axis


def phases_of(axis: Axis) -> list[Phase]:
    """Return how the inputs of an axis are computed from its outputs.

    Input number i has a part of output number o for each tap t with
    ``i = o * stride + t * dilation - before``.

    Args:
        axis: The windows of the convolution.
    """
    common = math.gcd(axis.stride, axis.dilation)
    step, dilation = axis.stride // common, axis.dilation // common
    phases = []
    for rest in range(min(axis.stride, axis.size)):
        elements = slice(rest, axis.size, axis.stride)
        count = -(-(axis.size - rest) // axis.stride)
        first = next(
            (t for t in range(step) if (rest + axis.before - t * axis.dilation) % axis.stride == 0),
            axis.taps,
        )
        number = max(0, -(-(axis.taps - first) // step))
        # The last tap reads the earliest output, so they are taken backwards.
        last = first + (number - 1) * step
        taps = slice(last, None, -step) if number else slice(0)
        output = (rest + axis.before - last * axis.dilation) // axis.stride
        window = Axis(axis.windows, number, 1, dilation, -output, count)
        phases.append(Phase(elements, taps, window))
    return phases


def check_rank(name: str, what: str, spec: TensorSpec, rank: int) -> None:
    """Raise InvalidArgumentError unless a tensor has this number of axes."""
    if len(spec.shape) != rank:
        raise InvalidArgumentError(
            f"{what} must be {rank}-dimensional: {shape_text(spec.shape)} [Op:{name}]"
        )
