"""Held here: towers in a session learn, and end at the weights of MirroredStrategy."""

import re

import pytest


@pytest.mark.parametrize("gpus", [4])
def test_towers_are_mirrored_strategy(run_example, gpus: int) -> None:
    done = run_example("towers_session.py", "--gpus", gpus)
    assert done.stdout.startswith(f"No GPU here: simulating {gpus} in host memory.\n")
    numbers = re.findall(r": (\d\S*)$", done.stdout, re.MULTILINE)
    before, after, apart = map(float, numbers)
    assert after < before / 2
    assert apart < 1e-12
