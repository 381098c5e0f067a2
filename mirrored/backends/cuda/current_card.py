"""Enters a card's context, one thread at a time, and translates CUDA's errors.

A graph is captured from the stream that all work of a device goes to, so other threads have to wait
until it is. Errors are told apart without importing CuPy: where it was never imported it raised
nothing.
"""

import contextlib
import functools
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from mirrored.backends.backend import OutOfPoolMemory
from mirrored.errors import DeviceLostError, ResourceExhaustedError

# Where CuPy defines the errors that carry a status of CUDA's, which are numbered alike.
_WITH_A_STATUS = (
    ("cupy_backends.cuda.api.runtime", "CUDARuntimeError"),
    ("cupy_backends.cuda.api.driver", "CUDADriverError"),
)
_OUT_OF_MEMORY = ("cupy.cuda.memory", "OutOfMemoryError")

_TOO_LITTLE_MEMORY = 2

# Those of which CUDA's documentation says that the process must end, and two of the hardware after
# which nothing on the card can be trusted: 214, memory that cannot be corrected, and 999.
_STICKY = frozenset({214, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999})

_ADVICE = {
    3: "A process that was forked from one that uses CUDA cannot use it: start processes with "
    "multiprocessing's method 'spawn'.",
    46: "Another program has the card for itself: end it, or see `nvidia-smi -q -d COMPUTE`.",
    100: "`nvidia-smi` shows which cards the driver has, and CUDA_VISIBLE_DEVICES may hide them.",
    101: "CUDA does not see the card: set CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER before the "
    "devices are listed, and do not change them after.",
    209: "The kernels were compiled for another card. Install the newest CuPy.",
    803: "The NVIDIA driver was upgraded while the machine ran: restart it.",
    804: "The compatibility libraries of this container do not support the card: use an image for "
    "the driver's version of CUDA.",
}
_OTHERWISE = (
    "If it happens again, please report it with the output of `python -m mirrored devices`."
)


class translated:
    """A context whose CUDA errors leave it as errors of the library.

    It has no state, so one may be entered again, inside itself and on several threads.

    Args:
        device: What to call the device in messages.
        asked: The bytes that are asked for inside, for errors of memory.

    Raises:
        OutOfPoolMemory: The card has too little memory.
        DeviceLostError: The card, or this process's work on it, cannot go on.
        RuntimeError: Any other error of CUDA's.

    Example:
        >>> with translated("NVIDIA H200 at 0000:01:00.0"):
        ...     raise ValueError("no error of CUDA's")
        Traceback (most recent call last):
        ValueError: no error of CUDA's
    """

    __slots__ = ("_asked", "_device")

    def __init__(self, device: str, *, asked: int = 0) -> None:
        self._device = device
        self._asked = asked

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        known = None if error is None else translation(error, self._device, self._asked)
        if known is not None:
            try:
                raise known from error
            finally:
                del known  # Else it would keep this frame, which keeps it, and arrays with both.


def translation(error: BaseException, device: str, asked: int = 0) -> Exception | None:
    """Return an error of CUDA's as one of the library; None for any other error."""
    status = _status(error)
    if status is None:
        return None
    if status == _TOO_LITTLE_MEMORY:
        return OutOfPoolMemory(asked, None)
    if status in _STICKY:
        return DeviceLostError(
            f"{device} failed, and this process cannot use it any more. Received: {error}. End "
            "the process and start it again; data on the host, such as a checkpoint that was "
            "read, can still be saved."
        )
    return RuntimeError(f"{device} refused an operation. Received: {error}. {advice(status)}")


def advice(status: int | None) -> str:
    """Return what to do about a status of CUDA's.

    Example:
        >>> advice(803)
        'The NVIDIA driver was upgraded while the machine ran: restart it.'
    """
    return _ADVICE.get(status, _OTHERWISE) if status is not None else _OTHERWISE


