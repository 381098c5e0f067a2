"""Whole models to a file and back, in Keras 3's own format: ".keras".

Such a file is a zip archive of a configuration and of the state; a folder of the same files is one
too. Whoever made a file may have made up what it says, so no code of it runs, no module is imported
because it names one, and memory is taken for what the file has alone.
"""

import contextlib
import datetime
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from mirrored import _extras
from mirrored._arguments import explain_functions
from mirrored._files import agree, alone_unless, as_path, saving, writes_to
from mirrored._logging import logger, warn_caller
from mirrored._types import PathLike, late_type
from mirrored.errors import WeightsFileError
from mirrored.ops.hooks import within_constant_room
from mirrored.program.variable_access import Room, within_room
from mirrored.serialization.configs import (
    deserialize_keras_object,
    serialize_keras_object,
    sharing_what_is_read,
    sharing_what_is_written,
)
from mirrored.serialization.constructor_arguments import deserialized
from mirrored.training.files.hdf5_file import Groups, Hdf5Reader, reading, writing
from mirrored.training.files.keras_weights import (
    keeps_assets,
    load_assets,
    load_state,
    save_assets,
    save_state,
    writer_of_state,
)
from mirrored.training.files.tensor_file import write_file
from mirrored.training.files.tensor_tree import damaged, opened
from mirrored.training.files.weights_files import MODEL_ENDING, WEIGHTS, check_overwrite, state_of
from mirrored.training.files.zip_members import Members, written_in_place
from mirrored.training.model_state import is_model

if TYPE_CHECKING:
    from mirrored.training.model import Model
else:
    Model = late_type("mirrored.training.model", "Model")

CONFIG, METADATA = "config.json", "metadata.json"
_LEGACY = (".h5", ".hdf5")
_KERAS = "3.15.1"  # The version whose format this is.
_MOST_TEXT = 1 << 26  # Bytes of a configuration: those of large models have a few millions.
_MOST_VALUES = 1 << 22  # Of lists, dicts and what is in them: each takes more memory than text.
_BESIDE = 1 << 20  # Bytes of weights beside those in the file.
_OF_METRICS = 1 << 26  # Bytes of what no file has.
_IGNORED = ("include_optimizer", "save_format")


def save_model(
    model: "Model",
    filepath: PathLike,
    overwrite: bool = True,
    zipped: bool | None = None,
    **kwargs: Any,
) -> None:
    """Write a model, with its weights and the state of its optimizer, wholly or not at all.

    Keras reads the file, and so does `load_model`, on any number of replicas; a model that goes on
    training from it does so with the bits of one that went on at once.

    Args:
        model: The model.
        filepath: The file, whose name ends in ".keras"; a folder where `zipped` is False.
        overwrite: Whether an existing file is replaced.
        zipped: Whether it is one file, as for None; or a folder with the same files in it.
        **kwargs: `include_optimizer` and `save_format`, which change nothing, as in Keras.

    Raises:
        TypeError: `filepath` is no path, or a part of the model has no configuration.
        ValueError: The name ends in another way, or an argument is unknown.
        NotImplementedError: A subclass does not say what it is made of: define `get_config`.
        FileExistsError: The file exists, and `overwrite` is False.
        ImportError: h5py is not installed.
        OSError: The file cannot be written.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input((4,)), mr.layers.Dense(2)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "digits.keras")
        ...     mr.keras.models.save_model(model, path)
        ...     mr.keras.models.load_model(path).output_shape
        (None, 2)
    """
    path = _checked_name(filepath, zipped, kwargs)
    _extras.h5py()  # Before there is a file.
    with alone_unless(model.distribute_strategy.is_shared):
        check_overwrite(path, overwrite)
    if not model.built:
        warn_caller(
            "You are saving a model that has not yet been built. It might not contain any weights "
            "yet. Consider building the model first by calling it on some data."
        )
    texts = _texts(model)
    with alone_unless(model.distribute_strategy.is_shared):
        if zipped is False:
            _write_folder(model, path, texts)
            return
        write_state = writer_of_state(model, with_streams=True)

        def write() -> None:
            with saving(path, "model file") as file:
                _write_archive(model, file, texts, write_state)

        if keeps_assets(model, "save_assets"):  # Which is no code for another thread.
            write()
        else:
            write_file(path, "model file", write)


