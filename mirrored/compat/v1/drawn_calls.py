"""The functions of this library under TensorFlow 1's names, as operations of a graph.

`names.py` says what each is here and what it is called in a graph; arguments of older names go to
those of today. Within a function that a run calls, as the one that is given to `map_fn`,
they compute.
"""

import functools
import importlib
import inspect
import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from mirrored import _nest, ops
from mirrored._symbolic import draw_call
from mirrored._tracebacks import shortened
from mirrored.compat.v1.call_table import ROWS
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.operands import Call, with_constants
from mirrored.compat.v1.running import current_run
from mirrored.graph import placeholders
from mirrored.ops.hooks import active_recorder

# What Python's operators are called in a graph, by what they call.
_OPERATORS = {
    "AddV2": "add",
    "Sub": "sub",
    "Mul": "mul",
    "RealDiv": "truediv",
    "_true_divide": "truediv",
    "FloorDiv": "floordiv",
    "FloorMod": "mod",
    "Pow": "pow",
    "MatMul": "matmul",
    "BatchMatMulV2": "matmul",
    "StridedSlice": "strided_slice",
    "get_item": "strided_slice",
    "LogicalAnd": "and",
    "LogicalOr": "or",
    "logical_xor": "xor",
}
_TYPES = {"_true_divide": "RealDiv", "get_item": "StridedSlice", "logical_xor": "LogicalXor"}


def drawn(function: Callable[..., Any], args: Any, kind: str, name: str) -> Any:
    """Return what an operation makes that calls a function, in the structure that it returns."""
    if computes(args):
        return function(*args)
    return graph_of(args).draw(function, args, kind=kind, name=name).node.structure


def computes(*values: Any) -> bool:
    """Return whether a call is one of values, within a function that is run or looked at."""
    leaves = _nest.flatten(values)
    inside = any(isinstance(leaf, ops.Tensor) for leaf in leaves) and active_recorder() is not None
    return (inside or current_run() is not None) and not placeholders(values)


def drawn_with_constants(function: Callable[..., Any], call: Call, kind: str, name: str) -> Any:
    """Return the same where numbers among the arguments are operations of their own."""
    if computes(call.args, call.kwargs):
        return function(*call.args, **call.kwargs)
    graph = graph_of(call.args, call.kwargs)
    whole, shown = with_constants(graph, kind, name, call)
    operation = graph.draw(function, call.args, call.kwargs, kind=kind, name=whole, shown=shown)
    return operation.node.structure


@draw_call.register(Tensor)
def _of_operator(_: Tensor, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Draw what an operator or a function of the library makes of a tensor of a graph."""
    named = dict(kwargs)
    name = named.pop("name", None)
    own: str = getattr(function, "__name__", None) or function.name
    kind = _TYPES.get(own, own)
    call = Call(args, named, ())
    return drawn_with_constants(function, call, kind, name or _OPERATORS.get(own, own))


def eager_name(home: str, name: str) -> Any:
    """Return what a name of a public module is where nothing is drawn.

    Args:
        home: The module, such as "math"; "" is `mirrored` itself.
        name: The name.
    """
    return ModuleType.__getattribute__(
        importlib.import_module(f"mirrored.{home}".rstrip(".")), name
    )


def named_call(name: str) -> Callable[..., Any]:
    """Return the function of a name of the table.

    Args:
        name: The name, such as "reduce_sum" or "nn.relu".
    """
    row = ROWS[name]
    home, _, last = row.target.rpartition(".")
    function = eager_name(home, last)
    call = drawing_call(function, row.kind, row.called, row.arguments)
    call.__name__ = last
    call.__doc__ = f"Draw an operation: `mirrored.{row.target}`, which says the rest."
    return call


def drawing_call(
    function: Callable[..., Any], kind: str, called: str, arguments: dict[str, str] | None = None
) -> Callable[..., Any]:
    """Return a function that draws an operation which calls another function.

    Args:
        function: The other function.
        kind: The operation's type.
        called: The operation's name.
        arguments: As `Row` has them.
    """
    parameters = inspect.signature(function).parameters
    order = arguments or {parameter: parameter for parameter in parameters}
    takes_all = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())

    @functools.wraps(function)
    @shortened
    def call(*args: Any, **kwargs: Any) -> Any:
        named = (
            dict(kwargs) if takes_all else named_arguments(function.__name__, order, args, kwargs)
        )
        name = named.pop("name", None) or called
        if not takes_all:  # The first ones by position: so the operation's inputs are in order.
            first = itertools.takewhile(named.__contains__, parameters)
            args = tuple([named.pop(key) for key in list(first)])
        return drawn_with_constants(function, Call(args, named, list(parameters)), kind, name)

    return call


def named_arguments(
    function: str, order: dict[str, str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return arguments by their names of today.

    Args:
        function: What errors call the function.
        order: What its arguments are called, in order, each with its name of today.
        args: Those that are given by position.
        kwargs: Those by name.

    Raises:
        TypeError: There are too many, or one is given twice.
        ValueError: One is given by its name of today and by an older one.
    """
    if len(args) > len(order):
        raise TypeError(f"{function}() takes {len(order)} arguments. Received: {len(args)}")
    placed = dict(zip(order, args, strict=False))
    for name in placed:
        if name in kwargs:
            raise TypeError(f"{function}() got multiple values for argument '{name}'")
    values = {**placed, **kwargs}
    arguments = {key: value for key, value in values.items() if order.get(key, key) == key}
    for key, value in values.items():
        today = order.get(key, key)
        if today not in ("", key) and value is not None:
            if arguments.get(today) is not None:
                raise ValueError(f"Cannot specify both '{key}' and '{today}'.")
            arguments[today] = value
    return arguments


def __getattr__(name: str) -> Any:
    if name in ROWS:
        return named_call(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
