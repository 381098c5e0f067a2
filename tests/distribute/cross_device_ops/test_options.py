"""Sum and mean by their names; hints: their defaults, their checks, that results stay."""

import math
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.distribute import ReduceOp
from mirrored.distribute.experimental import CommunicationImplementation, CommunicationOptions


@pytest.mark.behaviour("communication-options")
def test_defaults() -> None:
    options = CommunicationOptions()
    assert (options.bytes_per_pack, options.timeout_seconds) == (0, None)
    assert options.implementation is CommunicationImplementation.AUTO
    assert options == CommunicationOptions(0, None, "auto")


def test_implementations() -> None:
    assert [each.name for each in CommunicationImplementation] == ["AUTO", "RING", "NCCL"]
    for each in CommunicationImplementation:
        for given in (each, each.name, each.name.lower()):
            assert CommunicationOptions(implementation=given).implementation is each


@pytest.mark.behaviour("nccl-deadline")
@cases(
    ("seconds", "expected"),
    [(None, 600.0), (0, math.inf), (0.0, math.inf), (math.inf, math.inf), (0.5, 0.5), (120, 120)],
)
def test_timeouts(seconds: Any, expected: float) -> None:
    options = CommunicationOptions(timeout_seconds=seconds)
    assert (options.timeout_seconds, options.timeout) == (seconds, expected)


@pytest.mark.behaviour("communication-options")
@cases(
    ("options", "match"),
    [
        ({"bytes_per_pack": -1}, r"^Argument `bytes_per_pack` must be >=0, Received -1\.$"),
        ({"bytes_per_pack": 1.5}, "whole number of bytes. Received: 1.5"),
        ({"bytes_per_pack": True}, "whole number of bytes. Received: True"),
        ({"bytes_per_pack": None}, "whole number of bytes. Received: None"),
        ({"timeout_seconds": -1}, "`timeout_seconds` must be None or a number >=0, Received -1"),
        ({"timeout_seconds": float("nan")}, "Received nan"),
        ({"timeout_seconds": "1"}, "Received '1'"),
        ({"timeout_seconds": True}, "Received True"),
        (
            {"implementation": "gloo"},
            "`implementation` must be instance of `mr.distribute.experimental.Communication"
            r"Implementation`. Received: 'gloo'. Use one of \['AUTO', 'RING', 'NCCL'\]",
        ),
        ({"implementation": 3}, "Received: 3"),
    ],
)
def test_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        CommunicationOptions(**options)


def test_sizes_of_numpy_are_sizes() -> None:
    assert CommunicationOptions(bytes_per_pack=np.int64(3)).bytes_per_pack == 3


@pytest.mark.behaviour("reduce")
@cases(
    ("given", "expected"),
    [
        (ReduceOp.SUM, ReduceOp.SUM),
        (ReduceOp.MEAN, ReduceOp.MEAN),
        ("SUM", ReduceOp.SUM),
        ("sum", ReduceOp.SUM),
        ("Mean", ReduceOp.MEAN),
    ],
)
def test_a_reduce_op(given: Any, expected: ReduceOp) -> None:
    assert ReduceOp.of(given) is expected


@pytest.mark.behaviour("reduce")
@cases("given", ["PROD", "", None, 0, ["SUM"]])
def test_no_such_reduce_op(given: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid ReduceOp") as error:
        ReduceOp.of(given)
    assert str(error.value).startswith(f"{given!r} ")
    assert "['SUM', 'MEAN']" in str(error.value)
