"""Users' own functions, recorded once for each kind of call and then replayed.

A call with a tape open around it, or inside a replica or another recorded function, runs Python.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mirrored import _nest
from mirrored.devices import Device, place
from mirrored.ops.dispatch import constant, to_array
from mirrored.ops.listeners import active_listeners
from mirrored.ops.random import current_position
from mirrored.ops.recording import (
    RecordedTensor,
    active_recorder,
    variable_writes,
)
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.executors import choose_executor
from mirrored.program.graph import JOINT, Graph
from mirrored.program.program import Program
from mirrored.program.recorder import GraphRecorder
from mirrored.program.recordings import Recordings

# Types whose values hold one value a replica, with a function that makes another one like it.
_per_replica: dict[type, Callable[[Any, list[Any]], Any]] = {}

_STATIC = (bool, int, float, str, bytes, type(None), np.dtype)


def register_per_replica(kind: type, rebuild: Callable[[Any, list[Any]], Any]) -> None:
    """Let functions take and return values that have `values`, one a replica.

    Args:
        kind: Their type.
        rebuild: From such a value and other parts to one like it with those.
    """
    _per_replica[kind] = rebuild


class _Input(NamedTuple):
    """One tensor that is fed to a program.

    Attributes:
        spec: Its shape and dtype.
        device: Where it is fed to.
        lane: The replica that it is for, or JOINT.
    """

    spec: TensorSpec
    device: Device
    lane: int


class _Recorded(NamedTuple):
    """A recorded function with its memory.

    Attributes:
        graph: What it computes.
        program: That, bound to memory.
        result: The structure that it returns, with recorded tensors for leaves.
        kept: What its key is made of, so that no other object takes over an identity.
    """

    graph: Graph
    program: Program
    result: Any
    kept: Any


class Function:
    """A Python function that is recorded; `function` makes them.

    Args:
        python_function: The function.
    """

    def __init__(self, python_function: Callable[..., Any]) -> None:
        """Record nothing yet."""
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        name = getattr(python_function, "__name__", repr(python_function))
        self._recordings: Recordings[_Recorded] = Recordings(f"The function {name}")
        self._under: dict[int, tuple[Any, Function]] = {}
        self._lock = threading.RLock()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function as a method."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function: replayed where it was recorded for such arguments."""
        inside = active_recorder() is not None or current_position().run is not None
        if inside or active_listeners():
            args, kwargs = _nest.map_structure(_as_tensor, (args, kwargs))
            return self.python_function(*args, **kwargs)
        with self._lock:
            arguments = _Arguments((args, kwargs))
            recorded = self._recordings.get(
                arguments.key,
                lambda: self._record(arguments),
                is_current=lambda each: each.graph.is_current(),
            )
            return _run(recorded, arguments.arrays)

    def under(self, runner: Any, run: Callable[..., Any]) -> "Function":
        """Return a function that runs this one under a strategy, recorded as a whole.

        Args:
            runner: The strategy.
            run: Runs a function on all replicas, given its arguments.
        """
        known = self._under.get(id(runner))
        if known is None:
            wrapped = Function(
                functools.wraps(self.python_function)(
                    lambda *args, **kwargs: run(self.python_function, args, kwargs)
                )
            )
            known = self._under[id(runner)] = (runner, wrapped)
        return known[1]

    @staticmethod
    def behind(called: Any) -> "tuple[Function, tuple[Any, ...]] | None":
        """Return the function that is called, and what it is bound to, where it is one.

        Args:
            called: Anything that can be called.
        """
        if isinstance(called, Function):
            return called, ()
        bound = isinstance(called, functools.partial) and not called.keywords
        if bound and isinstance(called.func, Function):
            return called.func, called.args
        return None

    def _record(self, arguments: "_Arguments") -> _Recorded:
        graph, result = self._graph(arguments)
        if not graph.is_current():  # Its variables were brought together on the way.
            graph, result = self._graph(arguments)
        lanes = {node.lane for node in graph.nodes} - {JOINT}
        strategy = graph.strategy
        executor = "auto" if strategy is None else strategy.executor
        # Replicas are known by their numbers: one without a node counts too.
        threads, blas = choose_executor(graph, max(lanes, default=0) + 1, executor)
        return _Recorded(graph, Program(graph, threads, blas), result, arguments.leaves)

    def _graph(self, arguments: "_Arguments") -> tuple[Graph, Any]:
        recorder = GraphRecorder()
        fed = [recorder.input(*each) for each in arguments.inputs]
        args, kwargs = arguments.with_tensors(fed)
        with recorder.recording():
            result = self.python_function(*args, **kwargs)
        outputs = [each for each in _parts_of(result) if isinstance(each, RecordedTensor)]
        return recorder.finish(outputs), result


