"""Each name of Keras' is there, or its error says that it is not and what to use."""

import importlib
import importlib.util
import json

import keras_names
from case_table import cases
from extras import WRAPPERS

NAMES: dict[str, list[str]] = json.loads(keras_names.FILE.read_text())


def is_there(module: str) -> bool:
    """Return whether a module of Keras' is one here: the error of an absent one gives advice."""
    try:
        return importlib.util.find_spec(f"mirrored.{module}") is not None
    except ModuleNotFoundError:
        return False


THERE = [module for module in NAMES if module.count(".") < 2 and is_there(module)]


def test_what_a_dense_network_needs_is_there() -> None:
    assert set(THERE) >= {f"keras.{name}" for name in ("layers", "losses", "metrics", "optimizers")}


MODULES = [module for module in THERE if f"mirrored.{module}" != WRAPPERS]


@cases("module", [*MODULES, "keras.optimizers.schedules"])
def test_every_name_is_there_or_absent_with_advice(module: str) -> None:
    ours = importlib.import_module(f"mirrored.{module}")
    unsaid = []
    for name in NAMES[module]:
        try:
            getattr(ours, name)
        except AttributeError as error:
            if f"mirrored has no `tf.{module}.{name}`: not provided here. " not in str(error):
                unsaid.append(name)
    assert unsaid == []
