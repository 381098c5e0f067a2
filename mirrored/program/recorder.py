"""Records a run of Python as a graph: ops are noted instead of computed.

Recording goes through the same definitions of ops as eager calls, so both check the same things.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mirrored.backends.product_settings import one_thread
from mirrored.devices import Device, log_placement
from mirrored.devices import device as device_scope
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.ops.hooks import RecordedTensor, only, recorded_by
from mirrored.ops.host_tensor import HostTensor
from mirrored.ops.narrow_floats import suited
from mirrored.ops.op import OPS, Op
from mirrored.ops.rng_state import current_position
from mirrored.ops.spec import TensorSpec, bool_
from mirrored.ops.tensor import Tensor, new_id
from mirrored.program.dataflow import (
    ALL_REDUCE,
    COPY,
    SHARED,
    Collective,
    Graph,
    Node,
    Value,
    joins_rows,
)

_numbers = itertools.count(1)

_SMALL = 1 << 14  # Constants of at most this many elements are compared with those there are.


class GraphRecorder:
    """Notes what one call of a function would compute.

    Args:
        name: What the function is called.
        logs: Whether the placement log shows where its ops are placed.
        labels_checked: Whether somebody looked at all labels before, so that no op has to.

    Attributes:
        graph: What was noted so far.
        on_pull: Called with an iterator over a dataset whose next element is asked for.
    """

    shapes_alone: bool = False
    has_text: bool = False

    def __init__(
        self, name: str = "function", *, logs: bool = True, labels_checked: bool = False
    ) -> None:
        self.graph = Graph(
            labels_checked=labels_checked,
            name=f"__inference_{name}_{next(_numbers)}",
            purpose=f"the memory of the recorded function {name!r}",
            one_thread=one_thread.get(),
        )
        self._names: Counter[str] = Counter()
        self._logs = logs
        self._constants: dict[Any, Value] = {}
        self._storages: dict[int, Value] = {}
        self._written: dict[int, tuple[Any, Value]] = {}
        self._bound: dict[tuple[int, int, int], tuple[Any, Any, int]] = {}
        self._known: dict[Any, Value] = {}
        self._scope_of = functools.cache(device_scope)
        self._full = functools.cache(_full)
        self._last: dict[int, Value] = {}
        self._ordered: tuple[Value, ...] = ()
        self._summed_before: Node | None = None
        self._updating = False
        self._undo: list[Callable[[], None]] = []
        self.on_pull: Callable[[Any], Any] | None = None
        self._first_id = new_id()

    # ------------------------------------------------------------------ what the ops call

    def node_name(self, op_name: str) -> str | None:
        """Return what the placement log calls the next node of an op; None: it says nothing."""
        if not self._logs:
            return None
        position = current_position()
        inner = position.run is not None and position.replica > 0
        name = f"replica_{position.replica}/{op_name}" if inner else op_name
        self._names[name] += 1
        times = self._names[name] - 1
        return f"{name}_{times}" if times else name

    def pull(self, stream: Any) -> Any:
        """Return what stands for the next element of an iterator over a dataset.

        Raises:
            OperatorNotAllowedInGraphError: The function is not one that datasets are fed to.
        """
        if self.on_pull is None:
            raise OperatorNotAllowedInGraphError(
                "A step that `fit`, `evaluate` or `predict` record is fed by them. Received: "
                f"{stream!r}, which was asked for its next element inside. Iterate over it outside."
            )
        return self.on_pull(stream)

    def record(
        self,
        op: Op,
        inputs: tuple[Tensor, ...],
        attrs: Mapping[str, Any],
        spec: TensorSpec,
        device: Device,
    ) -> Tensor:
        """Return what stands for the result of an op, whose arguments are checked."""
        if op.lower is not None and op.name not in device.backend.kernels:
            return self._lowered(functools.partial(op.lower, **attrs), inputs, device)
        values = tuple([self.value_of(input_) for input_ in inputs])
        alias = _as_part(op, values, attrs, spec)
        if alias is not None:
            return self._tensor(alias)
        if op.elementwise:
            values = tuple([self._scalar_for(operand, values, spec) for operand in values])
        replica = self._replica_of(op, values)
        is_check = op.stateful and spec.dtype == bool_
        if is_check:
            values += self._last_before(replica)
        if op.ordered:
            values += self._ordered
        settings = repr(sorted(attrs.items())) if attrs else ""
        key = None if op.random or op.stateful else (op, device, replica, settings, *values)
        known = self._known.get(key)
        if known is None:
            known = self._node(op, values, attrs, Value(spec, device, replica))
            if key is not None:
                self._known[key] = known
        if is_check:
            self._last = {replica: known} if replica == SHARED else {**self._last, replica: known}
        if op.ordered:
            self._ordered = (known,)
        return self._tensor(known)

    def _lowered(
        self, lower: Callable[..., Tensor], inputs: Sequence[Tensor], device: Device
    ) -> Tensor:
        """Return the result of the simpler ops that an op is made of; tapes record the op alone."""
        with only(), self._scope_of(device):
            return lower(functools.partial(self._full, device), *inputs)

    def _last_before(self, replica: int) -> tuple[Value, ...]:
        """Return what checks and prints have left that come before one of a replica, or of all."""
        if replica == SHARED:
            return tuple(self._last.values())
        return tuple(self._last[key] for key in (replica, SHARED) if key in self._last)[:1]

    def copy(self, tensor: RecordedTensor, device: Device) -> Tensor:
        """Return what stands for the tensor's copy on another device."""
        value = self.value_of(tensor)
        key = (COPY, device, value)
        if key not in self._known:
            replica = self._replica_of(COPY, (value,))
            self._known[key] = self._node(COPY, (value,), {}, Value(value.spec, device, replica))
        return self._tensor(self._known[key])

    def read(self, variable: Any) -> Tensor:
        """Return what stands for the value of one copy of a variable."""
        written = self._written.get(id(variable))
        if written is not None:
            return self._tensor(written[1])
        members = getattr(variable, "members", ())
        if any(id(member) in self._written for member in members):
            parts = [OPS["Reshape"](self.read(member), shape=(member.size,)) for member in members]
            return OPS["ConcatV2"](*parts, axis=0)
        storage, offset = variable.pinned()
        base = self._storages.get(id(storage))
        if base is None:
            base = Value(storage.spec, storage.device)
            base.storage = storage
            self._storages[id(storage)] = base
        for copy, place in _places(variable, offset):
            self._bind_to(copy, storage, place)
        spec = TensorSpec(variable.shape, variable.dtype) if members else variable._tensor._spec
        return self._tensor(base.part(spec, offset))

    def write(self, variable: Any, value: Tensor) -> None:
        """Note that one copy of a variable gets a value, which it has from now on.

        Where it is several as one vector, each gets its part.
        """
        self._updating = True
        whole, start = self.value_of(value), 0
        for member in getattr(variable, "members", (variable,)):
            spec = member._tensor._spec
            storage, offset = member.pinned()
            self._bind_to(member, storage, offset)
            part = whole if spec == whole.spec else whole.part(spec, start)
            self._written[id(member)] = (member, part)
            start += part.size

    def written_variables(self) -> dict[int, Any]:
        """Return the copies of variables that were written, by their ids."""
        return {key: variable for key, (variable, _) in self._written.items()}

    def require_finite(self, values: tuple[Tensor, ...]) -> None:
        """Note that the first elements of these must be finite, or nothing is written."""
        self.graph.guards += [self.value_of(value) for value in values]
        self._updating = True

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Note what takes back something that was made for the function, should it fail."""
        self._undo.append(undo)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within this context note what is computed; what raises takes back what was made."""
        try:
            with recorded_by(self):
                yield
        except BaseException:
            for undo in reversed(self._undo):
                undo()
            raise

    def meet(self) -> None:
        """Let the replicas meet: they do it in every run."""

    def run_by(self, strategy: Any) -> None:
        """Note that a strategy runs its replicas in the function."""
        self.graph.strategy, self.graph.generation = strategy, strategy.generation
        self.graph.one_thread |= bool(strategy.lanes)

    def ask_number(self) -> None:
        """Note that the function asks for a replica's number."""
        self.graph.asks_number = True

    def sum_over_devices(self, tensors: Sequence[Tensor], device: Device) -> Tensor:
        """Return what stands for the sum of tensors of several devices, in their order.

        Only for devices of one memory: the sum takes them where they are.
        """
        values = tuple(self.value_of(tensor) for tensor in tensors)
        log_placement("AddN", device)
        total = Value(tensors[0].spec, device, SHARED)
        op = suited(OPS["AddN"], [total.spec], device.backend)
        return self._tensor(self._node(op, values, {}, total))

    def all_reduce(
        self, tensors: Sequence[Tensor], connection: Any, *, what: str, timeout: float
    ) -> list[Tensor]:
        """Return what stands for the sum of one tensor a rank, on the device of each."""
        values = tuple(self.value_of(tensor) for tensor in tensors)
        collective = Collective(connection, what, timeout)
        sums: list[Tensor] = []
        for rank, value in enumerate(values):
            log_placement(ALL_REDUCE.name, value.device)
            total = Value(value.spec, value.device, SHARED)
            sums.append(self._tensor(self._node(ALL_REDUCE, values, {"rank": rank}, total)))
            collective.nodes.append(self.graph.nodes[-1])
        self.graph.collectives.append(collective)
        if connection.peers is not None:
            # Other processes may have other work between these, and sum in the same order.
            for node in collective.nodes:
                node.after = self._summed_before
            self._summed_before = collective.nodes[0]
        return sums

    # ------------------------------------------------------------------ what a program is made of

    def input(self, spec: TensorSpec, device: Device, replica: int) -> Tensor:
        """Return what stands for something that each run is given."""
        value = Value(spec, device, replica)
        self.graph.inputs.append(value)
        return self._tensor(value)

    def value_of(self, tensor: Tensor) -> Value:
        """Return the value that a tensor stands for, or that it is as a constant.

        Raises:
            OperatorNotAllowedInGraphError: It stands for a value of another recording.
        """
        if isinstance(tensor, RecordedTensor):
            if tensor.recorder is not self:
                raise OperatorNotAllowedInGraphError(
                    "A tensor of a recorded function has no value outside of it. Received: "
                    f"{tensor!r}, kept from another call that was recorded. Return it from the "
                    "function instead of storing it."
                )
            value: Value = tensor.value
            return value
        known = self._constants.get(tensor._id)
        if known is None:
            key: Any = tensor._id
            if tensor._id > self._first_id and tensor.size <= _SMALL:
                # Made here, and made again wherever the same number is needed.
                key = (tensor._device, tensor.spec, np.asarray(tensor.numpy()).tobytes())
            known = self._constants.get(key)
            if known is None:
                known = self._constants[key] = Value(tensor.spec, tensor._device)
                known.constant = tensor
            self._constants[tensor._id] = known
        return known

    def _scalar_for(self, value: Value, values: tuple[Value, ...], spec: TensorSpec) -> Value:
        """Return a constant that is one number everywhere as that number, where it may be."""
        tensor = value.constant
        if tensor is None or value.size < 2 or tensor._id <= self._first_id:
            return value
        if not any(other.constant is None and other.spec.shape == spec.shape for other in values):
            return value  # It gives the result its shape.
        numbers = np.asarray(tensor.numpy()).reshape(-1)
        if (numbers != numbers[0]).any() or np.signbit(numbers).any() != np.signbit(numbers).all():
            return value
        return self.value_of(HostTensor(numbers[0].reshape(()), tensor._device))

    def finish(self, outputs: Sequence[Tensor]) -> Graph:
        """Return the graph of a function that returns these tensors."""
        for value in [self.value_of(output) for output in outputs]:
            if self._written and value.base.storage is not None:
                # What a variable was, which may have another value by the time that it is read.
                value = self._node(COPY, (value,), {}, Value(value.spec, value.device))
            self.graph.outputs.append(value)
        for variable, value in self._written.values():
            if value.node is None and value.base.constant is None:
                # The value of an input or of another variable, which may get one itself.
                value = self._node(COPY, (value,), {}, Value(value.spec, value.device))
            self.graph.writes.append((variable, value))
        self.graph.reads = list(self._bound.values())
        for value in self._constants.values():
            if value.constant is not None and value.constant._id > self._first_id:
                value.data, value.constant = np.asarray(value.constant.numpy()), None
        self._full.cache_clear()
        for kept in (self._bound, self._written, self._storages, self._known):
            kept.clear()  # The results have the recorder, and need not have what it knows.
        return self.graph

    def _bind_to(self, variable: Any, storage: Any, place: int) -> None:
        """Note where the function expects a variable: once, since every run looks whether it is."""
        self._bound[id(variable), id(storage), place] = (variable, storage, place)

    def _tensor(self, value: Value) -> RecordedTensor:
        return RecordedTensor(self, value, value.device, value.spec)

    def _node(
        self, op: Op, inputs: tuple[Value, ...], attrs: Mapping[str, Any], output: Value
    ) -> Value:
        node = Node(op, inputs, attrs, output, output.replica, self._updating)
        self.graph.nodes.append(node)
        return output

    def _replica_of(self, op: Op, values: tuple[Value, ...]) -> int:
        position = current_position()
        if position.run is not None:
            return position.replica
        replicas = {
            value.replica for value in values if value.constant is None and value.storage is None
        }
        # Putting one replica's values together is that replica's work, wherever it is asked for.
        return replicas.pop() if op.name == "ConcatV2" and len(replicas) == 1 else SHARED


