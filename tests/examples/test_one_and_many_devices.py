"""Held here: one device and four differ by a few lines, and end with the same weights."""

import difflib
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_scripts_differ_by_a_few_lines() -> None:
    one, many = ((EXAMPLES / f"{name}.py").read_text() for name in ("one_device", "many_devices"))
    marked = list(difflib.ndiff(one.splitlines(), many.splitlines()))
    removed = [line[2:] for line in marked if line.startswith("- ") and line[2:]]
    added = [line[2:] for line in marked if line.startswith("+ ") and line[2:]]
    assert removed[1:] == ["model = build_model()"]
    assert len(added) == 4
    assert any("MirroredStrategy" in line for line in added)


def test_the_scripts_end_with_the_same_weights(run_example) -> None:
    results = []
    for name in ("one_device.py", "many_devices.py"):
        done = run_example(name)
        found = re.fullmatch(
            r"loss ([\d.]+), accuracy ([\d.]+), weights' norm ([\d.]+)\n", done.stdout
        )
        assert found is not None, done.stdout
        results.append([float(number) for number in found.groups()])
        assert ("GPU:3" in done.stderr) == (name == "many_devices.py")
    one, many = results
    assert many == pytest.approx(one, rel=1e-3)
    assert one[1] > 0.9
