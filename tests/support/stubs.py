"""The stubs that type checkers read next to modules of public names, written from their tables.

`python tests/support/stubs.py` writes them all; `tests/test_late_names.py` fails where one is old.
"""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from extras import IMPORT_MORE

import mirrored as mr
from mirrored._late import LISTS

_HEAD = "# Written by tests/support/stubs.py from the table in {}; do not edit it.\n"
_CALLS = {"_public_module", "_late_module", "_part_of", "list_names", "_list_names"}


def modules() -> Iterator[ModuleType]:
    """Yield the modules whose names are loaded late."""
    for module in pkgutil.walk_packages(mr.__path__, f"{mr.__name__}."):
        if "__main__" not in module.name and module.name not in IMPORT_MORE:
            importlib.import_module(module.name)
    for name, names in sorted(LISTS.items()):
        if list(names):
            yield importlib.import_module(name)


def path_of(module: ModuleType) -> Path:
    """Return where a module's stub is."""
    return Path(inspect.getfile(module)).resolve().with_suffix(".pyi")


def text_of(module: ModuleType) -> str:
    """Return a module's stub: what the module has beside its table, and an import for each name."""
    source = Path(inspect.getfile(module))
    names = LISTS[module.__name__]
    lines = [_HEAD.format(source.name)]
    for statement in ast.parse(source.read_text()).body:
        if not _is_of_the_table(statement):
            lines.append(ast.unparse(statement) + "\n")
    if not all(names.home(name)[1].isidentifier() for name in names):
        lines.append("import typing as _typing\n")
    for name in sorted(names):
        home, old = names.home(name)
        if not old.isidentifier():  # A row of a table.
            lines.append(f"{name}: _typing.Any\n")
        elif old == name:
            lines.append(f"from {home} import {name} as {name}\n")
        else:  # An import under another name would be private.
            lines.append(f"from {home} import {old} as _{old}\n{name} = _{old}\n")
    return "".join(lines)


def _is_of_the_table(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr):
        return False
    call = statement.value
    is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    return isinstance(call, ast.Constant) or (is_call and call.func.id in _CALLS)  # type: ignore[attr-defined]


if __name__ == "__main__":
    for found in modules():
        path_of(found).write_text(text_of(found))
