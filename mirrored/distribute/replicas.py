"""Running one function on every replica, one at a time, meeting at every merge call.

The first replica has its caller's thread and the others threads of their own, so that each can stop
in the middle of a function, but only one runs at any time: users' code has no data races, and the
placement log is the same every time.
"""

import contextlib
import contextvars
import functools
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mirrored import _interrupt
from mirrored._logging import logger
from mirrored._threads import interrupt, join_all, new_thread, start
from mirrored.distribute.context import MergeCall, ReplicaContext, enter
from mirrored.distribute.per_replica import regroup, select
from mirrored.distribute.replica_attributes import ReplicaVariables, shared_by_replicas
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.ops.hooks import add_listener
from mirrored.ops.rng_state import ShardPosition, shard_position

if TYPE_CHECKING:
    from mirrored.distribute.replica_tensors import ReplicaTensors

Function = Callable[..., Any]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
MergeRequest = tuple[Function, tuple[Any, ...], dict[str, Any]]

# As a semaphore, in a third of the time: who has a turn takes it.
_Turn = SimpleQueue[None]

_OFTEN = 0.5  # Seconds after which who waits looks whether it was interrupted.


class _Stopped(BaseException):
    """Unwinds a waiting replica after another one failed; nobody outside this module sees it."""


def run_replicas(
    strategy: StrategyBase,
    fn: Function,
    arguments: Sequence[Arguments],
    positions: Sequence[ShardPosition],
) -> list[Any]:
    """Call `fn` once a replica and return the results, by replica.

    Raises:
        RuntimeError: The replicas made different numbers of merge calls.
        BaseException: What `fn` raises in the first replica to fail, with a note that names it.
    """
    variables = shared_by_replicas(ReplicaVariables())
    if len(arguments) == 1:
        with variables:
            return [_run_alone(strategy, fn, arguments[0], positions[0])]
    from mirrored.distribute.replica_tensors import ReplicaTensors  # One replica needs it not.

    tensors = ReplicaTensors(arguments)
    with variables:  # The replicas' contexts are copies of this one.
        replicas = [
            _Replica(strategy, fn, args, position, tensors)
            for args, position in zip(arguments, positions, strict=True)
        ]
    relay = _Relay(strategy, replicas)
    try:
        relay.run()
        return [replica.result for replica in relay.replicas]
    except KeyboardInterrupt:  # Wherever the caller was: another replica may be running.
        relay.patience = _interrupt.PATIENCE
        raise
    finally:
        try:
            relay.stop()
        except BaseException:  # An interrupt must not leave replicas that wait for ever.
            relay.stop()
            raise


def _run_alone(
    strategy: StrategyBase, fn: Function, arguments: Arguments, position: ShardPosition
) -> Any:
    context = ReplicaContext(strategy, 0, merge_alone(strategy))
    with enter(strategy, context), strategy.replica_scope(0), shard_position(position):
        return fn(*arguments[0], **arguments[1])


