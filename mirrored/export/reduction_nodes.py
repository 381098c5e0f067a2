"""ONNX nodes for ops along axes: reductions, sorting, softmax, matrix products."""

from collections.abc import Mapping

from mirrored.export.elementwise_nodes import Rule, plain
from mirrored.export.node_writer import Call, Ref, Writer
from mirrored.ops.spec import INTEGERS, int32, int64


def _reduced(op: str) -> Rule:
    def rule(w: Writer, call: Call) -> Ref:
        return _along(w, call, op, call.inputs[0])

    return rule


def _along(w: Writer, call: Call, op: str, x: Ref) -> Ref:
    """Return a reduction of the call's axes."""
    axes = call.attrs["axis"]
    if not axes:
        return x
    return w.add(op, x, w.dims(axes), keepdims=int(call.attrs["keepdims"]))


def _of_flags(op: str) -> Rule:
    def rule(w: Writer, call: Call) -> Ref:
        # Of nothing the extremes are the farthest numbers, and not 0 and 1.
        extreme = _along(w, call, op, w.cast(call.inputs[0], int32))
        return w.compare("Greater", extreme, w.constant(0, int32))

    return rule


def _mean(w: Writer, call: Call) -> Ref:
    if call.dtype not in INTEGERS:
        return _along(w, call, "ReduceMean", call.inputs[0])
    total = _along(w, call, "ReduceSum", w.cast(call.inputs[0], int64))
    count = w.constant(1, int64)
    for axis in call.attrs["axis"]:
        count = w.add("Mul", count, w.squeeze(w.dims(call.shapes[0][axis : axis + 1]), [0]))
    return w.cast(w.add("Div", total, count), call.dtype)  # Which rounds towards 0, as it does.


def _place_of_extreme(op: str) -> Rule:
    def rule(w: Writer, call: Call) -> Ref:
        axis = call.attrs["axis"]
        places = w.add(op, call.inputs[0], dtype=int64, axis=axis, keepdims=0)
        return w.cast(places, call.dtype)

    return rule


def _along_axis(op: str) -> Rule:
    return lambda w, call: w.add(op, call.inputs[0], axis=call.attrs["axis"])


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
        operands.append(w.add("Transpose", ref, perm=order) if call.attrs[name] else ref)
    return w.add("MatMul", *operands)


def _bound(op: str) -> Rule:
    """Return the rule of counting the elements of rows that come before values."""

    def rule(w: Writer, call: Call) -> Ref:
        rows, values = call.inputs
        pair = w.unsqueeze(rows, [1]), w.unsqueeze(values, [2])
        before = w.cast(w.compare(op, *pair), int32)
        return w.cast(w.add("ReduceSum", before, w.dims([2]), keepdims=0), call.dtype)

    return rule


RULES: Mapping[str, Rule] = {
    "All": _of_flags("ReduceMin"),
    "Any": _of_flags("ReduceMax"),
    "ArgMax": _place_of_extreme("ArgMax"),
    "ArgMin": _place_of_extreme("ArgMin"),
    "BatchMatMulV2": _product,
    "Cumsum": _running_sum,
    "LogSoftmax": _along_axis("LogSoftmax"),
    "LowerBound": _bound("Less"),
    "MatMul": _product,
    "MatrixDeterminant": plain("Det"),
    "Max": _reduced("ReduceMax"),
    "Mean": _mean,
    "Min": _reduced("ReduceMin"),
    "Prod": _reduced("ReduceProd"),
    "Softmax": _along_axis("Softmax"),
    "Sum": _reduced("ReduceSum"),
    "TopKV2": _order,
    "UpperBound": _bound("LessOrEqual"),
}
