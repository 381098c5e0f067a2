"""Training in every way that there is, on every kind of device: the results of one CPU.

A way is tried in some places only, and each place with several ways: pairs, not all of them.
"""

import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from card_training import State, X, Y, ended, make_devices, make_model, make_strategy, state

import mirrored as mr

TOLERANCE = 2e-5

Way = Callable[[mr.Model], list[float]]


class At(mr.callbacks.Callback):
    """Does something at the end of one batch, and notes the loss of all."""

    def __init__(self, batch: int, act: Callable[[mr.Model], None]) -> None:
        super().__init__()
        self.losses: list[float] = []
        self._batch, self._act = batch, act

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(logs["loss"])
        if len(self.losses) == self._batch:
            self._act(self.model)


def stop(model: mr.Model) -> None:
    model.stop_training = True


def fail(model: mr.Model) -> None:
    raise OSError("no space left")


def interrupt(model: mr.Model) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def dataset(batch: int) -> mr.data.Dataset:
    return mr.data.Dataset.from_tensor_slices((X, Y)).shuffle(37, seed=1).batch(batch).prefetch(2)


# ------------------------------------------------------------------ ways


def of_arrays(model: mr.Model) -> list[float]:
    validation: dict[str, Any] = {"validation_data": (X, Y), "validation_batch_size": len(X)}
    fitted = model.fit(X, Y, batch_size=10, epochs=2, **validation, verbose=0)
    return [value for values in fitted.history.values() for value in values]


def of_weighted_examples(model: mr.Model) -> list[float]:
    weights = np.linspace(0.1, 2.0, len(X))
    return model.fit(X, Y, sample_weight=weights, batch_size=5, verbose=0).history["loss"]


def of_few_examples(model: mr.Model) -> list[float]:
    """Fewer than there are replicas: two at a time, and one at the end."""
    options: dict[str, Any] = {"sample_weight": np.linspace(0.1, 2.0, 7), "batch_size": 2}
    return model.fit(X[:7], Y[:7], epochs=2, verbose=0, **options).history["loss"]


def of_a_dataset(model: mr.Model) -> list[float]:
    return model.fit(dataset(8), epochs=2, validation_data=dataset(8), verbose=0).history["loss"]


def of_a_distributed_dataset(model: mr.Model) -> list[float]:
    strategy = model.distribute_strategy
    data = strategy.experimental_distribute_dataset(dataset(8))
    return model.fit(data, epochs=2, verbose=0).history["loss"]


def of_a_generator(model: mr.Model) -> list[float]:
    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for i in range(8):
            yield X[4 * i : 4 * i + 4], Y[4 * i : 4 * i + 4]

    return model.fit(batches(), steps_per_epoch=8, verbose=0).history["loss"]


def from_a_later_epoch(model: mr.Model) -> list[float]:
    return model.fit(X, Y, batch_size=10, initial_epoch=1, epochs=2, verbose=0).history["loss"]


def stopped_in_the_middle(model: mr.Model) -> list[float]:
    at = At(5, stop)
    model.fit(X, Y, batch_size=5, epochs=4, callbacks=[at], verbose=0)
    assert len(at.losses) == 5
    return at.losses


def failed_in_a_callback(model: mr.Model) -> list[float]:
    at = At(6, fail)
    with pytest.raises(OSError, match="no space"):
        model.fit(X, Y, batch_size=5, callbacks=[at], verbose=0)
    return [*at.losses, *model.fit(X, Y, batch_size=5, verbose=0).history["loss"]]


def interrupted(model: mr.Model) -> list[float]:
    at = At(6, interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, batch_size=5, callbacks=[at], verbose=0)
    finally:
        signal.signal(signal.SIGINT, before)
    return [*at.losses, *model.fit(X, Y, batch_size=5, verbose=0).history["loss"]]


