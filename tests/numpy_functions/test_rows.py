"""Functions that are rows of a table: what a definition of their own would be."""

import inspect
import pickle
from typing import Any

import pytest

import mirrored as mr
from mirrored.numpy_functions.rows import Rows
from mirrored.numpy_functions.rules import RULES

ROWS = Rows(__name__, RULES)
twice = ROWS.unary("twice", "the elements times 2", lambda x: x + x, "2 -> 4.0")
larger = ROWS.binary("larger", "the larger elements", mr.maximum, "1, 2 -> 2")


@pytest.mark.parametrize(
    ("function", "parameters"),
    [(twice, ["x"]), (larger, ["x1", "x2"]), (mr.experimental.numpy.sqrt, ["x"])],
)
def test_a_row_is_a_function_of_its_module(function: Any, parameters: list[str]) -> None:
    assert list(inspect.signature(function).parameters) == parameters
    assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) missing"):
        function()


def test_a_row_converts_its_arguments_by_its_rule() -> None:
    assert twice(2).dtype == mr.float64
    assert larger(1, 2.5).dtype == mr.float64
    assert "Return the elements times 2; integers become float64." in (twice.__doc__ or "")


def test_rows_of_another_module_have_the_rules_of_this_one() -> None:
    (same,) = Rows(__name__, RULES._replace(floats=RULES.same)).unary_again(ROWS, "twice")
    assert same(2).dtype == mr.int64
