"""The emulated CUDA fails as it is told to, and its libraries are called as the real ones are."""

import ctypes
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")
from cupy.cuda import runtime as real_runtime
from emulated_cuda import Card, Emulator
from emulated_cuda.bench import Bench

Install = Callable[..., Emulator]


@pytest.fixture
def bench(emulated_cuda: Install) -> Bench:
    return Bench(emulated_cuda())


def test_a_call_to_come_can_be_made_to_fail(bench: Bench) -> None:
    array = bench.array(np.zeros(4, np.float32))
    bench.emulator.fail("launchKernel", 2, after=2)
    bench.set(array, 1)
    with pytest.raises(RuntimeError, match="MemoryAllocation"):
        bench.set(array, 2)
    bench.emulator.fail("memcpyAsync", 1)
    with pytest.raises(bench.runtime.CUDARuntimeError):
        bench.read(array)
    assert bench.read(array).tolist() == [1] * 4


def test_sticky_errors_stay(emulated_cuda: Install) -> None:
    emulator = emulated_cuda(cards=2)
    first, second = Bench(emulator, 0), Bench(emulator, 1)
    array = first.empty(4)
    emulator.fail("launchKernel", 700)
    for call in (lambda: first.set(array, 1), first.stream.synchronize, lambda: first.read(array)):
        with pytest.raises(RuntimeError) as lost:
            call()
        assert lost.value.status == 700
    assert first.runtime.eventQuery(second.event().ptr) in (0, 600)
    other = second.array(np.ones(4, np.float32))
    assert second.read(other).tolist() == [1] * 4


def test_a_card_can_be_filled_by_others(bench: Bench) -> None:
    bench.emulator.limit_card(0, 1024)
    with bench.device, bench.stream:
        assert bench.device.mem_info == (1024, 1 << 30)
        with pytest.raises(MemoryError):
            bench.pool.malloc(2048)


def parameters(signature: str) -> list[str]:
    """Return the names of the parameters in CuPy's text of a signature."""
    inside = signature[signature.index("(") + 1 : signature.index(")")]
    return [
        re.split(r"[\s*]+", part.split("=")[0].strip())[-1] for part in inside.split(",") if part
    ]


def test_the_runtime_takes_what_that_of_cupy_takes(bench: Bench) -> None:
    functions = [
        name
        for name, _ in inspect.getmembers(bench.runtime, inspect.ismethod)
        if not name.startswith("_")
    ]
    assert len(functions) > 20
    for name in functions:
        own = list(inspect.signature(getattr(bench.runtime, name)).parameters)
        assert own == parameters(getattr(real_runtime, name).__doc__), name


def test_a_card_is_what_it_was_said_to_be(emulated_cuda: Install) -> None:
    given = [Card("One", 1 << 20, (8, 0), pci_bus=3, peers=False), Card("Two", pci_bus=0xC1)]
    cupy = emulated_cuda(cards=given).cupy
    runtime = cupy.cuda.runtime
    assert runtime.getDeviceCount() == 2
    assert runtime.deviceGetByPCIBusId("0000:c1:00.0") == 1
    assert runtime.deviceGetPCIBusId(0) == "0000:03:00.0"
    assert runtime.deviceCanAccessPeer(0, 1) == 0
    assert runtime.getDeviceProperties(0)["name"] == b"One"
    assert cupy.cuda.Device(0).compute_capability == "80"
    with pytest.raises(RuntimeError, match="InvalidDevice"):
        runtime.setDevice(2)


def test_listing_uses_no_card(emulated_cuda: Install) -> None:
    emulator = emulated_cuda(cards=2)
    emulator.cupy.cuda.runtime.getDeviceProperties(1)
    emulator.cupy.cuda.Device(1)
    assert emulator.counts["contexts"] == 0
    with emulator.cupy.cuda.Device(1):
        pass
    assert emulator.counts["contexts"] == 1


