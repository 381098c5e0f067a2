"""Changes of parts of variables; the numbers are TensorFlow's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

START = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
ROWS, PLACES = [[10.0, 20.0], [2.0, 2.0], [3.0, 3.0]], [0, 2, 2]


def slices(values: Any, indices: Any) -> mr.IndexedSlices:
    return mr.IndexedSlices(values, indices)


@cases(
    ("method", "expected"),
    [
        ("scatter_add", [[11, 22], [3, 4], [10, 11]]),
        ("scatter_sub", [[-9, -18], [3, 4], [0, 1]]),
        ("scatter_update", [[10, 20], [3, 4], [3, 3]]),
        ("scatter_mul", [[10, 40], [3, 4], [30, 36]]),
        ("scatter_div", [[0.1, 0.1], [3, 4], [0.8333333, 1]]),
        ("scatter_max", [[10, 20], [3, 4], [5, 6]]),
        ("scatter_min", [[1, 2], [3, 4], [2, 2]]),
    ],
)
def test_rows(method: str, expected: Any) -> None:
    """Eagerly and in a recorded function, which changes the variable where it is."""
    eager, recorded = mr.Variable(START), mr.Variable(START)
    assert getattr(eager, method)(slices(ROWS, PLACES)) is eager

    @mr.function
    def change(values: ops.Tensor, indices: ops.Tensor) -> ops.Tensor:
        getattr(recorded, method)(slices(values, indices))
        return recorded.read_value()

    after = change(ops.constant(ROWS), ops.constant(PLACES))
    for found in (eager.numpy(), after.numpy(), recorded.numpy()):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@cases(
    ("start", "method", "values", "expected"),
    [
        ([7, -7, 8], "scatter_div", [2, 2, -3], [3, -3, -2]),
        (np.uint8([7, 1, 2]), "scatter_div", np.uint8([2, 2, 2]), [3, 0, 1]),
        (np.uint8([7, 1, 2]), "scatter_sub", np.uint8([8, 1, 1]), [255, 0, 1]),
        ([True, False, True], "scatter_update", [False, False, True], [False, False, True]),
        ([1.0, np.nan, 2.0], "scatter_max", [np.nan, 1.0, np.inf], [1.0, np.nan, np.inf]),
    ],
)
def test_other_dtypes(start: Any, method: str, values: Any, expected: Any) -> None:
    variable = mr.Variable(start)
    getattr(variable, method)(slices(ops.constant(values), [0, 1, 2]))
    np.testing.assert_array_equal(variable.numpy(), expected)


@cases(
    ("method", "expected"),
    [
        ("scatter_nd_add", [[1, 12], [3, 4], [8, 6]]),
        ("scatter_nd_sub", [[1, -8], [3, 4], [2, 6]]),
        ("scatter_nd_update", [[1, 10], [3, 4], [2, 6]]),
        ("scatter_nd_max", [[1, 10], [3, 4], [5, 6]]),
        ("scatter_nd_min", [[1, 2], [3, 4], [1, 6]]),
    ],
)
def test_elements(method: str, expected: Any) -> None:
    variable = mr.Variable(START)
    getattr(variable, method)([[0, 1], [2, 0], [2, 0]], [10.0, 1.0, 2.0])
    np.testing.assert_array_equal(variable.numpy(), expected)


def test_reads_of_parts() -> None:
    variable = mr.Variable(START)
    with mr.GradientTape() as tape:
        total = ops.reduce_sum(variable.sparse_read([2, 2])) + variable.gather_nd([0, 1])
    np.testing.assert_array_equal(tape.gradient(total, variable).numpy(), [[0, 1], [0, 0], [2, 2]])


PARTS: dict[str, tuple[Any, Any]] = {
    "row": (1, [7.0, 8.0]),
    "column of one number": ((slice(None), 1), 9),
    "backwards": (slice(None, None, -2), [[1.0], [2.0]]),
    "element": ((2, np.int64(0)), 5.0),
    "with a new axis": ((Ellipsis, None, 0), [[1.0], [2.0], [3.0]]),
    "nothing": (slice(5, None), np.zeros((0, 2), np.float32)),
    "all": (Ellipsis, 4.0),
}


@cases("name", PARTS)
def test_parts_are_assigned_to(name: str) -> None:
    index, value = PARTS[name]
    eager, recorded = mr.Variable(START), mr.Variable(START)
    part = eager[index]
    before = part.numpy()
    assert part.assign(value) is eager
    np.testing.assert_array_equal(part.numpy(), before)
    mr.function(lambda: recorded[index].assign(value, read_value=False))()
    expected = np.array(START, np.float32)
    expected[index] = value
    for found in (eager, recorded):
        np.testing.assert_array_equal(found.numpy(), expected)


def test_tensors_and_masked_elements_are_not() -> None:
    variable = mr.Variable(START)
    for each in (variable[variable > 2.0], variable.read_value()[0], ops.constant(START)):
        assert not hasattr(each, "assign")
    assert not hasattr(variable[0], "assign_add")


@cases(
    ("change", "error", "text"),
    [
        (lambda v: v.scatter_add(slices([[1.0, 1.0]], [3])), InvalidArgumentError, "= 3 is not in"),
        (lambda v: v.scatter_add(slices([[1.0, 1.0]], [-1])), InvalidArgumentError, "[0, 3)"),
        (lambda v: v.scatter_max(slices([1.0], [0])), InvalidArgumentError, "Must have updates"),
        (lambda v: v.scatter_add(slices([[1, 1]], [0])), ValueError, "requested dtype float32"),
        (lambda v: v.scatter_add([1.0]), TypeError, "must be a `mr.IndexedSlices`"),
        (lambda v: v.scatter_div(slices([[0.0, 1.0]], [0])), InvalidArgumentError, "contain 0"),
        (lambda v: v.scatter_nd_add([[3]], [[1.0, 1.0]]), InvalidArgumentError, "does not index"),
        (lambda v: v[0].assign([1.0, 2.0, 3.0]), InvalidArgumentError, "[3] into final shape [2]"),
        (lambda v: v[0].assign(ops.constant(1)), ValueError, "requested dtype float32"),
        (lambda v: v[5], InvalidArgumentError, "slice index 5 of dimension 0 out of bounds"),
    ],
)
def test_what_is_refused_changes_nothing(
    change: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    variable = mr.Variable(START)
    with pytest.raises(error) as caught:
        change(variable)
    assert text in str(caught.value)
    np.testing.assert_array_equal(variable.numpy(), START)
