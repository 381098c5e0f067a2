"""Arenas: one for each name, large enough for whoever asks, counted while somebody has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mirrored import devices, ops
from mirrored.errors import ResourceExhaustedError
from mirrored.program import Memory
from mirrored.program.arrays import Arrays
from mirrored.program.memory import make_plan
from mirrored.program.schedule import make_schedule


def test_an_arena_grows_and_is_shared(simulate: Callable[..., Any]) -> None:
    first, second = (devices.get_device(each.name) for each in simulate(2))
    memory = Memory()
    small = memory.arena(first, 0, 100)
    assert memory.arena(first, 0, 60) is small
    large = memory.arena(first, 0, 200)
    assert large.nbytes == 200
    assert memory.arena(first, 1, 50) is not large
    assert memory.arena(second, 0, 50) is not large
    del small
    assert (first.pool.current, second.pool.current) == (250, 50)
    del large, memory
    assert (first.pool.current, second.pool.current) == (0, 0)


def test_no_room_for_an_arena(simulate: Callable[..., Any]) -> None:
    device = devices.get_device(simulate(1, memory_limit=1)[0].name)
    memory = Memory()
    memory.arena(device, 0, 1000)
    with pytest.raises(ResourceExhaustedError):
        memory.arena(device, 1, 1 << 20)
    assert device.pool.current == 1000
    assert memory.arena(device, 0, 500).nbytes == 1000


def test_parts_are_views_of_what_they_are_parts_of(record: Any) -> None:
    x = np.arange(12.0).reshape(4, 3)

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        y = ops.tanh(x)
        return [y, y[1:], ops.reshape(y, (12,)), y[2]]

    graph = record(function, [x]).graph
    arrays = Arrays(make_plan(graph, make_schedule(graph)), Memory())
    whole, *parts = (arrays.of(value) for value in graph.outputs)
    assert all(np.shares_memory(part, whole) for part in parts)
    assert all(part.flags.c_contiguous for part in parts)
    whole[...] = x
    np.testing.assert_array_equal(parts[0], x[1:])
    np.testing.assert_array_equal(parts[1], x.reshape(-1))
    np.testing.assert_array_equal(parts[2], x[2])