# ---------------------------------------------------------------------- cuBLAS

KINDS = {"float32": (0, 68), "float64": (1, 70)}


class Handle:
    """A handle of cuBLAS with a workspace, on a bench's stream."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.library = bench.emulator.cublas
        self.handle = ctypes.c_void_p()
        self.workspace = bench.empty(1024, np.uint8)
        with bench.device:
            assert self.library.cublasCreate_v2(ctypes.byref(self.handle)) == 0
        stream = ctypes.c_void_p(bench.stream.ptr)
        assert self.library.cublasSetStream_v2(self.handle, stream) == 0
        assert self.set_workspace() == 0

    def set_workspace(self, offset: int = 0) -> int:
        where = ctypes.c_void_p(self.workspace.data.ptr + offset)
        status = self.library.cublasSetWorkspace_v2(self.handle, where, ctypes.c_size_t(512))
        return int(status)

    def multiply(
        self,
        shape: tuple[int, int, int],
        a: Any,
        b: Any,
        c: Any,
        *,
        transpose: tuple[int, int] = (0, 0),
        steps: tuple[int, int, int] | None = None,
        factors: tuple[float, float] = (1, 0),
        kinds: tuple[int, int, int] | None = None,
        batch: int | None = None,
    ) -> int:
        """Ask for C of (m, n) in columns, of A of (m, k) and B of (k, n)."""
        m, n, k = shape
        of_a, of_b = (k if transpose[0] else m), (n if transpose[1] else k)
        ld = steps or (of_a, of_b, m)
        kind, compute = KINDS.get(c.dtype.name, (0, 0))
        ab, of_c, compute = kinds or (kind, kind, compute)
        number = ctypes.c_double if c.dtype == np.float64 else ctypes.c_float
        alpha, beta = map(number, factors)
        each = [
            [ctypes.c_void_p(array.data.ptr), which, step]
            for array, which, step in zip((a, b, c), (ab, ab, of_c), ld, strict=True)
        ]
        if batch is not None:
            for operand, apart in zip(each, (m * k, 0, m * n), strict=True):
                operand.append(ctypes.c_longlong(apart))
        name = "cublasGemmEx" if batch is None else "cublasGemmStridedBatchedEx"
        args = [self.handle, *transpose, m, n, k, ctypes.byref(alpha), *each[0], *each[1]]
        args += [ctypes.byref(beta), *each[2], *([] if batch is None else [batch])]
        with self.bench.device:
            return int(getattr(self.library, name)(*args, compute, -1))


@pytest.fixture
def handle(bench: Bench) -> Handle:
    return Handle(bench)


def numbers(*shape: int, dtype: str = "float64") -> Any:
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("transpose", [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (5, 1, 2), (3, 4, 0)])
def test_products(handle: Handle, shape: Any, transpose: Any, dtype: str) -> None:
    m, n, k = shape
    # In memory the matrices are in columns, so that each is its transpose to NumPy.
    a = numbers(*((m, k) if transpose[0] else (k, m)), dtype=dtype)
    b = numbers(*((k, n) if transpose[1] else (n, k)), dtype=dtype)
    c = numbers(n, m, dtype=dtype)
    on_card = [handle.bench.array(each) for each in (a, b, c)]
    steps = max(1, a.shape[1]), max(1, b.shape[1]), m
    asked = {"transpose": transpose, "steps": steps, "factors": (2, 3)}
    assert handle.multiply(shape, *on_card, **asked) == 0
    expected = 2 * (a if transpose[0] else a.T) @ (b if transpose[1] else b.T) + 3 * c.T
    assert handle.bench.read(on_card[2]).T.tolist() == expected.tolist()


def test_batches_and_one_for_all(handle: Handle) -> None:
    a, b = numbers(3, 4, 2), numbers(5, 4)
    c = handle.bench.empty((3, 5, 2), np.float64)  # What is there is NaN, and not read.
    on_card = handle.bench.array(a), handle.bench.array(b), c
    assert handle.multiply((2, 5, 4), *on_card, batch=3) == 0
    assert handle.bench.read(c).tolist() == (b @ a).tolist()


def test_reduced_precision_rounds(handle: Handle) -> None:
    bench = handle.bench
    one = bench.array(np.ones((1, 1), np.float32))
    fine = bench.array(np.array([[1 + 2**-9 + 2**-12]], np.float32))
    c = bench.empty((1, 1))
    assert handle.multiply((1, 1, 1), one, fine, c, kinds=(0, 0, 77)) == 0
    assert bench.read(c) == 1 + 2**-9
    bits = bench.array(np.array([[0x3F81]], np.uint16))  # 1 + 2**-7 as bfloat16.
    assert handle.multiply((1, 1, 1), bits, bits, c, kinds=(14, 0, 68)) == 0
    assert bench.read(c) == (1 + 2**-7) ** 2
    rounded = bench.empty((1, 1), np.uint16)
    assert handle.multiply((1, 1, 1), bits, bits, rounded, kinds=(14, 14, 68)) == 0
    assert bench.read(rounded) == 0x3F82


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"steps": (1, 2, 2)}, 7),
        ({"steps": (2, 1, 2)}, 7),
        ({"steps": (2, 2, 1)}, 7),
        ({"transpose": (3, 0)}, 7),
        ({"kinds": (0, 1, 68)}, 15),
        ({"kinds": (1, 1, 68)}, 15),
        ({"kinds": (1, 1, 77)}, 15),
        ({"kinds": (2, 2, 68)}, 15),
    ],
)
def test_products_that_are_refused(handle: Handle, change: dict[str, Any], status: int) -> None:
    arrays = [handle.bench.array(numbers(2, 2)) for _ in range(3)]
    assert handle.multiply((2, 2, 2), *arrays, **change) == status


def test_statuses_of_the_handle(handle: Handle) -> None:
    library, wrong = handle.library, ctypes.c_void_p(5)
    assert handle.set_workspace(offset=8) == 7
    assert library.cublasSetStream_v2(wrong, None) == 1
    assert library.cublasDestroy_v2(wrong) == 1
    version = ctypes.c_int()
    assert library.cublasGetVersion_v2(handle.handle, ctypes.byref(version)) == 0
    assert version.value == 120900
    assert library.cublasDestroy_v2(handle.handle) == 0
    assert library.cublasDestroy_v2(handle.handle) == 1


def test_pointers_that_are_passed_as_plain_ints_are_cut_off(handle: Handle) -> None:
    # As with the real library, which would crash.
    assert handle.library.cublasDestroy_v2(handle.handle.value) == 1


def test_products_are_captured_with_a_workspace(handle: Handle) -> None:
    bench = handle.bench
    a, c = bench.array(numbers(2, 2)), bench.array(np.zeros((2, 2)))
    statuses = []
    ask = {"factors": (1, 1)}
    graph = bench.capture(lambda: statuses.append(handle.multiply((2, 2, 2), a, a, c, **ask)))
    for _ in range(2):
        graph.launch(bench.stream)
    assert bench.read(c).tolist() == (2 * numbers(2, 2) @ numbers(2, 2)).tolist()
    handle.library.cublasSetStream_v2(handle.handle, ctypes.c_void_p(bench.stream.ptr))
    bench.capture(lambda: statuses.append(handle.multiply((2, 2, 2), a, a, c)))
    assert statuses == [0, 14]


def test_a_workspace_whose_pool_is_gone_is_found(handle: Handle) -> None:
    bench = handle.bench
    arrays = [bench.array(numbers(2, 2)) for _ in range(3)]
    with bench.device:
        bench.pool = bench.cupy.cuda.MemoryPool()
    assert handle.multiply((2, 2, 2), *arrays) == 14
    assert "pool" in str(bench.emulator.failures.pop())
