"""Every op in floats of 16 bits: the float32 result, rounded once; by the table in `conftest`."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from forked_programs import run_program

import mirrored as mr
from mirrored import devices, ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError
from mirrored.ops.narrow_floats import autocast, widened
from mirrored.ops.spec import is_narrow

pytestmark = pytest.mark.usefixtures("one_blas_thread")

SELDOM = pytest.mark.slow  # Of ops that are not tried on everything in each run.
ALWAYS = frozenset[str]()
Array = np.ndarray[Any, Any]
Function = Callable[..., list[ops.Tensor]]
ULP = 2.0**-8  # Half of the distance from 1 to the next number: what one rounding may change.
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def takes_it(op_case: Any) -> bool:
    """Return whether an op is given floats by its row of the table."""
    name, row, (shapes, _) = op_case
    return bool(shapes) and "float32" in row.dtypes and mr.bfloat16 in ops.OPS[name].dtypes


def drawn(op_case: Any, seed: int = 0, dtype: Any = None) -> list[Array]:
    """Return a case's inputs: floats are float32, of values that bfloat16 or `dtype` has too."""
    _, row, case = op_case
    rng = np.random.default_rng(seed)
    arrays = []
    for i, array in enumerate(row.inputs(case, "float32", rng)):
        if array.dtype != np.float32:
            arrays.append(array)
            continue
        rounded = array.astype(dtype or mr.bfloat16).astype(np.float32)
        if seed and row.kinds[min(i, len(row.kinds) - 1)] == "any":
            special = rng.random(array.shape) < 0.3
            rounded[special] = rng.choice(SPECIAL, array.shape)[special]
        arrays.append(rounded)
    return arrays


def narrow(x: ops.Tensor, dtype: Any = None) -> ops.Tensor:
    return ops.cast(x, dtype or mr.bfloat16) if x.dtype == ops.float32 else x


def wide(x: ops.Tensor) -> ops.Tensor:
    return ops.cast(x, ops.float32) if is_narrow(x.dtype) else x


def in_float32(op_case: Any) -> Function:
    name, _, (_, attrs) = op_case
    return lambda *inputs: [ops.OPS[name](*inputs, **attrs)]


def in_bfloat16(op_case: Any) -> Function:
    """Return an op as a function of float32 tensors that computes in bfloat16."""
    compute = in_float32(op_case)
    return lambda *inputs: [wide(each) for each in compute(*map(narrow, inputs))]


def values(function: Function, inputs: Sequence[Array]) -> list[Array]:
    return [np.asarray(each.numpy()) for each in function(*(ops.constant(each) for each in inputs))]


@pytest.mark.behaviour("bfloat16")
def test_forward_rounds_once(op_case: Any, bits: Any) -> None:
    if not takes_it(op_case):
        return
    name, _, (_, attrs) = op_case
    for dtype in (mr.bfloat16, mr.float16):
        inputs = drawn(op_case, 1, dtype)
        (result,) = in_float32(op_case)(*(narrow(ops.constant(each), dtype) for each in inputs))
        (exact,) = in_float32(op_case)(*map(ops.constant, inputs))
        if name == "FloorDiv":  # The quotient is rounded before it is rounded down.
            exact = mr.floor(wide(narrow(ops.constant(inputs[0]) / inputs[1], dtype)))
        expected = wide(narrow(exact, dtype)).numpy()
        natural = dtype if expected.dtype == np.float32 else expected.dtype
        wanted = attrs.get("dtype", natural)
        assert result.dtype == wanted, name
        if wanted in (dtype, expected.dtype):
            assert bits([wide(result).numpy()]) == bits([expected])


def test_forward_is_near_the_exact_result(op_case: Any) -> None:
    if not takes_it(op_case):
        return
    _, row, (_, attrs) = op_case
    inputs = drawn(op_case)
    exact = [x.astype("float64") if x.dtype == np.float32 else x for x in inputs]
    reference = np.asarray(row.reference(*exact, **attrs))
    (result,) = values(in_bfloat16(op_case), inputs)
    np.testing.assert_allclose(result.astype("float64"), reference, rtol=1.01 * ULP, atol=1e-5)


def test_products_accumulate_in_float32() -> None:
    """What is added in bfloat16 stops growing at 256: that and 1 are rounded to that."""
    ones = ops.ones((1, 4096), mr.bfloat16)
    total = ops.reduce_sum(ones)
    assert float(total) == float(ops.matmul(ones, ones, transpose_b=True)[0, 0]) == 4096.0
    assert float(ops.add_n([ops.reshape(ones, (4096,))[0]] * 300)) == 300.0


