"""Failed collectives: their details and errors, and how other processes are notified of them.

Users see such an error hours into a run on many devices, so it has all that helps to find the
cause.
"""

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from mirrored.backends.stream_backend import Place
from mirrored.errors import CollectiveError, CollectiveTimeoutError, DeviceLostError

_LONGER = "a larger `timeout_seconds` in `CommunicationOptions`, if a step may take that long"
_ADVICE = (
    "`python -m mirrored selftest`, which tries all-reduces of known sums",
    "NCCL_DEBUG=WARN in the environment, for NCCL's messages",
    "NCCL_P2P_DISABLE=1, where PCI access control services (ACS) or an IOMMU may be in the way",
    "NCCL_NVLS_ENABLE=0, which does without NVLink SHARP",
)

_DISCONNECTED = "The devices were disconnected from each other."


@dataclass(frozen=True, kw_only=True)
class FailedCollective:
    """One collective that was not done, as it was before anything was aborted.

    Attributes:
        names: What errors call the devices, by rank.
        what: What was to be summed, or what else was done with the devices.
        step: In which run of its recorded step it was; None: it was of none.
        elapsed: The seconds that it had.
        timeout: The seconds that it was given.
        late: Whether its deadline is what was missed.
        done: Whether each rank had done its part; None: nobody knows.
        completed: The last collectives of these devices that were done, oldest first.
        cause: The error that was raised; None: nothing was.
        failure: What the communicator says of itself, if it says that something is wrong.
        alone: Whether all of the connected devices are this process's.
    """

    names: Sequence[str]
    what: str
    step: int | None = None
    elapsed: float | None = None
    timeout: float = math.inf
    late: bool = False
    done: Sequence[bool | None] = ()
    completed: Sequence[str] = ()
    cause: BaseException | None = None
    failure: str | None = None
    alone: bool = True

    def error(self, not_stopped: Sequence[str], not_aborted: Sequence[str]) -> BaseException:
        """Return what to raise, with sentences on what was not stopped or aborted."""
        known = f"{self._ranks()}{self._completed()}"
        if self.cause is not None and not isinstance(self.cause, CollectiveError):
            disconnected = " ".join((_DISCONNECTED, *not_stopped, *not_aborted))
            self.cause.add_note(f"This ended {self._named()}.{known}\n{disconnected}")
            return self.cause
        kind = CollectiveTimeoutError if self.late else CollectiveError
        advice = "; ".join((_LONGER, *_ADVICE) if self.late else _ADVICE)
        error = kind(
            f"{self._summary()}{known}\n{_state(not_stopped, not_aborted, self.alone)}\n"
            f"What to try: {advice}.",
            devices=self.names,
            what=self.what,
            step=self.step,
            elapsed=self.elapsed,
            timeout=self.timeout if self.late else None,
            completed=self.completed,
            aborted=not not_aborted,
        )
        error.__cause__ = self.cause
        return error

    def _named(self) -> str:
        return f"the collective of {', '.join(self.names)}: {named(self.what, self.step)}"

    def _summary(self) -> str:
        if self.late:
            problem = "was not done by its deadline"
            received = f"{self.elapsed:.4g} seconds, of at most {self.timeout:.4g}"
        else:
            problem = "failed"
            received = self.failure or str(self.cause)
        return f"A collective {problem}. Received: {self._named()}; {received.rstrip('.')}."

    def _ranks(self) -> str:
        parts = (("Done", True), ("Not done", False), ("Unknown whether done", None))
        sentences = [
            f"{word} on {', '.join(names)}."
            for word, answer in parts
            if (names := [n for n, d in zip(self.names, self.done, strict=False) if d is answer])
        ]
        return "\n" + " ".join(sentences) if sentences else ""

    def _completed(self) -> str:
        if not self.completed:
            return "\nNone of these devices' collectives was seen done before it."
        return f"\nDone before it, oldest first: {'; '.join(self.completed)}."


def named(what: str, step: int | None) -> str:
    """Return what to call a collective.

    Example:
        >>> named("bucket 2 of 5", 12), named("eager", None)
        ('bucket 2 of 5 in run 12 of its recorded step', 'eager')
    """
    return what if step is None else f"{what} in run {step} of its recorded step"


