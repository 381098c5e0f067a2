"""The picture of one step of a trace."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

import mirrored as mr

X = np.ones((12, 4), "float32")


def test_a_step_of_two_replicas(tmp_path: Path) -> None:
    mr.config.experimental.set_simulated_gpus(2)
    with mr.MirroredStrategy(executor="threads").scope():
        model = mr.Sequential([mr.layers.Dense(3, "relu"), mr.layers.Dense(1)])
        model.compile("adam", "mse")
    path = tmp_path / "trace.json"
    with mr.profiler.trace(path):
        model.fit(X, X[:, :1], batch_size=6, verbose=0)
    for step in (0, 1, -1, np.int64(-2)):
        (axes,) = mr.profiler.plot_timeline(path, step).axes
        rows = [label.get_text() for label in axes.get_yticklabels()]
        assert rows[:2] == ["replica 0 (GPU:0)", "replica 1 (GPU:1)"]
        assert axes.get_xlim()[0] == 0
        legend = [text.get_text() for text in axes.get_legend().get_texts()]
        assert {"matrix products", "other kernels", "copies", "waiting"} <= set(legend)
    plt.close("all")
    for step in (2, -3, 0.5, True):
        with pytest.raises(ValueError, match=r"has 2 steps. Received: step=.* from -2 to 1"):
            mr.profiler.plot_timeline(path, step)


def test_convolutions_are_products(tmp_path: Path) -> None:
    images, filters = np.ones((1, 4, 4, 2), "float32"), np.ones((2, 2, 2, 2), "float32")
    for function, kind in (
        (mr.nn.conv2d, "matrix products"),
        (mr.nn.depthwise_conv2d, "other kernels"),
    ):
        with mr.profiler.trace(tmp_path / "trace.json"):
            function(images, filters, [1] * 4, "SAME")
        (axes,) = mr.profiler.plot_timeline(tmp_path / "trace.json").axes
        legend = {text.get_text() for text in axes.get_legend().get_texts()}
        assert legend - {"copies"} == {kind}
    plt.close("all")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": [{"ph": "X"}]}', "\xff"])
def test_other_files(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="is not a trace"):
        mr.profiler.plot_timeline(path)
    with pytest.raises(FileNotFoundError):
        mr.profiler.plot_timeline(tmp_path / "none.json")


def test_an_empty_trace(tmp_path: Path) -> None:
    with mr.profiler.trace(tmp_path / "trace.json"):
        pass
    with pytest.raises(ValueError, match="is empty"):
        mr.profiler.plot_timeline(tmp_path / "trace.json")


def trace(*slices: tuple[Any, Any], tid: int = 0) -> str:
    """Return a trace of two rows, of which one has slices with these starts and durations."""
    rows = [
        {"ph": "M", "name": "thread_name", "tid": i, "args": {"name": f"replica {i}"}}
        for i in range(2)
    ]
    pieces = [
        {"ph": "X", "name": "Relu", "cat": "kernel", "tid": tid, "ts": ts, "dur": dur}
        for ts, dur in slices
    ]
    return json.dumps({"traceEvents": rows + pieces})


def test_rows_without_slices(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(trace())
    with pytest.raises(ValueError, match="is empty"):
        mr.profiler.plot_timeline(path)
    path.write_text(trace((0, 0), tid=1))
    (axes,) = mr.profiler.plot_timeline(path).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["replica 1"]
    assert axes.get_xlim()[0] == 0
    with pytest.raises(ValueError, match=r"has 1 step\. Received: step=1"):
        mr.profiler.plot_timeline(path, 1)
    path.write_text(trace(("soon", 1)))
    with pytest.raises(ValueError, match="is not a trace"):
        mr.profiler.plot_timeline(path)
    plt.close("all")
