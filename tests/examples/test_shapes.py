"""Held here: what the convolutional example learns and draws, on any number of GPUs."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import mirrored as mr

SHAPES = Path(__file__).resolve().parents[2] / "examples" / "shapes.py"
ACCURACY = re.compile(r"^Held-out accuracy: ([\d.]+)% of 2000 pictures$", re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "least"),
    [
        pytest.param(["--epochs", 3], 97.0, marks=pytest.mark.slow),
        pytest.param([], 99.0, marks=pytest.mark.long),
    ],
)
def test_it_tells_shapes_apart(
    run_example, arguments: list[object], least: float, tmp_path: Path
) -> None:
    printed = run_example("shapes.py", *arguments, "--plot", "wrong.png").stdout
    ((accuracy,),) = [ACCURACY.findall(printed)]
    assert float(accuracy) >= least
    assert "Pictures that were told wrong are in wrong.png." in printed
    assert (tmp_path / "wrong.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.long
def test_number_of_gpus_does_not_change_what_is_learned(run_example) -> None:
    found = [run_example("shapes.py", "--epochs", 1, "--gpus", gpus).stdout for gpus in (1, 3)]
    one, three = (float(ACCURACY.findall(printed)[0]) for printed in found)
    assert one > 50
    # Rounding, which grows over an epoch, is all that may differ.
    assert abs(one - three) <= 0.5


def test_pictures_follow_from_their_numbers() -> None:
    draw = runpy.run_path(str(SHAPES))["draw_pictures"]
    pictures, kinds = draw(60, seed=3)
    assert pictures.shape == (60, 24, 24, 1)
    assert set(kinds) == set(range(6))
    for first, second in zip(draw(7, seed=3), (pictures[:7], kinds[:7]), strict=True):
        np.testing.assert_array_equal(first, second)
    # Shapes are inside: what is at the border is noise.
    assert abs(pictures[:, :, [0, -1]]).max() < 0.5 < np.median(pictures.max(axis=(1, 2)))


def test_its_step_makes_on_replicas_what_it_makes_on_one_device() -> None:
    example = runpy.run_path(str(SHAPES))
    model, pictures = example["build_model"](1), example["draw_pictures"](20, seed=0)
    mr.debugging.compare_replicas(model, *pictures, replicas=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", 0], "--epochs must be 1 or more. Received: 0"),
        (["--gpus", 9], "argument --gpus: invalid choice: 9"),
        (["--plot", "absent/wrong.png"], "there is no folder absent. Make it first."),
    ],
)
def test_bad_arguments_end_before_training(ended_example, arguments, message: str) -> None:
    printed, error = ended_example("shapes.py", *arguments)
    assert message in error.splitlines()[-1]
    assert printed == ""


def test_missing_matplotlib_is_one_error_with_the_install_command(
    ended_example, without_module
) -> None:
    without_module("matplotlib")
    printed, error = ended_example("shapes.py", "--plot", "wrong.png")
    assert len(error.splitlines()) == 1
    assert error.endswith(" -m pip install matplotlib")
    assert printed == ""
