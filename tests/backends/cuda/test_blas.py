"""Products of rows-first arrays by a library that stores matrices by columns."""

import ctypes
import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.backends import product_settings
from mirrored.backends.cuda import blas
from mirrored.errors import InvalidArgumentError, ResourceExhaustedError

KINDS = {0: np.dtype("f4"), 1: np.dtype("f8"), 14: np.dtype(ml_dtypes.bfloat16)}
SCALARS = {68: ctypes.c_float, 77: ctypes.c_float, 70: ctypes.c_double}
STREAM = 0x7F00_1234_5678  # More than an int holds, as addresses are.


class OnCard:
    """What the products read of CuPy's arrays, over NumPy's."""

    def __init__(self, array: np.ndarray) -> None:
        assert array.flags.c_contiguous
        self.host = array
        self.shape, self.ndim, self.dtype = array.shape, array.ndim, array.dtype
        self.nbytes = array.nbytes
        self.data = SimpleNamespace(ptr=array.ctypes.data)

    def __len__(self) -> int:
        return len(self.host)


def by_columns(address: int, rows: int, columns: int, leading: int, kind: int) -> np.ndarray:
    """Return a matrix that is stored by columns, as a view of shape (rows, columns)."""
    assert leading >= rows
    dtype = KINDS[kind]
    length = (leading * (columns - 1) + rows) * dtype.itemsize
    memory = np.frombuffer((ctypes.c_char * length).from_address(address), dtype)
    return np.lib.stride_tricks.as_strided(
        memory, (rows, columns), (dtype.itemsize, leading * dtype.itemsize), writeable=True
    )


class FakeCublas:
    """cuBLAS on the host, by its documentation.

    Args:
        statuses: What functions answer, by name, instead of success.
    """

    def __init__(self, **statuses: int) -> None:
        self.statuses = statuses
        self.calls: list[str] = []
        self.computed: list[int] = []
        self.workspace: tuple[int, int] | None = None

    def __getattr__(self, name: str) -> Any:
        implementation = getattr(FakeCublas, f"_{name}")

        def call(*args: Any) -> int:
            self.calls.append(name)
            status = self.statuses.get(name, 0)
            if not status:
                implementation(self, *args)
            return status

        return call

    def _cublasCreate_v2(self, handle: Any) -> None:
        handle._obj.value = 0x5555_0000_1111

    def _cublasDestroy_v2(self, handle: Any) -> None:
        assert handle.value == 0x5555_0000_1111

    def _cublasSetStream_v2(self, handle: Any, stream: Any) -> None:
        assert (handle.value, stream.value) == (0x5555_0000_1111, STREAM)
        self.workspace = None

    def _cublasSetMathMode(self, handle: Any, mode: Any) -> None:
        assert (handle.value, mode.value) == (0x5555_0000_1111, 16)

    def _cublasSetWorkspace_v2(self, handle: Any, address: Any, nbytes: Any) -> None:
        self.workspace = address.value, nbytes.value

    def _cublasGetProperty(self, which: Any, value: Any) -> None:
        value._obj.value = (12, 9, 1)[which.value]

    def _cublasGemmEx(self, *args: Any) -> None:
        head, (a, b, beta, c), tail = args[:7], _operands(args[7:], 3), args[-2:]
        self._multiply(head, a, b, beta, c, tail)

    def _cublasGemmStridedBatchedEx(self, *args: Any) -> None:
        head, (a, b, beta, c), (count, *tail) = args[:7], _operands(args[7:], 4), args[-3:]
        for index in range(count.value):
            self._multiply(head, _moved(a, index), _moved(b, index), beta, _moved(c, index), tail)

    def _multiply(self, head: Any, a: Any, b: Any, beta: Any, c: Any, tail: Any) -> None:
        handle, transpose_a, transpose_b, m, n, k, alpha = head
        compute, algorithm = tail
        assert handle.value == 0x5555_0000_1111
        assert self.workspace is not None
        assert algorithm.value == -1
        assert all(isinstance(each._obj, SCALARS[compute.value]) for each in (alpha, beta))
        assert (alpha._obj.value, beta._obj.value) == (1, 0)
        self.computed.append(compute.value)
        wide = np.float64 if compute.value == 70 else np.float32
        first = _matrix(a, (m.value, k.value), transpose_a.value).astype(wide)
        second = _matrix(b, (k.value, n.value), transpose_b.value).astype(wide)
        result = _matrix(c, (m.value, n.value), 0)
        result[...] = (first @ second).astype(result.dtype)


