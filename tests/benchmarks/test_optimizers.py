"""The table of what steps of optimizers cost: each has its cells, and equal rules equal weights."""

from typing import Any

import pytest

from benchmarks import optimizers
from benchmarks.contenders import optimizers as contenders

NAMES = ("Adam", "Adam by `update_step`", "SGD with momentum", "LossScaleOptimizer", "Muon")


def test_each_takes_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(contenders.NAMES, "mirrored", NAMES)
    sizes: dict[str, Any] = {}
    for size in contenders.SIZES:
        made = {name: contenders.mirrored(name, ((3, 2), (2,))) for name in NAMES}
        sizes[size] = {name: contenders.measured(run, 1, 0.0) for name, run in made.items()}
        assert min(each["us"] for each in sizes[size].values()) > 0
    optimizers.check({"mirrored": sizes})
    lines = optimizers.lines({"mirrored": sizes})
    assert [line.split(" | ")[0] for line in lines] == [f"| {name}" for name in NAMES]
    assert {line.count("|") for line in lines} == {4}
    sizes["large"]["Adam"]["weights"] *= 1.1
    with pytest.raises(ValueError, match="The weights of Adam differ, of large"):
        optimizers.check({"mirrored": sizes})


def test_a_name_is_an_optimizer() -> None:
    import mirrored as mr

    plain = {name.partition(" ")[0] for name in contenders.NAMES["mirrored"]}
    there_are = {name for name in mr.optim.__all__ if name[0].isupper()}
    assert plain == there_are - {"Optimizer", "MultiOptimizer", "OptimizerMap"}
