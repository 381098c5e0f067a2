"""Recorded functions of users: recorded once for each kind of call, then replayed.

A call with a tape open around it, or inside a replica or another recorded function, runs Python.
"""

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

import numpy as np

from mirrored import _nest
from mirrored._absent import refused_members
from mirrored._arguments import explained
from mirrored._naming import name_scope
from mirrored._threads import failed, raise_failed
from mirrored._tracebacks import shorten, shortened
from mirrored.devices import hold_devices
from mirrored.ops.conversion import constant
from mirrored.ops.hooks import active_listeners, active_recorder
from mirrored.ops.rng_state import current_position
from mirrored.ops.tensor import Operators, Tensor
from mirrored.program.concrete_function import ConcreteFunction, Structure, described, outlined
from mirrored.program.function_arguments import Arguments, Parameters, as_tensors
from mirrored.program.function_tracing import DatasetInputs, Demand, trace
from mirrored.program.signature import Signature
from mirrored.program.trace_cache import Trace, TraceCache
from mirrored.program.variable_access import Moves, is_ruled, refuse, ruled_by, variable_writes

if TYPE_CHECKING:  # Most machines never need it.
    from mirrored.program.templates import Templates


_eagerly = [False]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Let recorded functions run Python, op by op, from now on; or record them again.

    `fit`, `evaluate` and `predict` follow it too.

    Args:
        run_eagerly: Whether they run Python.

    Example:
        >>> import mirrored as mr
        >>> mr.config.run_functions_eagerly(True)
        >>> half = mr.function(lambda x: print("half of", float(x)) or x / 2.0)
        >>> y = half(half(mr.constant(8.0)))
        half of 8.0
        half of 4.0
        >>> mr.config.run_functions_eagerly(False)
    """
    _eagerly[0] = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return whether recorded functions run Python instead.

    Example:
        >>> import mirrored as mr
        >>> mr.config.functions_run_eagerly()
        False
    """
    return _eagerly[0]


_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_MOST_PLANS = 16
_MOST_MAKERS = 64
_TAKES_NOTHING: Sequence[Demand] = [()]


