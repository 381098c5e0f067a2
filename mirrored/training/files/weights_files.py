"""A model's weights to a file and back, in the format that the file's name says.

Files that end in ".weights.h5" are Keras', whose programs read and write them too; all others are
safetensors files.
"""

import contextlib
import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from mirrored import _extras
from mirrored._arguments import explain_functions
from mirrored._files import alone_unless, as_path, of_writer, saving, trains_together
from mirrored._types import PathLike, late_type
from mirrored.errors import WeightsFileError
from mirrored.layers.layer import unbuilt, walk
from mirrored.training.files.hdf5_file import Hdf5Reader, reading, writing
from mirrored.training.files.keras_weights import load_state, writer_of_state
from mirrored.training.files.tensor_file import load_tensors, save_tensors, write_file
from mirrored.training.files.tensor_tree import check_same_file, named_weights, opened
from mirrored.training.files.zip_members import Members
from mirrored.variables.variable import assign_together

if TYPE_CHECKING:
    from mirrored.training.model import Model
else:
    Model = late_type("mirrored.training.model", "Model")

# What users of Keras, TensorFlow, NumPy and PyTorch give to files of weights.
_OTHER_FORMATS = frozenset(
    (".ckpt", ".h5", ".hdf5", ".json", ".keras", ".npy", ".npz", ".pb", ".pkl", ".pt", ".pth")
)
KERAS_ENDING = ".weights.h5"
MODEL_ENDING = ".keras"
WEIGHTS = "model.weights.h5"  # In the file of a whole model.


def save_weights(
    model: "Model", filepath: PathLike, overwrite: bool = True, max_shard_size: float | None = None
) -> None:
    """Write a model's weights; `Model.save_weights` says what the arguments mean.

    Args:
        model: The model.
        filepath: The file.
        overwrite: Whether an existing file is replaced.
        max_shard_size: None: there is one file.

    Raises:
        TypeError: As for `Model.save_weights`, and so the others.
        ValueError: The model has no weights yet, or the name is that of another format.
        FileExistsError: The file exists, and `overwrite` is False.
        ImportError: It is Keras', and h5py is not installed.
        OSError: The file cannot be written.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input((4,)), mr.layers.Dense(2)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "digits.weights.h5")
        ...     mr.keras.saving.save_weights(model, path)
        ...     mr.keras.saving.load_weights(model, path)
    """
    path = _checked_path(filepath, "written to")
    if path.endswith(KERAS_ENDING):
        _extras.h5py()  # Before there is a file.
    if max_shard_size is not None:
        raise ValueError(
            "Weights are written to one file, whatever their size. Received: "
            f"max_shard_size={max_shard_size!r}. Leave it out."
        )
    _check_built(model, "saving")
    with alone_unless(model.distribute_strategy.is_shared):
        check_overwrite(path, overwrite)
        if not path.endswith(KERAS_ENDING):
            save_tensors(path, named_weights(walk(model)))
            return
        write_state = writer_of_state(model, with_streams=False)

        def write() -> None:
            with saving(path, "weights file") as file, writing(file) as group_of:
                write_state(group_of)

        write_file(path, "weights file", write)


