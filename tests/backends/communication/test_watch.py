"""Waits look after collectives: what fails ends everything once, and every thread is told."""

import gc
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_time import FakeTime, stuck, threads_of_calls

from mirrored.backends.communication import watch as module
from mirrored.backends.communication.in_flight import Request
from mirrored.backends.communication.watch import Trouble, Watch
from mirrored.errors import CollectiveError, CollectiveTimeoutError, DeviceLostError

pytestmark = pytest.mark.usefixtures("no_deadlock")


class Devices:
    """A connection whose collectives are done once a test says so, and whose abort is noted."""

    def __init__(self, log: list[str], *names: str) -> None:
        self.names = names or ("GPU:0", "GPU:1")
        self.wrong: str | None = None
        self.done: set[str] = set()
        self.abort: Callable[[], object] = lambda: log.append(f"abort {self.names[0]}")

    def failure(self) -> str | None:
        return self.wrong

    def disconnect(self) -> Callable[[], object]:
        return self.abort

    def request(self, what: str, timeout: float = 1.0, **options: Any) -> Request:
        done = options.pop("done", lambda: what in self.done)
        return Request(self, what, 7, timeout, done, **options)


class Stops:
    """What stops writes to weights."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop

    def stop(self) -> None:
        self._stop()


@pytest.fixture
def fake() -> FakeTime:
    return FakeTime()


@pytest.fixture
def watch(fake: FakeTime) -> Iterator[Watch]:
    yield fake.watch(stop_seconds=0.2, abort_seconds=0.1)
    assert threads_of_calls() == []


@pytest.fixture
def log() -> list[str]:
    return []


def never() -> bool:
    return False


def after(looks: int) -> Callable[[], bool]:
    """Return a function that is True from a look on."""
    left = [looks]

    def done() -> bool:
        left[0] -= 1
        return left[0] < 0

    return done


# ---------------------------------------------------------------------- waiting


@pytest.mark.parametrize("looks", [0, 1, 5, 100])
def test_a_wait_ends_when_it_is_done(watch: Watch, looks: int) -> None:
    watch.wait(after(looks))
    assert watch.idle


def test_what_is_done_is_retired(watch: Watch, log: list[str]) -> None:
    devices = Devices(log)
    for what in "abc":
        watch.add(devices.request(what))
    assert not watch.idle
    devices.done = {"a", "b", "c"}
    watch.wait(after(1))
    assert watch.idle


def test_a_wait_does_not_ask_for_flights_at_each_look(watch: Watch, log: list[str]) -> None:
    devices, asked, looked = Devices(log), [], []
    watch.add(devices.request("a", math.inf, done=lambda: bool(asked.append(1))))
    watch.wait(lambda: looked.append(1) or len(looked) > 300)  # type: ignore[func-returns-value]
    assert 2 <= len(asked) < 60


def test_finish_waits_for_one_connection(watch: Watch, log: list[str]) -> None:
    one, other = Devices(log), Devices(log, "GPU:2")
    watch.add(other.request("x", math.inf))
    watch.add(one.request("a", done=after(20)))
    watch.add(one.request("b", done=after(20)))
    watch.finish(one)
    assert not watch.idle
    other.done = {"x"}
    watch.check()
    assert watch.idle
    watch.finish(one)  # With nothing in flight.


def test_many_in_flight_are_looked_at(watch: Watch, log: list[str]) -> None:
    devices = Devices(log)
    devices.done = {"a"}
    requests = [devices.request("a") for _ in range(module._MANY + 1)]
    for request in requests:
        watch.add(request)
    assert [each in watch._in_flight for each in requests] == [False] * module._MANY + [True]


def test_withdrawn(watch: Watch, log: list[str]) -> None:
    request = Devices(log).request("a", timeout=0)
    watch.add(request)
    watch.withdraw(request)
    assert watch.idle
    watch.check()


def test_an_interrupt_leaves_all_as_it_was(watch: Watch, log: list[str]) -> None:
    devices = Devices(log)
    watch.add(devices.request("a"))

    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch.wait(interrupted)
    assert not watch.idle
    assert log == []
    devices.done = {"a"}
    watch.finish(devices)
    assert watch.idle


# ---------------------------------------------------------------------- what goes wrong


def late(devices: Devices, request: Request) -> None:
    pass


def broken(devices: Devices, request: Request) -> None:
    devices.wrong = "the link is down"


def lost(devices: Devices, request: Request) -> None:
    def raises() -> bool:
        raise DeviceLostError("GPU:1 failed.")

    request.done = raises


WRONG = [
    (late, CollectiveTimeoutError, "bucket 1 in run 7 of its recorded step; 1"),
    (broken, CollectiveError, "the link is down"),
    (lost, DeviceLostError, "GPU:1 failed"),
]


@pytest.mark.parametrize(("act", "kind", "match"), WRONG)
def test_everything_ends(
    watch: Watch,
    log: list[str],
    act: Callable[[Devices, Request], None],
    kind: type[Exception],
    match: str,
) -> None:
    one, other, quiet = Devices(log), Devices(log, "GPU:2"), Devices(log, "GPU:3")
    quiet.done = {"quiet"}
    writes = Stops(lambda: log.append("stop"))
    watch.before_abort(writes.stop)
    watch.add(quiet.request("quiet"))
    watch.check()
    watch.add(one.request("bucket 0", done=after(0)))
    request = one.request("bucket 1", ranks=lambda: (True, False))
    watch.add(request)
    watch.add(other.request("x", math.inf))
    act(one, request)
    with pytest.raises(kind, match=match) as caught:
        watch.wait(never)
    assert log[0] == "stop"
    assert sorted(log[1:]) == ["abort GPU:0", "abort GPU:2"]
    assert watch.idle
    told = "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    for part in (
        "bucket 1 in run 7 of its recorded step",
        "Done on GPU:0. Not done on GPU:1",
        "first: bucket 0 in",
    ):
        assert part in told
    watch.wait(after(3))  # It was told, once.
    watch.check()


def test_a_lost_device_ends_collectives_whoever_sees_it_first(watch: Watch, log: list[str]) -> None:
    watch.add(Devices(log).request("bucket 0", math.inf))

    def event() -> bool:
        raise DeviceLostError("GPU:1 failed.")

    with pytest.raises(DeviceLostError) as caught:
        watch.wait(event)
    assert "bucket 0 in run 7 of its recorded step" in caught.value.__notes__[0]
    assert log == ["abort GPU:0"]
    with pytest.raises(DeviceLostError) as caught:
        watch.wait(event)
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("error", [CollectiveError("refused"), RuntimeError("no memory")])
def test_asking_failed(watch: Watch, log: list[str], error: Exception) -> None:
    request = Devices(log).request("bucket 0")
    watch.add(request)
    with pytest.raises(type(error), match=str(error)) as caught:
        watch.fail(request, error)
    told = "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "bucket 0 in run 7 of its recorded step" in told
    assert log == ["abort GPU:0"]
    assert watch.idle


def test_no_deadline(watch: Watch, fake: FakeTime, log: list[str]) -> None:
    watch.add(Devices(log).request("a", math.inf))
    watch.wait(lambda: fake.clock() > 2.0)
    assert not watch.idle
    assert log == []


def test_a_deadline_may_be_long(log: list[str]) -> None:
    clock = iter(range(0, 10**9, 1000))
    watch = Watch(lambda: next(clock), lambda seconds: None)
    watch.add(Devices(log).request("a", timeout=10_000))
    with pytest.raises(CollectiveTimeoutError):
        watch.wait(never)
    assert threads_of_calls() == []


# ---------------------------------------------------------------------- several threads


class Thread(threading.Thread):
    """A thread of a user, which keeps what was raised in it."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(name="mirrored-test", daemon=True)
        self.error: BaseException | None = None
        self._work = work
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error


