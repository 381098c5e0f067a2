"""How a worker waits: what ends it, and what the errors say."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from case_table import cases

from mirrored import _interrupt
from mirrored._stalls import StallReporter
from mirrored.errors import WorkerError, WorkerTimeoutError
from mirrored.workers import waiting as module
from mirrored.workers.notices import ENDED, FAILED, Notice
from mirrored.workers.waiting import Waiting, processor_ticks, this_process
from mirrored.workers.worker import Workers
from mirrored.workers.worker_calls import Call

CALL = Call(5, "sum", "float32", 10, "bucket 1 of step 2")


class Notices:
    """What others tell, after so many looks."""

    def __init__(self, *coming: Notice, after: int = 3) -> None:
        self.failure: Notice | None = None
        self.dead: tuple[int, ...] = ()
        self.ended: dict[int, Notice] = {}
        self.looks = 0
        self._coming = coming
        self._after = after

    def look(self) -> None:
        self.looks += 1
        if self.looks == self._after:
            for each in self._coming:
                if each.kind == ENDED:
                    self.ended[each.worker] = each
                else:
                    self.failure = each


def wait(
    notices: Notices,
    ready: Callable[[], bool] = lambda: False,
    missing: Sequence[int] = (2,),
    deadline: float = 60.0,
) -> None:
    workers = Workers(0, ("a", "a", "b"))
    workers.deadline = deadline
    made: Any = notices
    Waiting(workers, made).until(ready, CALL, lambda: missing, lambda: (1, 2))


def test_it_returns_when_all_is_ready() -> None:
    notices = Notices()
    wait(notices, lambda: True)
    assert notices.looks == 0  # Which is quick: nobody else is asked.
    wait(notices, lambda: notices.looks == 4)
    assert notices.looks == 4


@cases(("about", "worker", "host"), [(None, 2, "b"), (1, 1, "a"), (0, 2, "b")])
def test_a_failure_names_the_worker_that_it_began_with(
    about: int | None, worker: int, host: str
) -> None:
    told = Notice(FAILED, 2, "b", 4, None, "WorkerError: worker 1 has ended", about)
    with pytest.raises(WorkerError, match="Worker 2 on host b failed") as raised:
        wait(Notices(told))
    assert (raised.value.worker, raised.value.host) == (worker, host)


def test_a_failure_is_raised() -> None:
    told = Notice(FAILED, 2, "b", 4, "step 2", "ValueError: no batch")
    with pytest.raises(
        WorkerError, match=r"Worker 2 on host b failed in step 2, after 4"
    ) as raised:
        wait(Notices(told))
    error = raised.value
    assert "ValueError: no batch\nWorker 0 was in call 5, sum of 10 float32" in str(error)
    assert (error.worker, error.host, error.step) == (2, "b", "step 2")
    assert (error.what, error.reason, error.missing) == (CALL.label, told.reason, ())


def test_an_early_end_is_raised() -> None:
    with pytest.raises(
        WorkerError, match=r"Worker 2 on host b has ended after 4 calls, .* call 5,"
    ):
        wait(Notices(Notice(ENDED, 2, "b", 4)))


def test_who_ends_after_this_call_is_no_matter() -> None:
    notices = Notices(Notice(ENDED, 2, "b", 5))
    wait(notices, lambda: notices.looks == 6)


def test_who_fails_after_this_call_lets_it_end() -> None:
    notices = Notices(Notice(FAILED, 2, "b", 5))
    wait(notices, lambda: notices.looks == 3)
    with pytest.raises(WorkerError):  # The next one does not begin.
        Waiting(Workers(), notices).check(CALL)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ((2,), "Worker 2 on host b did not come to call 5, .* of worker 0 by its deadline"),
        ((1, 2), "Worker 1 on host a, worker 2 on host b did not come to"),
        ((), "Worker 1 on host a, worker 2 on host b came to, and did not finish, call 5"),
    ],
)
def test_who_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[int, ...], said: str
) -> None:
    monkeypatch.setattr(module, "_LONGER", 0.0)
    with pytest.raises(WorkerTimeoutError, match=said) as raised:
        wait(Notices(), missing=missing, deadline=0.0)
    assert raised.value.missing == (missing or (1, 2))
    assert "of at most 0 seconds" in str(raised.value)
    assert isinstance(raised.value, TimeoutError)


def test_who_has_come_gets_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others can say who it is that they wait for."""
    told = Notice(FAILED, 1, "a", 5, None, "WorkerTimeoutError: Worker 2 on host b did not come")
    with pytest.raises(
        WorkerError, match=r"Worker 1 on host a failed.* Worker 2 on host b"
    ) as raised:
        wait(Notices(told, after=20), missing=(), deadline=0.0)
    assert not isinstance(raised.value, WorkerTimeoutError)


def test_an_interrupt_that_was_held_back_too_long_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deliver() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_interrupt, "is_overdue", lambda: True)
    monkeypatch.setattr(_interrupt, "deliver", deliver)
    with pytest.raises(KeyboardInterrupt):
        wait(Notices())


def test_others_are_heard_of_beside_calls() -> None:
    """Who has ended did its part before, which may take a moment to be seen."""
    notices: Any = Notices()
    waiting = Waiting(Workers(0, ("a", "b")), notices)
    notices.first_end = math.inf
    waiting.check_without_call("a sum", 0.0)
    notices.ended[1] = Notice(ENDED, 1, "b", 7)
    notices.first_end = time.monotonic()
    waiting.check_without_call("a sum", 60.0)
    with pytest.raises(
        WorkerError, match=r"Worker 1 on host b has ended .* for it in a sum"
    ) as ended:
        waiting.check_without_call("a sum", -1.0)
    assert (ended.value.worker, ended.value.reason) == (1, "ended")
    notices.failure = Notice(FAILED, 1, "b", 7, None, "OSError: gone")
    with pytest.raises(WorkerError, match="OSError: gone"):
        waiting.check_without_call("a sum", 60.0)
    waiting.stopped = OSError("here")  # This worker has failed itself, and knows.
    waiting.check_without_call("a sum", -1.0)


this = this_process()
pytestmark = pytest.mark.skipif(this is None, reason="This system has no /proc.")


def test_a_process_that_computes_is_seen_to() -> None:
    before = processor_ticks(this)
    assert before is not None
    until = time.process_time() + 0.03  # The system counts hundredths of a second.
    while time.process_time() < until:
        pass
    after = processor_ticks(this)
    assert after is not None
    assert after > before


@cases("changes", [{"started": -1}, {"namespace": "pid:[1]"}, {"number": -1}])
def test_another_process_is_not_mistaken_for_it(changes: dict[str, int | str]) -> None:
    assert this is not None
    assert processor_ticks(this._replace(**changes)) is None  # type: ignore[arg-type]
    assert processor_ticks(None) is None


def test_a_report_of_a_stall_names_call_and_worker() -> None:
    over = threading.Event()
    thread = threading.Thread(target=wait, args=(Notices(), over.is_set), name="user")
    thread.start()
    try:
        reporter, expected = StallReporter(10.0), f"waits for other workers: {CALL}; worker 2"
        for now in range(0, 100_000, 10):
            text = reporter.look(float(now))
            if text is not None and expected in text:
                break
            time.sleep(0.001)
        else:
            pytest.fail("no such report")
    finally:
        over.set()
        thread.join(60.0)
