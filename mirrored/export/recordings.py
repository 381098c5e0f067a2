"""Traces a function for all sizes of its inputs: records it several times and merges the records.

All ops become nodes, with the layers that call them. What is the same in all recordings is as it
is; what differs is a size that is not known, or raises an error, since a file has one computation
for all sizes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mirrored.devices import Device, place
from mirrored.export.sizes import Constant, Dim, Samples, Size, constant_of
from mirrored.layers.layer import noting_layers
from mirrored.layers.layer import running_layer as _running_layer
from mirrored.ops.hooks import CustomCall, RecordedTensor, only
from mirrored.ops.op import Op
from mirrored.ops.spec import DType, TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.dataflow import SHARED, Node, Value, ancestors
from mirrored.program.recorder import GraphRecorder


class Owner(NamedTuple):
    """What calls an op.

    Attributes:
        name: The layer's name; "" outside of layers.
        kind: The name of its class.
    """

    name: str
    kind: str

    def __str__(self) -> str:
        return f"the layer {self.name!r} ({self.kind})" if self.name else "the function"


class Origin(NamedTuple):
    """How a constant was created.

    Attributes:
        op: The op that computed it.
        inputs: What that was called with: constants, too.
        attrs: Its attributes.
        output: The constant, which is kept: its number is no other's.
        owner: The layer that called it.
    """

    op: Op
    inputs: tuple[Tensor, ...]
    attrs: Mapping[str, Any]
    output: Tensor
    owner: Owner


class ExportRecorder(GraphRecorder):
    """Records a call op by op, the variables that it reads, and how its constants are created.

    Args:
        ops: The names of the ops that have a mapping.

    Attributes:
        weights: What stands for the value of each variable that was read, with the variable.
        owners: The layer in which each node was noted.
        origins: How each constant was created, by its id: it is computed at once.
    """

    def __init__(self, ops: Collection[str]) -> None:
        super().__init__("export", logs=False, labels_checked=True)
        self._ops = ops
        self._read: dict[int, Tensor] = {}
        self._seen: dict[int, Value] = {}
        self.weights: dict[Value, Any] = {}
        self.owners: dict[Node, Owner] = {}
        self.origins: dict[int, Origin] = {}

    def follows(self, tensor: Tensor) -> bool:
        """Return whether a call with this input is noted."""
        return True

    def on_op(
        self, op: Op, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Note an op whose result is a constant."""
        if not isinstance(output, RecordedTensor) and not op.shape_only:
            self.origins[id(output)] = Origin(op, inputs, attrs, output, running_layer())

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Take no note."""

    def on_custom_call(self, call: CustomCall) -> None:
        """Take no note."""

    def record(
        self,
        op: Op,
        inputs: tuple[Tensor, ...],
        attrs: Mapping[str, Any],
        spec: TensorSpec,
        device: Device,
    ) -> Tensor:
        """Return the placeholder of an op's result.

        Raises:
            NotImplementedError: Each run of it counts, whoever needs its result.
        """
        if op.stateful:
            refuse_op(op.name, running_layer())
        if op.name not in self._ops and op.lower is not None:
            return self._lowered(partial(op.lower, **attrs), inputs, device)
        values = tuple(self.value_of(value) for value in inputs)
        result = self._tensor(self._node(op, values, attrs, Value(spec, device, SHARED)))
        self.owners[self.graph.nodes[-1]] = running_layer()
        return result

    def copy(self, tensor: RecordedTensor, device: Device) -> Tensor:
        """Return the same tensor: a file knows of no devices."""
        return RecordedTensor(self, tensor.value, device, tensor.spec)

    def value_of(self, tensor: Tensor) -> Value:
        """Return the value that a tensor stands for, or that it is as a constant."""
        if isinstance(tensor, RecordedTensor):
            return super().value_of(tensor)
        known = self._seen.get(id(tensor))
        if known is None:
            known = Value(tensor.spec, tensor._device)
            known.constant = tensor  # Which keeps it, so that its number is no other's.
            self._seen[id(tensor)] = known
        return known

    def read(self, variable: Any) -> Tensor:
        """Return the placeholder of the value of one copy of a variable."""
        if id(variable) not in self._read:
            spec = TensorSpec(variable.shape, variable.dtype)
            value = Value(spec, variable._device, SHARED)
            self.weights[value] = variable
            self._read[id(variable)] = self._tensor(value)
        return self._read[id(variable)]

    def write(self, variable: Any, value: Tensor) -> None:
        """Raise NotImplementedError: a file of ONNX has no variables."""
        raise NotImplementedError(
            "An exported model can only compute outputs. Received: a new value for the variable "
            f"{variable.name!r}, in {running_layer()}. Assign it only if `training` is True."
        )

    def run_by(self, strategy: Any) -> None:
        """Take no note: nothing is run."""

    def taken(self, results: Sequence[Tensor]) -> tuple[list[Node], list[Value]]:
        """Return the nodes that results depend on, in order, and the results' values.

        Raises:
            NotImplementedError: One of the nodes has no mapping.
        """
        values = [self.value_of(tensor) for tensor in results]
        needed = ancestors(values)
        nodes = [step for step in self.graph.nodes if step in needed]
        for node in nodes:
            if node.op.name not in self._ops:
                refuse_op(node.op.name, self.owners[node])
        return nodes, values


def refuse_op(name: str, layer: Owner) -> NoReturn:
    """Raise NotImplementedError about an op without a mapping.

    Args:
        name: The op's name.
        layer: What the layer is called that calls it.
    """
    raise NotImplementedError(
        f"The operation {name!r} has no mapping to ONNX. Received: a call of it in {layer}. Write "
        "it with other operations (docs/howto/export.md has the list), or compute it in the "
        "program that runs the model."
    )


def running_layer() -> Owner:
    """Return the layer whose `call` runs, within `recorded`."""
    layer = _running_layer()
    return Owner("", "") if layer is None else Owner(layer.name, type(layer).__name__)


Call = Callable[[list[Tensor]], list[Tensor]]


# Four numbers that sizes are tried with: primes, which leave a rest whatever divides them, of which
# one is small and one large, or all small; then for functions that take only sizes without a rest.
_NUMBERS = (
    ((5, 2, 11, 521), False),
    ((5, 7, 11, 13), False),
    ((12, 24, 36, 48), True),
    ((840, 1680, 2520, 3360), True),
)


# Attributes that may depend on sizes: all others are settings.
_SIZES = frozenset({"batch", "index", "k", "num_segments", "outer", "shape", "sizes"})


@dataclass(frozen=True, slots=True)
class GraphInput:
    """An input of a function.

    Attributes:
        name: What it is called.
        shape: Its sizes; a name stands for one that is not known.
        dtype: Its dtype.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: DType


