"""The memory of a logical device: hard limits, what is taken of the card and when, and the peak."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices
from mirrored.backends import OutOfPoolMemory
from mirrored.backends.cuda import nvml
from mirrored.backends.cuda.card_memory import CudaPool
from mirrored.backends.cuda.cuda_backend import CudaBackend
from mirrored.errors import DeviceLostError, ResourceExhaustedError

MB = 1 << 20
BYTE = np.dtype(np.uint8)

Emulate = Callable[..., Any]


class Pools:
    """Pools of one card's logical devices.

    Args:
        emulator: The emulator that the card is one of.
    """

    def __init__(self, emulator: Any) -> None:
        self.emulator = emulator

    def make(self, limit: int | None, *, growth: bool = True, card: int = 0) -> Any:
        """Return a function that allocates bytes, and its pool."""
        backend = CudaBackend(nvml.cards()[card])
        pool = backend.make_pool(limit, parent=None, growth=growth)
        return lambda nbytes: backend.allocate(pool, (nbytes,), BYTE), pool


@pytest.fixture
def pools(emulated_cuda: Emulate) -> Pools:
    return Pools(emulated_cuda(cards=2, memory=64 * MB))


@pytest.mark.parametrize(("nbytes", "counted"), [(0, 0), (1, 512), (512, 512), (513, 1024)])
def test_memory_is_counted_in_units_of_512_bytes(nbytes: int, counted: int, pools: Pools) -> None:
    allocate, pool = pools.make(None)
    storage = allocate(nbytes)
    assert (storage.nbytes, storage.array.nbytes) == (nbytes, nbytes)
    assert (pool.current, pool.peak) == (counted, counted)
    del storage
    assert (pool.current, pool.peak) == (0, counted)
    pool.reset_peak()
    assert pool.peak == 0


@pytest.mark.parametrize("growth", [True, False])
def test_the_limit_is_hard(growth: bool, pools: Pools) -> None:
    allocate, pool = pools.make(4096, growth=growth)
    kept = [allocate(1024), allocate(2560)]
    for nbytes in (513, 4096):
        with pytest.raises(OutOfPoolMemory) as refused:
            allocate(nbytes)
        assert (refused.value.asked, refused.value.pool) == (nbytes, pool)
    kept.append(allocate(512))
    assert pool.current == 4096
    del kept
    assert allocate(4096).nbytes == 4096


def test_a_limit_between_two_units(pools: Pools) -> None:
    allocate, pool = pools.make(1000)
    with pytest.raises(OutOfPoolMemory) as refused:
        allocate(1000)
    assert refused.value.pool is pool
    assert allocate(512).nbytes == 512


def test_what_was_given_back_does_not_count(pools: Pools) -> None:
    """CuPy keeps pieces of all sizes, and counts them against its limit."""
    allocate, pool = pools.make(64 * 1024)
    pieces = [allocate(1024) for _ in range(64)]
    del pieces
    assert allocate(64 * 1024).nbytes == pool.peak


@pytest.mark.parametrize(
    ("limit", "taken"), [(2 * MB, 2 * MB), (2 * MB + 100, 2 * MB), (None, int(64 * MB * 0.9))]
)
def test_without_growth_all_is_taken_at_the_first_array(
    limit: int | None, taken: int, pools: Pools
) -> None:
    allocate, pool = pools.make(limit, growth=False)
    assert pools.emulator.live_bytes() == 0
    kept = allocate(10)
    assert pools.emulator.live_bytes() == taken // 512 * 512
    assert pool.current == 512
    before = pools.emulator.counts["malloc"]
    kept = [allocate(1000) for _ in range(100)]
    assert pools.emulator.counts["malloc"] == before
    del kept


def test_with_growth_it_is_taken_as_it_is_needed(pools: Pools) -> None:
    allocate, _ = pools.make(2 * MB, growth=True)
    first = allocate(1024)
    assert pools.emulator.live_bytes() == 1024
    del first
    assert pools.emulator.live_bytes() == 1024  # It is kept.
    again = [allocate(1024), allocate(MB)]
    assert pools.emulator.live_bytes() == 1024 + MB
    del again


@pytest.mark.parametrize("growth", [True, False])
def test_a_card_that_is_full(growth: bool, pools: Pools) -> None:
    """Others have its memory: the pool is not what refuses, and goes on when there is some."""
    allocate, pool = pools.make(8 * MB, growth=growth)
    pools.emulator.limit_card(0, 1000)
    with pytest.raises(OutOfPoolMemory) as refused:
        allocate(4 * MB)
    assert refused.value.pool is None
    assert (pool.current, pool.peak) == (0, 0)
    pools.emulator.limit_card(0, 64 * MB)
    assert allocate(4 * MB).nbytes == pool.peak


def test_pools_of_one_card_do_not_eat_each_others_memory(pools: Pools) -> None:
    (first, one), (second, other) = pools.make(4096), pools.make(8192)
    kept = [first(4096), second(8192)]
    assert (one.current, other.current) == (4096, 8192)
    for allocate, pool in ((first, one), (second, other)):
        with pytest.raises(OutOfPoolMemory) as refused:
            allocate(1)
        assert refused.value.pool is pool
    kept.pop()
    with pytest.raises(OutOfPoolMemory):
        first(1)
    assert second(8192).nbytes == 8192


def test_each_pool_tells_of_its_own_card(pools: Pools) -> None:
    (first, one), (second, other) = pools.make(MB), pools.make(MB, card=1)
    kept = [first(1000), second(3000)]
    assert (one.current, other.current) == (1024, 3072)
    assert [pools.emulator.live_bytes(card) for card in (0, 1)] == [1024, 3072]
    other.reset_peak()
    assert other.peak == 3072
    with pytest.raises(OutOfPoolMemory) as refused:
        second(MB)
    assert refused.value.pool is other
    del kept


def test_only_a_pool_of_a_cards_own_gives_its_memory(pools: Pools) -> None:
    backend = CudaBackend(nvml.cards()[0])
    host = devices.get_device("CPU:0").pool
    with pytest.raises(TypeError, match="created by its backend"):
        backend.allocate(host, (1,), BYTE)
    pool: Any = CudaPool(None, True, "a card")
    pool.release(10)
    assert pool.current == 0


def test_the_pool_of_a_lost_card(pools: Pools) -> None:
    allocate, pool = pools.make(None)
    kept = allocate(100)
    pools.emulator.fail("memGetInfo", 700)
    with pytest.raises(RuntimeError):
        pools.emulator.cupy.cuda.runtime.memGetInfo()
    with pytest.raises(DeviceLostError, match=r"Emulated H200 at 0000:01:00\.0 failed"):
        allocate(100)
    assert (pool.current, pool.peak) == (512, 512)  # CuPy's count, which needs no card.
    del kept


# ------------------------------------------------------------------------------ as devices


def test_devices_take_nothing_before_the_first_array(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    with pytest.raises(ValueError, match="No matching devices"):
        mr.config.experimental.get_memory_info("GPU:9")
    assert mr.config.experimental.get_memory_info("GPU:1") == {"current": 0, "peak": 0}
    assert not any(emulator.counts.values())
    with mr.device("GPU:1"):
        x = mr.zeros((1000,))
    assert emulator.contexts == {1}
    assert mr.config.experimental.get_memory_info("GPU:1")["current"] == 4096
    assert mr.config.experimental.get_memory_info("GPU:0")["current"] == 0
    del x
    assert mr.config.experimental.get_memory_info("GPU:1") == {"current": 0, "peak": 4096}
    mr.config.experimental.reset_memory_stats("GPU:1")
    assert mr.config.experimental.get_memory_info("GPU:1") == {"current": 0, "peak": 0}


def virtual_gpus(*limits: float) -> list[Any]:
    (card,) = mr.config.list_physical_devices("GPU")
    parts = [mr.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in limits]
    mr.config.set_logical_device_configuration(card, parts)
    return [devices.get_device(f"GPU:{i}") for i in range(len(limits))]


def test_the_error_of_a_limit(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    first, second = virtual_gpus(1, 2)
    kept = first.allocate((512, 256), np.dtype(np.float32))
    with pytest.raises(ResourceExhaustedError) as raised:
        first.allocate((600, 256), np.dtype(np.float32))
    assert str(raised.value) == (
        "OOM when allocating tensor with shape [600,256] and type float32 on "
        "/job:localhost/replica:0/task:0/device:GPU:0: 600.0 KB (614400 bytes) asked for, "
        "512.0 KB (524288 bytes) in use, limit 1.0 MB (1048576 bytes). Use a smaller batch or "
        "model, or raise the limit."
    )
    assert second.allocate((2, MB), BYTE).nbytes == 2 * MB
    del kept
    assert first.allocate((MB,), BYTE).nbytes == MB


def test_the_error_of_a_full_card(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    (device,) = virtual_gpus(2)
    emulator.limit_card(0, MB)
    with pytest.raises(ResourceExhaustedError) as raised:
        device.allocate((1536, 1024), BYTE)
    assert "[1536,1024] and type uint8 on /job:localhost/replica:0/task:0/device:GPU:0" in str(
        raised.value
    )
    assert "no more memory" in str(raised.value)


def test_growth_is_the_users_choice(emulated_cuda: Emulate) -> None:
    taken = []
    for growth in (False, True):
        emulator = emulated_cuda(memory=MB, growth=False)
        (card,) = mr.config.list_physical_devices("GPU")
        mr.config.experimental.set_memory_growth(card, growth)
        x = mr.ones((4,))
        taken.append(emulator.live_bytes())
        del x
    assert taken == [int(MB * 0.9) // 512 * 512, 512]