def load_model(
    filepath: PathLike,
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
) -> Any:
    """Return the model that `save_model`, or Keras, wrote, in the strategy of the present scope.

    Args:
        filepath: The file, whose name ends in ".keras", or the folder.
        custom_objects: Classes and functions that it may name, by these names; others it names are
            public ones, or registered by `register_keras_serializable`.
        compile: Whether the model is compiled as it was.
        safe_mode: Accepted for compatibility: code in files never runs.

    Raises:
        TypeError: `filepath` is no path, or the file names a class that there is not.
        ValueError: There is no such file, or it is of another format, or holds code.
        WeightsFileError: The file is truncated, corrupt, or does not fit the model in it.
        ImportError: h5py is not installed.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input((4,)), mr.layers.Dense(2)])
        >>> model.compile("adam", "mse")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "digits.keras"))
        ...     loaded = mr.keras.models.load_model(os.path.join(folder, "digits.keras"))
        >>> loaded.optimizer.name
        'adam'
    """
    path = _existing(filepath)
    _extras.h5py()
    noun = f"The model file {path!r}"
    options = {"custom_objects": custom_objects, "safe_mode": safe_mode}
    if os.path.isdir(path):
        with opened(os.path.join(path, CONFIG), "model file") as file:
            text = file.read(_MOST_TEXT + 1)
        config = _parsed(text, noun, compile)
        weights = os.path.join(path, WEIGHTS)
        with opened(weights, "model file") as file, reading(file, noun) as reader:
            model = _model_of(config, text, reader, os.path.getsize(weights), options)
        assets = os.path.join(path, "assets")
        if os.path.isdir(assets) and keeps_assets(model, "load_assets"):
            load_assets(model, assets)
        return model
    with opened(path, "model file") as file:
        members = Members(file, noun)
        text = members.read(CONFIG, _MOST_TEXT)
        config = _parsed(text, noun, compile)
        with state_of(members, noun) as reader:
            model = _model_of(config, text, reader, members.size(WEIGHTS), options)
        if keeps_assets(model, "load_assets"):
            with members.unpacked("assets") as folder:
                load_assets(model, folder)
    return model


# ---------------------------------------------------------------------------- saving


def _checked_name(filepath: Any, zipped: bool | None, options: dict[str, Any]) -> str:
    """Return the path of a new file, unless its name says another format."""
    path = as_path(filepath, "model file")
    unknown = [name for name in options if name not in _IGNORED]
    if unknown:
        raise ValueError(f"The following argument(s) are not supported: {unknown}")
    ends = path.endswith(MODEL_ENDING)
    if options.get("save_format"):
        if not ends:
            raise ValueError(
                "The `save_format` argument is deprecated in Keras 3. Please remove this argument "
                "and pass a file path with a `.keras` extension. Received: save_format="
                f"{options['save_format']}"
            )
        logger.warning(
            "`save_format` has no effect: the ending of the file name chooses the format."
        )
    if path.startswith("hf://"):
        raise ValueError(f"Models are saved only to files. Received: filepath={path}")
    if zipped is False:
        if ends:
            raise ValueError(
                "When using `zipped=False`, the `filepath` argument should not end in `.keras`. "
                f"Received: filepath={path}"
            )
        return path
    if path.endswith(_LEGACY):
        raise ValueError(
            "Whole models in HDF5 are Keras 2's format, which is not written here. Use a name "
            f"that ends in `.keras`; `save_weights` saves only the weights. Received: {path}"
        )
    if not ends:
        raise ValueError(
            "Invalid filepath extension for saving. Please add a `.keras` extension for the native "
            f"Keras format. Received: filepath={path}."
        )
    return path


def _texts(model: "Model") -> dict[str, bytes]:
    """Return the members of a file that are texts; parts without a configuration raise here."""
    with sharing_what_is_written():
        config = json.dumps(serialize_keras_object(model))
    date = datetime.datetime.now().strftime("%Y-%m-%d@%H:%M:%S")
    metadata = json.dumps({"keras_version": _KERAS, "date_saved": date})
    return {METADATA: metadata.encode(), CONFIG: config.encode()}