def timed_out(names: Sequence[str], what: str, seconds: float, thread: str) -> Exception:
    """Return the error of devices that a thread did not connect, or disconnect, by a deadline."""
    return CollectiveTimeoutError(
        f"{what.capitalize()} devices was not done by its deadline. Received: {', '.join(names)}; "
        f"{seconds:.4g} seconds. The thread {thread!r} is left behind, and ends with the process."
        f"\nWhat to try: {'; '.join(_ADVICE)}.",
        devices=names,
        what=what,
        elapsed=seconds,
        timeout=seconds,
    )


def no_thread(
    names: Sequence[str], what: str, doing: str, refused: BaseException | None
) -> CollectiveError:
    """Return the error of devices that nothing was asked of, since no thread could be started.

    `what` is what they were to sum, "connecting" or "closing"; `doing` begins a sentence.
    """
    error = CollectiveError(
        f"{doing} needs a thread; without a thread it could hang indefinitely. Received: "
        f"{', '.join(names)}; {refused}",
        devices=names,
        what=what,
    )
    error.__cause__ = refused
    return error


def elsewhere(first: BaseException) -> CollectiveError | DeviceLostError:
    """Return the error of a thread whose collectives ended because of another one's.

    It has the type of that one where callers tell types apart: who of several threads, or of those
    that look after them, notices first is left to chance.
    """
    text = (
        "The devices were disconnected from each other while this thread waited for a "
        "collective, and its results are lost. Received, elsewhere: "
        f"{str(first) or f'{type(first).__name__}.'}"
    )
    error: CollectiveError | DeviceLostError
    if isinstance(first, DeviceLostError):
        error = DeviceLostError(text)
    elif isinstance(first, CollectiveTimeoutError):
        error = CollectiveTimeoutError(text, **_facts(first))
    elif isinstance(first, CollectiveError):
        error = CollectiveError(text, **_facts(first))
    else:
        error = CollectiveError(text)
    for note in getattr(first, "__notes__", ()):
        error.add_note(note)
    error.__cause__ = first
    return error


def _facts(error: CollectiveError) -> dict[str, Any]:
    names = ("devices", "what", "step", "elapsed", "timeout", "completed", "aborted")
    return {name: getattr(error, name) for name in names}


def without_frames(error: BaseException) -> BaseException:
    """Return an error that says the same, to be kept: it keeps nothing else alive.

    An error that was raised holds all that was in use then, such as programs with their memory.
    """
    try:
        kept = copy.copy(error)
    except Exception:  # Its class takes other arguments than it keeps.
        kept = CollectiveError(f"{type(error).__name__}: {error}")
    if error.__cause__ is not None:
        kept.__cause__ = without_frames(error.__cause__)
    return kept.with_traceback(None)


def _state(not_stopped: Sequence[str], not_aborted: Sequence[str], alone: bool) -> str:
    """Return in sentences what has become of the devices."""
    advice = "The next use connects the devices again." if alone else "Start all processes again."
    if not_aborted:
        after = (
            "This process may not be able to use the devices any more: end it, and continue from "
            "the last checkpoint."
        )
    elif not_stopped:
        after = (
            "The weights on the devices may be wrong: continue from the last checkpoint. " + advice
        )
    else:
        after = (
            "The weights on the devices are those of the last whole step, and can be saved. "
            + advice
        )
    return " ".join((_DISCONNECTED, *not_stopped, *not_aborted, after))


class Peers(Protocol):
    """The other processes; all of them ask their devices for the same collectives, in one order."""

    @property
    def goes_on(self) -> bool:
        """Whether the other processes go on where one dies."""

    def meet(self, new_key: Callable[[], bytes]) -> Place:
        """Return where this process's ranks are, to connect them once; all processes call it.

        Args:
            new_key: Makes what all are connected by; one process calls it.
        """

    def look(self) -> None:
        """Raise where others have told that they will not come; wait for nobody. From any thread.

        Raises:
            RuntimeError: It says who will not, and why.
        """

    def lost(self, error: BaseException) -> None:
        """Tell the others that the devices are no longer connected. From any thread.

        Args:
            error: Why.
        """

    def together(self) -> AbstractContextManager[object]:
        """Let the sums of this block, which waits for them, be done in all processes or in none.

        Where `goes_on` is false it does nothing.
        """
