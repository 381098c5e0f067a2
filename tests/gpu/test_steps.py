"""Recorded steps put results where they are wanted, and keep weights in the dtype of layers.

Their kernels load and store several neighbouring elements at once, also where arrays begin in the
midst of what such a load takes. The host's values are exact where numbers are small and whole.
"""

from typing import Any

import numpy as np
import pytest


def test_what_each_call_returns_is_its_own(scenario: Any) -> None:
    found = scenario("steps.results_of_calls")
    numbers = np.arange(len(found["sums"]))
    np.testing.assert_array_equal(found["sums"], 15.0 * numbers)
    np.testing.assert_array_equal(found["doubled"], numbers[:, None] * [0, 2, 4])


def test_weights_that_are_assigned_between_steps(scenario: Any) -> None:
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs ml_dtypes")
    expected = scenario("steps.assigned_between_steps", gpus=0)
    for gpus in (1, 2):
        found = scenario("steps.assigned_between_steps", gpus=gpus)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=0.05, atol=0.02, err_msg=name)


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_neighbouring_elements(offset: int, scenario: Any) -> None:
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs ml_dtypes")
    found = scenario("steps.vectors", offset=offset)
    part = found["numbers"][offset:]
    table = part[:300_000].reshape(500, 600)
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "uint8"):
        np.testing.assert_array_equal(found[f"{dtype} 0"], part * part + part)
        np.testing.assert_array_equal(found[f"{dtype} 1"], (table + table[0]) * table[:, :1])


@pytest.mark.cuda
def test_sums_over_devices_go_before_other_work(scenario: Any) -> None:
    found = scenario("steps.priorities")
    assert found["compute"] == 0
    assert found["sums"] < 0


@pytest.mark.cuda
def test_the_host_stays_near_the_card(scenario: Any) -> None:
    """Else it would run on until the driver keeps it, where it hears no Ctrl-C."""
    found = scenario("steps.ahead")
    assert not found["done"][0]
    assert found["done"][-1]
    assert found["value"] == 53


@pytest.mark.cuda
def test_a_number_of_the_host_is_read_in_its_turn(scenario: Any) -> None:
    """Else an abort could not keep steps that were asked for from writing weights."""
    found = scenario("steps.gate")
    assert found["busy"].tolist() == [True, True]
    assert found["read"].tolist() == [0.0, 1.0]
