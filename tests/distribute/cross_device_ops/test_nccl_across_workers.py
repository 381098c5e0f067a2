"""Several workers whose cards NCCL connects: they equal one device, and nobody waits for ever.

Cards are emulated, each worker's in its own process; starting them takes seconds of a processor.
"""

import pickle
import re
from pathlib import Path

import card_workers
import numpy as np
import pytest
import stand_ins
from ranks import run_ranks

import mirrored as mr
from mirrored.distribute.cross_device_ops.connections import SELFTEST

pytestmark = pytest.mark.slow
PROGRAM = Path(card_workers.__file__)
FAULTS = PROGRAM.with_name("card_faults.py")


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let workers have emulated cards: as many as the fixture's environment says then."""
    pytest.importorskip("cupy")
    support = str(PROGRAM.parent)
    monkeypatch.setenv("PYTHONPATH", f"{PROGRAM.parents[2]}:{support}")
    monkeypatch.setenv(stand_ins.VARIABLE, "emulated")
    monkeypatch.setenv(stand_ins.CARDS, "2")
    monkeypatch.setenv("MIRRORED_FORCE_GPU_ALLOW_GROWTH", "true")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("EMULATED_NCCL", str(tmp_path))
    monkeypatch.setenv(SELFTEST, "0")
    return monkeypatch


@pytest.mark.behaviour("workers-nccl")
@pytest.mark.parametrize(
    ("count", "total", "ways"),
    [
        pytest.param(2, 2, "recorded", id="1 + 1"),
        pytest.param(2, 3, "eager float32 loop", id="2 + 1"),
    ],
)
def test_workers_equal_one_device(
    count: int, total: int, ways: str, tmp_path: Path, cards: pytest.MonkeyPatch
) -> None:
    cards.setenv(stand_ins.CARDS, str(total))
    (tmp_path / "ways").write_text(ways)
    done = run_ranks(PROGRAM, tmp_path, count)
    assert done.status == 0, done.err
    assert f"All {total} replicas are on {total} cards" in done.err[0]
    own = [total // count + (rank < total % count) for rank in range(count)]
    assert [each.splitlines() for each in done.out] == [[f"{total} {n}", "sums: True"] for n in own]
    found = [pickle.loads((tmp_path / f"result.{rank}").read_bytes()) for rank in range(count)]
    for way, one in card_workers.all_of(mr.MirroredStrategy(["CPU:0"]), ways.split()).items():
        tolerance = 1e-5 if way == "float32" else 1e-12
        for name, value in one.items():
            many, scale = found[0][way][name], np.abs(value).max()
            assert np.abs(many - value).max() <= tolerance * scale, (way, name)
            for other in found[1:]:
                np.testing.assert_array_equal(other[way][name], many, err_msg=f"{way} {name}")


@pytest.mark.behaviour("workers-nccl")
@pytest.mark.parametrize(
    ("fault", "said", "whole"),
    [
        (
            "raises",
            r"WorkerError \| Worker 1 on host .* failed .*OSError: the disk is gone.*\nof 1 ",
            [False, False, True],
        ),
        ("ends", r"WorkerError \| Worker 1 on host .* has ended.*\nof 1 ", [False, False, True]),
        (
            "hangs",
            r"CollectiveTimeoutError \| .*bucket 1 of 1 .*in run 3.*again\..*\nof None ",
            [False, False, True],
        ),
        (
            "refuses",
            r"WorkerError \| Worker 1 .*CollectiveError: .*ncclCommInitRank answered.*\nof 1 ",
            [True],
        ),
    ],
    ids=["raises", "ends", "hangs", "refuses"],
)
def test_nobody_waits_for_ever(
    fault: str, said: str, whole: list[bool], tmp_path: Path, cards: pytest.MonkeyPatch
) -> None:
    """All raise what names the worker; none has weights of part of a step."""
    (tmp_path / "fault").write_text(fault)
    done = run_ranks(FAULTS, tmp_path)
    assert done.status != 0
    assert done.seconds < 40
    assert re.match(said + re.escape(str(whole)), done.out[0]), done
    if fault == "hangs":
        assert re.match(r"WorkerError \| Worker 0 .*CollectiveTimeoutError", done.out[1]), done
        assert str(whole)[:-1] in done.out[1]
