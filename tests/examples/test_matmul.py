"""Held here: the matrix product runs where it was asked to, and its sum is right."""

import re

import numpy as np
import pytest


@pytest.mark.parametrize(("kind", "says_simulated"), [("cpu", False), ("gpu", True)])
@pytest.mark.parametrize("size", [1, 200])
def test_product_on_a_device(run_example, kind: str, says_simulated: bool, size: int) -> None:
    done = run_example("matmul.py", kind, size)
    fields = dict(re.findall(r"^(\w+): +(.+)$", done.stdout, re.MULTILINE))
    assert fields["device"].endswith(f"/device:{kind.upper()}:0")
    assert fields["shape"].startswith(f"{size} x {size}, ")
    matrix = np.random.default_rng(0).uniform(size=(size, size)).astype(np.float32)
    expected = (matrix.astype(np.float64) @ matrix.T).sum()
    assert float(fields["sum"]) == pytest.approx(expected, rel=1e-5)
    for name in ("transfer", "compute"):
        assert re.fullmatch(r"\d+\.\d\d ms", fields[name])
    assert ("simulating" in done.stdout) == says_simulated


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tpu", 10], "invalid choice: 'tpu'"),
        (["cpu", 0], "argument SIZE: must be a whole number from 1 to 100000000. Received: 0"),
        (
            ["gpu", "large"],
            "argument SIZE: must be a whole number from 1 to 100000000. Received: large",
        ),
        (["cpu", 10**20], f"whole number from 1 to 100000000. Received: {10**20}"),
        (["gpu"], "the following arguments are required: SIZE"),
        (["cpu", 10**7], "SIZE 10000000 is too large here: "),
    ],
)
def test_bad_arguments(ended_example, arguments: list[object], message: str) -> None:
    printed, error = ended_example("matmul.py", *arguments)
    assert message in error.splitlines()[-1]
    assert printed == ""
