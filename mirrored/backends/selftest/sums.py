"""Sums with known results over devices, to find which device is late or wrong.

A link between cards that loses or mixes up data is found here, before it spoils a training run.
Likely causes are named, with the settings that confirm them: they are those of NCCL's
documentation, and which comes first follows from the symptom.
"""

import enum
import itertools
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored.backends.backend import Storage
from mirrored.backends.communication.in_flight import Future, pauses
from mirrored.backends.cuda import nccl_settings
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


# https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/, of version 2.32: the page "Environment
# Variables", and of "Troubleshooting" the pages on GPUs, on shared memory and on diagnostics.


@dataclass(frozen=True, slots=True)
class _Cause:
    """One thing that may be wrong.

    Attributes:
        problem: What is wrong, in a sentence.
        remedy: What to try.
        setting: The variable that keeps NCCL from what fails, with its value; None: there is none.
        signs: What NCCL or the system says where it is this, as a regular expression.
        rank: How likely it is for each symptom, 0 first.
    """

    problem: str
    remedy: str
    setting: tuple[str, str] | None
    signs: re.Pattern[str]
    rank: dict[Symptom, int]


def _signs(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_CAUSES = (
    _Cause(
        problem="PCI access control services (ACS) or an IOMMU send transfers between cards "
        "through the processor, where they are late or lost.",
        remedy="Try NCCL_P2P_DISABLE=1. If that helps, switch ACS, and VT-d or AMD-Vi, off in "
        "the BIOS (`sudo lspci -vvv | grep ACSCtl` shows `SrcValid+` if ACS is on), "
        "because this workaround is slow.",
        setting=("NCCL_P2P_DISABLE", "1"),
        signs=_signs(r"\bp2p\b", r"peer.{0,20}access", r"\bXid\b", r"\bIOMMU\b"),
        rank={Symptom.WRONG: 0, Symptom.TIMEOUT: 0, Symptom.CRASH: 2, Symptom.ERROR: 3},
    ),
    _Cause(
        problem="NVLink SHARP (NVLS), by which NVSwitch adds, is there and does not work: often "
        "the Fabric Manager was started again and the cards were not reset.",
        remedy="Try NCCL_NVLS_ENABLE=0. If that helps, reset the cards, or restart the machine.",
        setting=("NCCL_NVLS_ENABLE", "0"),
        signs=_signs("nvls", "multicast", "fabric.?manager", "NVLink SHARP"),
        rank={Symptom.WRONG: 1, Symptom.TIMEOUT: 1, Symptom.CRASH: 3, Symptom.ERROR: 2},
    ),
    _Cause(
        problem="Shared memory (/dev/shm) is too small, as in a container with its usual 64 MB.",
        remedy="Start the container with `--shm-size=1g --ulimit memlock=-1`, or `--ipc=host`; or "
        "try NCCL_SHM_DISABLE=1.",
        setting=("NCCL_SHM_DISABLE", "1"),
        signs=_signs(r"\bshm\b", "/dev/shm", "shared memory", "no space left", "SIGBUS"),
        rank={Symptom.WRONG: 3, Symptom.TIMEOUT: 2, Symptom.CRASH: 0, Symptom.ERROR: 1},
    ),
    _Cause(
        problem="The versions of the driver, CUDA and NCCL do not fit together.",
        remedy="`python -m mirrored devices` prints them. Use an NCCL for the CUDA version that "
        "CuPy is for, and a driver that is at least as new.",
        setting=None,
        signs=_signs("driver version", "no kernel image", "undefined symbol"),
        rank={Symptom.WRONG: 2, Symptom.TIMEOUT: 3, Symptom.CRASH: 1, Symptom.ERROR: 0},
    ),
    _Cause(
        problem="The card has too little memory for a second process, since the first has taken "
        "nearly all of it.",
        remedy="Set MIRRORED_FORCE_GPU_ALLOW_GROWTH=true, or memory limits, or leave the test out "
        "by MIRRORED_NCCL_SELFTEST=0.",
        setting=None,
        signs=_signs("out of memory", "OutOfPoolMemory", "too little memory"),
        rank={Symptom.WRONG: 9, Symptom.TIMEOUT: 9, Symptom.CRASH: 4, Symptom.ERROR: 4},
    ),
    _Cause(
        problem="The card is in exclusive mode, which allows one process (`nvidia-smi -q -d "
        "COMPUTE`), and the test is a second process.",
        remedy="Leave the test out by MIRRORED_NCCL_SELFTEST=0.",
        setting=None,
        signs=_signs("all CUDA-capable devices are busy", "DevicesUnavailable", "exclusive"),
        rank={Symptom.WRONG: 9, Symptom.TIMEOUT: 9, Symptom.CRASH: 5, Symptom.ERROR: 5},
    ),
)


def likely_causes(symptom: Symptom, said: str) -> list[str]:
    """Return what may be the matter, each with what to try, the likeliest first.

    What NCCL says comes before what the symptom tells. A cause that a setting of this process's
    environment rules out is left out.

    Args:
        symptom: What was seen.
        said: What NCCL and the system wrote.

    Example:
        >>> print(likely_causes(Symptom.CRASH, "ended by SIGBUS")[0])
        Shared memory (/dev/shm) is too small, as in a container with its usual 64 MB. Start ...
    """
    left = (cause for cause in _CAUSES if not _ruled_out(cause))
    ranked = sorted(left, key=lambda cause: (not cause.signs.search(said), cause.rank[symptom]))
    return [f"{cause.problem} {cause.remedy}" for cause in ranked]


def settings_in_force() -> Iterable[tuple[str, str]]:
    """Return the variables that decide what NCCL does, in order, with those of its files."""
    prefixes = ("NCCL_", "MIRRORED_NCCL_", "CUDA_")
    settings = {**nccl_settings.in_files(), **os.environ}
    return sorted(item for item in settings.items() if item[0].startswith(prefixes))


def _ruled_out(cause: _Cause) -> bool:
    return (
        cause.setting is not None
        and dict(settings_in_force()).get(cause.setting[0]) == cause.setting[1]
    )
