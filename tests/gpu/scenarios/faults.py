"""Collectives that are late, incomplete or wrong on purpose, and what the card can do afterwards.

Every wait ends by itself: what keeps a card busy does so for some seconds only.
"""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import stand_ins
from collectives import Ranks, connected, make_strategy, place
from training import build, make_data

import mirrored as mr
from mirrored.backends import selftest
from mirrored.backends.cuda import nccl
from mirrored.errors import CollectiveError

# It counts nanoseconds on the card's own clock, whatever the frequency of its processors is.
SPIN = r"""
extern "C" __global__ void spin(unsigned long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}
"""
# Seconds: NCCL's first sum of a kind takes some of them too.
DEADLINE, BUSY = 3.0, 7.0
# Sums that are more than the driver's queue takes. The emulated one takes any number.
MANY = 100 if stand_ins.wanted() else 3000
CHILD = 8.0  # Of a self-test that hangs.


def keep_busy(backend: Any, seconds: float) -> None:
    """Let a device's own stream do nothing of use for some seconds."""
    if stand_ins.delay(backend.stream, seconds):
        return
    import cupy  # It is only there on a machine with a card.

    with backend.entered(), backend.stream:
        cupy.RawKernel(SPIN, "spin")((1,), (1,), (np.uint64(seconds * 1e9),))


def facts_of(error: CollectiveError) -> dict[str, Any]:
    """Return what an error tells."""
    return {
        "error": type(error).__name__,
        "text": str(error),
        "devices": error.devices,
        "aborted": error.aborted is True,
        "elapsed": error.elapsed or 0.0,
    }


def failed(action: Callable[[], object]) -> dict[str, Any]:
    """Return what is told by the CollectiveError that an action raises."""
    try:
        action()
    except CollectiveError as error:
        return facts_of(error)
    return {"error": "none", "text": "", "devices": (), "aborted": False, "elapsed": 0.0}


# ---------------------------------------------------------------------------- late, incomplete


def late(parts: list[int]) -> dict[str, Any]:
    """Let a sum wait for a busy card; return its error, and how many later sums are wrong."""
    ranks = Ranks(parts)
    before = ranks.check(ranks.prepare(4099, "float32"))
    prepared = ranks.prepare(4099, "float32")  # To take memory may wait for a busy card.
    until = time.monotonic() + BUSY
    keep_busy(ranks.backends[0], BUSY)
    told = {"what": "bucket 2 of 5", "step": 7, "timeout": DEADLINE}
    found = failed(lambda: ranks.check(prepared, **told))
    opened = ranks.connection.is_open
    return {**found, "before": before, "open": opened, **_afterwards(ranks, until)}


def left_out(parts: list[int]) -> dict[str, Any]:
    """Ask all ranks but the last for a sum; return its error, and how many later are wrong."""
    library = LeavingOut(nccl.load())
    vars(nccl)["load"] = lambda: library
    ranks = Ranks(parts)
    before = ranks.check(
        ranks.prepare(4099, "float32")
    )  # Connects all that this kind of sum needs.
    library.left = sum(parts)
    found = failed(lambda: ranks.check(ranks.prepare(4099, "float32"), timeout=DEADLINE))
    opened = ranks.connection.is_open
    return {**found, "before": before, "open": opened, **_afterwards(ranks, 0.0)}


def full_queue(parts: list[int]) -> dict[str, Any]:
    """Leave a rank out, and ask for sums until the driver takes no more; return as `left_out`.

    The abort comes while a thread is inside NCCL, or the driver, and frees what it uses only then.
    """
    library = LeavingOut(nccl.load())
    vars(nccl)["load"] = lambda: library
    ranks = Ranks(parts)
    before = ranks.check(ranks.prepare(4099, "float32"))
    found = failed(lambda: overfill(ranks, library, DEADLINE))
    opened = ranks.connection.is_open
    return {**found, "before": before, "open": opened, **_afterwards(ranks, 0.0)}


def overfill(ranks: Ranks, library: "LeavingOut", timeout: float) -> None:
    """Leave the last rank out of a sum, and ask for more than the driver's queue takes.

    Raises:
        CollectiveError: At the latest so many seconds after the first.
    """
    sends, receives, _ = ranks.prepare(4099, "float32")
    library.left = len(ranks.devices)
    for _ in range(MANY):
        ranks.ask(sends, receives, timeout=timeout)
    ranks.connection.finish()


def interrupted(parts: list[int]) -> dict[str, Any]:
    """Let Ctrl-C come at each call for a sum; return what was raised, and how sums are then."""
    library = _Interrupting(nccl.load())
    vars(nccl)["load"] = lambda: library
    ranks = Ranks(parts)
    before = ranks.check(ranks.prepare(4099, "float32"))
    raised = []
    for name in ("ncclGroupStart", "ncclAllReduce", "ncclGroupEnd"):
        prepared = ranks.prepare(4099, "float32")
        library.at = name
        try:
            ranks.check(prepared)
        except KeyboardInterrupt:
            raised.append(name)
        before += ranks.check(ranks.prepare(4099, "float32"))
    return {"raised": raised, "before": before, **_afterwards(ranks, 0.0)}


def interrupted_in_a_full_queue(parts: list[int]) -> dict[str, Any]:
    """Let Ctrl-C come while sums hang and the driver takes no more; return how sums are then."""
    library = LeavingOut(nccl.load())
    vars(nccl)["load"] = lambda: library
    ranks = Ranks(parts)
    before = ranks.check(ranks.prepare(4099, "float32"))
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    raised = ""
    try:
        overfill(ranks, library, BUSY + DEADLINE)
    except (KeyboardInterrupt, CollectiveError) as error:
        raised = type(error).__name__
    timer.join()
    found = failed(ranks.connection.finish)  # Where it came outside NCCL, the sums go on.
    return {"raised": raised, "before": before, "told": found["text"], **_afterwards(ranks, 0.0)}


