"""The conversation between the driver and a contender: a line of JSON asks, a line answers.

A contender only says how it fits a network; all measuring is here, so it is the same for each.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TextIO

from benchmarks.workloads import (
    CHECK_EPOCHS,
    RESULT_EPOCHS,
    WORKLOADS,
    Array,
    Workload,
    make_data,
)

WARM_STEPS = 8


class Session(Protocol):
    """A network with its initial weights, on so many replicas."""

    def fit(self, data: Any, epochs: int, *, shuffle: bool) -> list[float]:
        """Train on what `load` returned, and return the loss of each epoch."""

    def load(self, x: Array, y: Array) -> Any:
        """Return the data in memory, in the contender's own format."""

    def weights(self) -> list[Array]:
        """Return kernel and bias of each layer."""


class Contender:
    """Answers the driver's requests with a session.

    Args:
        workload: What is trained.
        replicas: On how many replicas.
        make: Makes the session; what it does counts as time to the first step.
        facts: Versions, threads and the like, for the report.
    """

    def __init__(
        self,
        workload: Workload,
        replicas: int,
        make: Callable[[Workload, int], Session],
        facts: Callable[[], dict[str, Any]],
    ) -> None:
        self.workload = workload
        self.replicas = replicas
        self._make = make
        self._facts = facts

    def first_step(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the session and take one step; return the seconds that `fit` took."""
        self.session = self._make(self.workload, self.replicas)
        x, y = make_data(self.workload)
        rows = self.workload.batch
        one_batch = self.session.load(x[:rows], y[:rows])
        started = time.perf_counter()
        self.first = self.session.fit(one_batch, 1, shuffle=False)
        seconds = time.perf_counter() - started
        warm = rows * min(WARM_STEPS, self.workload.steps)
        self._warm = self.session.load(x[:warm], y[:warm])
        self._data = self.session.load(x, y)
        return {"fit_s": seconds, "facts": self._facts()}

    def check(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the losses of the first step and of two epochs after it, in the data's order."""
        return {"losses": self.first + self.session.fit(self._data, CHECK_EPOCHS, shuffle=False)}

    def results(self, request: dict[str, Any]) -> dict[str, Any]:
        """Train three epochs from the initial weights; return losses and weights."""
        session = self._make(self.workload, self.replicas)
        losses = session.fit(session.load(*make_data(self.workload)), RESULT_EPOCHS, shuffle=False)
        return {"losses": losses, "weights": [weight.tolist() for weight in session.weights()]}

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the microseconds of a step, over a `fit` of so many epochs.

        A short one comes before it, because other contenders have had the caches meanwhile.
        """
        epochs = request["epochs"]  # From the driver, so that all processes take as many.
        self.session.fit(self._warm, 1, shuffle=True)
        started = time.perf_counter()
        self.session.fit(self._data, epochs, shuffle=True)
        seconds = time.perf_counter() - started
        return {"us": seconds * 1e6 / (epochs * self.workload.steps)}

    def all_reduce(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the best seconds of an all-reduce of so many bytes, and of a plain copy."""
        reduce: Any = getattr(self.session, "all_reduce", None)
        if reduce is None:
            raise NotImplementedError("there is no all-reduce to measure here")
        once, copy = reduce(request["bytes"])
        best = {"all_reduce_s": float("inf"), "copy_s": float("inf")}
        for _ in range(request["times"]):
            for name, function in (("all_reduce_s", once), ("copy_s", copy)):
                started = time.perf_counter()
                function()
                best[name] = min(best[name], time.perf_counter() - started)
        return best

    def sums(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the seconds of a sum between workers, for each of so many bytes."""
        measured: Any = getattr(self.session, "sums", None)
        if measured is None:
            raise NotImplementedError("there are no workers to measure here")
        return {"seconds": measured(request["sizes"])}


def parse_arguments() -> argparse.Namespace:
    """Return what the driver asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", choices=WORKLOADS, required=True)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--arrays", action="store_true")
    parser.add_argument("--steps-a-call", type=int, default=0)
    parser.add_argument("--steps-a-fit", type=int, default=0)
    parser.add_argument("--fixed-replicas", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--rendezvous", default="")
    return parser.parse_args()


def keep_stdout() -> TextIO:
    """Return the stream for answers; what else is printed goes to stderr from now on."""
    stream = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return stream


def serve(
    contender: Any,
    answers: TextIO,
    forward: Callable[[str], None] = lambda line: None,
    requests: Iterable[str] = sys.stdin,
) -> None:
    """Answer requests until there are no more.

    Args:
        contender: Its public methods are the requests.
        answers: Where answers are written.
        forward: Is given each line before it is done, for the processes of other replicas, and an
            empty one when there are no more.
        requests: Lines of JSON.
    """
    print(json.dumps({"ready": True}), file=answers)
    for line in requests:
        forward(line)
        request = json.loads(line)
        try:
            answer = getattr(contender, request["do"])(request)
        except Exception as error:  # The driver goes on with the others.
            text = " ".join(str(error).split())
            answer = {"error": f"{type(error).__name__}: {text}"[:2000]}
        print(json.dumps(answer), file=answers)
    forward("")
    # Frameworks' threads may not end by themselves.
    if threading.active_count() > 1:
        answers.flush()
        os._exit(0)


def run(
    make: Callable[[Workload, int], Session],
    facts: Callable[[], dict[str, Any]],
    serve: Callable[[Contender, TextIO], None] = serve,
) -> None:
    """Answer the driver for a contender.

    Args:
        make: Makes the session of a workload on so many replicas.
        facts: Versions, threads and the like, for the report.
        serve: Answers requests for the contender, into a stream.
    """
    arguments = parse_arguments()
    answers = keep_stdout()
    serve(Contender(WORKLOADS[arguments.workload], arguments.replicas, make, facts), answers)
