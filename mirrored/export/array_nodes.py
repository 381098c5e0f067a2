"""ONNX nodes for ops on arrays: movements, gathers, scatters, reductions and products.

A row at an index outside its axis is ignored here: ONNX would count it from the end, or refuse it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from mirrored.export.elementwise_nodes import Rule, plain
from mirrored.export.node_writer import Call, Ref, Writer
from mirrored.export.sizes import Dim, Size
from mirrored.ops.spec import INDICES, INTEGERS, int32, int64

_FAR = 2**31 - 1  # Behind the end of any axis.


def _reshaped(w: Writer, call: Call) -> Ref:
    return w.reshape(call.inputs[0], call.attrs["shape"], call.shapes[0])


def _full_index(index: tuple[Any, ...], axes: int) -> list[Any]:
    """Return an index with an item for each axis, and None where there is a new one."""
    taken = sum(item is not None and item is not Ellipsis for item in index)
    whole = [slice(None)] * (axes - taken)
    place = next((i for i, item in enumerate(index) if item is Ellipsis), len(index))
    return [*index[:place], *whole, *index[place + 1 :]]


def _part(w: Writer, call: Call, x: Ref, rank: int) -> Ref:
    """Return the part of a value with `rank` axes that the call's index selects."""
    parts: list[tuple[Dim, Dim, int, int]] = []  # Start, end, axis and step of each.
    alone: list[int] = []
    axis = 0
    items = _full_index(call.attrs["index"], rank)
    for item in items:
        if item is None:
            continue
        if not isinstance(item, slice):
            first = _known(call, item)
            after = first.plus(1) if isinstance(first, Size) else first + 1
            parts.append((first, _FAR if first == -1 else after, axis, 1))
            alone.append(axis)
        elif item != slice(None):
            start, end, step = _ends(call, item)
            parts.append((start, end, axis, step))
        axis += 1
    result = w.add("Slice", x, *map(w.dims, zip(*parts, strict=True))) if parts else x
    result = w.squeeze(result, alone)
    kept = [item for item in items if item is None or isinstance(item, slice)]
    return w.unsqueeze(result, [place for place, item in enumerate(kept) if item is None])


def _known(call: Call, number: Any) -> int | Size:
    if isinstance(number, int | Size):
        return number
    raise call.refuse("begins or ends at an index that is no sum of products of the inputs' sizes")


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


def _gathered(w: Writer, call: Call) -> Ref:
    x, places = call.inputs
    axis = call.attrs["axis"]
    if places.dtype not in INDICES:
        places = w.cast(places, int64)
    if not call.attrs["outside"]:
        return w.add("Gather", x, places, axis=axis)
    inside = _inside(w, places, call.shapes[0][axis])
    zero = w.constant(0, places.dtype)
    rows = w.add("Gather", x, w.where(inside, places, zero), axis=axis)
    behind, rank = len(call.shapes[0]) - axis - 1, len(call.shapes[1])
    along = w.unsqueeze(inside, [rank + dim for dim in range(behind)])
    return w.where(along, rows, w.constant(0, x.dtype))


def _inside(w: Writer, places: Ref, size: Dim) -> Ref:
    """Return which places are those of an axis of some size."""
    end = w.cast(w.squeeze(w.dims([size]), [0]), places.dtype)
    above = w.compare("GreaterOrEqual", places, w.constant(0, places.dtype))
    return w.add("And", above, w.compare("Less", places, end))


def _flat(w: Writer, call: Call) -> Ref:
    """Write the numbers of rows, of matrices one after the other, for indices of several axes."""
    batch, outer, count = call.shape
    sizes = call.attrs["sizes"]
    indices = w.cast(call.inputs[0], int64)
    columns = w.reshape(indices, (batch, 1, count, len(sizes)))
    places = _numbered(w, batch, outer)
    inside: Ref | None = None
    for axis, size in enumerate(sizes):
        column = w.add("Gather", columns, w.constant(axis, int64), axis=3)
        places = w.add("Add", w.add("Mul", places, w.dims([size])), column)
        if call.attrs["ignore"]:
            fits = _inside(w, column, size)
            inside = fits if inside is None else w.add("And", inside, fits)
    return places if inside is None else w.where(inside, places, w.constant(-1, int64))


