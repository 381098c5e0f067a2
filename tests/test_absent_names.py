"""Names that TensorFlow has and this library does not: what the error says, and when it says it."""

import importlib
import importlib.util
import inspect
import os
import re
from pathlib import Path
from types import ModuleType

import pytest
from case_table import cases
from forked_programs import run_program

import mirrored as mr
from mirrored import _absent
from mirrored._absent import tables

NAMES = tables().modules
KNOWN = {**tables().modules, **tables().classes}
ROWS = [*tables().absent, *tables().older]
COMPLETE = {
    "tf.keras.activations",
    "tf.keras.tree",
    "tf.nn.experimental",
    "tf.experimental.dlpack",
    "tf.keras.datasets.boston_housing",
    "tf.keras.datasets.california_housing",
    "tf.keras.datasets.cifar10",
    "tf.keras.datasets.cifar100",
    "tf.keras.datasets",
    "tf.keras.datasets.fashion_mnist",
    "tf.keras.datasets.imdb",
    "tf.keras.datasets.reuters",
    "tf.keras.constraints",
    "tf.keras.datasets.mnist",
    "tf.keras.wrappers",
    "tf.keras.metrics",
    "tf.keras.optimizers.schedules",
    "tf.keras.regularizers",
    "tf.keras.mixed_precision",
    "tf.keras.models",
    "tf.nest",
    "tf.types",
}  # Modules of which nothing is absent.


def ours(module: str) -> ModuleType:
    """Return the module that has a module of TensorFlow's names."""
    return importlib.import_module("mirrored" + module.removeprefix("tf"))


@pytest.mark.behaviour("absent-names")
@cases("module", NAMES)
def test_every_absent_name_says_so(module: str) -> None:
    home = ours(module)
    there = {*dir(home), *home.__all__, *inspect.get_annotations(home)}
    absent = [name for name in NAMES[module] if name not in there]
    assert bool(absent) != (module in COMPLETE)
    for name in absent:
        assert not hasattr(ours(module), name)
        start = re.escape(f"mirrored has no `{module}.{name}`: not provided here. ")
        with pytest.raises(AttributeError, match=f"^{start}[A-Z`].*[.]$"):
            getattr(ours(module), name)


@cases(
    "name", ["keras.applications.resnet", "keras.legacy", "lite", "keras.layer", "python.client"]
)
def test_an_absent_module_that_is_imported_says_so(name: str) -> None:
    said = "Did you mean: 'Layer'" if name == "keras.layer" else "not provided here. [A-Z]"
    for look in (importlib.import_module, importlib.util.find_spec):
        with pytest.raises(ModuleNotFoundError, match=said):
            look(f"mirrored.{name}")
    assert importlib.util.find_spec("mirrored.neither") is None
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'mirrored\.neither'$"):
        importlib.import_module("mirrored.neither")


@cases("module", NAMES)
def test_advice_is_given(module: str) -> None:
    for row in [row for row in ROWS if module in row.homes]:
        known = NAMES[module] if row in tables().absent else row.names
        for name in set(row.names) & set(known):
            with pytest.raises(AttributeError) as caught:
                getattr(ours(module), name)
            assert str(caught.value).endswith(f": not provided here. {row.advice}")


def test_rows_are_about_names_that_tensorflow_has() -> None:
    for row in tables().absent:
        assert set(row.names) <= {name for home in row.homes for name in KNOWN[home]}
    for row in tables().older:
        for home in row.homes:
            assert set(row.names).isdisjoint(KNOWN[home])


def test_a_row_is_about_modules_or_about_classes() -> None:
    for row in ROWS:
        assert set(row.homes) <= set(NAMES) or set(row.homes) <= set(tables().classes)


def test_no_name_has_two_rows() -> None:
    named = [(home, name) for row in ROWS for home in row.homes for name in row.names]
    assert len(named) == len(set(named))


def test_every_module_and_class_has_general_advice() -> None:
    assert set(tables().general) == set(KNOWN)


