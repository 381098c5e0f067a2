"""Small models that train over emulated cards, for the tests of NCCL under them.

What a model is does not depend on the devices, so that results can be compared.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import mirrored as mr
from mirrored.backends.communication.watch import WATCH
from mirrored.distribute import NcclAllReduce
from mirrored.distribute.experimental import CommunicationOptions

BATCH = 10
_RNG = np.random.default_rng(7)
X = _RNG.normal(size=(37, 6)).astype(np.float32)
Y = X[:, :4].argmax(axis=1)

State = list[np.ndarray]


def make_devices(layout: Sequence[int]) -> list[str]:
    """Make so many logical devices of each card, and return all their names."""
    cards = mr.config.list_physical_devices("GPU")
    for card, count in zip(cards, layout, strict=True):
        parts = [mr.config.LogicalDeviceConfiguration(memory_limit=64)] * count
        mr.config.set_logical_device_configuration(card, parts)
    return [device.name for device in mr.config.list_logical_devices("GPU")]


def make_strategy(
    devices: Sequence[str], *, packs: int = 1, nbytes: int = 0, timeout: float | None = None
) -> mr.MirroredStrategy:
    """Return a strategy with buckets of so many bytes, over NCCL where there are cards."""
    return mr.MirroredStrategy(
        list(devices),
        NcclAllReduce(packs),
        communication_options=CommunicationOptions(bytes_per_pack=nbytes, timeout_seconds=timeout),
    )


def make_model(
    strategy: mr.MirroredStrategy,
    *,
    widths: Sequence[int] = (8, 5),
    policy: str | None = None,
    penalty: str | None = "l2",
    optimizer: Callable[[], Any] = lambda: mr.optim.Adam(0.01),
    **options: Any,
) -> mr.Model:
    """Return a compiled model with all that may differ between replicas and one device."""
    mr.random.set_seed(3)
    mr.config.experimental.enable_tensor_float_32_execution(False)
    with strategy.scope():
        stack = [mr.layers.Input(shape=(6,))]
        for width in widths:
            stack.append(
                mr.layers.Dense(width, activation="relu", kernel_regularizer=penalty, dtype=policy)
            )
            stack.append(mr.layers.Dropout(0.3, dtype=policy))
        model = mr.Sequential([*stack, mr.layers.Dense(4, dtype=policy)])
        loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer(), loss, metrics=["accuracy"], **options)
    return model


def train(
    model: mr.Model,
    first: int = 0,
    *callbacks: mr.callbacks.Callback,
    data: tuple[np.ndarray, np.ndarray] = (X, Y),
) -> None:
    """Train for the four steps of one epoch, or for those that are left from one on."""
    x, y = (each[first * BATCH :] for each in data)
    model.fit(x, y, batch_size=BATCH, shuffle=False, callbacks=list(callbacks), verbose=0)


def states(model: mr.Model) -> list[State]:
    """Return, for each replica, all that a step changes."""
    variables = [*model.weights, *model.optimizer.variables]
    count = len(variables[0].copies)
    return [[variable.copies[i].numpy() for variable in variables] for i in range(count)]


def state(model: mr.Model) -> State:
    """Return all that a step changes; that of replicas has to be alike."""
    first, *others = states(model)
    for other in others:
        assert same(other, first), "replicas have come apart"
    return first


def ended(threads: Iterable[threading.Thread]) -> None:
    """Hold that threads end by themselves: what looks after sums does, once none is in flight."""
    WATCH.check()
    if WATCH._watchdog is not None:
        WATCH._watchdog.wake()  # It sleeps for a second, and there is nothing to look after.
    for thread in threads:
        thread.join(10.0)
        assert not thread.is_alive()


def same(first: State, second: State) -> bool:
    """Return whether two states have the same bits."""
    return len(first) == len(second) and all(map(np.array_equal, first, second))


class Keeps(mr.callbacks.Callback):
    """Keeps the state before the first step and after each."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[State] = []

    def on_train_begin(self, logs: Any = None) -> None:
        """Keep it."""
        self.states.append(state(self.model))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keep it."""
        self.states.append(state(self.model))

    def steps_done(self, model: mr.Model) -> int:
        """Return after how many of the steps a model is, which has to be after a whole one."""
        found = state(model)
        # What a first step made, such as slots, may be gone or not when it has failed.
        start = len(self.states[0])
        known = [[*self.states[0], *found[start:]], *self.states[1:]]
        numbers = [number for number, each in enumerate(known) if same(found, each)]
        assert numbers, "the state is that of no whole step"
        return numbers[0]
