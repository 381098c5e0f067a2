"""Several cards: copies between them, both kinds of collectives, training, and overlap.

Skipped with a single card. Cards may also be split, so that each has several replicas.
"""

import re
from typing import Any

import numpy as np
import pytest
import stand_ins

from mirrored.distribute.cross_device_ops.connections import SELFTEST

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("nccl")]

PARTS = [[1, 1], [2, 1], [1, 1, 1, 1]]


def name_of(parts: Any) -> str | None:
    return "+".join(map(str, parts)) if isinstance(parts, list) else None


@pytest.fixture(scope="module", autouse=True)
def several(cards: int) -> None:
    """Skip all of this where there is one card."""
    if cards < 2:
        pytest.skip("needs several cards")


@pytest.fixture
def on_cards(scenario: Any, cards: int) -> Any:
    """Return ``on_cards(name, parts, **arguments)``: a scenario on as many cards.

    The first test runs the self-test; the others leave it out.
    """

    def run(name: str, parts: list[int], selftest: str = "0", **arguments: Any) -> Any:
        if len(parts) > cards:
            pytest.skip(f"needs {len(parts)} cards")
        environment = {SELFTEST: selftest, stand_ins.CARDS: str(len(parts))}
        return scenario(name, environment, parts=parts, **arguments)

    return run


def test_nccl_is_chosen_and_tested_first(uneven: Any, on_cards: Any) -> None:
    found = on_cards("collectives.train", [1, 1], selftest="", cases=uneven[:1], kind="")
    assert found["connected"]


def test_copies(scenario: Any, cards: int) -> None:
    """All arrive, with and without peer access, of which CUDA says what the library expects."""
    found = scenario("collectives.peers", {stand_ins.CARDS: str(cards)}, cards=cards)
    assert (found["wrong"], found["differ"]) == (0, 0)


@pytest.mark.parametrize("parts", [[1, 1], [1, 1, 1, 1]], ids=name_of)
def test_sums(parts: list[int], on_cards: Any) -> None:
    found = on_cards("collectives.sums", parts)
    assert len(found) > 100
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("parts", PARTS, ids=name_of)
def test_random_batches(parts: list[int], on_cards: Any) -> None:
    """Eager and recorded sums have the same bits, and are the reference's but for rounding."""
    kinds = ["nccl", "hierarchical"]
    found = on_cards("collectives.against_reference", parts, kinds=kinds, examples=20)
    assert found["connected"]
    assert found["worst"] <= 1
    assert found["same"]


@pytest.mark.parametrize("parts", PARTS, ids=name_of)
def test_training_by_nccl(parts: list[int], uneven: Any, as_one_gpu: Any, on_cards: Any) -> None:
    results = on_cards("collectives.train", parts, cases=uneven)
    assert results["connected"]
    as_one_gpu(results)


@pytest.mark.parametrize("parts", PARTS[1:], ids=name_of)
def test_training_by_copies(parts: list[int], uneven: Any, as_one_gpu: Any, on_cards: Any) -> None:
    results = on_cards("collectives.train", parts, cases=uneven, kind="hierarchical")
    assert not results["connected"]
    as_one_gpu(results)


@pytest.mark.parametrize("verify", [0, 2])
def test_the_same_bits_in_every_run(verify: int, uneven: Any, on_cards: Any) -> None:
    """Also where the next card repeats every second step, if it is recorded."""
    every = [{**case, "verify": 0 if case.get("eagerly") else verify} for case in uneven]
    options = {"deterministic": True, "bytes_per_pack": 256}
    first, second = (
        on_cards("collectives.train", [1, 1], cases=cases, **options) for cases in (uneven, every)
    )
    assert {name: value.tobytes() for name, value in first.items()} == {
        name: value.tobytes() for name, value in second.items()
    }


@pytest.mark.parametrize("parts", [[1, 1], [2, 1]], ids=name_of)
def test_sums_are_asked_for_between_parts_of_a_step(parts: list[int], on_cards: Any) -> None:
    """The first bucket goes while the backward pass computes the next ones."""
    case = {"sizes": (16, 32, 32, 4), "batch": 32, "examples": 128, "epochs": 2}
    found = on_cards("collectives.order", parts, case=case)
    assert found["connected"]
    assert re.search("S(G+S){3}", str(found["order"])), found["order"]


@pytest.mark.parametrize("fault", ["late", "left_out", "full_queue"])
def test_a_sum_that_is_not_done_in_time(fault: str, on_cards: Any) -> None:
    found = on_cards(f"faults.{fault}", [1, 1])
    assert str(found["error"]) == "CollectiveTimeoutError", found["text"]
    assert ["GPU:0" in each or "GPU:1" in each for each in found["devices"]] == [True, True]
    assert found["aborted"], found["text"]
    assert (found["before"], found["after"], found["total"]) == (0, 0, 1000.0)


def test_a_step_that_is_not_done_in_time(on_cards: Any) -> None:
    found = on_cards("faults.late_fit", [1, 1])
    assert str(found["error"]) == "CollectiveTimeoutError", found["text"]
    assert found["aborted"], found["text"]
    assert found["off"] <= 1e-6
    assert found["saved"]
    assert np.isfinite(found["losses"]).all()
    assert found["connected"]
