"""Sums over cards by NCCL, through ctypes.

ctypes lets other threads run during each call, so that they can keep deadlines and abort. CuPy's
wrapper does in all calls but `ncclCommInitAll`, which connects the cards, and waits for them.
Errors have NCCL's status in words and its own messages, since who sees them hours into a run has
nothing else to go by.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from mirrored._interrupt import InterruptGuard
from mirrored.backends.cuda import nccl_settings, toolkit
from mirrored.backends.cuda.current_card import CurrentCard, Entered, lock_of
from mirrored.backends.cuda.nccl_settings import set_deterministic as set_deterministic
from mirrored.backends.stream_backend import Place
from mirrored.errors import CollectiveError, DeviceUnavailableError

_STATUS = {
    1: "ncclUnhandledCudaError",
    2: "ncclSystemError",
    3: "ncclInternalError",
    4: "ncclInvalidArgument",
    5: "ncclInvalidUsage",
    6: "ncclRemoteError",
    7: "ncclInProgress",
    8: "ncclTimeout",
}


def said(library: Any, function: str, status: int) -> str:
    """Return what a function answered, and NCCL's own words."""
    answer = f"{function} answered {_STATUS.get(status, 'an unknown status')} ({status})"
    text = _last_error(library)
    # It keeps them until it has others.
    return (
        f"{answer}; its last message, perhaps of an earlier call, is {text!r}" if text else answer
    )


def number_of_version(library: Any) -> int:
    """Return the version of a loaded NCCL as it writes it: 22703 is 2.27.3."""
    value = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(value))  # It fails for no pointer alone.
    return value.value


def _last_error(library: Any) -> str:
    """Return NCCL's own words of what went wrong last, an empty string where it has none."""
    function = library.ncclGetLastError
    function.restype = ctypes.c_char_p  # Else a pointer would be cut to an int.
    text = function(ctypes.c_void_p())
    return text.decode(errors="replace").strip() if text else ""


_MAJOR = 2  # Of the library's file.
# Versions, as ncclGetVersion writes them: the first with aborts in a group, without which they may
# wait for each other, and with several ranks on one card.
_OLDEST, _SEVERAL_ON_A_CARD = 2_22_00, 2_30_00
# Seconds that a thread which asks for a sum has to come back out of NCCL once it is aborted.
_LEAVES = 10.0

_SUCCESS, _IN_PROGRESS = 0, 7
_SUM = 0  # ncclRedOp_t

# With it NCCL hangs where one thread has several cards: https://github.com/NVIDIA/nccl/pull/774.
_BLOCKING = "CUDA_LAUNCH_BLOCKING"
_DATATYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}


class RankDevice(Protocol):
    """What NCCL asks of a device: a logical device of a card, with a stream."""

    where: str
    memory: str

    @property
    def device(self) -> CurrentCard:
        """The card, to be made the current one."""

    @property
    def stream(self) -> Any:
        """The stream that work is put on."""

    def entered(self) -> Entered:
        """Enter the card."""


def load() -> Any:
    """Return the library. It starts nothing on a card, and CUDA neither.

    Raises:
        DeviceUnavailableError: There is none.
    """
    library = toolkit.find("nccl", _MAJOR)
    if library is None:
        raise DeviceUnavailableError(
            f"NCCL cannot be used: libnccl.so.{_MAJOR} was not found among Python's packages, "
            "below CUDA_PATH or where the system keeps libraries. Install it: "
            f"{toolkit.install_command(toolkit.wanted_major())}"
        )
    return library


def version(library: Any) -> str:
    """Return the version of a loaded NCCL, as in '2.27.3'. It starts nothing on a card."""
    number = number_of_version(library)
    return f"{number // 10000}.{number % 10000 // 100}.{number % 100}"


