"""Where time goes: a trace of kernels, collectives, copies and waits, and a table of them by op.

The library tells of each of them while a trace is on; while none is, it measures nothing.
"""

import contextlib
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple

from mirrored._arguments import explain_functions
from mirrored._files import check_replaceable, replacing
from mirrored._types import PathLike
from mirrored.backends.backend import MEGABYTE
from mirrored.devices.work_timing import ALL_REPLICAS, Work, observers
from mirrored.ops.rng_state import current_position

# A trace of more would be slow to open, and take hundreds of megabytes while it is on.
_MOST_EVENTS = 1_000_000

# The table's parts, each with the kinds of work that it holds.
_PARTS = (
    ("Compute", ("compute",)),
    ("Transfers", ("collective", "transfer")),
    ("Data", ("data",)),
    ("Waits", ("wait",)),
)


class _Event(NamedTuple):
    """A slice: what took time, whose it was (None: the device's), and when, in nanoseconds."""

    work: Work
    replica: int | None
    start: int
    end: int


class _Total(NamedTuple):
    """What all slices of one name come to: calls, nanoseconds and bytes."""

    calls: int = 0
    time: int = 0
    moved: int = 0


class _Summary(NamedTuple):
    """What is kept of a trace that has ended."""

    path: str
    time: int
    dropped: int
    totals: dict[tuple[str, str], _Total]


