"""Functions that are rows of a table: what a definition of their own would be."""

import inspect
import pickle
from typing import Any

import pytest
from case_table import cases

import mirrored as mr
from mirrored.keras_functions.numpy import elementwise
from mirrored.numpy_functions import ufuncs
from mirrored.numpy_functions.array_conversion import RULES
from mirrored.numpy_functions.rows import Rows

ROWS = Rows(__name__, RULES)
twice = ROWS.unary(lambda x: x + x, "the elements times 2", "2 -> 4.0")
larger = ROWS.binary(mr.maximum, "the larger elements", "1, 2 -> 2")
ROWS.name_all()


@cases(
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
    assert "Return the elements times 2; integers count as float64." in (twice.__doc__ or "")


def test_rows_of_another_module_have_the_rules_of_this_one() -> None:
    (same,) = Rows(__name__, RULES._replace(floats=RULES.same)).again(twice)
    assert same(2).dtype == mr.int64


@pytest.mark.parametrize("module", [ufuncs, elementwise])
def test_every_row_has_the_name_that_its_module_has_for_it(module: Any) -> None:
    own = {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    }
    assert len(own) > 60
    assert [name for name, function in own.items() if function.__name__ != name] == []
