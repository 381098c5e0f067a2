"""What is wrong with sums between devices is found and named; what is right is left in peace."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_communicator import Script
from spoiled_sums import Spoil, spoiled_backends

from mirrored.backends import probe, selftest
from mirrored.backends.selftest import sums
from mirrored.backends.selftest.sums import Symptom, examine, known_sum, known_values
from mirrored.backends.stream_backend import Place

DTYPES = [np.dtype(name) for name in ("float32", "float64", "int32")]
NAMES = ["card A", "card B", "card C"]


COUNTS, LARGE_COUNTS = sums._COUNTS, sums._LARGE_COUNTS


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let most tests sum little."""
    monkeypatch.setattr(sums, "_COUNTS", (129, 4009))
    monkeypatch.setattr(sums, "_LARGE_COUNTS", ())


def right(number: int, rank: int, total: np.ndarray) -> None:
    """Leave a sum as it is."""


def found(
    spoil: Spoil = right, ranks: int = 3, script: Script | None = None, timeout: float = 20.0
) -> list[tuple[Symptom, str]]:
    """Return what is found; whoever uses a communicator against its rules is told."""
    script = script or Script()
    devices = spoiled_backends(ranks, spoil, script)
    findings = examine(devices, NAMES[:ranks], timeout, lambda _: None)
    assert script.misuses == []
    return [tuple(each) for each in findings]


@given(
    ranks=st.integers(1, 20),
    count=st.integers(1, 5000),
    dtype=st.sampled_from(DTYPES),
    turn=st.integers(0, 5),
)
def test_sums_are_exact_in_any_order(ranks: int, count: int, dtype: np.dtype, turn: int) -> None:
    values = [known_values(rank, count, dtype, turn) for rank in range(ranks)]
    expected = known_sum(ranks, count, dtype, turn)
    assert expected.dtype == dtype
    exact = np.sum(values, axis=0, dtype=np.int64)
    assert np.array_equal(exact, expected)
    assert np.array_equal(np.sum(values[::-1], axis=0, dtype=dtype), expected)


def test_values_differ_by_rank_place_and_turn() -> None:
    """What is sent twice, not at all, or to another place cannot give the right sum by chance."""
    many = [known_values(rank, 4096, DTYPES[0], turn) for rank in range(8) for turn in range(3)]
    for i, one in enumerate(many):
        for other in many[:i]:
            assert np.mean(one == other) < 0.01
        for shift in (1, 128, 1021, 1024, 2048):
            assert np.mean(one[shift:] == one[:-shift]) < 0.01


def test_long_arrays_go_on_with_the_same_numbers() -> None:
    period = sums._PERIOD**2
    values = known_values(1, period + 5, DTYPES[0])
    assert np.array_equal(values[period:], values[:5])
    assert np.array_equal(values[:5], known_values(1, 5, DTYPES[0]))


@pytest.mark.parametrize(
    ("ranks", "large"),
    [pytest.param(1, LARGE_COUNTS, marks=pytest.mark.slow, id="as much"), (3, (7001,))],
)
def test_nothing_is_wrong(
    monkeypatch: pytest.MonkeyPatch, ranks: int, large: tuple[int, ...]
) -> None:
    """One rank sums as much as is summed between cards."""
    if ranks == 1:
        monkeypatch.setattr(sums, "_COUNTS", COUNTS)
    monkeypatch.setattr(sums, "_LARGE_COUNTS", large)
    script = Script()
    assert found(ranks=ranks, script=script) == []
    calls = [call for call, _ in script.calls]
    # Dtypes, sizes and one more in the first dtype; times, and out of place and in place.
    kinds = 3 * len(sums._COUNTS) + 1
    assert calls == ["connect", *["all_reduce"] * (kinds * 3 * 2), "close"]


def test_slow_sums_are_waited_for() -> None:
    script = Script({0: "slow", 7: "slow"}, polls=5)
    assert found(script=script) == []


def test_progress_is_told() -> None:
    steps: list[str] = []
    examine(spoiled_backends(2), NAMES[:2], 20.0, steps.append)
    assert steps[:2] == ["connecting them", "summing 129 float32 numbers of each"]
    assert len(steps) == 2 + 3 * 2
    assert steps[-1] == "disconnecting them"


def test_one_wrong_element_is_named() -> None:
    def spoil(number: int, rank: int, total: np.ndarray) -> None:
        if (number, rank) == (7, 1):  # The second all-reduce of the second size: in place.
            total[7] += 1

    script = Script()
    expected = known_sum(3, 8, DTYPES[0])[7]
    assert found(spoil, script=script) == [
        (
            Symptom.WRONG,
            "The sum of 4009 float32 numbers, in place, is wrong on card B: 1 of 4009 elements. "
            f"The first is element 7: expected {expected}, received {expected + 1}.",
        )
    ]
    assert script.calls[-1] == ("close", 0)