def _write_archive(
    model: "Model",
    file: IO[bytes],
    texts: Mapping[str, bytes],
    write_state: Callable[[Groups], object],
) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
        with written_in_place(archive, file, WEIGHTS) as state, writing(state) as group_of:
            write_state(group_of)
        if not keeps_assets(model, "save_assets"):
            return
        with tempfile.TemporaryDirectory() as assets:
            save_assets(model, assets)
            for folder, _, names in os.walk(assets):
                for name in names:
                    whole = os.path.join(folder, name)
                    place = os.path.join("assets", os.path.relpath(whole, assets))
                    archive.write(whole, place.replace(os.sep, "/"))


def _write_folder(model: "Model", path: str, texts: Mapping[str, bytes]) -> None:
    """Write the files of a folder, each wholly or not at all."""
    os.makedirs(path, exist_ok=True)
    with saving(os.path.join(path, WEIGHTS), "model file") as file, writing(file) as group_of:
        save_state(model, group_of, with_streams=True)
    for name, text in texts.items():
        with saving(os.path.join(path, name), "model file") as file:
            file.write(text)
    if keeps_assets(model, "save_assets"):
        if writes_to(path):
            save_assets(model, os.path.join(path, "assets"))
        agree("assets of a model")


# ---------------------------------------------------------------------------- loading


def _existing(filepath: Any) -> str:
    """Return the path of a file or folder that a model can be in."""
    path = as_path(filepath, "model file")
    if os.path.isdir(path) and os.path.exists(os.path.join(path, CONFIG)):
        return path
    if path.endswith(_LEGACY):
        raise ValueError(
            "Whole models in HDF5 are Keras 2's format, which is not read here: load the file with "
            f"Keras 3, and save it with a name that ends in `.keras`. Received: {path}"
        )
    if not path.endswith(MODEL_ENDING):
        raise ValueError(
            f"File format not supported: filepath={path}. Models are in files whose names end in "
            "`.keras`, and in folders with the same files; only TensorFlow reads a SavedModel."
        )
    if not os.path.exists(path):
        raise ValueError(
            f"File not found: filepath={path}. Please ensure the file is an accessible `.keras` "
            "zip file."
        )
    return path


def _parsed(text: bytes, noun: str, compile: bool) -> dict[str, Any]:
    """Return the configuration in a file."""
    config: Any = None
    values = sum(map(text.count, (b",", b"[", b"{")))
    with contextlib.suppress(ValueError, RecursionError):
        if len(text) <= _MOST_TEXT and values <= _MOST_VALUES:
            config = json.loads(text)
    if not isinstance(config, dict):
        problem = f"its {CONFIG!r} is no configuration of a model"
        raise damaged(noun, f"truncated, corrupt, or not written by Keras: {problem}")
    if not compile:
        config["compile_config"] = None
    return config


def _model_of(
    config: dict[str, Any], text: bytes, reader: Hdf5Reader, size: int, options: dict[str, Any]
) -> "Model":
    """Return the model of a configuration, with the state in a file of a known size."""
    room = Room(size + _BESIDE, _OF_METRICS)
    with sharing_what_is_read(), within_room(room), within_constant_room(len(text)):
        model = deserialize_keras_object(config, **options)
    if not is_model(model):
        raise WeightsFileError(f"{reader.noun} does not contain a model, but {model!r:.200}.")
    load_state(model, reader, is_new=True, late=room.late)
    return model


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the model that `Model.to_json` wrote, here or in Keras, with new weights.

    Args:
        json_string: The text.
        custom_objects: Classes and functions that it may name, by these names.

    Raises:
        ValueError: It is no JSON, or nested too deeply, or asks for large constants.
        TypeError: It names a class that there is not.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(2)])
        >>> mr.keras.models.model_from_json(model.to_json()).output_shape
        (None, 2)
    """
    try:
        config = json.loads(json_string)
    except RecursionError:
        raise ValueError("The configuration is nested too deeply.") from None
    with within_constant_room(len(json_string)):
        return deserialized(config, None, custom_objects)


explain_functions(__name__)
