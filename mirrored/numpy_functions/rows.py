"""Functions that convert their arguments and call one operation: rows of a table.

A row has an operation, a sentence, an example and a rule. NumPy's functions and Keras' are such
rows, each by a table of rules of its own.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from mirrored._types import TensorLike
from mirrored.ops import Tensor


class Unary(Protocol):
    """A function of one tensor."""

    __name__: str

    def __call__(self, x: Any) -> Tensor:
        """Return what the row says."""


class Binary(Protocol):
    """A function of two tensors whose shapes broadcast."""

    __name__: str

    def __call__(self, x1: Any, x2: Any) -> Tensor:
        """Return what the row says."""


_Function = TypeVar("_Function", Unary, Binary)


class Rule(NamedTuple):
    """What arguments are converted to, and how the sentence of a row ends that has the rule."""

    convert: Callable[..., Any]
    ending: str = ""


class Rules(NamedTuple):
    """The rules of one package, and the name of the module where users see its functions."""

    public: str
    same: Rule  # A tensor of its own dtype.
    number: Rule  # Booleans become integers, where they are no numbers.
    floats: Rule  # Integers and booleans become floats.
    truth: Rule  # Whether elements are not 0.
    pair: Rule  # Two tensors of the dtype that both promote to.
    tensors: Rule  # The same; a number of Python's counts as a tensor.
    float_pair: Rule  # The same, as floats.
    truths: Rule


_DOC = """Return {summary}.

    Args:
        {arguments}

    Example:
        >>> import mirrored as mr
        >>> {public}.{name}({values}).numpy().item()
        {result}
    """
_OF_ONE = "x: A tensor, an array, a number or nested lists of numbers."
_OF_TWO = """x1: A tensor, an array, a number or nested lists of numbers.
        x2: Another one, of a shape that broadcasts.

    Raises:
        InvalidArgumentError: The shapes do not fit."""


class Row(NamedTuple):
    """A function: an operation, what its docstring says, and the name of its rule."""

    operation: Callable[..., Tensor]
    summary: str
    example: str
    rule: str
    arguments: str


_ROWS: dict[Any, Row] = {}  # Those of all functions that are rows.


class Rows:
    """The rows of one module, which has `name_all` called at its end.

    Args:
        module: The name of the module.
        rules: The rules of its package.
    """

    def __init__(self, module: str, rules: Rules) -> None:
        self._module, self._rules = module, rules

    def unary(
        self, operation: Callable[[Any], Tensor], summary: str, example: str, rule: str = "floats"
    ) -> Unary:
        """Return a function of one tensor.

        Args:
            operation: From the converted tensor to the result.
            summary: What the function returns, the first words of its docstring.
            example: Arguments and a result, as in "4 -> 2.0".
            rule: The name of the rule.
        """
        function: Unary = self._function(Row(operation, summary, example, rule, _OF_ONE))
        return function

    def binary(
        self,
        operation: Callable[[Any, Any], Tensor],
        summary: str,
        example: str,
        rule: str = "pair",
    ) -> Binary:
        """Return a function of two tensors; arguments as for `unary`."""
        function: Binary = self._function(Row(operation, summary, example, rule, _OF_TWO))
        return function

    def again(self, *functions: _Function) -> Iterator[_Function]:
        """Yield functions that are rows of another module, by the rules of this one.

        Args:
            functions: The functions.
        """
        for function in functions:
            yield self._named(self._function(_ROWS[function]), function.__name__)

    def name_all(self) -> None:
        """Give each function that is a row the name that the module has for it."""
        for name, value in vars(sys.modules[self._module]).items():
            if inspect.isfunction(value) and value in _ROWS and value.__name__ == "f":
                self._named(value, name)

    def _function(self, row: Row) -> Any:
        operation, convert = row.operation, getattr(self._rules, row.rule).convert
        f: Callable[..., Tensor]
        if row.arguments == _OF_ONE:

            def f(x: TensorLike) -> Tensor:
                return operation(convert(x))

        else:

            def f(x1: TensorLike, x2: TensorLike) -> Tensor:
                return operation(*convert(x1, x2))

        _ROWS[f] = row
        return f

    def _named(self, function: Any, name: str) -> Any:
        row = _ROWS[function]
        values, result = row.example.split(" -> ")
        function.__module__, function.__name__, function.__qualname__ = self._module, name, name
        function.__doc__ = _DOC.format(
            summary=row.summary + getattr(self._rules, row.rule).ending,
            arguments=row.arguments,
            public=self._rules.public,
            name=name,
            values=values,
            result=result,
        )
        return function