@dataclass(eq=False, slots=True)
class Traced:
    """A value of a traced function.

    Attributes:
        shape: Its sizes.
        dtype: Its dtype.
        variable: The variable whose value it is, if it is one's.
        constant: What it is, where it is no result of inputs.
    """

    shape: tuple[Dim, ...]
    dtype: DType
    variable: Any = None
    constant: Constant | None = None


@dataclass(eq=False, slots=True)
class Step:
    """A call of an op.

    Attributes:
        op: The op's name.
        inputs: What it is called with.
        attrs: Its attributes, in which numbers may depend on sizes.
        output: What it computes.
        layer: The layer that calls it.
    """

    op: str
    inputs: tuple[Traced, ...]
    attrs: Mapping[str, Any]
    output: Traced
    layer: Owner


@dataclass(slots=True)
class Trace:
    """A traced function.

    Attributes:
        inputs: Its inputs.
        samples: The sizes that it was recorded for.
        steps: What it computes, in order.
        results: What it returns.
    """

    inputs: list[Traced]
    samples: Samples
    steps: list[Step] = field(default_factory=list)
    results: list[Traced] = field(default_factory=list)


def traced(call: Call, inputs: Sequence[GraphInput], ops: Mapping[str, Any]) -> Trace:
    """Return a function for any sizes that are not known.

    Args:
        call: From a list of tensors to a list of tensors, by operations.
        inputs: The inputs.
        ops: The ops that have a mapping, by their names.

    Raises:
        NotImplementedError: It calls another op, or computes for some sizes something else than for
            others.
    """
    failures: list[Exception] = []
    for names, numbers, exact in _attempts(inputs):
        samples = Samples.of(list(dict.fromkeys(names.values())), numbers, exact=exact)
        try:
            runs = [_run(call, inputs, names, samples, sizes, ops) for sizes in samples.runs]
        except NotImplementedError:
            raise
        except Exception as error:
            failures.append(error)
            continue
        trace = _Joined(ops, samples, runs).trace
        for place_, name in enumerate(samples.names):
            ones = (*samples.runs[0][:place_], 1, *samples.runs[0][place_ + 1 :])
            try:
                _, results = _run(call, inputs, names, samples, ones, ops)
            except Exception:  # It takes no such size, and there is nothing to compare.
                continue
            _check_results(trace, ones, name, results)
        return trace
    failures[0].add_note(
        "It was raised while the model was recorded with example sizes instead of the unknown "
        "sizes. Pass these sizes to `Input`, or pass an `input_signature` that has them."
    )
    raise failures[0]


