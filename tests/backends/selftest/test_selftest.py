"""However the process of a self-test ends, its parent says what was wrong and what to try.

The processes are real ones; what they run is written here.
"""

import json
import logging
import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import mirrored
from mirrored.backends import probe, selftest
from mirrored.backends.selftest import Outcome
from mirrored.backends.selftest.sums import Finding, Symptom
from mirrored.backends.stream_backend import Place
from mirrored.errors import CollectiveError, CollectiveTimeoutError

CARDS = ["0000:3b:00.0", "0000:af:00.0"]
RANKS: list[Any] = [SimpleNamespace(memory=card) for card in CARDS]
NAMES = ["/device:GPU:0", "/device:GPU:1"]
BETWEEN = "The self-test of NCCL between /device:GPU:0, /device:GPU:1 found "
LONG = 60.0

# The package without what it imports itself, which is all of the library: that takes longer than
# most of these processes run.
BACKENDS_ALONE = f"""
import sys, types

sys.modules["mirrored"] = types.ModuleType("mirrored")
sys.modules["mirrored"].__path__ = {list(mirrored.__path__)}
"""

# A process that has cards in host memory, and then does what the real one does.
CHILD = """
import os, time
import numpy as np
from mirrored.backends import Hardware
from mirrored.backends import selftest
from mirrored.backends.selftest import sums
from scripted_communicator import Script
from spoiled_sums import spoiled_backends

def spoil(number, rank, total):
    {spoil}

def card(backend, bus):
    return Hardware("GPU", 0, "A card", lambda _: backend, details=dict(pci_bus_id=bus))

sums._COUNTS, sums._LARGE_COUNTS = (129, 4009), ()
backends = spoiled_backends(2, spoil, Script({script}))
selftest.probe = lambda: list(map(card, backends, ["0000:3b:00.0", "0000:af:00.0"]))
os.write(1, b"A line of a library.\\n")
selftest.main()
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what passed, and what the machine has set for NCCL."""
    monkeypatch.setattr(selftest, "_passed", set())
    for name, _ in selftest.settings_in_force():
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return ``child(spoil="pass", script="")``: what the process does from then on."""

    def use(spoil: str = "pass", script: str = "") -> None:
        program = BACKENDS_ALONE + CHILD.format(spoil=spoil, script=script)
        monkeypatch.setattr(selftest, "_PROGRAM", program)

    return use


def error(timeout: float = LONG) -> CollectiveError:
    """Return what `require` raises."""
    with pytest.raises(CollectiveError) as caught:
        selftest.require(RANKS, NAMES, timeout, start=timeout)
    assert caught.value.devices == tuple(NAMES)
    assert isinstance(caught.value, CollectiveTimeoutError) == ("found a time-out" in str(caught))
    return caught.value


def received(text: str) -> list[str]:
    """Return the lines below "Received:"."""
    lines = text.splitlines()
    start = lines.index("Received:") + 1
    below = lines[start:]
    return [line.strip() for line in below[: next(i for i, t in enumerate(below) if t[:1] != " ")]]


def test_a_pass_is_told_and_remembered(child: Any, caplog: pytest.LogCaptureFixture) -> None:
    child()
    threads = threading.enumerate()
    with caplog.at_level(logging.DEBUG, "mirrored"):
        selftest.require(RANKS, NAMES, LONG)
    before, after = caplog.messages
    assert before == (
        "Testing NCCL between /device:GPU:0, /device:GPU:1 in a separate process: this may take "
        "up to 180 s."
    )
    assert after.startswith("NCCL sums correctly between /device:GPU:0, /device:GPU:1 (")
    child("os.abort()")
    selftest.require(RANKS, NAMES, LONG)
    assert set(threading.enumerate()) <= {*threads}  # Those of other tests may end meanwhile.


@pytest.mark.parametrize("change", ["cards", "setting", "forgotten"])
def test_what_passed_is_tested_again_where_something_changed(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    calls: list[dict[str, Any]] = []

    def run(command: list[str], given: str, timeout: float, then: Any) -> Outcome:
        calls.append(json.loads(given))
        return Outcome(0, '{"found": []}', "", 0.1)

    monkeypatch.setattr(selftest, "run_child", run)
    for _ in range(2):
        selftest.require(RANKS, NAMES, LONG)
    ranks = RANKS
    if change == "cards":
        ranks = RANKS[::-1]
    elif change == "setting":
        monkeypatch.setenv("NCCL_ALGO", "Ring")
    else:
        selftest.forget()
    selftest.require(ranks, NAMES, LONG)
    assert [call["cards"] for call in calls] == [CARDS, [rank.memory for rank in ranks]]


def test_its_process_is_told_where_the_ranks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test with other processes says nothing of one without, or with more of them."""
    calls = []

    def run(command: Any, given: str, *_: Any) -> Outcome:
        calls.append(json.loads(given)["place"])
        return Outcome(0, '{"found": []}', "", 0.1)

    monkeypatch.setattr(selftest, "run_child", run)
    for place in (None, Place(2, 4, b"\x01"), Place(2, 4, b"\x02"), Place(2, 5, b"\x03")):
        selftest.require(RANKS, NAMES, LONG, place=place)
    assert calls == [None, [2, 4, "01"], [2, 5, "03"]]


