"""What each operation does along the axis of examples: a table with a rule per operation.

An operation that is not in it, and that is not computed element by element, counts as one that
mixes examples.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from mirrored.ops.op import OPS, Op
from mirrored.ops.spec import Shape
from mirrored.training.shard_analysis.shard_values import (
    OWN,
    SAME,
    UNIT,
    Kind,
    Operation,
    Scale,
    ShardValue,
)

_ROWS, _SUM, _OTHER, _SAME = Kind.ROWS, Kind.SUM, Kind.OTHER, Kind.SAME
_SUMMED = -1  # Where an operation sums over examples, in place of their axis.


class Call(NamedTuple):
    """One call of an operation.

    Attributes:
        operation: Which one, and in which layer.
        inputs: What is known of its inputs.
        shapes: Their shapes.
        attrs: Its attributes.
        shape: The shape of its result.
        truncates: Whether it turns floats into integers.
        examples: The number of examples of the shard, which divides no other size.
    """

    operation: Operation
    inputs: tuple[ShardValue, ...]
    shapes: tuple[Shape, ...]
    attrs: Mapping[str, Any]
    shape: Shape
    truncates: bool
    examples: int

    @property
    def mixing(self) -> frozenset[Operation]:
        """The operations that mixed rows of its inputs."""
        return frozenset[Operation]().union(*[value.mixing for value in self.inputs])

    def other(self) -> ShardValue:
        """Return a result that is neither rows nor a sum, by this operation or an earlier one."""
        others = [value for value in self.inputs if value.kind is _OTHER]
        sources = frozenset().union(*(value.sources for value in others))
        examples = {value.example for value in self.inputs if value.kind is not _SAME}
        example = examples.pop() if others and len(examples) == 1 else None
        sources = sources or frozenset([self.operation])
        return ShardValue(_OTHER, sources=sources, mixing=self.mixing, example=example)

    def mixed(self, axis: int | None = None) -> ShardValue:
        """Return a result in whose rows this operation brings those of other examples."""
        axes = example_axes(self.shape, self.examples)
        if axis is None and not axes:
            return self.other()
        mixing = self.mixing | {self.operation}
        return ShardValue(_ROWS, axes[0] if axis is None else axis, mixing=mixing, blocks=None)


Rule = Callable[[Call], ShardValue]
# From the scales of the inputs to that of the result; None: no one scale.
_Scales = Callable[[list[ShardValue]], Scale | None]


def example_axes(shape: Shape, examples: int) -> list[int]:
    """Return the axes whose size is a multiple of the number of examples.

    Args:
        shape: A shape.
        examples: The number of examples, which divides no other size.
    """
    return [axis for axis, size in enumerate(shape) if size and size % examples == 0]


def rule_of(op: Op) -> Rule:
    """Return the rule of an operation.

    Args:
        op: The operation.
    """
    # An op may be one that computes in float32 what is registered for it.
    return RULES.get(op.name) or (_NONLINEAR if OPS.get(op.name, op).elementwise else unknown)


def unknown(call: Call) -> ShardValue:
    """Return what an operation without a rule makes: it counts as mixing."""
    if all(value.kind is _SAME for value in call.inputs):
        return ShardValue(scale=_no_scale(call.inputs))
    return call.mixed() if any(value.kind is _ROWS for value in call.inputs) else call.other()


# ---------------------------------------------------------------------- element by element


def _elementwise(scales: _Scales, linear: Callable[[Call], bool]) -> Rule:
    """Return the rule of an operation on broadcast elements.

    Args:
        scales: The scale of the result.
        linear: Whether a sum over examples stays one.
    """

    def rule(call: Call) -> ShardValue:
        rank, mixing = len(call.shape), call.mixing
        rows = [
            (value, value.axis + rank - len(shape))
            for value, shape in zip(call.inputs, call.shapes, strict=True)
            if value.kind is _ROWS
        ]
        axes = sorted({axis for _, axis in rows})
        of_shard = [value for value in call.inputs if value.kind in (_SUM, _OTHER)]
        if axes:
            plain = [SAME if value in of_shard else value for value in call.inputs]
            scale = scales(plain)
            if len(axes) > 1 or scale is None:
                mixing |= {call.operation}
            for value in of_shard:
                mixing |= value.sources
            step = _step_after(call)
            if step is None:
                mixing |= {call.operation}
            result = ShardValue(_ROWS, axes[0], scale or UNIT, step=step or 0)
            return _in_order(call, result, mixing)
        scale = scales(list(call.inputs))
        if not of_shard:
            return ShardValue(scale=scale)
        if any(value.kind is _OTHER for value in of_shard) or scale is None or not linear(call):
            return call.other()
        sources = frozenset().union(*(value.sources for value in of_shard))
        return ShardValue(_SUM, scale=scale, sources=sources, mixing=mixing)

    return rule


def _step_after(call: Call) -> int | None:
    """Return the step of places after an operation; None: it computes with places as numbers."""
    steps = [value.step for value in call.inputs]
    if not any(steps) or call.operation.name in _KEEP_PLACES:
        return steps[0]
    if call.operation.name.startswith("Sparse"):  # They are labels: columns of the same example.
        return 0
    # The index of an entry in a row of several.
    is_index = call.operation.name == "AddV2" and sorted(steps)[0] == 0 and max(steps) > 1
    return max(steps) if is_index else None


def _in_order(call: Call, result: ShardValue, mixing: frozenset[Operation]) -> ShardValue:
    """Return rows that were computed from rows, which mix examples if their orders differ."""
    rows = [value for value in call.inputs if value.kind is _ROWS]
    blocks = {value.blocks for value in rows if value.blocks is not None}
    if len(blocks) > 1:
        mixing |= {call.operation}
    orders = {value.reordered for value in rows}
    if len(orders) > 1:
        mixing, orders = mixing.union(*orders), set()
    reordered = frozenset[Operation]().union(*orders)
    return result._replace(blocks=min(blocks, default=None), mixing=mixing, reordered=reordered)


def _added(values: list[ShardValue]) -> Scale | None:
    """Return the scale of a sum, whose terms have one scale."""
    terms = [value for value in values if not value.is_zero] or values[:1]
    sums = {value.scale for value in terms if value.kind is not _SAME}
    constants = {value.scale for value in terms if value.kind is _SAME}
    if len(sums) > 1 or None in sums | constants:
        return None
    if not sums:
        return constants.pop() if len(constants) == 1 else None
    (scale,) = sums
    of_shard = any(value.kind is _SUM for value in terms)
    for constant in constants:
        # What is the same everywhere is the mean of the shards' means, and as 1 / replicas a sum.
        terms_of = (constant.times(Scale(-1, 0)), constant.times(Scale(0, 1))) if constant else ()
        if scale not in (terms_of if of_shard else (constant,)):
            return None
    return scale


def _no_scale(values: Iterable[ShardValue]) -> Scale | None:
    """Return the scale of a function that has one of unscaled arguments alone."""
    return UNIT if all(value.scale == UNIT for value in values) else None


def _product(powers: tuple[int, ...]) -> _Scales:
    """Return the scale of a product of powers of the arguments."""

    def scales(values: list[ShardValue]) -> Scale | None:
        scale = UNIT
        for value, power in zip(values, powers, strict=False):
            if value.scale is None:
                return None
            scale = scale.times(value.scale, power)
        return scale

    return scales


def _of_shard(call: Call) -> list[int]:
    return [i for i, value in enumerate(call.inputs) if value.kind is not _SAME]


def _select(call: Call) -> ShardValue:
    condition, *_ = call.inputs
    if condition.kind in (_SUM, _OTHER):
        return _NONLINEAR(call)
    chosen = _ADDED(call._replace(inputs=call.inputs[1:], shapes=call.shapes[1:]))
    if condition.kind is _ROWS and chosen.kind is _SAME:
        return _NONLINEAR(call)
    if condition.kind is _ROWS and chosen.kind is not _ROWS:  # A shard's number in some rows.
        return call.mixed()
    return chosen._replace(mixing=chosen.mixing | condition.mixing)


_NONLINEAR = _elementwise(_no_scale, lambda call: False)
_ADDED = _elementwise(_added, lambda call: True)
_LINEAR = _elementwise(_product((1,)), lambda call: True)
_PRODUCT = _elementwise(_product((1, 1)), lambda call: len(_of_shard(call)) == 1)


def _cast(call: Call) -> ShardValue:
    return (_NONLINEAR if call.truncates else _LINEAR)(call)


def _times(call: Call) -> ShardValue:
    zero = next((value for value in call.inputs if value.is_zero), None)
    rows = any(value.kind is _ROWS for value in call.inputs)
    return _PRODUCT(call) if rows or zero is None else zero


_DIVIDED = _elementwise(_product((1, -1)), lambda call: _of_shard(call) == [0])
_HOMOGENEOUS = _elementwise(_product((1,)), lambda call: False)
_UNSCALED = _elementwise(_product(()), lambda call: False)


# ---------------------------------------------------------------------- along axes


def _reduction(scale: Scale | None) -> Rule:
    """Return the rule of a reduction; the scale that a sum over examples gets, None: it is none."""

    def rule(call: Call) -> ShardValue:
        (value,) = call.inputs
        axes = call.attrs["axis"]
        axes = axes if isinstance(axes, tuple) else (axes,)
        if value.kind is not _ROWS:
            keeps = value.kind is _SAME or scale is not None
            return value if keeps else call.other()
        if value.axis not in axes:
            gone = 0 if call.attrs.get("keepdims") else sum(axis < value.axis for axis in axes)
            return value.moved(value.axis - gone)
        if scale is None or value.scale is None:
            return call.other()
        sources = frozenset([call.operation])
        return ShardValue(_SUM, 0, value.scale.times(scale), sources, value.mixing)

    return rule


def _bias_gradient(call: Call) -> ShardValue:
    axes = tuple(range(len(call.shapes[0]) - 1))
    return _reduction(UNIT)(call._replace(attrs={"axis": axes}))


def _along(axes: Callable[[Call], tuple[int, ...]], scales: _Scales) -> Rule:
    """Return the rule of an operation that combines the elements along some axes.

    Args:
        axes: From a call to the axes, counted from the start.
        scales: The scale of the result.
    """

    def rule(call: Call) -> ShardValue:
        rows = [value for value in call.inputs if value.kind is _ROWS]
        if not rows:
            return _NONLINEAR(call)
        if any(value.axis != rows[0].axis or value.axis in axes(call) for value in rows):
            return call.mixed()
        return _elementwise(scales, lambda _: False)(_of_rank(call))._replace(axis=rows[0].axis)

    return rule


def _of_rank(call: Call) -> Call:
    """Return a call in which all inputs count as having the rank of the result."""
    return call._replace(shapes=(call.shape,) * len(call.inputs))


def _axis(call: Call) -> tuple[int, ...]:
    axis: int = call.attrs["axis"]
    return (axis % max(len(call.shapes[0]), 1),)


def _last(call: Call) -> tuple[int, ...]:
    return (len(call.shapes[0]) - 1,)


def _all_but_first(call: Call) -> tuple[int, ...]:
    return tuple(range(1, len(call.shapes[0])))


def _last_two(call: Call) -> tuple[int, ...]:
    rank = len(call.shapes[0])
    return (rank - 2, rank - 1)


def _multiplied(place_of: Callable[[Call, int, int], int | None]) -> Rule:
    """Return the rule of an operation that is linear in both of its inputs.

    Args:
        place_of: From a call, the number of an input and the axis of its examples to their axis in
            the result; `_SUMMED`: it sums over them; None: it brings them together otherwise.
    """

    def rule(call: Call) -> ShardValue:
        places = {
            place_of(call, number, value.axis)
            for number, value in enumerate(call.inputs)
            if value.kind is _ROWS
        }
        if not places:
            scaled = _PRODUCT(call)
            return scaled if scaled.kind is not _OTHER else call.other()
        sums = [value for value in call.inputs if value.kind in (_SUM, _OTHER)]
        mixing = call.mixing.union(*(value.sources for value in sums))
        scale = _product((1, 1))(list(call.inputs)) or UNIT
        place = places.pop()
        if places or place is None:
            return call.mixed()._replace(scale=scale)
        if place == _SUMMED:
            sources = frozenset([call.operation])
            return ShardValue(_SUM, 0, scale, sources, _in_order(call, SAME, mixing).mixing)
        return _in_order(call, ShardValue(_ROWS, place, scale), mixing)

    return rule


def _place_in_matrix_product(call: Call, number: int, axis: int) -> int:
    """Return the place of examples along rows, columns, the sum, or in front of them."""
    from_end = len(call.shapes[number]) - axis
    if from_end > 2:
        return len(call.shape) - from_end
    is_turned = call.attrs[("transpose_a", "transpose_b")[number]]
    is_summed = (from_end == 1) == ((number == 0) != is_turned)
    return _SUMMED if is_summed else len(call.shape) - 2 + number


def _place_among_images(number: int) -> Callable[[Call, int, int], int | None]:
    """Return the place of examples that are the images of the input with a number."""
    return lambda _, other, axis: 0 if (other, axis) == (number, 0) else None


# ---------------------------------------------------------------------- where elements are


def _reshape(call: Call) -> ShardValue:
    value, *_ = call.inputs
    if value.kind is not _ROWS:
        return value
    axes = example_axes(call.shape, call.examples)
    if not axes:
        return call.other()
    shape = call.shapes[0]
    before = math.prod(shape[: value.axis])
    size = shape[value.axis]
    for blocks in [value.blocks] if value.blocks else [1, size // call.examples]:
        for axis in axes:
            front = math.prod(call.shape[:axis])
            inside, rest = divmod(before * blocks, front)
            if not rest and inside and call.shape[axis] % (inside * call.examples) == 0:
                is_kept = value.blocks is None and call.shape[axis] == size and front == before
                return value._replace(axis=axis, blocks=None if is_kept else inside)
    return call.mixed()


def _transpose(call: Call) -> ShardValue:
    (value,) = call.inputs
    is_rows = value.kind is _ROWS
    return value.moved(call.attrs["perm"].index(value.axis)) if is_rows else value


def _broadcast(call: Call) -> ShardValue:
    (value,) = call.inputs
    if value.kind is _ROWS:
        return value.moved(value.axis + len(call.shape) - len(call.shapes[0]))
    axes = example_axes(call.shape, call.examples)
    if not axes:
        return value
    if value.kind is _SAME:
        return value._replace(kind=_ROWS, axis=axes[0], blocks=None)
    return ShardValue(_ROWS, axes[0], mixing=value.mixing | value.sources, blocks=None)


def _joined(call: Call) -> ShardValue:
    axis = call.attrs["axis"] % len(call.shape)
    rows = [value for value in call.inputs if value.kind is _ROWS]
    if not rows or rows[0].axis != axis:
        return _of_all_examples(call, axis) or _ADDED(_of_rank(call))
    if len(rows) < len(call.inputs):
        return call.other()
    sizes = [shape[axis] for shape in call.shapes]
    inside = {
        size // (value.blocks * call.examples)
        for value, size in zip(rows, sizes, strict=True)
        if value.blocks
    }
    block = call.examples * min(inside, default=1)
    if len(inside) > 1 or any(size % block for size in sizes):
        return call.mixed(axis)
    equal = tuple(value._replace(blocks=None) for value in rows)
    return _ADDED(_of_rank(call._replace(inputs=equal)))._replace(blocks=sum(sizes) // block)


def _stacked(call: Call) -> ShardValue:
    moved = tuple(value.moved(value.axis + 1) for value in call.inputs)
    return _of_all_examples(call, 0) or _ADDED(_of_rank(call._replace(inputs=moved)))


def _of_all_examples(call: Call, axis: int) -> ShardValue | None:
    """Return the rows that were computed for one example after the other; None: they were not."""
    if [value.example for value in call.inputs] != [*range(call.examples)]:
        return None
    return ShardValue(_ROWS, axis, mixing=call.mixing)


def _sliced(call: Call) -> ShardValue:
    value, *_ = call.inputs
    if value.kind is not _ROWS:
        return value
    index = call.attrs["index"]
    axis, item = _item_of(index, call.shapes[0], value.axis)
    size = call.shapes[0][value.axis]
    if item == slice(None, None, -1) and len(call.shape) == len(call.shapes[0]):
        return value._replace(axis=axis, reordered=value.reordered | {call.operation})
    if not isinstance(item, slice):
        start, stop, step = item % size, item % size + 1, 1
    else:
        start, stop, step = item.indices(size)
    block = size // value.blocks if value.blocks else call.examples
    if isinstance(item, slice) and stop > start:
        if step == 1 and start % block == 0 and stop % block == 0:
            blocks = (stop - start) // block if value.blocks else None
            return value._replace(axis=axis, blocks=blocks)
        if start < step and block // call.examples % step == 0 and stop == size:
            return value.moved(axis)
    is_example = size == call.examples and stop == start + 1 and not value.reordered
    return call.other()._replace(example=start if is_example else None)


def _item_of(index: tuple[Any, ...], shape: Shape, axis: int) -> tuple[int, Any]:
    """Return where an axis is after a slice, and what it is sliced by."""
    source = result = 0
    for item in index:
        if item is None:
            result += 1
            continue
        if item is Ellipsis:
            skipped = len(shape) - sum(entry not in (None, Ellipsis) for entry in index)
            if source <= axis < source + skipped:
                return result + axis - source, slice(None)
            source, result = source + skipped, result + skipped
            continue
        if source == axis:
            return result, item
        source += 1
        result += isinstance(item, slice)
    return result + axis - source, slice(None)


def _slice_gradient(call: Call) -> ShardValue:
    (value,) = call.inputs
    axes = example_axes(call.shape, call.examples)
    if value.kind is not _ROWS or not axes:
        return value
    blocks = (value.blocks or 1) * call.shape[axes[0]] // call.shapes[0][value.axis]
    return value._replace(axis=axes[0], blocks=blocks)


def _updated_slice(call: Call) -> ShardValue:
    value, part = call.inputs
    if part.kind is _SAME or (value.kind is _ROWS and part.kind is _ROWS):
        return value._replace(mixing=call.mixing)
    return unknown(call)


def _gathered(call: Call) -> ShardValue:
    value, indices = call.inputs
    axis = call.attrs["axis"]
    width = len(call.shapes[1])
    if value.kind is _ROWS and value.axis == axis:
        inside = call.shapes[0][axis] // call.examples if value.blocks == 1 else 0
        if indices.step and indices.step in (OWN, inside):
            rows = value._replace(axis=axis + indices.axis, blocks=indices.blocks)
            return rows._replace(mixing=call.mixing)
        return call.mixed()
    if indices.kind in (_SUM, _OTHER):
        return call.other() if value.kind is not _ROWS else call.mixed()
    if value.kind is _ROWS:
        moved = value.axis if value.axis < axis else value.axis + width - 1
        return value.moved(moved) if indices.kind is _SAME else call.mixed(moved)
    if indices.kind is _ROWS:
        if value.kind is not _SAME:
            return call.mixed()
        result = ShardValue(_ROWS, axis + indices.axis, value.scale)
        return _in_order(call, result, call.mixing)
    return value


def _flat_indices(call: Call) -> ShardValue:
    (value,) = call.inputs
    if value.kind is not _ROWS:
        return value
    axes = example_axes(call.shape, call.examples)
    if not axes:
        return call.other()
    # Along the axes that inputs and indices share, each index is of its own example.
    is_own = value.step == 1 or bool(example_axes(call.attrs["batch"], call.examples))
    return value._replace(axis=axes[0], step=OWN if is_own else 0)


def _segments(additive: bool) -> Rule:
    def rule(call: Call) -> ShardValue:
        data, ids, *_ = call.inputs
        if data.kind is not _ROWS and ids.kind is not _ROWS:
            return data if additive and ids.kind is _SAME else call.other()
        axes = example_axes(call.shape, call.examples)
        if axes:
            return data._replace(kind=_ROWS, axis=axes[0]) if ids.step else call.mixed()
        if not additive or data.scale is None or ids.scale != UNIT:
            return call.other()
        mixing = _in_order(call, SAME, call.mixing).mixing
        return ShardValue(_SUM, 0, data.scale, frozenset([call.operation]), mixing)

    return rule


def _scattered(call: Call) -> ShardValue:
    value, places, rows = call.inputs
    if value.kind is _ROWS and places.kind is _ROWS and places.step:
        return value._replace(mixing=call.mixing)
    if places.kind is _SAME and rows.kind is _SAME:
        return value
    return unknown(call)


def _drawn(call: Call) -> ShardValue:
    axes = example_axes(call.shape, call.examples)
    if not axes:
        return SAME
    if call.operation.name not in DRAWS:
        return ShardValue(_ROWS, axes[0], blocks=None)
    return ShardValue(_ROWS, 0) if axes[0] == 0 and _is_part(call) else call.mixed()


def _is_part(call: Call) -> bool:
    """Return whether random numbers are the replica's part of those of the batch."""
    return any(call.attrs.get("part", (0, call.attrs.get("first", 0)))[1:])


