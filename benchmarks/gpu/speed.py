"""Measures a step of every contender in turns, each in a process that may fail by itself.

A process serves all workloads and precisions, since to start one takes longer than to measure;
one that crashes or hangs is started again for the next.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.gpu.parts import Deadline
from benchmarks.gpu.results import (
    CONTENDERS,
    FIT,
    Contender,
    Figure,
    Results,
    compare_losses,
)
from benchmarks.gpu.workloads import WORKLOADS
from benchmarks.processes import ContenderError, Process

SCRIPTS = Path(__file__).resolve().parent / "contenders"
FIRST_STEPS = 10  # To find out how many make a round.
MOST_STEPS = 20_000
NO_TIME = "not run: no time was left"
# What tells a program where its libraries and its card are; the driver's variables that change
# speed are taken away from all.
_KEPT = ("CUDA_VISIBLE_DEVICES", "CUDA_PATH", "CUDA_HOME", "CUDA_ROOT", "PYTHONPATH")
# Without them a framework takes all of the card, and leaves none to the others.
_SHARING = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "MIRRORED_FORCE_GPU_ALLOW_GROWTH": "true"}


class Server(Protocol):
    """A contender's process."""

    limit: float

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Hand it a request, and return its answer."""

    def kill(self) -> None:
        """End it."""


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def start(script: str, device: str, limit: float) -> Server:
    """Start one of the programs of `contenders/`.

    Raises:
        ContenderError: It did not come up.
    """
    variables = {name: os.environ[name] for name in _KEPT if name in os.environ} | _SHARING
    settings = [f"{name}={value}" for name, value in variables.items()]
    program = [sys.executable, str(SCRIPTS / f"{script}.py"), "--device", device]
    return Process(["/usr/bin/env", *settings, *program], limit)


@dataclass
class Speed:
    """Measures, and keeps the processes that it has started.

    Attributes:
        results: Where figures go.
        deadline: When all has to be over.
        rounds: How often each contender has its turn.
        seconds: How long a turn is, about.
        limit: The seconds that an answer may take.
        device: "cuda", or "cpu" to try the programs themselves.
        card: What `clock` is asked for.
        clock: Returns the card's state.
        start: Starts a program.
    """

    results: Results
    deadline: Deadline
    rounds: int
    seconds: float
    limit: float
    device: str
    clock: Callable[[], str]
    start: Callable[[str, str, float], Server] = start
    _servers: dict[str, Server] = field(default_factory=dict)
    _absent: dict[str, str] = field(default_factory=dict)

    def measure(
        self, workloads: Sequence[str], precisions: Sequence[str], written: Callable[[], None]
    ) -> None:
        """Measure all of these; call `written` whenever one workload and precision is done."""
        try:
            for workload in workloads:
                for precision in precisions:
                    self._measure_together(workload, precision)
                    written()
        finally:
            for server in self._servers.values():
                server.kill()

    def _measure_together(self, workload: str, precision: str) -> None:
        say(f"  {workload}, {precision}")
        figures = [Figure(contender.name, workload, precision) for contender in CONTENDERS]
        self.results.figures += figures
        both = list(zip(CONTENDERS, figures, strict=True))
        for contender, figure in both:
            self._try(contender, figure, self._prepare)
        compare_losses(figures)
        for index in range(self.rounds):
            # Another one begins each round, so that none always follows the same one.
            for contender, figure in [*both[index % len(both) :], *both[: index % len(both)]]:
                if figure.problem is None:
                    self._try(contender, figure, self._take_turn)
        self.results.clocks[f"{workload}, {precision}"] = self.clock()
        worked = {contender.script for contender, figure in both if figure.problem is None}
        for script, server in list(self._servers.items()):
            try:
                server.ask("release")
            except ContenderError:
                self._drop(script)
            # After some errors the device refuses all that follows in a process.
            if script not in worked:
                self._drop(script)

    def _try(
        self, contender: Contender, figure: Figure, action: Callable[[Contender, Figure], None]
    ) -> None:
        """Do something with a contender, and note why where it fails."""
        if contender.script in self._absent:
            figure.problem = self._absent[contender.script]
        elif not self.deadline.left():
            figure.problem = NO_TIME
        else:
            try:
                action(contender, figure)
            except ContenderError as error:
                say(f"    {contender.name}: {error}")
                figure.problem = str(error)
                self._drop_if_ended(contender.script)

    def _prepare(self, contender: Contender, figure: Figure) -> None:
        server = self._server(contender)
        asked = {"mode": contender.mode, "workload": figure.workload}
        answer = server.ask("prepare", precision=figure.precision, **asked)
        figure.losses, figure.prepare_s = answer["losses"], answer["seconds"]
        step = server.ask("measure", mode=contender.mode, steps=FIRST_STEPS)["us"]
        wanted = round(self.seconds * 1e6 / step)
        least = WORKLOADS[figure.workload].steps if contender is FIT else 3
        figure.steps = max(least, min(MOST_STEPS, wanted))

    def _take_turn(self, contender: Contender, figure: Figure) -> None:
        if contender.script not in self._servers:
            raise ContenderError("its process ended in another mode's turn")
        server = self._server(contender)
        answer = server.ask("measure", mode=contender.mode, steps=figure.steps)
        figure.samples.append(answer["us"])

    def _server(self, contender: Contender) -> Server:
        """Return a contender's process, started where it is not running."""
        limit = min(self.limit, max(1.0, self.deadline.left()))
        script = contender.script
        if script not in self._servers:
            say(f"    starting {script}")
            try:
                self._servers[script] = self.start(script, self.device, limit)
            except ContenderError as error:
                self._absent[script] = f"not started: {error}"
                raise ContenderError(self._absent[script]) from error
            self.results.facts[contender.module] = self._servers[script].ask("facts")["facts"]
        self._servers[script].limit = limit
        return self._servers[script]

    def _drop_if_ended(self, script: str) -> None:
        """Forget a process that answers no more, so that the next who needs it starts it again."""
        if script in self._servers:
            try:
                self._servers[script].ask("facts")
            except ContenderError:
                self._drop(script)

    def _drop(self, script: str) -> None:
        server = self._servers.pop(script, None)
        if server is not None:
            server.kill()
