"""Held here: what the example of two networks makes, on any number of GPUs, and how it fails."""

import re
import runpy
from pathlib import Path

import pytest

import mirrored as mr

GAN = Path(__file__).resolve().parents[2] / "examples" / "gan.py"
LOSSES = re.compile(r"discriminator_loss: ([\d.]+) - generator_loss: ([\d.]+)$", re.MULTILINE)
MADE = re.compile(r"^Made points in a cluster: (\d+)% of 1000\nClusters found: (\d) of 8$", re.M)


@pytest.mark.slow
def test_it_makes_points_like_the_real_ones(run_example, tmp_path: Path) -> None:
    printed = run_example("gan.py", "--plot", "points.png").stdout
    ((near, found),) = MADE.findall(printed)
    assert int(near) > 75
    assert found == "8"
    assert "Real and made points are in points.png." in printed
    assert (tmp_path / "points.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_an_epoch(run_example) -> None:
    printed = run_example("gan.py", "--epochs", 1).stdout
    assert len(LOSSES.findall(printed)) == len(MADE.findall(printed)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [1, 3])
def test_number_of_gpus_does_not_change_what_is_learned(run_example, gpus: int) -> None:
    options = ["--epochs", 1]
    found = [run_example("gan.py", *options, *more).stdout for more in ([], ["--gpus", gpus])]
    assert LOSSES.findall(found[0]) == LOSSES.findall(found[1]) != []


def test_its_step_makes_on_replicas_what_it_makes_on_one_device() -> None:
    example = runpy.run_path(str(GAN))
    points = example["draw_points"](20)
    compared = mr.debugging.compare_replicas(example["build_model"](), points, replicas=3).compared
    assert "'generator_loss' in the logs" in compared


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", 0], "--epochs must be 1 or more. Received: 0"),
        (["--gpus", 9], "argument --gpus: invalid choice: 9"),
        (["--plot", "absent/points.png"], "there is no folder absent. Make it first."),
    ],
)
def test_bad_arguments_end_before_training(ended_example, arguments, message: str) -> None:
    printed, error = ended_example("gan.py", *arguments)
    assert message in error.splitlines()[-1]
    assert printed == ""


def test_missing_matplotlib_is_one_error_with_the_install_command(
    ended_example, without_module, monkeypatch
) -> None:
    without_module("matplotlib")
    printed, error = ended_example("gan.py", "--plot", "points.png")
    assert len(error.splitlines()) == 1
    assert error.endswith(" -m pip install matplotlib")
    assert printed == ""