def _sampled(call: Call) -> ShardValue:
    rows = call._replace(inputs=call.inputs[1:], shapes=call.shapes[1:])
    return _along(_last, _no_scale)(rows) if _is_part(call) else unknown(call)


def _looked_up(call: Call) -> ShardValue:
    """Return where values are in sorted rows: of their own example, or the same for all."""
    rows, values = call.inputs
    if rows.kind is _SAME:
        return values if values.kind is _ROWS else _NONLINEAR(_of_rank(call))
    return _along(_last, _no_scale)(call)


def _table(rows: Mapping[Rule, str]) -> dict[str, Rule]:
    return {name: rule for rule, names in rows.items() for name in names.split()}


# They move values, so that places of examples stay what they are.
_KEEP_PLACES = ("Cast", "ConcatV2", "Identity", "Pack", "StopGradient")
DRAWS = (
    *("RandomStandardNormal", "RandomUniform", "RandomUniformInt", "StatelessRandomGammaV3"),
    *("StatelessRandomNormalV2", "StatelessRandomPoisson", "StatelessRandomUniformFullIntV2"),
    *("StatelessRandomUniformIntV2", "StatelessRandomUniformV2", "StatelessTruncatedNormalV2"),
)
RULES = _table(
    {
        _ADDED: "AddN AddV2 BiasAdd Sub",
        _cast: "Cast",
        _LINEAR: "CheckNumerics Identity Neg StopGradient",
        _times: "Mul MulNoNan",
        _DIVIDED: "DivNoNan RealDiv Xdivy",
        _HOMOGENEOUS: "Abs Relu ReluGrad SigmoidGrad TanhGrad",
        _elementwise(_product((1, -1)), lambda call: False): "SqrtGrad",
        _elementwise(_product((2,)), lambda call: False): "Square",
        _elementwise(_product((-1,)), lambda call: False): "Reciprocal",
        _UNSCALED: "IsFinite IsInf IsNan OnesLike Sign ZerosLike",
        _NONLINEAR: (
            "Digamma Elu Erf Erfc Erfinv FloorMod Lgamma Ndtri SigmoidCrossEntropyWithLogits "
            "Xlog1py Xlogy"
        ),
        _select: "SelectV2",
        _reduction(UNIT): "Sum",
        _reduction(Scale(-1, 0)): "Mean",
        _reduction(None): "All Any ArgMax ArgMin Max Min Prod",
        _bias_gradient: "BiasAddGrad",
        _along(_axis, _no_scale): "Cumprod CumulativeLogsumexp LogSoftmax Softmax",
        _along(_axis, _product((1,))): "Cumsum",
        _along(_last, _product((1,))): "TopKV2",
        _along(_last, _product((1, 1, 1))): (
            "SoftmaxCrossEntropyGrad SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyGrad "
            "SparseSoftmaxCrossEntropyWithLogits"
        ),
        _along(_last_two, _no_scale): (
            "Cholesky LogMatrixDeterminant MatrixDeterminant MatrixInverse MatrixSolve "
            "MatrixTriangularSolve Qr SelfAdjointEigV2 Svd"
        ),
        _multiplied(_place_in_matrix_product): "BatchMatMulV2 MatMul",
        _multiplied(_place_among_images(0)): "Conv2D Conv3D DepthwiseConv2dNative",
        _multiplied(_place_among_images(1)): (
            "Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput"
        ),
        _multiplied(lambda _, number, axis: _SUMMED if axis == 0 else None): (
            "Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter"
        ),
        _along(_all_but_first, _product((1,))): (
            "AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad MaxPool MaxPool3D"
        ),
        _along(_all_but_first, _product((0, 0, 1))): (
            "MaxPool3DGrad MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad"
        ),
        _reshape: "ExpandDims Reshape Squeeze",
        _transpose: "Transpose",
        _broadcast: "BroadcastTo",
        _joined: "ConcatV2",
        _stacked: "Pack",
        _sliced: "StridedSlice",
        _slice_gradient: "StridedSliceGrad",
        _updated_slice: "TensorStridedSliceUpdate",
        _gathered: "GatherV2",
        _flat_indices: "FlatIndices",
        _segments(True): "UnsortedSegmentSum",
        _segments(False): "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd",
        _scattered: "TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterUpdate",
        _looked_up: "LowerBound UpperBound",
        _drawn: " ".join(
            ("Assert Fill PrintV2 RngReadAndSkip StatelessRandomGetKeyCounter WriteSummary", *DRAWS)
        ),
        _sampled: "StatelessMultinomial",
    }
)
