"""Workers that share a card, between which NCCL sums: they train as one device does.

They need an MPI: mirrored's extra `mpich`; where one dies, the environment of `.ci/run deaths`.
"""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import card_workers
import numpy as np
import pytest
from ranks import run_ranks

import mirrored as mr

pytestmark = pytest.mark.cuda


def test_two_workers_equal_one_device(
    ranks_of_a_card: Callable[[int], dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = Path(card_workers.__file__)
    variables = {
        **ranks_of_a_card(2),
        "MIRRORED_FORCE_GPU_ALLOW_GROWTH": "true",
        "PYTHONPATH": f"{program.parents[2]}:{program.parent}",
        "EMULATED_NCCL": str(tmp_path),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ways = "eager recorded float32 loop"
    (tmp_path / "ways").write_text(ways)
    done = run_ranks(program, tmp_path, seconds=120.0)
    assert done.status == 0, done.err
    found = [pickle.loads((tmp_path / f"result.{rank}").read_bytes()) for rank in range(2)]
    # Of functions such as tanh a card has its own.
    tolerances = {"float32": 1e-4, "eager": 1e-9, "recorded": 1e-9, "loop": 1e-9}
    for way, one in card_workers.all_of(mr.MirroredStrategy(["CPU:0"]), ways.split()).items():
        for name, value in one.items():
            many, scale = found[0][way][name], np.abs(value).max()
            assert np.abs(many - value).max() <= tolerances[way] * scale, (way, name)
            np.testing.assert_array_equal(found[1][way][name], many, err_msg=f"{way} {name}")


def test_workers_go_on_without_one_that_dies(
    ranks_of_a_card: Callable[[int], dict[str, str]], python: Callable[..., Any]
) -> None:
    options = ["-q", "-m", "openmpi", "-k", "nccl"]
    done = python(["-m", "pytest", *options, "tests/test_worker_deaths.py"], ranks_of_a_card(3))
    if "1 skipped" in done.stdout:
        pytest.skip("needs Open MPI: run `.ci/run deaths`")
    assert done.returncode == 0, done.stdout