def load_weights(
    model: "Model",
    filepath: PathLike,
    skip_mismatch: bool = False,
    *,
    objects_to_skip: Collection[Any] | None = None,
    by_name: bool | None = None,
) -> None:
    """Set a model's weights; `Model.load_weights` says what the arguments mean.

    Args:
        model: The model.
        filepath: The file.
        skip_mismatch: Whether layers that do not fit stay as they are, with a warning.
        objects_to_skip: Layers that stay as they are.
        by_name: None: layers are found by their places.

    Raises:
        TypeError: As for `Model.load_weights`, and so the others.
        ValueError: The model has no weights yet, the name is that of another format, or
            `by_name` is given.
        FileNotFoundError: There is no such file.
        ImportError: The file is Keras', and h5py is not installed.
        WorkerError: Another worker has another file there, or none.
        WeightsFileError: It is truncated, corrupt, of another model or format. No weight was
            changed.
    """
    if by_name is not None:
        raise ValueError(
            "`by_name` only supports loading legacy '.h5' or '.hdf5' files, which are not read "
            f"here. Received: {filepath}"
        )
    path = _checked_path(filepath, "read from")
    _check_built(model, "loading weights into")
    if trains_together():
        check_same_file(path, [model], "loading weights")
    if path.endswith((KERAS_ENDING, MODEL_ENDING)):
        _extras.h5py()
        with _state_in(path) as reader:
            load_state(
                model, reader, skip_mismatch=skip_mismatch, skipped_objects=objects_to_skip or ()
            )
        return
    if skip_mismatch or objects_to_skip is not None:
        raise ValueError(
            "`skip_mismatch` and `objects_to_skip` are for files whose names end in "
            f"{KERAS_ENDING!r} or {MODEL_ENDING!r}. Received: filepath={path!r}."
        )
    _load_tensors(model, path)


@contextlib.contextmanager
def _state_in(path: str) -> Iterator[Hdf5Reader]:
    """Open the state in a file of weights, or in that of a whole model."""
    whole = path.endswith(MODEL_ENDING)
    kind = "model file" if whole else "weights file"
    noun = f"The {kind} {path!r}"
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(opened(path, kind))
        state = state_of(Members(file, noun), noun) if whole else reading(file, noun)
        yield stack.enter_context(state)


def _load_tensors(model: "Model", path: str) -> None:
    named = named_weights(walk(model))
    expected = {key: (variable.shape, variable.dtype) for key, variable in named.items()}
    try:
        with contextlib.closing(load_tensors(path, expected)) as loaded:
            assign_together((named[key], array) for key, array in loaded)
    except WeightsFileError as error:
        unused = [layer for layer in walk(model) if not layer.built]
        if unused:
            error.add_note(
                f"These layers of the model have no weights yet, since no call used them: {unused}."
            )
        raise


def check_overwrite(path: str, overwrite: bool) -> None:
    """Raise FileExistsError where a file is there that is not to be replaced.

    Args:
        path: The file.
        overwrite: Whether it is replaced. Keras asks on the terminal where it is not.
    """
    if not overwrite and of_writer(os.path.exists(path), "whether a file is there"):
        raise FileExistsError(f"A file exists at {path!r}. Pass overwrite=True to replace it.")


@contextlib.contextmanager
def state_of(members: Members, noun: str) -> Iterator[Hdf5Reader]:
    """Open the state in an archive.

    Args:
        members: The archive's members.
        noun: What messages call it.

    Raises:
        WeightsFileError: There is none, or it is spoilt.
    """
    if WEIGHTS not in members:
        raise WeightsFileError(
            f"{noun} has no {WEIGHTS!r}. Received: a file with {members.names()[:5]}. Save the "
            "model with Keras 3, in its usual format of weights."
        )
    with members.opened(WEIGHTS) as file, reading(file, noun) as reader:
        yield reader


def _check_built(model: "Model", doing: str) -> None:
    missing = unbuilt(model)
    if missing:
        raise ValueError(
            f"You are {doing} a model that has not yet been built, {model.name!r}. Try building "
            "the model first by calling it on some data or by using `build()`. Received: a model "
            f"without the weights of {missing}."
        )


def _checked_path(filepath: PathLike, done: str) -> str:
    """Return the path of a weights file, unless its name says that it is of another format."""
    path = as_path(filepath, "weights file")
    ending = os.path.splitext(path)[1]
    read = (KERAS_ENDING, MODEL_ENDING) if done == "read from" else KERAS_ENDING
    if ending.lower() in _OTHER_FORMATS and not path.endswith(read):
        raise ValueError(
            f"Weights are {done} safetensors files and Keras' {KERAS_ENDING!r}, and the ending "
            f"{ending!r} names another format. Received: filepath={path!r}. Use a name that ends "
            f"in '.safetensors' or {KERAS_ENDING!r}."
        )
    return path


explain_functions(__name__)