def _numbered(w: Writer, batch: Dim, outer: Dim) -> Ref:
    """Return the numbers of matrices, of which there are `outer` for each of a batch."""
    first = w.unsqueeze(w.range(batch), [1, 2])
    if outer == 1:
        return first
    second = w.unsqueeze(w.range(outer), [0, 2])
    return w.add("Add", w.add("Mul", first, w.dims([outer])), second)


def _brought(w: Writer, start: Ref, count: Dim, places: Ref, rows: Ref, kind: str) -> Ref:
    """Return rows brought to places in others, behind which there is one that is let go of."""
    index = w.cast(places, int64)
    last = w.squeeze(w.dims([count]), [0])
    kept = w.where(w.compare("Less", index, w.constant(0, int64)), last, index)
    moved = w.add("ScatterND", start, w.unsqueeze(kept, [1]), rows, reduction=kind)
    ends = (w.dims([end]) for end in (0, -1, 0))
    return w.add("Slice", moved, *ends)


def _segments(w: Writer, call: Call, *, kind: str, initial: float = 0) -> Ref:
    data, ids = call.inputs
    count, inner = call.attrs["num_segments"], call.shape[1:]
    value = w.constant(call.attrs.get("initial", initial), data.dtype)
    rows = w.add("Add", w.dims([count]), w.dims([1]))
    start = w.add("Expand", value, w.add("Concat", rows, w.dims(inner), axis=0))
    if len(call.shapes[1]) != 1:
        ids = w.reshape(ids, (None,))
        data = w.add("Reshape", data, w.add("Concat", w.dims([-1]), w.dims(inner), axis=0))
    return _brought(w, start, count, ids, data, kind)


def _scattered(w: Writer, call: Call, *, kind: str) -> Ref:
    matrix, places, rows = call.inputs
    count, width = call.shape
    row = w.add("Expand", w.constant(0, matrix.dtype), w.dims([1, width]))
    return _brought(w, w.add("Concat", matrix, row, axis=0), count, places, rows, kind)


def _reduced(w: Writer, call: Call, x: Ref | None = None, *, op: str) -> Ref:
    """Return a reduction of the call's axes."""
    axes, x = call.attrs["axis"], x or call.inputs[0]
    return w.add(op, x, w.dims(axes), keepdims=int(call.attrs["keepdims"])) if axes else x


def _of_flags(w: Writer, call: Call, *, op: str) -> Ref:
    # Of nothing the extremes are the farthest numbers, and not 0 and 1.
    extreme = _reduced(w, call, w.cast(call.inputs[0], int32), op=op)
    return w.compare("Greater", extreme, w.constant(0, int32))


def _mean(w: Writer, call: Call) -> Ref:
    if call.dtype not in INTEGERS:
        return _reduced(w, call, op="ReduceMean")
    total = _reduced(w, call, w.cast(call.inputs[0], int64), op="ReduceSum")
    count = w.constant(1, int64)
    for axis in call.attrs["axis"]:
        count = w.add("Mul", count, w.squeeze(w.dims(call.shapes[0][axis : axis + 1]), [0]))
    return w.cast(w.add("Div", total, count), call.dtype)  # Which rounds towards 0, as it does.


def _place_of_extreme(w: Writer, call: Call, *, op: str) -> Ref:
    places = w.add(op, call.inputs[0], dtype=int64, axis=call.attrs["axis"], keepdims=0)
    return w.cast(places, call.dtype)


def _along_axis(w: Writer, call: Call, *, op: str) -> Ref:
    return w.add(op, *call.inputs, axis=call.attrs["axis"])


def _running_sum(w: Writer, call: Call) -> Ref:
    flags = {name: int(call.attrs[name]) for name in ("exclusive", "reverse")}
    return w.add("CumSum", call.inputs[0], w.constant(call.attrs["axis"], int64), **flags)


