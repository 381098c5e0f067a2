"""The graph of a recorded function: values, and the nodes that compute them.

Each value is computed once and never changes; where it will live is decided later.
"""

import itertools
import math
import weakref
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mirrored.devices import Device, place
from mirrored.ops.op import Op
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.variable_access import Moves

# Instead of a replica's number: what belongs to none, and runs where all of them have met.
SHARED = -1


def _copy(xp: Any, out: Any, x: Any) -> None:
    xp.copyto(out, x)


# Ops that programs alone have, and that are in no table.

# A tensor's way to another device; eager tensors do it by `copy_to`.
COPY = Op(name="_Send", infer=lambda x: x, kernel=_copy, elementwise=True)
# One rank's part of a sum over devices that do not read each other's memory. No kernel computes it.
ALL_REDUCE = Op(name="NcclAllReduce", infer=lambda x, *_: x, devices=("GPU",))
# A write that is left for the end; eager variables are written by `commit`.
ASSIGN = Op(name="AssignVariableOp", infer=lambda x: x)

# What brings small results to where they are wanted, at the end of a step.
RETVAL = Op(name="_Retval", infer=lambda x: x)

_numbers = itertools.count()


class Value:
    """Something that a program reads or computes.

    Attributes:
        spec: Its shape and dtype.
        size: The number of its elements.
        device: Where it lives.
        offset: How many elements of the base come before it.
        constant: The tensor that it is, where it is the same in every run.
        data: The host's copy of it, where that tensor was made while recording: the recording
            takes no memory of a device, the programs made of it do.
        storage: The memory that it is read from, where it is that of variables.
        replica: The replica that it belongs to, or SHARED.
    """

    __slots__ = (
        "_base",
        "constant",
        "data",
        "device",
        "made_by",
        "number",
        "offset",
        "replica",
        "size",
        "spec",
        "storage",
    )

    def __init__(self, spec: TensorSpec, device: Device, replica: int = SHARED) -> None:
        """Make a value with memory of its own."""
        self.spec = spec
        self.size: int = math.prod(spec.shape)
        self.device = device
        self._base: Value | None = None
        self.offset = 0
        # Weak, so that a graph goes when it is let go of: its nodes hold their results.
        self.made_by: weakref.ref[Node] | None = None
        self.constant: Tensor | None = None
        self.data: Any = None
        self.storage: Any = None
        self.replica = replica
        self.number = next(_numbers)

    @property
    def base(self) -> "Value":
        """The value whose memory it is a part of; itself where it has its own."""
        return self if self._base is None else self._base

    @property
    def node(self) -> "Node | None":
        """What computes the base; None for inputs, constants and variables."""
        return None if self.made_by is None else self.made_by()

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return self.size * self.spec.dtype.itemsize

    @property
    def whole(self) -> bool:
        """Whether it is all of its base's memory."""
        return self.base is self or (self.offset == 0 and self.size == self.base.size)

    def part(self, spec: TensorSpec, offset: int = 0) -> "Value":
        """Return a value that is a part of this one's memory, `offset` elements from its start."""
        part = Value(spec, self.device, self.replica)
        part._base = self.base
        part.offset = self.offset + offset
        part.made_by = self.made_by
        return part


@dataclass(eq=False, slots=True, weakref_slot=True)
class Node:
    """One call of an op.

    Attributes:
        op: The op.
        inputs: What it is called with; all live on the node's device but for a copy's, those of
            sums over devices of one memory, and an all-reduce's.
        attrs: Its attributes.
        output: What it computes.
        replica: The replica that it belongs to, or SHARED.
        updates: Whether it was recorded after an update of variables had begun.
        after: What comes before it in every process, though it reads nothing of that.
        flops: The additions and multiplications of the matrix products that it makes.
    """

    op: Op
    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]
    output: Value
    replica: int
    updates: bool = False
    after: "Node | None" = None
    flops: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Note in the output what computes it, and count its operations."""
        if self.output.made_by is None:
            self.output.made_by = weakref.ref(self)
        if self.op.flops is not None:
            specs = [value.spec for value in (self.output, *self.inputs)]
            self.flops = self.op.flops(*specs, **self.attrs)

    @property
    def device(self) -> Device:
        """Where it runs."""
        return self.output.device

    def before(self) -> "list[Node]":
        """Return what is done before it: the nodes of its inputs, and `after`."""
        nodes = [node for value in self.inputs if (node := value.node) is not None]
        return nodes if self.after is None else [*nodes, self.after]

    @property
    def may_refuse(self) -> bool:
        """Whether the op may look at its inputs' values, and stop the program for them."""
        return self.op.may_refuse(value.spec for value in self.inputs)


