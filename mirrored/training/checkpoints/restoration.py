"""A restoration that goes on: objects get their state from a file whenever they get variables."""

import weakref
from contextlib import ExitStack

from mirrored._logging import logger
from mirrored.distribute import get_strategy
from mirrored.distribute.context import enter
from mirrored.ops.hooks import only, recorded_by
from mirrored.training.checkpoints.restoring import Restored, match, restore
from mirrored.training.checkpoints.state import (
    GLOBAL_STATE,
    AutoTrackable,
    build_optimizers,
    find_parts,
    trackers,
)
from mirrored.training.files.tensor_file import CHECKPOINT, OpenFile, read_table
from mirrored.variables.device_variable import undone

ALIASES = "aliases"  # In the metadata: the other names of values, each with the tensor's.
_LISTED = 5


class Restoration:
    """Restores the objects of a checkpoint, now and when they get more variables.

    Where nobody has asked about it, a warning tells at its end what was left over.

    Args:
        owner: The checkpoint.
        file: The file. It stays open as long as it has values that no object has got.
        opened: What closes the file.

    Attributes:
        name: What messages call the file.
        missing: The places of objects that it has nothing of.
        unused: The names of values in it that no object has got.
    """

    def __init__(self, owner: AutoTrackable, file: OpenFile, opened: ExitStack) -> None:
        self.name = file.name
        self.missing: list[str] = []
        self.unused: list[str] = []
        self._owner = owner
        self._file = file
        self._opened = opened
        self._aliases = read_table(file.name, file.texts.get(ALIASES, "{}"), CHECKPOINT, "names")
        self._restored = Restored()
        self._is_running = False
        self._warning = weakref.finalize(self, _warn_of_rest, self.name, self.missing, self.unused)

    @property
    def objects(self) -> list[object]:
        """The variables, streams and optimizers that were restored."""
        return list(self._restored.objects.values())

    def go_on(self) -> None:
        """Restore the objects that have come, and look which ones the file has nothing of.

        A model that is being built on zeros waits for the end, since its writes are taken back.

        Raises:
            WeightsFileError: One does not fit. Nothing is restored then, now or later.
        """
        if self._is_running or undone() is not None:
            return
        self._is_running = True
        try:
            # A replica restores for all; and a function that is being recorded has no part in it.
            with enter(get_strategy(), None), recorded_by(None), only():
                self._restore()
        except BaseException:
            self.silence()
            self._listen(False)
            raise
        finally:
            self._is_running = False
        self._listen(bool(self.unused))

    def silence(self) -> None:
        """Give no warning of what is left over."""
        self._warning.detach()

    def _restore(self) -> None:
        values = self._owner.held()
        build_optimizers(values)
        parts = find_parts(values, some=True)
        matches = match(self.name, parts, self._file.specs, self._aliases, self._restored)
        first = set() if self._restored.tensors else {GLOBAL_STATE}
        if matches.used or first:
            tensors = dict(self._file.read(matches.used | first))
            restore(matches, parts, tensors, self._restored)
        self._restored.tensors |= first
        self.missing[:], self.unused[:] = matches.missing, matches.unused

    def _listen(self, more: bool) -> None:
        """Have objects notify this of their new parts; or no longer."""
        for tracker in trackers(self._owner):
            if more:
                tracker.notify = self.go_on
            elif tracker.notify == self.go_on:
                tracker.notify = None
        if not more:
            self._opened.close()


def _warn_of_rest(path: str, missing: list[str], unused: list[str]) -> None:
    if missing:
        logger.warning(
            "The checkpoint %r has nothing of %s: they stay as they are. Call `expect_partial()` "
            "on what `restore` returns if it is meant to be so.",
            path,
            few(missing),
        )
    if unused:
        logger.warning(
            "The checkpoint %r has values that nothing was restored from: %s. Call "
            "`expect_partial()` on what `restore` returns if it is meant to be so.",
            path,
            few(unused),
        )


def few(names: list[str]) -> str:
    """Return the first names, and how many more there are.

    Args:
        names: The names.
    """
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}"
