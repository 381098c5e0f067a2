"""A backend as small as it can be that has streams: shared memory, as on Apple's and Grace's chips.

It is NumPy on the host's memory; a stream is a queue that is served when somebody waits for it.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.backends import Backend, Hardware, HostBackend, Platform, Storage
from mirrored.backends.host import values_on_host
from mirrored.backends.stream_backend import StreamBackend


class QueuedBackend(HostBackend, StreamBackend):
    """One logical device, with one stream; an event is the stream and whether it has come there."""

    streamed = True

    def __init__(self) -> None:
        self._queue: deque[Callable[[], object]] = deque()
        self._runs = False

    def _ask(self, function: Callable[..., object], *args: Any, **attrs: Any) -> None:
        if self._runs:  # A part of what runs.
            function(*args, **attrs)
        else:
            self._queue.append(partial(function, *args, **attrs))

    def another(self, *, urgent: bool = False) -> Any:
        return type(self)()

    def record(self) -> Any:
        done: list[bool] = []
        self._ask(done.append, True)
        return self, done

    def is_done(self, event: Any) -> bool:
        return bool(event[1])

    def wait_on_host(self, event: Any) -> None:
        stream, done = event
        while not (done or stream._runs):
            stream._runs = True
            try:
                stream._queue.popleft()()
            finally:
                stream._runs = False

    def wait(self, event: Any) -> None:
        self._ask(self.wait_on_host, event)

    def synchronize(self) -> None:
        self.wait_on_host(self.record())

    def call(self, kernel: Any, args: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        self._ask(super().call, kernel, tuple(args), attrs)

    def to_host(self, array: Any, out: NDArray[Any] | None = None) -> NDArray[Any]:
        self.synchronize()
        return super().to_host(array, out)

    def copy_between(self, source: Any, target: Any) -> None:
        self.synchronize()  # A source of the host may change as soon as this returns.
        super().copy_between(source, target)

    def copy_from_host(self, storage: Storage, array: NDArray[Any]) -> None:
        self.copy_between(array, storage.array)

    def copy_across(self, backend: Backend, source: Any, target: Any) -> None:
        self.copy_between(values_on_host(backend, source), target)

    def bring(self, source: NDArray[Any], target: Any) -> None:
        self._ask(np.copyto, target, source)

    def fetch(self, copies: Sequence[tuple[Any, NDArray[Any]]]) -> Any:
        for source, target in copies:
            self._ask(np.copyto, target, source)
        return self.record()


class Queued(Platform):
    """Two devices of that kind."""

    def hardware(self) -> Sequence[Hardware]:
        return [Hardware("GPU", i, "queue", lambda _: QueuedBackend()) for i in range(2)]