def _check_results(
    trace: Trace, sizes: tuple[int, ...], name: str, results: Sequence[Tensor]
) -> None:
    """Raise NotImplementedError where results for a size of 1 have other shapes than for others."""
    for result, value in zip(results, trace.results, strict=True):
        # A slice that begins behind the end has no elements.
        expected = [
            max(size.value(sizes), 0) if isinstance(size, Size) else size for size in value.shape
        ]
        wrong = [size not in (None, n) for size, n in zip(expected, result.shape, strict=False)]
        if len(expected) != len(result.shape) or any(wrong):
            raise NotImplementedError(
                "A file has one computation for all input sizes. Received: a function that "
                f"returns shape {tuple(result.shape)} if the size of {name} is 1, and "
                f"{tuple(expected)} for other sizes. Pass the axes to `squeeze`, and the sizes to "
                "`Input`."
            )


def _attempts(inputs: Sequence[GraphInput]) -> Any:
    """Yield names of unknown sizes, and numbers to try them with.

    They may have to be one, as those of inputs that are added: first along each axis, then all.
    """
    unknown = [
        (item.name, axis)
        for item in inputs
        for axis, size in enumerate(item.shape)
        if isinstance(size, str)
    ]
    shapes = {item.name: item.shape for item in inputs}
    apart = {(name, axis): str(shapes[name][axis]) for name, axis in unknown}
    alike = {(name, axis): "batch" if axis == 0 else f"axis_{axis}" for name, axis in unknown}
    same = dict.fromkeys(unknown, "batch")
    for numbers, exact in _NUMBERS:
        tried: list[dict[tuple[str, int], str]] = []
        for names in (apart, alike, same):
            if names not in tried:
                tried.append(names)
                yield names, numbers, exact


def _run(
    call: Call,
    inputs: Sequence[GraphInput],
    names: Mapping[tuple[str, int], str],
    samples: Samples,
    sizes: tuple[int, ...],
    ops: Mapping[str, Any],
) -> tuple[ExportRecorder, list[Tensor]]:
    """Return the recorder of a call for some sizes of its inputs, and the call's results."""
    known = dict(zip(samples.names, sizes, strict=True))
    specs = [
        TensorSpec(
            tuple(
                known[names[input_.name, axis]] if isinstance(size, str) else size
                for axis, size in enumerate(input_.shape)
            ),
            input_.dtype,
        )
        for input_ in inputs
    ]
    device = place("Placeholder", ("GPU", "CPU"))
    recorder = ExportRecorder(ops)
    with only(recorder), recorder.recording(), noting_layers():
        return recorder, call([recorder.input(spec, device, SHARED) for spec in specs])


class _Call(NamedTuple):
    """A call of an op in one recording."""

    op: str
    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]


