"""Every op and every gradient on the GPU, held to the host's by the table of ops.

The host computes in float64 on the same inputs. Elementwise ops may be off by some units in the
last place, sums and products by that and by the root of the number of terms times the rounding of
the sum, or product, of all magnitudes; bfloat16 by one rounding at the end. Scans, and rows that
are brought together in their order, round as the host's do in the same dtype.
"""

import importlib.util
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from op_matrices import MATRIX_ROWS
from op_row import Case, Row
from op_table import TABLE
from op_windows import WINDOW_ROWS

import mirrored as mr
from mirrored import ops
from mirrored.autodiff import GradientTape

Array = np.ndarray[Any, Any]

# The distance of 1 to the next number.
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "bfloat16": 2.0**-7}
# CUDA's functions are within 2 units in the last place, its power within 9, and the two sides of
# a number that was rounded differ by one more; in gradients several functions meet.
UNITS, UNITS_OF_GRADIENTS = 16, 64
UNITS_OF_MATRICES = 1024
SUMS = {"AddN", "BatchMatMulV2", "BiasAddGrad", "MatMul", "Mean", "Prod", "Sum"}
SUMS_OF_WINDOWS = {name for name in WINDOW_ROWS if "Max" not in name}
SUMS |= SUMS_OF_WINDOWS
# They add and multiply one by one, as the host does, whose rounding is theirs.
IN_ORDER = {"Cumprod", "Cumsum", "CumulativeLogsumexp"}
IN_ORDER |= {"TensorScatterAdd", "UnsortedSegmentProd", "UnsortedSegmentSum"}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 88.0, -104.0)
HAS_BFLOAT16 = importlib.util.find_spec("ml_dtypes") is not None

ON_CARDS = {name: row for name, row in TABLE.items() if "GPU" in ops.OPS[name].devices}

# Of one input, whose special values are settled by IEEE 754 or by the host.
UNARY = [
    name
    for name, row in ON_CARDS.items()
    if row.kinds in {("any",), ("positive",)}
    and "float32" in row.dtypes
    and row.small[0] == Case(((2, 3),), {})
]

pytestmark = pytest.mark.usefixtures("card")


def tensor(array: Array) -> ops.Tensor:
    """Return an array as a tensor, by way of float32 where NumPy does not know its dtype."""
    if array.dtype.kind == "V":
        return ops.cast(ops.constant(array.astype("float32")), array.dtype.name)
    return ops.constant(array)


def run(device: str, name: str, inputs: list[Array], attrs: Mapping[str, Any]) -> Array:
    with mr.device(device):
        result = ops.OPS[name](*[tensor(each) for each in inputs], **attrs)
        assert device in result.device
        return np.asarray(result.numpy())


def widened(inputs: list[Array]) -> list[Array]:
    return [each.astype("float64") if each.dtype.kind in "fV" else each for each in inputs]


