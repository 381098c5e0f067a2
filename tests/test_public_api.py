"""What `import mirrored as mr` offers: names that lead to the thing itself, and nothing private.

Alias modules hold no logic, so that there is one place where each thing is defined.
"""

import ast
import importlib
import inspect
from types import ModuleType

import pytest

import mirrored as mr
from mirrored import ops, training
from mirrored.layers import policy

KERAS = [
    mr.keras.activations,
    mr.keras.backend,
    mr.keras.callbacks,
    mr.keras.initializers,
    mr.keras.layers,
    mr.keras.losses,
    mr.keras.metrics,
    mr.keras.mixed_precision,
    mr.keras.models,
    mr.keras.optimizers,
    mr.keras.regularizers,
    mr.keras.utils,
]
OPERATIONS = [mr, mr.linalg, mr.math, mr.nn, mr.random]
ALIAS_MODULES = [
    *OPERATIONS,
    *KERAS,
    mr.config,
    mr.config.experimental,
    mr.data,
    mr.debugging,
    mr.distribute,
    mr.distribute.experimental,
    mr.dtypes,
    mr.keras,
    mr.layers,
    mr.test,
    mr.train,
    mr.version,
]


@pytest.mark.parametrize("module", ALIAS_MODULES, ids=lambda module: module.__name__)
def test_alias_modules_have_no_logic(module: ModuleType) -> None:
    """They import and rename; they define no function and no class."""
    body = ast.parse(inspect.getsource(module)).body
    statements = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    docstring, *rest = body
    assert isinstance(docstring, ast.Expr)
    assert [type(each).__name__ for each in rest if not isinstance(each, statements)] == []


@pytest.mark.parametrize(
    "module",
    [*OPERATIONS, mr.test, mr.keras.backend, mr.keras.mixed_precision, mr.keras.utils],
    ids=lambda module: module.__name__,
)
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
    assert mr.sigmoid is mr.math.sigmoid is mr.nn.sigmoid
    assert mr.truediv is mr.math.truediv is mr.divide
    assert mr.keras.Model is mr.keras.models.Model is mr.Model
    assert mr.distribute.MirroredStrategy is mr.MirroredStrategy
    assert mr.bool is mr.dtypes.bool is ops.bool_
    assert mr.bfloat16 is mr.dtypes.bfloat16 is ops.bfloat16()
    assert mr.double is mr.dtypes.double is mr.float64
    assert mr.__version__ == mr.version.VERSION


@pytest.mark.parametrize("name", ["callbacks", "initializers", "losses", "metrics", "optimizers"])
def test_parts_of_keras_are_found_at_the_top_too(name: str) -> None:
    assert getattr(mr, name) is getattr(mr.keras, name)


@pytest.mark.parametrize(
    ("module", "home", "not_keras"),
    [
        (mr.keras.layers, mr.layers, {"SymbolicTensor", "reset_names"}),
        (mr.keras.optimizers, mr.optim, set()),
        (mr.keras.activations, mr.layers.activations, set()),
        (mr.keras.initializers, mr.layers.initializers, set()),
        (mr.keras.regularizers, mr.layers.regularizers, set()),
        (mr.keras.callbacks, training.callbacks, set()),
        (mr.keras.losses, training.losses, set()),
        (mr.keras.mixed_precision, policy, {"as_policy"}),
        (mr.keras.metrics, training.metrics, {"resolve"}),
    ],
    ids=lambda part: part.__name__ if isinstance(part, ModuleType) else "",
)
def test_keras_has_what_its_homes_define(
    module: ModuleType, home: ModuleType, not_keras: set[str]
) -> None:
    """What is new in a home, and missing in the module of Keras' name, is seen here."""
    package = home.__name__ if hasattr(home, "__path__") else None
    defined = {
        name
        for name, value in vars(home).items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and not name.startswith("_")
        and (value.__module__ == home.__name__ or value.__module__.startswith(f"{package}."))
    }
    assert defined - not_keras <= set(vars(module))
    assert all(vars(module)[name] is vars(home)[name] for name in defined - not_keras)


@pytest.mark.parametrize("module", KERAS, ids=lambda module: module.__name__)
def test_parts_of_keras_can_be_imported_by_their_names(module: ModuleType) -> None:
    assert importlib.import_module(module.__name__) is module
    assert getattr(mr.keras, module.__name__.rpartition(".")[2]) is module


@pytest.mark.parametrize("module", ALIAS_MODULES, ids=lambda module: module.__name__)
def test_type_checkers_see_no_getattr(module: ModuleType) -> None:
    """They would take every name for one that exists."""
    names = {
        each.id
        for each in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(each, ast.Name)
    }
    assert "__getattr__" not in names


def test_every_op_function_is_public() -> None:
    """A function that computes and that nobody can reach would be dead code."""
    homes = (*OPERATIONS, mr.keras.backend)
    public = {id(value) for home in homes for value in vars(home).values()}
    internal = {"autocast", "autocast_dtype", "bfloat16"}
    internal |= {"logits_of", "register", "shard_position", "transfer"}
    functions = {
        name: value
        for name, value in vars(ops).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    assert [n for n, f in functions.items() if id(f) not in public and n not in internal] == []
