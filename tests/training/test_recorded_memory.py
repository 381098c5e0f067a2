"""What a recorded step takes of a device's memory: what it must keep, and little else."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import mirrored as mr

memory = mr.config.experimental
FLOAT = 4
# The memory of each value begins at a multiple of 64 bytes, and a step has a few small values:
# the loss, its parts, the step's number, powers of the optimizer's.
SMALL = 8 * 1024


class Row(NamedTuple):
    """A model of dense layers.

    Attributes:
        features: The width of the inputs.
        widths: Those of the layers.
        activation: That of all layers but the last.
        optimizer: Makes the optimizer.
        slots: How many values that has for each parameter.
        registers: How many vectors exist only while a piece of the parameters is updated.
        batch: The examples of a replica.
    """

    features: int
    widths: tuple[int, ...]
    activation: str
    optimizer: Callable[[], Any]
    slots: int
    registers: int
    batch: int

    @property
    def parameters(self) -> int:
        """The number of parameters: a kernel and a bias a layer."""
        before = (self.features, *self.widths)
        return sum((a + 1) * b for a, b in zip(before, self.widths, strict=False))

    @property
    def bound(self) -> int:
        """The bytes that a replica may need, as described below."""
        resident = self.parameters * (1 + self.slots)
        gradients = self.parameters
        inputs = self.batch * (self.features + self.widths[-1])
        # Each layer's result after its activation, which its own gradient and the next layer's
        # kernel's are computed from.
        kept = self.batch * sum(self.widths)
        passing = 2 * self.batch * max(self.widths)  # A gradient by a result, and the one after.
        # Long vectors are updated in pieces of 64k elements, those up to twice that in one.
        piece = self.parameters if self.parameters <= 1 << 17 else 1 << 16
        updating = self.registers * piece
        return FLOAT * (resident + gradients + inputs + kept + passing + updating) + SMALL


ROWS: dict[str, Row] = {
    "wide, plain": Row(64, (256, 256, 10), "relu", lambda: mr.optim.SGD(0.1), 0, 1, 32),
    "wide, momentum": Row(
        64, (256, 256, 10), "relu", lambda: mr.optim.SGD(0.1, momentum=0.9), 1, 1, 32
    ),
    "wide, Adam": Row(64, (256, 256, 10), "tanh", lambda: mr.optim.Adam(0.01), 2, 2, 32),
    "deep": Row(32, (64,) * 8 + (4,), "tanh", lambda: mr.optim.SGD(0.1, momentum=0.9), 1, 1, 64),
    "many examples": Row(16, (48, 48, 2), "relu", lambda: mr.optim.SGD(0.1), 0, 1, 1024),
    "large": Row(300, (600, 600, 10), "sigmoid", lambda: mr.optim.SGD(0.1), 0, 1, 16),
    "large, Adam": Row(
        300, (600, 600, 10), "relu", lambda: mr.optim.Adam(0.01, amsgrad=True), 3, 2, 16
    ),
}


@pytest.mark.parametrize(
    ("row", "replicas"),
    [
        pytest.param(row, count, id=f"{name}-{count}", marks=[pytest.mark.slow] if slow else [])
        for number, (name, row) in enumerate(ROWS.items())
        for count, slow in ((3, number % 2), (1, not number % 2))
    ],
)
def test_the_peak_of_a_step(row: Row, replicas: int, simulate: Callable[..., Any]) -> None:
    simulate(replicas)
    strategy = mr.MirroredStrategy(executor="serial")
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((row.features,))])
        for width in row.widths[:-1]:
            model.add(mr.layers.Dense(width, row.activation))
        model.add(mr.layers.Dense(row.widths[-1]))
        model.compile(row.optimizer(), "mse")
    assert model.count_params() == row.parameters
    rng = np.random.default_rng(0)
    count = replicas * row.batch
    x = rng.normal(size=(2 * count, row.features)).astype(np.float32)
    y = rng.normal(size=(2 * count, row.widths[-1])).astype(np.float32)
    options: dict[str, Any] = {"batch_size": count, "verbose": 0}
    model.fit(x, y, **options)  # The step is recorded, the weights are brought together.
    resident = FLOAT * row.parameters * (1 + row.slots)
    for device in strategy.devices:
        info = memory.get_memory_info(device.name)
        assert 0 <= info["current"] - resident <= SMALL
        memory.reset_memory_stats(device.name)
    model.fit(x, y, **options)
    for device in strategy.devices:
        peak = memory.get_memory_info(device.name)["peak"]
        assert peak <= row.bound, (peak - row.bound) / FLOAT / row.parameters
        # All of that is needed but for what passes, which may lie where something has been.
        assert peak >= resident + FLOAT * row.batch * row.features
