"""What callbacks log, print, save and change, and when: all of it is as Keras 3.15.1 does it.

The table is `callback_runs.json`; `callback_runs.py` beside it says how it was made.
"""

import json
from collections.abc import Iterator
from typing import Any

import callback_runs
import pytest

import mirrored as mr

KERAS = json.loads(callback_runs.FILE.read_text("utf-8"))
# Keras finds these at the end of an epoch, with another error.
OURS = {"save under a wrong form": "ValueError"}


def check(found: Any, expected: Any, where: str) -> None:
    """Hold numbers to six digits, and all else exactly."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=2e-4, abs=1e-6, nan_ok=True), where
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            check(found[key], expected[key], f"{where}: {key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), (where, found, expected)
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            check(one, other, f"{where}, {i}")
    else:
        assert found == expected, where


@pytest.fixture(scope="module", autouse=True)
def replicas(clean_module: None) -> Iterator[None]:
    mr.config.experimental.set_simulated_gpus(3)
    with mr.MirroredStrategy().scope():
        yield


@pytest.fixture(autouse=True)
def clean_state(clean_names: None) -> None:
    """Let the devices stay."""


def test_the_table_has_every_run() -> None:
    assert KERAS.keys() == callback_runs.RUNS.keys()


# Each takes a fit or more: a fifth is run by all who run the tests.
RUNS = [
    name if number % 5 == 0 else pytest.param(name, marks=pytest.mark.slow)
    for number, name in enumerate(callback_runs.RUNS)
]


@pytest.mark.behaviour("callbacks")
@pytest.mark.parametrize("name", RUNS)
def test_runs_on_three_replicas(name: str) -> None:
    check(callback_runs.outcome(mr.keras, name, ".safetensors"), KERAS[name], name)
