"""Sum and mean, however they are named."""

from typing import Any

import pytest

from mirrored.distribute import ReduceOp


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ReduceOp.SUM, ReduceOp.SUM),
        (ReduceOp.MEAN, ReduceOp.MEAN),
        ("SUM", ReduceOp.SUM),
        ("sum", ReduceOp.SUM),
        ("Mean", ReduceOp.MEAN),
    ],
)
def test_of(given: Any, expected: ReduceOp) -> None:
    assert ReduceOp.of(given) is expected


@pytest.mark.parametrize("given", ["PROD", "", None, 0, ["SUM"]])
def test_no_such_op(given: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid ReduceOp") as error:
        ReduceOp.of(given)
    assert str(error.value).startswith(f"{given!r} ")
    assert "['SUM', 'MEAN']" in str(error.value)
