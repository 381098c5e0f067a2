"""Variables brought together: in one piece of memory, in order, as they were otherwise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import ResourceExhaustedError
from mirrored.variables.flat import FlatVariable, pack, packing_groups, packing_order


def variables() -> list[Any]:
    values = [np.arange(6.0).reshape(2, 3), np.array(7.0), np.array([8.0, 9.0])]
    return [mr.Variable(each.astype(np.float32), name=f"v{i}") for i, each in enumerate(values)]


def check_values(each: list[Any]) -> None:
    assert [v.shape for v in each] == [(2, 3), (), (2,)]
    values = np.concatenate([v.numpy().reshape(-1) for v in each])
    np.testing.assert_array_equal(values, [0, 1, 2, 3, 4, 5, 7, 8, 9])


def test_values_stay_and_stand_in_order() -> None:
    members = variables()
    before = [v.read_value() for v in members]
    flat = pack(members)
    check_values(members)
    home, _ = flat.pinned()
    np.testing.assert_array_equal(home.storage.array, [0, 1, 2, 3, 4, 5, 7, 8, 9])
    assert [v.pinned() for v in members] == [(home, 0), (home, 6), (home, 7)]
    assert (flat.shape, flat.dtype, flat.name) == ((9,), mr.float32, "v0:0 to v2:0")
    assert flat.device == members[0].device
    members[1].assign(5.0)
    assert home.storage.array[6] == 5
    assert before[1].numpy() == 7


def test_what_is_together_stays_where_it_is() -> None:
    members = variables()
    home, _ = pack(members).pinned()
    assert pack(members).pinned()[0] is home
    other, _ = pack(members[::-1]).pinned()
    assert other is not home
    check_values(members)
    np.testing.assert_array_equal(other.storage.array, [8, 9, 7, 0, 1, 2, 3, 4, 5])
    part, _ = pack(members[:2]).pinned()
    assert part is not other
    check_values(members)


def test_memory_is_that_of_the_variables(simulate: Callable[..., Any]) -> None:
    (gpu,) = simulate(1)
    used = mr.config.experimental.get_memory_info
    members = variables()
    before = used(gpu.name)["current"]
    flat = pack(members)
    assert used(gpu.name)["current"] == before
    pack(members[:1])
    del flat
    assert used(gpu.name)["current"] == before + 24  # The others hold on to all of the old one.
    pack(members)
    assert used(gpu.name)["current"] == before


def test_no_room_to_bring_them_together(simulate: Callable[..., Any]) -> None:
    (gpu,) = simulate(1, memory_limit=1)
    size = 150_000  # Of four bytes: there is room for one such variable, not for its copy.
    v = mr.Variable(np.ones((size,), np.float32))
    w = mr.Variable(np.float32(2.0))
    before = mr.config.experimental.get_memory_info(gpu.name)["current"]
    with pytest.raises(ResourceExhaustedError):
        pack([v, w])
    assert mr.config.experimental.get_memory_info(gpu.name)["current"] == before
    assert (float(v.numpy().sum()), float(w)) == (size, 2.0)


def test_outside_programs_they_are_copied(simulate: Callable[..., Any]) -> None:
    (gpu,) = simulate(1)
    members = variables()
    used = mr.config.experimental.get_memory_info
    flat, before = FlatVariable(members), used(gpu.name)["current"]
    vector = flat.read_value()
    np.testing.assert_array_equal(vector.numpy(), [0, 1, 2, 3, 4, 5, 7, 8, 9])
    assert used(gpu.name)["current"] == before + 36
    flat.commit(vector * 1.0)
    del vector
    check_values(members)
    assert used(gpu.name)["current"] == before


def test_a_program_updates_them_as_one(record: Any) -> None:
    members = variables()
    flat = pack(members)

    def function(x: mr.Tensor) -> list[mr.Tensor]:
        value = flat.read_value()
        flat.commit(value * 2.0 + x)
        return [value * 1.0, members[0] * 1.0]

    x = np.ones((9,), np.float32)
    recorded = record(function, [x])
    old, first = recorded(x)
    np.testing.assert_array_equal(old, [0, 1, 2, 3, 4, 5, 7, 8, 9])
    np.testing.assert_array_equal(first, [[1, 3, 5], [7, 9, 11]])
    assert float(members[1]) == 15
    recorded(x)
    np.testing.assert_array_equal(members[2].numpy(), [35, 39])


def test_a_program_reads_as_one_what_was_written_one_by_one(record: Any) -> None:
    members = variables()
    flat = pack(members)

    def function(x: mr.Tensor) -> list[mr.Tensor]:
        members[1].assign(x[0])
        return [flat.read_value() * 1.0]

    recorded = record(function, [np.ones((1,), np.float32)])
    for value in (50, 60):
        (whole,) = recorded(np.array([value], np.float32))
        np.testing.assert_array_equal(whole, [0, 1, 2, 3, 4, 5, value, 8, 9])


def of_sizes(*sizes: int) -> list[mr.Variable]:
    return [mr.Variable(np.zeros(size, np.float32)) for size in sizes]


def test_the_last_come_first_but_whole_cache_lines_before_all() -> None:
    assert packing_order(of_sizes(32, 3, 160, 10)) == [2, 0, 3, 1]
    assert packing_order([]) == []


def test_each_dtype_is_a_group_of_its_own() -> None:
    double = mr.Variable(np.zeros(3))
    assert packing_groups([*of_sizes(16, 5), double]) == [[0, 1], [2]]


def test_a_member_that_is_written_where_a_card_is_full(emulated_cuda: Callable[..., Any]) -> None:
    """It leaves the memory that all are in, so that no write of a step fails behind another one."""
    emulator = emulated_cuda()
    with mr.device("GPU:0"):
        members = variables()
        flat = pack(members)
        home, _ = flat.pinned()
        value = mr.constant(5.0)
        for _ in range(2):
            emulator.fail("memcpyAsync", 2)
        members[1].commit(value)
        assert [float(members[1].numpy()), float(value.numpy())] == [5.0, 5.0]
        assert members[1]._stays_in is None
        again, _ = flat.pinned()  # As before a recorded step, which finds it elsewhere.
    assert again is not home
    assert [v.pinned() for v in members] == [(again, 0), (again, 6), (again, 7)]
    assert [float(v.numpy().sum()) for v in members] == [15.0, 5.0, 17.0]
