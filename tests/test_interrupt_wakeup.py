"""Interrupts that come while the main thread is inside a library, where no handler can run."""

import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from mirrored import _interrupt
from mirrored._interrupt import PATIENCE, inside


class Heard:
    """A listener, at a time that the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.wakeup = _interrupt._Wakeup()
        monkeypatch.setattr(_interrupt, "WAKEUP", self.wakeup)
        monkeypatch.setattr(_interrupt.time, "monotonic", lambda: self.now)
        self.wakeup.listen()

    def after(self, seconds: float) -> bool:
        self.now += seconds
        return self.wakeup.is_overdue()


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    before, handler = signal.set_wakeup_fd(-1), signal.signal(signal.SIGINT, lambda *_: None)
    heard = Heard(monkeypatch)
    yield heard
    heard.wakeup._end()
    signal.signal(signal.SIGINT, handler)
    signal.set_wakeup_fd(before)


def test_an_interrupt_inside_a_call_is_overdue_after_a_while(heard: Heard) -> None:
    with inside():
        assert not heard.after(10 * PATIENCE)
        signal.raise_signal(signal.SIGINT)
        assert not heard.after(0)
        assert not heard.after(PATIENCE / 2)
        assert heard.after(PATIENCE / 2)
    assert not heard.after(0)  # The handler has run.


def test_a_second_interrupt_is_overdue_at_once(heard: Heard) -> None:
    with inside():
        signal.raise_signal(signal.SIGINT)
        assert not heard.after(0)
        signal.raise_signal(signal.SIGINT)
        assert heard.after(0)


def test_other_calls_have_nothing_to_do_with_it(heard: Heard) -> None:
    with inside():
        signal.raise_signal(signal.SIGINT)
        assert not heard.after(0)
    with inside():
        assert not heard.after(2 * PATIENCE)
    signal.raise_signal(signal.SIGINT)
    assert not heard.after(0)
    with inside():
        assert not heard.after(2 * PATIENCE)
        signal.raise_signal(signal.SIGINT)
        heard.wakeup.forget()
        assert not heard.after(2 * PATIENCE)


def test_other_signals_are_none(heard: Heard) -> None:
    handler = signal.signal(signal.SIGUSR1, lambda *_: None)
    with inside():
        signal.raise_signal(signal.SIGUSR1)
        assert not heard.after(0)
        assert not heard.after(2 * PATIENCE)
    signal.signal(signal.SIGUSR1, handler)


def test_who_listens_already_goes_on(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event loop, say: its wakeup is left alone."""
    other: Any = _interrupt._Wakeup()
    own = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(own)
    other.listen()
    assert signal.set_wakeup_fd(own) == own
    monkeypatch.setattr(_interrupt, "WAKEUP", other)
    with inside():
        signal.raise_signal(signal.SIGINT)
        assert not other.is_overdue()


def test_a_forked_process_says_nothing_to_its_parent(heard: Heard) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Of threads, such as NumPy's.
        child = os.fork()
    if not child:
        signal.raise_signal(signal.SIGINT)
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    with inside():
        assert not heard.after(0)
        assert not heard.after(2 * PATIENCE)