def why_not(ranks: Sequence[RankDevice]) -> str | None:
    """Return why NCCL cannot connect ranks, in a sentence; None: it can. It starts nothing."""
    try:
        library = load()
    except DeviceUnavailableError as error:
        return str(error)
    if number_of_version(library) < _OLDEST:
        return (
            "NCCL cannot be used: sums that hang cannot be ended before version 2.22. Received: "
            f"{version(library)}. Upgrade it: "
            f"{toolkit.install_command(toolkit.wanted_major())}"
        )
    why = nccl_settings.why_not_blocking()
    if why is not None:
        return why
    cards = [rank.memory for rank in ranks]
    if len(cards) > 1 and os.environ.get(_BLOCKING, "0") not in ("", "0"):
        return (
            f"NCCL cannot be used: with {_BLOCKING}={os.environ[_BLOCKING]} each launch waits for "
            "its kernel, and the kernels of a collective wait for each other. Unset it."
        )
    shared = next((rank.where for rank in ranks if cards.count(rank.memory) > 1), None)
    if shared is None:
        return None
    why = nccl_settings.why_not_several()
    if why is None and number_of_version(library) < _SEVERAL_ON_A_CARD:
        why = f"Several need version 2.30 or later, and {version(library)} is installed: upgrade it"
    if why is None:
        return None
    return (
        f"NCCL cannot be used: it takes one device per card. Received: several of {shared}. {why}."
    )


class _UniqueId(ctypes.Structure):
    """ncclUniqueId, by which the ranks of several processes find each other."""

    _fields_ = (("internal", ctypes.c_ubyte * 128),)


def new_key(library: Any) -> bytes:
    """Return a unique id, which ranks of several processes are connected by. It starts no card.

    Args:
        library: What `load` returned.

    Raises:
        CollectiveError: NCCL could not make one.
    """
    _settle_environment()
    key = _UniqueId()
    status = library.ncclGetUniqueId(ctypes.byref(key))
    if status:
        raise CollectiveError(
            "NCCL could not make an id for the cards of several processes. Received: "
            f"{said(library, 'ncclGetUniqueId', status)}. A network between their hosts is "
            "needed: NCCL_SOCKET_IFNAME names its interface, and NCCL_DEBUG=WARN shows NCCL's "
            "messages."
        )
    return bytes(key.internal)


def _settle_environment(*, several: bool = False) -> None:
    """Set what NCCL is to read, which it does now at the latest."""
    if several or nccl_settings.are_several_asked_for():
        nccl_settings.allow_several()
    nccl_settings.note_that_they_are_read()


