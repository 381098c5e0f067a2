"""Every op computes, as a program, the bits of the eager call; by the table in `conftest`."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.ops.random import NextDraw
from mirrored.ops.rng_state import ShardPosition
from mirrored.program import kernel_fusion

pytestmark = pytest.mark.usefixtures("one_blas_thread")

SELDOM = pytest.mark.slow  # Of ops that are not tried on everything in each run.
ALWAYS = {"test_forward"}
Array = np.ndarray[Any, Any]
Function = Callable[..., list[ops.Tensor]]
SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0)
PIECE, LONG = 1 << 13, 18_751  # More than two pieces of a group, and no multiple of anything.
# Whether all is tried but what is tried in every run of the tests.
REST = pytest.mark.parametrize("rest", [False, pytest.param(True, marks=pytest.mark.slow)])


def dtypes_of(op_case: Any, rest: bool) -> list[str]:
    """Return the dtypes of a case: in every run of each case one, and of each dtype one case."""
    _, row, case = op_case
    number, plain = row.small.index(case), [each for each in row.dtypes if each != "uint8"]
    usual = [each for i, each in enumerate(plain) if i % len(row.small) == number % len(plain)]
    # Bytes are tried with the first case alone.
    return [each for each in row.dtypes_for(case) if rest != (each in (*usual, "uint8"))]


def drawn(op_case: Any, dtype: str, seed: int) -> list[Array]:
    """Return a case's inputs; from the second seed on with special values among them."""
    _, row, case = op_case
    rng = np.random.default_rng(seed)
    inputs: list[Array] = row.inputs(case, dtype, rng)
    for i, array in enumerate(inputs):
        kind = row.kinds[min(i, len(row.kinds) - 1)]
        if seed and array.dtype.kind == "f" and kind == "any":
            special = rng.random(array.shape) < 0.3
            array[special] = rng.choice(SPECIAL, array.shape)[special]
    return inputs


def function_of(op_case: Any) -> Function:
    """Return an op as a function of its inputs alone; a draw is the next of a stream."""
    name, _, (_, attrs) = op_case
    if not ops.OPS[name].random:
        return lambda *inputs: [ops.OPS[name](*inputs, **attrs)]
    numbers = itertools.count()
    stream = NextDraw(lambda _: (attrs["key"], next(numbers)), ShardPosition())
    return lambda: [ops.OPS[name](**{**attrs, "draw": stream})]


def eagerly(function: Function, inputs: Sequence[Array]) -> list[Array]:
    return [each.numpy() for each in function(*(ops.constant(each) for each in inputs))]


def check(function: Function, runs: Sequence[Sequence[Array]], record: Any, bits: Any) -> None:
    """Compare a program's runs, one after the other, with eager calls."""
    recorded = record(function, runs[0])
    expected = [bits(eagerly(function, inputs)) for inputs in runs]
    for inputs, each in zip([*runs, runs[0]], [*expected, expected[0]], strict=True):
        assert bits(recorded(*inputs)) == each


@REST
def test_forward(op_case: Any, rest: bool, record: Any, bits: Any) -> None:
    name, _, (_, attrs) = op_case
    for dtype in dtypes_of(op_case, rest):
        if ops.OPS[name].random:
            recorded = record(function_of(op_case), [])
            for draw in range(3):
                expected = ops.OPS[name](**{**attrs, "draw": draw}).numpy()
                assert bits(recorded()) == bits([expected])
            continue
        check(function_of(op_case), [drawn(op_case, dtype, i) for i in range(2)], record, bits)


def dying(x: ops.Tensor) -> ops.Tensor:
    """Return the value in memory that the next op may overwrite."""
    if x.dtype == ops.uint8:
        return 255 - (255 - x)
    again = ops.OPS["LogicalNot" if x.dtype == ops.bool_ else "Neg"]
    return again(again(x))


