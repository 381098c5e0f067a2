"""NCCL with several ranks on one card, where it allows that: sums, training, bits and faults.

Each runs in a process of its own with a deadline, after the self-test has tried as many ranks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mirrored.distribute.cross_device_ops.connections import SELFTEST

pytestmark = pytest.mark.cuda
Environment = Callable[[int], dict[str, str]]

MNIST = {"sizes": (784, 512, 512, 10), "batch": 256, "examples": 2560, "epochs": 2}


def test_sums(scenario: Any, ranks_of_a_card: Environment) -> None:
    found = scenario("collectives.sums", ranks_of_a_card(4), parts=[4])
    assert len(found) > 100
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_the_command(python: Any, stand_in: str, ranks_of_a_card: Environment) -> None:
    """It runs the self-test, and measures NCCL too."""
    command = ["tests/support/stand_ins.py"] if stand_in else ["-m", "mirrored"]
    ended = python([*command, "selftest", "--quick"], {**ranks_of_a_card(2), SELFTEST: ""})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Passed: sums of float32" in ended.stdout
    rows = [line.split() for line in ended.stdout.splitlines() if "NcclAllReduce" in line]
    assert [row[1] for row in rows] == ["1024", "65536", "4194304"]
    assert {row[-1] for row in rows} == {"0"}, ended.stdout


def test_random_batches(scenario: Any, ranks_of_a_card: Environment) -> None:
    """Eager and recorded sums have the same bits, and are the reference's but for rounding."""
    arguments = {"parts": [3], "kinds": ["nccl"], "examples": 30}
    found = scenario("collectives.against_reference", ranks_of_a_card(3), **arguments)
    assert found["connected"]
    assert found["worst"] <= 1
    assert found["same"]


@pytest.mark.parametrize("count", [2, 4])
def test_training(
    count: int, uneven: Any, as_one_gpu: Any, scenario: Any, ranks_of_a_card: Environment
) -> None:
    environment = ranks_of_a_card(count)
    results = scenario("collectives.train", environment, parts=[count], cases=uneven)
    assert results["connected"]
    as_one_gpu(results)


def test_the_same_bits_in_every_run(
    uneven: Any, scenario: Any, ranks_of_a_card: Environment
) -> None:
    arguments = {"parts": [4], "cases": [MNIST, *uneven[:2]], "bytes_per_pack": 1 << 18}
    first, second = (
        scenario("collectives.train", ranks_of_a_card(4), deterministic=True, **arguments)
        for _ in range(2)
    )
    assert first["connected"]
    assert {name: value.tobytes() for name, value in first.items()} == {
        name: value.tobytes() for name, value in second.items()
    }


@pytest.mark.parametrize("fault", ["late", "left_out", "full_queue"])
def test_a_sum_that_is_not_done_in_time(
    fault: str, scenario: Any, ranks_of_a_card: Environment
) -> None:
    """The error names the devices and the sum; then they are connected anew, and sum right."""
    found = scenario(f"faults.{fault}", ranks_of_a_card(2), parts=[2])
    assert str(found["error"]) == "CollectiveTimeoutError", found["text"]
    assert ["GPU:0" in each or "GPU:1" in each for each in found["devices"]] == [True, True]
    what = {
        "late": "bucket 2 of 5 in run 7 of its recorded step",
        "left_out": "a test",
        "full_queue": "a test",
    }
    assert what[fault] in str(found["text"])
    assert found["aborted"], found["text"]
    assert not found["open"]
    assert (found["before"], found["after"], found["total"]) == (0, 0, 1000.0)


def test_ctrl_c_while_sums_hang(scenario: Any, ranks_of_a_card: Environment) -> None:
    """It ends them, also where the main thread is inside NCCL; then they are right again."""
    found = scenario("faults.interrupted_in_a_full_queue", ranks_of_a_card(2), parts=[2])
    assert str(found["raised"]) in ("KeyboardInterrupt", "CollectiveError")
    assert (found["before"], found["after"], found["total"]) == (0, 0, 1000.0)


def test_a_step_that_is_not_done_in_time(scenario: Any, ranks_of_a_card: Environment) -> None:
    """The weights are those of the last whole step, can be saved, and training goes on."""
    found = scenario("faults.late_fit", ranks_of_a_card(2), parts=[2])
    assert str(found["error"]) == "CollectiveTimeoutError", found["text"]
    assert "in run 4 of its recorded step" in str(found["text"])
    assert found["aborted"], found["text"]
    assert found["taken"] == 6 + 3
    assert found["off"] <= 1e-6
    assert found["saved"]
    assert np.isfinite(found["losses"]).all()
    assert found["losses"][-1] < found["losses"][0]
    assert found["connected"]
