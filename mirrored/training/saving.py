"""A model's weights to a file and back, under names that do not depend on how it was put together.

Names are places in the model and kinds of layers, so any model of the same layers can read them.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

from mirrored._files import PathName, as_path
from mirrored.errors import WeightsFileError
from mirrored.layers import Layer
from mirrored.layers.building import unbuilt
from mirrored.training.network import Network
from mirrored.training.tensor_file import load_tensors, save_tensors
from mirrored.variables import Variable

Item = TypeVar("Item")

# What users of Keras, TensorFlow, NumPy and PyTorch give to files of weights.
_OTHER_FORMATS = frozenset(
    (".ckpt", ".h5", ".hdf5", ".json", ".keras", ".npy", ".npz", ".pb", ".pkl", ".pt", ".pth")
)


def save_weights(model: Network, filepath: PathName, overwrite: bool) -> None:
    """Write a model's weights; `Model.save_weights` says what the arguments mean."""
    path = _checked_path(filepath, "written to")
    _check_built(model, "saving")
    if not overwrite and os.path.exists(path):
        raise FileExistsError(
            f"There is a file at {path!r} already. Pass overwrite=True to replace it."
        )
    save_tensors(path, named_weights(model))


def load_weights(model: Network, filepath: PathName) -> None:
    """Set a model's weights; `Model.load_weights` says what the arguments mean."""
    path = _checked_path(filepath, "read from")
    _check_built(model, "loading weights into")
    named = named_weights(model)
    try:
        loaded = load_tensors(path, {key: (each.shape, each.dtype) for key, each in named.items()})
    except WeightsFileError as error:
        unused = [layer for layer in model._walk() if not layer.built]
        if unused:
            error.add_note(
                f"These layers of the model have no weights yet, since no call used them: {unused}."
            )
        raise
    by_variable = {id(named[key]): value for key, value in loaded.items()}
    model.set_weights([by_variable[id(each)] for each in model.weights])


def _check_built(model: Network, doing: str) -> None:
    missing = unbuilt(model)
    if missing:
        raise ValueError(
            f"You are {doing} a model that has not yet been built, {model.name!r}. Try building "
            "the model first by calling it on some data or by using `build()`. Received: a model "
            f"without the weights of {missing}."
        )


def _checked_path(filepath: PathName, done: str) -> str:
    """Return the path of a weights file, unless its name says that it is of another format."""
    path = as_path(filepath, "weights file")
    ending = os.path.splitext(path)[1]
    if ending.lower() in _OTHER_FORMATS:
        raise ValueError(
            f"Weights are {done} safetensors files, and the ending {ending!r} names another "
            f"format. Received: filepath={path!r}. Use a name that ends in '.safetensors'."
        )
    return path


def named_weights(layer: Layer) -> dict[str, Variable]:
    """Return the weights, each once, under names that another layer of the same parts gives."""
    return named_by_place(
        (f"{place(index, inner)}.{leaf_name(variable)}", variable)
        for index, inner in enumerate(layer._walk())
        for variable in inner._own_weights()
    )


def place(index: int, layer: object) -> str:
    """Return what names begin with that belong to a layer."""
    return f"{index}.{type(layer).__name__.lower()}"


def leaf_name(variable: Variable) -> str:
    """Return a variable's own name, without those of the layer or optimizer that it is in."""
    return variable.name.removesuffix(":0").rpartition("/")[2]


def named_by_place(pairs: Iterable[tuple[str, Item]]) -> dict[str, Item]:
    """Return things by name, each once; a name that is taken gets a number."""
    named: dict[str, Item] = {}
    found: set[int] = set()
    for name, item in pairs:
        if id(item) in found:  # Shared with a layer before.
            continue
        found.add(id(item))
        key, number = name, 0
        while key in named:  # A layer may give two of its weights one name.
            number += 1
            key = f"{name}_{number}"
        named[key] = item
    return named
