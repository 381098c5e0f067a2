"""Programs in our own words for TensorFlow's guides: they give TensorFlow 2.21's numbers."""

import json
from typing import Any

import guides
import numpy as np
import pytest

import mirrored as mr

EXPECTED = json.loads(guides.FILE.read_text("utf-8"))
TOLERANCES = {"float16": 1e-3, "float32": 2e-5, "float64": 1e-12}


def check(value: Any, expected: Any, where: str) -> None:
    """Compare what is told of a value with what TensorFlow's program told."""
    if isinstance(expected, dict) and expected.keys() == {"dtype", "shape", "values"}:
        assert (value["dtype"], value["shape"]) == (expected["dtype"], expected["shape"]), where
        tolerance = TOLERANCES.get(expected["dtype"], 0.0)
        numbers, theirs = (np.array(each["values"], np.float64) for each in (value, expected))
        np.testing.assert_allclose(numbers, theirs, rtol=tolerance, atol=tolerance, err_msg=where)
    elif isinstance(expected, dict) and expected.keys() == {"error"}:
        assert expected["error"][0] in value["error"], where  # Ours may be others' subclasses.
    elif isinstance(expected, dict):
        assert value.keys() == expected.keys(), where
        for key in expected:
            check(value[key], expected[key], f"{where}, {key}")
    elif isinstance(expected, list):
        assert len(value) == len(expected), where
        for i, (mine, its) in enumerate(zip(value, expected, strict=True)):
            check(mine, its, f"{where}, {i}")
    else:
        assert value == expected, where


def test_every_part_has_its_numbers() -> None:
    assert guides.parts().keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_guides(name: str) -> None:
    check(guides.told(guides.parts()[name](mr)), EXPECTED[name], name)
