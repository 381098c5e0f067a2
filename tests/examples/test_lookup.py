"""Held here: the transformer learns to look words up, and what it says of wrong arguments."""

import re

import pytest


def test_it_answers_lists_that_it_never_saw(run_example) -> None:
    done = run_example("lookup.py", "--gpus", 3, "--epochs", 4)
    assert len(re.findall(r"^Epoch ./4 ", done.stdout, re.MULTILINE)) == 4
    found = re.search(r"^New lists: loss ([\d.]+), accuracy ([\d.]+)%$", done.stdout, re.MULTILINE)
    assert float(found[2]) > 95.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", 0], "--epochs must be 1 or more. Received: 0"),
        (["--gpus", 9], "argument --gpus: invalid choice: 9"),
    ],
)
def test_bad_arguments_end_before_training(ended_example, arguments, message: str) -> None:
    printed, error = ended_example("lookup.py", *arguments)
    assert message in error.splitlines()[-1]
    assert printed == ""
