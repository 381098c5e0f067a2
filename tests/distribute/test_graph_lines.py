"""Steps of two workers that differ are found, and their layout alone is no difference."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from workers_in_turn import Compared, compared_by, differences

import mirrored as mr
from mirrored.keras import layers, losses, regularizers

Change = Callable[[mr.Model], object]
TRAINS = "the step that trains"
ENDS = "the end of an epoch's steps to train"
OPERATIONS, UPDATES = "operations on 4 examples", "updates of variables"
VALUES, OPTIMIZER = "values of variables", "settings of optimizers"

# What one worker has, what the other one has, and where that shows; settings of what has a
# configuration show there as well.
USUAL: dict[str, Any] = {
    "kernel_regularizer": regularizers.L1(0.01),
    "kernel_constraint": None,
    "activity_regularizer": None,
    "rate": 0.2,
    "stddev": 0.1,
    "negative_slope": 0.1,
    "epsilon": 1e-3,
    "bn_momentum": 0.9,
    "scale": 1.0,
    "delta": 1.0,
    "loss_weights": [0.25],
    "momentum": 0.9,
    "clipnorm": None,
    "swapped": False,
    "table": 1.0,
}
OTHER: list[tuple[str, Any, set[str]]] = [
    ("kernel_regularizer", None, {OPERATIONS, UPDATES}),
    ("kernel_constraint", "non_neg", {OPERATIONS, UPDATES}),
    ("activity_regularizer", "l2", {OPERATIONS}),
    ("clipnorm", 0.01, {OPERATIONS, UPDATES, OPTIMIZER}),
    ("swapped", True, {OPERATIONS}),
]
# Constants, each with the number that its line has, and what the other worker has there.
CONSTANTS: dict[str, tuple[Any, str, str]] = {
    "kernel_regularizer": (regularizers.L1(0.5), "float32(0.01)", "float32(0.5)"),
    "rate": (0.6, "float32(0.2)", "float32(0.6)"),
    "stddev": (0.9, "float32(0.1)", "float32(0.9)"),
    "negative_slope": (0.8, "float32(0.1)", "float32(0.8)"),
    "epsilon": (0.7, "float32(0.001)", "float32(0.7)"),
    "scale": (2.0, "float32(1.0)", "float32(2.0)"),
    "delta": (3.0, "float32(1.0)", "float32(3.0)"),
    "loss_weights": ([0.75], "float32(0.25)", "float32(0.75)"),
    "momentum": (0.4, "float32(0.9)", "float32(0.4)"),
    "table": (2.0, "(check ", "(check "),
}


class Table(layers.Layer):
    """Subtracts an array, or is subtracted from it; it has no configuration."""

    def __init__(self, table: Any, swapped: Any) -> None:
        super().__init__()
        self.table, self.swapped = table, swapped

    def call(self, inputs: Any) -> Any:
        table = self.table * np.arange(3, dtype=np.float32)
        return table - inputs if self.swapped else inputs - table


def program(
    batch_size: int = 8, callbacks: Sequence[Any] = (), **options: Any
) -> Callable[[mr.distribute.Strategy], object]:
    """Return what trains a model with some options that are not the usual ones."""
    given = USUAL | options

    def train(strategy: mr.distribute.Strategy) -> None:
        names = ("kernel_regularizer", "activity_regularizer", "kernel_constraint")
        with strategy.scope():
            model = mr.Sequential(
                [
                    layers.Input((2,)),
                    layers.Dense(3, **{name: given[name] for name in names}),
                    layers.Dropout(given["rate"]),
                    layers.GaussianNoise(given["stddev"]),
                    layers.LeakyReLU(given["negative_slope"]),
                    layers.BatchNormalization(
                        momentum=given["bn_momentum"], epsilon=given["epsilon"]
                    ),
                    layers.Rescaling(given["scale"]),
                    Table(np.full(3, given["table"], np.float32), given["swapped"]),
                    layers.Dense(1),
                ]
            )
            model.compile(
                mr.optim.SGD(0.1, momentum=given["momentum"], clipnorm=given["clipnorm"]),
                losses.Huber(given["delta"]),
                loss_weights=given["loss_weights"],
            )
        x = np.arange(16, dtype=np.float32).reshape(8, 2)
        model.fit(x, x[:, :1], batch_size=batch_size, callbacks=callbacks, verbose=0)

    return train


@pytest.fixture(scope="module")
def usual() -> Compared:
    """Return what the first worker says, which has the usual options."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return compared_by(0, (1, 1), program(), monkeypatch)


@pytest.mark.behaviour("workers-alike")
@pytest.mark.parametrize(("name", "value", "shown"), OTHER)
def test_a_difference_is_found(
    usual: Compared, monkeypatch: pytest.MonkeyPatch, name: str, value: Any, shown: set[str]
) -> None:
    other = compared_by(1, (1, 1), program(**{name: value}), monkeypatch)
    assert shown <= differences(usual, other)[TRAINS]


@pytest.mark.behaviour("workers-alike")
def test_constants_are_compared(usual: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    # Momentum of moving averages is that of the first replica on all workers: no operation has it.
    options = {name: value for name, (value, _, _) in CONSTANTS.items()} | {"bn_momentum": 0.3}
    other = compared_by(1, (1, 1), program(**options), monkeypatch)
    own, others = (
        next(facts[OPERATIONS] for what, facts in each if what == TRAINS) for each in (usual, other)
    )
    differing = [pair for pair in zip(own, others, strict=True) if pair[0] != pair[1]]
    for _, before, after in CONSTANTS.values():
        assert any(before in one and after in two for one, two in differing), (before, after)
    assert {UPDATES, OPTIMIZER, "settings of layers"} <= differences(usual, other)[TRAINS]


@pytest.mark.parametrize(("layout", "batch_size"), [((1, 1), 5), ((1, 2), 8), ((2, 2), 3)])
def test_layouts_of_the_same_program_do_not_differ(
    monkeypatch: pytest.MonkeyPatch, layout: Sequence[int], batch_size: int
) -> None:
    first, second = (
        compared_by(rank, layout, program(batch_size), monkeypatch) for rank in range(2)
    )
    assert differences(first, second) == {}
    if batch_size == 5:  # The first replicas have 3 examples and 2: settings are compared alone.
        other = compared_by(1, layout, program(batch_size, bn_momentum=0.5), monkeypatch)
        assert differences(first, other)[TRAINS] == {"settings of layers"}


def changing(change: Change) -> mr.callbacks.Callback:
    """Return a callback that changes something after the first batch."""

    class Changing(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            change(self.model)

    return Changing()


@pytest.mark.behaviour("workers-alike")
@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda model: setattr(model.optimizer, "learning_rate", 0.5), {VALUES, OPTIMIZER}),
        (lambda model: model.optimizer.iterations.assign(50), {VALUES}),
        (lambda model: model.set_weights([2 * each for each in model.get_weights()]), {VALUES}),
    ],
)
def test_what_a_callback_changes_is_found_at_the_end_of_the_epoch(
    usual: Compared, monkeypatch: pytest.MonkeyPatch, change: Change, shown: set[str]
) -> None:
    other = compared_by(1, (1, 1), program(callbacks=[changing(change)]), monkeypatch)
    assert differences(usual, other) == {ENDS: shown}