@refused_members(
    "tf.function",
    "experimental_get_compiler_ir function_spec function_type get_initialization_function",
)
class Function(Generic[_P, _R]):
    """A Python function that is recorded; `function` makes them.

    Args:
        python_function: The function.
        signature: What its positional arguments are; None: anything.
    """

    def __init__(
        self,
        python_function: Callable[_P, _R],
        signature: Signature | None = None,
    ) -> None:
        """Record nothing yet."""
        self._signature = signature
        self.parameters = Parameters(python_function)
        functools.update_wrapper(self, python_function)
        self.python_function: Callable[..., _R] = python_function
        self._name: str = getattr(python_function, "__name__", type(python_function).__name__)
        self._traces = TraceCache(f"The function {self._name}")
        self._templates: Templates | None = None
        # What calls with arguments of one kind took from datasets, if they did, the latest first.
        self._demands: dict[Any, list[Demand]] = {}
        self._under: dict[int, tuple[Any, Function[..., Any]]] = {}
        # The objects among the arguments of calls that ran Python and made variables.
        self._makers: list[list[Any]] = []
        hold_devices(self)

    def lose_devices(self) -> None:
        """Forget what calls were like: that names devices and strategies which are about to go."""
        self._demands.clear()
        self._templates = None
        self._under.clear()

    def __reduce__(self) -> Any:
        function = self.python_function
        if isinstance(function, types.MethodType):
            return Function, (function, self._signature)
        value: Any = sys.modules.get(getattr(function, "__module__", ""))
        name = getattr(function, "__qualname__", "")
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is self:
            return name  # By its name, as any function.
        raise TypeError(
            "A recorded function that is not an attribute of a module cannot be pickled or "
            "copied: the copy would refer to the old objects. Received: the mr.function "
            f"{self._name!r}. Pickle the objects that it uses, and create the function again."
        )

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...

    @overload
    def __get__(
        self: "Function[Concatenate[Any, _Q], _R]", instance: object, owner: Any = None
    ) -> Callable[_Q, _R]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function as a method."""
        return self if instance is None else _Method(self, instance)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._name

    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        """The specs that it was given as `input_signature`; None: there are none."""
        return None if self._signature is None else self._signature.specs

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run the function: replayed where it was recorded for such arguments."""
        try:
            if functions_run_eagerly():
                return self.python_function(*args, **kwargs)
            structures: Structure = args, kwargs
            if self._signature is not None:
                structures = self._signature.converted(args, kwargs)
            inside = active_recorder() is not None or current_position().run is not None
            if inside or active_listeners():
                tensors, named = _nest.map_structure(_as_tensor, structures)
                result: _R = self._run_python(tensors, named)
                return result
            if failed:  # A save that a thread has made.
                raise_failed()
            if self._signature is None and (kwargs or len(args) != self.parameters.count):
                structures = self.parameters.completed(args, kwargs)
            with self._traces.lock:
                arguments = Arguments(*structures)
                # The usual case, and the one that has to be quick.
                if not self._demands or arguments.key not in self._demands:
                    with variable_writes:
                        recorded = self._traces.find((arguments.key, ()))
                        if recorded is not None:
                            result = recorded.call(arguments.arrays)
                            return result
                with contextlib.closing(DatasetInputs(arguments.iterators)) as dataset_inputs:
                    result = self._run_with(arguments, dataset_inputs)
                    return result
        except Exception as error:
            shorten(error)
            raise

    @shortened
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the function for one kind of call, which is recorded now.

        Args:
            *args: Its arguments: a tensor, or a `TensorSpec`, for each tensor. Where the function
                has an `input_signature`, they may be left out.
            **kwargs: Others by their names.

        Raises:
            TypeError: They are not those of the function.

        Example:
            >>> import mirrored as mr
            >>> double = mr.function(lambda x: x * 2.0)
            >>> concrete = double.get_concrete_function(mr.TensorSpec([2]))
            >>> concrete([1.0, 2.0]).numpy()
            array([2., 4.], dtype=float32)
            >>> concrete.structured_outputs.shape
            (2,)
        """
        return self._concrete((), args, kwargs)

    def _concrete(
        self, own: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ConcreteFunction:
        if self._signature is not None and not args and not kwargs:
            return ConcreteFunction(self, (*own, *self._signature.specs), {}, len(own))
        values, named = self.parameters.completed((*own, *args), kwargs)
        self.parameters.check(values, named)
        return ConcreteFunction(self, values, named, len(own))

    def trace_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
        """Return the recording for a complete call, made where there is none.

        Args:
            args: The call's positional arguments.
            kwargs: Its keyword arguments.
        """
        if self._signature is not None:
            args, kwargs = self._signature.converted(args, kwargs)
        arguments = Arguments(args, kwargs)
        with self._traces.lock, contextlib.closing(DatasetInputs([])) as dataset_inputs:
            known = self._known(arguments, dataset_inputs)
            return known or self._record(arguments, dataset_inputs)[0]

    def experimental_get_tracing_count(self) -> int:
        """Return how many recordings were made: one for each kind of call.

        Calls that run Python - with a tape open around them, in replicas, in other recorded
        functions - make none.

        Example:
            >>> import mirrored as mr
            >>> double = mr.function(lambda x: x * 2.0)
            >>> y = double(double(mr.constant(1.0)))
            >>> double.experimental_get_tracing_count()
            1
        """
        return self._traces.count + sum(child._traces.count for _, child in self._under.values())

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Return a text that says for which kinds of calls there are recordings.

        Args:
            verbose: Whether each argument has a line of its own.
        """
        texts = []
        for recording in self._traces:
            if recording.outline is None:
                continue
            arguments = list(self.parameters.named(*recording.outline))
            returned = None if recording.results is None else recording.results.structure
            texts.append(described(arguments, returned, verbose=verbose))
        return ("\n\n" if verbose else "\n").join(texts)

    def _run_python(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function as it is; where nobody else looks, it makes variables in one call."""
        created: list[str] = []

        def rule(name: str) -> None:
            objects = Arguments(args, kwargs).known
            if any(_same(objects, maker) for maker in self._makers):
                refuse(name)
            created.append(name)

        with name_scope(""), contextlib.nullcontext() if is_ruled() else ruled_by(rule):
            result = as_tensors(self.python_function(*args, **kwargs), self.python_function)
        if created:
            self._makers = [Arguments(args, kwargs).known, *self._makers[: _MOST_MAKERS - 1]]
        return result

    def _run_with(self, arguments: Arguments, dataset_inputs: DatasetInputs) -> Any:
        """Run the function with elements of datasets, recorded before where it has to be."""
        while True:
            recorded, moves = self._known(arguments, dataset_inputs), -1
            if recorded is None:
                recorded, moves = self._record(arguments, dataset_inputs)
            # Not while it is recorded: its replicas have threads, which may write too.
            with variable_writes:
                # Another thread may have brought its variables to other places meanwhile. (Where
                # two optimizers share some, the function itself does, whenever it is recorded.)
                if moves == Moves.count or recorded.graph.is_current():
                    dataset_inputs.take()
                    return recorded.call(arguments.arrays + dataset_inputs.arrays)

    def _known(self, arguments: Arguments, dataset_inputs: DatasetInputs) -> Trace | None:
        """Return the recording for such arguments and elements of datasets, if there is one."""
        demand = self._demand(arguments.key, dataset_inputs)
        known = None if demand is None else self._traces.find((arguments.key, demand))
        if known is not None or not arguments.variables or self._templates is None:
            return known
        alike = arguments.alike()
        demand = self._demand(alike, dataset_inputs)
        if demand is None or self._templates_for(arguments) is None:
            return None
        bound = self._templates.bound((alike, demand), arguments)
        if bound is None:
            return None
        self._note(arguments.key, demand)
        return self._traces.keep((arguments.key, demand), bound, recorded=False)

    def _templates_for(self, arguments: Arguments) -> "Templates | None":
        """Return what keeps recordings for others, where what is recorded for these may serve."""
        if not arguments.variables:
            return None
        from mirrored.program.templates import Templates, may_share  # Few take variables.

        if self._templates is None:
            self._templates = Templates()
        return self._templates if may_share(self.python_function, arguments) else None

    def _demand(self, key: Any, dataset_inputs: DatasetInputs) -> Demand | None:
        """Return what such a call takes from datasets, where these can give it; None: unknown."""
        for demand in self._demands.get(key, _TAKES_NOTHING):
            if dataset_inputs.match(demand):
                return demand
        return None

    def _note(self, key: Any, demand: Demand) -> None:
        """Note what a call took from datasets."""
        if demand or key in self._demands:
            demands = self._demands.setdefault(key, [])
            if demand not in demands:
                demands.insert(0, demand)
                del demands[_MOST_PLANS:]

    def under(self, runner: Any, run: Callable[..., Any]) -> "Function[..., Any]":
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
                ),
                self._signature,
            )
            known = self._under[id(runner)] = (runner, wrapped)
        return known[1]

    @staticmethod
    def behind(called: Any) -> "tuple[Function[..., Any], tuple[Any, ...]] | None":
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

    def _record(self, arguments: Arguments, dataset_inputs: DatasetInputs) -> tuple[Trace, int]:
        """Record the function; return that, and how many moves of variables there were by then."""

        def function(fed: list[Tensor]) -> Any:
            args, kwargs = arguments.with_tensors(fed)
            return as_tensors(self.python_function(*args, **kwargs), self.python_function)

        templates = self._templates_for(arguments)
        # As TensorFlow has a function for each object that it is a method of.
        is_first = not any(_same(arguments.known, known.kept) for known in self._traces)
        recording = trace(
            self._name, arguments.inputs, function, dataset_inputs=dataset_inputs, may_make=is_first
        )
        graph = recording.graph
        # Workers that have joined record it for the first time.
        is_new = all(known.graph.generation != graph.generation for known in self._traces)
        if is_new and graph.strategy is not None:
            graph.strategy.check_first(graph, self._name)
        moves, demand = Moves.count, dataset_inputs.demand
        recording.kept, recording.outline = arguments.known, outlined(arguments.structures)
        recording.watch(arguments.variables)
        if templates is not None:
            recording.own = frozenset(map(id, arguments.copies()))
            recording = templates.add((arguments.alike(), demand), recording, arguments)
            self._note(arguments.alike(), demand)
        recording.program(recording.arenas)  # Where there is no room for it, it is not kept.
        self._note(arguments.key, demand)
        return self._traces.keep((arguments.key, demand), recording), moves


class _Method(functools.partial[Any]):
    """A recorded function as the method of an object."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.func, name)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the method for one kind of call; see `Function.get_concrete_function`."""
        recorded: Any = self.func
        concrete: ConcreteFunction = recorded._concrete(self.args, args, kwargs)
        return concrete


def _as_tensor(leaf: Any) -> Any:
    return constant(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _same(some: list[Any], others: list[Any]) -> bool:
    """Return whether the objects of two calls are the same."""
    return list(map(id, some)) == list(map(id, others))


class _Decorator(Protocol):
    """What `function` returns where it is given no function."""

    @overload
    def __call__(self, func: Callable[_P, Operators | float], /) -> Function[_P, Tensor]: ...

    @overload
    def __call__(self, func: Callable[_P, _R], /) -> Function[_P, _R]: ...


@overload
def function(
    func: Callable[_P, Operators | float],
    input_signature: Sequence[Any] | None = None,
    *,
    jit_compile: bool | None = None,
    autograph: bool | None = None,
    reduce_retracing: bool = False,
) -> Function[_P, Tensor]: ...


@overload
def function(
    func: Callable[_P, _R],
    input_signature: Sequence[Any] | None = None,
    *,
    jit_compile: bool | None = None,
    autograph: bool | None = None,
    reduce_retracing: bool = False,
) -> Function[_P, _R]: ...


@overload
def function(
    func: None = None,
    input_signature: Sequence[Any] | None = None,
    *,
    jit_compile: bool | None = None,
    autograph: bool | None = None,
    reduce_retracing: bool = False,
) -> _Decorator: ...


@explained
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
    part of what is recorded, and other ones are recorded again.

    It returns tensors and None: a variable as the value that it has at the end, a number as a
    constant. Variables are made by its first call alone, where there are none yet; that call then
    runs Python twice.

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
        TypeError: `func` cannot be called, or has not the signature's arguments; or, when it is
            called, its arguments are not those of the signature, or it returns what becomes no
            tensor.
        ValueError: When it is called: it creates variables again in every call.
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
        return functools.partial(function, input_signature=input_signature)
    if not callable(func):
        raise TypeError(f"`mr.function` takes a function. Received: {func!r}")
    if input_signature is None:
        return func if isinstance(func, Function) else Function(func)
    if isinstance(func, Function):
        func = func.python_function
    return Function(func, Signature(input_signature, func))
