"""Sums with known results over devices, to find which device is late or wrong.

A link between cards that loses or mixes up data is found here, before it spoils a training run.
"""

import enum
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored.backends.backend import Storage
from mirrored.backends.communication.in_flight import Future, pauses
from mirrored.backends.stream_backend import Communicator, Place, StreamBackend
from mirrored.errors import CollectiveError, DeviceLostError

_DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "int32"))
# Elements of an array: NCCL chooses among three protocols, mainly by size, and all are to be seen.
# None is a multiple of anything, so that no part of a card's work is as large as the next.
_COUNTS = (129, 40_009, 1_000_003)
# In the first dtype as many besides as a bucket of gradients has: large sums may go another way.
_LARGE_COUNTS = (7_000_003,)
_TIMES = 3

# A prime: no block of a card's work is a whole number of periods, so shifted data is wrong data.
_PERIOD = 1021

_ABORT_WITHIN = 5.0  # Seconds to wait for an abort, which may never return.


class Symptom(enum.Enum):
    """What may be found."""

    WRONG = "wrong sums"
    TIMEOUT = "a time-out"
    CRASH = "a crash"
    ERROR = "an error"


class Finding(NamedTuple):
    """One thing that is wrong.

    Attributes:
        symptom: Which kind of thing.
        sentence: What it is.
    """

    symptom: Symptom
    sentence: str