class NcclCommunicator:
    """Connected cards, or several devices of one; see `Communicator`.

    Args:
        library: What `load` returned.
        ranks: A device for each rank of this process, in order.
        place: Where they are among those of several processes; None: there are no others.

    Raises:
        CollectiveError: NCCL could not connect them.
    """

    def __init__(
        self, library: Any, ranks: Sequence[RankDevice], place: Place | None = None
    ) -> None:
        self._library = library
        self._ranks = tuple(ranks)
        self._cards = ", ".join(rank.where for rank in ranks)
        # In one order, so that two threads never wait for each other.
        self._locks = [lock_of(card) for card in sorted({rank.memory for rank in ranks})]
        # Held by a thread while it is inside NCCL for a sum, or to disconnect.
        self._inside = threading.Lock()
        # Held while NCCL is asked something that it answers at once, and never while it works.
        self._handing_over = threading.Lock()
        self._handles: tuple[ctypes.c_void_p, ...] = ()
        _settle_environment(several=len(self._locks) < len(self._ranks))
        if place is None:
            self._connect()
        else:
            self._join(place)

    def _connect(self) -> None:
        """Connect the cards with each other."""
        size, first = len(self._ranks), self._ranks[0]
        handles = (ctypes.c_void_p * size)()
        numbers = (ctypes.c_int * size)(*(rank.device.id for rank in self._ranks))
        # With a lock of its own: it may never return, and others are to go on with the card.
        with Entered(first.where, first.device, threading.RLock()):
            self._ask("ncclCommInitAll", ctypes.byref(handles), ctypes.c_int(size), numbers)
        self._handles = tuple(ctypes.c_void_p(handle) for handle in handles)

    def _join(self, place: Place) -> None:
        """Connect the cards with each other and with those of other processes."""
        handles = [ctypes.c_void_p() for _ in self._ranks]
        key, size = _UniqueId.from_buffer_copy(place.key), ctypes.c_int(place.total)
        first = self._ranks[0]
        # As in `close`; and a rank is on the card that is current when it is asked for.
        with Entered(first.where, first.device, threading.RLock()), self._group():
            for number, (rank, handle) in enumerate(zip(self._ranks, handles, strict=True)):
                with rank.device:
                    own = ctypes.c_int(place.first + number)
                    self._ask("ncclCommInitRank", ctypes.byref(handle), size, key, own)
        self._handles = tuple(handles)

    def all_reduce(
        self, sends: Sequence[Any], receives: Sequence[Any], streams: Sequence[Any]
    ) -> None:
        """Ask all ranks for a sum; see `Communicator`."""
        datatype = self._check(sends, receives, streams)
        self._open_handles()
        if not sends[0].size:
            return
        with contextlib.ExitStack() as held:
            for lock in self._locks:
                held.enter_context(lock)
            held.enter_context(self._ranks[0].entered())
            calls = [
                (
                    ctypes.c_void_p(send.data.ptr),
                    ctypes.c_void_p(receive.data.ptr),
                    ctypes.c_size_t(send.size),
                    ctypes.c_int(datatype),
                    ctypes.c_int(_SUM),
                    stream.stream.ptr,
                )
                for send, receive, stream in zip(sends, receives, streams, strict=True)
            ]
            # An interrupt at either end of the group would leave it open.
            guard = InterruptGuard(whole=True)
            with guard, self._inside, self._group(spoil=self._spoil):
                for number, (*arguments, stream) in enumerate(calls):
                    # An abort may come between the calls: what they are about is to be freed then.
                    handle = self._open_handles()[number]
                    self._ask("ncclAllReduce", *arguments, handle, ctypes.c_void_p(stream))

    def failure(self) -> str | None:
        """Return what has gone wrong since; see `Communicator`."""
        failures = []
        with self._handing_over:
            for rank, handle in zip(self._ranks, self._handles, strict=False):
                status = ctypes.c_int()
                function = self._library.ncclCommGetAsyncError
                answer = function(handle, ctypes.byref(status)) or status.value
                if answer not in (_SUCCESS, _IN_PROGRESS):
                    words = said(self._library, "ncclCommGetAsyncError", answer)
                    failures.append(f"{rank.where}: {words}")
        return "; ".join(failures) or None

    def abort(self) -> None:
        """End what was asked for, from any thread; see `Communicator`.

        All ranks are notified to stop; their memory is freed once no other thread is inside NCCL,
        which may be about to read it.
        """
        handles = self._take()
        if not handles:
            return
        with contextlib.ExitStack() as held:
            with contextlib.suppress(RuntimeError):  # A card that is lost is aborted too.
                held.enter_context(self._ranks[0].device)  # As in `close`.
            self._ask("ncclGroupStart")
            failed = self._statuses("ncclCommAbort", handles)  # The end of the group frees them.
            if not self._inside.acquire(timeout=_LEAVES):
                raise CollectiveError(
                    f"A thread did not return from NCCL over {self._cards} within "
                    f"{_LEAVES:g} s after its abort, so its memory was not freed. End the process."
                )
            try:
                status = self._library.ncclGroupEnd()
            finally:
                self._inside.release()
            if failed or status:
                raise self._error(*(failed[0] if failed else ("ncclGroupEnd", status)))

    def close(self) -> None:
        """Disconnect the cards; see `Communicator`."""
        if not self._handles:
            return
        # NCCL leaves the thread on the card that was current. In a new thread that is the first one
        # of all, which it would take memory of.
        first = self._ranks[0]
        try:
            with Entered(first.where, first.device, threading.RLock()), self._inside:
                # Destroying finishes what is left too, but would say nothing of what fails there.
                self._ask_each("ncclCommFinalize", self._handles)
                self._ask_each("ncclCommDestroy", self._take())
        except Exception:
            self.abort()  # What failed, such as a lost card, cannot be destroyed.
            raise

    # ------------------------------------------------------------------ the parts of these

    def _check(self, sends: Sequence[Any], receives: Sequence[Any], streams: Sequence[Any]) -> int:
        """Return NCCL's number of the arrays' dtype, once all is found to go together."""
        counts = len(sends), len(receives), len(streams)
        if counts != (len(self._ranks),) * 3:
            raise ValueError(
                "An all-reduce needs one array to add, one array for the sum and one stream per "
                f"rank, for {len(self._ranks)} ranks. Received: {counts}."
            )
        for rank, stream in zip(self._ranks, streams, strict=True):
            if stream.memory != rank.memory:
                raise ValueError(
                    f"A rank's stream must be on its card, {rank.where}. Received: a stream on "
                    f"{stream.where}."
                )
        kinds = {(array.dtype, array.size) for array in (*sends, *receives)}
        if len(kinds) > 1:
            listed = ", ".join(sorted(f"{size} of {dtype.name}" for dtype, size in kinds))
            raise ValueError(
                "The arrays of an all-reduce must have the same dtype and size. Received: "
                f"{listed} elements."
            )
        for send, receive in zip(sends, receives, strict=True):
            _check_memory(send, receive)
        name = sends[0].dtype.name
        if name not in _DATATYPES:
            raise ValueError(
                f"NCCL sums {', '.join(_DATATYPES)}. Received: {name}. Cast the arrays."
            )
        return _DATATYPES[name]

    def _spoil(self) -> None:
        """Let the group that is open end without effect: NCCL's error in it is one of it all.

        What Python raises, such as at Ctrl-C, NCCL does not know of. It would launch the ranks that
        were asked by then, and they would wait for the others indefinitely.
        """
        null = ctypes.c_void_p()
        no = ctypes.c_int(0)
        self._library.ncclAllReduce(null, null, ctypes.c_size_t(0), no, no, null, null)

    @contextlib.contextmanager
    def _group(self, spoil: Callable[[], object] | None = None) -> Iterator[None]:
        """Let calls take effect together; a group that stayed open would keep back later ones.

        Args:
            spoil: Called where something is raised, before the group ends.
        """
        self._ask("ncclGroupStart")
        try:
            yield
        except BaseException:
            if spoil is not None:
                spoil()
            self._library.ncclGroupEnd()  # What it answers follows from the first error.
            raise
        self._ask("ncclGroupEnd")

    def _take(self) -> tuple[ctypes.c_void_p, ...]:
        """Return the handles, for the one who ends them; nothing the next time."""
        with self._handing_over:
            handles, self._handles = self._handles, ()
        return handles

    def _open_handles(self) -> tuple[ctypes.c_void_p, ...]:
        handles = self._handles
        if not handles:
            raise CollectiveError(f"{self._cards} are not connected any more. Connect them again.")
        return handles

    def _statuses(self, function: str, handles: Sequence[ctypes.c_void_p]) -> list[tuple[str, int]]:
        """Call a function for every rank; return it with each answer that is no success."""
        call: Callable[[ctypes.c_void_p], int] = getattr(self._library, function)
        return [(function, status) for status in map(call, handles) if status]

    def _ask_each(self, function: str, handles: Sequence[ctypes.c_void_p]) -> None:
        """Call a function for every rank, and raise what the first of them answered."""
        for failed in self._statuses(function, handles):
            raise self._error(*failed)

    def _ask(self, function: str, *args: Any) -> None:
        status = getattr(self._library, function)(*args)
        if status:
            raise self._error(function, status)

    def _error(self, function: str, status: int) -> CollectiveError:
        return CollectiveError(
            f"NCCL failed over {self._cards}. Received: {said(self._library, function, status)}. "
            "Set NCCL_DEBUG=WARN to see NCCL's messages; `python -m mirrored devices` shows the "
            "versions that are used."
        )


def _check_memory(send: Any, receive: Any) -> None:
    for array in (send, receive):
        if not array.flags.c_contiguous:
            raise ValueError(
                "The arrays of an all-reduce must be contiguous. Received: an array of shape "
                f"{array.shape} that is not. Copy it first."
            )
    first, second = send.data.ptr, receive.data.ptr
    if first != second and max(first, second) < min(first, second) + send.nbytes:
        raise ValueError(
            "A sum must be written exactly over its input, or apart from it. Received: arrays of "
            f"{send.nbytes} bytes that begin {abs(first - second)} bytes apart."
        )
