"""The GPU trains as the host does, for 200 steps, and any number of virtual GPUs as one does.

Tolerances are of rounding: runs whose sums are in another order, and whose learning rates are
small, so that differences add up and do not grow by themselves. In float64 a step differs by some
1e-15; 1e-9 leaves much room. In float32 the host's own runs with tanh differ from float64 ones by
3e-7; 2e-5 leaves room for a card's roundings of tanh and exp. ReLU adds its kink: an example whose
activation comes out on its other side moves a unit's weights by rate / batch * gradient * input,
here about 1e-4, and in 200 steps that happens to a few of millions of activations.
"""

from typing import Any

import numpy as np
import pytest

NETWORKS: dict[str, dict[str, Any]] = {
    "digits": {"sizes": (64, 128, 10), "batch": 256, "examples": 20 * 256, "epochs": 10},
    "mnist": {"sizes": (784, 512, 512, 10), "batch": 256, "examples": 20 * 256, "epochs": 10},
}
TOLERANCES = {
    ("float32", "tanh"): 2e-5,
    ("float32", "relu"): 1e-3,
    ("float64", "tanh"): 1e-9,
    ("float64", "relu"): 1e-9,
}

# Uneven shards, batches smaller than the number of replicas, and a last batch of one example.
UNEVEN: list[dict[str, Any]] = [
    {
        "sizes": (7, 16, 5),
        "batch": batch,
        "examples": examples,
        "epochs": 3,
        "floatx": floatx,
        "optimizer": optimizer,
        "activation": "tanh",
        "shuffle": True,
    }
    for batch, examples in ((32, 128), (30, 91), (7, 23), (3, 10))
    for floatx, optimizer in (("float32", "sgd"), ("float64", "momentum"), ("float64", "adam"))
]


def compare(cases: list[dict[str, Any]], results: dict[str, Any], expected: dict[str, Any]) -> None:
    """Hold what each case left to what it left elsewhere, in relation to the array's size."""
    assert results.keys() == expected.keys()
    for name, value in results.items():
        case = cases[int(name.partition("/")[0])]
        tolerance = TOLERANCES[case["floatx"], case["activation"]]
        scale = max(1.0, float(np.abs(expected[name]).max()))
        assert value.dtype == expected[name].dtype
        np.testing.assert_allclose(value, expected[name], 0, tolerance * scale, err_msg=name)


@pytest.mark.parametrize("network", NETWORKS)
def test_200_steps_as_on_the_host(network: str, scenario: Any) -> None:
    cases = [
        {**NETWORKS[network], "floatx": floatx, "activation": activation, "rate": 0.02}
        for floatx, activation in TOLERANCES
    ]
    results = scenario("training.train", cases=cases, gpus=1)
    compare(cases, results, scenario("training.train", cases=cases, gpus=0))
    for number in range(len(cases)):
        losses = results[f"{number}/losses"]
        assert losses[-1] < 0.9 * losses[0]


def test_any_number_of_virtual_gpus(scenario: Any) -> None:
    on_the_host = scenario("training.train", cases=UNEVEN, gpus=0)
    for gpus in (1, 2, 4):
        results = scenario("training.train", cases=UNEVEN, gpus=gpus, megabytes=256)
        compare(UNEVEN, results, on_the_host)


def test_mixed_precision_lowers_the_loss(scenario: Any) -> None:
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs ml_dtypes")
    cases = [{**NETWORKS["digits"], "policy": policy} for policy in ("float32", "mixed_bfloat16")]
    results = scenario("training.train", cases=cases, gpus=1)
    full, mixed = results["0/losses"], results["1/losses"]
    assert mixed[-1] < 0.8 * mixed[0]
    # bfloat16 has 8 bits: each product is off by 0.4 % at most, which evens out in a mean.
    np.testing.assert_allclose(mixed, full, rtol=0.03)
    assert not np.array_equal(mixed, full)
    assert results["1/weight 0"].dtype == np.float32
