"""When an interrupt that a step holds back is overdue, and who acts on it then."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mirrored import _interrupt
from mirrored._interrupt import InterruptGuard


@pytest.fixture(autouse=True)
def handled() -> Iterator[list[int]]:
    """Return the interrupts that a handler was given; it raises nothing."""
    given: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: given.append(number))
    yield given
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_nothing_is_overdue_outside_of_steps() -> None:
    assert not _interrupt.is_overdue()
    with InterruptGuard(may_break=True):
        assert not _interrupt.is_overdue()
    _interrupt.deliver()


def test_it_is_overdue_after_a_while(handled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_interrupt, "PATIENCE", 0.0)
    with InterruptGuard(whole=True, may_break=True):
        interrupt()
        assert handled == []
        assert _interrupt.is_overdue()
        _interrupt.deliver()
        assert handled == [signal.SIGINT]
        assert not _interrupt.is_overdue()
    assert len(handled) == 1  # Once.


def test_a_second_one_in_a_users_function_acts_at_once() -> None:
    """Such a function may never return, as in a layer or in a function of the host."""

    def step(may_break: bool) -> None:
        inner = InterruptGuard(whole=True, may_break=may_break)
        with InterruptGuard(may_break=True) as guard, guard.step(), inner:
            interrupt()
            interrupt()
            goes_on.append(may_break)

    goes_on: list[bool] = []
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for may_break in (True, False):  # False: half of what is written would be none.
        with pytest.raises(KeyboardInterrupt):
            step(may_break)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert goes_on == [False]
    assert not _interrupt._holding


def test_it_is_overdue_when_it_is_repeated(
    handled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_interrupt, "_is_users", lambda frame: False)
    with InterruptGuard(whole=True, may_break=True):
        interrupt()
        assert not _interrupt.is_overdue()
        interrupt()
        assert _interrupt.is_overdue()
    assert len(handled) == 1
    assert not _interrupt.is_overdue()


@pytest.mark.parametrize("outer", [True, False])
def test_guards_around_have_a_say(
    outer: bool, handled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one step holds back that must not break goes on being held back."""
    monkeypatch.setattr(_interrupt, "PATIENCE", 0.0)
    with InterruptGuard(whole=True, may_break=True), InterruptGuard(whole=True, may_break=outer):
        interrupt()
        assert _interrupt.is_overdue() == outer
        if outer:
            _interrupt.deliver()
            assert len(handled) == 1
    assert len(handled) == 1


def test_other_threads_leave_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_interrupt, "PATIENCE", 0.0)
    answers: list[bool] = []
    with InterruptGuard(whole=True, may_break=True):
        interrupt()
        thread = threading.Thread(target=lambda: answers.append(_interrupt.is_overdue()))
        thread.start()
        thread.join()
        assert _interrupt.is_overdue()
    assert answers == [False]


@pytest.mark.parametrize("whole", [True, False])
def test_a_handler_that_is_set_meanwhile_stays(whole: bool, handled: list[int]) -> None:
    """It may hand on to the one before it, which is the guard's, whenever that is."""
    mine: list[int] = []
    with InterruptGuard(whole=whole):
        before = signal.getsignal(signal.SIGINT)
        assert callable(before)

        def handler(number: int, frame: Any) -> None:
            mine.append(number)
            before(number, frame)

        signal.signal(signal.SIGINT, handler)
        interrupt()
        assert (len(mine), len(handled)) == (1, 0 if whole else 1)
    assert signal.getsignal(signal.SIGINT) is handler
    assert len(handled) == 1
    interrupt()
    assert (len(mine), len(handled)) == (2, 2)


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_without_a_handler_of_pythons_are_left_alone(before: Any) -> None:
    """As in a run that was started with `&` or `nohup`."""
    signal.signal(signal.SIGINT, before)
    with InterruptGuard(whole=True, may_break=True):
        assert signal.getsignal(signal.SIGINT) is before
        if before is signal.SIG_IGN:
            interrupt()
        assert not _interrupt.is_overdue()
    assert signal.getsignal(signal.SIGINT) is before
