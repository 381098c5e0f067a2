"""The picture of what replicas cost."""

from typing import Any

import pytest
from matplotlib import pyplot as plt

import mirrored as mr


def test_times_are_relative_to_one_replica() -> None:
    (axes,) = mr.profiler.plot_replica_cost({"a": {4: 6.0, 1: 2.0}, "b": {1: 1.0, 2: 1.5}}).axes
    assert [line.get_xydata().tolist() for line in axes.get_lines()[:2]] == [
        [[1, 1], [4, 3]],
        [[1, 1], [2, 1.5]],
    ]
    assert [text.get_text() for text in axes.texts] == ["b: 1.50 times", "a: 3.00 times"]
    plt.close("all")


@pytest.mark.parametrize(
    "times",
    [{}, {"a": {2: 1.0}}, {"a": {1: 0.0}}, {"a": {1: 1.0, 0: 1.0}}, {"a": {1: float("nan")}}],
)
def test_other_times(times: Any) -> None:
    with pytest.raises(ValueError, match="Received: times"):
        mr.profiler.plot_replica_cost(times)
