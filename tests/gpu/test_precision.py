"""TF32 is a choice: off, float32 products are those of float32; on, they are quicker and coarser.

It keeps 10 bits after the point, so that a factor is off by 2**-11 at most, and a product of two
by 1e-3 in relation to the sum of the terms' magnitudes.
"""

from typing import Any

import numpy as np
import pytest


@pytest.mark.cuda
def test_tensor_float_32(scenario: Any) -> None:
    found = scenario("products.tensor_float_32")
    errors = {
        name: float((np.abs(found[name] - found["exact"]) / found["magnitude"]).max())
        for name in ("off", "on", "off again")
    }
    assert errors["off"] < 2e-6
    assert errors["on"] < 1e-3
    assert errors["on"] > 4 * errors["off"]  # Else the switch does nothing.
    assert found["off"].tobytes() == found["off again"].tobytes()


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_of_narrow_products_are_rounded_once(dtype: str, scenario: Any) -> None:
    found = scenario("products.long_sums", dtype=dtype)
    np.testing.assert_array_equal(found["found"], found["expected"])
