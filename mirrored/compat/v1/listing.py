"""The public lists of TensorFlow 1's modules, and the advice on names that are absent."""

import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from mirrored._late import LISTS, late_module

_Function = TypeVar("_Function")


def named(function: _Function, name: str, **texts: Any) -> _Function:
    """Give a function, one of several of a kind, its public name and docstring, and return it.

    Args:
        function: The function; its docstring has the names of texts in braces.
        name: Its name.
        **texts: The texts.
    """
    public: Any = function
    public.__name__ = public.__qualname__ = name
    public.__doc__ = str(public.__doc__).format(**texts)
    return function


def list_names(
    module: str,
    homes: Mapping[str, str] | None = None,
    refused: Mapping[str, str] | None = None,
    advice: str = "",
) -> None:
    """Let a module have names that are loaded at their first use, and refuse others with advice.

    Args:
        module: The module's name.
        homes: Where the names are defined, as `LateNames` has it.
        refused: Names of TensorFlow 1's that are not provided, separated by spaces, by what to use
            instead.
        advice: What is said of all other names, after the page that lists what is there.
    """
    instead = {name: text for text, names in (refused or {}).items() for name in names.split()}
    page = f"docs/howto/from-tensorflow-1.md lists the supported names. {advice}".rstrip()

    def absent(name: str) -> str:
        if name in instead:
            return f"{module} has no {name!r}. {instead[name]}"
        return f"module {module!r} has no attribute {name!r}. {page}"

    late_module(module, homes or {}, absent)
    there = vars(sys.modules[module])
    own = (name for name, value in there.items() if getattr(value, "__module__", "") == module)
    listed = sorted({name for name in (*own, *LISTS[module]) if name[0] != "_"})
    dunder = [name for name in there if name[:2] == "__"]
    there.update(__all__=listed, __dir__=lambda: sorted({*dunder, *listed}))
