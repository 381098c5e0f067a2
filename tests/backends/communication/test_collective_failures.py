"""The error of a collective that failed has all that is known, as text and as attributes."""

import pickle
from typing import Any

import pytest
from case_table import cases

from mirrored.backends.communication.collective_failures import (
    FailedCollective,
    elsewhere,
    timed_out,
)
from mirrored.errors import CollectiveError, CollectiveTimeoutError, DeviceLostError

FACTS: dict[str, Any] = {
    "names": ("GPU:0", "GPU:1", "GPU:2"),
    "what": "bucket 2 of 5",
    "step": 12,
    "elapsed": 600.5,
    "timeout": 600.0,
    "done": (True, False, None),
    "completed": (
        "bucket 0 of 5 in run 12 of its recorded step",
        "bucket 1 of 5 in run 12 of its recorded step",
    ),
}
LATE = FailedCollective(**FACTS, late=True)
SAVED = "those of the last whole step, and can be saved"


def test_late() -> None:
    error = LATE.error([], [])
    assert isinstance(error, CollectiveTimeoutError)
    assert isinstance(error, TimeoutError)
    text = str(error)
    for part in (
        "was not done by its deadline. Received: the collective of GPU:0, GPU:1, GPU:2: "
        "bucket 2 of 5 in run 12 of its recorded step; 600.5 seconds, of at most 600.",
        "Done on GPU:0. Not done on GPU:1. Unknown whether done on GPU:2.",
        "oldest first: bucket 0 of 5 in run 12 of its recorded step; bucket 1 of 5 in run 12 of",
        SAVED,
        "`timeout_seconds`",
        "`python -m mirrored selftest`",
        "NCCL_DEBUG=WARN",
        "NCCL_P2P_DISABLE=1",
        "NCCL_NVLS_ENABLE=0",
    ):
        assert part in text
    assert error.devices == FACTS["names"]
    assert (error.what, error.step) == ("bucket 2 of 5", 12)
    assert (error.elapsed, error.timeout) == (600.5, 600.0)
    assert error.completed == FACTS["completed"]
    assert error.aborted is True


@cases(
    ("not_stopped", "not_aborted", "aborted", "advice"),
    [
        ([], [], True, SAVED),
        (["Stop hangs."], [], True, "The weights on the devices may be wrong"),
        ([], ["Abort hangs."], False, "This process may not be able to use"),
        (["Stop hangs."], ["Abort hangs."], False, "This process may not be able to use"),
    ],
)
def test_what_is_left(
    not_stopped: list[str], not_aborted: list[str], aborted: bool, advice: str
) -> None:
    error = LATE.error(not_stopped, not_aborted)
    assert isinstance(error, CollectiveError)
    assert error.aborted is aborted
    assert advice in str(error)
    assert (SAVED in str(error)) == (advice == SAVED)
    for problem in (*not_stopped, *not_aborted):
        assert problem in str(error)


@pytest.mark.parametrize("as_cause", [False, True])
def test_failed(as_cause: bool) -> None:
    cause = CollectiveError("the link is down.") if as_cause else None
    error = FailedCollective(
        **FACTS, cause=cause, failure=None if as_cause else "the link is down"
    ).error([], [])
    assert type(error) is CollectiveError
    assert "A collective failed. Received: " in str(error)
    assert "bucket 2 of 5 in run 12 of its recorded step; the link is down.\n" in str(error)
    assert "timeout_seconds" not in str(error)
    assert error.__cause__ is cause
    assert error.timeout is None


def test_other_errors_stay_what_they_are() -> None:
    cause = DeviceLostError("GPU:2 failed.")
    assert FailedCollective(**FACTS, cause=cause).error([], ["Abort hangs."]) is cause
    (note,) = cause.__notes__
    for part in (
        "bucket 2 of 5 in run 12 of its recorded step",
        "Not done on GPU:1",
        "disconnected",
        "Abort hangs.",
    ):
        assert part in note
    assert SAVED not in note


def test_nothing_known() -> None:
    error = FailedCollective(names=("GPU:0",), what="x", failure="it broke").error([], [])
    assert "the collective of GPU:0: x; it broke.\nNone of these devices' collectives" in str(error)


@pytest.mark.parametrize("late", [True, False])
def test_elsewhere(late: bool) -> None:
    """Who notices first is left to chance, so the error is of the same type, with all facts."""
    first = FailedCollective(**FACTS, late=late, failure=None if late else "it broke").error([], [])
    error = elsewhere(first)
    assert type(error) is type(first) is (CollectiveTimeoutError if late else CollectiveError)
    assert error.__cause__ is first
    assert str(error).endswith(f"its results are lost. Received, elsewhere: {first}")
    assert vars(error) == vars(first)


def test_elsewhere_a_device_was_lost() -> None:
    first = FailedCollective(**FACTS, cause=DeviceLostError("GPU:2 failed.")).error([], [])
    error = elsewhere(first)
    assert type(error) is DeviceLostError
    assert "Received, elsewhere: GPU:2 failed." in str(error)
    assert error.__notes__ == first.__notes__
    error.add_note("one of its own")
    assert len(first.__notes__) == 1


def test_elsewhere_something_else_was_raised() -> None:
    error = elsewhere(KeyboardInterrupt())
    assert type(error) is CollectiveError
    assert "Received, elsewhere: KeyboardInterrupt." in str(error)
    assert error.devices == ()


def test_timed_out() -> None:
    error = timed_out(("GPU:0", "GPU:1"), "connecting", 120, "mirrored-connect")
    assert isinstance(error, CollectiveTimeoutError)
    assert "Connecting devices was not done by its deadline. Received: GPU:0, GPU:1; 120 s" in str(
        error
    )
    assert "'mirrored-connect'" in str(error)
    assert (error.devices, error.what, error.timeout) == (("GPU:0", "GPU:1"), "connecting", 120)
    assert error.aborted is None


def test_errors_are_pickled_with_what_is_known() -> None:
    error = LATE.error([], [])
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
