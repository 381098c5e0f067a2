"""Which card is a thread's current one, and which cards get a context of CUDA's."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logical_card import Device, N

import mirrored as mr
from mirrored.backends.stream_backend import Place

Emulate = Callable[..., Any]


def in_a_new_thread(work: Callable[[], object]) -> Any:
    """Return what work returns in a thread that never used CUDA."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    (result,) = found
    return result


def sums(device: Device) -> list[float]:
    x = device.array(np.ones(N, np.float32))
    device.add(x, x, x)
    device.backend.synchronize()
    return [device.read(x)[0], float(device.pool.current > 0)]


def train() -> float:
    model = mr.keras.Sequential([mr.layers.Dense(3)])
    model.compile("sgd", "mse")
    x = np.ones((8, 2), np.float32)
    return float(model.fit(x, np.ones((8, 3)), batch_size=4, verbose=0).history["loss"][-1])


def test_a_card_that_nobody_uses_gets_no_context(emulated_cuda: Emulate) -> None:
    """Half a gigabyte, and an error where it is another process's alone."""
    emulator = emulated_cuda(cards=2)
    device = Device(1)
    for _ in range(2):
        assert sums(device) == [2, 1]
        assert in_a_new_thread(lambda: sums(device)) == [2, 1]
    event = device.backend.record()
    in_a_new_thread(lambda: device.backend.wait_on_host(event))
    in_a_new_thread(lambda: device.pool.current)
    in_a_new_thread(device.pool.close)
    assert emulator.contexts == {1}


def test_training_on_one_card_touches_no_other(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    with mr.device("GPU:1"):
        assert np.isfinite(train())
        assert np.isfinite(in_a_new_thread(train_on_the_second))
    assert emulator.contexts == {1}


def train_on_the_second() -> float:
    with mr.device("GPU:1"):
        return train()


@pytest.mark.parametrize("card", [0, 1])  # Of which 0 is current by name, and not used by that.
def test_a_new_thread_asks_for_an_event(card: int, emulated_cuda: Emulate) -> None:
    """The driver would refuse it where the thread has no context of any card."""
    emulated_cuda(cards=2)
    device = Device(card)
    event = device.backend.record()
    device.backend.synchronize()
    assert in_a_new_thread(lambda: device.backend.is_done(event))


def test_a_card_within_another(emulated_cuda: Emulate) -> None:
    runtime = emulated_cuda(cards=3).cupy.cuda.runtime
    cards = [Device(number).backend.device for number in range(3)]
    seen = []
    with cards[2]:
        with cards[1], cards[1], cards[0]:
            seen.append(runtime.getDevice())
        seen.append(runtime.getDevice())
        with pytest.raises(ValueError, match="within"), cards[0]:
            raise ValueError("within")
        seen.append(runtime.getDevice())
    assert seen == [0, 2, 2]
    assert runtime.getDevice() == 2  # And stays so.


def test_other_libraries_may_set_another_card(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    device = Device(1)
    assert sums(device) == [2, 1]
    emulator.cupy.cuda.runtime.setDevice(0)
    assert sums(device) == [2, 1]


def test_a_card_is_not_set_again(emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, numbers = emulated_cuda(cards=2).cupy.cuda.runtime, []
    first, second = Device(0), Device(1)
    x, y = first.busy(), second.busy()
    set_device = runtime.setDevice

    def noted(number: int) -> None:
        numbers.append(number)
        set_device(number)

    monkeypatch.setattr(runtime, "setDevice", noted)
    for device, array in ((first, x), (second, y)):
        for _ in range(4):
            device.add(array, array, array)
            device.backend.record()
    assert numbers == [0, 1]


@pytest.mark.parametrize("several", [False, True], ids=["a process", "several processes"])
@pytest.mark.parametrize("end", ["abort", "close"])
def test_disconnecting_in_a_new_thread(
    end: str,
    several: bool,
    emulated_cuda: Emulate,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """NCCL sets the card again that was current, which is card 0 by name in a new thread."""
    monkeypatch.setenv("EMULATED_NCCL", str(tmp_path))
    emulator = emulated_cuda(cards=3)

    def connected(cards: Sequence[int]) -> Any:
        ranks = [Device(card).backend for card in cards]
        place = Place(0, len(ranks), ranks[0].new_key()) if several else None
        return ranks[0].connect(ranks, place)

    communicator = in_a_new_thread(lambda: connected((1, 2)))
    in_a_new_thread(getattr(communicator, end))
    assert emulator.contexts == {1, 2}
