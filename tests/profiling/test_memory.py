"""The memory of a step by device: the plan's bytes are those that devices count."""

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

import mirrored as mr
from mirrored.distribute.variable_memory import bytes_by_device
from mirrored.profiling.memory import memory_by_device

X, Y = np.ones((30, 64), "float32"), np.ones((30, 2), "float32")


def trained(count: int, limit: int | None = 2, **options: Any) -> mr.keras.Model:
    mr.config.experimental.set_simulated_gpus(count, memory_limit=limit)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Dense(128, "relu"), mr.layers.Dense(2)])
        model.compile(mr.optim.Adam(), "mse", **options)
    model.fit(X, Y, batch_size=30, verbose=0)
    return model


@pytest.mark.parametrize("count", [1, 3])
def test_reserved_bytes_are_the_peak_of_the_device(count: int) -> None:
    model = trained(count)
    (trace,) = model.__state__.traces
    memory = memory_by_device(model, trace)
    assert len(memory) == count
    for device, content in memory.items():
        info = mr.config.experimental.get_memory_info(f"GPU:{device.index}")
        assert content.reserved == info["peak"]
        totals = [sum(column) for column in zip(*content.kinds.values(), strict=True)]
        assert max(totals) == totals[content.at_peak] <= content.reserved
        assert len(totals) == len(content.ops)
        variables = (64 * 128 + 128 + 128 * 2 + 2) * 4
        assert content.kinds["weights"] == [variables] * len(totals)
        assert content.kinds["optimizer"][0] == 2 * variables + 8 + 4  # The step and the rate.
        name, nbytes = content.largest[0]
        assert (name, nbytes) == (f"gradients ({variables // 4},)", variables)
        rows = 30 // count
        assert max(content.kinds["batch"]) == rows * (64 + 2) * 4


def test_devices_with_the_same_contents_share_a_plot() -> None:
    figure = mr.profiler.plot_memory(trained(3))  # The first one updates the variables.
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["GPU:0: 0.2 of 2.0 MB", "GPU:1 to GPU:2, each: 0.1 of 2.0 MB"]
    assert {"limit", "weights 33.5 KB"} <= {text.get_text() for text in figure.axes[0].texts}
    plt.close(figure)


def test_a_device_without_a_limit_has_no_line() -> None:
    figure = mr.profiler.plot_memory(trained(1, None))
    assert figure.axes[0].get_title("left").endswith("MB")
    assert "limit" not in {text.get_text() for text in figure.axes[0].texts}
    plt.close(figure)


def test_a_model_without_recorded_steps() -> None:
    with pytest.raises(ValueError, match="Call `fit` first, without `run_eagerly`"):
        mr.profiler.plot_memory(trained(1, run_eagerly=True))


def test_bytes_of_variables_that_are_not_mirrored() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    with mr.device("GPU:1"):
        variable = mr.Variable(mr.ones((3, 5)))
    assert {device.name: n for device, n in bytes_by_device([variable]).items()} == {
        "/device:GPU:1": 60
    }


@pytest.mark.slow
def test_the_plan_of_a_card_is_shown_too(emulated_cuda: Any) -> None:
    emulated_cuda(cards=1)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Dense(128, "relu"), mr.layers.Dense(2)])
        model.compile(mr.optim.Adam(), "mse")
    model.fit(X, Y, batch_size=30, verbose=0)
    (memory,) = memory_by_device(model, next(iter(model.__state__.traces))).values()
    assert memory.kinds["weights"][0] == (64 * 128 + 128 + 128 * 2 + 2) * 4
    assert max(memory.kinds["gradients"]) > 0
    plt.close(mr.profiler.plot_memory(model))
