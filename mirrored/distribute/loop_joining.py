"""Lets processes that replace dead workers join a custom loop, between two steps."""

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._host_streams import host_streams, set_host_streams
from mirrored._logging import logger
from mirrored.distribute.finished_runs import finished_runs
from mirrored.distribute.on_read_variables import SyncOnReadVariable
from mirrored.errors import WorkerError
from mirrored.ops.random import generators, global_state, restore_global_state

_WHAT = "the state of a run"  # As errors of workers call it.


def join_loop(strategies: Sequence[Any]) -> None:
    """Start processes in place of dead workers, or join the others in a new process.

    Args:
        strategies: Those that replace workers, in the order in which they were made.
    """
    workers = strategies[0].workers
    is_new = workers.welcome is not None
    if is_new:
        workers.join()
    elif workers.vacant < 1 or not workers.refill(
        (finished_runs.results, None), finished_runs.refusal
    ):
        return
    gc.collect()  # Of what nobody uses any more.
    streams = generators()
    variables = [variable for strategy in strategies for variable in strategy.own_variables()]
    if not hand_over(workers, variables, len(streams), is_new=is_new):
        return
    seeds = [generator.state for generator in streams]
    state = global_state(), host_streams(), seeds
    of_all, of_host, seeds = workers.gather(state, _WHAT)[0]
    require_state(workers, is_new=is_new)
    if is_new:
        restore_global_state(of_all)
        set_host_streams(of_host)
        for generator, seed in zip(streams, seeds, strict=True):
            generator.restore(seed)
    for strategy in strategies:
        strategy.reform()


def hand_over(workers: Any, variables: Sequence[Any], others: int = 0, *, is_new: bool) -> bool:
    """Give new processes the values of variables; return whether these have made the same ones.

    A new process that has not ends, and no other one is started.

    Args:
        workers: The workers.
        variables: The variables, in the order in which they were made.
        others: The number of other things that must be the same.
        is_new: Whether this is a new process.
    """
    arrays = [_value(variable) for variable in variables]
    described = [f"{variable.name} {variable.shape}" for variable in variables], others
    # There may be fewer replicas before a new process joins, and so fewer rows.
    shapes = [array.shape for array in arrays]
    of_each = workers.gather((described, shapes), _WHAT)
    require_state(workers, is_new=is_new)
    if any(theirs != of_each[0][0] for theirs, _ in of_each):
        finished_runs.refusal = "a program that makes variables in its steps"
        if workers.is_chief:
            logger.warning("New processes end again: they belong to %s.", finished_runs.refusal)
        if is_new:
            workers.leave()
        return False
    if is_new:
        sizes = zip(of_each[0][1], arrays, strict=True)
        arrays = [np.empty(shape, array.dtype) for shape, array in sizes]
    workers.broadcast([array.reshape(-1).view(np.uint8) for array in arrays], _WHAT)
    require_state(workers, is_new=is_new)
    for variable, array in zip(variables, arrays, strict=True):
        if isinstance(variable, SyncOnReadVariable):
            variable.keep(array)
        elif is_new:
            for copy in variable.copies:
                copy.assign(array)
    return True


def require_state(workers: Any, *, is_new: bool) -> None:
    """Raise WorkerError if all that had the state of the run died before new processes had it.

    Args:
        workers: The workers.
        is_new: Whether this is a new process; these come behind all others.
    """
    if is_new and workers.is_chief:
        raise WorkerError(
            "All workers died that had the state of the run. Received: new processes alone, which "
            "had not got it yet. Continue from a checkpoint.",
            what=_WHAT,
            reason="workers died",
        )


def _value(variable: Any) -> NDArray[Any]:
    """Return what all workers have of a variable: its value, or a row for each replica."""
    if isinstance(variable, SyncOnReadVariable):
        return variable.rows()
    return np.array(variable.copies[0].numpy(), order="C")