def test_two_threads_wait(watch: Watch, log: list[str]) -> None:
    one, other = Devices(log), Devices(log, "GPU:2")
    watch.add(one.request("a"))

    def work() -> None:
        watch.add(other.request("b"))
        watch.finish(other)

    thread = Thread(work)
    with pytest.raises(CollectiveError) as caught:
        watch.finish(one)
    thread.join(10)
    errors: list[Any] = [caught.value, thread.error]
    assert {type(each) for each in errors} == {CollectiveTimeoutError}
    first, second = sorted(errors, key=lambda error: error.__cause__ is not None)
    assert first.__cause__ is None
    assert str(second.__cause__) == str(first)
    assert sorted(log) == ["abort GPU:0", "abort GPU:2"]
    assert watch.idle


def test_a_thread_that_waits_for_something_else_is_told(watch: Watch, log: list[str]) -> None:
    """What it waits for may be done by the abort."""
    begun, devices = threading.Event(), Devices(log)
    thread = Thread(lambda: watch.wait(lambda: bool(begun.set()) or log != []))
    assert begun.wait(10)
    watch.add(devices.request("a"))
    with pytest.raises(CollectiveError) as caught:
        watch.finish(devices)
    thread.join(10)
    assert {type(caught.value), type(thread.error)} == {CollectiveTimeoutError}
    errors: list[Any] = [caught.value, thread.error]
    assert [each.__cause__ is not None for each in errors].count(True) == 1


