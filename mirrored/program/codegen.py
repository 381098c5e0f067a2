"""Generated Python functions that replay plain calls with minimal overhead.

A generated function finds everything in local variables: a list of calls in a loop takes longer.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from mirrored._tracebacks import GENERATED
from mirrored.program.kernel_calls import Call

_LITERALS = (bool, int, str, type(None))


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

    def line(self, call: Call) -> str:
        """Return the source of a call."""
        args = [self.of(arg) for arg in call.args]
        if call.function is operator.setitem:
            return f"{args[0]}[{args[1]}] = {args[2]}"
        first = len(args) - len(call.keywords)
        named = [f"{key}={arg}" for key, arg in zip(call.keywords, args[first:], strict=True)]
        return f"{self.of(call.function)}({', '.join([*args[:first], *named])})"


def make_function(
    calls: Sequence[Call], stop_after: Sequence[tuple[int, Callable[[], bool]]] = ()
) -> Callable[[], bool]:
    """Return a function that makes calls, one after the other, and returns True.

    Args:
        calls: The calls.
        stop_after: After how many of them to ask which function whether to go on; where it says
            no, False is returned at once.
    """
    names = _Names()
    lines = [names.line(call) for call in calls]
    for count, check in sorted(stop_after, key=lambda pair: -pair[0]):
        lines.insert(count, f"if not {names.of(check)}(): return False")
    return _compiled([*lines, "return True"], names)


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
