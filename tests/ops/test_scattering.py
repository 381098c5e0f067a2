"""Rows brought together: in their order, whatever their width, and in place where a program can."""

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.ops.op import OPS


@pytest.mark.behaviour("rows-in-order")
@cases("width", [1, 5, 600])
@cases("kind", ["Sum", "Prod"])
def test_bits_are_those_of_rows_one_by_one(kind: str, width: int) -> None:
    """Of more rows than are taken at a time."""
    rng = np.random.default_rng(0)
    count = 20_000 if width == 1 else 4_000 if width == 5 else 50
    rows = rng.uniform(0.5, 1.5, (count, width)).astype(np.float32)
    ids = rng.integers(-1, 7, count)
    expected = np.full((7, width), kind == "Prod", np.float32)
    combine = np.multiply if kind == "Prod" else np.add
    for number, row in zip(ids.tolist(), rows, strict=True):
        if number >= 0:
            combine(expected[number], row, out=expected[number])
    found = OPS[f"UnsortedSegment{kind}"](rows, ops.constant(ids), num_segments=7)
    assert found.numpy().tobytes() == expected.tobytes()


def test_a_recorded_function_changes_rows_of_a_variable_where_they_are() -> None:
    table = mr.Variable(np.zeros((50_000, 8), np.float32))

    @mr.function
    def add(places: ops.Tensor) -> None:
        table.assign(OPS["TensorScatterAdd"](table, places, ops.ones((2, 8))))

    for _ in range(3):
        add(ops.constant([7, 9]))
    assert table.numpy().sum() == 3 * 16
    np.testing.assert_array_equal(table.numpy()[7], [3.0] * 8)