def _order(w: Writer, call: Call) -> Ref:
    largest = int(not call.attrs["ascending"])
    count = w.dims([call.attrs["k"]])
    places = w.add("TopK", call.inputs[0], count, dtype=int64, output=1, largest=largest)
    return w.cast(places, call.dtype)


def _product(w: Writer, call: Call) -> Ref:
    operands = []
    names = ("transpose_a", "transpose_b")
    for ref, shape, name in zip(call.inputs, call.shapes, names, strict=True):
        axes = len(shape)
        order = [*range(axes - 2), axes - 1, axes - 2]
        operands.append(w.transpose(ref, order) if call.attrs[name] else ref)
    return w.add("MatMul", *operands)


def _bound(w: Writer, call: Call, *, comparison: str) -> Ref:
    """Count the elements of rows that come before values."""
    rows, values = call.inputs
    pair = w.unsqueeze(rows, [1]), w.unsqueeze(values, [2])
    before = w.cast(w.compare(comparison, *pair), int32)
    return w.cast(w.add("ReduceSum", before, w.dims([2]), keepdims=0), call.dtype)


def _packed(w: Writer, call: Call) -> Ref:
    return w.add("Concat", *(w.unsqueeze(value, [0]) for value in call.inputs), axis=0)


# Ops that move values and compute nothing, whatever their dtype.
MOVES: Mapping[str, Rule] = {
    "BroadcastTo": lambda w, call: w.add("Expand", call.inputs[0], w.dims(call.attrs["shape"])),
    "ConcatV2": partial(_along_axis, op="Concat"),
    "ExpandDims": _reshaped,
    "GatherV2": _gathered,
    "Identity": lambda w, call: call.inputs[0],
    "Pack": _packed,
    "Reshape": _reshaped,
    "Squeeze": _reshaped,
    "StopGradient": lambda w, call: call.inputs[0],
    "StridedSlice": lambda w, call: _part(w, call, call.inputs[0], len(call.shapes[0])),
    "StridedSliceGrad": _slice_gradient,
    "TensorScatterUpdate": partial(_scattered, kind="none"),
    "TensorStridedSliceUpdate": _slice_update,
    "Transpose": lambda w, call: w.transpose(call.inputs[0], call.attrs["perm"]),
}

RULES: Mapping[str, Rule] = {
    **MOVES,
    "All": partial(_of_flags, op="ReduceMin"),
    "Any": partial(_of_flags, op="ReduceMax"),
    "ArgMax": partial(_place_of_extreme, op="ArgMax"),
    "ArgMin": partial(_place_of_extreme, op="ArgMin"),
    "BatchMatMulV2": _product,
    "Cumsum": _running_sum,
    "FlatIndices": _flat,
    "LogSoftmax": partial(_along_axis, op="LogSoftmax"),
    "LowerBound": partial(_bound, comparison="Less"),
    "MatMul": _product,
    "MatrixDeterminant": plain("Det"),
    "Max": partial(_reduced, op="ReduceMax"),
    "Mean": _mean,
    "Min": partial(_reduced, op="ReduceMin"),
    "Prod": partial(_reduced, op="ReduceProd"),
    "Softmax": partial(_along_axis, op="Softmax"),
    "Sum": partial(_reduced, op="ReduceSum"),
    "TensorScatterAdd": partial(_scattered, kind="add"),
    "TensorScatterMax": partial(_scattered, kind="max"),
    "TensorScatterMin": partial(_scattered, kind="min"),
    "TopKV2": _order,
    "UnsortedSegmentMax": partial(_segments, kind="max"),
    "UnsortedSegmentMin": partial(_segments, kind="min"),
    "UnsortedSegmentProd": partial(_segments, kind="mul", initial=1),
    "UnsortedSegmentSum": partial(_segments, kind="add"),
    "UpperBound": partial(_bound, comparison="LessOrEqual"),
}