class _Arguments:
    """The arguments of a call: tensors to be fed, and everything else, which is part of the key.

    Attributes:
        key: Equal for calls that one recording serves.
        inputs: What is fed.
        arrays: The values to feed.
        leaves: The leaves of the arguments.
    """

    def __init__(self, structure: Any) -> None:
        self._structure = structure
        self.leaves = _nest.flatten(structure)
        self.inputs: list[_Input] = []
        self.arrays: list[Any] = []
        device = place("_Arg", ("GPU", "CPU"))
        keys = [self._key_of(leaf, device) for leaf in self.leaves]
        form = repr(_nest.map_structure(lambda _: 0, structure))
        self.key = (form, device, *keys)

    def _key_of(self, leaf: Any, device: Device) -> Any:
        if type(leaf) in _per_replica:
            parts = tuple(
                self._tensor_key(part, device, lane) for lane, part in enumerate(leaf.values)
            )
            return type(leaf), parts, getattr(leaf, "first_examples", None)
        return self._tensor_key(leaf, device, JOINT)

    def _tensor_key(self, leaf: Any, device: Device, lane: int) -> Any:
        if isinstance(leaf, Tensor):
            return self._feed(leaf._array, _Input(leaf.spec, leaf._device, lane))
        if isinstance(leaf, np.ndarray | np.generic):
            array = np.asarray(to_array(leaf))
            return self._feed(array, _Input(TensorSpec(array.shape, array.dtype), device, lane))
        if isinstance(leaf, _STATIC):
            # As text: 0.0 equals -0.0, and NaN not even itself.
            return type(leaf), leaf.hex() if isinstance(leaf, float) else leaf
        return "object", id(leaf)

    def _feed(self, array: Any, given: _Input) -> _Input:
        self.arrays.append(array)
        self.inputs.append(given)
        return given

    def with_tensors(self, tensors: list[Tensor]) -> Any:
        """Return the arguments with these tensors in the places of what is fed."""
        remaining = iter(tensors)

        def taken(leaf: Any) -> Any:
            fed = isinstance(leaf, Tensor | np.ndarray | np.generic)
            return next(remaining) if fed else leaf

        def leaf_with_tensors(leaf: Any) -> Any:
            rebuild = _per_replica.get(type(leaf))
            if rebuild is not None:
                return rebuild(leaf, [taken(part) for part in leaf.values])
            return taken(leaf)

        leaves = [leaf_with_tensors(leaf) for leaf in self.leaves]
        return _nest.pack_like(self._structure, leaves)


def _as_tensor(leaf: Any) -> Any:
    return constant(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _parts_of(result: Any) -> list[Any]:
    parts: list[Any] = []
    for leaf in _nest.flatten(result):
        parts += leaf.values if type(leaf) in _per_replica else [leaf]
    return parts


def _run(recorded: _Recorded, arrays: list[Any]) -> Any:
    """Run a recorded function once, and return its results as tensors of their own."""
    graph, program = recorded.graph, recorded.program
    # Before anything is written: what is returned needs memory too.
    storages = [value.device.allocate(*value.spec) for value in graph.outputs]
    for value, target, array in zip(graph.inputs, program.inputs, arrays, strict=True):
        value.device.backend.copy_between(array, target)
    team = None if graph.strategy is None else graph.strategy.team(program.threads)
    with variable_writes:
        program.run(1, {}, lambda _: True, team)
    tensors = []
    for value, array, storage in zip(graph.outputs, program.outputs, storages, strict=True):
        value.device.backend.copy_between(array, storage.array)
        tensors.append(Tensor(storage.array, storage, value.device, value.spec))
    remaining = iter(tensors)

    def taken(part: Any) -> Any:
        return next(remaining) if isinstance(part, RecordedTensor) else part

    def with_tensors(leaf: Any) -> Any:
        rebuild = _per_replica.get(type(leaf))
        if rebuild is None:
            return taken(leaf)
        return rebuild(leaf, [taken(part) for part in leaf.values])

    return _nest.map_structure(with_tensors, recorded.result)


def function(
    func: Callable[..., Any] | None = None,
    *,
    jit_compile: bool | None = None,
    autograph: bool | None = None,
    reduce_retracing: bool = False,
) -> Any:
    """Return a function that is recorded once for each kind of call, and then replayed.

    The first call with arguments of some shapes and dtypes runs Python and notes which ops it
    calls; later ones replay those on memory that is kept. So what Python does beside calling ops -
    printing, appending to lists, choosing by a number - happens when the function is recorded, and
    not again. Tensors and arrays are fed to each call; Python's numbers, strings and objects are
    part of what is recorded, and other ones are recorded anew.

    Around `strategy.run` it records the step of all replicas as one. A call inside a replica, or
    with a tape open around it, runs Python.

    Args:
        func: The function; None returns a decorator.
        jit_compile: Accepted for compatibility, like the two below; there is nothing to choose.
        autograph: Python's `if` and loops are not translated: on tensors' values they are errors.
        reduce_retracing: Accepted for compatibility.

    Raises:
        TypeError: `func` cannot be called.
        OperatorNotAllowedInGraphError: When it is called: Python asks for a tensor's value.

    Example:
        >>> import mirrored as mr
        >>> w = mr.Variable(2.0)
        >>> @mr.function
        ... def step(x):
        ...     print("recorded for", x.shape)
        ...     w.assign_add(mr.reduce_sum(x))
        ...     return w * 2.0
        >>> float(step(mr.constant([1.0, 2.0])))
        recorded for (2,)
        10.0
        >>> float(step(mr.constant([3.0, 4.0])))
        24.0
    """
    del jit_compile, autograph, reduce_retracing
    if func is None:
        return function
    if isinstance(func, Function):
        return func
    if not callable(func):
        raise TypeError(f"`mr.function` takes a function. Received: {func!r}")
    return Function(func)
