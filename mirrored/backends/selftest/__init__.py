"""The self-test of NCCL between cards, in its own process with a deadline.

On a machine that is set up wrong NCCL hangs, crashes or adds wrong; here that becomes one error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from mirrored._logging import logger
from mirrored._numbers import counted
from mirrored.backends import probe
from mirrored.backends.selftest.sums import (
    Finding,
    Symptom,
    examine,
    likely_causes,
    settings_in_force,
)
from mirrored.backends.stream_backend import Place, StreamBackend
from mirrored.errors import CollectiveError, CollectiveTimeoutError, DeviceUnavailableError

if TYPE_CHECKING:  # Most machines never need it.
    import subprocess


# How much of what it writes is kept, in bytes: the end, where an error is.
_KEPT = 1 << 16
# How often its end is looked for, in seconds.
_INTERVAL = 0.05
# How long a process that was killed may take to go, in seconds. One that waits inside a driver can
# never end.
_GONE_WITHIN = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended.

    Attributes:
        status: Its exit status, or minus the number of the signal that ended it; None: it was not
            done by the deadline, and was killed.
        output: The end of what it wrote to standard output.
        errors: The end of what it wrote to standard error.
        seconds: How long it ran.
    """

    status: int | None
    output: str
    errors: str
    seconds: float


class Then(NamedTuple):
    """When a program's time begins again: once it has written something to standard output.

    Attributes:
        written: What it writes.
        timeout: The seconds that it may take from then on.
    """

    written: str
    timeout: float


def run_child(
    command: Sequence[str], text: str, timeout: float, then: Then | None = None
) -> Outcome:
    """Run a program, and all that it starts, for at most so long.

    It has a process group of its own, which is killed at the end: Ctrl-C reaches it as the end of
    this call. Its environment is that of this process, and its Python imports what this one does.

    Args:
        command: The program and its arguments.
        text: What it reads from standard input.
        timeout: The seconds that it may take.
        then: What it may take when it has come so far; None: there is one deadline for all of it.

    Raises:
        OSError: It could not be started.
    """
    import subprocess  # These are slow to import, and needed here only.
    import tempfile

    start = time.monotonic()
    with tempfile.TemporaryFile() as source:  # A pipe would block where nobody reads it.
        source.write(text.encode())
        source.seek(0)
        process = subprocess.Popen(
            command,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
        )
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
    try:
        ended, (output, errors) = _follow(process.pid, pipes, start + timeout, then)
    finally:
        _end(process)
    status = process.returncode if ended else None
    return Outcome(status, _text(output), _text(errors), time.monotonic() - start)


def _environment() -> dict[str, str]:
    """Return this process's environment, in which Python finds the modules that this one does."""
    paths = (path or os.getcwd() for path in sys.path)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def _follow(
    pid: int, pipes: Sequence[IO[bytes]], deadline: float, then: Then | None
) -> tuple[bool, list[bytes]]:
    """Return whether a process ended by the deadline, and the end of what it wrote to each pipe."""
    import selectors

    kept = {pipe.fileno(): b"" for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            ended = _has_ended(pid)  # Asked first: what it wrote before its end is read below.
            ready = selector.select(0 if ended else max(0, min(left, _INTERVAL)))
            for key, _ in ready:
                written = os.read(key.fd, _KEPT)
                kept[key.fd] = (kept[key.fd] + written)[-_KEPT:]
                if not written:
                    selector.unregister(key.fileobj)
            if then is not None and then.written.encode() in kept[pipes[0].fileno()]:
                deadline, then = time.monotonic() + then.timeout, None
            if left <= 0 or (ended and not ready):
                return ended, list(kept.values())


def _has_ended(pid: int) -> bool:
    """Return whether a process has ended. It keeps its number, so nothing else can be killed."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # This process lets the system forget its children at once.
        return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a process and of all that it started, and forget it."""
    from subprocess import TimeoutExpired

    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutExpired):
        process.wait(_GONE_WITHIN)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _text(written: bytes) -> str:
    return written.decode(errors="replace")


_PROGRAM = "from mirrored.backends import selftest; selftest.main()"

# What the process writes once it has connected the cards.
_FIRST_SUM = '{"step": "summing'

# How much longer than it may take a test goes on whose parent is gone, in seconds.
_ORPHANED = 30.0
# How many sentences and lines an error shows.
_MOST_FINDINGS, _MOST_LINES = 6, 12

