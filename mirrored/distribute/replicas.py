"""Running one function on every replica, one at a time, meeting at every merge call.

Each replica has a thread, so that it can stop in the middle of a function, but only one runs at
any time: users' code has no data races, and the placement log is the same every time.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mirrored import devices
from mirrored.devices import Device
from mirrored.distribute.context import ReplicaContext, enter
from mirrored.distribute.values import regroup, select
from mirrored.ops.random import ShardPosition, shard_position

if TYPE_CHECKING:
    from mirrored.distribute.strategy import Strategy

Function = Callable[..., Any]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
MergeRequest = tuple[Function, tuple[Any, ...], dict[str, Any]]


class _Stopped(BaseException):
    """Unwinds a waiting replica after another one failed; nobody outside this module sees it."""


def run_replicas(
    strategy: "Strategy",
    fn: Function,
    arguments: Sequence[Arguments],
    positions: Sequence[ShardPosition],
) -> list[Any]:
    """Call `fn` once a replica and return the results, by replica.

    Args:
        strategy: whose replicas run.
        fn: the function.
        arguments: its arguments, by replica.
        positions: where each replica's examples stand in the global batch.

    Raises:
        RuntimeError: the replicas made different numbers of merge calls.
        BaseException: what `fn` raises in the first replica to fail, with a note that names it.
    """
    if len(arguments) == 1:
        return [_run_alone(strategy, fn, arguments[0], positions[0])]
    replicas = [
        _Replica(strategy, device, fn, each, position)
        for device, each, position in zip(strategy.devices, arguments, positions, strict=True)
    ]
    try:
        while True:
            for replica in replicas:
                replica.proceed()
            waiting = [replica for replica in replicas if replica.request is not None]
            if not waiting:
                return [replica.result for replica in replicas]
            if len(waiting) < len(replicas):
                raise RuntimeError(
                    "Some replicas made a different number of replica_context().merge_call() "
                    f"calls. Received: replicas {[r.position.replica for r in waiting]} wait in "
                    "one, the others have ended. Make every call in all replicas."
                )
            _merge(strategy, replicas)
    finally:
        for replica in replicas:
            replica.stop()


def _run_alone(
    strategy: "Strategy", fn: Function, arguments: Arguments, position: ShardPosition
) -> Any:
    def merge(merge_fn: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with enter(strategy, None):
            return select(0, merge_fn(strategy, *args, **kwargs))

    with (
        enter(strategy, ReplicaContext(strategy, 0, merge)),
        strategy.replica_device_scope(0),
        shard_position(position),
    ):
        return fn(*arguments[0], **arguments[1])


def _merge(strategy: "Strategy", replicas: Sequence["_Replica"]) -> None:
    """Call the function that all replicas wait for and hand each of them its part."""
    requests = [replica.take_request() for replica in replicas]
    merge_fn = requests[0][0]
    args, kwargs = regroup([(request[1], request[2]) for request in requests])
    with enter(strategy, None):
        merged = merge_fn(strategy, *args, **kwargs)
    for i, replica in enumerate(replicas):
        replica.merged = select(i, merged)


class _Replica:
    """One replica's thread, which runs only between `proceed` and its next merge call or end."""

    def __init__(
        self,
        strategy: "Strategy",
        device: Device,
        fn: Function,
        arguments: Arguments,
        position: ShardPosition,
    ) -> None:
        self.position = position
        self.result: Any = None
        self.merged: Any = None
        self.request: MergeRequest | None = None
        self._device = device
        self._error: BaseException | None = None
        self._resume = threading.Semaphore(0)
        self._paused = threading.Semaphore(0)
        self._stopping = False
        context = ReplicaContext(strategy, position.replica, self._wait_for_merge)

        def body() -> Any:
            with enter(strategy, context), devices.device(device), shard_position(position):
                return fn(*arguments[0], **arguments[1])

        self._thread: threading.Thread | None = threading.Thread(
            target=self._run,
            # What is in force here - tapes, device scopes - is in force in the replicas.
            args=(contextvars.copy_context(), body),
            name=f"mirrored-replica-{position.replica}",
            daemon=True,
        )

    def proceed(self) -> None:
        """Run to the next merge call or to the end; raises what the function raised."""
        if self._thread is not None and not self._thread.ident:
            self._thread.start()
        else:
            self._resume.release()
        self._paused.acquire()
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error  # Its traceback leads here: a cycle would keep the call's tensors.

    def take_request(self) -> MergeRequest:
        """Return what the merge call was given, and forget it."""
        request, self.request = self.request, None
        if request is None:
            raise RuntimeError("A replica that does not wait has nothing to merge.")
        return request

    def stop(self) -> None:
        """Unwind the thread if it waits, wait for its end, and let go of everything."""
        thread, self._thread = self._thread, None
        if thread is not None and thread.ident:
            self._stopping = True
            self._resume.release()
            thread.join()
        self._error = None  # One that was raised while unwinding has nobody to go to.

    def _run(self, context: contextvars.Context, body: Callable[[], Any]) -> None:
        try:
            self.result = context.run(body)
        except _Stopped:
            pass
        except BaseException as error:
            error.add_note(
                f"Raised in replica {self.position.replica} on {self._device.full_name}."
            )
            self._error = error
        finally:
            self._paused.release()

    def _wait_for_merge(
        self, merge_fn: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self.request = (merge_fn, args, kwargs)
        self._paused.release()
        self._resume.acquire()
        if self._stopping:
            raise _Stopped
        merged, self.merged = self.merged, None
        return merged
