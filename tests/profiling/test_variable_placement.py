"""Where a model's variables are, as bytes by device and layer."""

import pytest
from matplotlib import pyplot as plt

import mirrored as mr
from mirrored.profiling.variable_placement import bytes_by_part


def test_layers_that_are_placed_by_hand() -> None:
    mr.config.experimental.set_simulated_gpus(2, memory_limit=1)
    first, second = mr.layers.Dense(8, name="first"), mr.layers.Dense(4, name="second")
    model = mr.Sequential([first, second])
    with mr.device("GPU:0"):
        first.build((None, 2))
    with mr.device("GPU:1"):
        second.build((None, 8))
    model.build((None, 2))
    model.compile("sgd")
    parts = {device.name: own for device, own in bytes_by_part(model).items()}
    assert parts["/device:GPU:0"]["first"] == (2 * 8 + 8) * 4
    assert parts["/device:GPU:1"] == {"second": (8 * 4 + 4) * 4}
    figure = mr.debugging.plot_placement(model)
    texts = [text.get_text().strip() for text in figure.axes[0].texts]
    assert texts[1] == "0.1 KB of 1.0 MB"
    plt.close(figure)


def test_many_layers_are_summed_up() -> None:
    model = mr.Sequential([mr.layers.Dense(1) for _ in range(9)])
    model.build((None, 1))
    ((_, parts),) = bytes_by_part(model).items()
    assert list(parts.values()) == [8] * 6 + [24]
    figure = mr.debugging.plot_placement(model)
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == list(parts)
    assert legend[-1] == "other layers"
    plt.close(figure)


def test_a_model_that_is_not_built() -> None:
    with pytest.raises(ValueError, match="has no variables yet"):
        mr.debugging.plot_placement(mr.Sequential([mr.layers.Dense(1)]))
