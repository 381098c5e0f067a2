"""Where a model's variables are, as bytes by device and layer."""

import warnings
from typing import Any

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


LONG = "encoder_block_{}_of_the_second_tower_attention_query_projection"


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["_hidden", "$a$", "c"], ["_hidden", "$a$", "c"]),
        (
            [LONG.format(i) for i in range(9)],
            [*(f"encoder_block_{i}…ery_projection" for i in range(6)), "other layers"],
        ),
        (["W" * 99 + str(i) for i in range(6)], [f"{'W' * 14}…{'W' * 12}{i}" for i in range(6)]),
    ],
)
def test_all_names_are_in_the_legend_above_the_plot(names: list[str], shown: list[str]) -> None:
    model = mr.Sequential([mr.layers.Dense(1, name=name) for name in names])
    model.build((None, 1))
    figure = mr.debugging.plot_placement(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # No layout was possible, or a name was left out.
        figure.canvas.draw()
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == shown
    frame = legend.get_window_extent()
    assert frame.y0 >= figure.axes[0].bbox.y1
    assert frame.x1 <= figure.bbox.x1
    assert frame.y1 <= figure.bbox.y1
    plt.close(figure)


def test_layers_that_share_a_name_are_added_up() -> None:
    class Model(mr.Model):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = (mr.layers.Dense(n, name="optimizer") for n in (1, 2))

        def call(self, x: Any) -> Any:
            return self.two(self.one(x))

    model = Model()
    model(mr.ones((1, 1)))
    ((_, parts),) = bytes_by_part(model).items()
    assert parts == {"optimizer": (2 + 4) * 4}