@dataclass(eq=False, slots=True)
class Collective:
    """An all-reduce: nodes that run as one, each of which leaves the sum on its own device.

    Attributes:
        connection: What connects the devices.
        what: What errors call it.
        timeout: How long it may take, in seconds.
        nodes: One a rank; all have one value a rank as inputs, and the rank's is read by its node.
    """

    connection: Any
    what: str
    timeout: float
    nodes: list[Node] = field(default_factory=list)

    def sends(self) -> tuple[Value, ...]:
        """Return what each rank adds."""
        return self.nodes[0].inputs

    @property
    def after(self) -> Node | None:
        """The all-reduce that comes before it in every process, as one of its nodes, if any."""
        return self.nodes[0].after


@dataclass(slots=True)
class Graph:
    """A recorded function.

    Attributes:
        inputs: What is fed to it, in order.
        nodes: In the order in which they were recorded.
        outputs: What it returns.
        writes: Each variable that is assigned, with its last value.
        guards: The values whose first elements must be finite, or nothing is written.
        collectives: The all-reduces between its devices, in the order in which they were recorded.
        reads: The variables that it is bound to, each with its storage and its place there.
        labels_checked: Whether somebody looked at all labels before, so that no op has to.
        strategy: Whose replicas run in it, if any do: it has the threads to run them.
        generation: How often workers of the strategy had died when it was recorded.
        lanes: For each replica the thread or stream that runs it, whose number its nodes and
            values have once a program is made; empty: each has its own. See `lanes`.
        parts: How many parts of a batch it computes; see `batch_parts`.
        one_thread: Whether all its products use one thread, for the bits of eager calls.
        asks_number: Whether it asked for a replica's number, by which replicas may differ.
        name: What the placement log calls a run of it.
        purpose: What errors call the memory that it runs in.
    """

    inputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    writes: list[tuple[Any, Value]] = field(default_factory=list)
    guards: list[Value] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    reads: list[tuple[Any, Any, int]] = field(default_factory=list)
    labels_checked: bool = False
    strategy: Any = None
    generation: int = 0
    lanes: tuple[int, ...] = ()
    parts: int = 1
    one_thread: bool = False
    asks_number: bool = False
    name: str = "function"
    purpose: str = "the memory of a recorded function"
    _looked_at: int = -1

    def is_current(self) -> bool:
        """Return whether all variables and workers are where the graph expects them."""
        if self._looked_at == Moves.count:
            return True
        if self.strategy is not None and self.strategy.generation != self.generation:
            return False
        if any(variable.pinned() != (storage, place) for variable, storage, place in self.reads):
            return False
        self._looked_at = Moves.count  # To look has brought none of them to another place.
        return True

    @property
    def guard_device(self) -> Device | None:
        """The device that decides for all whether a step writes variables; None: it does."""
        asked = [*self.guards, *(collective.nodes[0].output for collective in self.collectives)]
        return asked[0].device if asked else None

    def values(self) -> list[Value]:
        """Return what it is given, computes, returns and writes."""
        computed = (node.output for node in self.nodes)
        return [*self.inputs, *computed, *self.outputs, *(value for _, value in self.writes)]

    @property
    def device(self) -> Device:
        """A device that it runs on."""
        values = self.values()
        return values[0].device if values else place("NoOp", ("GPU", "CPU"))


def joins_rows(op: Op, attrs: Mapping[str, Any]) -> bool:
    """Return whether an op joins its inputs along the first axis, one after the other in memory."""
    return op.name == "ConcatV2" and attrs["axis"] == 0


def is_between(node: Node) -> bool:
    """Return whether a node copies from another memory, which is no kernel's work."""
    return node.op is COPY and node.inputs[0].device.backend.memory != node.device.backend.memory


def ancestors(values: Iterable[Value], within: Container[Node] | None = None) -> set[Node]:
    """Return the nodes that values depend on, their own ones among them; of some nodes, or all."""
    visited: set[Node] = set()
    stack = [node for value in values if (node := value.node) is not None]
    while stack:
        node = stack.pop()
        if node not in visited and (within is None or node in within):
            visited.add(node)
            stack += node.before()
    return visited
