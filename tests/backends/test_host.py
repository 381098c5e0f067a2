"""The counting allocator: hard limits, exact counts, and releases that can come from anywhere."""

import gc
import mmap
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.backends import HostBackend, HostPlace, OutOfPoolMemory, Storage, host
from mirrored.backends.host import CountingPool

FLOAT = np.dtype("float32")


def allocate(pool: CountingPool, elements: int) -> Storage:
    return HostBackend().allocate(pool, (elements,), FLOAT)


@cases(
    ("shape", "dtype", "nbytes"),
    [
        ((2, 3), "float32", 24),
        ((2, 3), "float64", 48),
        ((), "int64", 8),
        ((5,), "bool", 5),
        ((0, 7), "float32", 0),
    ],
)
def test_storage_is_counted_exactly(shape: tuple[int, ...], dtype: str, nbytes: int) -> None:
    pool = CountingPool()
    storage = HostBackend().allocate(pool, shape, np.dtype(dtype))
    assert storage.array.shape == shape
    assert storage.array.dtype == dtype
    assert storage.array.flags.c_contiguous
    assert storage.array.flags.owndata
    assert storage.nbytes == pool.current == pool.peak == nbytes
    del storage
    assert (pool.current, pool.peak) == (0, nbytes)


def test_the_peak_is_of_what_was_used_at_once() -> None:
    pool = CountingPool()
    first = allocate(pool, 10)
    del first
    second = allocate(pool, 5)
    assert (pool.current, pool.peak) == (20, 40)
    pool.reset_peak()
    assert pool.peak == 20
    del second
    assert (pool.current, pool.peak) == (0, 20)


@cases(("elements", "fits"), [(10, True), (11, False), (0, True)])
def test_the_limit_is_hard(elements: int, fits: bool) -> None:
    pool = CountingPool(limit=40)
    if fits:
        assert allocate(pool, elements).nbytes == 4 * elements
    else:
        with pytest.raises(OutOfPoolMemory) as refused:
            allocate(pool, elements)
        assert refused.value.asked == 44
        assert refused.value.pool is pool
    assert pool.current == 0


def test_memory_that_was_given_back_can_be_used_again() -> None:
    pool = CountingPool(limit=40)
    for _ in range(5):
        assert allocate(pool, 10).nbytes == 40
    assert pool.peak == 40


def test_pools_share_the_pool_around_them() -> None:
    card = CountingPool(limit=100)
    left, right = CountingPool(60, card), CountingPool(60, card)
    kept = allocate(left, 15)
    with pytest.raises(OutOfPoolMemory) as refused:
        allocate(right, 11)
    assert refused.value.pool is card
    assert (left.current, right.current, card.current) == (60, 0, 60)
    other = allocate(right, 10)
    assert (right.current, card.current) == (40, 100)
    del kept, other
    assert (left.current, right.current, card.current, card.peak) == (0, 0, 0, 100)


def test_release_needs_no_lock() -> None:
    """A storage may die inside the garbage collector while somebody else counts."""
    pool = CountingPool()
    storages = [allocate(pool, 2)]
    thread = threading.Thread(target=storages.clear, daemon=True)
    with pool._lock:  # This thread counts; the other one drops the storage meanwhile.
        thread.start()
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert pool.current == 0


def test_counts_are_exact_when_threads_share_a_pool() -> None:
    pool = CountingPool(limit=10_000)
    start = threading.Barrier(4)

    def work() -> None:
        start.wait(timeout=60)
        for elements in range(1, 300):
            storage = allocate(pool, elements % 7)
            del storage

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert pool.current == 0
    assert 0 < pool.peak <= 4 * 24


