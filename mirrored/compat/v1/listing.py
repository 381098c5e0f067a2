"""The public lists of TensorFlow 1's modules, and the advice on names that are absent."""

import sys
from collections.abc import Mapping
from typing import Any

from mirrored._late import LateNames


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
    there = vars(sys.modules[module])
    late = LateNames(module, homes or {})
    instead = {name: text for text, names in (refused or {}).items() for name in names.split()}
    page = f"docs/from-tensorflow-1.md lists what is there. {advice}".rstrip()

    def load(name: str) -> Any:
        if name in late:
            return late.load(name)
        if name in instead:
            raise AttributeError(f"{module} has no {name!r}. {instead[name]}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}. {page}")

    own = (name for name, value in there.items() if getattr(value, "__module__", "") == module)
    listed = sorted({name for name in (*own, *late) if name[0] != "_"})
    dunder = [name for name in there if name[:2] == "__"]
    # Type checkers do not follow this: they would take every name for one that exists.
    there.update(__all__=listed, __dir__=lambda: sorted({*dunder, *listed}), __getattr__=load)
