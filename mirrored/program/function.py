"""Users' own functions, recorded once for each kind of call and then replayed.

A call with a tape open around it, or inside a replica or another recorded function, runs Python.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mirrored import _nest
from mirrored._interrupt import InterruptGuard
from mirrored.errors import OutOfRangeError
from mirrored.ops.dispatch import constant
from mirrored.ops.listeners import active_listeners
from mirrored.ops.random import current_position
from mirrored.ops.recording import (
    Moves,
    RecordedTensor,
    active_recorder,
    variable_writes,
)
from mirrored.ops.tensor import Tensor
from mirrored.program.arguments import Arguments, Results
from mirrored.program.factory import Runnable, make_program
from mirrored.program.graph import JOINT, Graph
from mirrored.program.pulls import Plan, Pulls
from mirrored.program.recorder import GraphRecorder
from mirrored.program.recordings import Recordings
from mirrored.program.signature import Signature

_MOST_PLANS = 16
_NOTHING_TO_SPOIL = contextlib.nullcontext()
_TAKES_NOTHING: list[Plan] = [()]


class _Recorded(NamedTuple):
    """A recorded function with its memory.

    Attributes:
        graph: What it computes.
        program: That, bound to memory.
        results: What it returns; None where a dataset ends in it: it does what comes before.
        kept: What its key is made of, so that no other object takes over an identity.
    """

    graph: Graph
    program: Runnable
    results: Results | None
    kept: Any


class Function:
    """A Python function that is recorded; `function` makes them.

    Args:
        python_function: The function.
        signature: What its positional arguments are; None: anything.
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        signature: Signature | None = None,
    ) -> None:
        """Record nothing yet."""
        self._signature = signature
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self._name: str = getattr(python_function, "__name__", type(python_function).__name__)
        self._recordings: Recordings[_Recorded] = Recordings(f"The function {self._name}")
        # What calls with arguments of one kind took from datasets, the latest kind first.
        self._plans: dict[Any, list[Plan]] = {}
        self._under: dict[int, tuple[Any, Function]] = {}
        self._lock = threading.RLock()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function as a method."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function: replayed where it was recorded for such arguments."""
        if self._signature is not None:
            args, kwargs = self._signature.converted(self.python_function, args, kwargs)
        inside = active_recorder() is not None or current_position().run is not None
        if inside or active_listeners():
            args, kwargs = _nest.map_structure(_as_tensor, (args, kwargs))
            return self.python_function(*args, **kwargs)
        with self._lock:
            arguments = Arguments((args, kwargs))
            plans = self._plans.get(arguments.key)
            if plans == _TAKES_NOTHING:  # The usual case, and the one that has to be quick.
                recorded = self._recordings.find((arguments.key, ()), is_current=_is_current)
                with variable_writes:
                    if recorded is not None and recorded.graph.is_current():
                        return _run(recorded, arguments.arrays)
            with contextlib.closing(Pulls(arguments.streams)) as pulls:
                return self._run_with(arguments, pulls)

    def _run_with(self, arguments: Arguments, pulls: Pulls) -> Any:
        """Run the function with elements of datasets, recorded before where it has to be."""
        while True:
            recorded, moves = self._known(arguments.key, pulls), -1
            if recorded is None:
                recorded, moves = self._record(arguments, pulls)
            # Not while it is recorded: its replicas have threads, which may write too.
            with variable_writes:
                # Another thread may have brought its variables to other places meanwhile. (Where
                # two optimizers share some, the function itself does, whenever it is recorded.)
                if moves == Moves.count or recorded.graph.is_current():
                    pulls.take()
                    return _run(recorded, arguments.arrays + pulls.arrays)

    def _known(self, key: Any, pulls: Pulls) -> _Recorded | None:
        """Return the recording for such arguments and elements of datasets, if there is one."""
        for plan in self._plans.get(key, ()):
            if pulls.match(plan):
                return self._recordings.find((key, plan), is_current=_is_current)
        return None

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

    def _record(self, arguments: Arguments, pulls: Pulls) -> tuple[_Recorded, int]:
        """Record the function; return that, and how many moves of variables there were by then."""
        graph, results = self._graph(arguments, pulls, logs=True)
        if not graph.is_current():  # Its variables were brought together on the way.
            graph, results = self._graph(arguments, pulls, logs=False)
        moves = Moves.count
        lanes = {node.lane for node in graph.nodes} - {JOINT}
        strategy = graph.strategy
        executor = "auto" if strategy is None else strategy.executor
        # Replicas are known by their numbers: one without a node counts too.
        program = make_program(graph, max(lanes, default=0) + 1, executor)
        recorded = _Recorded(graph, program, results, arguments.known)
        plans = self._plans.setdefault(arguments.key, [])
        if pulls.plan not in plans:
            plans.insert(0, pulls.plan)
            del plans[_MOST_PLANS:]
        return self._recordings.keep((arguments.key, pulls.plan), recorded), moves

    def _graph(
        self, arguments: Arguments, pulls: Pulls, *, logs: bool
    ) -> tuple[Graph, Results | None]:
        recorder = GraphRecorder(self._name, logs=logs)
        fed = [recorder.input(*each) for each in arguments.inputs]
        args, kwargs = arguments.with_tensors(fed)
        pulls.record(recorder)
        results = None
        with recorder.recording(), contextlib.suppress(OutOfRangeError):
            result = self.python_function(*args, **kwargs)
            results = Results(result, lambda part: isinstance(part, RecordedTensor))
        recorder.on_pull = None  # What is kept of the recording must not keep its first elements.
        return recorder.finish([] if results is None else results.parts), results


def _as_tensor(leaf: Any) -> Any:
    return constant(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _is_current(recorded: _Recorded) -> bool:
    return recorded.graph.is_current()


def _run(recorded: _Recorded, arrays: list[Any]) -> Any:
    """Run a recorded function once, and return its results as tensors of their own."""
    graph, program = recorded.graph, recorded.program
    # Before anything is written: what is returned needs memory too.
    storages = [value.device.allocate(*value.spec) for value in graph.outputs]
    program.take(arrays)
    team = None if graph.strategy is None else graph.strategy.team(program.threads)
    with InterruptGuard(whole=True, may_break=True) if graph.writes else _NOTHING_TO_SPOIL:
        program.run(1, {}, _go_on, team)
    tensors = []
    for value, array, storage in zip(graph.outputs, program.outputs, storages, strict=True):
        value.device.backend.copy_between(array, storage.array)
        tensors.append(Tensor(storage.array, storage, value.device, value.spec))
    if recorded.results is None:
        raise OutOfRangeError("End of sequence")
    return recorded.results.with_tensors(tensors)


def _go_on(_: int) -> bool:
    return True


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
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
        input_signature: A `TensorSpec` for each argument, whose sizes may be None, or a structure
            of them. Numbers and arrays are converted to its dtype, and one recording serves all
            numbers.
        jit_compile: Accepted for compatibility, like the two below; there is nothing to choose.
        autograph: Python's `if` and loops are not translated: on tensors' values they are errors.
        reduce_retracing: Accepted for compatibility.

    Raises:
        TypeError: `func` cannot be called; or, when it is called, arguments are not those of the
            signature.
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
    signature = None if input_signature is None else Signature(input_signature)
    if func is None:
        return functools.partial(function, input_signature=input_signature)
    if isinstance(func, Function):
        return func
    if not callable(func):
        raise TypeError(f"`mr.function` takes a function. Received: {func!r}")
    return Function(func, signature)
