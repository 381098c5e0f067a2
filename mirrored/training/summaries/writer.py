"""What writes summaries: a writer of a file of events, and which one is the default.

Both the writer and the step that summaries are of are those of the context, as in TensorFlow.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mirrored._arguments import explained
from mirrored._contexts import Within
from mirrored._extras import package
from mirrored._files import PathName, as_path

if TYPE_CHECKING:
    from mirrored.training.summaries.event_file import EventFile

_QUEUE, _SECONDS = 10, 120.0  # TensorFlow's.

current_writer: ContextVar["SummaryWriter | None"] = ContextVar(
    "mirrored_summary_writer", default=None
)
current_step: ContextVar[Any] = ContextVar("mirrored_summary_step", default=None)


@explained
class SummaryWriter:
    """What summaries are written by; `create_file_writer` and `create_noop_writer` make them.

    Args:
        file: What it writes to; None: nothing.

    Example:
        >>> import mirrored as mr
        >>> isinstance(mr.summary.create_noop_writer(), mr.summary.SummaryWriter)
        True
    """

    def __init__(self, file: "EventFile | None") -> None:
        self._file = file

    def init(self) -> None:
        """Do nothing: a writer is ready when it is made."""

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator["SummaryWriter"]:
        """Within this context write summaries by this writer; behind it they are in the file.

        Args:
            step: The step of those that have none of their own; None: that of around.

        Raises:
            RuntimeError: The writer is closed.
        """
        self._require()
        around = current_writer.get() if self._file is None else self
        with (
            Within(current_writer, around),
            Within(current_step, current_step.get() if step is None else step),
        ):
            try:
                yield self
            finally:
                self.flush()

    def set_as_default(self, step: Any = None) -> None:
        """Write summaries by this writer from now on.

        Args:
            step: The step of those that have none of their own; None: as before.

        Raises:
            RuntimeError: The writer is closed.
        """
        self._require()
        if self._file is not None:
            current_writer.set(self)
        if step is not None:
            current_step.set(step)

    def flush(self) -> None:
        """Bring what was written to the file."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Bring what was written to the file, and take no more."""
        if self._file is not None:
            self._file.close()

    def add(
        self, step: int, tag: str, array: NDArray[Any], plugin: str, description: str | None
    ) -> None:
        """Write a summary.

        Args:
            step: Its step.
            tag: What it is called.
            array: The value: float32, float64, or bytes as objects.
            plugin: Which part of TensorBoard shows it.
            description: What that says of it.

        Raises:
            RuntimeError: The writer is closed.
        """
        self._require()
        if self._file is not None:
            self._file.add(step, tag, array, plugin, description)

    def write(self, **fields: Any) -> None:
        """Write an event.

        Args:
            **fields: The fields of its message but for the time.

        Raises:
            RuntimeError: The writer is closed.
        """
        self._require()
        if self._file is not None:
            self._file.write(**fields)

    def _require(self) -> None:
        if self._file is not None and self._file.closed:
            raise RuntimeError(f"SummaryWriter of {self._file.path!r} is already closed")


@explained
def create_file_writer(
    logdir: PathName,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """Return a writer of a new file of events, which TensorBoard shows.

    The package tensorboardX writes them, and is imported here.

    Args:
        logdir: The folder; it is made.
        max_queue: After how many summaries they are in the file; 10 for None.
        flush_millis: After how many milliseconds they are there at the latest, when another one
            comes; two minutes for None.
        filename_suffix: What the file's name ends with; ".v2" for None.
        name: Accepted for compatibility.

    Raises:
        ImportError: tensorboardX is not installed.
        TypeError: The folder is no path.
        OSError: The file cannot be made.

    Example:
        >>> import tempfile
        >>> import mirrored as mr
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mr.summary.create_file_writer(folder)
        ...     with writer.as_default():
        ...         written = mr.summary.scalar("loss", 0.5, step=1)
        ...     writer.close()
        >>> bool(written)
        True
    """
    del name
    package("tensorboardX", "tensorboard", "Files of events are written by")
    from mirrored.training.summaries.event_file import EventFile

    seconds = _SECONDS if flush_millis is None else flush_millis / 1000.0
    most = _QUEUE if max_queue is None else max_queue
    suffix = ".v2" if filename_suffix is None else filename_suffix
    return SummaryWriter(EventFile(as_path(logdir, "folder of events"), most, seconds, suffix))


def create_noop_writer() -> SummaryWriter:
    """Return a writer that writes nothing, and changes nothing where it is the default.

    Example:
        >>> import mirrored as mr
        >>> with mr.summary.create_noop_writer().as_default():
        ...     bool(mr.summary.scalar("loss", 0.5, step=1))
        False
    """
    return SummaryWriter(None)
