"""Enters a card's context, one thread at a time, and translates CUDA's errors.

A graph is captured from the stream that all work of a device goes to, so other threads have to wait
until it is.
"""

import contextlib
import functools
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from mirrored.backends.backend import OutOfPoolMemory
from mirrored.backends.cuda.faults import translation
from mirrored.errors import ResourceExhaustedError

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
    CUDA 12 on: in a new thread on card 0, whoever uses that.

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
                f"{self._where} has too little memory left for what kernels, libraries and copies "
                "need beside arrays. Give its logical devices lower memory limits, or end other "
                "programs that use the card."
            )
        if fault is not None:
            try:
                raise fault from error
            finally:
                del fault  # As in `translated`.
