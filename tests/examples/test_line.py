"""Held here: the line example trains on two virtual GPUs and finds its line."""

import re


def test_two_virtual_gpus_find_the_line(run_example) -> None:
    done = run_example("line.py")
    assert "No GPU here: simulating one in host memory." in done.stdout
    assert re.search(
        r"^/physical_device:GPU:0 is split into:\n  /device:GPU:0\n  /device:GPU:1\n",
        done.stdout,
        re.MULTILINE,
    )
    found = re.search(r"^y = ([\d.]+) x \+ ([\d.]+)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    slope, intercept = map(float, found.groups())
    assert abs(slope - 3.0) < 0.01
    assert abs(intercept - 2.0) < 0.01


def test_only_the_first_of_several_gpus_is_split(run_example) -> None:
    done = run_example("line.py", MIRRORED_SIMULATED_GPUS="3")
    assert "simulating" not in done.stdout
    assert done.stdout.count("  /device:GPU:") == 2
