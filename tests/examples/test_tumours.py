"""Held here: what the example of a table prints and writes, and what it says when it cannot run."""

import csv
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PNG = b"\x89PNG\r\n\x1a\n"
LOSS = re.compile(r"^Held-out loss: ([\d.]+), accuracy: ([\d.]+)% of 114 tumours$", re.MULTILINE)
BEST = re.compile(r"^Best epoch: (\d+) of (\d+)$", re.MULTILINE)


@pytest.mark.slow
def test_it_stops_early_with_the_best_weights_in_a_file(run_example, tmp_path: Path) -> None:
    done = run_example("tumours.py")
    (best, last), (loss, accuracy) = BEST.findall(done.stdout)[0], LOSS.findall(done.stdout)[0]
    assert int(last) == int(best) + 8 < 100
    assert float(accuracy) > 94.0
    assert f"Epoch {last}: early stopping\n" in done.stdout
    assert f"Restoring model weights from the end of the best epoch: {best}.\n" in done.stdout
    folder = tmp_path / "tumours"
    assert sorted(path.name for path in folder.iterdir()) == [
        "best.safetensors",
        "curves.png",
        "log.csv",
    ]
    assert (folder / "curves.png").read_bytes().startswith(PNG)
    with open(folder / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == int(last)
    assert min(float(row["val_loss"]) for row in rows) == pytest.approx(float(loss), abs=1e-4)
    rates = [float(row["learning_rate"]) for row in rows]
    assert rates == pytest.approx([0.1 * 0.9**epoch for epoch in range(len(rows))], rel=1e-5)


@pytest.mark.parametrize(
    "gpus", [pytest.param(1, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.slow)]
)
def test_number_of_gpus_does_not_change_what_is_learned(run_example, gpus: int) -> None:
    found = [run_example("tumours.py", *more).stdout for more in ([], ["--gpus", gpus])]
    assert LOSS.findall(found[0]) == LOSS.findall(found[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", 0], "--epochs must be 1 or more. Received: 0"),
        (["--gpus", 9], "argument --gpus: invalid choice: 9"),
    ],
)
def test_bad_arguments_end_before_training(ended_example, arguments, message: str) -> None:
    printed, error = ended_example("tumours.py", *arguments)
    assert message in error.splitlines()[-1]
    assert printed == ""


@pytest.mark.parametrize("missing", ["sklearn", "matplotlib"])
def test_missing_extra_is_one_error_with_the_install_command(
    ended_example, without_module, monkeypatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))  # It takes a second.
    without_module(missing)
    printed, error = ended_example("tumours.py")
    assert len(error.splitlines()) == 1
    assert f"No module named '{missing}'" in error
    assert error.endswith(" -m pip install scikit-learn matplotlib")
    assert "Epoch" not in printed