def _operands(args: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """Return A, B, beta and C, of so many arguments each but beta."""
    return args[:size], args[size : 2 * size], args[2 * size], args[2 * size + 1 : 3 * size + 1]


def _moved(operand: Any, index: int) -> Any:
    address, kind, leading, step = operand
    return (
        ctypes.c_void_p(address.value + index * step.value * KINDS[kind.value].itemsize),
        kind,
        leading,
    )


def _matrix(operand: Any, shape: tuple[int, int], transpose: int) -> np.ndarray:
    address, kind, leading = operand
    rows, columns = shape[::-1] if transpose else shape
    stored = by_columns(address.value, rows, columns, leading.value, kind.value)
    return stored.T if transpose else stored


@pytest.fixture(autouse=True)
def _tensor_float_32() -> Iterator[None]:
    yield
    product_settings.allow_tensor_float_32(True)


def made(library: FakeCublas) -> blas.Blas:
    return blas.Blas(library, STREAM, OnCard(np.zeros(1024, np.uint8)))


def random(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return small whole numbers, of which products are exact in every dtype."""
    return np.random.default_rng(5).integers(-3, 4, shape).astype(dtype)


def check(n: int, k: int, m: int, transposed: tuple[bool, bool], dtype: Any, batches: Any) -> None:
    sides = ((n, k), (k, m))
    a, b = (
        random((*batch, *(side[::-1] if swap else side)), dtype)
        for side, swap, batch in zip(sides, transposed, batches, strict=True)
    )
    wide = [
        np.swapaxes(each.astype("f8"), -1, -2) if swap else each.astype("f8")
        for each, swap in zip((a, b), transposed, strict=True)
    ]
    expected = np.matmul(*wide)
    out = np.full(expected.shape, np.nan, dtype)
    made(FakeCublas()).matmul(
        OnCard(out), OnCard(a), OnCard(b), transpose_a=transposed[0], transpose_b=transposed[1]
    )
    np.testing.assert_array_equal(out.astype("f8"), expected)


SIDES = st.integers(1, 5)


@settings(max_examples=30)
@given(SIDES, SIDES, SIDES, st.tuples(st.booleans(), st.booleans()), st.sampled_from([*KINDS]))
def test_matrices(n: int, k: int, m: int, transposed: tuple[bool, bool], kind: int) -> None:
    check(n, k, m, transposed, KINDS[kind], ((), ()))


BATCHES = [((3,), (3,)), ((1,), (3,)), ((3,), (1,)), ((1,), (1,))]


@settings(max_examples=30)
@given(SIDES, SIDES, SIDES, st.tuples(st.booleans(), st.booleans()), st.sampled_from(BATCHES))
def test_batches(n: int, k: int, m: int, transposed: tuple[bool, bool], batches: Any) -> None:
    check(n, k, m, transposed, "f4", batches)


@cases("sides", list(itertools.product([1, 2], repeat=3)))
@cases("batches", [((), ()), *BATCHES])
def test_sides_of_one(sides: tuple[int, int, int], batches: Any) -> None:
    for transposed in itertools.product([False, True], repeat=2):
        check(*sides, transposed, "f8", batches)


@cases(
    ("dtype", "tensor_float_32", "compute"),
    [
        ("f4", True, 77),
        ("f4", False, 68),
        ("f8", True, 70),
        (ml_dtypes.bfloat16, True, 68),
        (ml_dtypes.bfloat16, False, 68),
    ],
)
def test_what_is_computed_in(dtype: Any, tensor_float_32: bool, compute: int) -> None:
    """The switch is read at each product."""
    library = FakeCublas()
    multiply, array = made(library).matmul, OnCard(np.ones((1, 1), dtype))
    multiply(array, array, array, transpose_a=False, transpose_b=False)
    product_settings.allow_tensor_float_32(tensor_float_32)
    multiply(array, array, array, transpose_a=False, transpose_b=False)
    assert library.computed[1] == compute


def test_a_handle_has_its_workspace_after_its_stream() -> None:
    library, memory = FakeCublas(), OnCard(np.zeros(4096, np.uint8))
    handle = blas.Blas(library, STREAM, memory)
    assert library.workspace == (memory.data.ptr, 4096)
    handle.close()
    handle.close()
    assert library.calls == [
        "cublasCreate_v2",
        "cublasSetStream_v2",
        "cublasSetMathMode",
        "cublasSetWorkspace_v2",
        "cublasDestroy_v2",
    ]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_parts_of_a_sum_are_added_before_they_are_rounded(dtype: str, emulated_cuda: Any) -> None:
    """257 and -256 are rounded to 256 and -256 in bfloat16; 2049 and -2048 alike in float16."""
    emulated_cuda()
    big = {"bfloat16": 256.0, "float16": 2048.0}[dtype]
    with mr.device("GPU:0"):
        x = mr.cast(mr.constant([[big, 1.0, -big, 0.0]]), dtype)
        found = mr.cast(mr.matmul(x, mr.ones((4, 1), dtype)), "float32").numpy()
    assert found.tolist() == [[1]]


def test_a_handle_that_is_not_ready_is_destroyed() -> None:
    library = FakeCublas(cublasSetWorkspace_v2=7)
    with pytest.raises(RuntimeError, match="cublasSetWorkspace_v2 answered CUBLAS_STATUS_INVALID"):
        made(library)
    assert library.calls[-1] == "cublasDestroy_v2"


@cases(
    ("status", "name"),
    [(1, "NOT_INITIALIZED"), (13, "EXECUTION_FAILED"), (15, "NOT_SUPPORTED"), (99, "unknown")],
)
def test_a_product_that_is_refused(status: int, name: str) -> None:
    array = OnCard(np.ones((1, 1), "f4"))
    handle = made(FakeCublas(cublasGemmEx=status))
    with pytest.raises(RuntimeError, match=rf"cublasGemmEx answered .*{name}.* \({status}\)"):
        handle.matmul(array, array, array, transpose_a=False, transpose_b=False)


def test_too_little_memory_for_a_handle() -> None:
    with pytest.raises(ResourceExhaustedError, match=r"_ALLOC_FAILED.*memory limits"):
        made(FakeCublas(cublasCreate_v2=3))


def test_a_dtype_that_cublas_has_not() -> None:
    library, array = FakeCublas(), OnCard(np.ones((1, 1), "i4"))
    with pytest.raises(InvalidArgumentError, match=r"float64, float16, bfloat16\. Received: int32"):
        made(library).matmul(array, array, array, transpose_a=False, transpose_b=False)
    assert "cublasGemmEx" not in library.calls


def test_a_side_that_is_too_long() -> None:
    """Arrays of so many elements are not made: a view that repeats one stands for them."""
    library = FakeCublas()
    long = SimpleNamespace(shape=(1, 1 << 31), ndim=2, dtype=np.dtype("f4"))
    with pytest.raises(InvalidArgumentError, match=r"below 2\*\*31. Received: \(1, 2147483648\)"):
        made(library).matmul(
            OnCard(np.ones((1, 1), "f4")), long, long, transpose_a=False, transpose_b=True
        )
    assert "cublasGemmEx" not in library.calls


def test_version() -> None:
    assert blas.version(FakeCublas()) == "12.9.1"
