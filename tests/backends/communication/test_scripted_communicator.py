"""The scripted devices themselves: what each word of a script does, and what they refuse."""

import threading
from typing import Any

import numpy as np
import pytest
from fake_time import threads_of_calls
from hypothesis import given
from hypothesis import strategies as st
from scripted_communicator import Misuse, Script, ScriptedCommunicator

from mirrored.backends.stream_backend import is_streamed
from mirrored.errors import CollectiveError, DeviceLostError, DeviceUnavailableError

ONES = [np.ones(3, np.float32), np.full(3, 2, np.float32)]


class Devices:
    """Two connected devices."""

    def __init__(self, *collectives: str, **script: Any) -> None:
        self.script = Script(collectives, **script)
        self.ranks = self.script.backends(2)
        self.communicator = self.ranks[0].connect(self.ranks)

    def ask(self, sends: list[np.ndarray] = ONES) -> tuple[list[np.ndarray], list[Any]]:
        receives = [np.zeros_like(each) for each in sends]
        self.communicator.all_reduce(sends, receives, self.ranks)
        return receives, [rank.record() for rank in self.ranks]

    def done(self, events: list[Any]) -> list[bool]:
        return [rank.is_done(event) for rank, event in zip(self.ranks, events, strict=True)]


def test_they_are_streamed_devices() -> None:
    one, other = Script().backends(2)
    assert is_streamed(one)
    assert one.memory != other.memory
    assert one.another().memory == one.memory


@pytest.mark.parametrize(
    ("outcome", "last"),
    [("ok", [3, 3, 3]), ("wrong", [3, 3, 4]), ("nan", [np.nan] * 3)],
)
def test_sums(outcome: str, last: list[float]) -> None:
    devices = Devices(outcome)
    receives, events = devices.ask()
    assert devices.done(events) == [True, True]
    np.testing.assert_array_equal(receives, [[3, 3, 3], last])
    assert devices.script.calls == [("connect", 0), ("all_reduce", 0)]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float64"])
def test_dtypes_and_sums_in_place(dtype: str) -> None:
    devices = Devices()
    arrays = [np.full((2, 2), rank + 1, dtype) for rank in range(2)]
    devices.communicator.all_reduce(arrays, arrays, devices.ranks)
    devices.ranks[0].synchronize()
    devices.ranks[1].synchronize()
    assert all((each == 3).all() and each.dtype == dtype for each in arrays)


def test_slow() -> None:
    devices = Devices("slow", polls=5)
    _, events = devices.ask()
    looks = [all(devices.done(events)) for _ in range(4)]
    assert looks == [False, False, False, True]


@pytest.mark.parametrize("outcome", ["hang", "async", "lost"])
def test_never_done_until_aborted(outcome: str) -> None:
    devices = Devices(outcome)
    receives, events = devices.ask()
    for _ in range(20):
        if outcome == "lost":
            with pytest.raises(DeviceLostError):
                devices.done(events)
        else:
            assert devices.done(events) == [False, False]
    failure = devices.communicator.failure()
    assert (failure is not None) == (outcome == "async")
    if outcome != "lost":
        with pytest.raises(Misuse, match="for ever"):
            devices.ranks[0].wait_on_host(events[0])
    devices.communicator.abort()
    assert devices.done(events) == [True, True]
    assert np.isnan(receives).all()
    assert not devices.communicator.is_usable
    assert devices.script.misuses == []


def test_fail() -> None:
    devices = Devices("ok", "fail")
    devices.ask()
    with pytest.raises(CollectiveError, match="lets all-reduce 1 fail"):
        devices.ask()
    assert devices.done(devices.ask()[1]) == [True, True]


@pytest.mark.parametrize("outcome", ["blocks", "never returns"])
def test_calls_that_do_not_return(outcome: str) -> None:
    devices = Devices(outcome)
    errors = []

    def work() -> None:
        try:
            devices.ask()
        except CollectiveError as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="mirrored-test")
    thread.start()
    assert threads_of_calls() == ["mirrored-test"]
    devices.communicator.abort()
    if outcome == "never returns":
        assert threads_of_calls() == ["mirrored-test"]
        devices.script.release()
    thread.join(10)
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("call", "outcome", "kind"),
    [
        ("connects", "fail", CollectiveError),
        ("connects", "unavailable", DeviceUnavailableError),
        ("closes", "fail", CollectiveError),
        ("aborts", "fail", RuntimeError),
    ],
)
def test_other_calls_fail(call: str, outcome: str, kind: type[Exception]) -> None:
    script = Script(**{call: [outcome]})  # type: ignore[arg-type]
    ranks = script.backends(2)

    def use() -> None:
        communicator = ranks[0].connect(ranks)
        if call == "aborts":
            communicator.abort()
        communicator.close()

    with pytest.raises(kind):
        use()


