"""Every layer against Keras: outputs, gradients, weights and their names."""

import json
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from tests.support import layer_values
from tests.support.layer_values import CASES, NAMES, Case

KERAS: dict[str, Any] = json.loads(layer_values.FILE.read_text())


def check(found: Any, expected: Any, where: str) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name, each in expected.items():
            check(found[name], each, f"{where}, {name}")
    elif where.endswith("names"):
        assert found == expected, where
    elif where.endswith(("gradients", "weights")):
        assert len(found) == len(expected), where
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=where)
    else:
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5, err_msg=where)


def test_the_table_has_every_case() -> None:
    assert list(KERAS) == NAMES


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_calls(case: Case, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    check(layer_values.outcome(mr.keras, mr, case), KERAS[name], name)
