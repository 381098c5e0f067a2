"""Calls of a user's function for one element after another, most of them from a recording.

A replay makes the calls of NumPy that the function's ops would make, without the Python around
them, so its bits are the same. Nothing is computed before its element is asked for.
"""

import builtins
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.data.elements import Element, Form, call_with, host_scope
from mirrored.devices import get_log_device_placement, logical_devices
from mirrored.ops import Tensor, TensorSpec
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import graph_scope
from mirrored.ops.rng_state import RngState, drawing_from
from mirrored.ops.spec import default_float, image_data_format
from mirrored.program import GraphRecorder, Program
from mirrored.program.dataflow import SHARED

# To record and compile a function takes as long as some calls, and saves little where an op
# computes many bytes or products.
_AFTER, _MOST_SHAPES, _MOST_WORK = 24, 16, 1 << 20

# What functions may read from outside. Nobody changes the attributes of these modules, and their
# functions raise an error for a recorded tensor that they cannot compute with.
_MODULES, _FUNCTIONS = ("math.", "numpy.", "mirrored."), ("math.", "numpy.", "mirrored.ops.")
_EFFECTS = {"hooks", "host_function", "printing", "random", "rng_state"}  # Modules of these.
# NumPy's that depend on more than their arguments, or change something.
# fmt: off
_NUMPY_EFFECTS = {
    "apply_along_axis", "apply_over_axes", "array2string", "array_repr", "array_str",
    "copyto", "fill_diagonal", "fromfile", "fromfunction", "fromiter", "frompyfunc",
    "fromregex", "genfromtxt", "getbufsize", "geterr", "geterrcall", "get_printoptions",
    "load", "loadtxt", "piecewise", "place", "put", "put_along_axis", "putmask", "save",
    "savetxt", "savez", "savez_compressed", "setbufsize", "seterr", "seterrcall",
    "set_printoptions", "show_config", "show_runtime",
}
# fmt: on
# What a function is called with beside its arguments.
_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))  # Subclasses may change.
# fmt: off
_CALLABLE = (abs, all, any, bool, dict, enumerate, float, int, isinstance, len, list, max, min, pow,
             range, reversed, round, slice, sorted, sum, tuple, zip)
# fmt: on
_READ_BY_OPS = (logical_devices, default_float, get_log_device_placement, image_data_format)


