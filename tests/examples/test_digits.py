"""Held here: what the digits example prints and draws, and what it says when it cannot run."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PNG = b"\x89PNG\r\n\x1a\n"


def accuracy(done: "subprocess.CompletedProcess[str]") -> float:
    found = re.search(r"^Held-out accuracy: ([\d.]+)% of 360 images$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    return float(found[1])


@pytest.mark.slow
def test_four_simulated_gpus_learn_the_digits_with_a_line_an_epoch(
    run_example, tmp_path: Path
) -> None:
    done = run_example("digits.py", "--plot", "curves.png")  # Four GPUs are the default.
    assert accuracy(done) >= 97.0
    assert "0 of 4 GPUs are here: simulating 4 in host memory." in done.stdout
    assert "Replicas: 4\n" in done.stdout
    epochs = re.findall(r"^Epoch (\d+)/30\b.*val_accuracy", done.stdout, re.MULTILINE)
    assert epochs == [str(epoch) for epoch in range(1, 31)]
    assert (tmp_path / "curves.png").read_bytes().startswith(PNG)


@pytest.mark.slow
def test_number_of_gpus_does_not_change_what_is_learned(run_example) -> None:
    none = run_example("digits.py", "--gpus", 0, "--epochs", 1, "--batch-size", 100)
    assert "simulating" not in none.stdout
    assert "Replicas: 1\n" in none.stdout
    options = ["--epochs", 1, "--batch-size", 100]
    three = run_example("digits.py", "--gpus", 3, *options, MIRRORED_SIMULATED_GPUS="4")
    assert "simulating" not in three.stdout  # Those that are there are used.
    assert "Replicas: 3\n" in three.stdout
    assert accuracy(three) == pytest.approx(accuracy(none), abs=0.3)  # One image is 0.28%.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gpus", -1], "argument --gpus: must be a whole number from 0 to 64. Received: -1"),
        (["--gpus", "many"], "--gpus: must be a whole number from 0 to 64. Received: many"),
        (["--gpus", 10**5], "--gpus: must be a whole number from 0 to 64. Received: 100000"),
        (["--epochs", 0], "--epochs: must be a whole number from 1 to 10000. Received: 0"),
        (["--batch-size", 2.5], "must be a whole number from 1 to 1437. Received: 2.5"),
        (["--plot", "absent/curves.png"], "there is no folder absent. Make it first."),
    ],
)
def test_bad_arguments_end_before_training(ended_example, arguments, message: str) -> None:
    printed, error = ended_example("digits.py", *arguments)
    assert message in error.splitlines()[-1]
    assert printed == ""


@pytest.mark.slow  # It needs matplotlib.
@pytest.mark.parametrize("plot", ["curves.docx", "curves"])
def test_plots_that_cannot_be_drawn_end_before_training(ended_example, plot: str) -> None:
    printed, error = ended_example("digits.py", "--plot", plot)
    assert f"--plot: {plot} needs an ending, one of " in error.splitlines()[-1]
    assert printed == ""


@pytest.mark.parametrize(
    ("missing", "arguments"), [("sklearn", []), ("matplotlib", ["--plot", "curves.png"])]
)
def test_missing_extra_is_one_error_with_the_install_command(
    ended_example, without_module, monkeypatch, missing: str, arguments: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))  # It takes a second.
    without_module(missing)
    printed, error = ended_example("digits.py", *arguments)
    assert len(error.splitlines()) == 1
    assert f"No module named '{missing}'" in error
    assert error.endswith(" -m pip install scikit-learn matplotlib")
    assert "Epoch" not in printed
