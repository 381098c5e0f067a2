"""What `import mirrored as mr` offers: names that lead to the thing itself, and nothing private.

Alias modules hold no logic, so that there is one place where each thing is defined.
"""

import ast
import builtins
import functools
import importlib
import inspect
import pydoc
import sys
import typing
from types import ModuleType
from typing import Any

import pytest
from case_table import cases
from extras import WRAPPERS

import mirrored as mr
from mirrored import ops, training
from mirrored._late import LISTS
from mirrored.layers import policy


def public_modules() -> dict[str, ModuleType]:
    """Return all modules that users find from the package on, by their names."""
    found: dict[str, ModuleType] = {}
    waiting = [mr]
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
            if module.__name__ == WRAPPERS:
                continue
            inner = (getattr(module, name) for name in {*dir(module), *module.__all__})
            waiting += [each for each in inner if isinstance(each, ModuleType)]
    return found


@functools.cache
def tree_of(module: ModuleType) -> ast.Module:
    """Return what a module's source is parsed to."""
    return ast.parse(inspect.getsource(module))


def statements_of(module: ModuleType) -> list[ast.stmt]:
    """Return the statements of a module's source."""
    return tree_of(module).body


PUBLIC = public_modules()
SOME = {name: module for name, module in PUBLIC.items() if name != WRAPPERS}
KERAS = [
    mr.keras.activations,
    mr.keras.backend,
    mr.keras.callbacks,
    mr.keras.config,
    mr.keras.constraints,
    mr.keras.datasets,
    mr.keras.datasets.boston_housing,
    mr.keras.datasets.california_housing,
    mr.keras.datasets.cifar10,
    mr.keras.datasets.cifar100,
    mr.keras.datasets.fashion_mnist,
    mr.keras.datasets.imdb,
    mr.keras.datasets.mnist,
    mr.keras.datasets.reuters,
    mr.keras.initializers,
    mr.keras.layers,
    mr.keras.losses,
    mr.keras.metrics,
    mr.keras.mixed_precision,
    mr.keras.models,
    mr.keras.ops,
    mr.keras.ops.image,
    mr.keras.ops.linalg,
    mr.keras.ops.nn,
    mr.keras.ops.numpy,
    mr.keras.optimizers,
    mr.keras.optimizers.schedules,
    mr.keras.random,
    mr.keras.regularizers,
    mr.keras.utils,
    mr.keras.saving,
    mr.keras.tree,
    mr.keras.wrappers,
]
OPERATIONS = [mr, mr.debugging, mr.image, mr.linalg, mr.math, mr.nest, mr.nn, mr.random, mr.summary]
ALIAS_MODULES = [
    *OPERATIONS,
    *KERAS,
    mr.autodiff,
    mr.config,
    mr.config.experimental,
    mr.data,
    mr.data.experimental,
    mr.distribute,
    mr.distribute.experimental,
    mr.dtypes,
    mr.experimental,
    mr.experimental.dlpack,
    mr.experimental.numpy,
    mr.experimental.numpy.random,
    mr.io,
    mr.keras,
    mr.layers,
    mr.nn.experimental,
    mr.profiler,
    mr.random.experimental,
    mr.summary.experimental,
    mr.test,
    mr.train,
    mr.types,
    mr.types.experimental,
    mr.version,
]


@cases("module", ALIAS_MODULES, ids=lambda module: module.__name__)
def test_alias_modules_have_no_logic(module: ModuleType) -> None:
    """They import and rename; they define no function and no class."""
    statements = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    docstring, *rest = statements_of(module)
    assert isinstance(docstring, ast.Expr)
    others = [ast.unparse(each) for each in rest if not isinstance(each, statements)]
    assert all(each.startswith(("_public_module('tf", "_part_of('mirr")) for each in others)


@cases(
    "module",
    [*OPERATIONS, mr.test, mr.keras.backend, mr.keras.mixed_precision, mr.keras.utils],
    ids=lambda module: module.__name__,
)
def test_public_functions_have_an_example(module: ModuleType) -> None:
    missing = [
        name
        for name, value in inspect.getmembers(module)
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and ">>>" not in (value.__doc__ or "")
    ]
    assert missing == []


# Optional packages of which annotations name a type.
OF_EXTRAS = ("matplotlib", "tensorboardX")


def test_the_type_hints_of_public_functions_and_methods_are_types() -> None:
    """As for programs that check arguments by them, whatever is imported late."""
    checked: set[int] = set()
    failed: dict[str, str] = {}

    def check(name: str, value: Any) -> None:
        value = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
        if not (inspect.isfunction(value) or inspect.isclass(value)) or id(value) in checked:
            return
        checked.add(id(value))
        try:
            typing.get_type_hints(value)
        except ModuleNotFoundError as error:
            if error.name not in OF_EXTRAS:
                failed[name] = str(error)
        except Exception as error:
            failed[name] = repr(error)
        for base in value.__mro__ if inspect.isclass(value) else ():
            if str(base.__module__).startswith("mirrored"):
                for member, inner in list(vars(base).items()):
                    check(f"{name}.{member}", inner)

    for module in SOME.values():
        for name in {*dir(module), *module.__all__}:
            if not name.startswith("_"):
                check(f"{module.__name__}.{name}", getattr(module, name))
    assert failed == {}
    assert len(checked) > 3000