def in_turns(model: mr.Model) -> list[float]:
    other = make_model(model.distribute_strategy, widths=(8,))
    losses = []
    for _ in range(2):
        losses += model.fit(X, Y, batch_size=10, verbose=0).history["loss"]
        losses += other.fit(X, Y, batch_size=19, verbose=0).history["loss"]
        losses += other.evaluate(X, Y, verbose=0)
        losses += model.predict(X, batch_size=19, verbose=0).ravel().tolist()
    return losses


# ------------------------------------------------------------------ places


class Place(NamedTuple):
    """Where and how steps run.

    Attributes:
        cards: How many logical devices each emulated card has; none: three simulated GPUs.
        buckets: What the sums between cards are cut by; None: what the library takes.
        options: Of `compile`.
    """

    cards: tuple[int, ...] = ()
    buckets: dict[str, int] | None = None
    options: Mapping[str, Any] = MappingProxyType({})


ONE = Place((1,))
PARTS = Place((3,))
TWO = Place((1, 1))

CASES: dict[Way, dict[str, Place]] = {
    of_arrays: {
        "a card": ONE,
        "all steps at a time": Place((1, 1, 1), {"packs": 3}, {"steps_per_execution": 100}),
    },
    of_weighted_examples: {"cards": Place((2, 1), {"packs": 0})},
    of_few_examples: {
        "parts": PARTS,
        "eagerly": Place(options={"run_eagerly": True}),
    },
    of_a_distributed_dataset: {"cards": Place((1, 1), {"nbytes": 64})},
    stopped_in_the_middle: {"parts": PARTS},
    interrupted: {"cards": TWO},
    in_turns: {"on simulated GPUs": Place()},
}
SLOW: dict[Way, dict[str, Place]] = {
    of_arrays: {
        "cards": TWO,
        "three steps at a time": Place((2,), options={"steps_per_execution": 3}),
    },
    of_weighted_examples: {"parts": PARTS},
    of_few_examples: {
        "cards, in many buckets": Place((2, 1), {"nbytes": 100}),
        "cards of parts": Place((2, 2), {"packs": 3}),
    },
    of_a_dataset: {"a card": ONE, "cards": TWO},
    of_a_generator: {"a card": ONE},
    of_a_distributed_dataset: {"parts": PARTS},
    from_a_later_epoch: {
        "parts": PARTS,
        "cards of parts": Place((2, 2), {"nbytes": 64}),
    },
    stopped_in_the_middle: {"cards": TWO},
    failed_in_a_callback: {"a card": ONE, "cards": TWO},
    interrupted: {"parts": PARTS, "eagerly": Place(options={"run_eagerly": True})},
    in_turns: {"cards": TWO},
}


@functools.cache
def on_the_host(way: Way) -> tuple[list[float], State]:
    """Return what a way to train finds on one CPU, and leaves; once for all places."""
    host = make_model(mr.MirroredStrategy(["CPU:0"]), widths=(8,))
    return way(host), state(host)


@pytest.mark.parametrize(
    ("way", "place"),
    [
        pytest.param(way, place, id=f"{way.__name__}-{name}", marks=marks)
        for cases, marks in ((CASES, []), (SLOW, [pytest.mark.slow]))
        for way, places in cases.items()
        for name, place in places.items()
    ],
)
def test_replicas_equal_one_device(
    way: Way, place: Place, emulated_cuda: Callable[..., Any], simulate: Callable[..., Any]
) -> None:
    cards, buckets, options = place
    names = [] if cards else [device.name for device in simulate(3)]
    expected, after = on_the_host(way)
    if cards:
        emulator = emulated_cuda(cards=len(cards), seed=5)
        names = make_devices(cards)
    strategy = mr.MirroredStrategy(names) if buckets is None else make_strategy(names, **buckets)
    model = make_model(strategy, widths=(8,), **options)
    before = set(threading.enumerate())
    found = way(model)
    ended(set(threading.enumerate()) - before)
    if len(cards) > 1:
        assert emulator.nccl.calls["ncclAllReduce"] > 0
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
    for value, other in zip(state(model), after, strict=True):
        np.testing.assert_allclose(value, other, rtol=TOLERANCE, atol=TOLERANCE)
