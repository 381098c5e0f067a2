"""From an op's kernel and a program's arrays to the plain calls that compute it, as functions.

A kernel is run once with a stand-in for what it computes with, which notes the calls that it makes.
Replaying those costs nothing of what the kernel does in Python, and gives the same bits. A
generated function finds everything in local variables: a list of calls in a loop takes longer.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from mirrored._tracebacks import GENERATED
from mirrored.backends import Backend


class Call(NamedTuple):
    """One call of a function with arguments that never change.

    Attributes:
        function: What is called.
        args: Its arguments.
        keywords: The names of the last ones, where they are given by name.
        node: The node that it is a part of, where there is one.
    """

    function: Any
    args: tuple[Any, ...] = ()
    keywords: tuple[str, ...] = ()
    node: Any = None

    def bound(self) -> Callable[[], Any]:
        """Return a function without arguments that makes the call."""
        positional = len(self.args) - len(self.keywords)
        named = dict(zip(self.keywords, self.args[positional:], strict=True))
        return functools.partial(self.function, *self.args[:positional], **named)

    def run(self) -> None:
        """Make the call."""
        self.bound()()


# Newer releases of NumPy warn when these get `out` by position.
_OUT_BY_NAME = frozenset({"maximum", "minimum"})


class _Notes:
    """Stands for what kernels compute with, and notes what is called of it."""

    def __init__(self, xp: Any, calls: list[Call]) -> None:
        self._xp = xp
        self._calls = calls

    def _add(self, function: Any, args: tuple[Any, ...], keywords: tuple[str, ...] = ()) -> None:
        self._calls.append(Call(function, args, keywords))


class LaunchNotes(_Notes):
    """Stands for what launches a stream's kernels: what a launch needs is made when it is noted."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return a function that notes its call."""
        function = getattr(self._xp, name)

        def note(*args: Any, **kwargs: Any) -> None:
            self._xp.prepare(name, args)
            self._add(function, (*args, *kwargs.values()), tuple(kwargs))

        return note


class ArrayNotes(_Notes):
    """Stands for an array module of the host, and notes calls in the form that takes least time."""

    @property
    def ndarray(self) -> "_NotedMethods":
        """The class of arrays, of which kernels call methods that change one in place."""
        return _NotedMethods(self._add, self._xp.ndarray)

    def moveaxis(self, *args: Any) -> Any:
        """Return a view, which is made once."""
        return self._xp.moveaxis(*args)

    def copyto(
        self, target: Any, source: Any, casting: str = "same_kind", where: Any = True
    ) -> None:
        """Note a copy, unless the source is the target already."""
        if where is not True:
            self._add(self._xp.copyto, (target, source, casting, where))
            return
        if _same_memory(target, source):
            return
        source = _scalar_like(source, target)
        if casting == "unsafe" or getattr(source, "dtype", None) == target.dtype:
            self._add(operator.setitem, (target, Ellipsis, source))  # In half the time.
        else:
            self._add(self._xp.copyto, (target, source, casting))

    def dot(self, a: Any, b: Any, *, out: Any) -> None:
        """Note the method that the function calls."""
        self._add(a.dot, (b, out))

    def take(self, x: Any, places: Any, *, out: Any, mode: str, axis: int | None = None) -> None:
        """Note the method that the function calls."""
        self._add(x.take, (places, axis, out, mode))

    def put(self, x: Any, places: Any, values: Any) -> None:
        """Note an assignment to elements."""
        self._add(operator.setitem, (x, places, values))

    def __getattr__(self, name: str) -> "_Noted":
        """Return a function that notes its call."""
        return _Noted(self._add, name, getattr(self._xp, name))


class _NotedMethods(NamedTuple):
    """Stands for a class of arrays, and notes calls of its methods."""

    add: Callable[..., None]
    array: Any

    def sort(self, x: Any) -> None:
        """Note that an array is sorted along its last axis."""
        self.add(self.array.sort, (x,))

    def partition(self, x: Any, kth: int) -> None:
        """Note that an array is partitioned along its last axis."""
        self.add(self.array.partition, (x, kth))