class _Joined:
    """Goes through several recordings side by side.

    Args:
        ops: The ops that have a mapping.
        samples: The sizes of the recordings.
        runs: The recordings.
    """

    def __init__(
        self,
        ops: Collection[str],
        samples: Samples,
        runs: Sequence[tuple[ExportRecorder, list[Tensor]]],
    ) -> None:
        self._ops = ops
        self._samples = samples
        self._recorders = [recorder for recorder, _ in runs]
        self._known: dict[tuple[Value, ...], Traced] = {}
        parts = [recorder.taken(results) for recorder, results in runs]
        self.trace = Trace([], samples)
        for values in zip(*(recorder.graph.inputs for recorder in self._recorders), strict=True):
            self._known[values] = self._like(values)
            self.trace.inputs.append(self._known[values])
        if len({len(nodes) for nodes, _ in parts}) > 1:
            owner = self._first_difference([nodes for nodes, _ in parts])
            self._refuse(f"calls another number of operations in {owner}")
        for nodes in zip(*(nodes for nodes, _ in parts), strict=True):
            calls = [_Call(node.op.name, node.inputs, node.attrs) for node in nodes]
            owner = self._recorders[0].owners[nodes[0]]
            self._step(calls, tuple(node.output for node in nodes), owner)
        results = zip(*(values for _, values in parts), strict=True)
        self.trace.results = [self._value(values, "the result") for values in results]

    def _first_difference(self, runs: Sequence[Sequence[Node]]) -> Owner:
        """Return the owner of the first op that not all recordings have at its place."""
        longest = max(range(len(runs)), key=lambda number: len(runs[number]))
        for place_, node in enumerate(runs[longest]):
            if any(place_ >= len(run) or run[place_].op is not node.op for run in runs):
                return self._recorders[longest].owners[node]
        return Owner("", "")

    def _step(self, calls: Sequence[_Call], outputs: tuple[Value, ...], owner: Owner) -> Traced:
        """Add a step, and return its result."""
        first = calls[0]
        shown = f"{first.op!r} in {owner}"
        if any(call.op != first.op or len(call.inputs) != len(first.inputs) for call in calls):
            self._refuse(f"calls something else than {shown}")
        inputs = tuple(
            self._value(values, f"an argument of {shown}")
            for values in zip(*(call.inputs for call in calls), strict=True)
        )
        attrs = {
            name: self._joined([call.attrs[name] for call in calls], shown, name in _SIZES)
            for name in first.attrs
        }
        result = self._known[outputs] = self._like(outputs)
        self.trace.steps.append(Step(first.op, inputs, attrs, result, owner))
        return result

    def _value(self, values: tuple[Value, ...], role: str) -> Traced:
        known = self._known.get(values)
        if known is None:
            known = self._known[values] = self._new(values, role)
        return known

    def _new(self, values: tuple[Value, ...], role: str) -> Traced:
        variables = [
            recorder.weights.get(value)
            for recorder, value in zip(self._recorders, values, strict=True)
        ]
        if variables[0] is not None and all(variable is variables[0] for variable in variables):
            return self._like(values, variable=variables[0])
        tensors = [value.constant for value in values if value.constant is not None]
        if len(tensors) < len(values):
            self._refuse(f"takes something else as {role}")
        constant = constant_of([np.asarray(tensor.numpy()) for tensor in tensors], self._samples)
        if constant is None:
            return self._computed(values, tensors, role)
        return replace(self._like(values), constant=constant)

    def _computed(self, values: tuple[Value, ...], tensors: list[Tensor], role: str) -> Traced:
        """Return a constant that nobody knows how it grows, by the step that computed it."""
        steps = [
            (recorder, recorder.origins[id(tensor)])
            for recorder, tensor in zip(self._recorders, tensors, strict=True)
            if id(tensor) in recorder.origins
        ]
        if len(steps) < len(values) or any(step.op.name not in self._ops for _, step in steps):
            self._refuse(f"computes another constant as {role}")
        calls = [
            _Call(step.op.name, tuple(map(recorder.value_of, step.inputs)), step.attrs)
            for recorder, step in steps
        ]
        return self._step(calls, values, steps[0][1].owner)

    def _like(self, values: tuple[Value, ...], **kind: Any) -> Traced:
        specs = [value.spec for value in values]
        if len({len(spec.shape) for spec in specs}) > 1:
            self._refuse("has results of another number of axes")
        shape = tuple(
            self._samples.fitted(sizes) for sizes in zip(*(s.shape for s in specs), strict=True)
        )
        return Traced(shape, specs[0].dtype, **kind)

    def _joined(self, values: list[Any], role: str, varies: bool) -> Any:
        """Return an attribute, of which numbers may depend on sizes where it is one that varies."""
        first = values[0]
        if varies and all(isinstance(item, int) and not isinstance(item, bool) for item in values):
            return self._samples.fitted(values)
        if isinstance(first, slice):
            parts = zip(*((value.start, value.stop, value.step) for value in values), strict=True)
            return slice(*(self._joined([*part], role, varies) for part in parts))
        if isinstance(first, tuple | list) and len({len(value) for value in values}) == 1:
            return tuple(self._joined([*part], role, varies) for part in zip(*values, strict=True))
        if any(type(value) is not type(first) or value != first for value in values):
            self._refuse(f"has another setting of {role}")
        return first

    def _refuse(self, problem: str) -> Any:
        sizes = ", ".join(self._samples.names)
        raise NotImplementedError(
            f"A file has one computation for all input sizes. Received: a function that {problem} "
            f"if the size of {sizes} differs. Pass these sizes to `Input`, or pass an "
            "`input_signature` that has them."
        )
