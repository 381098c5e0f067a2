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


def test_lines_differ() -> None:
    names = [f"the model with a very long name, number {i}" for i in range(17)]
    figure = mr.profiler.plot_replica_cost({name: {1: 1.0, 2: 2.0} for name in names})
    lines = figure.axes[0].get_lines()[:17]
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines}
    assert len(looks) == 17
    assert len({line.get_color() for line in lines[:8]}) == 8
    assert len({line.get_marker() for line in lines[:8]}) == 8
    assert figure.axes[0].texts[3].get_text() == "the model with…ame, number 3: 2.00 times"
    heights = [text.get_position()[1] for text in figure.axes[0].texts]
    assert min(heights) > 0
    assert max(heights) <= 1
    plt.close(figure)


@pytest.mark.parametrize(
    "times",
    [{}, {"a": {2: 1.0}}, {"a": {1: 0.0}}, {"a": {1: 1.0, 0: 1.0}}, {"a": {1: float("nan")}}],
)
def test_other_times(times: Any) -> None:
    with pytest.raises(ValueError, match="Received: times"):
        mr.profiler.plot_replica_cost(times)
