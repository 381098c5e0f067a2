"""Held here: the custom loop learns the same on any number of GPUs, also when it is resumed."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

EPOCH = re.compile(r"Epoch (\d+): loss ([\d.]+), accuracy ([\d.]+)%, held-out accuracy ([\d.]+)%")


def epochs(printed: str) -> list[list[float]]:
    """Return the numbers in the lines that are printed of the epochs."""
    return [[float(each) for each in found] for found in EPOCH.findall(printed)]


def check_equal(found: list[list[float]], expected: list[list[float]]) -> None:
    """Hold epochs to each other: the loss in its last digit, the accuracies but for one image."""
    np.testing.assert_allclose(
        np.subtract(found, expected) / [1.0, 0.001, 100 / 1437, 100 / 360], 0.0, atol=1.1
    )
    assert [line[0] for line in found] == [line[0] for line in expected]


@pytest.mark.slow
def test_any_number_of_gpus_learns_the_same_also_when_it_is_resumed(
    run_example, tmp_path: Path
) -> None:
    four = run_example("custom_loop.py", "--epochs", 3)
    assert "0 of 4 GPUs are here: simulating 4 in host memory.\n" in four.stdout
    assert "Replicas: 4\n" in four.stdout
    assert "Saved" not in four.stdout
    expected = epochs(four.stdout)
    assert [line[0] for line in expected] == [1, 2, 3]
    assert expected[-1][3] > 90.0

    folder = tmp_path / "checkpoints"
    kept = ["--checkpoints", folder]
    one = run_example(
        "custom_loop.py", "--epochs", 2, "--gpus", 1, *kept, MIRRORED_SIMULATED_GPUS="2"
    )
    assert "simulating" not in one.stdout
    assert "Replicas: 1\n" in one.stdout
    check_equal(epochs(one.stdout), expected[:2])
    assert one.stdout.endswith(f"Saved {folder / 'digits-1'}\n")

    three = run_example("custom_loop.py", "--epochs", 3, "--gpus", 3, *kept)
    assert f"Resumed after epoch 2, from {folder / 'digits-1'}\nReplicas: 3\n" in three.stdout
    check_equal(epochs(three.stdout), expected[2:])
    assert three.stdout.endswith(f"Saved {folder / 'digits-2'}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gpus", -1], "--gpus must be from 0 to 64. Received: -1"),
        (["--gpus", 10**5], "--gpus must be from 0 to 64. Received: 100000"),
        (["--epochs", 0], "--epochs must be from 1 to 10000. Received: 0"),
        (["--checkpoints", os.devnull], f"--checkpoints: [Errno 17] File exists: '{os.devnull}'"),
        (["--checkpoints", "/proc/self"], "--checkpoints: /proc/self is read-only"),
        (["--gpus", "many"], "argument --gpus: invalid int value: 'many'"),
    ],
)
def test_bad_arguments_end_before_training(ended_example, arguments, message: str) -> None:
    printed, error = ended_example("custom_loop.py", *arguments)
    assert message in error.splitlines()[-1]
    assert printed == ""


def test_missing_extra_is_one_error_with_the_install_command(ended_example, without_module) -> None:
    without_module("sklearn")
    _, error = ended_example("custom_loop.py", "--gpus", 0)
    assert len(error.splitlines()) == 1
    assert error.endswith(" -m pip install scikit-learn")
