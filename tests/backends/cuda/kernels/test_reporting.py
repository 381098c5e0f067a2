"""What a step tells is put where an array on the card says: by turns, or nowhere."""

from typing import Any

import numpy as np
import pytest

from mirrored.backends.cuda.kernels.step_end import AIM, REPORT

WORDS = 300  # More than there are threads.


def told(card: Any, state: Any, value: int) -> None:
    block = card.array(np.full(4 * WORDS, value, np.uint8))
    card.backend.run(REPORT, card.backend.xp, state, block)


@pytest.mark.parametrize("pinned", [False, True])
def test_places_are_taken_in_turn(pinned: bool, card: Any) -> None:
    backend, state = card.backend, card.array(np.full(4, 99, np.uint64))
    shape, dtype = (3, 4 * WORDS), np.dtype(np.uint8)
    places = backend.pinned(shape, dtype) if pinned else card.array(np.zeros(shape, dtype))
    address = places.ctypes.data if pinned else places.data.ptr
    backend.run(AIM, backend.xp, state, address, *shape)
    for value in range(1, 6):
        told(card, state, value)
    backend.synchronize()
    found = places if pinned else backend.to_host(places)
    np.testing.assert_array_equal(found, np.repeat([[4], [5], [3]], 4 * WORDS, axis=1))


def test_none_is_told(card: Any) -> None:
    backend, state = card.backend, card.array(np.full(4, 99, np.uint64))
    backend.run(AIM, backend.xp, state, 0, 1, 4 * WORDS)
    told(card, state, 1)
    assert backend.to_host(state).tolist() == [0, 1, 1, 4 * WORDS]