def test_sums_have_their_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python, CUDA and NCCL may take longer to start than sums may take."""
    given: list[Any] = []

    def run(*args: Any) -> Outcome:
        given.append(args)
        return Outcome(None, json.dumps({"step": step}), "", 0.1)

    monkeypatch.setattr(selftest, "run_child", run)
    for step, said in (
        ("connecting them", "It was not done within 120 s of its start."),
        ("summing 129 float32 numbers of each", "It was not done within 60 s."),
    ):
        with pytest.raises(CollectiveTimeoutError, match=f"{said} Its last step was {step}"):
            selftest.require(RANKS, NAMES)
    _, asked, start, then = given[0]
    assert (start, then.timeout) == (120, 60)
    assert json.loads(asked)["start"] == 120
    assert json.dumps({"step": step}).startswith(then.written)


def test_a_failure_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = iter([Outcome(1, "", "", 0.1), Outcome(0, '{"found": []}', "", 0.1)])
    monkeypatch.setattr(selftest, "run_child", lambda *_: next(outcomes))
    error()
    selftest.require(RANKS, NAMES, LONG)


def test_wrong_sums(child: Any) -> None:
    child("if number == 0: total[3] = np.nan if rank else 0.5")
    text = str(error())
    assert text.startswith(f"{BETWEEN}wrong sums.\n")
    first, second = received(text)
    for line, name, card in zip((first, second), NAMES, CARDS, strict=True):
        assert f"is wrong on {name} (A card at {card}): 1 of 129 elements" in line
    assert "received 0.5" in first
    assert "of which 1 are NaN" in second
    assert "  1. PCI access control services (ACS)" in text


def test_many_findings_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.dumps({"found": [(Symptom.WRONG.value, f"Sum {n} is wrong.") for n in range(12)]})
    monkeypatch.setattr(selftest, "run_child", lambda *_: Outcome(0, found, "", 0.1))
    lines = received(str(error()))
    assert len(lines) == selftest._MOST_FINDINGS + 1
    assert lines[-1] == "And 6 more findings like these."


@pytest.mark.slow
def test_a_sum_that_never_ends_is_named(child: Any) -> None:
    child(script='{2: "hang"}')
    (line,) = received(str(error(timeout=10.0)))
    assert line == (
        "The sum of 129 float32 numbers, out of place, was not done within 5 s on /device:GPU:0 "
        "(A card at 0000:3b:00.0), /device:GPU:1 (A card at 0000:af:00.0)."
    )


@pytest.mark.slow
def test_a_process_that_hangs(child: Any) -> None:
    child(script='connects=["never returns"]')
    text = str(error(timeout=4.0))
    assert received(text) == [
        "It was not done within 4 s of its start. Its last step was connecting them."
    ]
    assert "  1. PCI access control services (ACS)" in text


def test_a_crash_shows_the_signal_and_where_it_was(child: Any) -> None:
    child("import signal; os.kill(os.getpid(), signal.SIGBUS)")
    text = str(error())
    assert text.startswith(f"{BETWEEN}a crash.\n")
    assert received(text) == [
        "It was ended by SIGBUS. Its last step was summing 129 float32 numbers of each."
    ]
    assert "Fatal Python error: Bus error" in text
    assert "  1. Shared memory (/dev/shm)" in text


@pytest.mark.slow
def test_what_nccl_says_is_shown_and_looked_at(child: Any) -> None:
    """It says it on standard output, which is not for it here; it is asked to say it."""
    child(
        'os.write(1, b"host:1 NCCL WARN transport/nvls.cc failed\\n"); '
        'print("debug", os.environ["NCCL_DEBUG"], flush=True)',
        '{1: "async"}',
    )
    text = str(error())
    assert text.startswith(f"{BETWEEN}an error.\n")
    assert "failed: The script lets the link between the devices fail." in received(text)[0]
    assert "\n  host:1 NCCL WARN transport/nvls.cc failed\n" in text
    assert "debug WARN" in text
    assert "  1. NVLink SHARP (NVLS)" in text


def test_warnings_before_a_flood_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "NCCL WARN first\n" + "noise\n" * 200
    monkeypatch.setattr(selftest, "run_child", lambda *_: Outcome(1, "", said, 0.1))
    text = str(error())
    assert "  NCCL WARN first\n" in text
    assert text.count("noise") == selftest._MOST_LINES


@pytest.mark.slow
def test_an_exception_is_shown(child: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is what NCCL says, of which as much is asked for as the environment has set."""
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    child('print("debug", os.environ["NCCL_DEBUG"], flush=True); total[:0] @ total')
    text = str(error())
    assert received(text)[0].startswith("ValueError: matmul: ")
    assert "debug INFO" in text


