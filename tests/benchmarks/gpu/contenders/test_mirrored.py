"""The program that runs mirrored, on a simulated GPU: it trains what it says that it trains."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mirrored as mr
from benchmarks.gpu import speed
from benchmarks.gpu.contenders import mirrored_
from benchmarks.gpu.workloads import CHECK_STEPS, WORKLOADS, one_batch
from benchmarks.processes import ContenderError
from benchmarks.reference import Reference
from benchmarks.workloads import make_data

LIMIT = 60.0
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    server = speed.start("mirrored_", "cpu", LIMIT)
    yield server.ask
    server.kill()


def test_losses_are_those_of_the_reference(ask: Ask) -> None:
    found = ask("prepare", workload="digits", precision="float32", mode="step")
    workload = one_batch(WORKLOADS["digits"])
    x, y = make_data(workload)
    assert found["losses"] == pytest.approx(Reference(workload).fit(x, y, CHECK_STEPS), rel=1e-5)


def test_bfloat16_is_near_it_and_another(ask: Ask) -> None:
    pytest.importorskip("ml_dtypes")
    full = ask("prepare", workload="digits", precision="float32", mode="step")["losses"]
    mixed = ask("prepare", workload="digits", precision="bfloat16", mode="step")["losses"]
    assert mixed != full
    assert mixed == pytest.approx(full, rel=0.01)


@pytest.mark.parametrize("mode", ["step", "fit"])
def test_turns(ask: Ask, mode: str) -> None:
    ask("prepare", workload="digits", precision="tf32", mode=mode)
    assert ask("measure", mode=mode, steps=4)["us"] > 0
    ask("release")
    with pytest.raises(ContenderError, match="KeyError"):
        ask("measure", mode=mode, steps=4)


def test_facts(ask: Ask) -> None:
    assert ask("facts")["facts"]["version"]


@pytest.mark.slow
def test_a_batch_that_is_split_has_the_same_losses() -> None:
    workload = WORKLOADS["digits"]
    mr.config.experimental.set_simulated_gpus(3)
    one = mirrored_.Resident(workload, "float32").losses(CHECK_STEPS)
    names = [f"GPU:{number}" for number in range(3)]
    collective = mr.distribute.HierarchicalCopyAllReduce()
    several = mirrored_.Resident(workload, "float32", names, collective).losses(CHECK_STEPS)
    assert several == pytest.approx(one, rel=1e-5)
