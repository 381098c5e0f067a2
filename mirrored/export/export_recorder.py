"""Records a function for export: all ops become nodes, with the layers that call them.

A program shares what is alike and computes views by no node; two recordings of one function can be
compared only where neither is done.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from mirrored.devices import Device
from mirrored.devices import device as device_scope
from mirrored.layers.layer import noting_layers
from mirrored.layers.layer import running_layer as _running_layer
from mirrored.ops.hooks import CustomCall, RecordedTensor, only
from mirrored.ops.op import Op
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.graph import SHARED, Node, Value, ancestors
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


class Makers:
    """Notes how constants are created while a function is recorded, which computes them at once.

    Attributes:
        origins: How each constant was created, by its id.
    """

    def __init__(self) -> None:
        self.origins: dict[int, Origin] = {}

    def follows(self, tensor: Tensor) -> bool:
        """Return whether it is to be told of a call for the sake of this input."""
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


class ExportRecorder(GraphRecorder):
    """Notes a call op by op, and the variables that it reads.

    Args:
        ops: The names of the ops that have a mapping.

    Attributes:
        weights: What stands for the value of each variable that was read, with the variable.
        owners: The layer in which each node was noted.
        makers: Notes how constants are created.
    """

    def __init__(self, ops: Collection[str]) -> None:
        super().__init__("export", logs=False, labels_checked=True)
        self._ops = ops
        self._read: dict[int, Tensor] = {}
        self._seen: dict[int, Value] = {}
        self.weights: dict[Value, Any] = {}
        self.owners: dict[Node, Owner] = {}
        self.makers = Makers()

    def record(
        self,
        op: Op,
        inputs: tuple[Tensor, ...],
        attrs: Mapping[str, Any],
        spec: TensorSpec,
        device: Device,
    ) -> Tensor:
        """Return what stands for the result of an op.

        Raises:
            NotImplementedError: Each run of it counts, whoever needs its result.
        """
        if op.stateful:
            refuse_op(op.name, running_layer())
        if op.name not in self._ops and op.lower is not None:
            with only(), device_scope(device):
                lowered: Tensor = op.lower(*inputs, **attrs)
            return lowered
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
        """Return what stands for the value of one copy of a variable."""
        if id(variable) not in self._read:
            spec = TensorSpec(variable.shape, variable.dtype)
            value = Value(spec, variable._device, SHARED)
            self.weights[value] = variable
            self._read[id(variable)] = self._tensor(value)
        return self._read[id(variable)]

    def write(self, variable: Any, value: Tensor) -> None:
        """Raise NotImplementedError: a file of ONNX has no variables."""
        raise NotImplementedError(
            "What is exported computes its outputs and nothing else. Received: a new value for the "
            f"variable {variable.name!r}, in {running_layer()}. Assign it where `training` is True "
            "alone."
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
        f"The operation {name!r} has no mapping to ONNX. Received: a call of it in {layer}. "
        "Write it with other operations (docs/export.md has the list), or leave it to the program "
        "that runs the model."
    )


def running_layer() -> Owner:
    """Return the layer whose `call` runs, within `recorded`."""
    layer = _running_layer()
    return Owner("", "") if layer is None else Owner(layer.name, type(layer).__name__)


Call = Callable[[list[Tensor]], list[Tensor]]


def recorded(
    call: Call, specs: Sequence[TensorSpec], device: Device, ops: Collection[str]
) -> tuple[ExportRecorder, list[Tensor]]:
    """Return who recorded a call, and its results.

    Args:
        call: From tensors to tensors.
        specs: The shapes and dtypes of the tensors.
        device: Where they are.
        ops: The names of the ops that have a mapping.
    """
    recorder = ExportRecorder(ops)
    with only(recorder.makers), recorder.recording(), noting_layers():
        return recorder, call([recorder.input(spec, device, SHARED) for spec in specs])