EMULATED = """
import emulated_cuda
from mirrored.backends import selftest
from mirrored.backends.selftest import sums
from mirrored.backends.cuda import blas, graphs, nccl, nvml, toolkit

sums._COUNTS, sums._LARGE_COUNTS = (129, 40_009), ()
emulator = emulated_cuda.Emulator(emulated_cuda.cards(2, 1 << 30), 0)
toolkit.toolkit = lambda: emulator.cupy
graphs.load_driver = lambda: emulator.driver
for library, name in ((nvml, "nvml"), (blas, "cublas"), (nccl, "nccl")):
    setattr(library, "load", lambda name=name: getattr(emulator, name))
selftest.main()
"""


def test_emulated_cards_pass(monkeypatch: pytest.MonkeyPatch, emulated_cuda: Any) -> None:
    """All of it but the cards: the backends, and NCCL as ctypes calls it."""
    emulated_cuda(cards=2)
    ranks = [each.open_backend(None) for each in probe() if each.device_type == "GPU"]
    monkeypatch.setattr(selftest, "_PROGRAM", BACKENDS_ALONE + EMULATED)
    selftest.require(ranks, NAMES, LONG)


@pytest.mark.slow
def test_cards_that_a_new_process_does_not_see() -> None:
    """The real program: there is no card here, or none at these places."""
    missing = [SimpleNamespace(memory="0000:fe:1f.0")]
    with pytest.raises(CollectiveError) as caught:
        selftest.require(missing, ["/device:GPU:0"], LONG)
    (line,) = received(str(caught.value))
    assert line.startswith("DeviceUnavailableError: A new process finds no card at 0000:fe:1f.0. ")


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            "raise SystemExit(3)",
            "It ended with status 3 and no answer. Its last step was starting.",
        ),
        ("", "It ended with status 0 and no answer. Its last step was starting."),
        ("print('[]', 3, '{')", "It ended with status 0 and no answer."),
        ("print('{\"found\": 3}')", "It ended with status 0 and no answer."),
        ('print(\'{"found": [["bad luck", 3]]}\')', "It ended with status 0 and no answer."),
        ("print('3\\n\"step\"\\nnull')", "It ended with status 0 and no answer."),
        ("print('{\"found\": []}'); raise SystemExit(3)", "It ended with status 3 and no answer."),
        (
            "import time; time.sleep(600)",
            "It was not done within 1 s of its start. Its last step was starting.",
        ),
    ],
)
def test_answers_that_are_none(monkeypatch: pytest.MonkeyPatch, program: str, line: str) -> None:
    monkeypatch.setattr(selftest, "_PROGRAM", program)
    timeout = 1.0 if "sleep" in program else LONG
    assert received(str(error(timeout)))[0].startswith(line)


def test_a_process_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    (line,) = received(str(error()))
    assert line.startswith("Its process could not be started: ")


def test_a_signal_without_a_name() -> None:
    outcome = Outcome(-signal.SIGRTMIN - 1, "", "", 0.1)
    (finding,) = selftest._findings(outcome, LONG, LONG)
    assert finding.symptom is Symptom.CRASH
    assert finding.sentence.startswith(f"It was ended by signal {signal.SIGRTMIN + 1}. ")


def test_what_to_try_is_always_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for symptom in Symptom:
        found = json.dumps({"found": [(symptom.value, "A sentence.")]})
        outcome = Outcome(0, found, "", 0.1)
        monkeypatch.setattr(selftest, "run_child", lambda *_, outcome=outcome: outcome)
        text = str(error())
        for words in ("python -m mirrored selftest", 'on_nccl_failure="fallback"', "NCCL_DEBUG"):
            assert words in text
        assert selftest._findings(outcome, LONG, LONG) == [Finding(symptom, "A sentence.")]
