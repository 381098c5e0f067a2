"""Checkpoints: the whole state of training in one file, and series of such files in a folder.

A run that is restored from one goes on with the bits of one that never stopped. The order of a
folder's checkpoints is in the files themselves: numbers and clocks may go back.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mirrored import devices
from mirrored._absent import absent_members
from mirrored._arguments import explained
from mirrored._files import (
    as_before,
    as_path,
    remove_leftovers,
    settle,
    trains_together,
    wait_for_save,
    writes_to,
)
from mirrored._logging import logger
from mirrored._numbers import as_integer
from mirrored._tracebacks import shortened
from mirrored._types import PathLike
from mirrored.backends.fingerprint import fingerprint, tell_differences
from mirrored.devices.device_registry import registry
from mirrored.distribute import DistributedVariable, has_strategy, in_cross_replica_context
from mirrored.errors import DevicesResetError, WeightsFileError
from mirrored.ops import int64
from mirrored.ops.hooks import active_recorder, only, recorded_by
from mirrored.program.variable_access import variable_writes
from mirrored.training.files.checkpoint_state import (
    ROOT,
    AutoTrackable,
    check_kinds,
    collect,
    find_parts,
)
from mirrored.training.files.restoration import ALIASES, Restoration, few
from mirrored.training.files.tensor_file import (
    CHECKPOINT,
    HostCopies,
    open_tensors,
    read_table,
    save_tensors,
)
from mirrored.training.files.tensor_tree import check_same_file, damaged
from mirrored.variables import DeviceVariable, Module


class CheckpointStatus:
    """What a file had for the objects of a checkpoint.

    A file may have more than these objects need, or nothing of one of them, which then stays as
    it was. Values that are left over are for variables that are still to be made: they get them
    when they are made. Where nobody asks about the rest, a warning tells in the end.

    Args:
        restoration: The restoration; None where nothing was restored.
    """

    def __init__(self, restoration: Restoration | None) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> "CheckpointStatus":
        """Check that every object got its state, and that the file has nothing else.

        Raises:
            AssertionError: It is not so, or there was no file.
        """
        self.assert_existing_objects_matched()
        restoration = self._of_file()
        if restoration.unused:
            raise AssertionError(
                f"Unresolved object in checkpoint {restoration.name!r}: "
                f"{few(restoration.unused)}. Create the checkpoint with the objects that it was "
                "saved with, or call `assert_existing_objects_matched()`, which allows unused "
                "values."
            )
        return self

    def assert_existing_objects_matched(self) -> "CheckpointStatus":
        """Check that every object got its state; the file may have more.

        Raises:
            AssertionError: It is not so, or there was no file.
        """
        restoration = self._of_file()
        restoration.go_on()
        missing = restoration.missing
        if missing:
            raise AssertionError(
                f"Found {len(missing)} Python objects that were not bound to checkpointed values, "
                "likely due to changes in the Python program. Received: the checkpoint "
                f"{restoration.name!r}, which has no values for {few(missing)}. Create the "
                "checkpoint with the objects that it was saved with, or call `expect_partial()`."
            )
        restoration.silence()
        return self

    def assert_nontrivial_match(self) -> "CheckpointStatus":
        """Check that an object got its state: the counter of saves, or another.

        Raises:
            AssertionError: None did, or there was no file.
        """
        restoration = self._of_file()
        restoration.go_on()
        if not restoration.objects:
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means "
                "that the checkpoint does not match the Python program. Received: the checkpoint "
                f"{restoration.name!r}, which has {few(restoration.unused)}."
            )
        return self

    def expect_partial(self) -> "CheckpointStatus":
        """Give no warning of what the file lacks or has beside."""
        if self._restoration is not None:
            self._restoration.silence()
        return self

    def _of_file(self) -> Restoration:
        if self._restoration is None:
            raise AssertionError(
                "No checkpoint specified (save_path=None); nothing is being restored."
            )
        return self._restoration


@explained
@absent_members("tf.train.Checkpoint")
class Checkpoint(AutoTrackable):
    """The state of models, optimizers, variables and metrics, and of random streams.

    What is given, and what is assigned to attributes later, goes into one safetensors file that is
    there wholly or not at all. Names in it follow from where things are, so it can be restored on
    any number of replicas, in or out of a strategy's scope. A compiled model brings its optimizer
    with it. Variables that are brought together on reads are saved as what they are together, and
    restored as by `assign`. What has two names is saved once and restored by either. While a file
    is written, assignments of other threads wait.

    After a checkpoint between two calls of `fit`, or between two steps of a custom loop, a run
    continues with the same bits on the same number of replicas. `fit` draws a new order of the
    examples in each call, so two calls are not the same run as one call. A dataset that is
    kept over a restore goes on with its own orders and random numbers; datasets that are created
    for each epoch have those that they would have had.

    An iterator over a dataset is saved as its position, and goes on from there also in another
    program that makes the dataset by the same methods: the elements before it are made again when
    the next one is taken. Those of a dataset with `from_generator` cannot be saved.

    Args:
        root: A module, whose attributes have their own names in the file, as if each were given;
            or another object, which is called that.
        **values: Models, layers, modules, optimizers, variables, metrics, seed generators,
            iterators over datasets and other checkpoints, also in lists, tuples and dicts. Of a
            module's attributes those count that have a state.

    Attributes:
        save_counter: How often `save` was called, an int64 variable.

    Raises:
        ValueError: A value has no state, such as a number, or a name is taken by a method or by
            an attribute of `root`.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(2,)), mr.layers.Dense(1)])
        >>> model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse")
        >>> checkpoint = mr.train.Checkpoint(model=model, epoch=mr.Variable(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = checkpoint.save(os.path.join(folder, "ckpt"))
        ...     _ = model.fit([[1.0, 2.0]], [1.0], verbose=0)
        ...     _ = checkpoint.restore(path).assert_consumed()
        >>> os.path.basename(path), int(model.optimizer.iterations)
        ('ckpt-1', 0)
    """

    if TYPE_CHECKING:  # The values are attributes.

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, root: Any = None, **values: Any) -> None:
        for name, value in values.items():
            if name.startswith("_") or hasattr(type(self), name) or name == "save_counter":
                raise ValueError(
                    "Each value of a checkpoint becomes an attribute of it. Its name must not "
                    f"begin with an underscore, nor be an existing attribute. Received: {name!r}."
                )
            if isinstance(root, Module) and vars(root).get(name, value) is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if root.{name} "
                    "already exists. Choose another name."
                )
        if root is not None:
            values[ROOT] = root
        check_kinds(values)
        vars(self).update(values)
        with devices.device("CPU:0"):  # It is the program's, not a strategy's.
            self.save_counter = DeviceVariable(0, False, "save_counter", int64)
        self._copies = HostCopies()

    def save(
        self,
        file_prefix: PathLike,
        *,
        number: int | None = None,
        asynchronous: bool = False,
    ) -> str:
        """Write the next checkpoint of a series, and return its path.

        With `asynchronous` the call returns when all values are copied, to memory of the host that
        the first such call allocates and later ones use again. A thread writes the file, which is
        there after `sync`. If it cannot be written, the files before stay, the counter goes back,
        and one call raises the error, with the path in it: the next step of `fit`,
        `train_on_batch`, `apply_gradients` or call of a recorded function by the same thread, the
        next `save`, `write`, `restore` or `sync` of any checkpoint, or the end of `fit`. Python
        prints it where the program ends before. Several workers agree on it in `save`, `write`,
        `restore`, `sync` and at the end of `fit`.

        Args:
            file_prefix: What its path begins with; a hyphen and the number follow. Folders are
                made.
            number: The number; None counts 1, 2, ...
            asynchronous: Whether a thread writes the file while the program goes on. A save that
                is being written is waited for.

        Raises:
            TypeError: The prefix is no path.
            ValueError: A model is not built, a value has no state, the number is no integer of 0
                or more, or the prefix ends with a folder.
            RuntimeError: The call is made inside a replica or a recorded function.
            OSError: The file cannot be written. The counter is as it was.
        """
        return self._save(file_prefix, number, asynchronous)

    def _save(
        self,
        file_prefix: PathLike,
        number: int | None,
        asynchronous: bool,
        after: Callable[[str], object] = lambda path: None,
    ) -> str:
        _check_context("saved")
        prefix = _checked_prefix(file_prefix)
        with variable_writes:  # Two threads would count to the same number.
            settle()
            before = int(self.save_counter)
            path = f"{prefix}-{_checked_number(number, before + 1)}"
            earlier = saved_in(os.path.dirname(path))
            sequence = earlier[-1].sequence + 1 if earlier else 1
            self.save_counter.assign(before + 1)

            def undo() -> None:
                with suppress(DevicesResetError), recorded_by(None), only(), variable_writes:
                    if int(self.save_counter) == before + 1:
                        self.save_counter.assign(before)

            try:
                metadata = {SEQUENCE: str(sequence)}
                self._write(path, metadata, asynchronous, lambda: after(path), undo)
            except BaseException:
                undo()
                raise
        return path

    @shortened
    def write(self, file_prefix: PathLike, *, asynchronous: bool = False) -> str:
        """Write a checkpoint to a file of this name, and return its path; errors as for `save`.

        It is not counted, and `latest_checkpoint` does not find it.

        Args:
            file_prefix: The file. Folders are made.
            asynchronous: As for `save`.
        """
        _check_context("saved")
        name = as_path(file_prefix, CHECKPOINT.noun)
        self._write(name, {}, asynchronous)
        return name

    @shortened
    def sync(self) -> None:
        """Wait for an asynchronous save: its file is there, or its error is raised.

        Raises:
            OSError: The file cannot be written, if no earlier call has raised that.
        """
        settle()

    @shortened
    def restore(self, save_path: PathLike | None) -> CheckpointStatus:
        """Set all state from a file that `save` or `write` wrote, on every replica.

        All of it is checked before anything changes. The global seed, too, goes on from where it
        was. Values of variables that are not there yet, such as those of attributes that a module
        gets later or of a model that is not built, are restored when the variables are made.
        Where `mirrored fingerprint` is not what it was when the file was saved, so that training
        may go on with other bits, the log says what differs.

        Args:
            save_path: The file; None, as of a folder without checkpoints, changes nothing.

        Returns:
            What can be asked whether the file and these objects had all of each other.

        Raises:
            TypeError: `save_path` is no path.
            FileNotFoundError: There is no such file.
            ValueError: An optimizer belongs to another strategy.
            WeightsFileError: The file is truncated, corrupt, no checkpoint, or of a model of
                other layers.
            ResourceExhaustedError: A device has no room for the new values beside the old ones.
            RuntimeError: The call is made inside a replica or a recorded function.
            WorkerError: Another worker has another file there, or none.
        """
        settle()
        if trains_together():
            check_same_file(save_path, self.held().values(), "restoring a checkpoint")
        if save_path is None:
            return CheckpointStatus(None)
        _check_context("restored")
        check_kinds(self.held())
        with ExitStack() as opened:
            file = opened.enter_context(open_tensors(save_path, CHECKPOINT))
            restoration = Restoration(self, file, opened.pop_all())
        before = read_table(file.noun, file.texts.get(FINGERPRINT, "{}"), "fingerprint")
        restoration.go_on()
        here = fingerprint(registry.visible_hardware())
        variables = (v for v in restoration.objects if isinstance(v, DistributedVariable))
        fixed = any(variable.strategy.lanes for variable in variables)
        tell_differences(f"{save_path!r}", before, here, any_threads=fixed)
        return CheckpointStatus(restoration)

    @shortened
    def read(self, save_path: PathLike) -> CheckpointStatus:
        """Do as `restore` does.

        Args:
            save_path: The file.
        """
        return self.restore(save_path)

    def _write(
        self,
        path: str,
        metadata: dict[str, str],
        asynchronous: bool,
        after: Callable[[], object] = lambda: None,
        undo: Callable[[], object] = lambda: None,
        arrays: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        # No tape that is open has anything to learn from it; and variables are read one by one, as
        # they are written, between two writes of other threads.
        in_thread = self._copies.in_thread(undo) if asynchronous else nullcontext()
        with only(), variable_writes, in_thread:
            settle()
            tensors, aliases = collect(find_parts(self.held()))
            facts = fingerprint(registry.visible_hardware())
            metadata = {**metadata, FINGERPRINT: json.dumps(facts)}
            if aliases:
                metadata[ALIASES] = json.dumps(aliases)
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            tensors |= arrays or {}
            save_tensors(path, tensors, metadata, kind=CHECKPOINT, after=after)


def _checked_prefix(file_prefix: PathLike) -> str:
    prefix = as_path(file_prefix, CHECKPOINT.noun)
    if not os.path.basename(prefix):
        raise ValueError(
            "The prefix must end with the first part of the checkpoints' file names. Received: "
            f"{prefix!r}. Add it to the folder, as in {os.path.join(prefix, 'ckpt')!r}."
        )
    return prefix


def _checked_number(number: Any, following: int) -> int:
    chosen = following if number is None else as_integer(number)
    if chosen is None or chosen < 0:
        raise ValueError(
            "The number of a checkpoint must be an integer of 0 or more, or None, which uses the "
            f"next number. Received: {number!r}."
        )
    return chosen


def _check_context(done: str) -> None:
    if has_strategy() and not in_cross_replica_context():
        raise RuntimeError(
            f"A checkpoint is {done} in the cross-replica context. Received: a call inside a "
            "replica, from the function that strategy.run calls. Make the call outside it."
        )
    if active_recorder() is not None:
        raise RuntimeError(
            f"A checkpoint is {done} by Python, and a recorded function does not run Python. "
            "Received: a call while a function was being recorded. Make the call outside "
            "mr.function."
        )


FINGERPRINT = "fingerprint"  # In the metadata: what bits depended on where it was saved.
SEQUENCE = "sequence"  # In the metadata: how many were saved in the folder before, and one.
_SEQUENCE = re.compile(r"[0-9]{1,18}")
_NUMBERED = re.compile(r"(?P<prefix>.+)-(?P<number>[0-9]+)", re.DOTALL)


class Saved(NamedTuple):
    """A file that `Checkpoint.save` wrote; later ones are greater.

    Attributes:
        sequence: Its place among those of its folder.
        number: The number in its name.
        path: Its path.
    """

    sequence: int
    number: int
    path: str


def saved_in(directory: PathLike, prefix: str | None = None) -> list[Saved]:
    """Return the checkpoints in a folder in the order in which they were saved."""
    return _checkpoints_in(directory, prefix)[0]


def latest_in(directory: PathLike, prefix: str | None = None) -> str | None:
    """Return the path of the one that was saved last, and warn of files that cannot be read.

    An asynchronous save of this process is waited for.

    Returns:
        The path; None if there is none.
    """
    wait_for_save()
    checkpoints, errors = _checkpoints_in(directory, prefix)
    for error in errors:
        logger.warning("Skipped a file in a folder of checkpoints. %s", error)
    return checkpoints[-1].path if checkpoints else None


@explained
def latest_checkpoint(checkpoint_dir: PathLike) -> str | None:
    """Return the path of the checkpoint in a folder that was saved last; None if there is none.

    Args:
        checkpoint_dir: The folder, which need not be there. `Checkpoint.save` wrote the files;
            those of `Checkpoint.write` do not count.

    Raises:
        TypeError: `checkpoint_dir` is no path.

    Example:
        >>> import tempfile
        >>> import mirrored as mr
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
        ...     path = checkpoint.save(folder + "/ckpt")
        ...     mr.train.latest_checkpoint(folder) == path
        True
    """
    return as_before(lambda: latest_in(checkpoint_dir))


def is_of_series(name: str, prefix: str | None) -> bool:
    """Return whether a file's name is one that `Checkpoint.save` gives."""
    parts = _NUMBERED.fullmatch(name)
    return parts is not None and prefix in (None, parts["prefix"])


def _checkpoints_in(directory: PathLike, prefix: str | None) -> tuple[list[Saved], list[Exception]]:
    """Return the checkpoints in their order, and why other files with such names are none."""
    folder = as_path(directory, "folder of checkpoints")
    try:
        names = sorted(os.listdir(folder or os.curdir))
    except FileNotFoundError:
        return [], []
    checkpoints: list[Saved] = []
    errors: list[Exception] = []
    for name in names:
        path = os.path.join(folder, name)
        if not is_of_series(name, prefix) or not os.path.isfile(path):
            continue
        try:
            sequence = _sequence_of(path)
        except FileNotFoundError:  # Another manager has deleted it meanwhile.
            continue
        except (OSError, WeightsFileError) as error:
            errors.append(error)
            continue
        if sequence is not None:  # Otherwise `Checkpoint.write` wrote it.
            checkpoints.append(Saved(sequence, int(name.rpartition("-")[2]), path))
    return sorted(checkpoints), errors


def _sequence_of(path: str) -> int | None:
    """Return which of its folder's checkpoints a file is, after checking its header alone."""
    with open_tensors(path, CHECKPOINT) as file:
        text = file.texts.get(SEQUENCE)
    if text is not None and not _SEQUENCE.fullmatch(text):
        problem = f"its place among others is a number. Received: {text!r:.100}"
        raise damaged(file.noun, f"corrupt: {problem}")
    return None if text is None else int(text)


@explained
@absent_members("tf.train.CheckpointManager")
class CheckpointManager:
    """Saves a series of checkpoints in a folder, and deletes the oldest ones.

    Args:
        checkpoint: What is saved and restored.
        directory: The folder, made with the first checkpoint.
        max_to_keep: How many files to keep; None keeps all.
        checkpoint_name: What the files' names begin with.

    Raises:
        TypeError: `checkpoint` is no Checkpoint, or `directory` no path.
        ValueError: `max_to_keep` is neither None nor an integer above 0, or `checkpoint_name` is
            no file's name.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     manager = mr.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        ...     for _ in range(3):
        ...         _ = manager.save()
        ...     [os.path.basename(path) for path in manager.checkpoints]
        ['ckpt-2', 'ckpt-3']
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: PathLike,
        max_to_keep: int | None,
        *,
        checkpoint_name: str = "ckpt",
    ) -> None:
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError(
                "`checkpoint` must be a mr.train.Checkpoint of the objects to save, as in "
                f"mr.train.Checkpoint(model=model). Received: {checkpoint!r}."
            )
        keep = None if max_to_keep is None else as_integer(max_to_keep)
        if max_to_keep is not None and (keep is None or keep < 1):
            raise ValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep!r}."
            )
        self._checkpoint = checkpoint
        name: Any = checkpoint_name
        if not isinstance(name, str) or not name or os.path.basename(name) != name or "\0" in name:
            raise ValueError(
                "`checkpoint_name` must be the first part of the file names, without folders. "
                f"Received: {checkpoint_name!r}. Put folders into `directory`."
            )
        self._directory = as_path(directory, "folder of checkpoints")
        self._keep = keep
        self._name = checkpoint_name

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the files of this series that are there, the oldest first."""
        wait_for_save()
        return self._there()

    def _there(self) -> list[str]:
        return [checkpoint.path for checkpoint in saved_in(self._directory, self._name)]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the file of this series that was saved last; None if there is none."""
        return as_before(lambda: latest_in(self._directory, self._name))

    def save(self, checkpoint_number: int | None = None, *, asynchronous: bool = False) -> str:
        """Write a checkpoint, delete those that are too many, and return its path.

        What killed programs have left of this series' temporary files is deleted too. Where
        something cannot be deleted, a warning tells: the checkpoint is there.

        Args:
            checkpoint_number: The number in its name, an integer or a variable; None counts.
            asynchronous: As for `Checkpoint.save`. Files are deleted when the new one is there.

        Raises:
            OSError: As for `Checkpoint.save`, and so for its other errors. Nothing is deleted.
        """
        prefix = os.path.join(self._directory, self._name)
        own = writes_to(self._directory)
        after = self._delete_old if own else lambda path: None
        return self._checkpoint._save(prefix, checkpoint_number, asynchronous, after)

    def sync(self) -> None:
        """Wait for an asynchronous save, as `Checkpoint.sync` does."""
        self._checkpoint.sync()

    def _delete_old(self, path: str) -> None:
        try:
            for old in [] if self._keep is None else self._there()[: -self._keep]:
                with suppress(FileNotFoundError):  # Another manager was here.
                    os.unlink(old)
            remove_leftovers(self._directory, lambda name: is_of_series(name, self._name))
        except OSError as error:
            logger.warning(
                "The checkpoint %r was written, but old files could not be removed: %s", path, error
            )

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint, if there is one, and return its path; errors as there."""
        latest = self.latest_checkpoint
        self._checkpoint.restore(latest)
        return latest
