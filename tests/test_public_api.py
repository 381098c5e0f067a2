"""What `import mirrored as mr` offers: names that lead to the thing itself, and nothing private.

Alias modules hold no logic, so that there is one place where each thing is defined.
"""

import ast
import inspect
from types import ModuleType

import pytest

import mirrored as mr
from mirrored import ops

ALIAS_MODULES = [
    mr,
    mr.config,
    mr.config.experimental,
    mr.debugging,
    mr.keras,
    mr.keras.backend,
    mr.linalg,
    mr.nn,
    mr.random,
    mr.distribute,
    mr.layers,
]


@pytest.mark.parametrize("module", ALIAS_MODULES, ids=lambda module: module.__name__)
def test_alias_modules_have_no_logic(module: ModuleType) -> None:
    """They import and rename; they define no function and no class."""
    body = ast.parse(inspect.getsource(module)).body
    statements = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    docstring, *rest = body
    assert isinstance(docstring, ast.Expr)
    assert [type(each).__name__ for each in rest if not isinstance(each, statements)] == []


@pytest.mark.parametrize("module", [mr, mr.nn, mr.random, mr.linalg], ids=lambda m: m.__name__)
def test_public_functions_have_an_example(module: ModuleType) -> None:
    missing = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and ">>>" not in (value.__doc__ or "")
    ]
    assert missing == []


def test_names_lead_to_the_same_thing() -> None:
    assert mr.matmul is mr.linalg.matmul is ops.matmul
    assert mr.keras.layers is mr.layers
    assert mr.keras.optimizers is mr.optim
    assert mr.keras.Model is mr.Model
    assert mr.keras.losses is mr.losses
    assert mr.distribute.MirroredStrategy is mr.MirroredStrategy
    assert mr.bool == ops.bool_


def test_every_op_function_is_public() -> None:
    """A function that computes and that nobody can reach would be dead code."""
    homes = (mr, mr.nn, mr.random, mr.linalg, mr.keras.backend)
    public = {id(value) for home in homes for value in vars(home).values()}
    internal = {"logits_of", "register", "shard_position", "transfer"}
    functions = {
        name: value
        for name, value in vars(ops).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    assert [n for n, f in functions.items() if id(f) not in public and n not in internal] == []