class _Noted:
    """Stands for a function of an array module, and notes its calls."""

    def __init__(self, add: Callable[..., None], name: str, function: Any) -> None:
        self._add = add
        self._name = name
        self._function = function

    def __call__(self, *args: Any, out: Any, **kwargs: Any) -> None:
        function = self._function
        if isinstance(function, np.ufunc) and not kwargs:
            args = _scalars_typed(args)
            if self._name not in _OUT_BY_NAME:
                self._add(function, (*args, out))
                return
        self._add(function, (*args, *kwargs.values(), out), (*kwargs, "out"))

    def reduce(
        self, x: Any, axis: Any, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> None:
        """Note the ufunc's method."""
        self._add(self._function.reduce, (x, _axis(axis), dtype, out, keepdims))

    def accumulate(self, x: Any, *, axis: int, dtype: Any, out: Any) -> None:
        """Note the ufunc's method, whose arguments are taken by position in less time."""
        self._add(self._function.accumulate, (x, axis, dtype, out))


def kernel_calls(
    backend: Backend, kernel: Callable[..., None], out: Any, *inputs: Any, **attrs: Any
) -> list[Call]:
    """Return the calls by which a kernel computes `out`.

    Args:
        backend: The kernel's.
        kernel: The kernel.
        out: The array that it writes, or the arrays.
        *inputs: Those that it reads.
        **attrs: Its attributes, and its workspace where it has one.
    """
    calls: list[Call] = []
    if backend.host_readable:
        kernel(ArrayNotes(backend.xp, calls), out, *inputs, **attrs)
    else:
        # In the state of the device: to compile may fail, and does so before the first step.
        backend.run(kernel, LaunchNotes(backend.xp, calls), out, *inputs, **attrs)
    return calls


def _same_memory(a: Any, b: Any) -> bool:
    """Whether two arrays are the same view of the same memory."""
    if type(a) is not type(b) or (a.shape, a.strides, a.dtype) != (b.shape, b.strides, b.dtype):
        return False
    return bool(a.__array_interface__["data"] == b.__array_interface__["data"])


def _axis(axis: Any) -> Any:
    """Return one axis as a number, which NumPy is quicker to understand than a tuple of one."""
    return axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis


def _scalars_typed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a ufunc's inputs with Python's numbers as arrays of the dtype that they adopt.

    NumPy would make such an array in every call.
    """
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    if len(arrays) in (0, len(args)):
        return args
    return tuple(_scalar_like(arg, arrays[0]) for arg in args)


def _scalar_like(value: Any, array: Any) -> Any:
    if (type(value) is int and array.dtype.kind in "if") or (
        type(value) is float and array.dtype.kind == "f"
    ):
        return _scalar(value, math.copysign(1.0, value), array.dtype)  # -0.0 equals 0.0.
    return value


@functools.lru_cache(maxsize=256)
def _scalar(value: float, sign: float, dtype: Any) -> Any:
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array


_LITERALS = (bool, int, str, type(None))
# Longer programs are several functions: those of layers that are alike are one text, compiled once.
_LINES = 60


class _Placeholder(str):
    """The name of a loop's variable, which stands for itself in source."""

    __slots__ = ()


class _Names:
    """Gives every object that a function uses a name."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._by_id: dict[int, str] = {}

    def of(self, value: Any) -> str:
        name = self._by_id.get(id(value))  # Most are arrays, of which many stand in several places.
        if name is None:
            if isinstance(value, _Placeholder):
                return str(value)
            if isinstance(value, _LITERALS):
                return repr(value)
            name = f"v{len(self.values)}"
            self.values[name] = value
            self._by_id[id(value)] = name
        return name

    def line(self, step: Call | Callable[[], bool]) -> str:
        """Return the source of a call, or of a check that ends the function where it fails."""
        if not isinstance(step, Call):
            return f"if not {self.of(step)}(): return False"
        args = [self._by_id.get(id(arg)) or self.of(arg) for arg in step.args]
        if step.function is operator.setitem:
            return f"{args[0]}[{args[1]}] = {args[2]}"
        for place, key in enumerate(step.keywords, len(args) - len(step.keywords)):
            args[place] = f"{key}={args[place]}"
        return f"{self.of(step.function)}({', '.join(args)})"


def make_function(
    calls: Sequence[Call], stop_after: Sequence[tuple[int, Callable[[], bool]]] = ()
) -> Callable[[], bool]:
    """Return a function that makes calls, one after the other, and returns True.

    Args:
        calls: The calls.
        stop_after: After how many of them to ask which function whether to go on; where it says
            no, False is returned at once.
    """
    steps: list[Call | Callable[[], bool]] = list(calls)
    for count, check in sorted(stop_after, key=lambda pair: -pair[0]):
        steps.insert(count, check)
    if len(steps) > _LINES:
        steps = [_function(steps[i : i + _LINES]) for i in range(0, len(steps), _LINES)]
    return _function(steps)


def _function(steps: Sequence[Call | Callable[[], bool]]) -> Callable[[], bool]:
    names = _Names()
    return _compiled([*map(names.line, steps), "return True"], names)


def make_loop(pieces: Sequence[Sequence[Call]]) -> Callable[[], bool]:
    """Return a function that makes the same calls on piece after piece.

    Args:
        pieces: For each piece its calls: the same functions with other arrays.
    """
    if len(pieces) == 1:
        return make_function(pieces[0])
    columns: dict[tuple[int, ...], tuple[_Placeholder, list[Any]]] = {}
    template = []
    for calls in zip(*pieces, strict=True):
        args = []
        for values in zip(*(call.args for call in calls), strict=True):
            if all(value is values[0] for value in values):
                args.append(values[0])
                continue
            # An array that stands in several places is one variable of the loop.
            key = tuple(id(value) for value in values)
            name, _ = columns.setdefault(key, (_Placeholder(f"p{len(columns)}"), list(values)))
            args.append(name)
        template.append(calls[0]._replace(args=tuple(args)))
    names = _Names()
    rows = list(zip(*(values for _, values in columns.values()), strict=True))
    targets = ", ".join(name for name, _ in columns.values())
    body = [f"    {names.line(call)}" for call in template]
    return _compiled([f"for {targets}, in {names.of(rows)}:", *body, "return True"], names)


def _compiled(lines: Sequence[str], names: _Names) -> Callable[[], bool]:
    body = "\n    ".join(lines)
    code = _code(f"def replay({', '.join(names.values)}):\n    {body}\n")
    # The parameters' defaults are the objects: the code itself knows only their names.
    return FunctionType(code, {}, argdefs=tuple(names.values.values()))


# Steps of other batches, and of other models of the same kind, are often the same text.
@functools.lru_cache(maxsize=256)
def _code(source: str) -> CodeType:
    namespace: dict[str, Any] = {}
    # The source is made above of names and literals alone; nothing in it comes from outside.
    exec(compile(source, GENERATED, "exec"), namespace)
    code: CodeType = namespace["replay"].__code__
    return code
