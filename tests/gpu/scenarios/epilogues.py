"""What cublasLt makes of 0 and NaN in products that clip and sum columns, and how long they take.

The library makes no such products; docs/gpu.md says what they would save, and what is to be known
before. Nothing here passes or fails by itself.
"""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

import mirrored as mr
from mirrored.backends.cuda import toolkit

# The numbers are those of cublasLt.h and library_types.h.
EPILOGUES = {"DEFAULT": 1, "RELU_AUX_BIAS": 134, "DRELU_BGRAD": 152}
PRECISIONS = {"float32": (0, 68), "tf32": (0, 77), "bfloat16": (14, 68)}  # Stored, computed.
TRANSPOSE_A, TRANSPOSE_B, EPILOGUE, BIAS, MASK, MASK_STEP = 3, 4, 7, 8, 11, 12
MOST_WORKSPACE, WORKSPACE = 1, 32 << 20
BITS = 128  # Of which the rows of a mask are made.
VALUES = np.float32([-1.0, -0.0, 0.0, 1.0, np.inf, -np.inf, np.nan, 1e-40])
ROWS, WIDTH = 512, 2048  # Of a layer of `wide`.
TIMES = 50


class Found(ctypes.Structure):
    """`cublasLtMatmulHeuristicResult_t`."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class Refused(Exception):
    """cublasLt answered with an error."""


class Lt:
    """cublasLt on the first card, with a handle.

    Args:
        library: The library.
        cupy: CuPy.
    """

    def __init__(self, library: Any, cupy: Any) -> None:
        self._library = library
        self._handle = self._made("cublasLtCreate")
        self._workspace = cupy.empty(WORKSPACE, np.uint8)
        self._stream = cupy.cuda.get_current_stream()

    def ask(self, function: str, *args: Any) -> None:
        """Call a function.

        Raises:
            Refused: It answered with an error.
        """
        status = getattr(self._library, function)(*args)
        if status:
            raise Refused(f"{function} answered {status}")

    def _made(self, function: str, *args: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self.ask(function, ctypes.byref(made), *args)
        return made

    def layout(self, array: Any, kind: int) -> ctypes.c_void_p:
        """Return the layout of an array of rows, which are columns to cublasLt."""
        rows, columns = map(ctypes.c_uint64, array.shape)
        step = ctypes.c_int64(array.shape[1])
        return self._made("cublasLtMatrixLayoutCreate", ctypes.c_int(kind), columns, rows, step)

    def description(self, compute: int, attributes: dict[int, Any]) -> ctypes.c_void_p:
        """Return the description of a product."""
        made = self._made("cublasLtMatmulDescCreate", ctypes.c_int(compute), ctypes.c_int(0))
        for attribute, value in attributes.items():
            self._set("cublasLtMatmulDescSetAttribute", made, attribute, value)
        return made

    def _set(self, function: str, made: ctypes.c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self.ask(function, made, ctypes.c_int(attribute), ctypes.byref(value), size)

    def best(self, description: ctypes.c_void_p, layouts: list[ctypes.c_void_p]) -> Found:
        """Return the algorithm that cublasLt chooses.

        Raises:
            Refused: It has none.
        """
        preference = self._made("cublasLtMatmulPreferenceCreate")
        most = ctypes.c_size_t(WORKSPACE)
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, MOST_WORKSPACE, most)
        found, count = Found(), ctypes.c_int()
        one, to, counted = ctypes.c_int(1), ctypes.byref(found), ctypes.byref(count)
        asked = (self._handle, description, *layouts, preference, one, to, counted)
        self.ask("cublasLtMatmulAlgoGetHeuristic", *asked)
        if not count.value:
            raise Refused("no algorithm")
        return found

    def launch(self, description: Any, operands: list[Any], found: Found) -> None:
        """Ask for a product; each operand is an array with its layout, in cublasLt's order."""
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        flat = [
            value
            for array, layout in operands
            for value in (ctypes.c_void_p(array.data.ptr), layout)
        ]
        workspace = ctypes.c_void_p(self._workspace.data.ptr), ctypes.c_size_t(WORKSPACE)
        stream = ctypes.c_void_p(self._stream.ptr)
        a, b, c, d = flat[:2], flat[2:4], flat[4:], flat[4:]
        algorithm = ctypes.byref(found.algorithm)
        self.ask(
            "cublasLtMatmul",
            *(self._handle, description, ctypes.byref(one), *a, *b, ctypes.byref(zero), *c, *d),
            *(algorithm, *workspace, stream),
        )