def test_public_modules_are_those_that_users_know() -> None:
    keras = {module.__name__ for module in KERAS}
    names = ("activations", "constraints", "initializers", "regularizers")
    parts = {f"mirrored.layers.{name}" for name in names}
    parts.add("mirrored.optim.schedules")
    ours = {"mirrored", "mirrored.errors", "mirrored.layers", "mirrored.optim"}
    aliases = {module.__name__ for module in ALIAS_MODULES}
    assert set(PUBLIC) == {*keras, *parts, *ours, *aliases}


@cases("module", SOME.values(), ids=SOME)
def test_a_public_module_lists_what_it_offers(module: ModuleType) -> None:
    """What it defines or names again, as its source says it, and nothing that it is made of."""
    offered = set(LISTS[module.__name__])
    for each in statements_of(module):
        if isinstance(each, ast.ImportFrom):
            offered |= {alias.asname for alias in each.names if alias.asname}
        elif isinstance(each, ast.ClassDef | ast.FunctionDef):
            offered.add(each.name)
        elif isinstance(each, ast.Assign):
            offered |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    offered = {name for name in offered if not name.startswith("_")}
    assert offered or module in (mr.autodiff, mr.errors)
    unlisted = {"autodiff"} if module is mr else set()  # All that it has is listed beside it.
    assert {name for name in dir(module) if not name.startswith("_")} == offered - unlisted
    assert set(module.__all__) == {name for name in offered if not hasattr(builtins, name)}
    assert all(hasattr(module, name) for name in dir(module))


@pytest.mark.behaviour("star-import")
@cases("name", SOME)
def test_importing_all_of_a_module_hides_nothing_of_python(name: str) -> None:
    scope: dict[str, object] = {}
    exec(f"from {name} import *", scope)
    assert scope.keys() - {"__builtins__"} == set(PUBLIC[name].__all__)
    assert not {each for each in scope if hasattr(builtins, each)} - {"__builtins__"}


@pytest.mark.slow
def test_so_do_modules_that_need_more_packages() -> None:
    test_a_public_module_lists_what_it_offers.__wrapped__(PUBLIC[WRAPPERS])
    test_importing_all_of_a_module_hides_nothing_of_python.__wrapped__(WRAPPERS)


@cases(
    ("module", "shown"),
    [
        (mr, ["class GradientTape(", "class Model(", "    matmul(", "    function("]),
        (mr.layers, ["class Dense(", "class Dropout(", "    Input("]),
        (mr.optim, ["class Adam(", "    get(identifier"]),
        (mr.losses, ["class MeanSquaredError(", "    mse = "]),
    ],
    ids=lambda part: part.__name__ if isinstance(part, ModuleType) else "",
)
def test_help_shows_what_there_is(module: ModuleType, shown: list[str]) -> None:
    text = pydoc.render_doc(module, renderer=pydoc.plaintext)
    assert [line for line in shown if line not in text] == []


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


@cases("name", ["callbacks", "initializers", "losses", "metrics", "optimizers"])
def test_parts_of_keras_are_found_at_the_top_too(name: str) -> None:
    module = importlib.import_module(f"mirrored.{name}")
    assert module is getattr(mr, name) is getattr(mr.keras, name)
    assert sys.modules[f"mirrored.{name}"] is sys.modules[f"mirrored.keras.{name}"]


@cases(
    ("module", "home", "not_keras"),
    [
        (mr.keras.layers, mr.layers, {"SymbolicTensor", "reset_names"}),
        (mr.keras.optimizers, mr.optim, set()),
        (mr.keras.activations, mr.layers.activations, set()),
        (mr.keras.constraints, mr.layers.constraints, set()),
        (mr.keras.initializers, mr.layers.initializers, set()),
        (mr.keras.regularizers, mr.layers.regularizers, set()),
        (mr.keras.callbacks, training.callbacks, set()),
        (mr.keras.losses, training.losses, {"as_loss"}),
        (mr.keras.mixed_precision, policy, {"as_policy"}),
        (mr.keras.metrics, training.metrics, {"kind_of", "resolve"}),
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


@cases("module", KERAS, ids=lambda module: module.__name__)
def test_parts_of_keras_can_be_imported_by_their_names(module: ModuleType) -> None:
    assert importlib.import_module(module.__name__) is module
    home, _, name = module.__name__.rpartition(".")
    assert getattr(importlib.import_module(home), name) is module


@cases("module", ALIAS_MODULES, ids=lambda module: module.__name__)
def test_type_checkers_see_no_getattr(module: ModuleType) -> None:
    """They would take every name for one that exists."""
    names = {each.id for each in ast.walk(tree_of(module)) if isinstance(each, ast.Name)}
    assert "__getattr__" not in names


def test_every_op_function_is_public() -> None:
    """A function that computes and that nobody can reach would be dead code."""
    homes = (*OPERATIONS, mr.nn.experimental, mr.keras.backend)
    public = {id(value) for home in homes for value in vars(home).values()}
    internal = {"autocast", "autocast_dtype", "bfloat16", "dropped"}
    internal |= {"logits_of", "register", "shard_position", "transfer"}
    functions = {
        name: value
        for name, value in inspect.getmembers(ops)
        if inspect.isfunction(value) and not name.startswith("_")
    }
    assert [n for n, f in functions.items() if id(f) not in public and n not in internal] == []
