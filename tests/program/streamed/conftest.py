"""What the tests of streamed programs share: recordings on emulated cards, without running them."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.backends.communication.connection import Connection
from mirrored.ops.hooks import active_recorder, recorded_by
from mirrored.ops.rng_state import ShardPosition, shard_position
from mirrored.program import GraphRecorder
from mirrored.program.dataflow import SHARED, Graph


class Unconnected:
    """Stands for what connects devices: it has their streams, and sums nothing.

    Args:
        names: A device a rank.
    """

    peers = None

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.streams = [devices.get_device(name).backend.another() for name in names]


class Cards:
    """Logical devices of emulated cards, and recordings of functions on them.

    Args:
        emulate: Installs the emulator.
    """

    def __init__(self, emulate: Callable[..., Any]) -> None:
        self._emulate = emulate
        self._run = object()
        self._parts: tuple[int, ...] = ()
        self.names: list[str] = []
        self.emulator: Any = None

    def make(self, *parts: int, seed: int = 0) -> list[str]:
        """Make so many logical devices of each card, and return all their names."""
        self._parts = parts
        self.emulator = self._emulate(cards=len(parts), seed=seed)
        cards = mr.config.list_physical_devices("GPU")
        for card, count in zip(cards, parts, strict=True):
            each = mr.config.LogicalDeviceConfiguration(memory_limit=16)
            mr.config.set_logical_device_configuration(card, [each] * count)
        self.names = [each.name for each in mr.config.list_logical_devices("GPU")]
        return self.names

    def leaders(self) -> list[str]:
        """Return the name of the first logical device of each card."""
        firsts = itertools.accumulate(self._parts[:-1], initial=0)
        return [self.names[first] for first in firsts]

    def unconnected(self) -> Unconnected:
        """Return what stands for a connection of the cards."""
        return Unconnected(self.leaders())

    def connected(self) -> Connection:
        """Return a connection of the cards."""
        names = self.leaders()
        return Connection([devices.get_device(name).backend for name in names], names)

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
            like: Buffers of the shapes and dtypes of the arguments.
            replicas: Instead the first so many arguments are those of so many replicas.
        """
        recorder = GraphRecorder()
        inputs = []
        for number, array in enumerate(map(np.asarray, like)):
            replica = number if number < replicas else SHARED
            name = self.names[max(replica, 0) % len(self.names)]
            spec = ops.TensorSpec(array.shape, array.dtype)
            inputs.append(recorder.input(spec, devices.get_device(name), replica))
        with mr.device(self.names[0]), recorded_by(recorder):
            outputs = function(*inputs)
        return recorder.finish(outputs)

    def random(
        self, seed: int, replicas: int, *, guarded: bool = False, connection: Any = None
    ) -> Graph:
        """Return the graph of a random function with so many replicas.

        They read variables of their own, meet in sums and copies, and write what comes of it.

        Args:
            seed: Says which function.
            replicas: How many there are, each with an argument, on a device each by turns; 0 for
                a function of one argument without any.
            guarded: Whether writes are behind a guard.
            connection: What sums over the cards now and then; None: nothing does.
        """
        rng = np.random.default_rng(seed)
        variables = []
        for number in range(replicas + 2):
            with mr.device(self.names[number % len(self.names)]):
                variables.append(mr.Variable(rng.normal(size=(4, 3)).astype(np.float32)))

        def function(*inputs: ops.Tensor) -> list[ops.Tensor]:
            values = list(inputs)
            for which, i, j in rng.integers(0, 1 << 20, (6 * replicas + 20, 3)):
                joint = not replicas or rng.random() < 0.25
                where = mr.device(self.names[0]) if joint else self.replica(int(i) % replicas)
                with where:
                    first, second = values[i % len(values)], values[-1 - j % min(len(values), 5)]
                    if rng.random() < 0.2:
                        second = variables[j % len(variables)].read_value()
                    values.append(_CHOICES[which % len(_CHOICES)](first, second))
                if connection is not None and i % 4 == 0:
                    values += self.sums(connection, values[-1 - j % 5 :], number=len(values))
            recorder: Any = active_recorder()
            if guarded:
                recorder.require_finite((ops.reduce_sum(values[-2]), ops.reduce_sum(values[-1])))
            for number, variable in enumerate(variables[1:]):
                variable.assign_sub(values[-1 - number] * 0.1)
            return [values[-1], *values[:: max(len(values) // 4, 1)]]

        matrix = np.zeros((4, 3), np.float32)
        return self.record(function, *[matrix] * max(replicas, 1), replicas=replicas)

    def sums(self, connection: Any, values: Sequence[Any], number: int) -> Sequence[Any]:
        """Return the sum of values over the cards, on the first device of each.

        Where each card has one of its own they are those, as gradients are; else copies.
        """
        recorder: Any = active_recorder()
        parts = []
        for name in connection.names:
            own = [each for each in values if each.device.endswith(name)]
            with mr.device(name):
                part = own[0] if own else ops.identity(values[0])
                if number % 2:
                    part = ops.concat([part[:1] * 2.0, part[1:]], axis=0)
                parts.append(part)
        return recorder.all_reduce(parts, connection, what=f"sum {number}", timeout=60.0)

    def gradients(self, connection: Any, layers: int, *inputs: Any) -> list[Any]:
        """Go through layers and back in each replica, and sum over the cards what each leaves.

        Args:
            connection: What sums; None: the first device does.
            layers: How many layers there are.
            *inputs: One a replica, each on a card of its own.
        """
        found = []
        for number, x in enumerate(inputs):
            with self.replica(number):
                found.append(_gradients_of(x, layers))
        recorder: Any = active_recorder()
        sums: list[Any] = []
        for layer in range(layers):
            parts = [parts[layer] for parts in found]
            if connection is None:
                sums += [ops.add_n([ops.identity(part) for part in parts])] * len(parts)
            else:
                what = f"layer {layer}"
                sums += recorder.all_reduce(parts, connection, what=what, timeout=60.0)
        return sums


def _gradients_of(x: Any, layers: int) -> list[Any]:
    """Return something for each layer, that of the last one first, as gradients come."""
    values = [x]
    for _ in range(layers):
        values.append(ops.softmax(values[-1] @ ops.transpose(values[-1]) @ values[-1]))
    gradients, upstream = [], values[-1]
    for value in reversed(values[:-1]):
        upstream = ops.softmax(upstream @ ops.transpose(value) @ value)
        gradients.append(ops.concat([upstream[1:], upstream[:1] * 2.0], axis=0))
    return gradients


# From two matrices to one of the same shape.
_CHOICES: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: ops.tanh(x),
    lambda x, y: x * ops.reduce_sum(y),
    lambda x, y: x[0] * y,
    lambda x, y: ops.softmax(x) - y,
    lambda x, y: x @ ops.transpose(y) @ x,
    lambda x, y: ops.reshape(ops.reshape(x, (12,)) * 2.0, (4, 3)),
    lambda x, y: ops.concat([x[:2], y[2:] * 3.0], axis=0),
    lambda x, y: ops.concat([ops.square(x)[:1], ops.tanh(y)[:3]], axis=0),
    lambda x, y: ops.transpose(ops.reshape(ops.transpose(x), (4, 3)) @ ops.ones((3, 4)))[:, :3] + y,
    lambda x, y: mr.random.normal((4, 3)) * y,
]


@pytest.fixture
def cards(emulated_cuda: Callable[..., Any]) -> Cards:
    """Return what makes logical devices of emulated cards; see `Cards`."""
    return Cards(emulated_cuda)