def merge_alone(strategy: StrategyBase) -> MergeCall:
    """Return what a merge call does where there is one replica: it waits for nobody."""

    def merge(merge_fn: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with enter(strategy, None):
            merged = merge_fn(strategy, *args, **kwargs)
            return None if merged is None else select(0, merged)

    return merge


def _merge(strategy: StrategyBase, replicas: Sequence["_Replica"]) -> None:
    """Call the function that all replicas wait for and hand each of them its part."""
    requests = [replica.request for replica in replicas if replica.request is not None]
    for replica in replicas:
        replica.request = None
    merge_fn = requests[0][0]
    args = regroup([request[1] for request in requests])
    kwargs = regroup([request[2] for request in requests])
    with enter(strategy, None):
        merged = merge_fn(strategy, *args, **kwargs)
    for i, replica in enumerate(replicas):
        replica.merged = select(i, merged)


class _Replica:
    """One replica's call of the function: what it asks of the others, and what came of it."""

    def __init__(
        self,
        strategy: StrategyBase,
        fn: Function,
        arguments: Arguments,
        position: ShardPosition,
        tensors: "ReplicaTensors",
    ) -> None:
        self.number = position.replica
        self.began = 0.0  # When it last went on.
        self.resume = _Turn()
        self.waiting = False
        self.request: MergeRequest | None = None
        self.merged: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._strategy = strategy
        self._function = fn
        self._arguments = arguments
        self._position = position
        self._tensors = tensors
        # What is in force here - tapes, device scopes - is in force in the replica.
        self._context = contextvars.copy_context()

    def call(self, merge: MergeCall) -> None:
        """Run the function to its end and keep what it returns or raises."""
        self.began = time.monotonic()
        try:
            self.result = self._context.run(self._call, merge)
        except _Stopped:
            pass
        except BaseException as error:
            self.error = error

    def _call(self, merge: MergeCall) -> Any:
        args, kwargs = self._arguments
        dependence = self._tensors.dependence
        context = ReplicaContext(self._strategy, self.number, merge, dependence)
        with (
            enter(self._strategy, context),
            self._strategy.replica_scope(self.number),
            shard_position(self._position),
        ):
            add_listener(self._tensors.listener(self.number))
            result = self._function(*args, **kwargs)
            self.check(result)
            return result

    def check(self, structure: Any) -> None:
        """Raise RuntimeError where a structure has a tensor of another replica."""
        self._tensors.check(structure, self.number)


class _Relay:
    """Hands the turn from replica to replica, and back to the caller after the last one.

    Switching threads is what several replicas cost beside their work. So the turn goes straight
    to the next replica; a thread whose replica has ended runs the next one if that is new; and the
    caller is such a thread too, which merges where its own replica waits for that.
    """

    def __init__(self, strategy: StrategyBase, replicas: Sequence[_Replica]) -> None:
        self.replicas = replicas
        self._strategy = strategy
        self._threads: list[threading.Thread] = []
        self._caller = _Turn()
        self._home = threading.get_ident()
        # Merges run in it: in the caller's own, its replica does.
        self._outside = contextvars.copy_context()
        self._stopping = False
        self._failure: BaseException | None = None  # Of a merge, or of the wait for it.
        # Seconds that a replica has to end after an interrupt of the caller; None: there was none.
        self.patience: float | None = None

    def run(self) -> None:
        """Run all replicas to their ends; raises what one of them, or a merge, raised."""
        self._run_from(self.replicas[0])
        self._end_round()

    def _end_round(self) -> None:
        """Wait until each replica is at its next merge call or its end, and merge."""
        self._wait_for_replicas()
        for error in (self._failure, *(replica.error for replica in self.replicas)):
            if error is not None:
                try:
                    raise error
                finally:
                    del error  # Its traceback leads here: a cycle would keep the call's tensors.
        waiting = [replica.number for replica in self.replicas if replica.waiting]
        if len(waiting) == len(self.replicas):
            self._outside.run(_merge, self._strategy, self.replicas)
        elif waiting:
            raise RuntimeError(
                "Some replicas made a different number of replica_context().merge_call() calls. "
                f"Received: replicas {waiting} wait in one, the others have ended. All replicas "
                "must make the same calls."
            )

    def stop(self) -> None:
        """Unwind the replicas that wait, one after the other; return when all threads ended."""
        self._stopping = True
        for replica in self.replicas:
            waited = replica.waiting
            # Also where it does not wait: after an interrupt it may be about to.
            replica.resume.put(None)
            if waited:
                self._wait_for_replicas()
        for thread in self._threads:
            # One that an interrupt of `start` left unborn runs nothing when it comes.
            if thread.is_alive():
                if self.patience is not None:
                    self._end_interrupted(thread)
                else:
                    thread.join()
        for replica in self.replicas:
            replica.error = None  # What was raised while unwinding has nobody to go to.
        self._failure = None

    def _wait_for_replicas(self) -> None:
        """Wait until the turn is the caller's again; an interrupt that is overdue ends it."""
        _began = time.monotonic()  # Reports of stalls read it.
        try:
            while True:
                with contextlib.suppress(Empty):
                    return self._caller.get(timeout=_OFTEN)
                if _interrupt.is_overdue():
                    _interrupt.deliver()
        except BaseException:
            self.patience = _interrupt.PATIENCE
            raise

    def _end_interrupted(self, thread: threading.Thread) -> None:
        """Interrupt the replica that a thread runs too; what Python cannot interrupt is left."""
        patience = self.patience or 0.0
        self.patience = 0.0  # Another interrupt leaves it at once.
        interrupt(thread)
        if join_all([thread], patience):
            from mirrored._stalls import whereabouts

            logger.warning(
                "A replica did not end %.4g seconds after an interrupt, and is left in code that "
                "Python cannot interrupt: %s. It ends when that returns.\n%s",
                *(patience, *whereabouts(thread)),
            )

    def _start_thread(self, first: _Replica) -> None:
        thread = new_thread(f"mirrored-replica-{first.number}", self._run_from, first)
        self._threads.append(thread)  # First: an interrupt of `start` must not lose it.
        start(thread)

    def _run_from(self, first: _Replica) -> None:
        replica: _Replica | None = first
        while replica is not None and not self._stopping:
            replica.call(functools.partial(self._wait_for_merge, replica))
            replica = self._pass_turn(replica)

    def _pass_turn(self, replica: _Replica) -> _Replica | None:
        """Let the next replica run; return it where it has no thread yet, else None."""
        number = replica.number + 1
        if self._stopping or replica.error is not None or number == len(self.replicas):
            self._caller.put(None)
            return None
        following = self.replicas[number]
        if not following.waiting:
            return following
        following.resume.put(None)
        return None

    def _wait_for_merge(
        self,
        replica: _Replica,
        merge_fn: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        replica.check((args, kwargs))
        if not self._stopping:
            replica.request = (merge_fn, args, kwargs)
            replica.waiting = True
            try:
                following = self._pass_turn(replica)
                if following is not None:
                    self._start_thread(following)
                if threading.get_ident() == self._home:
                    self._merge_here()
                else:
                    replica.resume.get()
            finally:  # Whatever ends this, such as an interrupt: nobody may wait for it any more.
                replica.waiting = False
        if self._stopping:
            raise _Stopped
        replica.began = time.monotonic()
        merged, replica.merged = replica.merged, None
        return merged

    def _merge_here(self) -> None:
        """Merge in the middle of the caller's own replica, whose function sees no error of that."""
        try:
            self._end_round()
        except BaseException as error:
            self._failure = error
            self._stopping = True
