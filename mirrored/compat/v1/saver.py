"""TensorFlow 1's `tf.train.Saver`: the values of a session's variables as one file.

Files are this library's own: those that TensorFlow wrote are not read.
"""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mirrored.compat.v1.groups import global_variables
from mirrored.compat.v1.variables import Variable
from mirrored.errors import InvalidArgumentError
from mirrored.training.files.tensor_file import Kind, open_tensors, save_tensors

_VARIABLES = Kind("variables", "checkpoint", "`tf.train.Saver.save`", "graph")
_ALL = re.compile(r'^all_model_checkpoint_paths: "(.*)"$', re.MULTILINE)
_LATEST = re.compile(r'^model_checkpoint_path: "(.*)"$', re.MULTILINE)


class Saver:
    """Saves and restores the values of variables.

    Args:
        var_list: The variables, or a dict of them by the names that files have; None: all of the
            default graph.
        reshape: Not provided, like the one below.
        sharded: Not provided.
        max_to_keep: How many files stay; None or 0: all.
        keep_checkpoint_every_n_hours: After how many hours one more stays for good.
        name: Accepted for compatibility, like the next one.
        restore_sequentially: Accepted for compatibility.
        saver_def: Not provided, like the next one.
        builder: Not provided.
        defer_build: Accepted for compatibility.
        allow_empty: Whether there may be no variables.
        write_version: Accepted for compatibility: files are this library's own.
        pad_step_number: Whether numbers of steps have eight digits in names of files.
        save_relative_paths: Accepted for compatibility: they always are.
        filename: Not provided.

    Raises:
        TypeError: What is to be saved is no variable.
        ValueError: There are no variables, two have one name, or what is not provided is asked for.

    Example:
        >>> import tempfile
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     v = tf.Variable(3.0, name="v")
        ...     session.run(v.initializer)
        ...     saver = tf.train.Saver()
        ...     path = saver.save(session, tempfile.mkdtemp() + "/model.ckpt", global_step=7)
        ...     session.run(v.assign(5.0).op)
        ...     saver.restore(session, path)
        ...     path.rpartition("/")[2], float(session.run(v))
        ('model.ckpt-7', 3.0)
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: Any = None,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if reshape or sharded:
            raise ValueError("`reshape` and `sharded` are not provided: a save writes one file.")
        if not (saver_def is builder is filename is None):
            raise ValueError(
                "`saver_def`, `builder` and `filename` are not provided. Leave them out."
            )
        to_save = global_variables() if var_list is None else var_list
        named = _by_names(to_save)
        if not named and not allow_empty:
            raise ValueError("No variables to save")
        self._variables: dict[str, Variable] = dict(named)
        self._keep = max_to_keep
        self._digits = 8 if pad_step_number else 1
        self._hours = keep_checkpoint_every_n_hours
        self._next_to_stay = time.time() + self._hours * 3600.0
        self._times: dict[str, float] = {}  # By the paths of the files that are kept.

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that were written and kept, the latest last."""
        return list(self._times)

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str:
        """Write a file, wholly or not at all, and return its name.

        Args:
            sess: The session that has the values.
            save_path: The file's name.
            global_step: A number that the name ends with, or the variable that has it.
            latest_filename: The file beside it that names the latest one; None: "checkpoint".
            meta_graph_suffix: Accepted for compatibility: graphs are not written.
            write_meta_graph: Accepted for compatibility.
            write_state: Whether that file is written.
            strip_default_attrs: Accepted for compatibility, like the next one.
            save_debug_info: Accepted for compatibility.

        Raises:
            FailedPreconditionError: A variable has no value.
            ValueError: The folder is not there.
            OSError: The file cannot be written.
        """
        path = str(save_path)
        if not Path(path).parent.is_dir():
            raise ValueError(f"Parent directory of {path} doesn't exist, can't save.")
        values = sess.run(self._variables)
        if global_step is not None:
            step = sess.run(global_step) if isinstance(global_step, Variable) else global_step
            path = f"{path}-{int(step):0{self._digits}}"
        save_tensors(
            path, {name: np.asarray(array) for name, array in values.items()}, kind=_VARIABLES
        )
        self._times.pop(path, None)  # What is written again is the latest one.
        self._times[path] = time.time()
        paths = list(self._times)
        gone = paths[: -self._keep] if self._keep else []
        paths = paths[len(gone) :]
        if write_state:
            names = [Path(file).name for file in (path, *paths)]
            keys = ["model_checkpoint_path", *["all_model_checkpoint_paths"] * len(paths)]
            lines = [f'{key}: "{name}"\n' for key, name in zip(keys, names, strict=True)]
            Path(path).with_name(latest_filename or "checkpoint").write_text("".join(lines))
        for other in gone:
            self._remove(other)
        return path

    def _remove(self, path: str) -> None:
        """Remove a file, unless it is time for one to stay."""
        if self._times.pop(path) > self._next_to_stay:
            self._next_to_stay += self._hours * 3600.0
        else:
            Path(path).unlink(missing_ok=True)

    def restore(self, sess: Any, save_path: str) -> None:
        """Restore the variables of a session from a checkpoint.

        Args:
            sess: The session.
            save_path: The file's name, as `save` returned it.

        Raises:
            ValueError: There is no such file, or it lacks a variable: nothing is changed then.
            InvalidArgumentError: A variable has another shape or dtype there.
            WeightsFileError: The file is none of these, or is corrupt.
        """
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        if not Path(save_path).is_file():
            raise ValueError(f"The passed save_path is not a valid checkpoint: {save_path}")
        with open_tensors(save_path, _VARIABLES) as file:
            for name, variable in self._variables.items():
                if name not in file.specs:
                    raise ValueError(f"Key {name} not found in checkpoint {save_path}")
                shape, dtype = file.specs[name]
                if shape != tuple(variable._shape) or dtype != variable._dtype.name:
                    raise InvalidArgumentError(
                        "Assign requires shapes and dtypes of both tensors to match. lhs shape= "
                        f"{list(variable._shape)} {variable._dtype.name} rhs shape= {list(shape)} "
                        f"{dtype} for the variable {name}."
                    )
            values = dict(file.read(self._variables))
        sess.set_values({self._variables[name]: value for name, value in values.items()})


