"""A function's parameters: normalises calls that pass the same arguments differently.

An argument may be given by its place or by its name, or be left out where that is its default.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameters:
    """The parameters of a function.

    Args:
        function: The function; of one that does not tell nothing is known.

    Attributes:
        count: How many may be given by their places; -1 where a call that gives just these may
            leave others out.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature: inspect.Signature | None = None
        with contextlib.suppress(TypeError, ValueError):  # One that is not Python's.
            self._signature = inspect.signature(function)
        items = [] if self._signature is None else [*self._signature.parameters.values()]
        self._positional = [item for item in items if item.kind in _POSITIONAL]
        self._named = {item.name: item.default for item in items if item.kind is item.KEYWORD_ONLY}
        self.count = -1 if self._named else len(self._positional)

    def completed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Return a call's arguments by their places, with defaults for what is missing.

        What does not fit stays as it is: Python says so when the function is called.

        Args:
            args: The call's positional arguments.
            kwargs: Its keyword arguments.
        """
        values, rest = list(args), dict(kwargs)
        for item in self._positional[len(args) :]:
            if item.name in rest and item.kind is item.POSITIONAL_OR_KEYWORD:
                values.append(rest.pop(item.name))
            elif item.default is not item.empty:
                values.append(item.default)
            else:
                return args, kwargs
        for name, default in self._named.items():
            if default is not inspect.Parameter.empty:
                rest.setdefault(name, default)
        return tuple(values), rest

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise TypeError unless a complete call fits, as Python does when it is made."""
        if self._signature is None:
            return
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"Binding inputs to mr.function failed due to `{error}`. Received args: "
                f"{args!r:.200} and kwargs: {kwargs!r:.200} for signature: {self._signature}."
            ) from None

    def named(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[tuple[str, str, Any]]:
        """Yield for each argument of a complete call its name, its kind, and itself.

        Args:
            args: The call's positional arguments.
            kwargs: Its keyword arguments.
        """
        for i, value in enumerate(args):
            if i < len(self._positional):
                yield self._positional[i].name, self._positional[i].kind.name, value
            else:
                yield f"args_{i - len(self._positional)}", "POSITIONAL_ONLY", value
        for name, value in kwargs.items():
            yield name, "KEYWORD_ONLY", value
