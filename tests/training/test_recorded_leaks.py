"""Many calls of `fit` leave nothing behind: no device memory, no host memory, no thread."""

import gc
import itertools
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

get_memory_info = mr.config.experimental.get_memory_info
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
Y = X[:, :1]
TRACED = 15


def used() -> tuple[int, int]:
    gc.collect()
    devices = mr.config.list_logical_devices()
    return sum(get_memory_info(each)["current"] for each in devices), threading.active_count()


@pytest.mark.parametrize(
    ("replicas", "executor", "calls"),
    [
        pytest.param(1, "auto", 450, marks=pytest.mark.slow),
        pytest.param(2, "serial", 450, marks=pytest.mark.slow),
        (2, "threads", 100),
    ],
)
def test_a_thousand_fits(
    replicas: int, executor: str, calls: int, simulate: Callable[..., Any]
) -> None:
    simulate(replicas)
    strategy = mr.MirroredStrategy(executor=executor)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(2, "tanh"), mr.layers.Dense(1)])
        model.compile(mr.optim.Adam(0.01), "mse")

    def fit(times: int) -> None:
        for _ in range(times):
            model.fit(X, Y, batch_size=4, verbose=0)

    def held() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    fit(5)
    before = used()
    fit(calls)
    assert used() == before
    assert len(model.__state__.traces) == 1
    tracemalloc.start()
    try:
        # Python and its libraries keep a little of their own at first, and once in a while a
        # table of theirs grows. What stays of each call would be there every time.
        sizes = []
        for _ in range(4):
            fit(TRACED)
            sizes.append(held())
        growth = [after - before for before, after in itertools.pairwise(sizes)]
        # A program, a plan or a list of calls that stays would be tens of kilobytes in each.
        assert min(growth) < 1500 * TRACED
    finally:
        tracemalloc.stop()
    strategy.close()


@pytest.mark.parametrize("executor", [pytest.param("serial", marks=pytest.mark.slow), "threads"])
def test_models_that_come_and_go(executor: str, simulate: Callable[..., Any]) -> None:
    """With a model go its programs, and with a strategy its threads."""
    simulate(2)

    def train() -> None:
        strategy = mr.MirroredStrategy(executor=executor)
        with strategy.scope():
            model = mr.Sequential([mr.layers.Dense(2, "tanh"), mr.layers.Dense(1)])
            model.compile(mr.optim.Adam(0.01), "mse", metrics=["mse"])
        model.fit(X, Y, validation_data=(X, Y), verbose=0)
        model.predict(X, verbose=0)

    def settled() -> tuple[int, int]:
        """Wait for threads that were told to end: the collector does not."""
        gc.collect()
        deadline = time.monotonic() + 10
        while threading.active_count() > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        return used()

    train()
    before = settled()
    assert before[1] == 1
    for _ in range(5):
        train()
    assert settled() == before


def test_recordings_of_many_sizes_are_let_go_of(
    simulate: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever makes a new size of batch in every call is told so, and keeps not all of them."""
    simulate(1)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    assert model.__state__.traces._most == 64
    monkeypatch.setattr(model.__state__.traces, "_most", 18)  # A function is held to all 64.
    for size in range(1, 22):
        model.fit(np.ones((size, 2)), np.ones((size, 1)), batch_size=size, verbose=0)
    assert len(model.__state__.traces) == 18
    warnings = [text for text in caplog.messages if "has been recorded for" in text]
    assert len(warnings) == 1
    assert "A step of the model 'sequential' has been recorded for 16" in warnings[0]
    assert "Pad batches to one size" in warnings[0]