def _by_names(to_save: Any) -> Mapping[str, Variable]:
    """Return what is to be saved by the names that files have."""
    if not isinstance(to_save, Mapping | list | tuple | set):
        raise TypeError(f"Variables to save should be passed in a dict or a list. Got {to_save}")
    variables = list(to_save.values()) if isinstance(to_save, Mapping) else list(to_save)
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(f"Variable to save is not a Variable: {variable}")
    if isinstance(to_save, Mapping):
        return to_save
    named: dict[str, Variable] = {}
    for variable in variables:
        if variable.op.name in named:
            raise ValueError(f"At least two variables have the same name: {variable.op.name}")
        named[variable.op.name] = variable
    return named


class CheckpointState(NamedTuple):
    """The contents of the file that lists the checkpoints.

    Attributes:
        model_checkpoint_path: The one that was written last.
        all_model_checkpoint_paths: Those that stay, the latest last.
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]


def get_checkpoint_state(
    checkpoint_dir: str, latest_filename: str | None = None
) -> CheckpointState | None:
    """Return the checkpoints of a folder; None if there are none.

    Args:
        checkpoint_dir: The folder.
        latest_filename: The file in it that names them; None: "checkpoint".
    """
    state = Path(checkpoint_dir) / (latest_filename or "checkpoint")
    text = state.read_text() if state.is_file() else ""
    match = _LATEST.search(text)
    if match is None:
        return None
    others = [str(state.with_name(path)) for path in _ALL.findall(text)]
    return CheckpointState(str(state.with_name(match[1])), others)


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """Return the latest checkpoint of a folder; None if there is none.

    Args:
        checkpoint_dir: The folder.
        latest_filename: The file in it that names the latest one; None: "checkpoint".
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    path = None if state is None else Path(state.model_checkpoint_path)
    return str(path) if path is not None and path.is_file() else None


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Return whether a checkpoint exists."""
    return Path(checkpoint_prefix).is_file()


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """Return the names and shapes of the variables in a checkpoint, sorted by name.

    Args:
        ckpt_dir_or_file: The file's name, or a folder, whose latest file it is.

    Raises:
        ValueError: There is none.
    """
    with open_tensors(_file(ckpt_dir_or_file), _VARIABLES) as file:
        return [(name, list(shape)) for name, (shape, _) in sorted(file.specs.items())]


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """Return the value of a variable in a checkpoint, as an array.

    Args:
        ckpt_dir_or_file: The file's name, or a folder, whose latest file it is.
        name: The variable's name.

    Raises:
        ValueError: There is no file, or it has no such variable.
    """
    path = _file(ckpt_dir_or_file)
    name = name.removesuffix(":0")
    with open_tensors(path, _VARIABLES) as file:
        if name not in file.specs:
            raise ValueError(f"Key {name} not found in checkpoint {path}")
        return dict(file.read([name]))[name]


def _file(where: str) -> str:
    path = latest_checkpoint(where) if Path(where).is_dir() else where
    if path is None or not Path(path).is_file():
        raise ValueError(
            f"Couldn't find 'checkpoint' file or checkpoints in given directory {where}"
        )
    return path
