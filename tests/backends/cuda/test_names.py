"""Every name of CuPy's that the backend uses is there, in CuPy and in the emulated one."""

import ast
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from case_table import cases

import mirrored.backends.cuda
from mirrored.backends.cuda import toolkit

# What the module is called wherever it is held.
HELD_AS = ("cupy", "_cupy")


def chain(node: ast.AST, aliases: dict[str, str]) -> str | None:
    """Return the name that an expression is of something in CuPy; None for other expressions."""
    if isinstance(node, ast.Name):
        return "cupy" if node.id in HELD_AS else aliases.get(node.id)
    if isinstance(node, ast.Attribute):
        before = chain(node.value, aliases)
        if before is not None:
            return f"{before}.{node.attr}"
        return "cupy" if node.attr in HELD_AS else None
    return None


def scopes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a module and each function in it."""
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node


def names(tree: ast.AST) -> set[str]:
    """Return the names of CuPy's that a module uses, by way of local names for parts of it too."""
    found = set()
    for scope in scopes(tree):
        aliases, nodes = {}, list(ast.walk(scope))
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = chain(node.value, {})
                if value is not None and "." in value:
                    aliases[node.targets[0].id] = value
        found |= {chain(node, aliases) for node in nodes} - {None, "cupy"}
    return {each for each in found if each is not None}


FOLDER = Path(mirrored.backends.cuda.__file__).parent
USED = sorted(set().union(*(names(ast.parse(path.read_text())) for path in FOLDER.rglob("*.py"))))


def look_up(module: Any, name: str) -> Any:
    """Return what a module has under a dotted name that begins with the module's own."""
    return reduce(getattr, name.split(".")[1:], module)


def test_finds_names_however_the_module_is_held() -> None:
    text = """
def f(self, cupy, memory):
    runtime = self._cupy.cuda.runtime
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.synchronize(memory.cupyx)
    return runtime.memcpy, cupy.float32
"""
    assert names(ast.parse(text)) == {
        "cupy.cuda",
        "cupy.cuda.Stream",
        "cupy.cuda.runtime",
        "cupy.cuda.runtime.memcpy",
        "cupy.float32",
    }


def test_the_backend_uses_some() -> None:
    assert {
        "cupy.cuda.function.Module",
        "cupy.cuda.Stream",
        "cupy.cuda.runtime.memcpyAsync",
    } <= set(USED)


@cases("name", USED)
def test_cupy_has(name: str) -> None:
    look_up(pytest.importorskip("cupy"), name)


def test_emulated_cupy_has_them_all(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    for name in USED:
        look_up(toolkit.toolkit(), name)