@cases("name", ["no_such_name", "_private", "__wrapped__"])
def test_what_tensorflow_has_not_either_is_an_ordinary_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'mirrored' has no attribute '{name}'$"):
        getattr(mr, name)


@pytest.mark.behaviour("absent-names")
@cases(
    ("module", "name", "meant"),
    [
        (mr, "reduce_men", "reduce_mean"),
        (mr, "ReduceMean", "reduce_mean"),
        (mr, "Layers", "layers"),
        (mr.layers, "Dens", "Dense"),
        (mr.optim, "adem", "Adam"),
        (mr.losses, "MeanSquareError", "MeanSquaredError"),
        (mr.losses, "mean_square_error", "mean_squared_error"),
        (mr.errors, "ResourcesExhaustedError", "ResourceExhaustedError"),
    ],
)
def test_a_misspelt_name_leads_to_the_nearest(module: ModuleType, name: str, meant: str) -> None:
    text = f"has no attribute '{name}'. Did you mean: '{meant}'?"
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert str(caught.value) == f"module '{module.__name__}' {text}"
    with pytest.raises(ImportError, match=re.escape(text)):
        exec(f"from {module.__name__} import {name}")


@pytest.mark.behaviour("absent-names")
@cases(
    ("module", "name", "meant"),
    [
        (mr.callbacks, "RemoteMoniter", "RemoteMonitor"),
        (mr.layers, "TextVectorisation", "TextVectorization"),
        (mr.keras.callbacks, "OrbaxCheckpoints", "OrbaxCheckpoint"),
        (mr, "hessian", "hessians"),
    ],
)
def test_a_misspelt_absent_name_leads_to_its_advice(
    module: ModuleType, name: str, meant: str
) -> None:
    with pytest.raises(AttributeError) as absent:
        getattr(module, meant)
    advice = str(absent.value).partition(": not provided here. ")[2]
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert str(caught.value).endswith(
        f"no attribute {name!r}. Did you mean: {meant!r}? It is not provided here. {advice}"
    )


def test_python_adds_no_guess_to_the_advice(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import mirrored; mirrored.SparseTensor")
    done = run_program(program, folder=tmp_path, environment=os.environ)
    assert done.stderr.endswith("or a list of them.\n")


@pytest.mark.behaviour("absent-names")
@cases(
    ("module", "name"),
    [
        ("keras.layers", "LSTM"),
        ("layers", "LSTM"),
        ("", "SparseTensor"),
        ("losses", "CTC"),
        ("optim", "legacy"),
        ("dtypes", "complex64"),
    ],
)
def test_importing_an_absent_name_says_what_reading_it_says(module: str, name: str) -> None:
    home = f"mirrored.{module}".rstrip(".")
    with pytest.raises(AttributeError, match="not provided here") as read:
        getattr(importlib.import_module(home), name)
    with pytest.raises(ImportError) as caught:
        exec(f"from {home} import {name}")
    own = importlib.import_module(home).__name__
    assert str(caught.value) == f"cannot import name '{name}' from '{own}': {read.value}"
    assert caught.value.name == own


def test_importing_a_name_that_nobody_has_is_an_ordinary_error() -> None:
    with pytest.raises(ImportError, match=r"'no_such_name' from 'mirrored' \("):
        exec("from mirrored import no_such_name")


def test_the_tables_are_read_when_a_name_is_missing() -> None:
    """Not before, nor when the library is imported: `test_import_is_light`."""
    for each in (tables, _absent._advice):
        each.cache_clear()
    for look in (lambda: mr.add, lambda: hasattr(mr, "__wrapped__")):
        look()
        assert tables.cache_info().currsize == 0
    assert not hasattr(mr, "SparseTensor")
    assert tables.cache_info().currsize == 1


def test_the_tables_are_whole() -> None:
    """Guard against a list that was cut: no error would tell of what is missing in it."""
    assert all(names == sorted(set(names)) for names in KNOWN.values())
    assert len(NAMES["tf"]) > 300
    assert {"LSTM", "Dense"} <= set(NAMES["tf.keras.layers"])
