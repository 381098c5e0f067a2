"""What the replicas of each worker are given, and what is refused."""

from typing import Any

import numpy as np
from launching import needs_mpi


@needs_mpi
def test_each_way_to_share_a_dataset(two_workers: dict[str, list[Any]]) -> None:
    first, second = two_workers["inputs"]
    # Batches of 4, of which three replicas get 2, 1 and 1; then of 2, of which the last gets none.
    assert first["data"] == [[[0, 1]], [[4]]]
    assert second["data"] == [[[2], [3]], [[5], []]]
    # The same parts, of which the first worker takes one a step, and the second two.
    assert first["off"] == [[[0, 1]], [[2]], [[3]], [[4]], [[5]], [[]]]
    assert second["off"] == [[[0, 1], [2]], [[3], [4]], [[5], []], *[[[], []]] * 3]
    # Each of its own, in batches of 2: the second worker needs one step, and takes part in two.
    assert first["own"] == [[[0, 2]], [[4]]]
    assert second["own"] == [[[1, 3], [5]], [[], []]]
    assert (first["values"], second["values"]) == ((0,), (1, 2))
    for worker in (first, second):
        np.testing.assert_array_equal(worker["gathered"], np.ones(6))
        assert [text.split(".")[0][:30] for text in worker["refused"]] == [
            "Workers share datasets by rows",
            *["`fit`, `evaluate` and `predict"] * 2,
        ]
