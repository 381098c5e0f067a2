"""What a session does for some fetches: recorded once for each shape of what is fed, and replayed.

A run like one before it finds its plan by one key, and calls a program with the arrays that it is
given.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from mirrored import ops
from mirrored.backends.stream_backend import is_offloaded
from mirrored.compat.v1.graph_elements import Operation, Tensor, value_by_now
from mirrored.compat.v1.partial_shapes import TensorShape, bracketed
from mirrored.compat.v1.placing import Placement
from mirrored.compat.v1.running import OpStream, Run, running
from mirrored.devices import device
from mirrored.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OperatorNotAllowedInGraphError,
)
from mirrored.graph import Part
from mirrored.graph.part import nodes_between
from mirrored.ops.conversion import from_host
from mirrored.ops.hooks import only
from mirrored.ops.spec import TensorSpec
from mirrored.program.dataflow import SHARED
from mirrored.program.function_tracing import trace
from mirrored.program.trace_cache import Trace, TraceCache
from mirrored.program.variable_access import variable_writes
from mirrored.variables import Variable as Storage

# Of what these compute only a run knows enough: it computes one operation after the other.
_RUN_BY_PYTHON = frozenset(
    (
        *("BooleanMask", "DynamicPartition", "InitializedValue", "IsVariableInitialized"),
        *("IteratorGetNext", "MakeIterator"),
        *("PyFunc", "Unique", "UniqueWithCounts", "Where"),
    )
)
# And of these on cards, whose recorded runs do not wait until the host has looked at values.
_LOOK_AT_VALUES = frozenset(("Assert", "CheckNumerics", "Print"))
# And of these where what they go by is not known while they are recorded.
_MAY_BE_RUN_BY_PYTHON = frozenset(("If", "While"))


class Kept:
    """What a session keeps from run to run: values of variables, random streams and iterators.

    Args:
        placement: Where operations run.

    Attributes:
        placement: The same.
        initialized: The variables that have a value.
        has_no_values: Whether shapes are looked for, and nothing is run.
        elements: The elements that are left, by the iterator over them.
    """

    has_no_values = False

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.initialized: set[Any] = set()
        self.elements: dict[Any, Any] = {}
        self._storages: dict[Any, Any] = {}
        self._streams: dict[Operation, OpStream] = {}
        self._counts: dict[Hashable, int] = {}

    def storage(self, variable: Any) -> Any:
        """Return what holds a variable's value, zeros until its initializer runs."""
        if variable not in self._storages:
            with device(self.placement.device_of(variable.op)):
                self._storages[variable] = Storage(
                    lambda: ops.zeros(variable._shape, variable._dtype),
                    name=variable.op.name,
                    trainable=False,
                )
        return self._storages[variable]

    def stream(self, operation: Operation) -> OpStream:
        """Return what an operation draws random numbers from, in every run."""
        stream = self._streams.get(operation)
        if stream is None:
            stream = self._streams[operation] = OpStream(operation)
        return stream

    def count(self, key: Hashable) -> int:
        """Return how often this was asked for a key before."""
        self._counts[key] = self._counts.get(key, -1) + 1
        return self._counts[key]

    def clear(self) -> None:
        """Let go of all values, and end the threads that work for iterators."""
        while self.elements:
            self.elements.popitem()[1].close()
        self._storages.clear()
        self._streams.clear()