class ReplayedFunction:
    """A user's function of elements.

    Calls are replayed if the function computes with ops alone, depends on its arguments and on
    constants alone, and draws no random numbers. If a constant changes, the function is called
    again from the next element on.

    Args:
        function: The function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._form: Form | None = None
        # For the shapes of an element: a program and the form of its results, or the number of
        # calls. None: nothing is recorded.
        self._recorded: dict[Any, tuple[Program, Form] | int] | None = {}
        # Functions that return what is read, and their results after the first call.
        self._read: list[tuple[Callable[[], Any], Any]] = []

    def __reduce__(self) -> Any:
        return ReplayedFunction, (self._function,)

    def __call__(self, element: Element, convert: Callable[[Any], Element]) -> Element:
        """Return the result for an element.

        Args:
            element: The element.
            convert: Returns an element for the function's result, or raises.
        """
        recorded, count = self._recorded, 0
        with suppress(Exception):  # The call below raises the error of the element again.
            if recorded is not None:
                form = self._form = self._form or Form(element)
                leaves = form.leaves(element, "An element")
                shapes = tuple([leaf.shape for leaf in leaves])
                known = recorded.pop(shapes, 0)  # Other threads call the function meanwhile.
                if isinstance(known, int):
                    count = recorded[shapes] = known + 1
                elif self._is_unchanged():
                    try:
                        return _replayed(*known, leaves)
                    finally:
                        recorded[shapes] = known
                else:
                    self._recorded = None
        result = convert(call_with(self._function, element))
        if recorded is not None:
            self._recorded = None
            with suppress(Exception):
                is_pure = self._is_unchanged() if self._read else self._is_pure(self._function)
                if is_pure and count == _AFTER and len(recorded) <= _MOST_SHAPES:
                    known = self._program(form, leaves), Form(result)
                    recorded = {**recorded, shapes: known}
                    is_pure = _bits(_replayed(*known, leaves)) == _bits(result)
                self._recorded = recorded if is_pure else None
        return result

    def _is_unchanged(self) -> bool:
        return all([read() is value for read, value in self._read])

    def _program(self, form: Form, leaves: list[Any]) -> Program:
        """Return the program for elements of one form; raise if the function must be called."""
        is_plain = type(form.pack(leaves)) in (np.ndarray, tuple, dict)  # Others have methods.
        if not is_plain or get_log_device_placement():
            raise ValueError
        recorder = GraphRecorder("map_func")
        specs, cpu = [TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves], logical_devices()[0]
        fed = form.pack([recorder.input(spec, cpu, SHARED) for spec in specs])
        with host_scope(), graph_scope(), drawing_from(RngState(0)), recorder.recording():
            value = self._function(*fed) if type(fed) is tuple else self._function(fed)
            graph = recorder.finish([adopt(part, None) for part in _nest.flatten(value)])
        ops = [node.op for node in graph.nodes]
        is_long = any(max(node.flops, node.output.nbytes) > _MOST_WORK for node in graph.nodes)
        # A text may be in an error that the function has caught.
        if recorder.has_text or is_long or any(o.random or o.stateful or o.ordered for o in ops):
            raise ValueError
        return Program(graph)

    def _is_pure(self, function: Any, *callers: Any) -> bool:
        """Return whether a function reads its arguments and constants alone; note what it reads."""
        if type(function) is not FunctionType or vars(function) or function in callers:
            return False
        codes = [function.__code__]
        for code in codes:  # Functions within it are added.
            codes += [part for part in code.co_consts if isinstance(part, CodeType)]
        # Of what is read from outside, and of attributes.
        names = {name for code in codes for name in code.co_names}
        scope, known = function.__globals__, {**vars(builtins), **function.__globals__}
        reads: list[Callable[[], Any]] = [*_READ_BY_OPS]
        reads += [partial(scope.get, name, getattr(builtins, name, None)) for name in names]
        reads += [partial(getattr, cell, "cell_contents") for cell in function.__closure__ or ()]
        values = [function.__defaults__ or (), *(function.__kwdefaults__ or {}).values()]
        values += [read() for read in reads[len(_READ_BY_OPS) :]]
        named = function.__kwdefaults__ or {}
        reads += [partial(getattr, function, part) for part in _PARTS]
        reads += [partial(named.get, name) for name in named]
        self._read += [(read, read()) for read in reads]
        is_pure = all([self._may_read(value, names, known, function, *callers) for value in values])
        # The names that are left may be those of modules that it imports.
        left = names - known.keys()
        has_special = any(name.startswith("__") for name in left)
        return is_pure and not left & sys.modules.keys() and not has_special

    def _may_read(self, value: Any, names: set[str], known: dict[str, Any], *callers: Any) -> bool:
        """Return whether a function may read a value from outside.

        Args:
            value: The value.
            names: What the function reads from outside, and of attributes.
            known: The names that have values; those of modules are added.
            callers: The function, and those that call it.
        """
        is_module = isinstance(value, ModuleType)
        where = f"{getattr(value, '__name__' if is_module else '__module__', '')}."
        is_known = _EFFECTS.isdisjoint(where.split("."))
        if is_module:
            present = vars(value) if where.startswith("numpy.") else dir(value)
            named = names.intersection(present)  # To ask NumPy for others may warn.
            known.update(dict.fromkeys(named))
            if not is_known or not where.startswith(_MODULES):
                return False
            value = tuple([getattr(value, name) for name in named])
        if type(value) is tuple:
            return all([self._may_read(part, names, known, *callers) for part in value])
        if isinstance(value, type) and where == "numpy.":
            return issubclass(value, np.generic)
        name, home = getattr(value, "__name__", ""), sys.modules.get(where[:-1])
        if name and where.startswith(_FUNCTIONS) and getattr(home, name, None) is value:
            return is_known and name not in _NUMPY_EFFECTS
        if isinstance(value, np.generic | np.dtype | Tensor):
            return not isinstance(value, np.void)
        is_known = type(value) in _CONSTANTS or any([value is item for item in _CALLABLE])
        return is_known or self._is_pure(value, *callers)


def _replayed(program: Program, form: Form, leaves: list[Any]) -> Element:
    program.call(leaves)
    return form.pack([array.copy() for array in program.outputs])


def _bits(element: Element) -> Any:
    return [(leaf.shape, leaf.dtype, leaf.tobytes()) for leaf in _nest.flatten(element)]
