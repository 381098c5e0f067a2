"""Long programs take no more memory, threads and files than short ones."""

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import NonFiniteLossError

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="it needs /proc"),
]

X = np.linspace(-1, 1, 400, dtype=np.float32).reshape(100, 4)
PAGE = os.sysconf("SC_PAGE_SIZE")
MOST = 8 << 20  # Bytes that the memory may grow by.


def use() -> tuple[int, int, int]:
    """Return the bytes in memory, and the numbers of threads and of open files."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * PAGE, threading.active_count(), len(os.listdir("/proc/self/fd"))


def check_flat(act: Callable[[], object], times: int, warm: int) -> None:
    """Call a function N times, and compare what is in use then with what was after a few calls."""
    for _ in range(warm):
        act()
    memory, threads, files = use()
    for _ in range(times):
        act()
    memory_after, threads_after, files_after = use()
    assert (threads_after, files_after) == (threads, files)
    assert memory_after - memory < MOST, f"{memory_after - memory} bytes more"


def make(strategy: mr.MirroredStrategy) -> mr.Model:
    with strategy.scope():
        layers = [mr.layers.Dense(8, "relu"), mr.layers.Dropout(0.2), mr.layers.Dense(1)]
        model = mr.Sequential([mr.layers.Input((4,)), *layers])
        model.compile("adam", "mse", metrics=["mae"])
    return model


@pytest.fixture
def strategy() -> mr.MirroredStrategy:
    """Return a strategy of two simulated GPUs."""
    mr.config.experimental.set_simulated_gpus(2)
    return mr.MirroredStrategy()


def test_steps_of_fit(strategy: mr.MirroredStrategy) -> None:
    """100,000 steps, 1,000 a call."""
    model = make(strategy)
    check_flat(lambda: model.fit(X, X[:, :1], 1, epochs=10, verbose=0), times=100, warm=5)


def test_steps_of_a_custom_loop(strategy: mr.MirroredStrategy) -> None:
    """100,000 steps."""
    model = make(strategy)
    optimizer = model.optimizer

    def replica(x: mr.Tensor) -> mr.Tensor:
        with mr.GradientTape() as tape:
            loss = mr.reduce_sum(mr.square(model(x, training=True) - x[:, :1])) / 10.0
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    @mr.function
    def step(batch: mr.Tensor) -> mr.Tensor:
        return strategy.reduce("sum", strategy.run(replica, (batch,)))

    data = mr.data.Dataset.from_tensor_slices(X).shuffle(100).batch(10)
    batches = strategy.experimental_distribute_dataset(data)

    def epoch() -> None:
        for batch in batches:
            step(batch)

    check_flat(epoch, times=10_000, warm=100)


def test_models(strategy: mr.MirroredStrategy) -> None:
    """2,000 models, each trained for a step."""

    def act() -> None:
        mr.keras.backend.clear_session()
        make(strategy).fit(X[:10], X[:10, :1], 10, verbose=0)

    check_flat(act, times=2000, warm=50)


def test_exceptions(strategy: mr.MirroredStrategy) -> None:
    """500 steps that fail: of data, of a callback, of a loss that is not finite."""
    model = make(strategy)

    def fail(*_: object) -> None:
        raise KeyError("a callback")

    ways: list[tuple[type[Exception], Callable[[], object]]] = [
        (ValueError, lambda: model.fit(X, X[:7], verbose=0)),
        (NonFiniteLossError, lambda: model.fit(X * np.nan, X[:, :1], verbose=0)),
        (
            KeyError,
            lambda: model.fit(
                X,
                X[:, :1],
                verbose=0,
                callbacks=[mr.callbacks.LambdaCallback(on_train_batch_end=fail)],
            ),
        ),
        (ZeroDivisionError, lambda: strategy.run(lambda: 1 / 0)),
    ]

    def act() -> None:
        for error, way in ways:
            with pytest.raises(error):
                way()

    check_flat(act, times=125, warm=10)
