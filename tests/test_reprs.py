"""Objects say what they are made with, and show no addresses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored._reprs import text_of
from mirrored.keras import callbacks, constraints, initializers, losses, metrics, optimizers


class Counting(callbacks.Callback):
    """A callback of a user's own."""

    def __init__(self, step: int, function: Any = None) -> None:
        super().__init__()
        self.step, self.function = step, function


class Renamed(mr.MirroredStrategy):
    """A strategy of a user's own."""

    def own_name(self) -> None:
        """Do nothing."""


schedules = optimizers.schedules
Options = mr.distribute.experimental.CommunicationOptions
MADE: list[tuple[Callable[[], Any], str]] = [
    (lambda: mr.MirroredStrategy(), "MirroredStrategy(devices=['GPU:0', 'GPU:1'])"),
    (
        lambda: mr.MirroredStrategy(
            ["GPU:1"], cross_device_ops=mr.distribute.HierarchicalCopyAllReduce(num_packs=2)
        ),
        "MirroredStrategy(devices=['GPU:1'], "
        "cross_device_ops=HierarchicalCopyAllReduce(num_packs=2))",
    ),
    (lambda: mr.distribute.OneDeviceStrategy("GPU:1"), "OneDeviceStrategy(device='GPU:1')"),
    (lambda: mr.distribute.get_strategy(), "DefaultStrategy()"),
    (
        lambda: mr.MirroredStrategy(["GPU:1"]).extended,
        "<extended of MirroredStrategy(devices=['GPU:1'])>",
    ),
    (lambda: mr.distribute.MultiWorkerMirroredStrategy(), "MultiWorkerMirroredStrategy()"),
    (lambda: optimizers.Adam(), "Adam(learning_rate=0.001)"),
    (lambda: optimizers.SGD(0.1, clipnorm=1.0), "SGD(learning_rate=0.1, clipnorm=1.0)"),
    (
        lambda: optimizers.SGD(schedules.ExponentialDecay(0.1, 10, 0.9)),
        "SGD(learning_rate=ExponentialDecay(initial_learning_rate=0.1, decay_steps=10, "
        "decay_rate=0.9))",
    ),
    (
        lambda: optimizers.LossScaleOptimizer(optimizers.SGD()),
        "LossScaleOptimizer(inner_optimizer=SGD(learning_rate=0.01))",
    ),
    (lambda: losses.Huber(0.5), "Huber(delta=0.5)"),
    (lambda: losses.MeanSquaredError(reduction="sum"), "MeanSquaredError(reduction='sum')"),
    (lambda: metrics.Mean(), "<Mean name=mean>"),
    (lambda: callbacks.EarlyStopping("loss", 0.1), "EarlyStopping(monitor='loss', min_delta=0.1)"),
    (
        lambda: callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: None),
        "LambdaCallback(on_epoch_end=<lambda>)",
    ),
    (lambda: Counting(2, len), "Counting(step=2, function=len)"),
    (lambda: initializers.Constant(2.0), "Constant(value=2.0)"),
    (lambda: constraints.NonNeg(), "NonNeg()"),
    (lambda: mr.keras.random.SeedGenerator(3), "SeedGenerator(seed=3)"),
]


@pytest.mark.behaviour("reprs")
@cases(("make", "text"), MADE, ids=[text for _, text in MADE])
def test_what_it_is_made_with(
    simulate: Callable[..., Any], make: Callable[[], Any], text: str
) -> None:
    simulate(2)
    assert repr(make()) == text


@cases(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1"),
        (np.ones((2, 3)), "<ndarray of shape (2, 3)>"),
        ([0.1] * 9, "[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, ...]"),
        ({"a": (1, None)}, "{'a': (1, None)}"),
        (object(), "<object>"),
        (Counting(1).set_model, "Callback.set_model"),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_it_is_asked_for_while_a_function_is_recorded(simulate: Callable[..., Any]) -> None:
    simulate(1)
    optimizer, said = optimizers.SGD(0.1), []

    @mr.function
    def step(x: Any) -> Any:
        said.append(repr(optimizer))
        return x

    step(mr.ones(()))
    assert said[0].startswith("SGD(learning_rate=")


@pytest.mark.behaviour("reprs")
def test_a_strategy_lists_tensorflows_names_and_a_users(simulate: Callable[..., Any]) -> None:
    simulate(2)
    names = {name for name in dir(Renamed()) if not name.startswith("_")}
    assert names == {
        "distribute_datasets_from_function",
        "experimental_distribute_dataset",
        "experimental_distribute_values_from_function",
        "experimental_local_results",
        "extended",
        "gather",
        "num_replicas_in_sync",
        "own_name",
        "reduce",
        "run",
        "scope",
    }


def test_the_library_lists_no_package_that_only_repeats_names() -> None:
    assert "autodiff" not in dir(mr)
    assert mr.autodiff.GradientTape is mr.GradientTape