class Product:
    """A product with an epilogue, and the algorithm that is chosen for it.

    Args:
        lt: cublasLt.
        a: Rows of the first factor.
        b: Rows of the second one, or of its transpose.
        out: Rows of the result.
        precision: "float32", "tf32" or "bfloat16".
        epilogue: Its name.
        transpose_b: Whether b is transposed.
        vector: The bias, or where the sums of columns go.
        mask: The bits of ReLU.
    """

    def __init__(
        self,
        lt: Lt,
        a: Any,
        b: Any,
        out: Any,
        precision: str,
        *,
        epilogue: str = "DEFAULT",
        transpose_b: bool = False,
        vector: Any = None,
        mask: Any = None,
    ) -> None:
        self._lt = lt
        kind, compute = PRECISIONS[precision]
        attributes: dict[int, Any] = {
            TRANSPOSE_A: ctypes.c_int(transpose_b),
            EPILOGUE: ctypes.c_uint32(EPILOGUES[epilogue]),
        }
        if vector is not None:
            attributes[BIAS] = ctypes.c_void_p(vector.data.ptr)
        if mask is not None:
            attributes[MASK] = ctypes.c_void_p(mask.data.ptr)
            attributes[MASK_STEP] = ctypes.c_int64(8 * mask.shape[1])
        self._description = lt.description(compute, attributes)
        # It stores matrices by columns, and so computes the transpose of the product from b and a.
        self._operands = [(each, lt.layout(each, kind)) for each in (b, a, out)]
        layouts = [layout for _, layout in self._operands]
        self._found = lt.best(self._description, [*layouts, layouts[-1]])

    @property
    def algorithm(self) -> bytes:
        """What cublasLt chose, as it writes it."""
        return bytes(self._found.algorithm)

    def run(self) -> None:
        """Ask for it."""
        self._lt.launch(self._description, self._operands, self._found)


def answers() -> dict[str, Any]:
    """Return what cublasLt answers in each precision, or why it cannot be asked."""
    cupy = toolkit.toolkit()
    library = toolkit.find("cublasLt", int(cupy.cuda.runtime.runtimeGetVersion()) // 1000)
    if library is None:
        return {"cannot be": "there is no cublasLt"}
    try:
        lt = Lt(library, cupy)
    except Refused as refused:
        return {"cannot be": str(refused)}
    found: dict[str, Any] = {"values": VALUES}
    for precision in PRECISIONS:
        for part in (_of_values, _of_a_layer):
            try:
                found |= {f"{precision}: {name}": v for name, v in part(lt, cupy, precision)}
            except Refused as refused:
                found[f"{precision}: {part.__name__}"] = str(refused)
    return found


def _array(cupy: Any, values: Any, precision: str) -> Any:
    dtype = mr.bfloat16 if precision == "bfloat16" else np.dtype(np.float32)
    return cupy.asarray(np.asarray(values, np.float32).astype(dtype))


def _read(cupy: Any, array: Any) -> Any:
    return cupy.asnumpy(array).astype(np.float32)


def _of_values(lt: Lt, cupy: Any, precision: str) -> Iterator[tuple[str, Any]]:
    """Yield what ReLU makes of values, its bits for them, and NaN where the bit is 0."""
    zeros, ones = (_array(cupy, np.full((BITS, BITS), each), precision) for each in (0, 1))
    nan = _array(cupy, np.full((BITS, BITS), np.nan), precision)
    vector = _array(cupy, np.resize(VALUES, BITS), precision)
    out, mask = cupy.empty_like(ones), cupy.zeros((BITS, BITS // 8), np.uint8)
    how: dict[str, Any] = {"vector": vector, "mask": mask}
    Product(lt, zeros, ones, out, precision, epilogue="RELU_AUX_BIAS", **how).run()
    yield "ReLU", _read(cupy, out)[0, : len(VALUES)]
    yield "its bits", np.unpackbits(cupy.asnumpy(mask)[0], bitorder="little")[: len(VALUES)]
    how["mask"] = cupy.zeros((BITS, BITS // 8), np.uint8)
    Product(lt, nan, ones, out, precision, epilogue="DRELU_BGRAD", transpose_b=True, **how).run()
    yield "NaN where the bit is 0", _read(cupy, out)[0, 0]


def _of_a_layer(lt: Lt, cupy: Any, precision: str) -> Iterator[tuple[str, Any]]:
    """Yield for each epilogue whether it has the algorithm of the product alone, and the times."""
    rng = np.random.default_rng(4)
    x, w = (_array(cupy, rng.normal(size=(n, WIDTH)), precision) for n in (ROWS, WIDTH))
    vector, out = _array(cupy, np.zeros(WIDTH), precision), cupy.empty_like(x)
    mask = cupy.zeros((ROWS, WIDTH // 8), np.uint8)
    for epilogue, transpose_b in (("RELU_AUX_BIAS", False), ("DRELU_BGRAD", True)):
        alone = Product(lt, x, w, out, precision, transpose_b=transpose_b)
        how = {"epilogue": epilogue, "transpose_b": transpose_b, "vector": vector, "mask": mask}
        both = Product(lt, x, w, out, precision, **how)
        yield f"{epilogue} by the same algorithm", alone.algorithm == both.algorithm
        times = [_seconds(cupy, each) for each in (alone, both, alone, both)]
        yield f"us alone and with {epilogue}, twice", np.round(np.array(times) * 1e6, 2)


def _seconds(cupy: Any, product: Product) -> float:
    """Return how long a product takes on the card."""
    product.run()
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(TIMES):
        product.run()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3 / TIMES
