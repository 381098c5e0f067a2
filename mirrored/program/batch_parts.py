"""Cuts a batch of a lone device into parts, which threads of the host compute side by side.

The graph is rewritten: an operation that treats the rows of a batch alike becomes one node per
part, and a sum over rows becomes partial sums, which are added over a fixed binary tree. What
brings rows of different parts together is computed once, where the threads meet. Variables, slots
and whatever user code can see are as without parts; the update is cut by weights, not by parts.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from mirrored._numbers import even_sizes
from mirrored.ops.add_n import tree_sum
from mirrored.ops.op import OPS, Op
from mirrored.ops.spec import Shape, TensorSpec
from mirrored.program.dataflow import SHARED, Graph, Node, Value
from mirrored.program.rewriting import Rewriting

# A product of this many bytes that sums over a batch is cut by its rows: to add partial sums would
# take longer than to wait until all parts of the batch are there.
_LARGE = 1 << 20
# Of the operations of all products, those that have to be in parts: the others run on one thread.
_LEAST_SHARE = 0.9
# What sums of parts have the precision of: floats of 16 bits are rounded once, and so not added.
_SUMMED = (np.float32, np.float64)


class _Cut(NamedTuple):
    """A value that is computed part by part.

    Attributes:
        parts: The values of the parts.
        axis: The axis along which they are parts; None: they are summands.
        divisor: What the sum is divided by.
    """

    parts: tuple[Value, ...]
    axis: int | None
    divisor: int = 1


class _Call(NamedTuple):
    """A node, and the axis along which each of its inputs is cut; None: it is whole."""

    node: Node
    axes: tuple[int | None, ...]

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the node."""
        return self.node.attrs

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of the inputs."""
        return [value.spec.shape for value in self.node.inputs]


class _Plan(NamedTuple):
    """How a node is computed in parts.

    Attributes:
        axes: The axis along which each input is cut; None: every part reads all of it. A part has
            no other inputs.
        axis: The axis along which the result is cut; None: the results of the parts are summands.
        op: The operation of a part.
        repeats: The inputs of which every part reads the first rows.
        divisor: What the sum of the results is divided by.
        joins_sums: Whether all inputs are sums, of which a part reads its summands.
    """

    axes: Sequence[int | None]
    axis: int | None
    op: Op
    repeats: tuple[int, ...] = ()
    divisor: int = 1
    joins_sums: bool = False


_Rule = Callable[[_Call], _Plan | None]


def _some_rows(xp: Any, out: Any, a: Any, b: Any, *, first: int, **turned: bool) -> None:
    multiply: Any = OPS["MatMul"].kernel
    multiply(xp, out, a[:, first : first + out.shape[0]], b, **turned)


# Some rows of a product whose first operand is transposed.
SOME_ROWS = Op(
    name="MatMul",
    infer=lambda a, b, **_: a,
    kernel=_some_rows,
    flops=lambda out, a, b, first, **turned: 2 * math.prod(out.shape) * a.shape[0],
)


def in_parts(graph: Graph, count: int) -> Graph | None:
    """Return a graph of one replica as parts of its batch; None: too little of it can be cut.

    Args:
        graph: The graph, which stays as it is.
        count: The number of parts.
    """
    parts = _Parts(graph, count).graph()
    work, cut = (
        sum(node.flops for node in nodes)
        for nodes in (graph.nodes, [node for node in parts.nodes if node.replica != SHARED])
    )
    return parts if cut >= _LEAST_SHARE * work else None


class _Parts(Rewriting):
    """A copy of a graph whose rows are computed part by part."""

    def __init__(self, graph: Graph, count: int) -> None:
        super().__init__(graph)
        self._count = count
        self._cuts: dict[Value, _Cut] = {}
        for value in graph.inputs:
            rows = value.spec.shape[0] if value.spec.shape else 0
            if rows >= count:
                sizes = even_sizes(rows, count)
                self._cuts[value] = _Cut(tuple(_rows_of(value, sizes)), 0)

    def graph(self) -> Graph:
        """Return the graph."""
        for node in self.old.nodes:
            self._add(node)
        return self.copy(parts=self._count)

    def _add(self, node: Node) -> None:
        if self._cuts_result(node):
            return
        plan = self._plan(node)
        inputs = None if plan is None else self._inputs_of(node, plan)
        if plan is None or inputs is None:
            new = self.node(node)
            new.replica = new.output.replica = SHARED
            return
        values = []
        for part, own in enumerate(zip(*inputs, strict=True)):
            shape = list(node.output.spec.shape)
            if plan.axis is not None:
                source = next(i for i, axis in enumerate(plan.axes) if axis is not None)
                shape[plan.axis] = own[source].spec.shape[plan.axes[source] or 0]
            value = self._computed(plan.op, own, node.attrs, tuple(shape), node.output, part)
            values.append(value)
        self._cuts[node.output] = _Cut(tuple(values), plan.axis, plan.divisor)

    def _cuts_result(self, node: Node) -> bool:
        """Compute some rows per part of a large product that sums over the batch."""
        spec = node.output.spec
        if node.op is not OPS["MatMul"] or not node.attrs["transpose_a"]:
            return False
        if spec.dtype not in _SUMMED or node.output.nbytes < _LARGE:
            return False
        first = self._cut_of(node.inputs[0])
        if first is None or first.axis != 0 or spec.shape[0] < self._count:
            return False
        inputs = [self.of(value) for value in node.inputs]
        parts = []
        for part, (start, stop) in enumerate(_bounds(even_sizes(spec.shape[0], self._count))):
            attrs = {**node.attrs, "first": start}
            shape = (stop - start, spec.shape[1])
            parts.append(self._computed(SOME_ROWS, inputs, attrs, shape, node.output, part))
        self._cuts[node.output] = _Cut(tuple(parts), 0)
        return True

    def _plan(self, node: Node) -> _Plan | None:
        """Return how to compute a node in parts; None: as a whole."""
        known = [self._cut_of(value) for value in node.inputs]
        if all(cut is None for cut in known):
            return None
        if joined := _sums_joined(node, known):
            return joined
        axes = tuple(None if cut is None else cut.axis for cut in known)
        # An input is whole too: what was computed in parts decides.
        computed = tuple(
            None if value.base in self.old.inputs else axis
            for value, axis in zip(node.inputs, axes, strict=True)
        )
        axes = computed if any(axis is not None for axis in computed) else axes
        if all(axis is None for axis in axes):
            return None
        rule = RULES.get(node.op.name) or (_elementwise if node.op.elementwise else None)
        plan = None if rule is None else rule(_Call(node, axes))
        is_sum = plan is not None and plan.axis is None
        return None if is_sum and node.output.spec.dtype not in _SUMMED else plan

    def _inputs_of(self, node: Node, plan: _Plan) -> list[Sequence[Value]] | None:
        """Return what the parts of a node read, by input; None: it cannot be cut in this way."""
        cuts = [self._cut_of(value) for value in node.inputs]
        if plan.joins_sums:
            return [cut.parts for cut in cuts if cut is not None]
        sizes: Sequence[int] | None = None
        inputs: list[Sequence[Value] | None] = []
        for cut, axis in zip(cuts, plan.axes, strict=False):
            if cut is None or axis is None or cut.axis != axis:
                inputs.append(None)
                continue
            inputs.append(cut.parts)
            own = [part.spec.shape[axis] for part in cut.parts]
            if own != (sizes or own):
                return None
            sizes = own
        for i, (value, axis) in enumerate(zip(node.inputs, plan.axes, strict=False)):
            if inputs[i] is None:
                whole = self.of(value)
                if axis is None:
                    inputs[i] = [whole] * self._count
                elif axis or sizes is None or whole.spec.shape[:1] != (sum(sizes),):
                    return None  # It has no such parts, or they are not one after the other.
                else:
                    inputs[i] = _rows_of(whole, sizes, repeats=i in plan.repeats)
        return [parts for parts in inputs if parts is not None]

    def _cut_of(self, value: Value) -> _Cut | None:
        """Return the parts of a value that is a view of one with parts; None: it has none."""
        cut = self._cuts.get(value.base)
        if cut is None or value.base is value:
            return cut
        if cut.axis is None:
            parts = [self.part(value, part, value.offset) for part in cut.parts]
            return cut._replace(parts=tuple(parts))
        shape = value.spec.shape
        if cut.axis or not value.whole or not shape:
            return None
        row = math.prod(shape[1:])
        if not row or any(part.size % row for part in cut.parts):
            return None
        views = []
        for part in cut.parts:
            view = part.part(TensorSpec((part.size // row, *shape[1:]), value.spec.dtype))
            views.append(view)
        return _Cut(tuple(views), 0)

    # ------------------------------------------------------------------ wholes

    def _replacement(self, value: Value) -> Value:
        cut = self._cuts.get(value)
        if cut is None or value in self.old.inputs:
            return super()._replacement(value)
        if cut.axis is None:
            return self._sum(value, cut)
        attrs = {"axis": cut.axis}
        return self._computed(OPS["ConcatV2"], cut.parts, attrs, value.spec.shape, value)

    def _sum(self, value: Value, cut: _Cut) -> Value:
        """Return the sum of parts, over a fixed binary tree: as vectors, which threads share."""
        shape = (value.size,) if value.spec.shape else ()
        vector = TensorSpec(shape, value.spec.dtype)
        terms = [part.part(vector) if part.spec != vector else part for part in cut.parts]
        total = tree_sum(
            terms,
            lambda left, right: self._computed(OPS["AddV2"], (left, right), {}, shape, value),
        )
        if cut.divisor != 1:
            number = Value(TensorSpec((), value.spec.dtype), value.device)
            number.data = np.asarray(cut.divisor, value.spec.dtype)
            total = self._computed(OPS["RealDiv"], (total, number), {}, shape, value)
        return total if total.spec == value.spec else total.part(value.spec)

    def _computed(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        shape: Shape,
        like: Value,
        replica: int = SHARED,
    ) -> Value:
        """Return the result of a new node, of the dtype and on the device of another value."""
        output = Value(TensorSpec(shape, like.spec.dtype), like.device, replica)
        self.nodes.append(Node(op, tuple(inputs), attrs, output, replica))
        return output


def _rows_of(value: Value, sizes: Sequence[int], *, repeats: bool = False) -> list[Value]:
    """Return rows of a value, one part after the other, or the first ones for each part."""
    shape = value.spec.shape
    row = math.prod(shape[1:])
    starts = [0] * len(sizes) if repeats else [first for first, _ in _bounds(sizes)]
    return [
        value.part(TensorSpec((size, *shape[1:]), value.spec.dtype), start * row)
        for start, size in zip(starts, sizes, strict=True)
    ]


def _bounds(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    return pairwise(accumulate(sizes, initial=0))


# ---------------------------------------------------------------------- what an op does with rows


def _sums_joined(node: Node, cuts: Sequence[_Cut | None]) -> _Plan | None:
    """Return how partial sums are joined: first the summands of each part, then they are added."""
    if node.op.name != "ConcatV2" or node.attrs["axis"] != 0:
        return None
    if any(cut is None or cut.axis is not None or cut.divisor != 1 for cut in cuts):
        return None
    return _Plan([None] * len(cuts), None, node.op, joins_sums=True)


def _elementwise(call: _Call) -> _Plan | None:
    """Cut operands along one axis, counted from the end; those of one row are read by all parts."""
    ends = {
        axis - len(shape)
        for axis, shape in zip(call.axes, call.shapes, strict=True)
        if axis is not None
    }
    if len(ends) > 1:
        return None
    end = ends.pop()
    size = call.node.output.spec.shape[end]
    axes = [
        len(shape) + end if len(shape) >= -end and shape[end] == size else None
        for shape in call.shapes
    ]
    return _Plan(axes, len(call.node.output.spec.shape) + end, call.node.op)


def _relu(call: _Call) -> _Plan | None:
    # A recorded one has zeros of a length that divides the whole, and may not divide a part.
    axis = call.axes[0]
    return None if axis is None else _Plan([axis], axis, OPS["Relu"])


def _matrix_product(call: _Call) -> _Plan | None:
    """Cut the rows of the first operand, or along the axis that is summed over."""
    turned = call.attrs["transpose_a"], call.attrs["transpose_b"]
    first, second = call.axes
    inner = (0 if turned[0] else 1), (1 if turned[1] else 0)
    if first == 1 - inner[0]:
        return _Plan([first, None], 0, call.node.op)
    if first == inner[0] or (first is None and second == inner[1]):
        return _Plan(inner, None, call.node.op)
    return None


def _column_sums(call: _Call) -> _Plan | None:
    cut = call.axes[-1] == 0
    return _Plan([0] * len(call.axes), None, call.node.op) if cut else None


def _many_products(call: _Call) -> _Plan | None:
    """Cut the first of the axes of which each index has a product of its own."""
    shape = call.node.output.spec.shape
    ends = [(len(operand), operand[0]) for operand in call.shapes]
    return _first_rows(call, [i for i in range(2) if ends[i] == (len(shape), shape[0])])


def _reduction(call: _Call) -> _Plan | None:
    """Keep the axis where it is not reduced; where it is, sums and means are sums of the parts."""
    (axis,), reduced = call.axes, call.attrs["axis"]
    if axis is None:
        return None
    reduced = reduced if isinstance(reduced, tuple) else (reduced,)
    rank = len(call.shapes[0])
    reduced = tuple(number % rank for number in reduced)
    name = call.node.op.name
    if axis not in reduced:
        gone = 0 if call.attrs.get("keepdims") else sum(number < axis for number in reduced)
        return _Plan([axis], axis - gone, call.node.op)
    if name not in ("Sum", "Mean"):
        return None
    divisor = math.prod(call.shapes[0][number] for number in reduced) if name == "Mean" else 1
    return _Plan([axis], None, OPS["Sum"], divisor=divisor)


def _along_axis(call: _Call) -> _Plan | None:
    (axis,) = call.axes
    keeps = axis is not None and axis != call.attrs["axis"] % len(call.shapes[0])
    return _Plan([axis], axis, call.node.op) if keeps else None


def _transposition(call: _Call) -> _Plan | None:
    (axis,) = call.axes
    if axis is None:
        return None
    return _Plan([axis], call.attrs["perm"].index(axis), call.node.op)


def _first_rows(call: _Call, batches: Sequence[int]) -> _Plan | None:
    """Cut some inputs along the first axis, where they all have it, and all of the result too."""
    if any(call.axes[number] not in (0, None) for number in batches):
        return None
    axes = [0 if number in batches else None for number in range(len(call.axes))]
    return _Plan(axes, 0, call.node.op) if any(axis == 0 for axis in call.axes) else None


def _images(*batches: int) -> _Rule:
    """Return the rule of an operation on each image of some inputs; without: of all inputs."""
    return lambda call: _first_rows(call, batches or range(len(call.axes)))


def _filter_gradient(call: _Call) -> _Plan | None:
    return None if set(call.axes) - {0, None} else _Plan([0, 0], None, call.node.op)


def _classes(call: _Call) -> _Plan | None:
    """Cut the labels of a loss, and the scores of their examples along rows or columns."""
    if "by_class" in call.attrs:  # Labels, and the places where the examples' rows begin.
        return _Plan([0, 0], 0, call.node.op, repeats=(1,)) if call.axes[0] == 0 else None
    scores, *others = call.axes
    if scores is None or set(others) - {0, None}:
        return None
    is_loss = len(call.node.output.spec.shape) == 1
    return _Plan([scores, *[0] * len(others)], 0 if is_loss else scores, call.node.op)


def _joined(call: _Call) -> _Plan | None:
    axes = {axis for axis in call.axes if axis is not None}
    axis = axes.pop()
    if axes or call.attrs["axis"] % len(call.shapes[0]) == axis:
        return None
    return _Plan([axis] * len(call.axes), axis, call.node.op)


def _table(names_by_rule: Mapping[_Rule, str]) -> dict[str, _Rule]:
    return {name: rule for rule, names in names_by_rule.items() for name in names.split()}


RULES = _table(
    {
        _elementwise: (
            "BiasAdd DivNoNan Elu Erf Erfc MulNoNan SigmoidCrossEntropyWithLogits SqrtGrad Xdivy "
            "Xlog1py Xlogy"
        ),
        _relu: "Relu",
        _matrix_product: "MatMul",
        _column_sums: "BiasAddGrad",
        _many_products: "BatchMatMulV2",
        _reduction: "All Any ArgMax ArgMin Max Mean Min Prod Sum",
        _along_axis: "LogSoftmax Softmax",
        _transposition: "Transpose",
        _images(0): "Conv2D Conv3D DepthwiseConv2dNative",
        _images(1): (
            "Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput"
        ),
        _filter_gradient: (
            "Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter"
        ),
        _images(): (
            "SoftmaxCrossEntropyGrad SoftmaxCrossEntropyWithLogits "
            "AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad MaxPool MaxPool3D MaxPool3DGrad "
            "MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad"
        ),
        _classes: "SparseSoftmaxCrossEntropyGrad SparseSoftmaxCrossEntropyWithLogits",
        _joined: "ConcatV2",
    }
)
