"""What numbers and lists become as arguments of operations: constants, under TensorFlow's names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored.compat.v1.graph import Graph
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.sources import packed
from mirrored.graph import placeholders
from mirrored.ops.conversion import convert_to_tensor, to_array
from mirrored.ops.spec import as_dtype

# By an operation's type, what its first arguments are called, which have one dtype.
_PAIRS = (
    *("AddV2", "Sub", "Mul", "RealDiv", "FloorDiv", "FloorMod", "Pow", "Maximum", "Minimum"),
    *("SquaredDifference", "Atan2", "Equal", "NotEqual", "Less", "LessEqual", "Greater"),
    *("GreaterEqual", "LogicalAnd", "LogicalOr", "BatchMatMulV2"),
)
_SINGLE = ("Abs", "Neg", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid", "Sin", "Cos")
_OPERANDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_PAIRS, ("x", "y")),
    "MatMul": ("a", "b"),
    "BiasAdd": ("value", "bias"),
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), ("input", "filter")),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), ("out_backprop", "filter")),
    **dict.fromkeys(_SINGLE, ("x",)),
    "Identity": ("input",),
}
# Lists of tensors of one dtype, by what they are called.
_LISTS = {"ConcatV2": "values", "Pack": "values", "AddN": "inputs"}
_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "All", "Any")
_AXES = {"axis": "reduction_indices"}
# What stays a number to the function, and is an operation all the same.
_SETTINGS: dict[str, dict[str, str]] = {
    **{kind: _AXES for kind in _REDUCTIONS},
    "ArgMax": {"axis": "dimension"},
    "ArgMin": {"axis": "dimension"},
    "Cumsum": {"axis": "axis"},
    "Cumprod": {"axis": "axis"},
    "Conv2DBackpropInput": {"output_shape": "input_sizes"},
    "Conv3DBackpropInputV2": {"output_shape": "input_sizes"},
    "Reshape": {"shape": "shape"},
    "ExpandDims": {"axis": "dim"},
    "ConcatV2": {"axis": "axis"},
    "GatherV2": {"indices": "indices", "axis": "axis"},
    "Split": {"axis": "split_dim"},
    "Tile": {"multiples": "multiples"},
    "Pad": {"paddings": "paddings"},
    "Transpose": {"perm": "perm"},
    "Slice": {"begin": "begin", "size": "size"},
    "Fill": {"dims": "dims", "value": "value"},
    "OneHot": {"on_value": "on_value", "off_value": "off_value", "depth": "depth"},
}
# What such settings are where the call does not say it.
_DEFAULTS: dict[tuple[str, str], Any] = {
    **{
        (kind, "axis"): 0 for kind in ("Cumsum", "Cumprod", "GatherV2", "Split", "ArgMax", "ArgMin")
    },
    ("OneHot", "on_value"): 1.0,
    ("OneHot", "off_value"): 0.0,
}
_SIZES = 8  # Constants of up to this number of whole numbers may be sizes.
_VALUES = frozenset(("value", "on_value", "off_value"))


class Call:
    """The arguments of a call, which can be looked up by the names of its parameters.

    Args:
        args: Those by position, the operands first.
        kwargs: Those by name.
        parameters: The names of the parameters, in order.
    """

    def __init__(
        self, args: Sequence[Any], kwargs: dict[str, Any], parameters: Sequence[str]
    ) -> None:
        self.args, self.kwargs = list(args), dict(kwargs)
        self._by_name = {**dict(zip(parameters, args, strict=False)), **kwargs}

    def get(self, name: str) -> Any:
        """Return an argument; None where there is none."""
        return self._by_name.get(name)


def with_constants(graph: Graph, kind: str, name: str, call: Call) -> tuple[str, list[Tensor]]:
    """Draw the constants that are among a call's arguments, and put those that are operands there.

    Args:
        graph: Where they are drawn.
        kind: The type of the operation that the call becomes.
        name: What its name begins with.
        call: The arguments of the call.

    Returns:
        The whole name of the operation, with a slash behind it, and the constants that are part of
        it and no operands.

    Raises:
        TypeError: The operands have several dtypes.
        ValueError: One of them is None.
    """
    shown = []
    operands = call.args
    if kind in _REDUCTIONS and operands:
        if not _is_tensor(operands[0]) and placeholders(operands[0]):
            operands[0] = packed(operands[0], None, "packed")
        if call.get("axis") is None:
            shown.append(_all_axes(graph, operands[0]))
    whole = graph.operation_name(name)
    _draw_operands(graph, kind, whole, operands)
    if kind in _LISTS and operands:
        _check_list(kind, operands[0])
    if kind == "Range":
        shown += _range_constants(graph, whole, call)
    if kind == "StridedSlice" and call.get("index") is not None:
        shown += _slice_constants(graph, whole, call.get("index"))
    for parameter, called in _SETTINGS.get(kind, {}).items():
        value = call.get(parameter)
        value = _DEFAULTS.get((kind, parameter)) if value is None else value
        if value is not None and not placeholders(value):
            array = to_array(value) if parameter in _VALUES else np.asarray(value, np.int32)
            shown.append(constant_in(graph, array, f"{whole}/{called}/"))
    if kind == "Transpose" and operands and call.get("perm") is None:
        shown += _reversed_axes(graph, whole, operands[0])
    return f"{whole}/", shown


def _draw_operands(graph: Graph, kind: str, whole: str, operands: list[Any]) -> None:
    """Let the operands be tensors, and check that they have one dtype."""
    names = _OPERANDS.get(kind, ())[: len(operands)]
    values = operands[: len(names)]
    typed = [(name, v._dtype) for name, v in zip(names, values, strict=True) if _is_tensor(v)]
    first, dtype = typed[0] if typed else (names[0] if names else "", None)
    for place, (called, value) in enumerate(zip(names, values, strict=True)):
        if value is None:
            raise ValueError("None values not supported.")
        if _is_tensor(value):
            if value._dtype != dtype:
                raise _mixed(kind, called, value, first, dtype)
        elif placeholders(value):
            operands[place] = packed(value, dtype, f"{whole}/{called}/")
        else:
            array = as_operand(value, dtype, kind, called, first)
            # Sizes may be computed with it.
            known = array.dtype.kind in "iu" and array.size <= _SIZES
            operands[place] = drawn = constant_in(graph, array, f"{whole}/{called}/", known=known)
            dtype = drawn._dtype if dtype is None else dtype


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _mixed(kind: str, called: str, value: Tensor, first: str, dtype: Any) -> Exception:
    """Return TensorFlow's error for operands of several dtypes."""
    other = value._dtype.name
    if kind == "RealDiv":
        return TypeError(
            f"`x` and `y` must have the same dtype, got tf.{dtype.name} != tf.{other}."
        )
    if kind == "BiasAdd":
        return ValueError(
            f"{called}: Tensor conversion requested dtype {dtype.name} for Tensor with dtype "
            f"{other}: {value!r}"
        )
    return TypeError(
        f"Input '{called}' of '{kind}' Op has type {other} that does not match type {dtype.name} "
        f"of argument '{first}'."
    )