def _full(device: Device, spec: TensorSpec, number: int) -> Tensor:
    with device_scope(device):
        return OPS["Fill"](shape=spec.shape, value=number, dtype=spec.dtype)


def _places(variable: Any, offset: int) -> list[tuple[Any, int]]:
    """Return the variables that are read, with where each is expected to be from now on."""
    members = getattr(variable, "members", None)
    if members is None:
        return [(variable, offset)]
    return [(member, member._offset) for member in members]


def _as_part(
    op: Op, inputs: tuple[Value, ...], attrs: Mapping[str, Any], spec: TensorSpec
) -> Value | None:
    """Return the result as a part of an input's memory, where it needs no memory of its own."""
    if op.view is not None or (op.name == "AddN" and len(inputs) == 1):
        return inputs[0].part(spec)
    if op.name == "StridedSlice":
        offset = _contiguous(attrs["index"], inputs[0].spec.shape)
        return None if offset is None else inputs[0].part(spec, offset)
    if joins_rows(op, attrs):
        end = inputs[0].offset
        for value in inputs:
            if value.base is not inputs[0].base or value.offset != end:
                return None
            end += value.size
        return inputs[0].part(spec)
    return None


def _contiguous(index: tuple[Any, ...], shape: tuple[int, ...]) -> int | None:
    """Return where a slice of the first axis begins, None where it is another kind of index."""
    if len(index) != 1 or not isinstance(index[0], slice | int):
        return None
    row = math.prod(shape[1:])
    if isinstance(index[0], slice):
        start, _, step = index[0].indices(shape[0])
        return start * row if step == 1 else None
    return (index[0] % shape[0]) * row
