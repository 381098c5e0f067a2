"""Arenas: one for each name, large enough for whoever asks, counted while somebody has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mirrored import devices, ops
from mirrored.errors import ResourceExhaustedError
from mirrored.program import Arenas
from mirrored.program.buffers import Buffers
from mirrored.program.concurrency import Threads
from mirrored.program.memory_planner import plan_memory
from mirrored.program.schedule import make_schedule


def arena_of(memory: Arenas, device: Any, name: Any, nbytes: int, purpose: Any = None) -> Any:
    arena = memory.of(device, name)
    memory.take([(arena, nbytes)], purpose)
    return arena


def test_an_arena_grows_and_is_shared(simulate: Callable[..., Any]) -> None:
    first, second = (devices.get_device(each.name) for each in simulate(2))
    memory = Arenas()
    small = arena_of(memory, first, 0, 100)
    before = small.array
    assert arena_of(memory, first, 0, 60) is small
    assert small.array is before
    assert arena_of(memory, first, 0, 200) is small
    assert (small.nbytes, small.array is before) == (200, False)
    others = [arena_of(memory, first, 1, 50), arena_of(memory, second, 0, 50)]
    assert small not in others
    assert (first.pool.current, second.pool.current) == (250, 50)
    del small, others
    assert (first.pool.current, second.pool.current) == (0, 0)


@pytest.mark.parametrize("nbytes", [100, 1 << 21], ids=["small", "pages"])
def test_an_arena_stays_where_it_is(nbytes: int, simulate: Callable[..., Any]) -> None:
    device = devices.get_device(simulate(1, memory_limit=3)[0].name)
    memory = Arenas()
    arena = arena_of(memory, device, 0, nbytes)
    array, version = arena.array, memory.version
    assert arena_of(memory, device, 0, nbytes).array is array
    assert memory.version == version
    for less in (nbytes, nbytes // 2, nbytes):
        memory.give_back()
        assert (arena.nbytes, device.pool.current) == (0, 0)
        assert memory.version > version
        version = memory.version
        assert arena_of(memory, device, 0, less).array is array
        assert device.pool.current == less
        array[...] = 7  # All of it may be written, and nobody else does.
        assert memory.version > version


def test_no_room_for_an_arena(simulate: Callable[..., Any]) -> None:
    device = devices.get_device(simulate(1, memory_limit=1)[0].name)
    memory = Arenas()
    arena = arena_of(memory, device, 0, 1000)
    with pytest.raises(ResourceExhaustedError, match="OOM when allocating the memory on "):
        arena_of(memory, device, 1, 1 << 20, "the memory")
    assert device.pool.current == 1000
    assert arena_of(memory, device, 0, 500) is arena
    version = memory.version
    with pytest.raises(ResourceExhaustedError):
        arena_of(memory, device, 0, (1 << 20) + 1)
    assert device.pool.current == 0
    assert memory.version > version  # Whoever was bound to it takes it again.
    assert arena_of(memory, device, 0, 500).nbytes == 500


def test_parts_are_views_of_what_they_are_parts_of(record: Any) -> None:
    x = np.arange(12.0).reshape(4, 3)

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        y = ops.tanh(x)
        return [y, y[1:], ops.reshape(y, (12,)), y[2]]

    graph = record(function, [x]).graph
    arrays = Buffers(plan_memory(graph, make_schedule(graph, Threads())), Arenas())
    assert not arrays.take()
    assert arrays.take()
    whole, *parts = (arrays.of(value) for value in graph.outputs)
    assert all(np.shares_memory(part, whole) for part in parts)
    assert all(part.flags.c_contiguous for part in parts)
    whole[...] = x
    np.testing.assert_array_equal(parts[0], x[1:])
    np.testing.assert_array_equal(parts[1], x.reshape(-1))
    np.testing.assert_array_equal(parts[2], x[2])
