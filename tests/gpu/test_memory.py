"""Limits hold, errors name the device, and memory does not grow with the steps."""

from typing import Any

import numpy as np
import pytest


def test_a_tensor_that_does_not_fit(scenario: Any) -> None:
    found = scenario("memory.refused_tensor")
    assert "GPU:1" in str(found["error"])
    assert found["before"] == found["after"]
    assert (found["total"], found["other"]) == (1024.0, 1024.0)


def test_a_step_that_does_not_fit(scenario: Any) -> None:
    found = scenario("memory.refused_step")
    assert "GPU:1" in str(found["error"])
    assert found["unchanged"]
    assert np.isfinite(found["losses"]).all()
    assert found["losses"][-1] < found["losses"][0]


def test_no_growth_over_10_000_steps(scenario: Any, stand_in: str) -> None:
    if stand_in == "emulated":
        pytest.skip("takes minutes where CUDA is emulated")
    found = scenario("memory.many_steps", steps=10_000)
    assert found["steps"] >= 10_000
    # The first fit makes what later ones use again.
    for name in ("in use", "peaks"):
        values = found[name][1:].tolist()
        assert len(set(values)) == 1, (name, values)
    # 9,000 steps that kept 2 KB each would take more; a kernel that is loaded late takes less.
    assert found["free"][-1] >= found["free"][1] - 16 * 2**20