def test_of_nothing(op_row: Any, bits: Any) -> None:
    name, row = op_row
    for case in row.empty:
        op_case = name, row, case
        if takes_it(op_case):
            inputs = drawn(op_case)
            (expected,) = values(in_float32(op_case), inputs)
            (result,) = values(in_bfloat16(op_case), inputs)
            assert bits([result]) == bits([expected])


def test_recorded_equals_eager(op_case: Any, record: Any, bits: Any) -> None:
    if not takes_it(op_case):
        return
    inputs, function = drawn(op_case, 1), in_bfloat16(op_case)
    recorded = record(function, inputs)
    for _ in range(2):  # The second run finds the memory as the first one left it.
        assert bits(recorded(*inputs)) == bits(values(function, inputs))


def gradients(op_case: Any, compute: Function, convert: Any) -> Function:
    """Return the gradients of an op by its inputs that are floats, in float32."""

    def differentiated(*inputs: ops.Tensor) -> list[ops.Tensor]:
        floats = [each for each in inputs if each.dtype == ops.float32]
        with GradientTape() as tape:
            tape.watch(floats)
            (result,) = compute(*map(convert, inputs))
            target = ops.reduce_sum(result)
        return tape.gradient(target, floats, unconnected_gradients="zero")

    return differentiated


def test_gradients(op_case: Any, record: Any, bits: Any) -> None:
    """They come in the inputs' float32, through the gradient of the cast."""
    _, row, (_, attrs) = op_case
    if not takes_it(op_case) or not row.differentiable or "dtype" in attrs:
        return
    inputs = drawn(op_case)
    narrowed = gradients(op_case, in_float32(op_case), narrow)
    found = values(narrowed, inputs)
    expected = values(gradients(op_case, in_float32(op_case), lambda x: x), inputs)
    assert [each.dtype for each in found] == [np.float32] * len(found)
    scale = max([1.0, *(float(np.abs(each).max(initial=0.0)) for each in expected)])
    for one, other in zip(found, expected, strict=True):
        # A rule is a few ops long, each of which rounds.
        np.testing.assert_allclose(one, other, rtol=16 * ULP, atol=16 * ULP * scale)
    assert bits(record(narrowed, inputs)(*inputs)) == bits(found)


def test_memory_is_what_is_declared(op_row: Any) -> None:
    name, row = op_row
    op_case = name, row, row.small[0]
    if not takes_it(op_case):
        return
    attrs = row.small[0].attrs
    tensors = [narrow(ops.constant(each)) for each in drawn(op_case)]
    op = widened(ops.OPS[name])
    specs = [] if op.workspace is None else op.workspace(*(x.spec for x in tensors), **attrs)
    declared = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype in specs)
    pool = devices.get_device("CPU:0").pool
    before = pool.current
    pool.reset_peak()
    result = ops.OPS[name](*tensors, **attrs)
    own = 0 if op.view is not None else result.size * result.dtype.itemsize
    assert pool.peak - before == declared + own
    assert pool.current - before == own


def test_vectors_that_all_threads_share(record: Any, bits: Any) -> None:
    """Long elementwise work after the replicas have met, which a program computes in pieces."""
    x = np.random.default_rng(1).standard_normal(150_001).astype(np.float32)

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        y = narrow(x)
        return [wide(ops.sigmoid(y) * y + 0.1), wide(ops.add_n([y, y * 0.3, y * 0.7]))]

    assert bits(record(function, [x], threads=2)(x)) == bits(values(function, [x]))


def test_what_it_looks_like() -> None:
    x = ops.constant([[1.5, 2.0], [3.1, -0.0]], mr.bfloat16)
    assert str(x).endswith("[3.09375 -0]], shape=(2, 2), dtype=bfloat16)")
    assert repr(x[0, 0]) == "<mr.Tensor: shape=(), dtype=bfloat16, numpy=1.5>"
    assert x.numpy().dtype == x.dtype == mr.bfloat16
    assert float(x[1, 0]) == 3.09375
    assert int(x[0, 1]) == 2
    assert bool(x[0, 0])
    assert repr(mr.Variable(x[0])).endswith(
        "dtype=bfloat16, numpy=array([1.5, 2], dtype=bfloat16)>"
    )


