"""Streams as queues whose work runs late, and in any order that CUDA allows.

What the backend forgot to wait for has then, as a rule, not happened yet.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from emulated_cuda.faults import EmulatorError

# How many actions run on their own after one was asked for, and how often any do: the other
# extreme, a GPU that is done before the host looks.
_EAGERNESS = 0.05
_AT_ONCE = 12
# For how many of these times work may wait for more of its kind.
_PATIENCE = 50
# Seconds between one look and the next where streams wait for time to pass.
_OFTEN = 0.001
# How often the order in which streams go first changes within one wait.
_CHANGE = 0.1


class Action(Protocol):
    """Something that a queue does."""

    @property
    def label(self) -> str:
        """What to call it in messages."""
        ...

    def ready(self) -> bool:
        """Whether it can go on."""
        ...

    def step(self) -> bool:
        """Go on; return whether it is done."""
        ...


class Delay:
    """Nothing, until some seconds from now.

    Args:
        seconds: How many.
    """

    label = "delay"

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def ready(self) -> bool:
        """Whether they are over."""
        return time.monotonic() >= self._until

    def step(self) -> bool:
        """Be done."""
        return True


@dataclass(eq=False)
class Work:
    """A kernel, a copy or the like.

    Attributes:
        label: What to call it in messages.
        function: Does it.
        waits: Whether it waits for more of its kind, as long as nobody waits for it.
    """

    label: str
    function: Callable[[], None]
    waits: Callable[[], bool] = lambda: False

    def ready(self) -> bool:
        """Return True."""
        return True

    def step(self) -> bool:
        """Do all of it."""
        self.function()
        return True


@dataclass(eq=False)
class Mark:
    """A place in a queue; what an event stands for after it was recorded."""

    queue: Queue
    label: str = "event"
    done: bool = False
    time: float = 0.0

    def ready(self) -> bool:
        """Return True."""
        return True

    def step(self) -> bool:
        """Note that the queue has come to it, and when."""
        self.done, self.time = True, time.perf_counter()
        return True


class Event:
    """What a handle of an event stands for.

    Args:
        card: The card that it was made on.
        timed: Whether it may be asked for its time.

    Attributes:
        mark: Where it was recorded last.
        captured: The capture that it was recorded in last, and after which nodes.
    """

    def __init__(self, card: int, timed: bool) -> None:
        self.card = card
        self.mark: Mark | None = None
        self.captured: tuple[Capture, frozenset[int]] | None = None
        self.timed = timed


@dataclass(eq=False)
class Wait:
    """A wait for a place in another queue."""

    mark: Mark
    label: str = "wait"

    def ready(self) -> bool:
        """Whether the other queue has come there."""
        return self.mark.done

    def step(self) -> bool:
        """Let the queue go on."""
        return True


@dataclass(eq=False)
class Node:
    """One action of a captured graph, and the numbers of those before it."""

    label: str
    function: Callable[[], None]
    before: frozenset[int]


class Run:
    """One launch of a graph.

    Args:
        nodes: The graph's.
        previous: The launch of the same graph before, which ends first.
        rng: Says which of the nodes that are ready goes next.
    """

    def __init__(self, nodes: list[Node], previous: Run | None, rng: random.Random) -> None:
        self.label = f"graph of {len(nodes)}"
        self.done = not nodes
        self._nodes = nodes
        self._previous = previous
        self._rng = rng
        self._waiting = [len(node.before) for node in nodes]
        self._after: list[list[int]] = [[] for _ in nodes]
        for number, node in enumerate(nodes):
            for before in node.before:
                self._after[before].append(number)
        self._ready = [number for number, count in enumerate(self._waiting) if not count]
        self._left = len(nodes)

    def ready(self) -> bool:
        """Whether the launch before has ended."""
        if self._previous is not None and not self._previous.done:
            return False
        self._previous = None
        return True

    def step(self) -> bool:
        """Run one node."""
        if self._left:
            number = self._ready.pop(self._rng.randrange(len(self._ready)))
            self.label = self._nodes[number].label
            self.done = True  # Where it fails, the next launch does not wait.
            self._nodes[number].function()
            for after in self._after[number]:
                self._waiting[after] -= 1
                if not self._waiting[after]:
                    self._ready.append(after)
            self._left -= 1
        self.done = not self._left
        return self.done


@dataclass(eq=False)
class Queue:
    """A stream.

    Attributes:
        handle: What CUDA calls a stream by.
        card: The number of its card.
        priority: The lower, the more urgent; the emulation notes it alone.
        actions: What it has still to do.
        capture: What it is captured into, if it is.
        tail: The numbers of the captured nodes that its next one comes after.
        destroyed: Whether nobody can ask it for more.
        recent: What ran last, for messages.
    """

    handle: int
    card: int
    priority: int = 0
    actions: deque[Action] = field(default_factory=deque)
    capture: Capture | None = None
    tail: frozenset[int] = frozenset()
    destroyed: bool = False
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=6))

    def run_one(self) -> None:
        """Let the first action go on; it is gone where it fails."""
        action = self.actions[0]
        try:
            done = action.step()
        except BaseException:
            self.actions.popleft()
            raise
        finally:
            self.recent.append(action.label)
        # With an error of the card the queue was emptied.
        if done and self.actions and self.actions[0] is action:
            self.actions.popleft()


@dataclass(eq=False)
class Capture:
    """A capture that goes on.

    Attributes:
        origin: The stream that it began on.
        mode: CUDA's number.
        thread: The one that began it.
        nodes: What was captured.
        queues: The streams that take part.
        broken: Whether something that is not allowed was done.
        over: Whether it has ended.
    """

    origin: Queue
    mode: int
    thread: int
    nodes: list[Node] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    broken: bool = False
    over: bool = False

    def add(self, queue: Queue, label: str, function: Callable[[], None]) -> None:
        """Capture work of one of the streams."""
        self.nodes.append(Node(label, function, queue.tail))
        queue.tail = frozenset((len(self.nodes) - 1,))

    def join(self, queue: Queue, after: frozenset[int]) -> None:
        """Let a stream take part, or wait for more."""
        if queue.capture is None:
            queue.capture, queue.tail = self, frozenset()
            self.queues.append(queue)
        queue.tail |= after

    def unjoined(self) -> bool:
        """Whether work of other streams is not before the end of the origin's."""
        seen: set[int] = set()
        left = list(self.origin.tail)
        while left:
            number = left.pop()
            if number not in seen:
                seen.add(number)
                left.extend(self.nodes[number].before)
        return any(number not in seen for number in range(len(self.nodes)))

    def end(self) -> None:
        """Let the streams work again."""
        self.over = True
        for queue in self.queues:
            queue.capture, queue.tail = None, frozenset()


