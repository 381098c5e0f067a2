"""ONNX nodes for ops that address elements by index: gathers and scatters.

What has a place outside belongs to nobody: ONNX would count it from the end, or refuse it.
"""

from collections.abc import Mapping
from functools import partial

from mirrored.export.elementwise_nodes import Rule
from mirrored.export.node_writer import Call, Ref, Writer
from mirrored.export.sizes import Dim
from mirrored.ops.spec import INDICES, int64


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
    start = w.add("Expand", value, w.add("Concat", _one_more(w, count), w.dims(inner), axis=0))
    if len(call.shapes[1]) != 1:
        ids = w.reshape(ids, (None,))
        data = w.add("Reshape", data, w.add("Concat", w.dims([-1]), w.dims(inner), axis=0))
    return _brought(w, start, count, ids, data, kind)


def _one_more(w: Writer, count: Dim) -> Ref:
    return w.add("Add", w.dims([count]), w.dims([1]))


def _scattered(w: Writer, call: Call, *, kind: str) -> Ref:
    matrix, places, rows = call.inputs
    count, width = call.shape
    row = w.add("Expand", w.constant(0, matrix.dtype), w.dims([1, width]))
    return _brought(w, w.add("Concat", matrix, row, axis=0), count, places, rows, kind)


RULES: Mapping[str, Rule] = {
    "FlatIndices": _flat,
    "GatherV2": _gathered,
    "TensorScatterAdd": partial(_scattered, kind="add"),
    "TensorScatterMax": partial(_scattered, kind="max"),
    "TensorScatterMin": partial(_scattered, kind="min"),
    "TensorScatterUpdate": partial(_scattered, kind="none"),
    "UnsortedSegmentMax": partial(_segments, kind="max"),
    "UnsortedSegmentMin": partial(_segments, kind="min"),
    "UnsortedSegmentProd": partial(_segments, kind="mul", initial=1),
    "UnsortedSegmentSum": partial(_segments, kind="add"),
}
