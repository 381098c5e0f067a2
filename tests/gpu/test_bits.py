"""The same bits in each way of running a step: eagerly, kernel by kernel, and as a graph.

And again the same in a second run, on one virtual GPU or two.
"""

from typing import Any

import pytest

CASES: list[dict[str, Any]] = [
    {
        "sizes": (20, 33, 17, 5),
        "batch": 48,
        "examples": 200,
        "epochs": 3,
        "optimizer": optimizer,
        "floatx": floatx,
        "activation": activation,
        "shuffle": True,
    }
    for optimizer, floatx, activation in (
        ("sgd", "float32", "relu"),
        ("momentum", "float64", "tanh"),
        ("adam", "float32", "sigmoid"),
    )
]
MANY_STEPS = {"sizes": (784, 512, 10), "batch": 256, "examples": 2560, "epochs": 2}
EAGER: list[dict[str, Any]] = [{**case, "eagerly": True} for case in CASES]


def all_bits(results: dict[str, Any]) -> dict[str, Any]:
    return {name: (value.dtype, value.tobytes()) for name, value in results.items()}


@pytest.mark.parametrize("gpus", [1, 2])
def test_recorded_steps_are_eager_ones(gpus: int, scenario: Any) -> None:
    both = all_bits(scenario("training.train", cases=[*CASES, *EAGER], gpus=gpus, megabytes=256))
    for number in range(len(CASES)):
        eager = f"{number + len(CASES)}/"
        names = [name.removeprefix(eager) for name in both if name.startswith(eager)]
        assert "losses" in names
        for name in names:
            assert both[f"{number}/{name}"] == both[eager + name], (CASES[number], name)


@pytest.mark.parametrize("gpus", [1, 2])
def test_graphs_compute_what_kernels_one_by_one_do(gpus: int, scenario: Any) -> None:
    cases = [*CASES, MANY_STEPS]
    arguments = {"cases": cases, "gpus": gpus, "megabytes": 512}
    graphs = scenario("training.train", **arguments)
    kernels = scenario("training.train", {"MIRRORED_CUDA_GRAPHS": "0"}, **arguments)
    again = scenario("training.train", **arguments)
    assert all_bits(graphs) == all_bits(kernels)
    assert all_bits(graphs) == all_bits(again)


def test_fixed_replicas_on_any_number_of_virtual_gpus(scenario: Any) -> None:
    cases = [*CASES, *EAGER]
    one, two, three = (
        scenario("training.train", cases=cases, gpus=gpus, megabytes=256, replicas=5)
        for gpus in (1, 2, 3)
    )
    assert all_bits(one) == all_bits(two)
    assert all_bits(one) == all_bits(three)


@pytest.mark.parametrize("gpus", [1, 2])
def test_verified_steps_have_the_bits_of_others(gpus: int, scenario: Any) -> None:
    plain, verified = (
        scenario("training.train", cases=cases, gpus=gpus, megabytes=256)
        for cases in (CASES, [{**case, "verify": 2} for case in CASES])
    )
    assert all_bits(plain) == all_bits(verified)


@pytest.mark.cuda
@pytest.mark.parametrize("gpus", [1, 2])
def test_steps_are_captured(gpus: int, scenario: Any) -> None:
    """Three epochs of five steps, of which the first run of each program is kernel by kernel."""
    found = scenario("training.captured", cases=CASES, gpus=gpus)
    assert found["refused"].tolist() == []
    assert min(found["launched"]) >= 3 * 5 - 4