def test_forward_of_values_that_die(op_case: Any, record: Any, bits: Any) -> None:
    """Results may take over the memory of inputs here, and later values that of results."""
    function = function_of(op_case)
    if not op_case[2].shapes:
        return

    def chain(*inputs: ops.Tensor) -> list[ops.Tensor]:
        (once,) = function(*map(dying, inputs))
        (twice,) = function(*map(dying, map(dying, inputs)))
        return [dying(once), twice, ops.identity(dying(twice))]

    for dtype in dtypes_of(op_case, rest=False):
        check(chain, [drawn(op_case, dtype, i) for i in range(2)], record, bits)


def test_forward_of_nothing(op_row: Any, record: Any, bits: Any) -> None:
    """Of each case one dtype, and of each dtype one case."""
    name, row = op_row
    numbers = itertools.product(range(len(row.empty)), range(len(row.dtypes)))
    for i, j in numbers:
        usual = i % len(row.dtypes) == j % len(row.empty)
        op_case, dtype = (name, row, row.empty[i]), row.dtypes[j]
        if usual and not ops.OPS[name].random:
            check(function_of(op_case), [drawn(op_case, dtype, 0)] * 2, record, bits)


def gradients(op_case: Any) -> Function:
    """Return an op's result and the gradients of it by the inputs that are floats."""
    function = function_of(op_case)

    def differentiated(*inputs: ops.Tensor) -> list[ops.Tensor]:
        floats = [each for each in inputs if each.dtype.kind == "f"]
        with GradientTape() as tape:
            tape.watch(floats)
            (result,) = function(*inputs)
            weights = np.random.default_rng(3).uniform(0.5, 1.5, result.shape)
            target = ops.reduce_sum(result * ops.constant(weights, result.dtype))
        return [result, *tape.gradient(target, floats, unconnected_gradients="zero")]

    return differentiated


def second_gradients(op_case: Any) -> Function:
    """Return the gradients of the gradients' squares."""
    function = gradients(op_case)

    def differentiated(*inputs: ops.Tensor) -> list[ops.Tensor]:
        floats = [each for each in inputs if each.dtype.kind == "f"]
        with GradientTape() as tape:
            tape.watch(floats)
            _, *slopes = function(*inputs)
            target = ops.add_n([ops.reduce_sum(ops.square(each)) for each in slopes])
        return tape.gradient(target, floats, unconnected_gradients="zero")

    return differentiated


@pytest.mark.parametrize(
    ("order", "dtype"),
    [
        (gradients, "float32"),
        # It has the first gradient in it.
        pytest.param(second_gradients, "float64", marks=pytest.mark.slow),
    ],
)
def test_gradient(order: Any, dtype: str, op_case: Any, record: Any, bits: Any) -> None:
    _, row, case = op_case
    if order is second_gradients and case not in (row.small[0], row.small[-1]):
        return
    is_float = np.dtype(case.attrs.get("dtype", dtype)).kind == "f"
    if row.differentiable and is_float and dtype in row.dtypes:
        check(order(op_case), [drawn(op_case, dtype, i) for i in range(2)], record, bits)


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_long_vectors_of_elementwise_ops(
    op_row: Any, threads: int, record: Any, bits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What belongs to no replica is computed in pieces, on all threads."""
    monkeypatch.setattr(kernel_fusion, "_PIECE", PIECE)
    monkeypatch.setattr(kernel_fusion, "_UNCUT", 2 * PIECE)
    name, row = op_row
    op = ops.OPS[name]
    if not op.elementwise:
        return
    rng = np.random.default_rng(0)
    attrs, count = row.small[0].attrs, len(row.small[0].shapes)
    if count > 2:
        return
    for shapes in [((LONG,),)] if count == 1 else [((LONG,), (LONG,)), ((LONG,), ())]:
        inputs = row.inputs(type(row.small[0])(shapes, attrs), row.dtypes[0], rng)

        def function(*given: ops.Tensor) -> list[ops.Tensor]:
            once = op(*map(dying, given), **attrs)
            return [once, op(*map(dying, map(dying, given)), **attrs)]

        recorded = record(function, inputs, threads=threads)
        for seed in range(2):
            assert bits(recorded(*inputs)) == bits(eagerly(function, inputs)), seed
            inputs = [np.roll(each, 1) for each in inputs]