def _check_list(kind: str, values: Any) -> None:
    """Raise TypeError where a list of tensors has several dtypes."""
    listed = values if isinstance(values, list | tuple) else ()
    dtypes = [value._dtype.name for value in listed if _is_tensor(value)]
    if len(set(dtypes)) > 1:
        raise TypeError(
            f"Tensors in list passed to '{_LISTS[kind]}' of '{kind}' Op have types "
            f"[{', '.join(dtypes)}] that don't all match."
        )


def as_operand(value: Any, dtype: Any, kind: str, called: str, first: str) -> Any:
    """Return a number or a list as an array, of the dtype of the other operand where there is one.

    Args:
        value: The number or list.
        dtype: That dtype; None: its own.
        kind: The type of the operation.
        called: What the operand is called.
        first: What the other one is called.

    Raises:
        TypeError: It is none of that dtype.
    """
    if dtype is None or dtype.kind == "f":
        return to_array(value, None if dtype is None else as_dtype(dtype))
    own = to_array(value)
    if own.dtype.kind != "f" or hasattr(value, "dtype"):
        return to_array(value, as_dtype(dtype))
    if kind == "AddV2":
        raise TypeError(
            f"Input '{called}' of '{kind}' Op has type {own.dtype.name} that does not match type "
            f"{dtype.name} of argument '{first}'."
        )
    text = f"{value!r} of type '{type(value).__name__}'"
    raise TypeError(
        f"Expected {dtype.name} passed to parameter '{called}' of op '{kind}', got {text} instead. "
        f"Error: Expected {dtype.name}, but got {text}."
    )