def _status(error: BaseException) -> int | None:
    """Return the status of an error of CUDA's, None for any other error."""
    for module, name in _WITH_A_STATUS:
        if _is_a(error, module, name):
            return int(error.status)  # type: ignore[attr-defined]
    return _TOO_LITTLE_MEMORY if _is_a(error, *_OUT_OF_MEMORY) else None


def _is_a(error: BaseException, module: str, name: str) -> bool:
    defined = getattr(sys.modules.get(module), name, None)
    return isinstance(defined, type) and isinstance(error, defined)


T = TypeVar("T")

_locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)


def lock_of(pci_bus_id: str) -> threading.RLock:
    """Return what a thread holds while it asks a card for work."""
    return _locks[pci_bus_id]


class made_once(functools.cached_property[T]):
    """A property that is computed when it is first asked for, by one thread.

    Its object has a `lock`. (The property of the standard library has no lock from 3.12 on.)
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        super().__init__(make)

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """Return the value."""
        if instance is None:
            return self
        with instance.lock:
            return super().__get__(instance, owner)


class _Thread(threading.local):
    """What one thread has set.

    Attributes:
        cards: The cards that it is in, the innermost one last.
        runtime: A reference to CuPy's runtime, once it has set a card there.
    """

    def __init__(self) -> None:
        self.cards: list[int] = []
        self.runtime: Callable[[], Any] = lambda: None


_thread = _Thread()


class CurrentCard:
    """A card, which is the thread's current one in its context, and stays so behind it.

    To set the card that was current before, as CuPy's own context does, makes a context there from
    CUDA 12 on: in a new thread on card 0, even where that is not used.

    Args:
        runtime: CuPy's.
        number: CUDA's number of the card.

    Attributes:
        id: The number.
    """

    def __init__(self, runtime: Any, number: int) -> None:
        self.id = number
        self._runtime = runtime

    def __enter__(self) -> None:
        runtime = self._runtime
        # A new thread's current card is 0 by name, and it has no context yet. Other libraries may
        # have set another card since.
        if _thread.runtime() is not runtime or runtime.getDevice() != self.id:
            runtime.setDevice(self.id)
            _thread.runtime = weakref.ref(runtime)
        _thread.cards.append(self.id)

    def __exit__(self, *_: object) -> None:
        cards = _thread.cards
        cards.pop()
        if cards and cards[-1] != self.id:  # What is around this goes on with its own card.
            with contextlib.suppress(RuntimeError):  # It says itself that it is lost.
                self._runtime.setDevice(cards[-1])

    def bind(self) -> None:
        """Let the thread ask for events, for which it needs a card, whichever."""
        if _thread.runtime() is not self._runtime:
            with self:
                pass


class Entered:
    """A context on a card. It is entered several times in a step, so it does the least it can.

    Args:
        where: What to call the card in messages.
        device: What makes it current.
        lock: What `lock_of` returns for it.

    Raises:
        ResourceExhaustedError: The card has no memory for what was asked for.
        DeviceLostError: It cannot go on.
    """

    __slots__ = ("_device", "_lock", "_where")

    def __init__(self, where: str, device: CurrentCard, lock: threading.RLock) -> None:
        self._where = where
        self._device = device
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._device.__enter__()
        except BaseException as error:
            self._lock.release()
            self._translate(error)
            raise

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        try:
            self._device.__exit__(kind, error, traceback)
        finally:
            self._lock.release()
        if error is not None:
            self._translate(error)

    def _translate(self, error: BaseException) -> None:
        """Raise what is an error of CUDA's as one of the library's."""
        fault = error if isinstance(error, OutOfPoolMemory) else translation(error, self._where)
        if isinstance(fault, OutOfPoolMemory):
            fault = ResourceExhaustedError(
                f"{self._where} has too little memory left for kernels, libraries and copies, in "
                "addition to arrays. Set lower memory limits for its logical devices, or end "
                "other programs that use the card."
            )
        if fault is not None:
            try:
                raise fault from error
            finally:
                del fault  # As in `translated`.
