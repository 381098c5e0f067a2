"""What holds for every op, by the table of ops in `conftest`."""

import itertools
import logging
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from op_row import Case

from mirrored import devices, ops
from mirrored.autodiff import GradientTape
from mirrored.backends.product_settings import available_threads
from mirrored.errors import InvalidArgumentError
from mirrored.ops.spec import ALL_DTYPES, INDICES, INTEGERS, TENSORFLOW_NAMES

SELDOM = pytest.mark.slow  # Of ops that are not tried on everything in each run.
ALWAYS = {"test_forward", "test_gradient"}
Array = np.ndarray[Any, Any]
TOLERANCES = {"float32": 2e-5, "float64": 1e-11}
HIDDEN_LIMIT = 64 * 1024
STEP = 1e-6


def generator() -> np.random.Generator:
    return np.random.default_rng(20)


def call(name: str, inputs: list[Array], attrs: Mapping[str, Any]) -> ops.Tensor:
    return ops.OPS[name](*[ops.constant(each) for each in inputs], **attrs)


def expected_dtype(dtype: str, reference: Array, attrs: Mapping[str, Any]) -> np.dtype[Any]:
    if reference.dtype == bool:
        return np.dtype(bool)
    return np.dtype(attrs.get("dtype") or attrs.get("output_type") or dtype)


