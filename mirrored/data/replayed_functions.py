"""Calls of a user's function for one element after another, most of them from a recording.

A replay makes the calls of NumPy that the function's ops would make, without the Python around
them, so its bits are the same. Nothing is computed before its element is asked for.
"""

import builtins
import dis
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
from mirrored.ops.spec import default_float
from mirrored.program import GraphRecorder, Program
from mirrored.program.dataflow import SHARED

# To record and compile a function takes as long as some calls, and saves little where an op
# computes many bytes or products.
_AFTER, _MOST_SHAPES, _MOST_WORK = 24, 16, 1 << 20

# What functions may load from outside.
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), Tensor, *np.sctypeDict.values())
# fmt: off
_CALLABLE = (abs, all, any, bool, dict, enumerate, float, int, isinstance, len, list, max, min, pow,
             range, reversed, round, slice, sorted, sum, tuple, zip, *np.sctypeDict.values())
# Recorded tensors have no text, and code that catches errors would not notice it.
_REFUSED = ("BUILD_STRING", "CONVERT_VALUE", "DELETE_", "FORMAT_", "IMPORT_", "LOAD_BUILD_CLASS",
            "PUSH_EXC_INFO", "STORE_ATTR", "STORE_GLOBAL")
# fmt: on
_FIXED = ("math", "mirrored", "numpy")  # Nobody changes the attributes of these modules.
_EFFECTS = ("hooks", "host_function", "printing", "random", "rng_state")  # Modules of the ops.

_LOADS = (logical_devices, default_float, get_log_device_placement)  # Read by ops.


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
        # Functions that return what a recording depends on, and their results while recording.
        self._loads: list[tuple[Callable[[], Any], Any]] = [(load, load()) for load in _LOADS]

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
                elif all([load() is value for load, value in self._loads]):
                    try:
                        return _replayed(*known, leaves)
                    finally:
                        recorded[shapes] = known
                else:
                    self._recorded = None
        result = convert(call_with(self._function, element))
        if count == _AFTER and recorded is not None and len(recorded) <= _MOST_SHAPES:
            self._recorded = None
            with suppress(Exception):
                known = self._program(form, leaves), Form(result)
                if _bits(_replayed(*known, leaves)) == _bits(result):
                    self._recorded = {**recorded, shapes: known}
        return result

    def _program(self, form: Form, leaves: list[Any]) -> Program:
        """Return the program for elements of one form; raise if the function must be called."""
        is_plain = type(form.pack(leaves)) in (np.ndarray, tuple, dict)  # Others have methods.
        if not is_plain or get_log_device_placement() or not self._is_pure(self._function):
            raise ValueError
        recorder = GraphRecorder("map_func")
        specs, cpu = [TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves], logical_devices()[0]
        fed = form.pack([recorder.input(spec, cpu, SHARED) for spec in specs])
        with host_scope(), graph_scope(), drawing_from(RngState(0)), recorder.recording():
            value = self._function(*fed) if type(fed) is tuple else self._function(fed)
            graph = recorder.finish([adopt(part, None) for part in _nest.flatten(value)])
        for node in graph.nodes:
            has_effects = node.op.random or node.op.stateful or node.op.ordered
            if has_effects or max(node.flops, node.output.nbytes) > _MOST_WORK:
                raise ValueError
        return Program(graph)

    def _is_pure(self, function: Any, *callers: FunctionType) -> bool:
        """Return whether the bytecode depends on arguments and constants alone; note these."""
        if any([function is known for known in _CALLABLE]):
            return True
        if type(function) is not FunctionType or function in callers:
            return False
        if function.__module__.startswith("mirrored.ops."):
            return function.__module__.split(".")[2] not in _EFFECTS
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        codes, value = [function.__code__], None
        for code in codes:  # Functions within it are added.
            codes += [part for part in code.co_consts if isinstance(part, CodeType)]
            for step in dis.get_instructions(code):
                name, is_attribute = step.opname, step.opname in ("LOAD_ATTR", "LOAD_METHOD")
                is_module = isinstance(value, ModuleType) and value.__name__.split(".")[0] in _FIXED
                if is_module and is_attribute:
                    value = getattr(value, step.argval)
                    continue
                # Anybody may set the attributes of functions.
                is_known = not is_attribute and self._is_pure(value, function, *callers)
                is_cell = name.endswith("_DEREF") and step.argval in cells
                is_refused = name.startswith(_REFUSED) or (is_cell and name == "STORE_DEREF")
                if is_refused or not (is_known or _is_constant(value)):
                    return False
                value = None  # Loaded by the instruction before.
                if is_cell or name == "LOAD_GLOBAL":
                    known = step.argval, getattr(builtins, step.argval, None)
                    get = partial(function.__globals__.get, *known)
                    load = partial(getattr, cells[known[0]], "cell_contents") if is_cell else get
                    self._loads.append((load, value := load()))
        return _is_constant(defaults)


def _is_constant(value: Any) -> bool:
    parts = value if type(value) is tuple else (value,)
    return all([type(part) in _CONSTANTS or isinstance(part, np.dtype) for part in parts])


def _replayed(program: Program, form: Form, leaves: list[Any]) -> Element:
    program.call(leaves)
    return form.pack([array.copy() for array in program.outputs])


def _bits(element: Element) -> Any:
    return [(leaf.shape, leaf.dtype, leaf.tobytes()) for leaf in _nest.flatten(element)]