@cases("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_casts(dtype: str) -> None:
    numbers = np.array([0.0, 1.0, -3.0, 256.0]).astype(dtype)
    there = ops.cast(ops.constant(numbers), "bfloat16")
    assert there.dtype == mr.bfloat16
    np.testing.assert_array_equal(ops.cast(there, dtype).numpy(), numbers)


def test_casts_round_to_the_nearest_and_ties_to_even() -> None:
    values = [1.0 + ULP, 1.0 + 3 * ULP, 1.0 + 1.01 * ULP, 3.4e38, np.nan, -1e-45]
    rounded = ops.cast(ops.constant(values), mr.bfloat16).numpy().astype(np.float32)
    expected = [1.0, 1.0 + 4 * ULP, 1.0 + 2 * ULP, np.inf, np.nan, -0.0]
    np.testing.assert_array_equal(rounded, np.float32(expected))
    assert np.signbit(rounded[-1])


def test_numbers_take_its_dtype() -> None:
    x = ops.constant([1.0], mr.bfloat16)
    for other in (0.1, 1, np.float64(0.1), np.array([0.1], np.float32)):
        assert (x + other).dtype == (other * x).dtype == mr.bfloat16
    assert float((x + 0.1)[0]) == pytest.approx(1.1, abs=ULP)


def test_another_dtype_beside_it_is_an_error() -> None:
    x, y = ops.constant([1.0], mr.bfloat16), ops.constant([1.0])
    with pytest.raises(
        InvalidArgumentError,
        match=r"cannot compute AddV2 as input #1.* expected to be a bfloat16 tensor but is a float",
    ):
        x + y
    with pytest.raises(
        InvalidArgumentError, match="'T' of bfloat16 is not in the list of allowed values: bool"
    ):
        ops.logical_not(x)


def test_autocast() -> None:
    x, y = ops.constant([1.0], mr.bfloat16), mr.Variable([1.01])
    with autocast(mr.bfloat16):
        assert [each.dtype for each in (x * y, y - x)] == [mr.bfloat16] * 2
        assert (y * 2.0).dtype == ops.float32
        with autocast(None), pytest.raises(InvalidArgumentError, match="cannot compute Mul"):
            x * y
        with pytest.raises(InvalidArgumentError, match="cannot compute Mul"):
            x * ops.constant([1.0], "float64")
        with GradientTape() as tape:
            z = y * x
        assert tape.gradient(z, y).dtype == ops.float32
    with pytest.raises(InvalidArgumentError, match="cannot compute Mul"):
        x * y


WITHOUT = """
import sys
import mirrored as mr
import mirrored.compat.v1
assert "ml_dtypes" not in sys.modules  # Importing the library leaves it alone.
sys.modules["ml_dtypes"] = None
for ask in (
    lambda: mr.bfloat16,
    lambda: mr.dtypes.bfloat16,
    lambda: mirrored.compat.v1.bfloat16,
    lambda: mr.as_dtype("bfloat16"),
    lambda: mr.cast(1.0, "bfloat16"),
    lambda: mr.keras.mixed_precision.Policy("mixed_bfloat16"),
    lambda: mr.layers.Dense(1, dtype="mixed_bfloat16"),
):
    try:
        ask()
    except ImportError as error:
        assert 'Install it with: pip install ml_dtypes' in str(error), error
    else:
        raise SystemExit("no error")
assert float(mr.matmul([[2.0]], [[3.0]])[0, 0]) == 6.0
"""


@pytest.mark.behaviour("bfloat16")
def test_without_the_package(tmp_path: Path) -> None:
    """Everything else works; who asks for bfloat16 is told how to install it."""
    program = tmp_path / "program.py"
    program.write_text(WITHOUT)
    done = run_program(program, folder=tmp_path, environment=os.environ)
    assert done.returncode == 0, done.stderr


def test_arrays_of_it_are_tensors() -> None:
    array = np.array([1.5, 3.0], mr.bfloat16)
    assert mr.constant(array).dtype == mr.bfloat16
    assert (mr.ones((2,)) * array).dtype == mr.float32
    assert (mr.ones((2,), mr.bfloat16) * array).numpy().tolist() == [1.5, 3.0]


def test_norms_are_clipped() -> None:
    clipped = mr.clip_by_norm(mr.cast([3.0, 4.0], mr.bfloat16), 1.0)
    assert clipped.dtype == mr.bfloat16
    np.testing.assert_allclose(clipped.numpy().astype(np.float32), [0.6, 0.8], rtol=4 * ULP)
    assert mr.clip_by_norm(mr.zeros((2,), mr.bfloat16), 1.0).numpy().tolist() == [0.0, 0.0]


def test_sums_over_replicas_round_once_also_in_programs(simulate: Any) -> None:
    """One and two parts of 2**-8: alone each of them would be rounded off."""
    simulate(3)
    strategy = mr.MirroredStrategy()
    parts = strategy.experimental_distribute_values_from_function(
        lambda context: mr.constant([1.0, ULP, ULP][context.replica_id_in_sync_group])
    )

    def summed(x: mr.Tensor) -> mr.Tensor:
        context = mr.distribute.get_replica_context()
        return context.all_reduce("sum", mr.cast(x, mr.bfloat16))

    def total() -> Any:
        return strategy.run(summed, (parts,))

    for function in (total, mr.function(total)):
        results = strategy.experimental_local_results(function())
        assert [float(each) for each in results] == [1.0 + 2 * ULP] * 3
