"""Summaries for TensorBoard: scalars, histograms and text, in files of events.

They go to the writer that is the default where they are made, as in TensorFlow, and nowhere where
there is none.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from mirrored import ops
from mirrored._arguments import explain_functions, explained
from mirrored._contexts import Within
from mirrored._extras import package
from mirrored._files import as_path
from mirrored._naming import scoped
from mirrored._numbers import as_integer
from mirrored._types import PathLike, TensorLike, late_type
from mirrored.distribute.context import replica_number
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.hooks import active_recorder, only
from mirrored.ops.printing import WRITE

if TYPE_CHECKING:
    from mirrored.training.event_file import EventFile
else:
    EventFile = late_type("mirrored.training.event_file", "EventFile")


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
    def as_default(self, step: SupportsIndex | None = None) -> Iterator["SummaryWriter"]:
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

    def set_as_default(self, step: SupportsIndex | None = None) -> None:
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


def create_file_writer(
    logdir: PathLike,
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
    from mirrored.training.event_file import EventFile

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


_BUCKETS = 30  # TensorFlow's.

_condition: ContextVar[Any] = ContextVar("mirrored_summary_condition", default=True)


def scalar(
    name: str, data: TensorLike, step: SupportsIndex | None = None, description: str | None = None
) -> Tensor:
    """Write a number, and return whether it was written.

    Args:
        name: What it is called, behind the name scopes that are open.
        data: The number.
        step: The step, an integer; None: that of `set_step`, or of the writer's context.
        description: What TensorBoard says of it.

    Raises:
        ValueError: It is no scalar, or there is no step.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.summary.scalar("loss", 0.5, step=1))  # There is no writer.
        False
    """
    return _write(name, data, step, "scalars", description, as_scalar)


def as_scalar(data: Any) -> NDArray[np.float32]:
    """Return a number as scalars are written.

    Args:
        data: What NumPy makes an array of.

    Raises:
        ValueError: It is no scalar.
    """
    number = np.asarray(data, np.float32)
    if number.shape:
        raise ValueError(f"Expected scalar shape, saw shape: {number.shape}.")
    return number


def histogram(
    name: str,
    data: TensorLike,
    step: SupportsIndex | None = None,
    buckets: int | None = None,
    description: str | None = None,
) -> Tensor:
    """Write how many numbers lie in equal ranges, and return whether it was written.

    Args:
        name: What it is called, behind the name scopes that are open.
        data: The numbers.
        step: The step, an integer; None: that of `set_step`, or of the writer's context.
        buckets: How many ranges there are; 30 for None.
        description: What TensorBoard says of it.

    Raises:
        ValueError: There is no step.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.summary.histogram("weights", [0.5, 1.5], step=1))  # There is no writer.
        False
    """
    number = _BUCKETS if buckets is None else buckets
    return _write(name, data, step, "histograms", description, lambda x: _counted(x, number))


def text(
    name: str,
    data: str | Sequence[str],
    step: SupportsIndex | None = None,
    description: str | None = None,
) -> Tensor:
    """Write text, and return whether it was written.

    Args:
        name: What it is called, behind the name scopes that are open.
        data: A string, or nested lists of strings, which are shown as a table.
        step: The step, an integer; None: that of `set_step`, or of the writer's context.
        description: What TensorBoard says of it.

    Raises:
        TypeError: It is no text.
        ValueError: There is no step.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.summary.text("note", "a *new* run", step=1))  # There is no writer.
        False
    """
    array = np.asarray(data)
    if is_tensor(data) or array.dtype.kind not in "US":
        raise TypeError(f"Text must be a string, or lists of strings. Received: {data!r:.80}")
    encoded = np.char.encode(array, "utf-8") if array.dtype.kind == "U" else array
    return _write(name, 0, step, "text", description, lambda _: encoded.astype(object))


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Bring what was written to the file.

    Args:
        writer: The writer; None: the default, if there is one.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.summary.flush()
    """
    del name
    chosen = current_writer.get() if writer is None else writer
    if chosen is not None:
        chosen.flush()


def record_if(condition: bool | Callable[[], bool]) -> Within:
    """Within this context write summaries only where a condition holds.

    Args:
        condition: A boolean, a scalar tensor, or a function that returns one, asked each time.

    Example:
        >>> import mirrored as mr
        >>> with mr.summary.record_if(False):
        ...     bool(mr.summary.should_record_summaries())
        False
    """
    return Within(_condition, condition)


def should_record_summaries() -> Tensor:
    """Return whether summaries are written: there is a writer, and `record_if` lets them.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.summary.should_record_summaries())  # There is no writer.
        False
    """
    return ops.constant(current_writer.get() is not None and _holds())


def set_step(step: SupportsIndex) -> None:
    """Say which step summaries are of that have none of their own.

    Args:
        step: An integer; a variable, whose value counts whenever one is written; None: none.

    Example:
        >>> import mirrored as mr
        >>> mr.summary.experimental.set_step(3)
        >>> mr.summary.experimental.get_step()
        3
        >>> mr.summary.experimental.set_step(None)
    """
    current_step.set(step)


def get_step() -> Any:
    """Return what `set_step`, or the context of a writer, was given; None: nothing.

    Example:
        >>> import mirrored as mr
        >>> mr.summary.experimental.get_step()
    """
    return current_step.get()


# ---------------------------------------------------------------------------- writing


def _holds() -> bool:
    condition = _condition.get()
    return bool(condition() if callable(condition) else condition)


def _write(
    name: str,
    data: Any,
    step: Any,
    plugin: str,
    description: str | None,
    value: Callable[[NDArray[Any]], NDArray[Any]],
) -> Tensor:
    """Write what is made of data by the default writer, in a recorded function in each call."""
    writer, step = current_writer.get(), current_step.get() if step is None else step
    # As in TensorFlow, the first replica writes.
    if writer is None or replica_number() > 0 or not _holds():
        return ops.constant(False)
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            "tf.summary.experimental.set_step()"
        )
    tag = scoped(name)

    def write(array: Any, number: Any) -> None:
        writer.add(int(number), tag, value(np.asarray(array)), plugin, description)

    with only():
        tensor, number = ops.convert_to_tensor(data), _as_step(step)
        if active_recorder() is None:
            write(tensor.numpy(), number.numpy())
        else:
            WRITE(tensor, number, write=lambda array, number, *_: write(array, number))
    return ops.constant(True)


def _as_step(step: Any) -> Tensor:
    if is_tensor(step):
        return ops.cast(step, ops.int64)
    number = as_integer(step)
    if number is None:
        raise TypeError(f"A step must be an integer. Received: {step!r}")
    return ops.constant(number, ops.int64)


def _counted(data: NDArray[Any], number: int) -> NDArray[np.float64]:
    """Return rows of a range's left end, its right end, and how many numbers lie in it."""
    values = np.asarray(data, np.float64).ravel()
    if not values.size or not number:
        return np.zeros((number, 3))
    low, high = values.min(), values.max()
    if low == high:  # The last range has all.
        ends, counts = np.full((2, number), high), np.zeros(number)
        counts[-1] = values.size
        return np.stack([*ends, counts], axis=1)
    edges = np.linspace(low, high, number + 1)
    places = np.minimum(((values - low) / ((high - low) / number)).astype(np.int64), number - 1)
    return np.stack([edges[:-1], edges[1:], np.bincount(places, minlength=number)], axis=1)


explain_functions(__name__)
