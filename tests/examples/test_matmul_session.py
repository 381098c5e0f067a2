"""Held here: the session says where each operation of the lesson runs, and it is computed there."""

import re

import pytest

FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_the_lesson(run_example, kind: str) -> None:
    done = run_example("matmul_session.py", kind, 300)
    lines = [each for each in done.stderr.splitlines() if ": (" in each]
    names = ("random_uniform/shape: (Const)", "random_uniform/RandomUniform: (RandomUniform)")
    names += ("transpose/perm: (Const)",)
    names += ("transpose: (Transpose)", "MatMul: (MatMul)", "Const: (Const)", "Sum: (Sum)")
    assert lines == [f"{each}: {FULL}{kind.upper()}:0" for each in names]
    mapping = f"{FULL}GPU:0 -> device: 0, simulated" if kind == "gpu" else "no known devices."
    assert mapping in done.stderr
    found = re.search(
        r"^shape: \[300, 300\], device: (\w+), sum: (\S+)$", done.stdout, re.MULTILINE
    )
    assert found is not None
    assert found[1] == kind
    # The product of 300 rows of uniform numbers: a quarter of 300 cubed, and a little more.
    assert float(found[2]) == pytest.approx(300**3 / 4, rel=0.05)