class Plan:
    """What computes some fetches from some feeds in a session.

    Args:
        leaves: The tensors and operations that are fetched.
        fed: The tensors that are fed.
        kept: What the session keeps.
        structure: From the values of the fetches, in a list, to what a run returns.

    Raises:
        InvalidArgumentError: A placeholder that is needed is not fed.
    """

    def __init__(
        self,
        leaves: Sequence[Any],
        fed: Sequence[Tensor],
        kept: Kept,
        structure: Callable[[list[Any]], Any],
    ) -> None:
        self._kept = kept
        self._named = list(fed)
        self._fed = list(fed)  # Elements of datasets come after those.
        self._dtypes = [tensor._dtype for tensor in fed]
        self._structure = structure
        targets = self._take(leaves)
        self._part = part_between(fed, targets, kept.placement.device_of)
        operations = [operation_of(node) for node in self._part.calls]
        self._drawing = [
            operation
            for operation in operations
            if operation.iterator is not None and not operation.control_inputs
        ]
        if self._drawing:  # A run draws elements before all else, and takes them as if fed.
            elements = [tensor for operation in self._drawing for tensor in operation.outputs]
            self._fed += [tensor for tensor in elements if tensor not in fed]
            self._part = part_between(self._fed, targets, kept.placement.device_of)
            operations = [operation_of(node) for node in self._part.calls]
        self._needs, self._gives = _variables(operations)
        for variable in self._needs | self._gives:
            kept.storage(variable)
        # Whether the variables that it needs have values, and whether those that it gives do.
        self._ready, self._has_given = not self._needs, not self._gives
        taken = [op for op in operations if op.type == "Gradients"]
        self._watched = [source for operation in taken for source in operation.sources]
        self._once = len(taken) == 1
        self._by_python = _is_run_by_python(operations, kept.placement)
        self._may_be = any(op.type in _MAY_BE_RUN_BY_PYTHON for op in operations)
        # Fed booleans that such operations may branch on: a run is recorded for each value.
        self._flags = [
            index
            for index, tensor in enumerate(self._fed)
            if self._may_be and tensor._dtype.kind == "b" and not tensor._shape
        ]
        self._traces = TraceCache(f"The run of {[leaf.name for leaf in leaves]}"[:80])

    def _take(self, leaves: Sequence[Any]) -> list[Any]:
        """Return what is computed for leaves, and note how each takes its value of it."""
        tensors: list[Any] = []
        self._takes: list[Callable[[Sequence[Any]], Any]] = []
        for leaf in leaves:
            if isinstance(leaf, Operation):
                self._takes.append(lambda _: None)
                continue
            first, parts = len(tensors), leaf.fetched
            tensors += parts
            whole = parts == [leaf]
            self._takes.append(
                itemgetter(first) if whole else _part_of(leaf, first, first + len(parts))
            )
        self._count = len(tensors)  # What operations that are fetched leave comes after those.
        return tensors + [leaf.node.outputs[0] for leaf in leaves if isinstance(leaf, Operation)]

    def __call__(self, values: Iterable[Any]) -> Any:
        """Run it.

        Args:
            values: The values of what is fed, in the same order.

        Raises:
            TypeError: A value has another dtype.
            ValueError: A value has another shape.
            FailedPreconditionError: A variable has no value.
        """
        sources = [
            value if type(value) is np.ndarray and value.dtype is dtype else as_fed(tensor, value)
            for tensor, dtype, value in zip(self._named, self._dtypes, values, strict=True)
        ]
        if self._drawing:  # Not within the lock: a generator may run sessions itself.
            sources += self._elements(sources)
        with variable_writes:
            if not self._ready:
                self._check_ready()
            known = self._traces.find(self._key(sources))
            results = self._first(sources) if known is None else known.fetch(sources)
            if not self._has_given:
                self._kept.initialized.update(self._gives)
                self._has_given = True
        return self._structure([take(results) for take in self._takes])

    def _check_ready(self) -> None:
        missing = self._needs - self._kept.initialized
        if missing:
            first = min(missing, key=lambda variable: variable.op.number)
            raise FailedPreconditionError(
                f"Attempting to use uninitialized value {first.op.name}\n\t "
                f"[[{{{{node {first.read_op.name}}}}}]]"
            )
        self._ready = True

    def _elements(self, sources: Sequence[Any]) -> list[Any]:
        """Return the arrays of the next elements of the datasets that the run takes from."""
        self._check_ready()
        self._check_shapes(sources)
        drawn = [operation.iterator.take(self._kept) for operation in self._drawing]
        return [
            array
            for operation, arrays in zip(self._drawing, drawn, strict=True)
            for tensor, array in zip(operation.outputs, arrays, strict=True)
            if tensor not in self._named
        ]

    def _check_shapes(self, sources: Sequence[Any]) -> None:
        """Raise ValueError where an array is of no shape that its tensor can have."""
        for tensor, array in zip(self._named, sources, strict=False):
            if not TensorShape(tensor._shape).is_compatible_with(array.shape):
                raise ValueError(
                    f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, which has "
                    f"shape {tensor._text}"
                )

    def _first(self, sources: Sequence[Any]) -> list[Any]:
        """Return the results for shapes that none was recorded for."""
        self._check_shapes(sources)
        if not self._by_python:
            try:
                return self._record(sources).fetch(sources)
            except OperatorNotAllowedInGraphError:
                if not self._may_be:
                    raise
                self._by_python = True
        with device(None), only():
            return [value.numpy() for value in self._compute([from_host(s) for s in sources])]

    def _key(self, sources: Sequence[Any]) -> tuple[Any, ...]:
        """Return what a run is recorded for: shapes, and the values of flags."""
        shapes = tuple([array.shape for array in sources])
        if not self._flags:
            return shapes
        return (
            *shapes,
            *[None if s.ndim else bool(s) for s in map(sources.__getitem__, self._flags)],
        )

    def _record(self, sources: Sequence[Any]) -> Trace:
        inputs = [
            (TensorSpec(array.shape, array.dtype), self._kept.placement.device_of(fed.op), SHARED)
            for fed, array in zip(self._fed, sources, strict=True)
        ]
        flags = {i: bool(sources[i]) for i in self._flags if not sources[i].ndim}

        def compute(values: Sequence[Any]) -> list[Any]:
            known = [ops.constant(flags[i]) if i in flags else v for i, v in enumerate(values)]
            return self._compute(known)

        # A session runs where its graph says, wherever it is called.
        with device(None), only():
            recording = trace("run", inputs, compute, returns=ops.Tensor)
        recording.program()  # Where there is no room for it, it is not kept.
        return self._traces.keep(self._key(sources), recording)

    def _compute(self, values: Sequence[Any]) -> list[Any]:
        run = Run(self._kept, self._watched, self._once, self._fed)
        with running(run):
            if self._watched:
                with run.tape:
                    run.watch(self._fed, list(values))
                    results = self._part.run(values)
            else:
                results = self._part.run(values)
            if run.written:  # What is fetched of a variable is what the run leaves.
                results = list(map(value_by_now, self._part.outputs, results))
        fetched = results[: self._count]
        if any(value is None for value in fetched):
            raise InvalidArgumentError(
                "A gradient cannot be fetched, because a tensor between its target and its "
                "source is fed. Feed the inputs of that tensor instead."
            )
        return fetched


