"""Casts of weights to a narrower dtype, kept between steps.

The kernel that writes the weights writes these copies too.
"""

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from mirrored.backends import Storage
from mirrored.backends.stream_backend import FusedOp, Fusion, is_offloaded
from mirrored.devices import Device
from mirrored.ops.spec import TensorSpec
from mirrored.program.dataflow import Graph, Node, Value
from mirrored.program.rewriting import Rewriting
from mirrored.program.variable_access import Writes


class CastMemory:
    """The memory of cast weights; a program takes it, and it is that program's.

    Attributes:
        device: Where it is.
        spec: Its shape and dtype.
    """

    def __init__(self, spec: TensorSpec, device: Device) -> None:
        self.spec = spec
        self.device = device
        self._storage: weakref.ref[Storage] | None = None

    def take(self) -> Storage:
        """Return new memory, which lasts for as long as the caller keeps it.

        Raises:
            ResourceExhaustedError: The device has no room for it.
        """
        storage = self.device.allocate(*self.spec, "weights in the dtype that layers compute in")
        self._storage = weakref.ref(storage)
        return storage

    @property
    def array(self) -> Any:
        """All its elements."""
        storage = None if self._storage is None else self._storage()
        if storage is None:
            raise RuntimeError("The memory of cast weights was freed while a program used it.")
        return storage.array


class KeptCast:
    """All weights of one memory in another dtype: to a graph, a variable that it writes.

    Args:
        weights: What is read, as a whole: memory of variables.
        cast: A cast of some of them.
    """

    def __init__(self, weights: Value, cast: Node) -> None:
        self.weights = weights
        self.cast = cast
        spec = TensorSpec(weights.spec.shape, cast.output.spec.dtype)
        self.memory = CastMemory(spec, weights.device)
        self.value = Value(spec, weights.device)
        self.value.storage = self.memory

    def pinned(self) -> tuple[CastMemory, int]:
        """Return the memory that it stays in, and its place there."""
        return self.memory, 0

    def refresh(self, backend: Any) -> None:
        """Let a device cast the weights as they are now."""
        size, read = self.memory.spec.shape, self.weights.spec
        step = FusedOp("Cast", (0,), size, self.memory.spec.dtype)
        kernel = backend.fused_kernel(Fusion(((read.shape, read.dtype),), (step,), (0,)))
        outputs, inputs = (self.memory.array,), (self.weights.storage.array,)
        backend.run(kernel, backend.xp, outputs, inputs, None)


class KeptCasts:
    """The casts that a program keeps, with their memory.

    Args:
        casts: The casts.
    """

    def __init__(self, casts: Sequence[KeptCast]) -> None:
        self._casts = casts
        self._storages = [cast.memory.take() for cast in casts]
        self._seen = -1

    def refresh(self, streams: Any) -> None:
        """Cast again the weights that were written outside of the program since the last refresh.

        Args:
            streams: For each memory the backend on whose stream the program begins there.
        """
        if self._casts and self._seen != Writes.count:
            written = Writes.count
            for cast in self._casts:
                cast.refresh(streams[cast.memory.device.backend.memory])
            self._seen = written

    def written(self) -> None:
        """Note that the program is about to write its weights, and these with them."""
        current = self._seen == Writes.count
        Writes.count += 1
        if current:
            self._seen = Writes.count


def with_kept_casts(graph: Graph) -> tuple[Graph, list[KeptCast]]:
    """Return a graph that reads cast weights instead of casting them; itself where it casts none.

    Args:
        graph: The graph, which stays as it is.
    """
    casts_by_key: dict[tuple[Value, Any], KeptCast] = {}
    of_node: dict[Node, KeptCast] = {}
    for node in graph.nodes:
        if _casts_weights(node):
            weights = node.inputs[0].base
            key = weights, node.output.spec.dtype
            if key not in casts_by_key and _new_value(graph, weights) is not None:
                casts_by_key[key] = KeptCast(weights, node)
            if key in casts_by_key:
                of_node[node] = casts_by_key[key]
    if not casts_by_key:
        return graph, []
    kept = list(casts_by_key.values())
    return _WithoutCasts(graph, of_node).graph(kept), kept


def _casts_weights(node: Node) -> bool:
    value = node.inputs[0] if node.op.name == "Cast" else None
    return (
        value is not None
        and value.base.storage is not None
        and is_offloaded(node.device.backend)
        and node.device.backend.fuses("Cast")
        and value.base.device is node.device
        and value.spec.dtype.kind == "f"
        and node.output.spec.dtype.itemsize < value.spec.dtype.itemsize
    )


def _new_value(graph: Graph, weights: Value) -> Value | None:
    """Return what all weights of a memory become in a step; None where that is not one vector."""
    written: list[tuple[int, Value]] = []
    for variable, value in graph.writes:
        storage, place = variable.pinned()
        if storage is weights.storage:
            written.append((place - value.offset, value))
    if not written:
        return None  # To cast them takes memory for as long as layers compute with them alone.
    (start, first), *_ = written
    base = first.base
    whole = sum(value.size for _, value in written) == base.size == weights.size
    same = all(place == start and value.base is base for place, value in written)
    return base if whole and same and start == 0 and base.node is not None else None


class _WithoutCasts(Rewriting):
    """A copy of a graph that reads kept values instead of casts."""

    def __init__(self, graph: Graph, casts: dict[Node, KeptCast]) -> None:
        super().__init__(graph)
        self._casts = casts

    def graph(self, kept: Iterable[KeptCast]) -> Graph:
        """Return the graph, which writes what is kept with the weights that it is cast from."""
        for node in self.old.nodes:  # Each after what it reads.
            if node in self._casts:
                place = node.inputs[0].offset
                self.replace(node.output, self.part(node.output, self._casts[node].value, place))
            else:
                self.node(node)
        writes = [(variable, self.of(value)) for variable, value in self.old.writes]
        for cast in kept:
            new = _new_value(self.old, cast.weights)
            if new is not None:  # As for all of them.
                self.nodes.append(_cast_of(self.of(new), cast))
                writes.append((cast, self.nodes[-1].output))
        return self.copy(writes)


def _cast_of(new: Value, kept: KeptCast) -> Node:
    """Return the node that computes what is kept from the new value of the weights."""
    replica = new.replica
    output = Value(kept.memory.spec, kept.memory.device, replica)
    vector = new if new.spec.shape == kept.memory.spec.shape else new.part(kept.weights.spec)
    return Node(kept.cast.op, (vector,), kept.cast.attrs, output, replica, updates=True)
