"""Arguments of cuBLAS, by a library of our own that multiplies matrices of columns on the host."""

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

from benchmarks.gpu.contenders.cublas import Cublas, layout, loaded_library, numbers, stored
from benchmarks.gpu.workloads import WORKLOADS
from benchmarks.workloads import Product, matrix_products

Array = np.ndarray[Any, Any]


class Library:
    """What the calls of cuBLAS do, on memory of the host, in float32."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.types: tuple[int, ...] = ()

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            return 0

        return call

    def cublasGetVersion_v2(self, handle: Any, number: Any) -> int:
        number._obj.value = 120901
        return 0

    def cublasGemmEx(self, *a: Any) -> int:
        _, turned_a, turned_b, m, n, k, alpha, first, first_type, lda = a[:10]
        second, second_type, ldb, beta, out, out_type, ldc, compute, _ = a[10:]
        self.types = (first_type, second_type, out_type, compute)
        if lda < (k if turned_a else m) or ldb < (n if turned_b else k) or ldc < m:
            return 7
        x = columns(first, lda, m if turned_a else k, k if turned_a else m)
        y = columns(second, ldb, k if turned_b else n, n if turned_b else k)
        z = columns(out, ldc, n, m)
        z[...] = alpha._obj.value * (x.T if turned_a else x) @ (y.T if turned_b else y)
        return int(beta._obj.value != 0)


def columns(address: Any, leading: int, count: int, length: int) -> Array:
    """Return the matrix of so many columns at an address."""
    size = leading * count
    flat = np.ctypeslib.as_array((ctypes.c_float * size).from_address(address.value))
    return flat.reshape(count, leading)[:, :length].T


def made(library: Library) -> Cublas:
    return Cublas.create(library, 1, 2)


def check(product: Product) -> None:
    rng = np.random.default_rng(3)
    turned_a, turned_b = layout(product)
    a = rng.normal(size=(product.rows, product.inner)).astype(np.float32)
    b = rng.normal(size=(product.inner, product.columns)).astype(np.float32)
    stored_a, stored_b = (
        np.ascontiguousarray(each.T if turned else each)
        for each, turned in ((a, turned_a), (b, turned_b))
    )
    out = np.full((product.rows, product.columns), np.nan, np.float32)
    addresses = [each.ctypes.data for each in (stored_a, stored_b, out)]
    made(Library()).multiply(product, "float32", *addresses)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)


@cases("kind", ["forward", "weight gradient", "input gradient"])
def test_products_of_all_shapes(kind: str) -> None:
    for rows, inner, length in itertools.permutations((1, 3, 8)):
        check(Product(kind, rows, inner, length))


def test_products_of_a_step() -> None:
    for product in matrix_products(WORKLOADS["digits"]):
        check(product)


@cases(
    ("precision", "types"),
    [("float32", (0, 0, 0, 68)), ("tf32", (0, 0, 0, 77)), ("bfloat16", (14, 14, 14, 68))],
)
def test_types(precision: str, types: tuple[int, ...]) -> None:
    library = Library()
    array = np.zeros((4, 4), np.float32)
    made(library).multiply(Product("forward", 4, 4, 4), precision, *[array.ctypes.data] * 3)
    assert library.types == types


def test_a_handle_has_a_stream_and_a_workspace() -> None:
    library = Library()
    assert made(library).version() == "12.9.1"
    assert library.calls == ["cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2"]


def test_a_status_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="cublasCreate_v2 gave status 3"):
        Cublas(type("Bad", (), {"cublasCreate_v2": lambda *_: 3}), ctypes.c_void_p()).call(
            "cublasCreate_v2"
        )


def test_bfloat16_is_the_upper_half_of_float32() -> None:
    values = np.array([1.0, -2.5, 3.14159, 1e30, 0.0], np.float32)
    assert stored(values, "float32") is stored(values, "tf32") is values
    halves = stored(values, "bfloat16")
    assert halves.dtype.itemsize == 2
    assert halves[0] == 0x3F80
    np.testing.assert_allclose(numbers(halves), values, rtol=2.0**-7)
    assert numbers(halves)[1] == -2.5
    assert numbers(values) is values


def test_a_process_without_cublas() -> None:
    with pytest.raises(RuntimeError, match="no cuBLAS"):
        loaded_library()