def test_held_devices_do_nothing() -> None:
    devices = Devices()
    devices.ranks[1].hold()
    _, events = devices.ask()
    assert devices.done(events) == [False, False]
    devices.ranks[1].go_on()
    assert devices.done(events) == [True, True]


def test_streams_wait_for_each_other() -> None:
    one, other = Script().backends(2)
    source, middle, target = np.ones(2), np.zeros(2), np.zeros(2)
    one.hold()
    one.copy_between(source, middle)
    other.copy_across(one, middle, target)
    event = other.record()
    assert not other.is_done(event)
    one.go_on()
    assert other.to_host(target).tolist() == [1, 1]


def test_arrays_of_a_device() -> None:
    (device,) = Script().backends(1)
    pool = device.make_pool(None, parent=None, growth=True)
    storage = device.allocate(pool, (3,), np.dtype(np.float32))
    device.copy_from_host(storage, np.arange(3, dtype=np.float32))
    device.run(np.add, storage.array, 1, out=storage.array)
    assert device.to_host(storage.array).tolist() == [1, 2, 3]


def test_answers() -> None:
    one, other = Script(why_not="There is no library.", reads=False).backends(2)
    assert one.why_not_connected([other]) == "There is no library."
    assert not one.reads(other)
    one, other = Script().backends(2)
    assert one.why_not_connected([other]) is None
    assert one.reads(other)


@pytest.mark.parametrize(
    ("sends", "receives"),
    [
        ([np.ones(2)], [np.ones(2)]),
        ([np.ones(2), np.ones(3)], [np.ones(2), np.ones(3)]),
        ([np.ones(2), np.ones(2, np.float32)], [np.ones(2), np.ones(2)]),
        ([np.ones((4, 2))[:, 0], np.ones(4)], [np.ones(4), np.ones(4)]),
        ([np.ones(2, bool), np.ones(2, bool)], [np.ones(2, bool), np.ones(2, bool)]),
    ],
    ids=["ranks", "sizes", "dtypes", "strides", "no numbers"],
)
def test_refused(sends: list[np.ndarray], receives: list[np.ndarray]) -> None:
    devices = Devices()
    with pytest.raises(ValueError, match=r"[.]$"):
        devices.communicator.all_reduce(sends, receives, devices.ranks)
    assert ("all_reduce", 0) not in devices.script.calls


def test_sums_may_not_overlap_what_is_sent() -> None:
    devices, memory = Devices(), np.ones(6)
    with pytest.raises(ValueError, match="apart"):
        devices.communicator.all_reduce(
            [memory[:3], np.ones(3)], [memory[1:4], np.ones(3)], devices.ranks
        )


def test_misuse() -> None:
    devices = Devices("hang")
    devices.ask()
    devices.communicator.close()
    devices.communicator.close()
    with pytest.raises(Misuse, match="all_reduce after"):
        devices.ask()
    devices.communicator.abort()
    assert devices.script.misuses == [
        "close with a collective in flight",
        "all_reduce after an abort or after closing",
        "abort of what was aborted or closed",
    ]


@pytest.mark.parametrize("options", [{"collectives": ["okay"]}, {"aborts": {3: "hang"}}])
def test_words_that_a_script_does_not_know(options: Any) -> None:
    with pytest.raises(ValueError, match="A script is made of"):
        Script(**options)


@given(st.lists(st.sampled_from(["ok", "slow"]), max_size=5), st.integers(1, 4))
def test_collectives_are_done_in_order(outcomes: list[str], ranks: int) -> None:
    script = Script(outcomes)
    devices = script.backends(ranks)
    communicator = ScriptedCommunicator(script, ranks)
    total = [np.ones(1) for _ in devices]
    for _ in outcomes:
        communicator.all_reduce(total, total, devices)
    for device in devices:
        device.synchronize()
    assert [each.item() for each in total] == [float(ranks) ** len(outcomes)] * ranks