class Scheduler:
    """Runs the queues' work, each in order, all of them mixed at random.

    Args:
        rng: Says how.
    """

    def __init__(self, rng: random.Random) -> None:
        self.queues: list[Queue] = []
        self._rng = rng
        self._waited = 0

    def run_until(self, done: Callable[[], bool]) -> None:
        """Let work run until something holds."""
        order = self._shuffled()
        while not done():
            queue = _first_ready(order)
            if queue is None:
                if any(q.actions and isinstance(q.actions[0], Delay) for q in self.queues):
                    time.sleep(_OFTEN)
                    continue
                waiting = [(q.handle, q.actions[0].label) for q in self.queues if q.actions]
                raise EmulatorError(f"Streams wait for each other for ever: {waiting}.")
            queue.run_one()
            if self._rng.random() < _CHANGE:
                order = self._shuffled()

    def progress(self) -> None:
        """Let some work run, as a GPU does while the host asks."""
        order = self._shuffled()
        for _ in range(self._rng.randrange(_AT_ONCE)):
            queue = _first_ready(order)
            if queue is None:
                return
            action = queue.actions[0]
            if isinstance(action, Work) and action.waits():
                self._waited += 1
                if self._waited < _PATIENCE:
                    return
            self._waited = 0
            queue.run_one()

    def maybe_progress(self) -> None:
        """Let some work run, at times."""
        if self._rng.random() < _EAGERNESS:
            self.progress()

    def _shuffled(self) -> list[Queue]:
        self.queues = [queue for queue in self.queues if queue.actions or not queue.destroyed]
        order = [queue for queue in self.queues if queue.actions]
        self._rng.shuffle(order)
        return order


def _first_ready(queues: list[Queue]) -> Queue | None:
    for queue in queues:
        if queue.actions and queue.actions[0].ready():
            return queue
    return None
