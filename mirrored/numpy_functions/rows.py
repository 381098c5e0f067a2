"""Functions that convert their arguments and call one operation: rows of a table.

A row has a name, a sentence, an operation, an example and a rule. NumPy's functions and Keras' are
such rows, each by a table of rules of its own.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from mirrored.ops import Tensor

_Function = TypeVar("_Function")


class Unary(Protocol):
    """A function of one tensor."""

    def __call__(self, x: Any) -> Tensor:
        """Return what the row says."""


class Binary(Protocol):
    """A function of two tensors whose shapes broadcast."""

    def __call__(self, x1: Any, x2: Any) -> Tensor:
        """Return what the row says."""


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


class Rows:
    """The rows of one module.

    Args:
        module: The name of the module.
        rules: The rules of its package.
    """

    def __init__(self, module: str, rules: Rules) -> None:
        self._module, self._rules = module, rules
        self._unary: dict[str, tuple[str, Callable[[Any], Tensor], str, str]] = {}
        self._binary: dict[str, tuple[str, Callable[[Any, Any], Tensor], str, str]] = {}

    def unary(
        self,
        name: str,
        summary: str,
        function: Callable[[Any], Tensor],
        example: str,
        rule: str = "floats",
    ) -> Unary:
        """Return a function of one tensor.

        Args:
            name: Its name.
            summary: What it returns, the first words of its docstring.
            function: From the converted tensor to the result.
            example: Arguments and a result, as in "4 -> 2.0".
            rule: The name of the rule.
        """
        self._unary[name] = (summary, function, example, rule)
        convert, ending = getattr(self._rules, rule)

        def f(x: Any) -> Tensor:
            return function(convert(x))

        return self._named(f, name, summary + ending, example, _OF_ONE)

    def binary(
        self,
        name: str,
        summary: str,
        function: Callable[[Any, Any], Tensor],
        example: str,
        rule: str = "pair",
    ) -> Binary:
        """Return a function of two tensors; arguments as for `unary`."""
        self._binary[name] = (summary, function, example, rule)
        convert, ending = getattr(self._rules, rule)

        def f(x1: Any, x2: Any) -> Tensor:
            return function(*convert(x1, x2))

        return self._named(f, name, summary + ending, example, _OF_TWO)

    def unary_again(self, others: "Rows", names: str) -> Iterator[Unary]:
        """Yield functions of one tensor that another module has, by the rules of this one.

        Args:
            others: The rows of the other module.
            names: Their names, separated by spaces.
        """
        return (self.unary(name, *others._unary[name]) for name in names.split())

    def binary_again(self, others: "Rows", names: str) -> Iterator[Binary]:
        """Yield functions of two tensors; arguments as for `unary_again`."""
        return (self.binary(name, *others._binary[name]) for name in names.split())

    def _named(
        self, function: _Function, name: str, summary: str, example: str, arguments: str
    ) -> _Function:
        named: Any = function
        values, result = example.split(" -> ")
        named.__module__, named.__name__, named.__qualname__ = self._module, name, name
        named.__doc__ = _DOC.format(
            summary=summary,
            arguments=arguments,
            public=self._rules.public,
            name=name,
            values=values,
            result=result,
        )
        return function
