"""The emulated machine: its cards, its streams, and what has gone wrong on it.

All functions of the emulated CUDA come by here, so that each can be made to fail.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from emulated_cuda import faults
from emulated_cuda.addresses import Addresses, Block, Region, poison
from emulated_cuda.cards import Card
from emulated_cuda.faults import EmulatorError, Injected
from emulated_cuda.queues import (
    Capture,
    Event,
    Mark,
    Node,
    Queue,
    Run,
    Scheduler,
    Wait,
    Work,
)

# cudaStreamCaptureMode: whether other threads may disturb a capture, and whether they may end it.
_GLOBAL, _RELAXED = 0, 2


class _Current(threading.local):
    """What a thread has set: its card, whether it is bound to a context, and CuPy's cards in it."""

    def __init__(self) -> None:
        self.device = 0
        self.bound = False
        self.known: set[int] = set()


class Machine:
    """Cards, streams and memory.

    Args:
        cards: The cards, in the order of their numbers.
        seed: Says in which order work runs.

    Attributes:
        counts: How many kernels and graphs were launched, how often memory was taken of a card
            ('malloc'), how many events were made, and how many cards have a context.
        failures: What was found wrong while work ran.
        last_looks: What libraries look at in the end; each raises where it finds something.
    """

    def __init__(self, cards: Sequence[Card], seed: int = 0) -> None:
        self.cards = list(cards)
        self.lock = threading.RLock()
        self.rng = random.Random(seed)
        self.counts: Counter[str] = Counter(kernels=0, graphs=0, malloc=0, contexts=0, events=0)
        self.failures: list[EmulatorError] = []
        self.last_looks: list[Callable[[], None]] = []
        self.addresses = Addresses()
        self.scheduler = Scheduler(self.rng)
        self.events: dict[int, Event] = {}
        self.current = _Current()
        self.peers: set[tuple[int, int]] = set()  # (a, b): a may read and write b's memory.
        self.contexts: set[int] = set()
        self.loaded: dict[tuple[str, tuple[str, ...], int], Any] = {}  # CuPy's modules, by card.
        self.freed: deque[Callable[[], None]] = deque()  # By finalizers, which take no lock.
        self._limits = [card.memory for card in cards]
        self._lost: dict[int, int] = {}
        self._injected: list[Injected] = []
        self._queues: dict[int, Queue] = {}
        self._null = [Queue(0, card) for card in range(len(self.cards))]
        self.scheduler.queues.extend(self._null)
        self._handles = 0x5EED00
        self._captures: list[Capture] = []

    # ------------------------------------------------------------------ for tests

    def fail(
        self, function: str | Sequence[str], status: int, *, after: int = 1, times: float = 1
    ) -> None:
        """Let calls to come fail.

        Args:
            function: The name of the function, or those of several, as in 'memcpyAsync';
                'launchKernel' for kernels, 'malloc' for memory that a pool takes of the card.
            status: The cudaError_t that it gives, or the status of a library's function, as in
                'ncclAllReduce'. With a sticky one of CUDA's the card is lost.
            after: Which of the calls to come is the first, counted from 1.
            times: How many calls fail, one after the other.
        """
        functions = (function,) if isinstance(function, str) else tuple(function)
        self._injected.append(Injected(functions, status, after, times))

    def limit_card(self, card: int, nbytes: int) -> None:
        """Let other programs have all of a card's memory but so many bytes."""
        self._limits[card] = nbytes

    def live_bytes(self, card: int = 0) -> int:
        """Return the bytes that are taken of a card, cached ones included."""
        with self.lock:
            self.settle()
            return self.addresses.bytes_in_use(card)

    def finish(self) -> None:
        """Let all work run, look at all guards, and raise what was found wrong.

        Raises:
            EmulatorError: Something was.
        """
        with self.lock:
            self.settle()
            self._note(
                self.run_until,
                lambda: not any(queue.actions for queue in self.scheduler.queues),
            )
            for block in self.addresses.blocks():
                self._note(block.check, "Somebody")
            for look in self.last_looks:
                self._note(look)
            if self.failures:
                raise self.failures[0]

    # ------------------------------------------------------------------ calls

    def call(self, function: str, card: int | None = None) -> threading.RLock:
        """Enter a function: one at a time, and none on a lost card.

        Args:
            function: Its name.
            card: The card that it is about; None for the current one.

        Returns:
            What the caller holds while the function is in.
        """
        if self.freed or self._lost or self._injected:  # Seldom, and every call comes by here.
            with self.lock:
                self.enter(function, card)
        return self.lock

    def enter(self, function: str, card: int | None) -> None:
        """Raise what a call of a function gives; see `call`."""
        self.settle()
        card = self.current.device if card is None else card
        status = self._lost.get(card, 0) or self.next_injected(function)
        if status:
            if status in faults.STICKY:
                self._lose(card, status)
            raise faults.error(status, launch=function == "launchKernel")

    def use(self, card: int) -> int:
        """Note that a card is used: CUDA makes a context there."""
        self.current.bound = True
        if card not in self.contexts:
            self.contexts.add(card)
            self.counts["contexts"] += 1
        return card

    def ensure_context(self) -> None:
        """Do what CuPy does before it loads or launches for the first time in a thread.

        It asks for the free memory, which is refused in a capture here.
        """
        if self.current.device not in self.current.known:
            self.unsafe()
            self.current.known.add(self.use(self.current.device))

    def next_injected(self, function: str) -> int:
        """Return the status that this call of a function is to give, 0 for none of its own."""
        for injected in self._injected:
            if function in injected.functions:
                injected.after -= 1
                if injected.after <= 0:
                    injected.times -= 1
                    if not injected.times:
                        self._injected.remove(injected)
                    return injected.status
        return 0

    def _lose(self, card: int, status: int) -> None:
        self._lost[card] = status
        for capture in [each for each in self._captures if each.origin.card == card]:
            capture.end()  # It went with the card's context: nobody can end it any more.
            self._captures.remove(capture)
        for queue in self.scheduler.queues:
            if queue.card == card:
                for action in queue.actions:
                    if isinstance(action, Mark):
                        action.done = True  # Others must not wait for it for ever.
                queue.actions.clear()

    def settle(self) -> None:
        """Do what finalizers left to do."""
        while self.freed:
            self.freed.popleft()()

    # ------------------------------------------------------------------ work

    def handle(self) -> int:
        """Return a number that nothing else is called by."""
        self._handles += 0x10
        return self._handles

    def add_queue(self, card: int) -> Queue:
        """Return a new stream of a card."""
        queue = Queue(self.handle(), card)
        self._queues[queue.handle] = queue
        self.scheduler.queues.append(queue)
        return queue

    def destroy_queue(self, handle: int) -> None:
        """Forget a stream by name; its work is still done."""
        queue = self._queues.pop(handle, None)
        if queue is not None:
            queue.destroyed = True

    def queue(self, handle: int) -> Queue:
        """Return the stream that a handle stands for."""
        if not handle:
            return self._null[self.current.device]
        if handle not in self._queues:
            raise faults.error(faults.INVALID_RESOURCE_HANDLE)
        return self._queues[handle]

    def null_queue(self, card: int) -> Queue:
        """Return the stream of a card that is there from the start."""
        return self._null[card]

    def event(self, handle: int) -> Event:
        """Return the event that a handle stands for."""
        if handle not in self.events:
            raise faults.error(faults.INVALID_RESOURCE_HANDLE)
        return self.events[handle]

    def enqueue(
        self,
        queue: Queue,
        label: str,
        function: Callable[[], None],
        waits: Callable[[], bool] = lambda: False,
    ) -> None:
        """Ask a stream for work, or note it in the graph that it is captured into; see `Work`."""
        self.check_queue(queue)
        if queue.capture is not None:
            queue.capture.add(queue, label, self._guarded(queue, function))
            return
        queue.actions.append(Work(label, self._guarded(queue, function), waits))
        self.scheduler.maybe_progress()

    def enqueue_graph(self, queue: Queue, nodes: list[Node], previous: Run | None) -> Run:
        """Ask a stream for all of a graph."""
        run = Run(nodes, previous, self.rng)
        queue.actions.append(run)
        self.scheduler.maybe_progress()
        return run

    def check_queue(self, queue: Queue) -> None:
        """Raise where a stream takes no work now."""
        if queue.capture is not None and queue.capture.broken:
            raise faults.error(faults.CAPTURE_INVALIDATED)
        if not queue.handle:
            for capture in self._captures:
                if capture.origin.card == queue.card:
                    capture.broken = True
                    raise faults.error(faults.CAPTURE_IMPLICIT)

    def _guarded(self, queue: Queue, function: Callable[[], None]) -> Callable[[], None]:
        """Return work that does nothing on a lost card, and that loses it with an error."""

        def run() -> None:
            if queue.card in self._lost:
                return
            try:
                function()
            except EmulatorError as error:
                self.failures.append(error)
                raise
            except RuntimeError as error:
                # Whoever waits for the card is told. What runs meanwhile belongs to others.
                self._lose(queue.card, error.status)  # type: ignore[attr-defined]

        return run

    def _note(self, check: Callable[..., None], *args: object) -> None:
        try:
            check(*args)
        except EmulatorError as error:
            self.failures.append(error)

    def run_until(self, done: Callable[[], bool]) -> None:
        """Let work run until something holds."""
        self.scheduler.run_until(done)

    def synchronize(self, queues: Sequence[Queue]) -> None:
        """Let the host wait until streams are empty."""
        if any(queue.capture is not None for queue in queues):
            self.break_captures([queue.capture for queue in queues if queue.capture])
        self.unsafe()
        self.run_until(lambda: not any(queue.actions for queue in queues))
        for queue in queues:
            self.raise_if_lost(queue.card)

    def raise_if_lost(self, card: int) -> None:
        """Raise the error of a lost card."""
        if card in self._lost:
            raise faults.error(self._lost[card])

    # ------------------------------------------------------------------ capture

    def begin_capture(self, queue: Queue, mode: int) -> None:
        """Capture what a stream is asked for from now on."""
        if not queue.handle:
            raise faults.error(faults.CAPTURE_UNSUPPORTED)
        if queue.capture is not None:
            raise faults.error(faults.ILLEGAL_STATE)
        capture = Capture(queue, mode, threading.get_ident())
        capture.join(queue, frozenset())
        self._captures.append(capture)

    def end_capture(self, queue: Queue) -> list[Node]:
        """Return what was captured, if all was as it should be."""
        capture = queue.capture
        if capture is None:
            raise faults.error(faults.ILLEGAL_STATE)
        if capture.origin is not queue:
            capture.broken = True
            raise faults.error(faults.CAPTURE_UNMATCHED)
        if capture.mode != _RELAXED and capture.thread != threading.get_ident():
            raise faults.error(faults.CAPTURE_WRONG_THREAD)
        unjoined = capture.unjoined()
        capture.end()
        self._captures.remove(capture)
        if capture.broken:
            raise faults.error(faults.CAPTURE_INVALIDATED)
        if unjoined:
            raise faults.error(faults.CAPTURE_UNJOINED)
        return capture.nodes

    def unsafe(self) -> None:
        """Enter what may not happen during a capture: it breaks the captures that it disturbs.

        That CUDA would allow some of it in relaxed mode is no help: a graph that was captured
        while memory was taken, say, would take it only once.
        """
        if self._captures:
            thread = threading.get_ident()
            disturbed = [c for c in self._captures if c.thread == thread or c.mode == _GLOBAL]
            self.break_captures(disturbed)

    def break_captures(self, captures: Sequence[Capture]) -> None:
        """Break captures, if there are any, and raise."""
        for capture in captures:
            capture.broken = True
        if captures:
            raise faults.error(faults.CAPTURE_UNSUPPORTED)

    def captures_on(self, card: int) -> list[Capture]:
        """Return the captures that go on on a card."""
        return [capture for capture in self._captures if capture.origin.card == card]

    def record(self, event: Event, queue: Queue) -> None:
        """Record an event on a stream of its own card."""
        if event.card != queue.card:
            raise faults.error(faults.INVALID_RESOURCE_HANDLE)
        self.check_queue(queue)
        if queue.capture is not None:
            event.captured, event.mark = (queue.capture, queue.tail), None
            return
        event.captured, event.mark = None, Mark(queue)
        queue.actions.append(event.mark)

    def wait(self, queue: Queue, event: Event) -> None:
        """Let a stream wait for an event."""
        self.check_queue(queue)
        if event.captured is not None:
            capture, after = event.captured
            if capture.over:
                raise faults.error(faults.CAPTURED_EVENT)
            if queue.capture not in (None, capture):
                raise faults.error(faults.CAPTURE_MERGE)
            capture.join(queue, after)
        elif queue.capture is not None:
            queue.capture.broken = True
            raise faults.error(faults.CAPTURE_ISOLATION)
        elif event.mark is not None:
            queue.actions.append(Wait(event.mark))

    # ------------------------------------------------------------------ memory

    def free_bytes(self, card: int) -> int:
        """Return what can still be taken of a card."""
        return max(0, self._limits[card] - self.addresses.bytes_in_use(card))

    def malloc(self, nbytes: int) -> Region:
        """Take memory of the current card."""
        card = self.use(self.current.device)
        self.counts["malloc"] += 1
        with self.call("malloc"):
            self.unsafe()
            if nbytes > self.free_bytes(card):
                raise faults.error(faults.MEMORY_ALLOCATION)
            region = Region(nbytes, card)
            self.addresses.add(region)
            return region

    def free(self, region: Region) -> None:
        """Give memory of a card back, once all its streams are done with it."""
        card = region.card
        queues = [queue for queue in self.scheduler.queues if queue.card == card]
        self.run_until(lambda: not any(queue.actions for queue in queues))
        self.addresses.end(region)

    def recycled(self, block: Block, queue: Queue, used: bool) -> None:
        """Prepare memory for an array, or take it back, in the order of its stream's work."""
        if queue.capture is not None:
            block.guarded = False  # What is captured would be done with each launch.
        elif not used:
            queue.actions.append(Work("new memory", self._guarded(queue, block.prepare)))
        else:

            def take_back() -> None:
                block.check(f"Work of {list(queue.recent)}")
                block.guarded = False
                poison(block.address, block.asked)

            queue.actions.append(Work("freed memory", self._guarded(queue, take_back)))