def constant_in(graph: Graph, array: Any, name: str, known: bool = False) -> Tensor:
    """Return a constant of a graph.

    Args:
        graph: The graph.
        array: The value.
        name: What its name begins with; one that ends with a slash is the whole of it.
        known: Whether shapes may depend on its value.
    """
    array = np.asarray(array)
    result = None if known else Tensor(array.shape, array.dtype, "")
    return graph.draw(
        lambda: convert_to_tensor(array), kind="Const", name=name, results=result
    ).outputs[0]


def _all_axes(graph: Graph, reduced: Any) -> Tensor:
    """Return what says that all axes are reduced."""
    sizes = reduced._shape if isinstance(reduced, Tensor) else None
    if sizes:
        return constant_in(graph, np.arange(len(sizes), dtype=np.int32), "Const")
    if sizes is None and isinstance(reduced, Tensor):
        rank = graph.draw(_rank, (reduced,), kind="Rank", name="Rank").outputs[0]
    else:
        rank = constant_in(graph, np.int32(np.ndim(reduced) if sizes is None else 0), "Rank")
    whole = graph.operation_name("range")
    ends = [
        constant_in(graph, np.int32(i), f"{whole}/{n}/") for i, n in enumerate(("start", "delta"))
    ]
    return graph.draw(_no_numbers, (rank,), kind="Range", name=f"{whole}/", shown=ends).outputs[0]


def _rank(value: Any) -> Any:
    return convert_to_tensor(np.int32(len(value.shape)))


def _no_numbers(_: Any) -> Any:
    return convert_to_tensor(np.zeros(0, np.int32))


def _reversed_axes(graph: Graph, whole: str, value: Any) -> list[Tensor]:
    if not isinstance(value, Tensor) or not value._shape:
        return []
    axes = np.arange(len(value._shape), dtype=np.int32)[::-1].copy()
    return [constant_in(graph, axes, f"{whole}/perm/")]


def _range_constants(graph: Graph, whole: str, call: Call) -> list[Tensor]:
    """Return where a range begins and ends, and its step, as far as they are numbers."""
    start, limit, delta = (call.get(key) for key in ("start", "limit", "delta"))
    ends = (0, start) if limit is None else (start, limit)
    values = {"start": ends[0], "limit": ends[1], "delta": 1 if delta is None else delta}
    return [
        constant_in(graph, to_array(value), f"{whole}/{name}/")
        for name, value in values.items()
        if value is not None and not placeholders(value)
    ]


def _slice_constants(graph: Graph, whole: str, index: Any) -> list[Tensor]:
    """Return where a slice begins and ends, and its steps, as constants."""
    columns = np.array([_span(item) for item in index], np.int32).T
    names = ("stack", "stack_1", "stack_2")
    return [
        constant_in(graph, column.copy(), f"{whole}/{name}/")
        for name, column in zip(names, columns, strict=True)
    ]


def _span(item: Any) -> tuple[int, int, int]:
    if isinstance(item, slice):
        return item.start or 0, item.stop or 0, 1 if item.step is None else item.step
    if item is None or item is Ellipsis:
        return 0, 0, 1
    return item, item + 1, 1