def test_a_storage_in_a_cycle_is_given_back_by_the_garbage_collector() -> None:
    pool = CountingPool()
    cycle: list[Any] = [allocate(pool, 10)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert pool.current == 0


@pytest.mark.parametrize("shape", [(sys.maxsize,), (1 << 40, 1 << 40)])
def test_more_than_the_machine_can_address(shape: tuple[int, ...]) -> None:
    pool = CountingPool()
    with pytest.raises(OutOfPoolMemory) as refused:
        HostBackend().allocate(pool, shape, FLOAT)
    assert refused.value.pool is None
    assert pool.current == 0


def test_an_array_that_cannot_be_made_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError

    pool = CountingPool()
    monkeypatch.setattr(np, "empty", refuse)
    with pytest.raises(OutOfPoolMemory) as refused:
        allocate(pool, 4)
    assert refused.value.pool is None
    assert pool.current == 0


def test_a_shape_that_is_none_counts_nothing() -> None:
    pool = CountingPool()
    with pytest.raises(ValueError, match="negative"):
        HostBackend().allocate(pool, (-1,), FLOAT)
    assert pool.current == 0


def test_copies() -> None:
    backend, pool = HostBackend(), CountingPool()
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    source = backend.allocate(pool, (2, 3), FLOAT)
    backend.copy_from_host(source, values.astype(">f4"))  # Another byte order is the same values.
    target = backend.allocate(pool, (2, 3), FLOAT)
    backend.copy_between(source.array, target.array)
    source.array[:] = 0
    np.testing.assert_array_equal(target.array, values)
    copied = backend.to_host(target.array.T)
    assert copied.flags.c_contiguous
    assert not np.shares_memory(copied, target.array)
    np.testing.assert_array_equal(copied, values.T)


def test_a_copy_never_changes_the_dtype() -> None:
    backend, pool = HostBackend(), CountingPool()
    storage = backend.allocate(pool, (2,), FLOAT)
    with pytest.raises(TypeError, match="float64"):
        backend.copy_from_host(storage, np.zeros(2))
    with pytest.raises(TypeError, match="float64"):
        backend.copy_between(np.zeros(2), storage.array)


def test_the_host_replaces_no_kernels() -> None:
    assert HostBackend().xp is np
    assert dict(HostBackend().kernels) == {}


@cases("dtype", ["float32", "float64", "bool"])
def test_large_arrays_begin_where_a_cache_line_does(dtype: str) -> None:
    backend = HostBackend()
    pool = backend.make_pool(None, parent=None, growth=True)
    storages = [backend.allocate(pool, (each, 1 << 16), np.dtype(dtype)) for each in (1, 2, 3, 5)]
    assert all(each.array.ctypes.data % 64 == 0 for each in storages)
    assert pool.current == sum(each.array.nbytes for each in storages)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"meminfo": "MemTotal: 9 kB\nMemAvailable:   5 kB\n"}, 5 << 10),
        ({"meminfo": "MemTotal: 9 kB\n"}, None),
        ({"meminfo": "MemAvailable: 5 kB\n", "max": "4000\n", "current": "1000\n"}, 3000),
        ({"meminfo": "MemAvailable: 5 kB\n", "max": "max\n", "current": "1000\n"}, 5 << 10),
        ({"max": "400\n", "current": "1000\n"}, 0),
    ],
)
def test_the_memory_that_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    """The least of what the host says of itself and of the container around."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(host, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(host, "_CGROUPS", [(tmp_path / "max", tmp_path / "current")])
    assert host.available_host_memory() == expected


def test_only_a_pool_of_the_host_counts_its_memory() -> None:
    other: Any = object()
    with pytest.raises(TypeError, match="created by its backend"):
        HostBackend().allocate(other, (1,), FLOAT)


# ------------------------------------------------------------------------------ places


@pytest.mark.parametrize("nbytes", [1 << 10, 3 << 20], ids=["small", "pages"])
def test_a_place_is_kept_while_its_bytes_are_given_back(nbytes: int) -> None:
    pool, place = CountingPool(4 << 20), HostPlace()
    (storage,) = HostPlace.allocate(pool, [(place, nbytes)])
    array = place.array
    array[...] = 1
    del storage
    place.let_go()
    assert pool.current == 0
    assert not nbytes >= 1 << 20 or not array.any()  # The system has its pages back.
    assert HostPlace.allocate(pool, [(place, nbytes // 2)])[0].nbytes == nbytes // 2
    assert place.array is array
    (storage,) = HostPlace.allocate(pool, [(place, nbytes + 1)])
    assert place.array is not array
    assert (storage.nbytes, pool.current) == (nbytes + 1, nbytes + 1)


@pytest.mark.parametrize("system", ["macOS", "Windows"])
def test_a_place_where_the_system_has_no_such_pages(
    monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    if system == "Windows":
        for name in ("MADV_DONTNEED", "MAP_PRIVATE", "MAP_ANONYMOUS"):
            monkeypatch.delattr(mmap, name)
        monkeypatch.setattr(host, "_CAN_GIVE_BACK", False)
    place = HostPlace()
    HostPlace.allocate(CountingPool(), [(place, 8 << 20)])
    place.array[...] = 1
    place.let_go()
    assert place.forgets == (system == "macOS")


def test_a_place_without_room_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, place = CountingPool(1 << 22), HostPlace()
    HostPlace.allocate(pool, [(place, 100)])
    array = place.array
    with pytest.raises(OutOfPoolMemory) as refused:
        HostPlace.allocate(pool, [(place, 1 << 23)])
    assert refused.value.pool is pool
    monkeypatch.setattr(host.mmap, "mmap", no_memory)
    with pytest.raises(OutOfPoolMemory) as refused:
        HostPlace.allocate(pool, [(place, 1 << 21)])
    assert refused.value.pool is None
    assert (place.array is array, pool.current) == (True, 0)


def no_memory(*_: Any) -> None:
    raise OSError(12, "Cannot allocate memory")