def test_nan_is_named() -> None:
    def spoil(number: int, rank: int, total: np.ndarray) -> None:
        if (number, rank) == (0, 2):
            total[2:5] = [np.nan, 0.5, np.nan]

    ((symptom, sentence),) = found(spoil)
    assert symptom is Symptom.WRONG
    assert "is wrong on card C: 3 of 129 elements, of which 2 are NaN" in sentence
    assert "received nan" in sentence


@pytest.mark.parametrize("turn", range(3))
def test_the_sum_before_is_not_taken_for_one_that_never_came(turn: int) -> None:
    before = np.zeros(129, np.float32)

    def spoil(number: int, rank: int, total: np.ndarray) -> None:
        if rank == 0 and number < 2 * turn:
            before[:] = total
        elif (number, rank) == (2 * turn, 0):
            total[:] = before

    ((symptom, sentence),) = found(spoil, 2)
    assert symptom is Symptom.WRONG
    assert "129 float32 numbers, out of place, is wrong on card A" in sentence


@pytest.mark.parametrize("number", [0, 1])
def test_what_was_in_the_memory_is_no_sum(number: int) -> None:
    """Out of place that is NaN, written before; in place it is a rank's own part."""
    left = known_values(0, 129, DTYPES[0]) if number else np.full(129, np.nan, np.float32)

    def spoil(at: int, rank: int, total: np.ndarray) -> None:
        if (at, rank) == (number, 0):
            total[:] = left

    assert [symptom for symptom, _ in found(spoil, 2)] == [Symptom.WRONG]


def test_every_dtype_and_size_is_looked_at() -> None:
    def spoil(number: int, rank: int, total: np.ndarray) -> None:
        total += 1

    sentences = [sentence for _, sentence in found(spoil, 2)]
    for dtype in DTYPES:
        for count in sums._COUNTS:
            for name in NAMES[:2]:
                what = f"The sum of {count} {dtype.name} numbers, out of place, is wrong on {name}:"
                assert sum(sentence.startswith(what) for sentence in sentences) == 1
    assert len(sentences) == 3 * 2 * 2


@pytest.mark.parametrize("abort", ["ok", "never returns"])
def test_devices_that_are_late(monkeypatch: pytest.MonkeyPatch, abort: str) -> None:
    monkeypatch.setattr(sums, "_ABORT_WITHIN", 0.05)
    script = Script({8: "hang"}, aborts=[abort])
    assert found(ranks=2, script=script, timeout=0.05) == [
        (
            Symptom.TIMEOUT,
            "The sum of 4009 float32 numbers, out of place, was not done within 0.05 s on card A, "
            "card B.",
        )
    ]
    assert script.calls[-2:] == [("all_reduce", 8), ("abort", 0)]
    script.release()


WHAT = "The sum of 129 float32 numbers, out of place, failed: "


@pytest.mark.parametrize(
    ("script", "sentence", "last"),
    [
        (
            Script(connects=["fail"]),
            "They could not be connected: The script lets connecting fail.",
            "connect",
        ),
        (Script(["fail"]), f"{WHAT}The script lets all-reduce 0 fail.", "abort"),
        (
            Script(["async"]),
            f"{WHAT}The script lets the link between the devices fail.",
            "abort",
        ),
        (Script(["lost"]), f"{WHAT}The script lets the device fail.", "abort"),
    ],
)
def test_errors(script: Script, sentence: str, last: str) -> None:
    assert found(script=script) == [(Symptom.ERROR, sentence)]
    assert script.calls[-1] == (last, 0)


def test_check_gives_the_sentences() -> None:
    assert selftest.check(spoiled_backends(2)) == []

    def spoil(number: int, rank: int, total: np.ndarray) -> None:
        total *= -1

    sentences = selftest.check(spoiled_backends(2, spoil))
    assert sentences
    assert all("is wrong on rank " in sentence for sentence in sentences)
    assert "on card B" in selftest.check(spoiled_backends(2, spoil), NAMES[:2])[1]


def test_emulated_cards_sum_right(emulated_cuda: Any) -> None:
    emulated_cuda(cards=2)
    cards = [each for each in probe() if each.device_type == "GPU"]
    assert selftest.check([card.open_backend(None) for card in cards]) == []


def test_processes_test_their_cards_together(
    emulated_cuda: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each has its own numbers, and all of them the sum; here they are threads."""
    monkeypatch.setenv("EMULATED_NCCL", str(tmp_path))
    emulated_cuda(cards=3)
    ranks: list[Any] = [c.open_backend(None) for c in probe() if c.device_type == "GPU"]
    parts, key = {0: ranks[:1], 1: ranks[1:]}, ranks[0].new_key()
    found: dict[int, list[Any]] = {}

    def test(first: int) -> None:
        own = parts[first]
        found[first] = examine(own, NAMES[: len(own)], 20.0, lambda _: None, Place(first, 3, key))

    threads = [threading.Thread(target=test, args=(first,)) for first in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: [], 1: []}
