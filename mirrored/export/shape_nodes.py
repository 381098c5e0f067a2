"""ONNX nodes for ops that move elements: reshapes, slices and joins."""

from collections.abc import Mapping
from typing import Any

from mirrored.export.elementwise_nodes import Rule
from mirrored.export.node_writer import Call, Ref, Writer
from mirrored.export.sizes import Dim, Size
from mirrored.ops.spec import int64

_FAR = 2**31 - 1  # Behind the end of any axis.


def _same(w: Writer, call: Call) -> Ref:
    return call.inputs[0]


def _reshaped(w: Writer, call: Call) -> Ref:
    return w.reshape(call.inputs[0], call.attrs["shape"], call.shapes[0])


def _broadcast(w: Writer, call: Call) -> Ref:
    return w.add("Expand", call.inputs[0], w.dims(call.attrs["shape"]))


def _joined(w: Writer, call: Call) -> Ref:
    return w.add("Concat", *call.inputs, axis=call.attrs["axis"])


def _packed(w: Writer, call: Call) -> Ref:
    return w.add("Concat", *(w.unsqueeze(value, [0]) for value in call.inputs), axis=0)


def _transposed(w: Writer, call: Call) -> Ref:
    return w.add("Transpose", call.inputs[0], perm=list(call.attrs["perm"]))


def _full_index(index: tuple[Any, ...], axes: int) -> list[Any]:
    """Return an index with an item for each axis, and None where there is a new one."""
    taken = sum(item is not None and item is not Ellipsis for item in index)
    whole = [slice(None)] * (axes - taken)
    if Ellipsis not in [item for item in index if item is None or item is Ellipsis]:
        return [*index, *whole]
    place = next(i for i, item in enumerate(index) if item is Ellipsis)
    return [*index[:place], *whole, *index[place + 1 :]]


def _sliced(w: Writer, call: Call) -> Ref:
    return _part(w, call, call.inputs[0], len(call.shapes[0]))


def _part(w: Writer, call: Call, x: Ref, rank: int) -> Ref:
    """Return the part of a value with `rank` axes that the call's index selects."""
    starts: list[Dim] = []
    ends: list[Dim] = []
    steps: list[int] = []
    axes: list[int] = []
    alone: list[int] = []
    axis = 0
    items = _full_index(call.attrs["index"], rank)
    for item in items:
        if item is None:
            continue
        if isinstance(item, slice):
            if item != slice(None):
                start, end, step = _ends(call, item)
                for column, value in ((starts, start), (ends, end)):
                    column.append(value)
                steps.append(step)
                axes.append(axis)
        else:
            number = _known(call, item)
            starts.append(number)
            ends.append(_FAR if number == -1 else _next(number))
            steps.append(1)
            axes.append(axis)
            alone.append(axis)
        axis += 1
    result = x
    if axes:
        bounds = (w.dims(values) for values in (starts, ends, axes, steps))
        result = w.add("Slice", x, *bounds)
    result = w.squeeze(result, alone)
    kept = [item for item in items if item is None or isinstance(item, slice)]
    return w.unsqueeze(result, [place for place, item in enumerate(kept) if item is None])


def _known(call: Call, number: Any) -> int | Size:
    if isinstance(number, int | Size):
        return number
    raise call.refuse("begins or ends at a place that is no sum of products of the inputs' sizes")


def _next(number: int | Size) -> int | Size:
    if isinstance(number, int):
        return number + 1
    return number.plus(1)


def _ends(call: Call, part: slice) -> tuple[Dim, Dim, int]:
    step = 1 if part.step is None else part.step
    if not isinstance(step, int):
        raise call.refuse("has a step that depends on the inputs' sizes")
    first, last = (0, _FAR) if step > 0 else (_FAR, -_FAR)
    start = first if part.start is None else _known(call, part.start)
    end = last if part.stop is None else _known(call, part.stop)
    return start, end, step


def _written(w: Writer, call: Call, flat: Ref, sizes: Ref, part: Ref) -> Ref:
    """Return all elements in order with those again that the call's index takes, in their shape."""
    count = w.add("ReduceProd", sizes, keepdims=0)
    numbers = w.add("Range", w.constant(0, int64), count, w.constant(1, int64))
    places = _part(w, call, w.add("Reshape", numbers, sizes), len(call.shape))
    index = w.unsqueeze(w.reshape(places, (None,)), [1])
    elements = w.add("ScatterND", flat, index, w.reshape(part, (None,)))
    return w.add("Reshape", elements, sizes)


def _slice_gradient(w: Writer, call: Call) -> Ref:
    (part,) = call.inputs
    sizes = w.dims(call.shape)
    count = w.add("ReduceProd", sizes, keepdims=1)
    zeros = w.add("Expand", w.constant(0, part.dtype), count)
    return _written(w, call, zeros, sizes, part)


def _slice_update(w: Writer, call: Call) -> Ref:
    x, part = call.inputs
    return _written(w, call, w.reshape(x, (None,)), w.dims(call.shape), part)


RULES: Mapping[str, Rule] = {
    "BroadcastTo": _broadcast,
    "ConcatV2": _joined,
    "ExpandDims": _reshaped,
    "Identity": _same,
    "Pack": _packed,
    "Reshape": _reshaped,
    "Squeeze": _reshaped,
    "StopGradient": _same,
    "StridedSlice": _sliced,
    "StridedSliceGrad": _slice_gradient,
    "TensorStridedSliceUpdate": _slice_update,
    "Transpose": _transposed,
}
