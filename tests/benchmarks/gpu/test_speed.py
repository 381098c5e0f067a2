"""Turns of contenders that crash, hang, are missing or have no time left; the others go on."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.gpu.parts import Deadline
from benchmarks.gpu.results import CONTENDERS, Figure, Results
from benchmarks.gpu.speed import NO_TIME, Speed
from benchmarks.processes import ContenderError

ROUNDS = 3


class Fake:
    """A contender's process, whose every step takes 100 microseconds.

    Args:
        script: The program that it stands for.
        log: What is asked of all processes.
        act: Is given script, request and arguments before an answer; may raise.
    """

    def __init__(self, script: str, log: list[tuple[str, ...]], act: Callable[..., None]) -> None:
        self.script, self.log, self.act = script, log, act
        self.limit = 0.0
        self.alive = True

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        if not self.alive:
            raise ContenderError("it has ended already")
        self.log.append((self.script, do, arguments.get("mode", "")))
        try:
            self.act(self.script, do, **arguments)
        except ContenderError as error:
            self.alive = str(error).startswith("RuntimeError")
            raise
        return {"losses": [1.0], "seconds": 2.0, "us": 100.0, "facts": {"version": "1"}}

    def kill(self) -> None:
        self.alive = False
        self.log.append((self.script, "kill", ""))


class World:
    """Fake processes, and the measurement that starts them."""

    def __init__(self) -> None:
        self.log: list[tuple[str, ...]] = []
        self.act: Callable[..., None] = lambda *_, **__: None
        self.missing: set[str] = set()
        self.results = Results()
        self.started: list[str] = []

    def start(self, script: str, device: str, limit: float) -> Fake:
        self.started.append(script)
        if script in self.missing:
            raise ContenderError("ended with status 1: ModuleNotFoundError")
        return Fake(script, self.log, lambda *args, **options: self.act(*args, **options))

    def measure(self, *precisions: str, seconds: float = 60.0) -> dict[str, Figure]:
        """Measure digits; return the figures of the last precision by contender."""
        speed = Speed(
            self.results, Deadline(seconds), ROUNDS, 0.01, 5.0, "cuda", lambda: "fast", self.start
        )
        speed.measure(["digits"], precisions or ["float32"], lambda: None)
        return {each.contender: each for each in self.results.figures[-len(CONTENDERS) :]}

    def fail(self, script: str, do: str, mode: str, text: str, times: int = 1) -> None:
        """Let a program fail at the first such requests."""
        left = times

        def act(asked: str, request: str, **arguments: Any) -> None:
            nonlocal left
            if (asked, request, arguments.get("mode")) == (script, do, mode) and left:
                left -= 1
                raise ContenderError(text)

        self.act = act


@pytest.fixture
def world() -> World:
    return World()


def test_all_take_turns_and_a_process_serves_all_of_its_modes(world: World) -> None:
    figures = world.measure("float32", "tf32")
    assert all(each.samples == [100.0] * ROUNDS for each in figures.values())
    assert all(each.problem is None for each in figures.values())
    assert figures["torch"].steps == 100
    assert figures["mirrored-fit"].steps == 128  # An epoch at the least.
    assert sorted(world.started) == sorted({each.script for each in CONTENDERS})
    assert world.results.clocks == {"digits, float32": "fast", "digits, tf32": "fast"}
    assert world.results.facts["torch"] == {"version": "1"}
    assert {script for script, do, _ in world.log if do == "kill"} == set(world.started)


def test_each_round_begins_with_another_one(world: World) -> None:
    world.measure()
    asked = [(script, mode) for script, do, mode in world.log if do == "measure"]
    turns, size = asked[len(CONTENDERS) :], len(CONTENDERS)
    names = [(each.script, each.mode) for each in CONTENDERS]
    assert [turns[index * size] for index in range(ROUNDS)] == names[:ROUNDS]


def test_every_mode_is_let_go_before_the_next_precision(world: World) -> None:
    world.measure("float32", "tf32")
    requests = [do for script, do, _ in world.log if script == "torch_"]
    first = requests.index("release")
    assert requests[:first].count("prepare") == 2
    assert requests[first:].count("prepare") == 2


@pytest.mark.parametrize("text", ["ended with status -11: it said nothing", "timed out after 5 s"])
def test_a_crash_costs_one_program_s_figures(world: World, text: str) -> None:
    world.fail("jax_", "measure", "step", text)
    figures = world.measure()
    assert figures["jax"].problem == text
    assert figures["jax"].samples == []
    assert all(figures[each].samples for each in figures if each != "jax")


def test_a_crash_in_a_turn_keeps_the_rounds_before_it(world: World) -> None:
    count = 0

    def act(script: str, do: str, **arguments: Any) -> None:
        nonlocal count
        if (script, do, arguments.get("mode")) == ("torch_", "measure", "graph"):
            count += 1
            if count == 3:  # The first one was to find out how many steps make a round.
                raise ContenderError("ended with status -6: gone")

    world.act = act
    figures = world.measure()
    assert figures["torch-graph"].samples == [100.0]
    assert figures["torch-graph"].problem == "ended with status -6: gone"
    assert figures["torch"].problem == "its process ended in another mode's turn"
    assert world.started.count("torch_") == 1


def test_one_that_crashed_is_started_again_for_the_next(world: World) -> None:
    world.fail("torch_", "prepare", "graph", "ended with status -11: gone")
    figures = world.measure("float32", "bfloat16")
    assert world.started.count("torch_") == 2
    assert figures["torch-graph"].samples == [100.0] * ROUNDS


def test_a_mode_that_fails_leaves_the_other_one_running(world: World) -> None:
    world.fail("torch_", "prepare", "graph", "RuntimeError: no capture")
    figures = world.measure()
    assert figures["torch-graph"].problem == "RuntimeError: no capture"
    assert figures["torch"].samples == [100.0] * ROUNDS
    assert world.started.count("torch_") == 1


def test_a_process_in_which_nothing_works_is_not_used_again(world: World) -> None:
    world.fail("jax_", "prepare", "step", "RuntimeError: an illegal memory access")
    figures = world.measure("float32", "tf32")
    assert world.started.count("jax_") == 2
    assert figures["jax"].samples


def test_missing_peers_are_named_and_not_asked_for_again(world: World) -> None:
    world.missing = {"torch_", "jax_"}
    figures = world.measure("float32", "tf32")
    for name in ("torch", "torch-graph", "jax"):
        problem = figures[name].problem
        assert problem == "not started: ended with status 1: ModuleNotFoundError"
    assert sorted(world.started) == ["jax_", "mirrored_", "products", "torch_"]
    assert figures["mirrored"].samples


def test_no_time_left(world: World) -> None:
    figures = world.measure(seconds=0.0)
    assert {each.problem for each in figures.values()} == {NO_TIME}
    assert world.started == []


def test_answers_have_no_longer_than_what_is_left(world: World) -> None:
    limits = []

    def start(script: str, device: str, limit: float) -> Fake:
        limits.append(limit)
        return Fake(script, [], lambda *_, **__: None)

    Speed(Results(), Deadline(2.0), 1, 0.01, 60.0, "cuda", str, start).measure(
        ["digits"], ["tf32"], lambda: None
    )
    assert limits
    assert all(0 < each <= 2.0 for each in limits)
