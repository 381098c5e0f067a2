"""Steps in ways that a card has to decide between, in turns: what each choice of ours is worth.

Each way changes one choice while a step is recorded and captured, which keeps it from then on.
"""

import argparse
import contextlib
import ctypes
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import mirrored as mr
from benchmarks.gpu.contenders.mirrored_ import Resident
from benchmarks.gpu.workloads import CHECK_STEPS, PRECISIONS, WORKLOADS
from mirrored import devices
from mirrored.backends.cuda import blas
from mirrored.backends.cuda.kernels import reduction_kernels
from mirrored.program import concurrency
from mirrored.program.streamed import graph_launch

ROUNDS, SECONDS = 7, 0.05  # Of each way, and of a turn, about.
AHEAD, TURNS = 8, 50  # Steps that are asked for before the host waits for any, and how often.
_DEFAULT_MATH = 0  # cublasMath_t


@contextlib.contextmanager
def without_graphs() -> Iterator[None]:
    """Launch kernel by kernel."""
    name = "MIRRORED_CUDA_GRAPHS"
    before = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@contextlib.contextmanager
def on_one_stream() -> Iterator[None]:
    """Let no kernel run beside another one, however small they are."""
    with _changed(concurrency, _may_branch=lambda nodes: False):
        yield


@contextlib.contextmanager
def in_two_launches() -> Iterator[None]:
    """Launch what is before the first write of a variable, and the rest, as on several cards."""
    with _changed(graph_launch, may_be_one_launch=lambda launches, backends: False):
        yield


@contextlib.contextmanager
def with_sums_split(least: int) -> Iterator[None]:
    """Let sums of columns be two kernels where a thread would have so many elements."""
    with _changed(reduction_kernels, _SPLIT_FROM=least):
        reduction_kernels._plan.cache_clear()
        try:
            yield
        finally:
            reduction_kernels._plan.cache_clear()


@contextlib.contextmanager
def with_narrow_sums() -> Iterator[None]:
    """Let cuBLAS round parts of a sum to bfloat16 before it adds them."""
    _set_math_mode(_DEFAULT_MATH)
    try:
        yield
    finally:
        _set_math_mode(blas._SUMS_IN_FULL)


def _set_math_mode(mode: int) -> None:
    backend: Any = devices.get_device("GPU:0").backend
    for side in (backend, getattr(backend, "beside", None)):
        handle = getattr(getattr(side, "xp", None), "blas", None)  # A simulated GPU has none.
        if handle is not None:
            handle._ask("cublasSetMathMode", handle._handle, ctypes.c_int(mode))


@contextlib.contextmanager
def _changed(module: Any, **values: Any) -> Iterator[None]:
    before = {name: vars(module)[name] for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


Way = Callable[[], AbstractContextManager[object]]
AS_IT_IS = "as it is"
WAYS: Mapping[str, Way] = {
    AS_IT_IS: contextlib.nullcontext,
    "without graphs": without_graphs,
    "on one stream": on_one_stream,
    "in two launches": in_two_launches,
    "sums of columns split from 8 elements": lambda: with_sums_split(8),
    "sums of columns never split": lambda: with_sums_split(1 << 40),
    "narrow sums in products": with_narrow_sums,
}


def ways(precision: str) -> dict[str, Way]:
    """Return those that may matter in a precision."""
    narrow = precision == "bfloat16"
    return {name: way for name, way in WAYS.items() if narrow or way is not with_narrow_sums}


def in_turns(sessions: Mapping[str, Resident], seconds: float, rounds: int) -> dict[str, float]:
    """Return the median microseconds of a step of each session."""
    steps, taken = {}, {}
    for name, session in sessions.items():
        session.run(AHEAD)
        steps[name] = max(1, round(seconds * 1e6 / _microseconds(session, AHEAD)))
        taken[name] = list[float]()
    for turn in range(rounds):
        names = list(sessions)
        for name in [*names[turn % len(names) :], *names[: turn % len(names)]]:
            sessions[name].run(1)
            taken[name].append(_microseconds(sessions[name], steps[name]))
    return {name: statistics.median(times) for name, times in taken.items()}


def _microseconds(session: Resident, steps: int) -> float:
    began = time.perf_counter()
    session.run(steps)
    return (time.perf_counter() - began) * 1e6 / steps


def of_the_host(session: Resident) -> dict[str, float]:
    """Return the median microseconds of a call for a step, alone and with a wait for its loss."""
    alone, waited = [], []
    for _ in range(TURNS):
        session.run(1)
        began = time.perf_counter()
        session.ask(AHEAD)
        alone.append((time.perf_counter() - began) * 1e6 / AHEAD)
        session.run(1)
        waited.append(_microseconds(session, 1))
    return {"alone": statistics.median(alone), "with a wait": statistics.median(waited)}


def measure(workload: str, precision: str, seconds: float, rounds: int) -> Iterator[str]:
    """Yield what is found of a workload in a precision, in lines."""
    sessions, losses = {}, {}
    for name, way in ways(precision).items():
        with way():
            sessions[name] = Resident(WORKLOADS[workload], precision)
            losses[name] = sessions[name].losses(CHECK_STEPS)
    yield f"{workload}, {precision}: microseconds a step, and its third loss"
    for name, figure in in_turns(sessions, seconds, rounds).items():
        yield f"  {name:40} {figure:10.1f}  {losses[name][-1]!r}"
    for name, figure in of_the_host(sessions[AS_IT_IS]).items():
        yield f"  {f'a call of the host, {name}':40} {figure:10.1f}"


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=["digits", "wide"])
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--quick", action="store_true", help="one short timing")
    parser.add_argument("--simulated", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.simulated:
        mr.config.experimental.set_simulated_gpus(1)
    logging.getLogger("mirrored").setLevel(logging.WARNING)  # Each session says the same.
    length = (0.001, 1) if asked.quick else (SECONDS, ROUNDS)
    for workload in asked.workloads:
        for precision in asked.precisions:
            for line in measure(workload, precision, *length):
                print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