def allowed(name: str, case: Case, inputs: list[Array], expected: Array, dtype: str) -> Any:
    """Return how far each element may be from the host's in float64."""
    epsilon = EPSILON[dtype]
    # Sums of bfloat16 are of float32, and rounded once.
    fine = min(epsilon, EPSILON["float32"])
    longest = max((max(shape, default=1) for shape in case.shapes), default=1)
    if name in SUMS:
        magnitudes = run("CPU:0", name, [np.abs(each) for each in widened(inputs)], case.attrs)
        size = max(each.size for each in inputs)
        count: Any = longest if "MatMul" in name else max(1, size // max(1, expected.size))
        if name in SUMS_OF_WINDOWS:
            ones = [np.ones_like(each) for each in widened(inputs)]
            count = run("CPU:0", name, ones, case.attrs)
        return epsilon * np.abs(expected) + fine * (8 + np.sqrt(count)) * magnitudes
    if name in MATRIX_ROWS:  # Matrices far from singular, by another algorithm than the host's.
        return UNITS_OF_MATRICES * epsilon * max(1.0, float(np.abs(expected).max(initial=0.0)))
    scale = min(1.0, float(np.abs(expected).max(initial=0.0)))
    error = (UNITS if epsilon == fine else 1) * epsilon * (np.abs(expected) + 0.25 * scale)
    if "CrossEntropy" in name and case.shapes[0]:
        # Sums over a row of terms of this size, the weight of all labels together.
        error = error + fine * (8 + math.sqrt(longest)) * 4.0
    return error


def close(value: Array, expected: Array, error: Any, message: str) -> None:
    """Hold an array to another within an error for each element, and NaN and infinities alike."""
    assert value.shape == expected.shape, message
    with np.errstate(invalid="ignore"):
        off = np.abs(value.astype("float64") - expected) - error
    same = (value == expected) | (np.isnan(value) & np.isnan(expected))
    worst = float(np.where(same, 0.0, np.nan_to_num(off, nan=np.inf)).max(initial=0.0))
    assert worst <= 0, f"{message}: {worst:g} more than allowed"


def check(name: str, case: Case, inputs: list[Array], dtype: str) -> None:
    """Compare one call on the card with the host's in float64, integers and bools bit by bit."""
    found = run("GPU:0", name, inputs, case.attrs)
    message = f"{name} {case!r} {dict(case.attrs)} {dtype}"
    exact = np.asarray(run("CPU:0", name, inputs, case.attrs))
    assert found.dtype == exact.dtype, message
    if found.dtype.kind in "iub":
        # Floats that are cast or compared are the same floats on both.
        np.testing.assert_array_equal(found, exact, err_msg=message)
        return
    as_it_is = ops.OPS[name].random or case.attrs.get("dtype") or name in IN_ORDER
    if as_it_is or dtype not in EPSILON:
        expected = exact.astype("float64")
    else:
        expected = run("CPU:0", name, widened(inputs), case.attrs)
    signed = TABLE[name].signed
    if signed is not None:
        found, expected = signed(case, found), signed(case, expected)
    close(found, expected, allowed(name, case, inputs, expected, found.dtype.name), message)


def generator() -> np.random.Generator:
    return np.random.default_rng(20)


@pytest.mark.parametrize("name", ON_CARDS)
def test_values(name: str) -> None:
    row = TABLE[name]
    for dtype in row.dtypes:
        for case in (*row.small, *row.empty):
            check(name, case, row.inputs(case, dtype, generator()), dtype)


@pytest.mark.parametrize("name", ON_CARDS)
def test_large_values(name: str) -> None:
    row = TABLE[name]
    if row.signed is not None:
        pytest.skip("it takes matrices one by one, and many are tried of others")
    dtype = "bool" if row.dtypes == ("bool",) else row.dtypes[0]
    for case in row.large:
        inputs = row.inputs(case, dtype, generator())
        if name == "Prod":  # Else what is below the normal numbers on the way would lose its bits.
            inputs = [np.copysign(np.exp2(each / 16), each).astype(dtype) for each in inputs]
        check(name, case, inputs, dtype)


@pytest.mark.skipif(not HAS_BFLOAT16, reason="bfloat16 needs ml_dtypes")
@pytest.mark.parametrize("name", [n for n, row in ON_CARDS.items() if "float32" in row.dtypes])
def test_bfloat16(name: str) -> None:
    import ml_dtypes

    row: Row = TABLE[name]
    if ops.OPS[name].random or not row.small[0].shapes:
        pytest.skip("it takes no inputs")
    if mr.bfloat16 not in ops.OPS[name].dtypes:
        pytest.skip("it takes no bfloat16")
    for case in (*row.small, *row.empty):
        inputs = [
            each.astype(ml_dtypes.bfloat16) if each.dtype == np.float32 else each
            for each in row.inputs(case, "float32", generator())
        ]
        found = run("GPU:0", name, inputs, case.attrs)
        expected = run("CPU:0", name, widened(inputs), case.attrs)
        message = f"{name} {case!r} bfloat16"
        if found.dtype.kind in "iub":
            np.testing.assert_array_equal(found, expected, err_msg=message)
        else:
            error = allowed(name, case, inputs, expected, found.dtype.name)
            close(found, expected, error, message)


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str) -> None:
    values = np.array(SPECIAL, np.float32)
    with np.errstate(all="ignore"):
        found, host = run("GPU:0", name, [values], {}), run("CPU:0", name, [values], {})
    # Subnormal results are few bits, of which the last may differ.
    error = UNITS * EPSILON["float32"] * np.abs(host.astype("float64")) + 1e-44
    with np.errstate(invalid="ignore"):
        close(found, host.astype("float64"), error, f"{name} of {values}")


@pytest.mark.parametrize("name", ["Less", "Equal", "NotEqual", "Cast"])
def test_special_values_are_compared_and_cast(name: str) -> None:
    """What is below the normal numbers is not 0: kernels are compiled with our options alone."""
    values = np.array(SPECIAL, np.float32)
    inputs = [values] if name == "Cast" else [values[:, None], values[None, :]]
    attrs = {"dtype": mr.bool} if name == "Cast" else {}
    found, host = (run(device, name, inputs, attrs) for device in ("GPU:0", "CPU:0"))
    np.testing.assert_array_equal(found, host)


def gradients(device: str, name: str, inputs: list[Array], attrs: Mapping[str, Any]) -> list[Array]:
    """Return the gradients of the op's weighted sum by each input of floats."""
    with mr.device(device):
        tensors = [ops.constant(each) for each in inputs]
        floats = [each for each in tensors if each.dtype.kind == "f"]
        with GradientTape() as tape:
            tape.watch(floats)
            result = ops.OPS[name](*tensors, **attrs)
            weights = np.random.default_rng(3).uniform(0.5, 1.5, result.shape)
            settled = result if TABLE[name].signed is None else ops.square(result)
            target = ops.reduce_sum(settled * ops.constant(weights.astype(result.dtype.name)))
        found = tape.gradient(target, floats, unconnected_gradients="zero")
        return [np.asarray(each.numpy()) for each in found]


@pytest.mark.parametrize("name", [name for name, row in ON_CARDS.items() if row.differentiable])
def test_gradients(name: str) -> None:
    row = TABLE[name]
    for dtype in (each for each in row.dtypes if each in EPSILON):
        for case in row.small:
            inputs = row.inputs(case, dtype, generator())
            if not any(each.dtype.kind == "f" for each in inputs) or (
                case.attrs.get("dtype", ops.float64).kind != "f"
            ):
                continue
            found = gradients("GPU:0", name, inputs, case.attrs)
            expected = gradients("CPU:0", name, inputs, case.attrs)
            for value, other in zip(found, expected, strict=True):
                scale = float(np.abs(other).max(initial=1.0))
                units = UNITS_OF_MATRICES if name in MATRIX_ROWS else UNITS_OF_GRADIENTS
                error = units * EPSILON[dtype] * scale
                close(value, other.astype("float64"), error, f"{name} {case!r} {dtype}")


@pytest.mark.cuda
def test_a_label_that_is_out_of_range_spoils_its_own_row() -> None:
    logits = generator().normal(size=(3, 4)).astype("float32")
    labels = np.array([1, 4, -1], "int32")
    losses = run("GPU:0", "SparseSoftmaxCrossEntropyWithLogits", [logits, labels], {})
    assert np.isnan(losses).tolist() == [False, True, True]
