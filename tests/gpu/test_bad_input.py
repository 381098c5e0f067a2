"""What cannot be learnt from stops the update with an error, and training can go on."""

from typing import Any

import numpy as np
import pytest


@pytest.mark.parametrize("kind", ["label", "not a number", "infinite", "gradient"])
def test_the_weights_are_those_of_the_step_before(kind: str, scenario: Any) -> None:
    found = scenario("training.refused", kind=kind)
    # `fit` reads labels of arrays on the host; those that only the card sees give a loss of NaN.
    errors = ["NonFiniteGradientError" if kind == "gradient" else "NonFiniteLossError"]
    errors += ["ValueError"] if kind == "label" else []
    assert str(found["error"]) in errors, found["text"]
    assert found["unchanged"]
    assert np.isfinite(found["loss afterwards"])
