"""The emulated CUDA's libraries are called as the real ones are, and refuse what those refuse."""

import ctypes
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")
from cupy.cuda import runtime as real_runtime
from emulated_cuda import Emulator
from emulated_cuda.bench import Bench

Install = Callable[..., Emulator]


@pytest.fixture
def bench(emulated_cuda: Install) -> Bench:
    return Bench(emulated_cuda())


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


# ---------------------------------------------------------------------- cuBLAS


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
        a: Any,
        b: Any,
        c: Any,
        *,
        transpose: tuple[int, int] = (0, 0),
        steps: tuple[int, int, int] = (2, 2, 2),
        factors: tuple[float, float] = (1, 0),
        kinds: tuple[int, int, int] = (1, 1, 70),
    ) -> int:
        """Ask for a product of matrices of (2, 2) in double precision."""
        alpha, beta = map(ctypes.c_double, factors)
        ab, of_c, compute = kinds
        a, b, c = (
            [ctypes.c_void_p(array.data.ptr), which, step]
            for array, which, step in zip((a, b, c), (ab, ab, of_c), steps, strict=True)
        )
        args = [self.handle, *transpose, 2, 2, 2, ctypes.byref(alpha), *a, *b]
        with self.bench.device:
            status = self.library.cublasGemmEx(*args, ctypes.byref(beta), *c, compute, -1)
        return int(status)


@pytest.fixture
def handle(bench: Bench) -> Handle:
    return Handle(bench)


def numbers() -> Any:
    return np.random.default_rng(4).integers(-9, 9, (2, 2)).astype(float)


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
        ({"kinds": (2, 2, 77)}, 15),
    ],
)
def test_products_that_are_refused(handle: Handle, change: dict[str, Any], status: int) -> None:
    arrays = [handle.bench.array(numbers()) for _ in range(3)]
    assert handle.multiply(*arrays, **change) == status


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


def test_narrow_products_may_be_rounded_in_parts(handle: Handle) -> None:
    """As cuBLAS may add them where it is not told otherwise."""
    # By columns: 3 times 683, which float16 rounds to 2048, and -2048 times 1.
    halves = [np.float16([[3, 0], [-2048, 0]]), np.float16([[683, 1], [0, 0]])]
    factors = ctypes.c_float(1), ctypes.c_float(0)
    found = []
    for mode in (0, 16):
        assert handle.library.cublasSetMathMode(handle.handle, mode) == 0
        a, b, c = (handle.bench.array(each) for each in (*halves, halves[1]))
        operands = [[ctypes.c_void_p(each.data.ptr), 2, 2] for each in (a, b, c)]
        args = [handle.handle, 0, 0, 2, 2, 2, ctypes.byref(factors[0]), *operands[0], *operands[1]]
        with handle.bench.device:
            args += [ctypes.byref(factors[1]), *operands[2], 68, -1]
            assert handle.library.cublasGemmEx(*args) == 0
        found.append(handle.bench.read(c)[0, 0])
    assert found == [0, 1]


def test_pointers_that_are_passed_as_plain_ints_are_cut_off(handle: Handle) -> None:
    # As with the real library, which would crash.
    assert handle.library.cublasDestroy_v2(handle.handle.value) == 1


def test_products_are_captured_with_a_workspace(handle: Handle) -> None:
    bench = handle.bench
    a, c = bench.array(numbers()), bench.array(np.zeros((2, 2)))
    statuses = []
    ask = {"factors": (1, 1)}
    graph = bench.capture(lambda: statuses.append(handle.multiply(a, a, c, **ask)))
    for _ in range(2):
        graph.launch(bench.stream)
    assert bench.read(c).tolist() == (2 * numbers() @ numbers()).tolist()
    handle.library.cublasSetStream_v2(handle.handle, ctypes.c_void_p(bench.stream.ptr))
    bench.capture(lambda: statuses.append(handle.multiply(a, a, c)))
    assert statuses == [0, 14]


def test_a_workspace_whose_pool_is_gone_is_found(handle: Handle) -> None:
    bench = handle.bench
    arrays = [bench.array(numbers()) for _ in range(3)]
    with bench.device:
        bench.pool = bench.cupy.cuda.MemoryPool()
    assert handle.multiply(*arrays) == 14
    assert "pool" in str(bench.emulator.failures.pop())
