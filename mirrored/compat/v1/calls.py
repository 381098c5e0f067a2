"""The functions of this library under TensorFlow 1's names, as operations of a graph.

`names.py` says what each is here and what it is called in a graph; arguments of older names go to
those of today. Within a function that a run calls, as the one that is given to `map_fn`,
they compute.
"""

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from mirrored import _nest, ops
from mirrored.compat.v1.elements import Tensor
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.names import ROWS as ROWS
from mirrored.compat.v1.operands import Given, with_constants
from mirrored.compat.v1.running import current_run
from mirrored.graph import placeholders
from mirrored.ops.hooks import active_recorder

# Which of the arguments of today older ones are.
_OLDER = {
    "keep_dims": "keepdims",
    "reduction_indices": "axis",
    "dimension": "axis",
    "dim": "axis",
    "squeeze_dims": "axis",
    "concat_dim": "axis",
    "split_dim": "axis",
    "seq_dim": "seq_axis",
    "batch_dim": "batch_axis",
    "targets": "labels",
    "input_tensor": "input",
}

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
    "LogicalAnd": "and",
    "LogicalOr": "or",
    "logical_xor": "xor",
}
_TYPES = {"_true_divide": "RealDiv", "logical_xor": "LogicalXor"}


def drawn(
    function: Callable[..., Any], args: Any, kwargs: dict[str, Any], kind: str, name: str
) -> Any:
    """Return what an operation makes that calls a function, in the structure that it returns."""
    if computes(args, kwargs):
        return function(*args, **kwargs)
    return graph_of(args, kwargs).draw(function, args, kwargs, kind=kind, name=name).node.structure


def computes(*given: Any) -> bool:
    """Return whether a call is one of values, within a function that is run or looked at."""
    leaves = _nest.flatten(given)
    inside = any(isinstance(each, ops.Tensor) for each in leaves) and active_recorder() is not None
    return (inside or current_run() is not None) and not placeholders(given)


def drawn_with_constants(function: Callable[..., Any], given: Given, kind: str, name: str) -> Any:
    """Return the same where numbers among the arguments are operations of their own."""
    if computes(given.args, given.kwargs):
        return function(*given.args, **given.kwargs)
    graph = graph_of(given.args, given.kwargs)
    whole, shown = with_constants(graph, kind, name, given)
    operation = graph.draw(function, given.args, given.kwargs, kind=kind, name=whole, shown=shown)
    return operation.node.structure


def _of_operator(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Draw what an operator or a function of the library makes of a tensor of a graph."""
    named = dict(kwargs)
    name = named.pop("name", None)
    own: str = getattr(function, "__name__", None) or function.name
    kind = _TYPES.get(own, own)
    given = Given(args, named, ())
    return drawn_with_constants(function, given, kind, name or _OPERATORS.get(own, own))


Tensor.draws = staticmethod(_of_operator)


def named_call(name: str) -> Callable[..., Any]:
    """Return the function of a name of the table.

    Args:
        name: The name, such as "reduce_sum" or "nn.relu".
    """
    row = ROWS[name]
    home, _, last = row.target.rpartition(".")
    function = getattr(importlib.import_module(f"mirrored.{home}".rstrip(".")), last)
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        named = {
            _OLDER[key] if key in _OLDER and key not in parameters else key: value
            for key, value in kwargs.items()
            if not (key in _OLDER and key not in parameters and value is None)
        }
        given = Given(args, named, list(parameters))
        return drawn_with_constants(function, given, row.kind, name or row.called)

    call.__name__ = last
    call.__doc__ = f"Draw an operation: `mirrored.{row.target}`, which says the rest."
    return call


def function_of(home: str, name: str, module: str) -> Callable[..., Any]:
    """Return the function of a name in a module of TensorFlow 1's.

    Args:
        home: The module, such as "math".
        name: The name.
        module: What errors call the module.

    Raises:
        AttributeError: There is none.
    """
    there = hasattr(importlib.import_module(f"mirrored.{home}"), name)
    for known, row in ROWS.items():
        if row.target == f"{home}.{name}" or (known == name and there):
            return named_call(known)
    raise AttributeError(
        f"module {module!r} has no attribute {name!r}. docs/from-tensorflow-1.md lists what is "
        "there."
    )