class _Trace:
    """The observer that a trace is: it keeps what it is told until it is closed.

    Args:
        path: What messages call its file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.dropped = 0
        self.start = self.end = perf_counter_ns()
        self._events: list[_Event] = []
        self._works: dict[Work, Work] = {}
        self._open = True
        self._lock = threading.Lock()

    def add(self, work: Work, replica: int | None, start: int, end: int) -> None:
        """Keep a slice, if there is room for it."""
        if len(self._events) >= _MOST_EVENTS or not self._open:
            with self._lock:
                self.dropped += self._open
            return
        if replica is None:
            position = current_position()
            replica = None if position.run is None else position.replica
            # Eager ops make one in every call: a thousand equal ones take the place of one.
            work = self._works.setdefault(work, work)
        self._events.append(_Event(work, replica, start, end))

    def close(self) -> list[_Event]:
        """End now; return the slices and hold them no longer."""
        self.end = perf_counter_ns()
        self._open = False
        events, self._events = self._events, []
        return events


_claiming = threading.Lock()
_last: list[_Summary] = []


@contextlib.contextmanager
def trace(filepath: PathLike) -> Iterator[None]:
    """Write where time goes within the block to a file of Chrome trace events.

    Perfetto (https://ui.perfetto.dev) and chrome://tracing open it. It has a row a replica, a row
    for what is done where all replicas have met, and a row a device for what is called outside
    replicas. With `MirroredStrategy(replicas=)` a recorded step has a row per thread or stream,
    each of which runs consecutive replicas ("replicas 0 to 3"); where a lone device computes a step
    in parts of the batch, it has a row per part ("part 0 of 2"), and one for all of them. Threads
    of `Dataset.prefetch` have the row "dataset".

    A slice is one call of an op's kernel, a collective ("AllReduce"), a copy ("Infeed"
    for the rows of a batch, "Memcpy DtoD" from GPU to GPU, with H for the host or a CPU) or a
    "wait" of a replica's thread for the others. Its arguments name the op and the device, and say
    how many bytes it read and wrote. Between slices, Python runs.

    While no trace is on, nothing is measured: recorded steps run the functions that they always
    run. A trace changes no result. A call of `fit`, `evaluate` or `predict` that is under way is
    not in a trace that begins meanwhile.

    Args:
        filepath: The file, which is replaced when the block ends, also by an error. Of more than a
            million slices, the later ones are left out, and the file and the table say so.

    Raises:
        TypeError: `filepath` is no path.
        OSError: The file cannot be written there, or what is there is no file, such as a device.
        RuntimeError: Another trace is on.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with mr.profiler.trace(folder + "/trace.json"):
        ...         y = mr.matmul(mr.ones((64, 64)), mr.ones((64, 64)))
        ...     os.listdir(folder)
        ['trace.json']
    """
    # Now, not after the hour that it is to measure; nor does it matter where the program is then.
    target = check_replaceable(filepath, "trace")
    timer = _Trace(os.fspath(filepath))
    _claim(timer)
    try:
        yield
    except BaseException as error:
        _end(timer, target, error)
        raise
    _end(timer, target, None)


def summary(*, print_fn: Callable[[str], Any] | None = None) -> None:
    """Print a table of the last trace that has ended: calls, time and bytes by op.

    Compute comes first, then transfers (collectives and copies), then waits, each with what took
    most time first. A share is that of the time of all slices of all rows. What compute moves is
    what it reads and writes; what a transfer moves is what it reads.

    Args:
        print_fn: What is called with each line; None prints it.

    Raises:
        RuntimeError: No trace has ended yet.

    Example:
        >>> import tempfile
        >>> import mirrored as mr
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with mr.profiler.trace(folder + "/trace.json"):
        ...         x = mr.ones((512, 512))
        >>> mr.profiler.summary()
        Trace: ...trace.json, ... ms
        ------------------------------------------------
        Op       Calls  Time (ms)  Share (%)  Moved (MB)
        ------------------------------------------------
        Compute      1        ...     100.00        1.00
          Fill       1        ...     100.00        1.00
        ------------------------------------------------
        Total        1        ...     100.00        1.00
    """
    if not _last:
        raise RuntimeError(
            "There is no trace to summarise. Received: mr.profiler.summary() before any trace "
            "has ended. Run the code to measure inside `with mr.profiler.trace(...):` first."
        )
    for line in _summary_lines(_last[0]):
        (print if print_fn is None else print_fn)(line)


# ---------------------------------------------------------------------------- begin and end


def _claim(timer: _Trace) -> None:
    with _claiming:
        for other in observers:
            name = other.path if isinstance(other, _Trace) else repr(other)
            raise RuntimeError(
                "Another trace is running, and only one can run at a time. Received: "
                f"trace({timer.path!r}) while {name!r} is running. Remove one of them."
            )
        observers.append(timer)


def _end(timer: _Trace, target: str, failed: BaseException | None) -> None:
    """Write the file, and keep what the table needs; a block that failed says why itself."""
    observers.remove(timer)
    events = timer.close()
    _last[:] = [_Summary(timer.path, timer.end - timer.start, timer.dropped, _totals(events))]
    try:
        with replacing(target, "trace") as file:
            for line in _json_lines(events, timer):
                file.write(line.encode())
    except OSError as error:
        if failed is None:
            raise
        failed.add_note(f"The trace {timer.path!r} could not be written: {error}")


# ---------------------------------------------------------------------------- the file


def _json_lines(events: Sequence[_Event], trace: _Trace) -> Iterator[str]:
    """Yield the file's lines: an object whose list of events has one a line."""
    about = {"slices": len(events), "slices dropped": trace.dropped}
    yield f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(about)}, "traceEvents": [\n'
    yield json.dumps(_metadata("process_name", 0, name="mirrored"))
    for tid, (name, row) in enumerate(_rows(events), start=1):
        yield ",\n" + json.dumps(_metadata("thread_name", tid, name=name))
        yield ",\n" + json.dumps(_metadata("thread_sort_index", tid, sort_index=tid))
        for event in row:
            yield ",\n" + json.dumps(_slice(event, tid, trace.start))
    yield "\n]}\n"


def _metadata(kind: str, tid: int, **args: Any) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": os.getpid(), "tid": tid, "args": args}


def _slice(event: _Event, tid: int, start: int) -> dict[str, Any]:
    work = event.work
    args = {"op": work.op, "device": work.device}
    if work.source:
        args["from"] = work.source
    return {
        "name": work.name,
        "cat": work.kind,
        "ph": "X",
        "ts": (event.start - start) / 1000,  # Microseconds.
        "dur": (event.end - event.start) / 1000,
        "pid": os.getpid(),
        "tid": tid,
        "args": {**args, "bytes in": work.bytes_in, "bytes out": work.bytes_out},
    }


def _rows(events: Iterable[_Event]) -> Iterator[tuple[str, list[_Event]]]:
    """Yield the rows, each with its name: replicas, what they do together, devices."""
    rows: dict[tuple[int, int, str], list[_Event]] = {}
    for event in events:
        rows.setdefault(_row_of(event), []).append(event)
    for key in sorted(rows):
        name = _name_of(key, rows[key])
        for number, track in enumerate(_tracks(rows[key]), start=1):
            yield name if number == 1 else f"{name} #{number}", track


def _row_of(event: _Event) -> tuple[int, int, str]:
    whose = event.work.whose
    if event.replica is None:  # What the host gets comes from the device that shows it.
        return 2, 0, event.work.source if event.work.device == "host" else event.work.device
    return (1, 0, whose) if event.replica == ALL_REPLICAS else (0, event.replica, whose)


def _name_of(key: tuple[int, int, str], row: Iterable[_Event]) -> str:
    order, replica, name = key
    if order:
        return name or "all replicas"
    # A replica may send something to the CPU, or update variables of another device; it belongs
    # where its examples are, or else where it does most.
    ((device, _),) = Counter(
        {event.work.device: event.work.name == "Infeed" for event in row}
    ).most_common(1)
    return f"{name or f'replica {replica}'} ({device})"


def _tracks(row: Iterable[_Event]) -> list[list[_Event]]:
    """Return a row's slices as rows without overlaps: one, unless users' threads share it."""
    tracks: list[list[_Event]] = []
    for event in sorted(row, key=lambda event: (event.start, event.end)):
        for track in tracks:
            if track[-1].end <= event.start:
                track.append(event)
                break
        else:
            tracks.append([event])
    return tracks


# ---------------------------------------------------------------------------- the table


def _totals(events: Iterable[_Event]) -> dict[tuple[str, str], _Total]:
    """Return the totals of the slices of each kind and name."""
    totals: dict[tuple[str, str], _Total] = {}
    for work, _, start, end in events:
        moved = work.bytes_in + (work.bytes_out if work.kind == "compute" else 0)
        calls, time, bytes_ = totals.get((work.kind, work.name), _Total())
        totals[work.kind, work.name] = _Total(calls + 1, time + end - start, bytes_ + moved)
    return totals


def _summary_lines(last: _Summary) -> list[str]:
    total = _sum_of(last.totals.values())
    rows: list[tuple[str, ...]] = [("Op", "Calls", "Time (ms)", "Share (%)", "Moved (MB)")]
    for part, kinds in _PARTS:
        ops = [(name, totals) for (kind, name), totals in last.totals.items() if kind in kinds]
        if ops:
            rows.append(_cells(part, _sum_of(totals for _, totals in ops), total))
            ops.sort(key=lambda op: (-op[1].time, op[0]))
            rows += [_cells(f"  {name}", totals, total) for name, totals in ops]
    rows.append(_cells("Total", total, total))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    head, *body, last_line = (_line(row, widths) for row in rows)
    rule = "-" * len(head)
    lines = [f"Trace: {last.path}, {last.time / 1e6:,.2f} ms", rule, head, rule, *body, rule]
    lines.append(last_line)
    if last.dropped:
        lines.append(
            f"{last.dropped:,} later slices are missing: a trace holds {_MOST_EVENTS:,} of them."
        )
    return lines


def _sum_of(parts: Iterable[_Total]) -> _Total:
    return _Total(*map(sum, zip(*parts, strict=True)))


def _cells(name: str, part: _Total, whole: _Total) -> tuple[str, ...]:
    share = 100 * part.time / whole.time if whole.time else 0.0
    moved = part.moved / MEGABYTE
    return name, f"{part.calls:,}", f"{part.time / 1e6:,.2f}", f"{share:.2f}", f"{moved:,.2f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
    return "  ".join([f"{row[0]:<{widths[0]}}", *cells])


explain_functions(__name__, all_but="")
