"""The gate of a step: whether it writes is decided once, on one device, for all of them."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.backends.watch import WATCH
from mirrored.errors import CollectiveError
from mirrored.ops.recording import active_recorder
from mirrored.program.streamed import StreamedProgram
from mirrored.program.streamed.gate import Gate

X = np.full((4, 3), 2.0, np.float32)


@pytest.mark.parametrize("name", ["GPU:0", "CPU:0"])
def test_it_is_shut_while_the_device_works(name: str, cards: Any) -> None:
    cards.make(1)
    device = devices.get_device(name)
    gate = Gate(device)
    stream = None if name == "CPU:0" else device.backend
    for _ in range(2):
        gate.open(stream)
        assert np.isfinite(device.backend.to_host(gate.array)).all()
        gate.shut()
        assert np.isnan(device.backend.to_host(gate.array)).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("parts", [(1, 1), (1, 1, 1)], ids=str)
def test_a_step_that_is_stopped_writes_everywhere_or_nowhere(
    parts: tuple[int, ...], seed: int, cards: Any
) -> None:
    """A sum fails while the writes of steps before it are on their way, on some cards further."""
    names = cards.make(*parts, seed=seed)
    connection = cards.connected()
    variables = []
    for name in names:
        with mr.device(name):
            variables += [mr.Variable(np.zeros((4, 3), np.float32)), mr.Variable(0)]

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        sums = recorder.all_reduce(inputs, connection, what="gradients", timeout=60.0)
        for number, (name, total) in enumerate(zip(names, sums, strict=True)):
            with mr.device(name):
                variables[2 * number].assign_add(total)
                variables[2 * number + 1].assign_add(1)
        return [ops.identity(sums[0])]

    like = [X] * len(names)
    program = StreamedProgram(cards.record(function, *like, replicas=len(names)))
    program.take(like)
    program.run(1, {}, lambda step: True)
    cards.emulator.nccl.break_async(after=4)
    with pytest.raises(CollectiveError):
        for _ in range(40):
            program.run(1, {}, lambda step: True)
            WATCH.check()
    values = [variable.numpy() for variable in variables]
    steps = int(values[1])
    assert 1 <= steps <= 4
    for sums, count in zip(values[::2], values[1::2], strict=True):
        assert count == steps
        np.testing.assert_array_equal(sums, X * np.float32(len(names) * steps))
    program.run(2, {}, lambda step: True)
    assert [int(variable.numpy()) for variable in variables[1::2]] == [steps + 2] * len(names)
    connection.close()