def _is_run_by_python(operations: Sequence[Operation], placement: Placement) -> bool:
    """Return whether a run computes one operation after the other, and is not recorded."""
    types = {op.type for op in operations}
    if not types.isdisjoint(_RUN_BY_PYTHON):
        return True
    looks = not types.isdisjoint(_LOOK_AT_VALUES)
    return looks and any(is_offloaded(placement.device_of(op).backend) for op in operations)


def _part_of(leaf: Any, start: int, end: int) -> Callable[[Sequence[Any]], Any]:
    return lambda values: leaf.made_of(values[start:end])


def _variables(operations: Sequence[Operation]) -> tuple[set[Any], set[Any]]:
    """Return the variables that must have values, and those that have one after a run.

    Raises:
        InvalidArgumentError: A placeholder is among the operations, and so is not fed.
        ValueError: A variable of a loop is among them.
    """
    needs: set[Any] = set()
    gives: set[Any] = set()
    for operation in operations:
        if operation.type == "Placeholder":
            raise _not_fed(operation)
        if operation.type == "LoopVariable":
            raise ValueError(
                f"Operation {operation.name!r} has been marked as not fetchable: it is part of a "
                "loop, and has a value in each of its steps. Fetch what the loop returns."
            )
        needs.update(set(operation.reads) - gives)
        gives.update(operation.writes)
    return needs, gives


def as_fed(tensor: Tensor, value: Any) -> Any:
    """Return a fed value as an array of the tensor's dtype.

    Args:
        tensor: What it is fed to.
        value: The value.

    Raises:
        TypeError: It is a tensor of a graph, or loses something in that dtype.
        ValueError: It does not become an array of numbers.
    """
    if isinstance(value, Tensor):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
            "Python scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, the "
            f"tensor object was {value} which was passed to the argument `feed_dict` with key "
            f"{tensor}."
        )
    dtype = tensor._dtype
    if dtype.kind not in "iu":
        return np.asarray(value, dtype=dtype)
    exact = np.asarray(value)
    try:
        array = np.asarray(value, dtype=dtype)
        lossy = exact.dtype != dtype and (array != exact).any()
    except OverflowError:
        lossy = True
    if lossy:
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
            f"type {dtype.name}. Try explicitly setting the type of the feed tensor to a larger "
            "type (e.g. int64), or convert the value."
        )
    return array


def part_between(
    fed: Sequence[Tensor],
    targets: Sequence[Any],
    device_of: Callable[[Operation], Any] | None = None,
) -> Part:
    """Return what leads from tensors to others, in the order in which it was drawn.

    Args:
        fed: Those that it leads from.
        targets: Those that it leads to.
        device_of: From an operation to the device that it runs on; None: what it was drawn for.
    """
    nodes, _ = nodes_between(fed, targets)
    needed = {*targets, *(tensor for node in nodes for tensor in node.inputs)} - set(fed)
    nodes = [node for node in nodes if not needed.isdisjoint(node.outputs)]
    drawn = sorted(nodes, key=lambda node: operation_of(node).number)
    if device_of is None:
        return Part(fed, list(targets), drawn)
    return Part(fed, list(targets), drawn, lambda node: device_of(operation_of(node)))


def operation_of(node: Any) -> Operation:
    """Return the operation that a node calls."""
    operation: Operation = node.callee
    return operation


def _not_fed(operation: Operation) -> InvalidArgumentError:
    (tensor,) = operation.outputs
    dtype = {"float32": "float", "float64": "double"}.get(tensor._dtype.name, tensor._dtype.name)
    shape = f" and shape {bracketed(tensor._shape)}" if tensor._shape else ""
    return InvalidArgumentError(
        f"You must feed a value for placeholder tensor '{operation.name}' with dtype {dtype}"
        f"{shape}\n\t [[{{{{node {operation.name}}}}}]]"
    )