def test_a_thread_that_does_not_wait_is_told_at_its_next_wait(watch: Watch, log: list[str]) -> None:
    devices = Devices(log)
    watch.add(devices.request("a"))
    thread = Thread(lambda: watch.wait(never))
    thread.join(10)
    assert isinstance(thread.error, CollectiveTimeoutError)
    assert not watch.idle  # This thread has to be told.
    with pytest.raises(CollectiveError, match=": a in run 7 of its recorded step") as caught:
        watch.wait(lambda: True)
    assert str(caught.value.__cause__) == str(thread.error)
    assert watch.idle
    watch.wait(lambda: True)


def test_failing_because_others_abort(watch: Watch, log: list[str]) -> None:
    """A call that an abort lets return with an error is not what went wrong."""
    devices = Devices(log)
    request = devices.request("a")
    watch.add(request)
    thread = Thread(lambda: watch.wait(never))
    thread.join(10)
    with pytest.raises(CollectiveError, match="deadline") as caught:
        watch.fail(request, CollectiveError("aborted"))
    assert str(caught.value.__cause__) == str(thread.error)
    assert log == ["abort GPU:0"]


# ---------------------------------------------------------------------- stopping and aborting


def test_stops_are_held_weakly(watch: Watch, log: list[str]) -> None:
    kept, gone = (Stops(lambda what=what: log.append(what)) for what in ("kept", "gone"))
    watch.before_abort(kept.stop)
    watch.before_abort(gone.stop)
    del gone
    watch.add(Devices(log).request("a", 0))
    with pytest.raises(CollectiveTimeoutError):
        watch.check()
    assert log == ["kept", "abort GPU:0"]


def test_stops_may_wait_for_devices(watch: Watch, log: list[str]) -> None:
    """A wait within looks after nothing, and does not wait for the abort."""

    def stop() -> None:
        watch.wait(after(30))
        watch.check()
        watch.settle()
        log.append("stopped")

    writes = Stops(stop)
    watch.before_abort(writes.stop)
    watch.add(Devices(log).request("a", 0))
    with pytest.raises(CollectiveTimeoutError, match="can be saved") as caught:
        watch.check()
    assert log == ["stopped", "abort GPU:0"]
    assert caught.value.aborted


def hangs() -> None:
    release = threading.Event()
    hanging.append(release)
    with stuck(lambda: not release.is_set()):
        release.wait(100)


hanging: list[threading.Event] = []


@pytest.fixture
def released() -> Iterator[None]:
    yield
    while hanging:
        hanging.pop().set()
    assert threads_of_calls() == []


def fails() -> None:
    raise RuntimeError("what went wrong")


@pytest.mark.parametrize("where", ["stop", "abort"])
@pytest.mark.parametrize(
    ("act", "told"),
    [
        (hangs, "did not return within 0."),
        (fails, "failed: what went wrong"),
        ("waits", "did not return within|failed: A device was not done by the deadline"),
    ],
)
@pytest.mark.usefixtures("released")
def test_one_that_does_not_work_keeps_none_from_being_tried(
    fake: FakeTime, log: list[str], where: str, act: Any, told: str
) -> None:
    watch = fake.watch(stop_seconds=0.2, abort_seconds=0.1)
    if act == "waits":
        act = lambda: watch.wait(never)  # noqa: E731
    one, other = Devices(log), Devices(log, "GPU:2")
    first = Stops(act if where == "stop" else lambda: log.append("stop"))
    second = Stops(lambda: log.append("stop"))
    if where == "abort":
        one.abort = act
    for writes in (first, second):
        watch.before_abort(writes.stop)
    watch.add(one.request("a", 0))
    watch.add(other.request("b"))
    name = "mirrored-stop-Stops" if where == "stop" else "mirrored-abort-GPU:0[+]GPU:1"
    who = f"The thread '{name}'|Stopping the writes of a Stops"
    with pytest.raises(CollectiveTimeoutError, match=f"({who}) ({told})") as caught:
        watch.check()
    assert caught.value.aborted == (where == "stop")
    assert "can be saved" not in str(caught.value)
    both = ["stop", "stop"], ["abort GPU:0", "abort GPU:2"]
    (both[0] if where == "stop" else both[1]).pop(0)
    assert sorted(log) == sorted([*both[0], *both[1]])
    assert watch.idle
    watch.wait(after(3))


