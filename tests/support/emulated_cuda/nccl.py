"""NCCL over the emulated cards: calls, groups, and collectives that hang as they are told.

It is as unforgiving as the real library, and says so where that would only hang or crash.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable
from ctypes import c_int, c_size_t, c_ubyte, c_void_p
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from emulated_cuda.collectives import (
    AVERAGE,
    BFLOAT16,
    DATATYPES,
    OPERATIONS,
    Asked,
    Fate,
    Part,
    Rank,
    Span,
)
from emulated_cuda.communicators import (
    CUDA_ERROR,
    INTERNAL_ERROR,
    INVALID_ARGUMENT,
    INVALID_USAGE,
    OK,
    REMOTE_ERROR,
    Communicators,
    Joining,
)
from emulated_cuda.compiler import compile_all
from emulated_cuda.faults import EmulatorError
from emulated_cuda.foreign import Library, write
from emulated_cuda.machine import Machine
from emulated_cuda.processes import ID_BYTES, new_id

_TEXTS = (
    "no error",
    "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    "unhandled system error (run with NCCL_DEBUG=INFO for details)",
    "internal error - please report this issue to the NCCL developers",
    "invalid argument (run with NCCL_DEBUG=WARN for details)",
    "invalid usage (run with NCCL_DEBUG=WARN for details)",
    "remote process exited or there was a network error",
    "NCCL operation in progress",
    "timeout",
    "unknown result code",
)
_LONGEST_TEXT = 1024
# What sets the card that was current before again, which makes a context there.
_SET_CARDS = frozenset(
    {"ncclCommInitAll", "ncclCommInitRank", "ncclGroupEnd", "ncclCommFinalize", "ncclCommDestroy"}
)
_SET_CARDS |= {"ncclCommAbort"}
# Of calls that may last: which argument is the communicator.
_ABOUT = {"ncclAllReduce": 5, "ncclCommFinalize": 0, "ncclCommGetAsyncError": 0}
# What has its effect even where it gives an error: it may not be asked again.
_DONE_ANYWAY = frozenset({"ncclGroupEnd", "ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort"})


class UniqueId(ctypes.Structure):
    """ncclUniqueId."""

    _fields_ = (("internal", c_ubyte * ID_BYTES),)


class Launched(NamedTuple):
    """What a rank was asked for, from when its stream has it."""

    what: str
    rank: int
    elements: int
    datatype: int
    stream: int


@dataclass
class _Group:
    """Calls that a thread collects; one error is the error of all.

    Attributes:
        depth: How many starts have no end.
        parts: What is launched at the outermost end.
        freed: Ranks that go at the outermost end.
        joining: Ranks that are connected with those of other processes then.
        result: The first error.
    """

    depth: int = 0
    parts: list[Part] = field(default_factory=list)
    freed: list[Rank] = field(default_factory=list)
    joining: list[Joining] = field(default_factory=list)
    result: int = OK


@dataclass
class _Coming:
    """What happens to a call, or to a collective, when so many have come, itself included."""

    after: int
    what: Any
    function: str = ""


def _arrived(coming: list[_Coming], function: str = "") -> Any:
    """Count one more; return what happens to it, None for nothing."""
    counted = [each for each in coming if each.function == function]
    for each in counted:
        each.after -= 1
    for each in counted:
        if not each.after:
            coming.remove(each)
            return each.what
    return None


class _Nccl:
    """The library's state."""

    def __init__(self, machine: Machine) -> None:
        self.calls: Counter[str] = Counter()
        self.log: list[Launched] = []
        self.fates: list[_Coming] = []
        self.blocked: list[_Coming] = []
        self._machine = machine
        self.communicators = Communicators(machine, self._say)
        self._groups: dict[threading.Thread, _Group] = {}
        self._inside: dict[threading.Thread, int] = {}  # A communicator that a thread's call uses.
        self._texts = [ctypes.create_string_buffer(text.encode()) for text in _TEXTS]
        self._last_error = ctypes.create_string_buffer(_LONGEST_TEXT)
        machine.last_looks.append(self.look)

    def called(self, name: str, function: Callable[..., int], *args: Any) -> int:
        """Call a function as C would: nothing can be raised through it."""
        machine = self._machine
        with machine.lock:
            if name in _ABOUT:
                self._inside[threading.current_thread()] = args[_ABOUT[name]] or 0
            self.calls[name] += 1
            wait = _arrived(self.blocked, name)
        if wait is not None:
            wait()  # Without the lock: others go on.
        if name == "ncclGroupEnd" and not self._have_joined():
            return INTERNAL_ERROR
        with machine.lock:
            result = machine.next_injected(name)
            if result:
                self._say(f"{name} was told to fail")
            group = self._groups.get(threading.current_thread())
            if group is not None:
                group.result = group.result or result
            if not result or name in _DONE_ANYWAY:
                result = self._done(function, args) or result
            if name in _SET_CARDS:
                machine.use(machine.current.device)
            if group is not None:
                group.result = group.result or result
            self._inside.pop(threading.current_thread(), None)
            return result

    def look(self) -> None:
        """Raise where something was left behind.

        Raises:
            EmulatorError: A group is open, or a communicator was not ended.
        """
        if self._groups:
            names = [thread.name for thread in self._groups]
            raise EmulatorError(f"NCCL: groups were started and not ended, by threads {names}.")
        left = self.communicators.left()
        if left:
            raise EmulatorError(
                f"NCCL: communicators were neither destroyed nor aborted: {', '.join(left)}."
            )

    def _done(self, function: Callable[..., int], args: tuple[Any, ...]) -> int:
        try:
            self._machine.settle()
            return function(*args)
        except EmulatorError as error:
            self._machine.failures.append(error)
            return self._say(str(error), INTERNAL_ERROR)
        except RuntimeError as error:
            return self._say(f"Cuda failure '{error}'", CUDA_ERROR)

    def _say(self, text: str, result: int = OK) -> int:
        self._last_error.value = text.encode()[: _LONGEST_TEXT - 1]
        return result

    # ------------------------------------------------------------------ what it says

    def get_version(self, to: int | None) -> int:
        if not to:
            return INVALID_ARGUMENT
        write(to, c_int(self.communicators.version))
        return OK

    def error_string(self, result: int) -> int:
        self.calls["ncclGetErrorString"] += 1
        known = 0 <= result < len(_TEXTS) - 1
        return ctypes.addressof(self._texts[result if known else -1])

    def last_error(self, comm: int | None) -> int:
        self.calls["ncclGetLastError"] += 1
        return ctypes.addressof(self._last_error)

    # ------------------------------------------------------------------ collectives

    def init_all(self, to: int | None, count: int, devices: int | None) -> int:
        if threading.current_thread() in self._groups:
            raise EmulatorError("NCCL: communicators that are made in a group are not there yet.")
        return self.communicators.make(to, count, devices)

    def unique_id(self, to: int | None) -> int:
        if not to:
            return INVALID_ARGUMENT
        write(to, (c_ubyte * ID_BYTES)(*new_id()))
        return OK

    def init_rank(self, to: int | None, count: int, key: UniqueId, number: int) -> int:
        group = self._groups.get(threading.current_thread())
        if group is None:
            raise EmulatorError("NCCL: ranks of several processes are asked for in a group.")
        card = self._machine.current.device
        group.joining.append(Joining(to or 0, count, bytes(key.internal), number, card))
        return OK

    def _have_joined(self) -> bool:
        """Connect the ranks of the group that ends; others may go on meanwhile."""
        group = self._groups.get(threading.current_thread())
        if group is None or group.depth > 1 or group.result or not group.joining:
            return True
        with self._machine.lock:
            clique = self.communicators.join(group.joining)
        clique.meet()
        return True

    def group_start(self) -> int:
        self._groups.setdefault(threading.current_thread(), _Group()).depth += 1
        return OK

    def group_end(self) -> int:
        thread = threading.current_thread()
        group = self._groups.get(thread)
        if group is None:
            return self._say("ncclGroupEnd: not in a group call.", INVALID_USAGE)
        group.depth -= 1
        if group.depth:
            return OK
        del self._groups[thread]
        lost = [error for rank in group.freed if (error := self._lost(rank)) is not None]
        if lost:
            raise lost[0]
        return group.result or self._launch(group.parts)

    def abort(self, comm: int | None) -> int:
        rank = self.communicators.flag(comm)
        group = self._groups.get(threading.current_thread())
        if rank is not None and group is not None:
            group.freed.append(rank)
        elif rank is not None:
            self._free(rank)
        return OK

    def _lost(self, rank: Rank) -> RuntimeError | None:
        """Free a rank; return the error of its card, if it is lost."""
        try:
            self._free(rank)
        except RuntimeError as error:
            return error
        return None

    def _free(self, rank: Rank) -> None:
        own = threading.current_thread()
        users = [
            thread.name
            for thread, group in self._groups.items()
            if thread is not own and any(part.rank is rank for part in group.parts)
        ]
        users += [
            thread.name
            for thread, comm in self._inside.items()
            if thread is not own and comm and self.communicators.rank(comm) is rank
        ]
        if users:
            raise EmulatorError(f"NCCL: a communicator was freed that threads {users} are using.")
        self.communicators.free(rank)

    def all_reduce(
        self,
        send: int | None,
        receive: int | None,
        count: int,
        datatype: int,
        operation: int,
        comm: int | None,
        stream: int | None,
    ) -> int:
        if not comm:
            return self._say("AllReduce : comm argument is NULL", INVALID_ARGUMENT)
        rank = self.communicators.rank(comm)
        if rank.finalized:
            raise EmulatorError("NCCL: a communicator was used that was finalized.")
        if rank.aborted:
            return self._say("AllReduce : the communicator was aborted", INVALID_USAGE)
        if datatype not in DATATYPES:
            return self._say(f"AllReduce : invalid type {datatype}", INVALID_ARGUMENT)
        if operation not in OPERATIONS:
            wrong = f"AllReduce : invalid reduction operation {operation}"
            return self._say(wrong, INVALID_ARGUMENT)
        if operation == AVERAGE and datatype != BFLOAT16 and DATATYPES[datatype].kind != "f":
            raise EmulatorError("NCCL: averages of integers are not emulated.")
        if not stream or self._machine.queue(stream).card != rank.card:
            raise EmulatorError("NCCL: a rank works on a stream of its own card, not the null one.")
        if not count:
            return OK
        sent, received = (
            self._span(rank, where or 0, count, datatype) for where in (send, receive)
        )
        if send != receive and sent.overlaps(received):
            raise EmulatorError("NCCL: what is sent and what is received overlap in part.")
        asked = Asked(count, datatype, operation)
        part = Part(rank, self._machine.queue(stream), sent, received, asked)
        group = self._groups.get(threading.current_thread())
        if group is not None:
            group.parts.append(part)
            return OK
        known = rank.clique.callers.setdefault(threading.current_thread(), rank.number)
        if known != rank.number:
            raise EmulatorError(
                "NCCL: one thread asks several ranks in a group, or waits for ever."
            )
        return self._launch([part])

    def _span(self, rank: Rank, address: int, count: int, datatype: int) -> Span:
        machine, itemsize = self._machine, DATATYPES[datatype].itemsize
        nbytes = count * itemsize
        block = machine.addresses.block(address)
        if block is None or address + nbytes > block.address + block.asked:
            raise EmulatorError(f"NCCL: {nbytes} bytes from {address:#x} on are in no array.")
        if not block.region.live:
            raise EmulatorError("NCCL: the pool of this memory is gone, and the memory with it.")
        if block.region.card != rank.card:
            raise EmulatorError(
                f"NCCL: an array is on card {block.region.card}, the rank on {rank.card}."
            )
        if address % itemsize:
            raise EmulatorError(f"NCCL: an array is not aligned to {itemsize} bytes.")
        return Span(address, nbytes)

    def _launch(self, parts: list[Part]) -> int:
        machine, result = self._machine, OK
        if any(part.queue.capture is not None for part in parts):
            raise EmulatorError("NCCL: collectives are not to be captured.")
        if parts:
            machine.unsafe()
            compile_all()
        for part in parts:
            rank = part.rank
            if rank.aborted:  # By another thread, since it was asked.
                result = self._say("the communicator was aborted", INTERNAL_ERROR)
                continue
            machine.raise_if_lost(rank.card)
            whole = rank.clique.open.get(rank.asked)
            if whole is None:
                fate: Fate = _arrived(self.fates) or Fate()
                whole = rank.clique.all_reduce(rank.asked, fate)
                rank.clique.open[rank.asked] = whole
                rank.clique.error = fate.error or rank.clique.error
            whole.add(part)
            rank.asked += 1
            rank.pending.add(part)
            part.queue.actions.append(part)
            elements, datatype, _ = part.asked
            stream = part.queue.handle
            self.log.append(Launched("ncclAllReduce", rank.number, elements, datatype, stream))
        machine.scheduler.maybe_progress()
        return result


