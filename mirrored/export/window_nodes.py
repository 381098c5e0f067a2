"""ONNX nodes for convolutions and pooling.

ONNX has channels in front of the spatial axes of images, and outputs in front of all axes of
filters, so that images and filters are transposed before, and results after it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from mirrored.export.elementwise_nodes import Rule
from mirrored.export.node_writer import Call, Ref, Writer
from mirrored.export.sizes import Dim


def _of_images(w: Writer, op: str, x: Ref, *others: Ref, **attrs: Any) -> Ref:
    """Return the result of a node of images, with channels behind as those have."""
    rank = len(attrs["strides"])
    first = w.transpose(x, (0, rank + 1, *range(1, rank + 1)))
    return w.transpose(w.add(op, first, *others, **attrs), (0, *range(2, rank + 2), 1))


def _windows(call: Call) -> dict[str, list[int]]:
    """Return the attributes that convolutions and pooling have."""
    return {
        "strides": [*call.attrs["strides"]],
        "dilations": [*call.attrs["dilations"]],
        "pads": [pair[end] for end in (0, 1) for pair in call.attrs["padding"]],
    }


def _filters(w: Writer, call: Call, number: int, channels: Dim) -> tuple[Ref, int]:
    """Return filters as ONNX has them, and the number of groups.

    Args:
        w: What writes nodes.
        call: The call.
        number: Which of its inputs they are.
        channels: The channels of the images.
    """
    filters, shape = call.inputs[number], call.shapes[number]
    *taps, depth, outputs, among = (_known(call, size) for size in (*shape, channels))
    rank = len(taps)
    axes = tuple(range(rank))
    if call.op.startswith("Depthwise"):  # Its groups are of one channel.
        parts = w.transpose(filters, (rank, rank + 1, *axes))
        return w.reshape(parts, (depth * outputs, 1, *taps)), depth
    return w.transpose(filters, (rank + 1, rank, *axes)), among // depth


def _known(call: Call, size: Dim) -> int:
    if isinstance(size, int):
        return size
    raise call.refuse("has filters or channels whose sizes depend on the inputs'")


def _convolution(w: Writer, call: Call) -> Ref:
    filters, groups = _filters(w, call, 1, call.shapes[0][-1])
    return _of_images(w, "Conv", call.inputs[0], filters, group=groups, **_windows(call))


def _gradient_of_images(w: Writer, call: Call) -> Ref:
    *sizes, channels = call.attrs["sizes"]
    filters, groups = _filters(w, call, 0, channels)
    taps, results = call.shapes[0], call.shapes[1][1:]
    more = [_behind(call, size, taps[axis], results[axis], axis) for axis, size in enumerate(sizes)]
    attrs = {**_windows(call), "output_padding": more}
    return _of_images(w, "ConvTranspose", call.inputs[1], filters, group=groups, **attrs)


def _behind(call: Call, size: Dim, taps: Dim, windows: Dim, axis: int) -> int:
    """Return how many images' elements are behind those of the last window and of its padding."""
    stride, dilation = (int(call.attrs[name][axis]) for name in ("strides", "dilations"))
    before, after = call.attrs["padding"][axis]
    rests: set[int] = set()
    for example in (720, 1440):
        numbers = [_number(call, dim, example) for dim in (size, taps, windows)]
        reach = (numbers[2] - 1) * stride + (numbers[1] - 1) * dilation + 1
        rests.add(numbers[0] + before + after - reach)
    if len(rests) > 1:
        raise call.refuse("has images that do not grow by the strides")
    return rests.pop()


def _number(call: Call, dim: Dim, example: int) -> int:
    """Return a size where all that are not known are alike."""
    if dim is None:
        raise call.refuse("has a size that is not a sum of products of the inputs' sizes")
    return dim if isinstance(dim, int) else dim.value([example] * len(dim.terms[0].powers))


def _pooled(w: Writer, call: Call, *, op: str, **more: Any) -> Ref:
    attrs = {**_windows(call), "kernel_shape": [*call.attrs["window"]], **more}
    if op == "AveragePool" and max(attrs.pop("dilations")) > 1:
        raise call.refuse("has dilations, which ONNX's AveragePool does not have")
    return _of_images(w, op, call.inputs[0], **attrs)


_AVERAGE = partial(_pooled, op="AveragePool", count_include_pad=0)
RULES: Mapping[str, Rule] = {
    "AvgPool": _AVERAGE,
    "AvgPool3D": _AVERAGE,
    "Conv2D": _convolution,
    "Conv2DBackpropInput": _gradient_of_images,
    "Conv3D": _convolution,
    "Conv3DBackpropInputV2": _gradient_of_images,
    "DepthwiseConv2dNative": _convolution,
    "DepthwiseConv2dNativeBackpropInput": _gradient_of_images,
    "MaxPool": partial(_pooled, op="MaxPool"),
    "MaxPool3D": partial(_pooled, op="MaxPool"),
}