def _afterwards(ranks: Ranks, until: float) -> dict[str, Any]:
    """Return what the devices can do once they are not busy any more."""
    time.sleep(max(0.0, until - time.monotonic()))
    after = sum(ranks.check(ranks.prepare(count, "float32")) for count in (4099, 300_007))
    with mr.device("GPU:0"):
        total = float(mr.reduce_sum(mr.ones((1000,))).numpy())
    ranks.connection.close()
    return {"after": after, "total": total}


class LeavingOut:
    """NCCL, which forgets to ask one rank.

    Args:
        library: NCCL.

    Attributes:
        left: From how many calls on, counted down, the last one is forgotten; 0 for none.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.left = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def ncclAllReduce(self, *arguments: Any) -> int:
        if self.left:
            self.left -= 1
            if not self.left:
                return 0
        return int(self._library.ncclAllReduce(*arguments))


class _Interrupting:
    """NCCL, of which one call is interrupted.

    Args:
        library: NCCL.

    Attributes:
        at: The name of the call, once; an empty string for none.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.at = ""

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)
        if name != self.at:
            return function
        self.at = ""

        def call(*arguments: Any) -> int:
            answer = int(function(*arguments))
            signal.raise_signal(signal.SIGINT)
            return answer

        return call


# ---------------------------------------------------------------------------- training


def late_fit(parts: list[int]) -> dict[str, Any]:
    """Let one step of `fit` wait for a busy card; return the error, and how training goes on.

    Returns:
        off: How far the weights then are from those of as many steps without trouble.
        saved: Whether weights that were saved then are the same when they are read again.
        losses: Those of the fit that follows.
        connected: Whether NCCL takes part in it.
    """
    strategy = make_strategy(place(parts), "nccl", timeout_seconds=DEADLINE)
    sizes, batch, steps = (8, 16, 4), 32, 6
    x, y = make_data(8, 4, batch * steps)
    model = build(strategy, sizes)
    options: dict[str, Any] = {"batch_size": batch, "shuffle": False, "verbose": 0}
    model.fit(x, y, **options)
    busy = _Busy(strategy.devices[0].backend, at=3)
    found = failed(lambda: model.fit(x, y, callbacks=[busy], **options))
    time.sleep(max(0.0, busy.until - time.monotonic()))
    weights, taken = model.get_weights(), int(model.optimizer.iterations.numpy())
    saved = _saved(model, build(strategy, sizes))
    history = model.fit(x, y, epochs=2, **options)
    reference = build(strategy, sizes)
    reference.fit(x, y, **options)
    if taken > steps:
        reference.fit(x[: batch * (taken - steps)], y[: batch * (taken - steps)], **options)
    pairs = zip(weights, reference.get_weights(), strict=True)
    return {
        **found,
        "taken": taken,
        "off": max(float(np.abs(a - b).max()) for a, b in pairs),
        "saved": saved,
        "losses": history.history["loss"],
        "connected": connected(strategy),
    }


class _Busy(mr.callbacks.Callback):
    """Keeps a device busy before one of the batches.

    Args:
        backend: The device's.
        at: The number of the batch.

    Attributes:
        until: When that is over.
    """

    def __init__(self, backend: Any, at: int) -> None:
        super().__init__()
        self.until = 0.0
        self._backend = backend
        self._at = at

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == self._at:
            self.until = time.monotonic() + BUSY
            keep_busy(self._backend, BUSY)


def _saved(model: mr.Model, other: mr.Model) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        model.save_weights(path)
        other.load_weights(path)
    pairs = zip(model.get_weights(), other.get_weights(), strict=True)
    return all(np.array_equal(one, another) for one, another in pairs)


# ---------------------------------------------------------------------------- the self-test


def spoil(kind: str) -> None:
    """Spoil all sums of NCCL in this process from now on.

    Args:
        kind: "hang" and "crash" once the third sum is asked for, or "wrong", each of them.
    """
    all_reduce, asked = nccl.NcclCommunicator.all_reduce, 0

    def spoiled(self: Any, sends: Any, receives: Any, streams: Any) -> None:
        nonlocal asked
        asked += 1
        all_reduce(self, sends, receives, streams)
        if kind == "wrong":
            first = receives[-1][:1]
            streams[-1].copy_between(streams[-1].to_host(first) + first.dtype.type(1), first)
        elif asked == 3:
            time.sleep(1000) if kind == "hang" else os.abort()

    nccl.NcclCommunicator.all_reduce = spoiled


def selftests(parts: list[int]) -> dict[str, Any]:
    """Run self-tests that are spoiled, each in its process, between two that are not.

    Returns:
        By kind the text of the error, empty for none; "check" is the test in this process.
    """
    ranks = Ranks(parts)
    program = selftest._PROGRAM
    found: dict[str, Any] = {}
    for kind in ("first", "hang", "crash", "wrong", "last"):
        spoiled = kind not in ("first", "last")
        before = f"import faults; faults.spoil({kind!r}); " if spoiled else ""
        vars(selftest)["_PROGRAM"] = before + program
        selftest.forget()
        limit = CHILD if kind == "hang" else 60.0
        told = failed(lambda limit=limit: selftest.require(ranks.backends, ranks.names, limit))
        found[kind], found[f"{kind}, error"] = told["text"], told["error"]
    found["after"] = ranks.check(ranks.prepare(4099, "float32"))
    ranks.connection.close()
    found["check, good"] = selftest.check(ranks.backends, ranks.names)
    spoil("wrong")
    found["check, wrong"] = selftest.check(ranks.backends, ranks.names)
    return found
