"""Operations: the graph nodes of calls of public functions and operators.

What is noted is the public function and its arguments; a run calls it again with values.
"""

import re
from collections import deque
from types import FunctionType
from typing import Any

from mirrored._naming import snake_case, unique_name
from mirrored.graph.inference import results_of
from mirrored.graph.symbolic_tensor import Node, SymbolicTensor
from mirrored.graph.symbolic_tensor import get_item as get_item  # Pickles name it here.

# What Keras calls operations that have other names here.
_NAMES = {
    "AddV2": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "RealDiv": "true_divide",
    "StridedSlice": "get_item",
    "FloorDiv": "floor_divide",
    "FloorMod": "mod",
    "Pow": "power",
    "MatMul": "matmul",
    "BatchMatMulV2": "matmul",
    "Neg": "negative",
    "Abs": "absolute",
    "Acos": "arccos",
    "Asin": "arcsin",
    "Atan": "arctan",
    "IsFinite": "isfinite",
    "IsInf": "isinf",
    "IsNan": "isnan",
    "clip_by_value": "clip",
}


def keras_name(function: Any) -> str:
    """Return Keras' name for a function or an op in a graph.

    Args:
        function: A public function, an op, or an object that is called and has a name.
    """
    own = function.__name__.rstrip("_") if isinstance(function, FunctionType) else function.name
    return _NAMES.get(own, snake_case(own))


class Operation:
    """A call of a function in a graph, with a name.

    Args:
        function: The function.
        name: Its name in the graph.

    Attributes:
        _inbound_nodes: Its one call.
    """

    def __init__(self, function: Any, name: str) -> None:
        self.function = function
        self.name = name
        self._inbound_nodes: deque[Node] = deque()

    @property
    def kind(self) -> str:
        """Keras' name of its class."""
        words = re.sub(r"_\d+$", "", self.name).split("_")
        return "".join(word.capitalize() for word in words)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function and return its result."""
        return self.function(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inbound_nodes": deque()}

    def __repr__(self) -> str:
        return f"<Operation name={self.name}>"


def make_node(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return placeholders for the results of a function of placeholders.

    Args:
        function: A public function, an op, or an object that is called and has a name.
        args: Its arguments by position.
        kwargs: Those by name.

    Raises:
        ValueError: It returns something else than tensors.
    """
    asked = kwargs.get("name")
    name = asked if isinstance(asked, str) else unique_name(keras_name(function))
    operation = Operation(function, name)
    results = results_of(operation, args, kwargs, name, passes=True)
    if isinstance(results, SymbolicTensor) and hasattr(results, "node"):
        return results  # An argument, which the call had nothing to do with.
    return Node(operation, args, kwargs, results).structure
