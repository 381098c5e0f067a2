"""What the tests of streamed programs share: recordings on emulated cards, without running them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.ops.random import ShardPosition, shard_position
from mirrored.ops.recording import recorded_by
from mirrored.program import GraphRecorder
from mirrored.program.graph import JOINT, Graph


class Cards:
    """Logical devices of emulated cards, and recordings of functions on them.

    Args:
        emulate: Installs the emulator.
    """

    def __init__(self, emulate: Callable[..., Any]) -> None:
        self._emulate = emulate
        self._run = object()
        self.names: list[str] = []
        self.emulator: Any = None

    def make(self, *parts: int, seed: int = 0) -> list[str]:
        """Make so many logical devices of each card, and return all their names."""
        self.emulator = self._emulate(cards=len(parts), seed=seed)
        cards = mr.config.list_physical_devices("GPU")
        for card, count in zip(cards, parts, strict=True):
            each = mr.config.LogicalDeviceConfiguration(memory_limit=16)
            mr.config.set_logical_device_configuration(card, [each] * count)
        self.names = [each.name for each in mr.config.list_logical_devices("GPU")]
        return self.names

    @contextmanager
    def replica(self, number: int) -> Iterator[None]:
        """Within this context ops belong to a replica, and run on its device."""
        name = self.names[number % len(self.names)]
        with mr.device(name), shard_position(ShardPosition(self._run, number)):
            yield

    def record(
        self, function: Callable[..., Sequence[ops.Tensor]], *like: Any, replicas: int = 0
    ) -> Graph:
        """Return the graph of a function on the first device.

        Args:
            function: From tensors to tensors, in a list.
            like: Arrays of the shapes and dtypes of the arguments.
            replicas: Instead the first so many arguments are those of so many replicas.
        """
        recorder = GraphRecorder()
        inputs = []
        for number, array in enumerate(map(np.asarray, like)):
            lane = number if number < replicas else JOINT
            name = self.names[max(lane, 0) % len(self.names)]
            spec = ops.TensorSpec(array.shape, array.dtype)
            inputs.append(recorder.input(spec, devices.get_device(name), lane))
        with mr.device(self.names[0]), recorded_by(recorder):
            outputs = function(*inputs)
        return recorder.finish(outputs)


@pytest.fixture
def cards(emulated_cuda: Callable[..., Any]) -> Cards:
    """Return what makes logical devices of emulated cards; see `Cards`."""
    return Cards(emulated_cuda)
