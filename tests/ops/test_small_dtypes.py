"""float16 and the integers of 8, 16 and unsigned bits: what TensorFlow 2.21 gives, or a refusal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError

LARGEST = {"int8": 127, "int16": 2**15 - 1, "uint16": 2**16 - 1}
LARGEST |= {"uint32": 2**32 - 1, "uint64": 2**64 - 1, "float16": 2048}
DTYPES = sorted(LARGEST)
Function = Callable[[Any, Any], Any]


def least(dtype: Any) -> Any:
    return np.asarray(-np.inf if dtype == np.float16 else np.iinfo(dtype).min, dtype)


def pair(dtype: str) -> tuple[mr.Tensor, mr.Tensor]:
    """Return two tensors, one of them with the largest number."""
    return mr.constant([5, 3, 0, LARGEST[dtype]], dtype), mr.constant([2, 7, 1, 1], dtype)


def once(reduction: Any) -> Function:
    """Return a reduction of NumPy's that wraps as the dtype does; halves are rounded at the end."""

    def reference(a: Any, b: Any) -> Any:
        kind = np.float32 if a.dtype == np.float16 else a.dtype
        return np.asarray(reduction(a, dtype=kind)).astype(a.dtype)

    return reference


def mean(a: Any, b: Any) -> Any:
    """Return the mean; that of integers, without the fraction, is of their sum in 64 bits."""
    total = sum(a.tolist())
    return np.asarray(total / 4 if a.dtype.kind == "f" else total % 2**64 // 4).astype(a.dtype)


# From both tensors to one of their dtype. TensorFlow gives the numbers of NumPy for all of these.
SAME: dict[str, tuple[Function, Function]] = {
    "+": (lambda a, b: a + b, np.add),
    "-": (lambda a, b: a - b, np.subtract),
    "*": (lambda a, b: a * b, np.multiply),
    "+ 1": (lambda a, b: a + 1, lambda a, b: a + a.dtype.type(1)),
    "square": (lambda a, b: mr.square(a), np.square),
    "add_n": (lambda a, b: mr.add_n([a, b]), np.add),
    "sum": (lambda a, b: mr.reduce_sum(a), once(np.sum)),
    "mean": (lambda a, b: mr.reduce_mean(a), mean),
    "prod": (lambda a, b: mr.reduce_prod(a + b), lambda a, b: once(np.prod)(a + b, b)),
    "max": (lambda a, b: mr.reduce_max(a), lambda a, b: a.max()),
    "min": (lambda a, b: mr.reduce_min(mr.stack([a, b]), 0), np.minimum),
    "max of nothing": (lambda a, b: mr.reduce_max(a[:0]), lambda a, b: least(a.dtype)),
    "cumsum": (lambda a, b: mr.cumsum(a), once(np.cumsum)),
    "cumprod": (lambda a, b: mr.math.cumprod(b), once(lambda b, dtype: np.cumprod([2, 7, 1, 1]))),
    "sort": (lambda a, b: mr.sort(a), lambda a, b: np.sort(a)),
    "segments": (
        lambda a, b: mr.math.unsorted_segment_sum(a, [0, 1, 1, 0], 2),
        lambda a, b: np.array([a[0] + a[3], 3], a.dtype),
    ),
    "scatter": (
        lambda a, b: mr.tensor_scatter_nd_max(b, [[0], [1]], a[2:]),
        lambda a, b: np.array([2, a[3], 1, 1], a.dtype),
    ),
    "//": (lambda a, b: a // b, np.floor_divide),
    "%": (lambda a, b: a % b, np.remainder),
    "relu": (lambda a, b: mr.nn.relu(a), lambda a, b: a),
    "maximum": (mr.maximum, np.maximum),
    "minimum": (mr.minimum, np.minimum),
    "clip": (lambda a, b: mr.clip_by_value(a, 1, 4), lambda a, b: a.clip(1, 4)),
    "stack": (lambda a, b: mr.stack([a, b]), lambda a, b: np.stack([a, b])),
    "concat": (lambda a, b: mr.concat([a, b], 0), lambda a, b: np.concatenate([a, b])),
    "slice": (lambda a, b: a[::-2], lambda a, b: a[::-2]),
    "transpose": (
        lambda a, b: mr.transpose(mr.reshape(a, [2, 2])),
        lambda a, b: a.reshape(2, 2).T,
    ),
    "where": (lambda a, b: mr.where(a == b, a, b), lambda a, b: np.where(a == b, a, b)),
    "gather": (lambda a, b: mr.gather(a, [3, 0]), lambda a, b: a[[3, 0]]),
    "pad": (lambda a, b: mr.pad(a, [[1, 2]]), lambda a, b: np.pad(a, (1, 2))),
    "tile": (lambda a, b: mr.tile(a, [2]), lambda a, b: np.tile(a, 2)),
    "zeros_like": (lambda a, b: mr.zeros_like(a), lambda a, b: a * 0),
    "ones": (lambda a, b: mr.ones([2], a.dtype), lambda a, b: np.ones(2, a.dtype)),
    "fill": (lambda a, b: mr.fill([2], a[3]), lambda a, b: np.full(2, a[3])),
    "variable": (
        lambda a, b: mr.Variable(a).assign_add(b).assign_sub([1, 1, 1, 1]).value(),
        lambda a, b: a + b - b.dtype.type(1),
    ),
}
EAGER = {"fill", "variable"}  # A function has no variables of a call, nor values to fill with.
OTHER: dict[str, tuple[Function, Function]] = {
    "==": (lambda a, b: a == b, np.equal),
    "!=": (lambda a, b: a != b, np.not_equal),
    "<": (lambda a, b: a < b, np.less),
    ">=": (lambda a, b: a >= b, np.greater_equal),
    "argmax": (lambda a, b: mr.argmax(a), lambda a, b: np.argmax(a)),
    "argsort": (
        lambda a, b: mr.argsort(a, direction="DESCENDING"),
        lambda a, b: np.array([3, 0, 1, 2], np.int32),
    ),
    "searchsorted": (
        lambda a, b: mr.searchsorted(mr.sort(a), b),
        lambda a, b: np.array([1, 3, 1, 1], np.int32),
    ),
    "to float64": (lambda a, b: mr.cast(a, "float64"), lambda a, b: a.astype("float64")),
    "to int32": (lambda a, b: mr.cast(a, "int32"), lambda a, b: a.astype("int32")),
    "to bool": (lambda a, b: mr.cast(a, "bool"), lambda a, b: a != 0),
}


@pytest.mark.behaviour("small-dtypes")
@cases("dtype", DTYPES)
def test_values_eager_and_recorded(dtype: str) -> None:
    functions = {**SAME, **OTHER}
    a, b = pair(dtype)

    def results(a: mr.Tensor, b: mr.Tensor) -> list[mr.Tensor]:
        return [function(a, b) for name, (function, _) in functions.items() if name not in EAGER]

    recorded = iter(mr.function(results)(a, b))
    with np.errstate(over="ignore"):
        for name, (function, reference) in functions.items():
            expected = reference(a.numpy(), b.numpy())
            got = [function(a, b), *([] if name in EAGER else [next(recorded)])]
            for each in got:
                assert each.dtype == each.numpy().dtype == expected.dtype, name
                np.testing.assert_array_equal(each.numpy(), expected, name)


@cases("dtype", DTYPES)
def test_quotients_have_the_dtype_of_tensorflow(dtype: str) -> None:
    wide = {"float16": "float16", "uint32": "float64", "uint64": "float64"}.get(dtype, "float32")
    a, b = pair(dtype)
    quotient = (a / b).numpy()
    assert quotient.dtype == np.dtype(wide)
    np.testing.assert_array_equal(quotient, a.numpy().astype(wide) / b.numpy().astype(wide))


def test_halves_are_computed_in_single_precision_and_rounded() -> None:
    """As in TensorFlow 2.21, of whose numbers these are some."""
    x = mr.constant([0.1, 65504.0, 1e-7, -2.5], mr.float16)
    assert x.numpy().tolist() == [0.0999755859375, 65504.0, 1.1920928955078125e-07, -2.5]
    assert (x + 0.1).numpy().tolist() == [0.199951171875, 65504.0, 0.0999755859375, -2.400390625]
    assert (x * 3).numpy().tolist() == [0.2998046875, np.inf, 3.5762786865234375e-07, -7.5]
    assert mr.half == mr.float16 == mr.dtypes.half


def test_gradients_flow_through_halves() -> None:
    v = mr.Variable(mr.constant([1.0, 2.0], mr.float16))
    with mr.GradientTape() as tape:
        loss = mr.reduce_sum(mr.cast(v * v, mr.float32))
    slope = tape.gradient(loss, v)
    assert slope.dtype == mr.float16
    assert slope.numpy().tolist() == [2.0, 4.0]


def test_halves_that_tensorflow_gives() -> None:
    x = mr.Variable([[0.5, -2.0], [3.0, 60000.0]], dtype=mr.float16)
    with mr.GradientTape() as tape:
        loss = mr.reduce_mean(mr.tanh(x @ [[0.1], [0.2]]) * [[1.0], [2.0]])
    assert float(loss) == 0.83203125
    slope = tape.gradient(loss, x).numpy()
    assert slope.dtype == mr.float16
    theirs = [[0.0443115234375, 0.088623046875], [0, 0]]  # Which is rounded in between.
    np.testing.assert_allclose(slope.astype(np.float64), theirs, rtol=2.0**-10)
    numbers = mr.range(mr.constant(0.0, mr.float16), 1.0, 0.1)
    assert numbers.dtype == mr.float32
    assert mr.range(0.0, 1.0, 0.25, dtype=mr.float16).numpy().tolist() == [0.0, 0.25, 0.5, 0.75]


@cases("dtype", ["float16", "int8", "int16"])
def test_numbers_below_zero(dtype: str) -> None:
    a = mr.constant([5, -3, 0, -LARGEST[dtype]], dtype)
    for function, reference in ((mr.negative, np.negative), (mr.abs, np.abs), (mr.sign, np.sign)):
        got = function(a).numpy()
        assert got.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(got, reference(a.numpy()))
    if dtype != "float16":
        assert (-mr.cast([2**20, -128, -(2**15)], dtype)).dtype == np.dtype(dtype)


REFUSED: dict[str, tuple[Function, type[Exception]]] = {
    "rint": (lambda a, b: mr.math.rint(a), InvalidArgumentError),
    "svd": (lambda a, b: mr.linalg.svd(a[None]), InvalidArgumentError),
    "matmul": (lambda a, b: mr.matmul(a[None], b[:, None]), InvalidArgumentError),
    "sqrt": (lambda a, b: mr.sqrt(a), InvalidArgumentError),
    "logical_not": (lambda a, b: mr.logical_not(a), InvalidArgumentError),
    "beside int32": (lambda a, b: a + mr.constant([1, 2, 3, 4]), InvalidArgumentError),
}


@pytest.mark.behaviour("small-dtypes")
@cases("dtype", DTYPES)
@cases("name", REFUSED)
def test_refused(name: str, dtype: str) -> None:
    function, error = REFUSED[name]
    if dtype == "float16" and name in ("matmul", "sqrt"):
        assert function(*pair(dtype)).dtype == mr.float16
        return
    with pytest.raises(error):
        function(*pair(dtype))


@cases(
    ("call", "error", "text"),
    [
        (lambda: mr.constant([2**64 - 1]), ValueError, "Pass `dtype=mr.uint64`"),
        (lambda: mr.constant(300, mr.int8), TypeError, "Integers of dtype int8 cannot hold"),
        (lambda: mr.constant([-1, 2**64 - 1], mr.uint64), TypeError, "Cannot convert"),
        (lambda: mr.range(3, dtype=mr.uint16), InvalidArgumentError, "cast it"),
    ],
)
def test_numbers_that_do_not_fit(
    call: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()


def test_unsigned_integers_are_drawn_as_tensorflow_does() -> None:
    words = mr.random.stateless_uniform([3], [1, 2], None, None, mr.uint32)
    assert words.numpy().tolist() == [1105988140, 1738052849, 3959391294]
    words = mr.random.Generator.from_seed(1).uniform_full_int([2])
    assert words.numpy().tolist() == [6679402142117448868, 684265014234019051]
    with pytest.raises(ValueError, match="when argument `minval` is not None"):
        mr.random.stateless_uniform([3], [1, 2], 0, 5, mr.uint32)


@pytest.mark.behaviour("small-dtypes")
@pytest.mark.parametrize("dtype", DTYPES)
def test_devices_datasets_and_files(simulate: Any, tmp_path: Path, dtype: str) -> None:
    simulate(2)
    a, _ = pair(dtype)
    values = a.numpy()
    with mr.device("GPU:1"):
        moved = mr.identity(a)
        variable = mr.Variable(moved)
    assert moved.device.endswith("GPU:1")
    batches = list(mr.data.Dataset.from_tensor_slices(values).batch(3))
    assert [each.dtype for each in batches] == [values.dtype] * 2
    np.testing.assert_array_equal(mr.concat(batches, 0), values)
    saved = mr.train.Checkpoint(v=variable).save(str(tmp_path / "saved"))
    variable.assign(mr.zeros_like(a))
    mr.train.Checkpoint(v=variable).restore(saved).assert_consumed()
    np.testing.assert_array_equal(variable.numpy(), values)