def known_values(rank: int, count: int, dtype: np.dtype[Any], turn: int = 0) -> NDArray[Any]:
    """Return what a rank adds: small whole numbers that differ by rank, place and turn.

    Sums over up to 16,000 ranks are exact in float32, in any order.

    Args:
        rank: The number of the rank.
        count: How many numbers.
        dtype: Their dtype.
        turn: Which of several all-reduces it is.

    Example:
        >>> known_values(0, 4, np.dtype("float32")), known_values(1, 4, np.dtype("float32"))
        (array([-510., -507., -504., -501.], dtype=float32),
         array([-493., -488., -483., -478.], dtype=float32))
    """
    place = np.arange(min(count, _PERIOD**2))
    values = (place * (2 * rank + 3) + place // _PERIOD + 17 * rank + 5 * turn) % _PERIOD
    return np.resize((values - _PERIOD // 2).astype(dtype), count)


def known_sum(ranks: int, count: int, dtype: np.dtype[Any], turn: int = 0) -> NDArray[Any]:
    """Return the sum over `ranks` ranks; see `known_values`."""
    total = known_values(0, count, dtype, turn)
    for rank in range(1, ranks):
        total += known_values(rank, count, dtype, turn)
    return total


def examine(
    ranks: Sequence[StreamBackend],
    names: Sequence[str],
    timeout: float,
    progress: Callable[[str], object],
    place: Place | None = None,
) -> list[Finding]:
    """Connect devices, let them sum known values, and return what is wrong.

    One all-reduce may take `timeout` seconds, and connecting has no deadline here; `progress` is
    called with what is done next. After a time-out or an error nothing more is tried, and all that
    was asked for is aborted. `place` is where the devices are among those of several processes, all
    of which call this.
    """
    progress("connecting them")
    first, count = (0, len(ranks)) if place is None else place[:2]
    try:
        communicator = ranks[0].connect(ranks, *(() if place is None else (place,)))
    except CollectiveError as error:
        return [Finding(Symptom.ERROR, f"They could not be connected: {error}")]
    check = _Check(ranks, names, communicator, timeout, first, count)
    findings: list[Finding] = []
    large = itertools.product(_DTYPES[:1], _LARGE_COUNTS)
    for dtype, count in (*itertools.product(_DTYPES, _COUNTS), *large):
        progress(f"summing {count} {dtype.name} numbers of each")
        findings += check.sums(dtype, count)
        if any(finding.symptom is not Symptom.WRONG for finding in findings):
            _abort(communicator)
            return findings
    progress("disconnecting them")
    communicator.close()
    return findings


class _Check:
    """Sums on one communicator, each of which has a timeout."""

    def __init__(
        self,
        ranks: Sequence[StreamBackend],
        names: Sequence[str],
        communicator: Communicator,
        timeout: float,
        first: int,
        count: int,
    ) -> None:
        self._ranks = ranks
        self._names = names
        self._communicator = communicator
        self._timeout = timeout
        self._first = first
        self._count = count
        self._pools = [rank.make_pool(None, parent=None, growth=True) for rank in ranks]

    def sums(self, dtype: np.dtype[Any], count: int) -> list[Finding]:
        """Return what is wrong the first time that something is; they are tried several times."""
        sends, receives = (self._allocate(dtype, count) for _ in range(2))
        for turn, in_place in itertools.product(range(_TIMES), (False, True)):
            label = f"{count} {dtype.name} numbers, {'in' if in_place else 'out of'} place"
            self._fill(receives if in_place else sends, dtype, count, turn)
            if not in_place:
                self._spoil(receives)
            findings = self._sum(receives if in_place else sends, receives, label)
            findings = findings or list(self._wrong(receives, dtype, count, turn, label))
            if findings:
                return findings
        return []

    def _allocate(self, dtype: np.dtype[Any], count: int) -> list[Storage]:
        return [
            rank.allocate(pool, (count,), dtype)
            for rank, pool in zip(self._ranks, self._pools, strict=True)
        ]

    def _fill(self, into: list[Storage], dtype: np.dtype[Any], count: int, turn: int) -> None:
        for number, (rank, storage) in enumerate(zip(self._ranks, into, strict=True)):
            values = known_values(self._first + number, count, dtype, turn)
            rank.copy_from_host(storage, values)

    def _spoil(self, into: list[Storage]) -> None:
        """Write what is no sum, so that a sum that never came is not taken for the one before."""
        for rank, storage in zip(self._ranks, into, strict=True):
            array, dtype = storage.array, storage.array.dtype
            value = math.nan if dtype.kind == "f" else np.iinfo(dtype).min
            rank.copy_from_host(storage, np.full(array.shape, value, dtype))

    def _sum(self, sends: list[Storage], receives: list[Storage], label: str) -> list[Finding]:
        """Let the devices sum, and wait for them; return why they cannot."""
        try:
            self._communicator.all_reduce(
                [store.array for store in sends], [store.array for store in receives], self._ranks
            )
            late = self._late()
        except (CollectiveError, DeviceLostError) as error:
            return [Finding(Symptom.ERROR, f"The sum of {label}, failed: {error}")]
        if not late:
            return []
        sentence = f"The sum of {label}, was not done within {self._timeout:g} s on {late}."
        return [Finding(Symptom.TIMEOUT, sentence)]

    def _late(self) -> str:
        """Return the devices that are not done by the deadline, in words; nothing: all are."""
        waiting = dict(zip(self._names, self._ranks, strict=True))
        events = {name: rank.record() for name, rank in waiting.items()}
        deadline = time.monotonic() + self._timeout
        for pause in pauses(time.monotonic):
            on_time = time.monotonic() < deadline  # Before the look: a slow one counts.
            waiting = {n: rank for n, rank in waiting.items() if not rank.is_done(events[n])}
            failure = self._communicator.failure()
            if failure is not None:
                raise CollectiveError(failure)
            if not waiting or not on_time:
                break
            time.sleep(pause)
        return ", ".join(waiting)

    def _wrong(
        self, receives: list[Storage], dtype: np.dtype[Any], count: int, turn: int, label: str
    ) -> Iterator[Finding]:
        expected = known_sum(self._count, count, dtype, turn)
        for rank, name, storage in zip(self._ranks, self._names, receives, strict=True):
            difference = _difference(rank.to_host(storage.array), expected)
            if difference is not None:
                sentence = f"The sum of {label}, is wrong on {name}: {difference}"
                yield Finding(Symptom.WRONG, sentence)


def _difference(received: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """Return how an array differs from what it should be, in words."""
    wrong = np.flatnonzero(received != expected)
    if not wrong.size:
        return None
    first = int(wrong[0])
    nans = int(np.count_nonzero(received != received))  # A number equals itself.
    among = f", of which {nans} are NaN" if nans else ""
    return (
        f"{wrong.size} of {expected.size} elements{among}. The first is element {first}: expected "
        f"{expected[first]}, received {received[first]}."
    )


def _abort(communicator: Communicator) -> None:
    call = Future("abort of a self-test", communicator.abort)
    deadline = time.monotonic() + _ABORT_WITHIN
    for pause in pauses(time.monotonic):
        if call.is_over or time.monotonic() > deadline:
            return
        time.sleep(pause)