def test_an_interrupt_while_aborting_does_not_stop_the_abort(
    fake: FakeTime, log: list[str]
) -> None:
    release = threading.Event()

    def slow() -> None:
        with stuck(lambda: not release.is_set()):
            release.wait(100)
        log.append("aborted")

    main = threading.current_thread()

    def sleep(seconds: float) -> None:
        if threading.current_thread() is main and watch._aborting is not None:
            raise KeyboardInterrupt
        fake.sleep(seconds)

    watch = Watch(fake.clock, sleep)
    devices = Devices(log)
    devices.abort = slow
    watch.add(devices.request("a", 0))
    with pytest.raises(KeyboardInterrupt):
        watch.check()
    release.set()
    assert threads_of_calls() == []
    assert log == ["aborted"]
    with pytest.raises(CollectiveError) as caught:  # It was not told yet.
        watch.wait(never)
    assert isinstance(caught.value.__cause__, CollectiveTimeoutError)
    assert watch.idle


def test_no_thread_can_be_started(
    watch: Watch, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the interpreter ends."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    watch.add(Devices(log).request("a", 0))
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(
        CollectiveTimeoutError, match=r"Nothing was aborted: A thread could not.*: can't create"
    ) as caught:
        watch.check()
    assert caught.value.aborted is False
    assert log == []
    assert watch.idle


def test_a_lost_device_that_another_thread_saw_first(watch: Watch, log: list[str]) -> None:
    """This one is told once, with all that is known."""
    watch.add(Devices(log).request("a", math.inf))

    def event() -> bool:
        watch._begin_abort(Trouble(watch._in_flight.first(), (True, None), cause=LOST))
        raise DeviceLostError("GPU:1 failed.")

    with pytest.raises(DeviceLostError, match="elsewhere: GPU:0 failed") as caught:
        watch.wait(event)
    assert "Done on GPU:0. Unknown whether done on GPU:1." in caught.value.__notes__[0]
    assert watch.idle


LOST = DeviceLostError("GPU:0 failed.")


def test_failing_while_everything_ends(watch: Watch, log: list[str]) -> None:
    """What was added to what ends already ends nothing more, and does not stay in flight."""
    devices, go_on = Devices(log), threading.Event()

    def slow() -> None:
        with stuck(lambda: not go_on.is_set()):
            go_on.wait(10)
        log.append("aborted")

    devices.abort = slow
    watch.add(devices.request("a", 0))
    thread = Thread(watch.check)
    while watch._aborting is None:
        time.sleep(1e-4)
    request = devices.request("b")
    watch.add(request)
    go_on.set()
    with pytest.raises(CollectiveError, match=r"elsewhere|not connected"):
        watch.fail(request, CollectiveError("not connected"))
    thread.join(10)
    assert isinstance(thread.error, CollectiveTimeoutError)
    assert log == ["aborted"]
    assert not watch._in_flight


def test_what_devices_may_use_for_ever_is_kept(fake: FakeTime, log: list[str]) -> None:
    watch = fake.watch(stop_seconds=0.2, abort_seconds=0.1)
    requests = []
    for abort in (lambda: None, fails):
        devices = Devices(log)
        devices.abort = abort
        requests.append(weakref.ref(request := devices.request("a", 0)))
        watch.add(request)
        del request
        with pytest.raises(CollectiveTimeoutError):
            watch.check()
        del devices
    assert threads_of_calls() == []
    gc.collect()
    assert [each() is None for each in requests] == [True, False]


# ---------------------------------------------------------------------- where nobody waits


def watchdogs(seconds: float = 0.0) -> list[str]:
    """Return the names of the watch's threads that do not end within some seconds."""
    names = ("mirrored-watchdog", "mirrored-poll")
    threads = [thread for thread in threading.enumerate() if thread.name in names]
    for thread in threads:
        thread.join(seconds)
    return [thread.name for thread in threads if thread.is_alive()]


@pytest.fixture
def guarded() -> Iterator[Watch]:
    """Return a watch by real time, with a watchdog."""
    yield Watch(watchdog_seconds=0.01, poll_seconds=0.05, stop_seconds=5, abort_seconds=5)
    assert threads_of_calls() == []
    assert watchdogs(10.0) == []


class Driver(Devices):
    """A connection that keeps the threads that ask something of it, until it is aborted."""

    def __init__(self, log: list[str], *keeps: str) -> None:
        super().__init__(log)
        self._keeps = keeps
        self._aborted = threading.Event()
        self.abort = self._aborted.set

    def asked(self, what: str) -> bool:
        if what in self._keeps and not self._aborted.wait(30):
            raise TimeoutError(f"Nobody aborted what keeps {what!r}.")
        return False

    def failure(self) -> str | None:
        self.asked("failure")
        return None

    def request(self, what: str, timeout: float = 0.03, **options: Any) -> Request:
        done = lambda: self.asked("done")  # noqa: E731
        ranks = lambda: [self.asked("ranks"), True]  # noqa: E731
        return Request(self, what, 7, timeout, done, ranks)


@pytest.mark.parametrize("keeps", [(), ("done",), ("failure",), ("ranks",), ("done", "ranks")])
def test_a_host_that_the_driver_keeps(
    guarded: Watch, log: list[str], keeps: tuple[str, ...]
) -> None:
    """It is let go, and told at its next wait."""
    driver = Driver(log, "launch", *keeps)
    writes = Stops(lambda: log.append("stop"))
    guarded.before_abort(writes.stop)
    guarded.add(driver.request("a"))
    driver.asked("launch")
    with pytest.raises(CollectiveTimeoutError, match="deadline") as caught:
        guarded.wait(never)
    known = "Unknown whether done on GPU:0, GPU:1" if keeps else "Done on GPU:1. Not done on GPU:0"
    for part in (known, "a in run 7 of its recorded step", "can be saved", "What to try"):
        assert part in str(caught.value)
    assert caught.value.aborted
    assert log == ["stop"]
    assert guarded.idle
    assert watchdogs(10.0) == []
    guarded.add(driver.request("b"))  # Looks go on, also where one of before came back late.
    with pytest.raises(CollectiveTimeoutError):
        guarded.wait(never)


def test_what_ends_just_before_a_wait_is_told(
    guarded: Watch, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking whether there is something to tell and waiting, a watchdog may end it all."""
    tell = guarded._tell

    def ending_behind() -> None:
        tell()
        monkeypatch.setattr(guarded, "_tell", tell)
        while guarded._last_error is None or guarded._aborting is not None:
            time.sleep(0.001)

    guarded.add(Driver(log).request("a"))
    monkeypatch.setattr(guarded, "_tell", ending_behind)
    with pytest.raises(CollectiveTimeoutError, match="deadline"):
        guarded.wait(never)


def test_a_host_that_the_driver_keeps_while_it_waits(guarded: Watch, log: list[str]) -> None:
    driver = Driver(log, "done")
    guarded.add(driver.request("a"))
    with pytest.raises(CollectiveTimeoutError, match="Unknown whether done on GPU:0, GPU:1"):
        guarded.finish(driver)
    assert watchdogs(10.0) == []


def test_a_lost_device_is_seen_where_nobody_waits(guarded: Watch, log: list[str]) -> None:
    devices = Devices(log)
    request = devices.request("a", math.inf)
    lost(devices, request)
    guarded.add(request)
    while not log:
        time.sleep(1e-3)
    with pytest.raises(DeviceLostError, match="elsewhere: GPU:1 failed") as caught:
        guarded.check()
    assert "a in run 7 of its recorded step" in caught.value.__notes__[0]


def test_no_watchdog_stays_where_nothing_is_in_flight(log: list[str]) -> None:
    watch, devices, other = Watch(watchdog_seconds=30), Devices(log), Devices(log, "GPU:2")
    devices.done = other.done = {"a", "b"}
    for what in "ab":  # One after the other, each time.
        watch.add(devices.request(what))
        assert watchdogs() == ["mirrored-watchdog"]
        watch.finish(devices)
        assert watchdogs() == []
    watch.add(devices.request("a"))
    watch.add(other.request("b"))
    watch.finish(devices)
    assert watchdogs() == ["mirrored-watchdog"]
    watch.finish(other)
    assert watchdogs() == []
    watch.add(devices.request("c", timeout=0))
    with pytest.raises(CollectiveTimeoutError):
        watch.wait(never)
    assert watchdogs() == []


def test_the_process_has_a_watchdog() -> None:
    assert module.WATCH._watchdog is not None
    assert Watch()._watchdog is None