# What is in lines that say what went wrong, of NCCL and of Python's own handler of crashes.
_TELLING = ("NCCL WARN", "Fatal Python error")

_lock = threading.Lock()
_passed: set[Any] = set()


def check(
    ranks: Sequence[StreamBackend], names: Sequence[str] | None = None, *, timeout: float = 30.0
) -> list[str]:
    """Return what is wrong with sums between devices, in sentences; an empty list: nothing.

    It runs in this process, which may crash, or hang where connecting hangs: `require`
    has a process for it.

    Args:
        ranks: A device a rank.
        names: What each is called; None: by its number.
        timeout: The seconds that one all-reduce may take.
    """
    called = names or [f"rank {number}" for number in range(len(ranks))]
    return [finding.sentence for finding in examine(ranks, called, timeout, lambda _: None)]


def require(
    ranks: Sequence[StreamBackend],
    names: Sequence[str],
    timeout: float = 60.0,
    start: float = 120.0,
    place: Place | None = None,
) -> None:
    """Return once NCCL was found to sum right between cards.

    A pass is remembered by this process, for these cards and NCCL's settings in the environment.
    This process's own devices are not touched.

    Args:
        ranks: A device a rank.
        names: What errors call each.
        timeout: The seconds that the sums may take.
        start: The seconds before them, in which Python and CUDA start and the cards are connected.
        place: Where the ranks are among those of several processes, all of which call this; None:
            there are no others.

    Raises:
        CollectiveTimeoutError: It was not done in time.
        CollectiveError: Something else is wrong. Both say what, and what to try.
    """
    cards = [str(rank.memory) for rank in ranks]
    span = None if place is None else place[:2]
    key = (tuple(cards), tuple(settings_in_force()), span)
    with _lock:  # One at a time: two tests on one card would make each other late.
        if key in _passed:
            return
        logger.debug(
            "Testing NCCL between %s in a separate process: this may take up to %g s.",
            ", ".join(names),
            start + timeout,
        )
        times = {"timeout": timeout, "start": start}
        among = None if place is None else [*place[:2], place.key.hex()]
        asked = json.dumps({"cards": cards, "names": list(names), "place": among, **times})
        command = [sys.executable, "-c", _PROGRAM]
        try:
            outcome = run_child(command, asked, start, Then(_FIRST_SUM, timeout))
        except OSError as error:
            outcome = Outcome(None, "", "", 0.0)
            findings = [Finding(Symptom.ERROR, f"Its process could not be started: {error}.")]
        else:
            findings = _findings(outcome, start, timeout)
        if findings:
            raise _failure(names, findings, outcome)
        _passed.add(key)
    logger.debug("NCCL sums correctly between %s (%.1f s).", ", ".join(names), outcome.seconds)


def forget() -> None:
    """Let `require` test again what has passed, as after sums that went wrong since."""
    with _lock:
        _passed.clear()


# ---------------------------------------------------------------------- what came of it


def _findings(outcome: Outcome, start: float, timeout: float) -> list[Finding]:
    """Return what is wrong, by the answers of the process and the way it ended."""
    stage, findings = _answers(outcome.output)
    if findings:
        return findings
    if outcome.status is None:
        allowed = f"{timeout:g} s" if _FIRST_SUM in outcome.output else f"{start:g} s of its start"
        sentence = f"It was not done within {allowed}. Its last step was {stage}."
        return [Finding(Symptom.TIMEOUT, sentence)]
    if outcome.status < 0:
        by = _signal_name(-outcome.status)
        return [Finding(Symptom.CRASH, f"It was ended by {by}. Its last step was {stage}.")]
    if outcome.status > 0 or findings is None:
        sentence = (
            f"It ended with status {outcome.status} and no answer. Its last step was {stage}."
        )
        return [Finding(Symptom.ERROR, sentence)]
    return []


def _answers(output: str) -> tuple[str, list[Finding] | None]:
    """Return what the process did last, and what it found; None: it never said.

    Lines that are no answers are libraries' own.
    """
    stage, findings = "starting", None
    for line in output.splitlines():
        try:
            answer = json.loads(line)
            if "step" in answer:
                stage = str(answer["step"])
            if "found" in answer:
                findings = [Finding(Symptom(kind), str(text)) for kind, text in answer["found"]]
        except (ValueError, TypeError):
            continue
    return stage, findings


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # The system has it, and Python no name for it.
        return f"signal {number}"


