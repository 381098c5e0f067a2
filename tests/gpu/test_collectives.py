"""NCCL with a single rank, which every card has: connections, deadlines, and the self-test.

One rank has nobody to wait for, and all else is as between cards: what is asked for is late where
the card is busy, and what goes wrong is seen by the same code.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.distribute.cross_device_ops.connections import SELFTEST

GPU = "device:GPU:0"


@pytest.mark.cuda
@pytest.mark.usefixtures("nccl")
def test_sums(scenario: Any) -> None:
    """Every dtype, odd sizes and places, many in a row and at a time, closed and used again."""
    found = scenario("collectives.sums", parts=[1])
    assert len(found) > 100
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.cuda
@pytest.mark.usefixtures("nccl")
def test_a_sum_that_is_late(scenario: Any) -> None:
    found = scenario("faults.late", parts=[1])
    assert str(found["error"]) == "CollectiveTimeoutError"
    for part in (GPU, "bucket 2 of 5 in run 7 of its recorded step", "of at most 3"):
        assert part in str(found["text"])
    assert [GPU in each for each in found["devices"]] == [True]
    assert found["aborted"]
    assert not found["open"]
    assert (found["before"], found["after"], found["total"]) == (0, 0, 1000.0)


@pytest.mark.cuda
@pytest.mark.usefixtures("nccl")
def test_ctrl_c_while_a_sum_is_asked_for(scenario: Any) -> None:
    """No group stays open, whenever it comes: the next sums are right."""
    found = scenario("faults.interrupted", parts=[1])
    assert found["raised"].tolist() == ["ncclGroupStart", "ncclAllReduce", "ncclGroupEnd"]
    assert (found["before"], found["after"], found["total"]) == (0, 0, 1000.0)


@pytest.mark.cuda
@pytest.mark.usefixtures("nccl")
def test_the_end_of_a_process_disconnects(python: Any, tmp_path: Path) -> None:
    """From Python 3.12 on no thread can be started then: one was parked for that."""
    program = Path(__file__).parent / "scenarios" / "run.py"
    facts = tmp_path / "facts.npz"
    ended = python([program, "collectives", "left_open", '{"parts": [1]}', facts])
    assert ended.returncode == 0, ended.stderr
    assert "not disconnected" not in ended.stderr
    with np.load(facts) as found:
        assert found["wrong"] == 0


@pytest.mark.cuda
@pytest.mark.usefixtures("nccl")
def test_a_setting_with_which_connecting_would_not_wait(scenario: Any) -> None:
    found = scenario("collectives.tried", {"NCCL_COMM_BLOCKING": "0", MULTI_RANK: "1"}, counts=[2])
    assert "with NCCL_COMM_BLOCKING=0 its calls return before they are done" in str(found["2"])


@pytest.mark.cuda
@pytest.mark.usefixtures("nccl")
def test_the_self_test_finds_what_is_wrong(scenario: Any) -> None:
    """A hang ends with its deadline, a crash with its signal; afterwards the card sums right."""
    found = scenario("faults.selftests", {SELFTEST: ""}, parts=[1])
    errors = {name: str(found[f"{name}, error"]) for name in ("first", "hang", "crash", "wrong")}
    assert errors == {
        "first": "none",
        "hang": "CollectiveTimeoutError",
        "crash": "CollectiveError",
        "wrong": "CollectiveError",
    }, found["first"]
    assert "It was not done within 8 s." in str(found["hang"])
    assert "It was ended by SIGABRT." in str(found["crash"])
    assert "expected -510.0, received -509.0" in str(found["wrong"])
    assert (str(found["last"]), found["after"]) == ("", 0)
    assert found["check, good"].tolist() == []
    told = found["check, wrong"].tolist()
    assert len(set(told)) == len(told)  # Once for each dtype and size.
    for dtype in ("float32", "float64", "int32"):
        lines = [line for line in told if f" {dtype} numbers" in line]
        assert len(lines) >= 3
        assert all("received -509" in line for line in lines)


def test_the_command(python: Any, stand_in: str) -> None:
    command = ["tests/support/stand_ins.py"] if stand_in else ["-m", "mirrored"]
    ended = python([*command, "selftest", "--quick"])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    heading = next(number for number, line in enumerate(lines) if "busbw" in line)
    rows = [line.split() for line in lines[heading + 1 :]]
    for name in ("ReductionToOneDevice", "HierarchicalCopyAllReduce"):
        assert [row[1] for row in rows if row[0] == name] == ["1024", "65536", "4194304"]
    assert {row[-1] for row in rows} == {"0"}, ended.stdout
