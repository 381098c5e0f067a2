"""Held here: what the example of two inputs learns, on any number of GPUs, and how it fails."""

import re

import pytest

ACCURACY = re.compile(r"^Held-out loss: ([\d.]+), accuracy: ([\d.]+)% of 2000 pairs$", re.MULTILINE)
SIZES = re.compile(r"^Mean sizes: (.+)$", re.MULTILINE)


@pytest.mark.slow
def test_it_learns_the_order_of_the_digits(run_example) -> None:
    printed = run_example("larger_digit.py").stdout
    ((_, accuracy),) = ACCURACY.findall(printed)
    assert float(accuracy) > 90.0
    sizes = [float(each.split()[1]) for each in SIZES.findall(printed)[0].split(", ")]
    assert len(sizes) == 10
    assert sizes == sorted(sizes)
    assert "one[0][0], other[0][0]" in printed


@pytest.mark.parametrize(
    "gpus", [pytest.param(1, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.slow)]
)
def test_number_of_gpus_does_not_change_what_is_learned(run_example, gpus: int) -> None:
    found = [run_example("larger_digit.py", *more).stdout for more in ([], ["--gpus", gpus])]
    assert ACCURACY.findall(found[0]) == ACCURACY.findall(found[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", 0], "--epochs must be 1 or more. Received: 0"),
        (["--gpus", 9], "argument --gpus: invalid choice: 9"),
    ],
)
def test_bad_arguments_end_before_training(ended_example, arguments, message: str) -> None:
    printed, error = ended_example("larger_digit.py", *arguments)
    assert message in error.splitlines()[-1]
    assert printed == ""


def test_missing_scikit_learn_is_one_error_with_the_install_command(
    ended_example, without_module
) -> None:
    without_module("sklearn")
    printed, error = ended_example("larger_digit.py")
    assert len(error.splitlines()) == 1
    assert error.endswith(" -m pip install scikit-learn")
    assert printed == ""
