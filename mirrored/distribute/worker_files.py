"""Files of several workers: the first one writes them, and the others wait and hear how it went."""

from typing import Any

from mirrored.errors import WorkerError
from mirrored.workers import Workers


class WorkerFiles:
    """What workers do about files that are written once; `_files.Company` says what is called.

    Args:
        workers: The workers.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.writes = workers.is_chief

    def agree(self, what: str, error: BaseException | None) -> None:
        """Return when all workers have come here.

        Args:
            what: What is done then, for errors.
            error: What went wrong on this worker.

        Raises:
            WorkerError: Something went wrong on another one, and nothing here.
        """
        reason = None if error is None else f"{type(error).__name__}: {error}"
        reasons = self._workers.gather(reason, what)
        failed = [rank for rank, failure in enumerate(reasons) if failure is not None]
        if error is not None or not failed:
            return
        rank, host = failed[0], self._workers.hosts[failed[0]]
        raise WorkerError(
            f"Worker {rank} on host {host} could not do this for all workers: {what}. Received: "
            f"{reasons[rank]}. Existing files are unchanged.",
            worker=rank,
            host=host,
            what=what,
            reason=str(reasons[rank]),
        )

    def of_writer(self, value: Any, what: str) -> Any:
        """Return the first worker's value.

        Args:
            value: This worker's, a small object.
            what: What errors call it.
        """
        return self._workers.gather(value, what)[0]