class EmulatedNccl(Library):
    """The library as ctypes gives it, and what tests tell it.

    `Machine.fail` lets a call give an ncclResult_t. Ending a group, and ending a communicator in
    any way, is then done all the same, but for what the group would have launched.

    Attributes:
        calls: How often each function was called.
        log: What the streams were given, in order.
    """

    def __init__(self, machine: Machine) -> None:
        self._nccl = nccl = _Nccl(machine)
        self.calls = nccl.calls
        self.log = nccl.log
        made = nccl.communicators
        comm, about = [c_void_p], [c_void_p, c_void_p]
        functions: dict[str, tuple[list[Any], Callable[..., int]]] = {
            "ncclGetVersion": ([c_void_p], nccl.get_version),
            "ncclCommInitAll": ([c_void_p, c_int, c_void_p], nccl.init_all),
            "ncclGetUniqueId": ([c_void_p], nccl.unique_id),
            "ncclCommInitRank": ([c_void_p, c_int, UniqueId, c_int], nccl.init_rank),
            "ncclCommFinalize": (comm, made.finalize),
            "ncclCommDestroy": (comm, made.destroy),
            "ncclCommAbort": (comm, nccl.abort),
            "ncclCommGetAsyncError": (about, made.about(lambda rank: rank.clique.error)),
            "ncclCommCount": (about, made.about(lambda rank: rank.clique.size)),
            "ncclCommCuDevice": (about, made.about(lambda rank: rank.card)),
            "ncclCommUserRank": (about, made.about(lambda rank: rank.number)),
            "ncclGroupStart": ([], nccl.group_start),
            "ncclGroupEnd": ([], nccl.group_end),
            "ncclAllReduce": (
                [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p],
                nccl.all_reduce,
            ),
        }
        texts: dict[str, tuple[list[Any], Callable[..., int]]] = {
            "ncclGetErrorString": ([c_int], nccl.error_string),
            "ncclGetLastError": (comm, nccl.last_error),
        }
        statuses = {
            name: (types, partial(nccl.called, name, function))
            for name, (types, function) in functions.items()
        }
        super().__init__({**statuses, **texts}, texts)

    @property
    def version(self) -> int:
        """The library's version, as it says it: 23203 for 2.32.3."""
        return self._nccl.communicators.version

    @version.setter
    def version(self, version: int) -> None:
        self._nccl.communicators.version = version

    @property
    def hangs(self) -> bool:
        """Whether a collective hangs that was told to, and all that came before it is done."""
        return self._nccl.communicators.hang()

    def hang(self, *, after: int = 1) -> None:
        """Let a collective never complete, until its ranks are aborted.

        Args:
            after: Which of those that are launched from now on it is, counted from 1.
        """
        self._nccl.fates.append(_Coming(after, Fate(hangs=True)))

    def break_async(self, *, after: int = 1, result: int = REMOTE_ERROR) -> None:
        """Let a collective never complete, and its ranks have an asynchronous error from then on.

        Args:
            after: Which of those that are launched from now on it is, counted from 1.
            result: The error, as `ncclCommGetAsyncError` gives it.
        """
        self._nccl.fates.append(_Coming(after, Fate(hangs=True, error=result)))

    def wrong(self, *, after: int = 1, how: str = "sum") -> None:
        """Let the last rank get other results than the others, without a word.

        Args:
            after: Which of the collectives that are launched from now on it is, counted from 1.
            how: 'sum' for numbers of which each is wrong, 'nan' for NaN, or -1 for integers.
        """
        if how not in ("sum", "nan"):
            raise ValueError(f"Results are wrong as 'sum' or 'nan' says. Received: {how!r}.")
        self._nccl.fates.append(_Coming(after, Fate(wrong=how)))

    def block(
        self, function: str, until: float | threading.Event | None, *, after: int = 1
    ) -> None:
        """Let a call only begin, and return, once it is released; others go on meanwhile.

        Args:
            function: Its name.
            until: Seconds, or what releases it; None: an abort, as the real library has it.
            after: Which of the calls to come it is, counted from 1.
        """
        if not hasattr(self, function):
            raise ValueError(f"There is no such function. Received: {function!r}.")
        until = self._nccl.communicators.flagged if until is None else until
        wait = until.wait if isinstance(until, threading.Event) else partial(time.sleep, until)
        self._nccl.blocked.append(_Coming(after, wait, function))
