"""A call in a thread: what it returned, raised, or returns to nobody any more."""

import threading
from itertools import islice

import pytest
from fake_time import FakeTime, stuck

from mirrored.backends.communication.in_flight import Future, Workers, pauses
from mirrored.errors import CollectiveTimeoutError


def over(call: Future[int]) -> Future[int]:
    call.thread.join(10)
    assert call.is_over
    return call


def test_result() -> None:
    call = over(Future("mirrored-call-test", lambda: 3))
    assert (call.result(), call.error, call.begun) == (3, None, True)


def test_error() -> None:
    def fail() -> int:
        raise KeyError("what went wrong")

    call = over(Future("mirrored-call-test", fail))
    assert isinstance(call.error, KeyError)
    with pytest.raises(KeyError, match="what went wrong"):
        call.result()


def test_too_early() -> None:
    go_on = threading.Event()
    call = Future("mirrored-call-test", lambda: int(go_on.wait(10)))
    try:
        assert not call.is_over
        assert call.thread.daemon
        with pytest.raises(RuntimeError, match="Received: 'mirrored-call-test'"):
            call.result()
    finally:
        go_on.set()
    assert over(call).result() == 1


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    call = Future("mirrored-call-test", lambda: 3)
    assert (call.begun, call.is_over) == (False, True)
    with pytest.raises(RuntimeError, match="can't create new thread"):
        call.result()


@pytest.mark.parametrize("late", [False, True])
def test_abandoned_value_goes_to_who_disposes_of_it(late: bool) -> None:
    go_on, disposed, done = threading.Event(), [], threading.Event()

    def dispose(value: int) -> None:
        disposed.append(value)
        done.set()

    call = Future("mirrored-call-test", lambda: int(go_on.wait(10)))
    if late:
        call.abandon(dispose)
    go_on.set()
    over(call)
    if not late:
        call.abandon(dispose)
    assert done.wait(10)
    assert disposed == [1]


def test_pauses_grow_to_a_tenth_of_a_millisecond() -> None:
    found = []
    for pause in pauses(FakeTime().clock):
        found.append(pause)
        if len(found) == 60:
            break
    assert found == sorted(found)
    assert found[0] == 0.0
    assert found[-1] == 1e-4
    assert 0 < min(pause for pause in found if pause) < 1e-4


def test_pauses_of_a_long_wait_are_longer() -> None:
    time = FakeTime()
    found = pauses(time.clock)
    while next(found) < 1e-4:
        pass
    time.now += 1.0
    assert max(islice(found, 10)) == 1e-3


@pytest.fixture
def workers() -> Workers:
    time = FakeTime()
    return Workers(time.clock, time.sleep)


def test_waits_of_helpers_have_a_deadline(workers: Workers) -> None:
    looks, is_worker = iter([False, False, True]), []

    def work() -> None:
        is_worker.append(workers.is_worker)
        workers.wait(lambda: next(looks))
        workers.wait(lambda: False)

    call = workers.call("mirrored-call-test", work, 2.0)
    workers.rest_until(lambda: call.is_over)
    with pytest.raises(CollectiveTimeoutError, match="by the deadline of this call"):
        call.result()
    assert 2.0 <= workers.clock() < 2.1
    assert is_worker == [True]
    assert not workers.is_worker


def test_what_is_wrong_with_calls(workers: Workers) -> None:
    release = threading.Event()

    def fail() -> None:
        raise KeyError("what went wrong")

    def hang() -> None:
        with stuck(lambda: not release.is_set()):
            release.wait(30)

    works = [("a", fail), ("b", hang), ("c", lambda: None)]
    calls = [workers.call(f"mirrored-call-{name}", work) for name, work in works]
    assert workers.all_over(calls, workers.clock() + 2.0, 2.0) == [
        "The thread 'mirrored-call-a' failed: 'what went wrong'.",
        "The thread 'mirrored-call-b' did not return within 2 seconds.",
    ]
    release.set()
    assert workers.all_over(calls[1:], workers.clock() + 2.0, 2.0) == []
