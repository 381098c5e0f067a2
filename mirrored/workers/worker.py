"""A worker: the operations that all workers do together, and what they are for one that is alone.

Each of these calls is made by all workers, in the same order: it returns when all have made it, or
raises an error that says who did not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.errors import WorkerError, WorkersChangedError
from mirrored.workers.background import PendingSum

# Seconds that a call waits for others, as the collectives of one host do.
DEADLINE = 600.0


class Workers:
    """The workers of a job, as one of them sees them: here one without others, who sends nothing.

    Args:
        rank: What the attribute of this name is; so are the others.

    Attributes:
        rank: The number of this worker, from 0 on.
        count: How many there are.
        hosts: The hosts that they run on, by rank.
        local_rank: The number of this worker among those of its host.
        on_several_hosts: Whether sums between some of them go as messages.
        deadline: The seconds that a call may wait for others.
        on_failure: "raise": all others raise WorkerError where a worker fails. "continue": they go
            on where its process has died. "replace": a new process takes its place.
        least: How many workers there must be.
        generation: How often workers were lost, or joined. All other attributes change then.
        vacant: How many workers have died whose place nobody has taken, with "replace".
        welcome: What a process got that was started in place of a worker and has not joined; None:
            it is a worker.

    Example:
        >>> import numpy as np
        >>> from mirrored.workers.worker import Workers
        >>> alone, total = Workers(), np.zeros(2)
        >>> alone.sum_in_order(np.array([1.0, 2.0]), total, "an example")
        >>> total, alone.gather("here", "an example")
        (array([1., 2.]), ['here'])
    """

    def __init__(
        self, rank: int = 0, hosts: tuple[str, ...] = ("localhost",), local_rank: int = 0
    ) -> None:
        self.place(rank, hosts, local_rank)
        self.deadline = DEADLINE
        self.on_failure = "raise"
        self.least = 1
        self.generation = 0
        self.vacant = 0
        self._released: set[int] = set()  # Their processes have not ended yet.
        self.welcome: Any = None

    def place(
        self, rank: int, hosts: tuple[str, ...], local_rank: int, *, on_several_hosts: bool = False
    ) -> None:
        """Set which worker this is, among which."""
        self.rank = rank
        self.count = len(hosts)
        self.hosts = hosts
        self.local_rank = local_rank
        self.on_several_hosts = on_several_hosts

    @property
    def is_chief(self) -> bool:
        """Whether this is worker 0, which writes what is written once."""
        return self.rank == 0

    def go_on(self, policy: str, least: int) -> None:
        """Set `on_failure` and the least number of workers, on all workers.

        Raises:
            FailedPreconditionError: MPI ends the job where a process dies.
            WorkerError: Other workers ask for something else.
        """

    def grow(self, count: int) -> None:
        """Let processes join at the next step, on all workers.

        Args:
            count: How many.

        Raises:
            ValueError: `on_failure` is not "replace".
            WorkerError: Other workers ask for another number.
        """
        if self.on_failure != "replace":
            raise ValueError(
                "Processes can join several workers whose strategy was created with "
                f'on_worker_failure="replace". Received: {self.count} worker(s), '
                f"on_worker_failure={self.on_failure!r}."
            )
        self._require_alike(count, "processes that join", "ask for the same number of processes")
        self.vacant += count

    def release(self, rank: int) -> None:
        """End the process of a worker, on all workers; the others go on.

        Args:
            rank: Its number.

        Raises:
            ValueError: There is no such worker, or the others do not go on.
            WorkerError: Other workers name another one.
            SystemExit: This is the worker.
        """
        is_there = rank in range(self.count)
        if self.on_failure == "raise" or not is_there or self.count <= self.least:
            raise ValueError(
                "A worker can be released where the others go on and at least `min_workers` are "
                f"left. Received: release({rank!r}) of {self.count} worker(s), "
                f"on_worker_failure={self.on_failure!r}, min_workers={self.least}."
            )
        self._require_alike(rank, "a worker that is released", "release the same one")
        self.vacant -= 1  # Its place stays empty.
        self._released.add(rank)
        if rank == self.rank:
            self.leave()

    def _require_alike(self, value: Any, label: str, what: str) -> None:
        """Raise WorkerError where workers give different values.

        Args:
            value: That of this worker.
            label: What errors call the call of all workers.
            what: What all of them must do.
        """
        values = self.gather(value, label)
        if len({*values}) > 1:
            raise WorkerError(f"All workers must {what}. Received: by worker, {values}.")

    def leave(self) -> None:
        """End this process, without which the others go on; one that is alone stays."""

    def require(self, generation: int, what: str) -> None:
        """Raise WorkersChangedError if a step shares its work with workers that have died.

        Args:
            generation: What `generation` was when the work was shared out.
            what: What errors call the call that the step is about to make.
        """
        if generation != self.generation:
            raise WorkersChangedError(
                f"Workers have died, and the step in which {what} was to be made was taken by "
                "nobody. Received: a step that shares its work with them. Take it again: "
                "`mr.distribute.elastic` does.",
                what=what,
                reason="workers died",
            )

    def sum_in_order(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> None:
        """Write the sum over all workers into `out`: the same bits on every worker.

        Those of a host are summed in the order of their ranks, then the hosts in the order of their
        first ones. Floats of 16 bits are summed in float32 and rounded once a level.

        Args:
            vector: What this worker adds, contiguous; it stays as it is, if it is not `out`.
            out: Where the sum goes, of the same shape and dtype.
            label: What errors call it, as in "bucket 2 of 5 of step 17".

        Raises:
            ValueError: The arrays differ in shape or dtype, or one is not contiguous.
            WorkerError: Another worker failed, ended, or made another call.
        """
        check_sum(vector, out)
        self._sum(vector.reshape(-1), out.reshape(-1), label)

    def begin_sum(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> PendingSum:
        """Begin what `sum_in_order` does, on a thread of its own; the worker computes meanwhile.

        Sums are made in the order in which they were begun, before any call that comes after them.

        Args:
            vector: What this worker adds, contiguous; it belongs to the sum until that is over.
            out: Where the sum goes, of the same shape and dtype; so does it.
            label: What errors call it.

        Returns:
            The sum, whose `wait` returns when it is there, or raises a WorkerError.

        Raises:
            ValueError: The arrays differ in shape or dtype, or one is not contiguous.
        """
        check_sum(vector, out)
        return self._begin_sum(vector.reshape(-1), out.reshape(-1), label)

    def _sum(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> None:
        """Compute `sum_in_order` of two vectors."""
        if vector is not out:
            np.copyto(out, vector)

    def _begin_sum(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> PendingSum:
        """Compute `begin_sum` of two vectors."""
        self._sum(vector, out, label)
        pending = PendingSum()
        pending.end()
        return pending

    def gather(self, value: Any, label: str) -> list[Any]:
        """Return a small object of each worker, by rank.

        Args:
            value: What this worker has; it can be pickled.
            label: What errors call it.

        Raises:
            WorkerError: Another worker failed, ended, or made another call.
        """
        return [value]

    def gather_arrays(self, array: NDArray[Any], label: str) -> list[NDArray[Any]]:
        """Return an array of each worker, by rank; their shapes may differ.

        Args:
            array: What this worker has, of the same dtype as the others.
            label: What errors call it.

        Raises:
            WorkerError: Another worker failed, ended, or made another call.
        """
        return [np.array(array)]

    def broadcast(self, arrays: list[NDArray[Any]], label: str) -> None:
        """Write worker 0's values into the arrays of all others.

        Args:
            arrays: Of the same shapes and dtypes on each worker.
            label: What errors call them.

        Raises:
            WorkerError: Another worker failed, ended, or made another call.
        """

    def barrier(self, label: str) -> None:
        """Return when all workers have come here.

        Args:
            label: What the workers do next, for errors.

        Raises:
            WorkerError: Another worker failed, ended, or made another call.
        """

    def check(self, label: str) -> None:
        """Raise where another worker has told that it goes no further; wait for nobody.

        It may be called from any thread, and is by those that wait for what MPI does not know of.

        Args:
            label: What this worker waits for, for errors.

        Raises:
            WorkerError: Another worker failed, or has ended a while ago.
        """

    def failed(self, error: BaseException, step: str | None = None) -> None:
        """Tell all others that this worker goes no further: they raise a WorkerError.

        Args:
            error: What happened.
            step: In which step, as errors name it; None: in none.
        """

    def close(self) -> None:
        """Wait until all others have ended as well, and give back what the calls use."""


def check_sum(vector: NDArray[Any], out: NDArray[Any]) -> None:
    """Check what is to be summed.

    Raises:
        ValueError: It is said what is wrong.
    """
    if vector.shape != out.shape or vector.dtype != out.dtype:
        raise ValueError(
            "The sum over workers must have the shape and dtype of the values. Received: "
            f"{vector.dtype} of shape {vector.shape}, out={out.dtype} of shape {out.shape}."
        )
    if not (vector.flags.c_contiguous and out.flags.c_contiguous):
        raise ValueError(
            "The sum over workers needs contiguous arrays: pass `np.ascontiguousarray` of them. "
            f"Received: strides {vector.strides}, out with strides {out.strides}."
        )
