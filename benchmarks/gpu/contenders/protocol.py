"""What a contender on the GPU answers: it prepares sessions, measures them and lets them go.

The conversation is that of the host's benchmark, a line of JSON each way.
"""

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any, Protocol

from benchmarks.contenders.protocol import keep_stdout, serve
from benchmarks.gpu.workloads import CHECK_STEPS, WORKLOADS
from benchmarks.workloads import Workload

WARM_STEPS = 3


class Session(Protocol):
    """A network with its initial weights and a batch on the device."""

    def losses(self, steps: int) -> list[float]:
        """Take so many steps; return the loss of each, or none where they tell nothing."""

    def run(self, steps: int) -> int:
        """Take steps, wait until the device has done them, and return how many there were."""


# make(workload, precision, mode)
Make = Callable[[Workload, str, str], Session]


class Contender:
    """Answers the driver's requests with sessions, one for each mode.

    Args:
        make: Makes a session.
        facts: Versions and the like, for the report.
    """

    def __init__(self, make: Make, facts: Callable[[], dict[str, Any]]) -> None:
        """Begin without sessions."""
        self._make = make
        self._facts = facts
        self._sessions: dict[str, Session] = {}

    def facts(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the facts."""
        return {"facts": self._facts()}

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make a mode's session; return the seconds of that and the losses of its first steps."""
        started = time.perf_counter()
        mode = request["mode"]
        workload = WORKLOADS[request["workload"]]
        self._sessions[mode] = self._make(workload, request["precision"], mode)
        losses = self._sessions[mode].losses(CHECK_STEPS)
        return {"losses": losses, "seconds": time.perf_counter() - started}

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the microseconds of a step, over so many that end with the device's last.

        Some come before them, because others have had the device meanwhile.
        """
        session = self._sessions[request["mode"]]
        session.run(WARM_STEPS)
        started = time.perf_counter()
        steps = session.run(request["steps"])
        return {"us": (time.perf_counter() - started) * 1e6 / steps}

    def release(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forget all sessions and the memory that they have."""
        self._sessions.clear()
        gc.collect()
        return {}


def parse_arguments() -> argparse.Namespace:
    """Return what the driver asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    return parser.parse_args()


def run(make: Make, facts: Callable[[], dict[str, Any]]) -> None:
    """Answer the driver until there are no more requests."""
    answers = keep_stdout()
    serve(Contender(make, facts), answers)
