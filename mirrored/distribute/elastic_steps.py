"""Steps of custom training loops that survive the death of workers."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from mirrored import _nest
from mirrored.data.dataset_iterators import PositionedIterator
from mirrored.distribute.finished_runs import finished_runs
from mirrored.distribute.loop_joining import join_loop
from mirrored.distribute.multi_worker_strategy import reform_all, that_go_on
from mirrored.distribute.per_replica import PerReplica
from mirrored.errors import WorkerError, WorkersChangedError
from mirrored.ops.random import mark_streams
from mirrored.program.variable_access import noting_commits
from mirrored.variables.device_variable import Undone

P = ParamSpec("P")
R = TypeVar("R")
Iterators: TypeAlias = Sequence[PositionedIterator]


def elastic(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that takes a step again, on the workers that are left, where others die.

    The step is taken by all workers that are left or by none: variables, random streams and the
    positions of iterators are set to what they were, and the replicas of the dead workers are
    shared out, before the function is called again. Its result is the commit: what a call has
    returned stays. With `on_worker_failure="raise"` it is called once. With "replace" new processes
    join before a call: they get the results of those before, which they skip, and the values of
    all variables of the strategy, which the program makes before its first step.

    Args:
        function: Takes one step on all replicas. Batches come from iterators over distributed
            datasets among its arguments, or in lists, tuples and dicts there. Of what it calls,
            one recorded function may write variables, and it is called last.

    Raises:
        ValueError: The position of an iterator is not known, as of a generator; or an argument has
            values of each replica, such as a batch.
        WorkerError: Workers have died after a recorded function wrote variables, so that the step
            cannot be taken again; or fewer than `min_workers` are left.

    Example:
        >>> import mirrored as mr
        >>> strategy = mr.distribute.MultiWorkerMirroredStrategy(on_worker_failure="continue")
        >>> with strategy.scope():
        ...     total = mr.Variable(0.0)
        >>> @mr.function
        ... def add(batch):
        ...     sums = strategy.run(mr.reduce_sum, (batch,))
        ...     total.assign_add(strategy.reduce("sum", sums, axis=None))
        >>> @mr.distribute.elastic
        ... def step(batches):
        ...     add(next(batches))
        >>> dataset = mr.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(2)
        >>> batches = iter(strategy.experimental_distribute_dataset(dataset))
        >>> step(batches), step(batches), float(total)
        (None, None, 10.0)
    """

    def taken(args: Any, kwargs: Any, strategies: Sequence[Any], iterators: Iterators) -> R:
        if strategies[0].replaces_workers:
            join_loop(strategies)
        marks = [iterator.mark() for iterator in iterators]
        while True:
            back = mark_streams()
            with noting_commits() as commits:
                try:
                    with Undone().after_failure():
                        return function(*args, **kwargs)
                except WorkersChangedError as error:
                    if commits:
                        raise WorkerError(
                            "Workers have died after a part of a step was taken. Received: a "
                            f"function that calls {' and '.join(commits)}, which had written "
                            "variables by then. Put all of the step into one recorded function, "
                            "and call it last; and continue from a checkpoint.",
                            what=error.what,
                            reason=error.reason,
                        ) from error
            back()
            reform_all()
            for go_back in marks:
                go_back()

    @wraps(function)
    def step(*args: P.args, **kwargs: P.kwargs) -> R:
        strategies = that_go_on()
        if not strategies:
            return function(*args, **kwargs)
        leaves = _nest.flatten((args, kwargs))
        if any(isinstance(leaf, PerReplica) for leaf in leaves):
            raise ValueError(
                "A batch that was taken before an elastic step cannot be shared out again where "
                "workers die. Received: arguments with values of each replica. Pass the iterator, "
                "as of `iter(dataset)`, and call `next` on it within the step."
            )
        iterators = [leaf for leaf in leaves if isinstance(leaf, PositionedIterator)]
        if not strategies[0].replaces_workers:
            return taken(args, kwargs, strategies, iterators)

        def ended() -> Any:
            result, error = None, None
            try:
                result = taken(args, kwargs, strategies, iterators)
            except StopIteration as end:  # The data have ended: no failure.
                error = end
            return result, error, [iterator.state for iterator in iterators]

        result: R
        was_over, (result, error, places) = finished_runs.run(strategies[0].workers, ended)
        if was_over:
            for iterator, place in zip(iterators, places, strict=True):
                iterator.restore(place)
        if error is not None:
            raise error
        return result

    return step
