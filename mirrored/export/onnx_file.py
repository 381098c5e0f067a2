"""Writes a traced function as an ONNX file, atomically, by the table of ops with a mapping to ONNX.

All of it is made and checked in memory first, so that what cannot be written leaves no file.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mirrored._files import as_path, check_replaceable, replacing
from mirrored._types import PathLike
from mirrored.export import array_nodes, elementwise_nodes, window_nodes
from mirrored.export.elementwise_nodes import Rule
from mirrored.export.node_writer import OPSET, Call, Ref, Writer, onnx_module, onnx_type
from mirrored.export.recordings import Call as Function
from mirrored.export.recordings import GraphInput, Trace, Traced, traced
from mirrored.export.sizes import Band, Counted, Dim, Numbers, Repeated
from mirrored.ops.spec import float32, is_narrow
from mirrored.version import VERSION

_IR_VERSION = 8  # That of the first release with this opset, so that older programs read it too.
_LARGEST = 2**31 - 2**20  # Bytes: a message of protobuf has at most 2 GiB.
_WHAT = "file of ONNX"

RULES: Mapping[str, Rule] = {
    **elementwise_nodes.RULES,
    **array_nodes.RULES,
    **window_nodes.RULES,
}
# They move values and compute nothing, whatever their dtype.
_MOVES = array_nodes.MOVES.keys() | {"Cast", "SelectV2"}


def export_function(
    function: Function,
    inputs: Sequence[GraphInput],
    output_names: Callable[[], Sequence[str]],
    filepath: PathLike,
    name: str,
) -> None:
    """Write a function of tensors as a file of ONNX.

    Args:
        function: From a list of tensors to a list of tensors, by operations.
        inputs: Its inputs.
        output_names: Returns what its outputs are called, once it was called.
        filepath: The file.
        name: What the graph is called.

    Raises:
        ImportError: The package onnx is not installed.
        NotImplementedError: Something in it has no mapping to ONNX.
        OSError: The file cannot be written.
    """
    onnx = onnx_module()
    check_replaceable(as_path(filepath, _WHAT), _WHAT)
    trace = traced(function, inputs, RULES)
    model = _Model(onnx, trace, inputs, output_names()).message(name)
    data = model.SerializeToString()
    onnx.checker.check_model(data, full_check=True)
    with replacing(filepath, _WHAT) as file:
        file.write(data)


class _Model:
    """Makes the message of a trace."""

    def __init__(
        self, onnx: Any, trace: Trace, inputs: Sequence[GraphInput], output_names: Sequence[str]
    ) -> None:
        self._onnx = onnx
        self._trace = trace
        self._refs: dict[Traced, Ref] = {}
        w = self._writer = Writer(self._places_of_sizes(inputs))
        # Users give and get what has these names: no others are so called.
        for value, input_ in zip(trace.inputs, inputs, strict=True):
            self._refs[value] = Ref(w.name(input_.name), value.dtype)
        self._outputs = [w.name(name) for name in output_names]

    def _places_of_sizes(self, inputs: Sequence[GraphInput]) -> list[tuple[Ref, int]]:
        places: dict[int, tuple[Ref, int]] = {}
        for value, input_ in zip(self._trace.inputs, inputs, strict=True):
            for axis, size in enumerate(value.shape):
                place = None if isinstance(size, int | None) else size.alone
                if place is not None:
                    places.setdefault(place, (Ref(input_.name, input_.dtype), axis))
        return [places[place] for place in sorted(places)]

    def message(self, name: str) -> Any:
        """Return the message.

        Args:
            name: What the graph is called.
        """
        w, helper = self._writer, self._onnx.helper
        for step in self._trace.steps:
            refs = tuple(map(self._ref, step.inputs))
            shapes, output = tuple(value.shape for value in step.inputs), step.output
            call = Call(step.op, refs, shapes, step.attrs, output.dtype, output.shape, step.layer)
            self._refs[step.output] = written(w, call)
        w.call = None
        results = list(zip(self._outputs, self._trace.results, strict=True))
        for name_, result in results:
            ref = self._ref(result)
            w.nodes.append(helper.make_node("Identity", [ref.name], [name_], name_))
        w.leave_out_unused(self._outputs)
        inputs = [self._info(self._refs[value].name, value) for value in self._trace.inputs]
        outputs = [self._info(name_, result) for name_, result in results]
        graph = helper.make_graph(w.nodes, name, inputs, outputs)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=_IR_VERSION,
            producer_name="mirrored",
            producer_version=VERSION,
        )
        self._add_constants(model.graph.initializer)
        return model

    def _add_constants(self, to: Any) -> None:
        """Write the weights and constants right into the message: they may be large."""
        used = {name for node in self._writer.nodes for name in node.input}
        constants = {k: array for k, array in self._writer.constants.items() if k in used}
        size = sum(array.nbytes for array in constants.values())
        if size > _LARGEST:
            raise NotImplementedError(
                "An ONNX file must have at most 2 GiB. Received: a model with weights and "
                f"constants of {size:,} bytes. Export it in parts, or with weights of fewer bits."
            )
        for name, value in constants.items():
            tensor = to.add(name=name, dims=value.shape)
            tensor.data_type = onnx_type(value.dtype)
            tensor.raw_data = value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()

    def _info(self, name: str, value: Traced) -> Any:
        names = self._trace.samples.names
        shape = [size if isinstance(size, int) else _dim_name(size, names) for size in value.shape]
        kind = onnx_type(value.dtype)
        return self._onnx.helper.make_tensor_value_info(name, kind, shape)

    # ------------------------------------------------------------------ values

    def _ref(self, value: Traced) -> Ref:
        if value not in self._refs:
            self._refs[value] = self._new(value)
        return self._refs[value]

    def _new(self, value: Traced) -> Ref:
        w = self._writer
        if value.variable is not None:
            name = value.variable.name.removesuffix(":0")
            return w.weight(name, np.asarray(value.variable.numpy()))
        constant = value.constant
        make = _MAKERS.get(type(constant))
        if make is not None:
            return w.cast(make(w, constant), value.dtype)
        return w.constant(constant.value if constant is not None else ())


def _dim_name(size: Dim, names: Sequence[str]) -> str | None:
    place = None if isinstance(size, int | None) else size.alone
    return None if place is None else names[place]


def _repeated(w: Writer, constant: Any) -> Ref:
    return w.add("Expand", w.constant(constant.value), w.dims(constant.shape))


def _counted(w: Writer, constant: Any) -> Ref:
    start, step = (w.constant(bound) for bound in constant.value)
    numbers = w.cast(w.range(constant.size), constant.value.dtype)
    counted = w.add("Add", w.add("Mul", numbers, step), start)
    return w.unsqueeze(counted, [axis for axis in range(constant.axes) if axis != constant.axis])


def _band(w: Writer, constant: Any) -> Ref:
    rows, columns = (w.range(size) for size in constant.shape)
    right = w.add("Sub", w.unsqueeze(columns, [0]), w.unsqueeze(rows, [1]))
    inside = w.compare("LessOrEqual", right, w.dims([constant.upper]))
    if constant.lower is not None:
        left = w.compare("LessOrEqual", w.add("Neg", right), w.dims([constant.lower]))
        inside = w.add("And", inside, left)
    first, other = (w.constant(value) for value in constant.value)
    return w.unsqueeze(w.where(inside, first, other), list(range(constant.axes - 2)))


def _numbers(w: Writer, constant: Any) -> Ref:
    flat = w.cast(w.dims(constant.numbers), constant.value.dtype)
    return w.add("Reshape", flat, w.dims(constant.value.shape))


_MAKERS: Mapping[type, Callable[[Writer, Any], Ref]] = {
    Repeated: _repeated,
    Counted: _counted,
    Band: _band,
    Numbers: _numbers,
}


def written(w: Writer, call: Call) -> Ref:
    """Write the nodes of a call and return their result.

    Floats of 16 bits are computed with in float32 and rounded once, as they are here.

    Args:
        w: What writes them.
        call: The call.

    Raises:
        NotImplementedError: ONNX has no such operation for its dtypes, or it needs a size that is
            not known.
    """
    w.call = call
    rule = RULES[call.op]
    if call.op in _MOVES or not any(is_narrow(value.dtype) for value in call.inputs):
        return rule(w, call)
    wide = tuple(w.cast(item, float32) if is_narrow(item.dtype) else item for item in call.inputs)
    dtype = float32 if is_narrow(call.dtype) else call.dtype
    return w.cast(rule(w, replace(call, inputs=wide, dtype=dtype)), call.dtype)