def _failure(names: Sequence[str], findings: list[Finding], outcome: Outcome) -> CollectiveError:
    """Return the error that says what is wrong, what NCCL said, and what to try."""
    symptoms = {finding.symptom for finding in findings}
    late = Symptom.TIMEOUT in symptoms
    symptom = Symptom.TIMEOUT if late else findings[-1].symptom
    sentences = [finding.sentence for finding in findings[:_MOST_FINDINGS]]
    if len(findings) > _MOST_FINDINGS:
        more = counted(len(findings) - _MOST_FINDINGS, "more finding")
        sentences.append(f"And {more} like these.")
    causes = likely_causes(symptom, " ".join([*sentences, outcome.errors]))
    parts = [
        f"The self-test of NCCL between {', '.join(names)} found {symptom.value}.",
        *_listed("Received:", sentences),
        *_listed("The last that its process wrote:", _last_lines(outcome.errors)),
        *_listed("Likely causes and remedies, the likeliest first:", causes, numbered=True),
        '`python -m mirrored selftest` tests again. MirroredStrategy(on_nccl_failure="fallback") '
        "sums without NCCL if it fails. NCCL_DEBUG=INFO makes NCCL say more; with "
        "NCCL_RUN_DIAGNOSTICS=1, from NCCL 2.31 on, it tests its own links first.",
    ]
    kind = CollectiveTimeoutError if late else CollectiveError
    return kind("\n".join(parts), devices=names, what="self-test", elapsed=outcome.seconds)


def _listed(title: str, lines: Sequence[str], *, numbered: bool = False) -> list[str]:
    marks = (f"{number}." for number in range(1, len(lines) + 1)) if numbered else None
    shown = [f"  {next(marks)} {line}" if marks else f"  {line}" for line in lines]
    return [title, *shown] if shown else []


def _last_lines(text: str) -> list[str]:
    """Return the last lines of a text, and those before them that matter most."""
    # After a crash faulthandler lists all extension modules, in one line that buries the others.
    lines = [
        line.rstrip()
        for line in text.splitlines()
        if line.strip() and not line.startswith("Extension modules:")
    ]
    earlier = lines[:-_MOST_LINES]
    telling = [line for line in earlier if any(mark in line for mark in _TELLING)]
    return telling[-_MOST_LINES:] + lines[-_MOST_LINES:]


# ---------------------------------------------------------------------- the process of its own


def main() -> None:
    """Test the cards that standard input names, and end the process.

    It answers on standard output, in lines of JSON. What libraries write there, as NCCL does, goes
    to standard error.
    """
    asked = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()  # A crash leaves the place where it was.
    # Where the process that would end this one is gone, this one ends by itself.
    longest = asked["start"] + asked["timeout"] + _ORPHANED
    faulthandler.dump_traceback_later(longest, exit=True)
    os.environ.setdefault("NCCL_DEBUG", "WARN")

    def say(**answer: object) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        findings = _examine_cards(asked, lambda step: say(step=step))
    except Exception as error:
        findings = [Finding(Symptom.ERROR, f"{type(error).__name__}: {error}")]
    say(found=[(symptom.value, sentence) for symptom, sentence in findings])
    sys.stderr.flush()
    os._exit(0)  # What hangs in a driver would keep an ordinary end waiting.


def _examine_cards(asked: dict[str, Any], progress: Callable[[str], None]) -> list[Finding]:
    progress("looking for the cards")
    there = {device.details.get("pci_bus_id"): device for device in probe()}
    missing = [card for card in asked["cards"] if card not in there]
    if missing:
        raise DeviceUnavailableError(
            f"A new process finds no card at {', '.join(missing)}. Leave CUDA_VISIBLE_DEVICES as "
            "it was when the devices were listed."
        )
    hardware = [there[card] for card in asked["cards"]]
    ranks: list[Any] = [device.open_backend(None) for device in hardware]
    names = [
        f"{name} ({device.name} at {card})"
        for name, device, card in zip(asked["names"], hardware, asked["cards"], strict=True)
    ]
    place = None
    if asked.get("place"):
        first, count, key = asked["place"]
        place = Place(first, count, bytes.fromhex(key))
    # Half the time: which device is late is better known than that something is.
    return examine(ranks, names, asked["timeout"] / 2, progress, place)
