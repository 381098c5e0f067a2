"""What of a step is launched as a whole, and when it is captured anew."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import ResourceExhaustedError
from mirrored.program.kernel_calls import Call
from mirrored.program.schedule import Launch
from mirrored.program.streamed import StreamedProgram
from mirrored.program.streamed.graph_launch import BoundLaunch, GraphLaunch

X = np.arange(12, dtype=np.float32).reshape(4, 3)


class Recorder:
    """Stands for a backend: it notes what is captured, launched and run.

    Args:
        captures: Whether captures succeed.
    """

    def __init__(self, *, captures: bool = True) -> None:
        self.settings: Any = "first"
        self.log: list[str] = []
        self._captures = captures

    def capture(self, work: Callable[[], object]) -> Any:
        self.log.append("capture")
        return self if self._captures else None

    def launch(self) -> None:
        self.log.append("launch")

    def work(self) -> None:
        self.log.append("work")

    def run(self, function: Callable[[], object]) -> None:
        self.log.append("run")
        function()


def raise_that_it_is_full(*_: Any) -> None:
    raise ResourceExhaustedError("full")


def test_the_first_run_compiles_and_the_second_captures() -> None:
    backend: Any = Recorder()
    launch = GraphLaunch(backend, backend.work)
    for _ in range(4):
        launch.run()
    assert backend.log == ["work", "capture", "launch", "launch", "launch"]


@cases("refuses", ["nothing", "capture", "launch"])
def test_what_writes_is_captured_at_once(refuses: str) -> None:
    """It is never launched kernel by kernel where the card has no room for the whole."""
    backend: Any = Recorder()
    launch = GraphLaunch(backend, backend.work, writes=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, refuses, raise_that_it_is_full, raising=False)
        if refuses != "nothing":
            with pytest.raises(ResourceExhaustedError):
                launch.run()
    backend.log.clear()
    launch.run()
    launch.run()
    assert backend.log == ["capture", "launch", "launch"][refuses == "launch" :]


def test_what_writes_and_cannot_be_captured() -> None:
    """It is tried again once kernels are compiled; an error says that a step may be torn."""
    backend: Any = Recorder(captures=False)
    launch = GraphLaunch(backend, backend.work, writes=True)
    for _ in range(3):
        launch.run()
    assert backend.log == ["capture", "work", "capture", "work", "work"]
    with pytest.raises(ResourceExhaustedError) as caught:
        GraphLaunch(backend, raise_that_it_is_full, writes=True).run()
    assert "load a checkpoint" in caught.value.__notes__[0]


def test_what_cannot_be_captured_is_tried_once() -> None:
    backend: Any = Recorder(captures=False)
    launch = GraphLaunch(backend, backend.work)
    for _ in range(4):
        launch.run()
    assert backend.log == ["work", "capture", "work", "work", "work"]


@cases("runs", [0, 1, 3])
def test_new_settings_begin_anew(runs: int) -> None:
    backend: Any = Recorder()
    launch = GraphLaunch(backend, backend.work)
    for _ in range(runs):
        launch.run()
    backend.settings = "second"
    backend.log.clear()
    for _ in range(3):
        launch.run()
    assert backend.log == ["work", "capture", "launch", "launch"]


@pytest.mark.parametrize(("between", "log"), [(False, ["run", "work"]), (True, ["work"])])
def test_only_kernels_run_in_the_state_of_the_device(between: bool, log: list[str]) -> None:
    backend: Any = Recorder()
    BoundLaunch(Launch(backend, [], between=between), [Call(backend.work)]).run()
    assert backend.log == log


# Of how many parts that are captured a step consists, and how many memories are copied between.
LAYOUTS: dict[str, tuple[tuple[int, ...], str | None, int]] = {
    "one device": ((1,), None, 1),
    "two devices of one card": ((2,), "GPU:1", 1),
    "two cards": ((1, 1), "GPU:1", 3),
    "a card and the host": ((1,), "CPU:0", 2),
}


@pytest.mark.parametrize(("parts", "other", "graphs"), LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_launched_as_a_whole(
    parts: tuple[int, ...], other: str | None, graphs: int, seed: int, cards: Any
) -> None:
    cards.make(*parts, seed=seed)

    def function(x: Any) -> list[Any]:
        y = ops.tanh(x)
        with mr.device(other or "GPU:0"):
            z = ops.identity(y) + 1.0
        return [ops.identity(z) * y]

    program = StreamedProgram(cards.record(function, X))
    counts = cards.emulator.counts
    for run in range(4):
        before = counts["graphs"]
        assert program.run(1, [X * np.float32(run)])
        assert counts["graphs"] - before == (0 if run == 0 else graphs)
        found = program.graph.device.backend.to_host(program.outputs[0])
        y = np.tanh(X * np.float32(run))
        np.testing.assert_allclose(found, (y + 1) * y, rtol=1e-5, atol=1e-6)


def test_a_run_that_is_stopped(cards: Any) -> None:
    cards.make(1)
    with mr.device("GPU:0"):
        variable = mr.Variable(0.0)

    def function() -> list[Any]:
        return [variable.assign_add(1.0).read_value()]

    program = StreamedProgram(cards.record(function))
    told: list[int] = []

    def report(_: Any, step: int) -> bool:
        told.append(step)
        return step < 3

    assert not program.run(30, report=report)
    # Eight steps are on their way before the first is told of, and so when the fourth is.
    assert told == list(range(3 + 8))
    assert float(variable.numpy()) == 3 + 8
