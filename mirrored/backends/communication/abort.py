"""Handles a failed collective: stops writes, then aborts communicators.

Neither may keep the host indefinitely, so each has a deadline.
"""

from collections import deque
from collections.abc import Callable, Sequence

from mirrored.backends.communication.failures import FailedCollective
from mirrored.backends.communication.futures import Future, Workers
from mirrored.backends.communication.in_flight import Taken

Function = Callable[[], object]

# Which part of their time stops have one after the other, before the rest is called beside them.
_IN_TURN = 1 / 30


class Abort:
    """Everything in flight, taken out at once because of one collective that failed.

    `error` is what the thread that noticed raises, once everything was aborted.
    """

    def __init__(self, failed: FailedCollective, taken: Taken) -> None:
        self.failed = failed
        self.taken = taken
        self.error: BaseException | None = None


def stop_writes(workers: Workers, stops: Sequence[Function], seconds: float) -> list[str]:
    """Call what stops writes to weights, one after the other; return what went wrong.

    They are stores into host memory, done at once. Where one does not return the others are called
    all the same, in threads of their own. All of them together have N seconds.
    """
    left = deque(stops)
    failed: list[str] = []
    until = workers.clock() + seconds
    first: Future[object] = workers.call(
        _named("stop", stops), lambda: _in_turn(left, failed), seconds
    )
    if not first.begun:
        _in_turn(left, failed)
        return failed
    prompt = workers.clock() + seconds * _IN_TURN
    workers.rest_until(lambda: first.is_over or workers.clock() >= prompt)
    calls = [first]
    while stop := _next(left):
        calls.append(workers.call(_named("stop", [stop]), stop, seconds))
    return [*workers.all_over(calls, until, seconds), *failed]


def abort_all(
    workers: Workers, aborts: Sequence[tuple[str, Function]], seconds: float
) -> list[str]:
    """Abort communicators, all at once, within N seconds; return what went wrong."""
    until = workers.clock() + seconds
    calls = [workers.call(f"mirrored-abort-{names}", abort, seconds) for names, abort in aborts]
    return workers.all_over(calls, until, seconds)


def _in_turn(left: deque[Function], failed: list[str]) -> None:
    while stop := _next(left):
        try:
            stop()
        except Exception as error:
            message = str(error).rstrip(".")
            failed.append(f"Stopping the writes of a {_owner(stop)} failed: {message}.")


def _next(left: deque[Function]) -> Function | None:
    try:
        return left.popleft()
    except IndexError:  # Perhaps another thread took the last one.
        return None


def _named(verb: str, stops: Sequence[Function]) -> str:
    return "-".join(("mirrored", verb, *dict.fromkeys(map(_owner, stops))))


def _owner(method: Function) -> str:
    return type(getattr(method, "__self__", method)).__name__