def check_value(result: ops.Tensor, reference: Array, dtype: np.dtype[Any]) -> None:
    values = result.numpy()
    assert result.dtype == values.dtype == dtype
    assert result.shape == values.shape == reference.shape
    if dtype.kind == "f":
        tolerance = TOLERANCES[dtype.name]
        np.testing.assert_allclose(values, reference, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(values, reference.astype(dtype))


def test_table_has_every_op_and_no_other(table: Mapping[str, Any]) -> None:
    assert table.keys() == ops.OPS.keys()


def test_table_says_which_ops_have_no_gradient(op_row: Any) -> None:
    name, each = op_row
    assert (ops.OPS[name].gradient is not None) == each.differentiable


def test_table_has_every_dtype(op_row: Any) -> None:
    name, each = op_row
    if each.small[0].shapes and not {"labels", "state"}.intersection(each.kinds):
        # `test_narrow_floats` and `test_small_dtypes` try the others.
        narrow = {ops.bfloat16(), ops.float16}
        small = INTEGERS - INDICES - {ops.uint8}
        taken = ops.OPS[name].dtypes
        assert {np.dtype(dtype) for dtype in each.dtypes} == taken - small - narrow
        assert taken & narrow in (narrow, set())


def test_forward(op_case: Any) -> None:
    name, row, (_, attrs) = op_case
    for dtype in row.dtypes:
        inputs = row.inputs(op_case[2], dtype, generator())
        wide = [each.astype("float64") if each.dtype.kind == "f" else each for each in inputs]
        reference = np.asarray(row.reference(*wide, **attrs))
        result = call(name, inputs, attrs)
        check_value(result, reference, expected_dtype(dtype, reference, attrs))


def test_forward_of_nothing(op_row: Any) -> None:
    name, each = op_row
    for case in each.empty:
        for dtype in each.dtypes:
            inputs = each.inputs(case, dtype, generator())
            reference = np.asarray(each.reference(*inputs, **case.attrs))
            result = call(name, inputs, case.attrs)
            check_value(result, reference, expected_dtype(dtype, reference, case.attrs))


def gradients_along(
    function: Callable[[list[ops.Tensor]], ops.Tensor], inputs: list[Array]
) -> tuple[list[ops.Tensor], list[ops.Tensor]]:
    """Return the inputs as tensors and the gradients by those that are floats."""
    tensors = [ops.constant(each) for each in inputs]
    floats = [each for each in tensors if each.dtype == ops.float64]
    with GradientTape() as tape:
        tape.watch(floats)
        target = function(tensors)
    return tensors, tape.gradient(target, floats, unconnected_gradients="zero")


def check_directions(
    function: Callable[[list[ops.Tensor]], ops.Tensor],
    inputs: list[Array],
    seeds: Iterable[int],
    along: Callable[[Array, int], Array],
) -> None:
    """Compare the gradients of a scalar function with central differences along directions."""
    _, gradients = gradients_along(function, inputs)

    def moved(directions: list[Array | None], by: float) -> float:
        return float(
            function(
                [
                    ops.constant(each if to is None else each + by * to)
                    for each, to in zip(inputs, directions, strict=True)
                ]
            )
        )

    for seed in seeds:
        rng = np.random.default_rng(seed)
        directions = [
            along(rng.standard_normal(each.shape), i) if each.dtype == np.float64 else None
            for i, each in enumerate(inputs)
        ]
        numeric = (moved(directions, STEP) - moved(directions, -STEP)) / (2 * STEP)
        taken = [each for each in directions if each is not None]
        exact = sum(
            float(np.sum(gradient.numpy() * to))
            for gradient, to in zip(gradients, taken, strict=True)
        )
        assert exact == pytest.approx(numeric, rel=2e-6, abs=2e-6)


def has_gradient(op_case: Any) -> bool:
    _, row, (_, attrs) = op_case
    return bool(row.differentiable and attrs.get("dtype", ops.float64) == ops.float64)


def weighted(name: str, attrs: Mapping[str, Any]) -> Callable[[list[ops.Tensor]], ops.Tensor]:
    """Return the op as a scalar function: the sum of its elements, each times another weight."""

    def function(tensors: list[ops.Tensor]) -> ops.Tensor:
        result = ops.OPS[name](*tensors, **attrs)
        weights = np.random.default_rng(3).uniform(0.5, 1.5, result.shape)
        return ops.reduce_sum(result * ops.constant(weights))

    return function


def test_gradient(op_case: Any) -> None:
    if not has_gradient(op_case):
        assert_not_differentiable(op_case)
        return
    name, row, (_, attrs) = op_case
    inputs = row.inputs(op_case[2], "float64", generator())
    check_directions(weighted(name, attrs), inputs, range(3), row.along)


def assert_not_differentiable(op_case: Any) -> None:
    name, row, (_, attrs) = op_case
    tensors = [ops.constant(each) for each in row.inputs(op_case[2], row.dtypes[0], generator())]
    floats = [each for each in tensors if each.dtype.kind == "f"]
    with GradientTape() as tape:
        tape.watch(floats)
        result = ops.OPS[name](*tensors, **attrs)
    gradients = tape.gradient(result, floats)
    if result.dtype.kind != "f" or not row.differentiable:
        assert gradients == [None] * len(floats)


def test_second_gradient(op_case: Any) -> None:
    """The gradients' own gradients: differences of the first gradient along a direction."""
    if not has_gradient(op_case):
        return
    name, row, (_, attrs) = op_case
    inputs = row.inputs(op_case[2], "float64", generator())
    function = weighted(name, attrs)

    def slope(tensors: list[ops.Tensor]) -> ops.Tensor:
        floats = [each for each in tensors if each.dtype == ops.float64]
        with GradientTape() as tape:
            tape.watch(floats)
            # Squared, so that linear ops have a second gradient too.
            target = ops.square(function(tensors))
        gradients = tape.gradient(target, floats, unconnected_gradients="zero")
        rng = np.random.default_rng(4)
        return ops.add_n(
            [ops.reduce_sum(each * rng.uniform(0.5, 1.5, each.shape)) for each in gradients]
        )

    check_directions(slope, inputs, [5], row.along)


def declared(name: str, tensors: list[ops.Tensor], attrs: Mapping[str, Any]) -> int:
    op = ops.OPS[name]
    if op.workspace is None:
        return 0
    specs = op.workspace(*[each.spec for each in tensors], **attrs)
    return sum(int(np.prod(spec.shape)) * spec.dtype.itemsize for spec in specs)


def smaller(value: Any) -> Any:
    """Return a large case with 3/10 of each length, which is far more than may be hidden."""
    if isinstance(value, tuple):
        parts = map(smaller, value)
        return value._make(parts) if isinstance(value, Case) else tuple(parts)
    if isinstance(value, Mapping):
        return {
            key: smaller(each) if key in ("shape", "k", "sizes") else each
            for key, each in value.items()
        }
    return value * 3 // 10 if isinstance(value, int) and value >= 100 else value


def large_inputs(row: Any, case: Case, dtype: str) -> list[Array]:
    """Draw a large case's inputs, a few numbers again and again: it is their memory that counts."""
    few = row.inputs(Case(((1009,),) * len(case.shapes), {}), dtype, generator())
    return [np.resize(each, shape) for each, shape in zip(few, case.shapes, strict=True)]


@pytest.mark.parametrize("rest", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_memory_is_what_is_declared(op_row: Any, rest: bool) -> None:
    """Of the first case in every run of the tests, and of that alone where shapes do not matter."""
    name, each = op_row
    if rest and ops.OPS[name].elementwise and len(each.small[0].shapes) == 1:
        return
    available_threads()  # The first product loads what sets them, which is no memory of an op.
    for case in map(smaller, each.large[1:] if rest else each.large[:1]):
        dtype = "float64" if "float64" in each.dtypes else each.dtypes[0]
        tensors = [ops.constant(array) for array in large_inputs(each, case, dtype)]
        pool = devices.get_device("CPU:0").pool
        before = pool.current
        pool.reset_peak()
        workspace = declared(name, tensors, case.attrs)
        tracemalloc.start()
        result = ops.OPS[name](*tensors, **case.attrs)
        hidden = tracemalloc.get_traced_memory()[1] - workspace
        tracemalloc.stop()
        output = 0 if ops.OPS[name].view else result.numpy().nbytes
        assert pool.peak - before == workspace + output, case
        assert pool.current - before == output, case
        assert hidden - output < HIDDEN_LIMIT, case
        del result
        assert pool.current == before, case


def aliasable(op_row: Any) -> list[tuple[Any, str, int]]:
    """Return the cases, dtypes and positions in which the output may take an input's memory."""
    name, each = op_row
    op = ops.OPS[name]
    found = []
    for case, dtype in itertools.product(each.small, each.dtypes):
        inputs = each.inputs(case, dtype, generator())
        specs = [ops.TensorSpec(array.shape, array.dtype) for array in inputs]
        output = op.infer(*specs, **case.attrs)
        found += [(case, dtype, i) for i in op.may_alias if specs[i] == output]
    return found


def test_alias(op_row: Any) -> None:
    name, each = op_row
    op, found = ops.OPS[name], aliasable(op_row)
    assert {position for _, _, position in found} == set(op.may_alias)
    for case, dtype, position in found:
        inputs = each.inputs(case, dtype, generator())
        expected = call(name, inputs, case.attrs).numpy()
        attrs = dict(case.attrs)
        if op.workspace is not None:
            specs = op.workspace(
                *[ops.TensorSpec(array.shape, array.dtype) for array in inputs], **attrs
            )
            attrs["workspace"] = tuple(np.empty(spec.shape, spec.dtype) for spec in specs)
        assert op.kernel is not None
        op.kernel(np, inputs[position], *inputs, **attrs)
        np.testing.assert_array_equal(inputs[position], expected)


@pytest.mark.behaviour("default-placement", "cpu-only")
@pytest.mark.parametrize(
    ("scope", "index"), [(None, 0), pytest.param("GPU:0", 0, marks=pytest.mark.slow), ("GPU:1", 1)]
)
def test_device_and_log(
    op_row: Any, simulate: Any, caplog: pytest.LogCaptureFixture, scope: str | None, index: int
) -> None:
    name, each = op_row
    simulate(2)
    with devices.device("GPU:1"):  # Inputs come from where the op may not be.
        tensors = [
            ops.constant(array) for array in each.inputs(each.small[0], each.dtypes[0], generator())
        ]
    caplog.set_level(logging.INFO, "mirrored")
    caplog.clear()
    devices.set_log_device_placement(True)
    with devices.device(scope):
        result = ops.OPS[name](*tensors, **each.small[0].attrs)
    where = f"GPU:{index}" if "GPU" in ops.OPS[name].devices else "CPU:0"
    device = f"/job:localhost/replica:0/task:0/device:{where}"
    assert result.device == device
    assert caplog.messages == [f"Executing op {name} in device {device}"]


def test_dtypes_that_it_does_not_take(op_row: Any) -> None:
    name, each = op_row
    op = ops.OPS[name]
    case = each.small[0]
    for dtype in ALL_DTYPES - op.dtypes - {ops.bfloat16()}:
        inputs = each.inputs(case, dtype.name, generator())
        with pytest.raises(InvalidArgumentError) as caught:
            call(name, inputs, case.attrs)
        assert f"Value for attr 'T' of {TENSORFLOW_NAMES[dtype]} is not in the list" in str(
            caught.value
        )
        assert f"[Op:{name}]" in str(caught.value)


@pytest.mark.behaviour("two-dtypes")
def test_two_dtypes(op_row_of_two: Any) -> None:
    name, each = op_row_of_two
    case, second = each.small[0], 2 if "condition" in each.kinds else 1
    accepted = [np.dtype(dtype) for dtype in each.dtypes]
    for one, other in itertools.permutations(accepted, 2):
        inputs = each.inputs(case, one.name, generator())
        inputs[second] = inputs[second].astype(other)
        with pytest.raises(InvalidArgumentError) as caught:
            call(name, inputs, case.attrs)
        assert str(caught.value) == (
            f"cannot compute {name} as input #1(zero-based) was expected to be a "
            f"{TENSORFLOW_NAMES[one]} tensor but is a {TENSORFLOW_NAMES[other]} tensor [Op:{name}]"
        )
