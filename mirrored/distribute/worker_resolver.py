"""Which workers there are, and which this is: what MPI says, in TensorFlow's words.

TensorFlow is told by the environment variable `TF_CONFIG`, or by an object. Here MPI starts the
workers and connects them, so both are only held against what it says.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mirrored.workers import Workers

_VARIABLE = "TF_CONFIG"
_ADVICE = (
    "Start the workers with MPI, as in `mpiexec -n 4 python train.py`, which numbers the "
    f"workers, and leave `{_VARIABLE}` and `cluster_resolver` out."
)


class ClusterSpec:
    """The hosts of all workers, asked for as TensorFlow's `ClusterSpec` is.

    Args:
        cluster: By type of task, of which there is one here: the host of each.

    Example:
        >>> spec = ClusterSpec({"worker": ["a", "b"]})
        >>> spec.as_dict(), spec.jobs, spec.num_tasks("worker"), spec.task_address("worker", 1)
        ({'worker': ['a', 'b']}, ['worker'], 2, 'b')
    """

    def __init__(self, cluster: Mapping[str, Sequence[str]]) -> None:
        self._cluster = {job: list(hosts) for job, hosts in cluster.items()}

    @property
    def jobs(self) -> list[str]:
        """The types of tasks."""
        return list(self._cluster)

    def as_dict(self) -> dict[str, list[str]]:
        """Return the hosts by type of task."""
        return {job: list(hosts) for job, hosts in self._cluster.items()}

    def num_tasks(self, job_name: str) -> int:
        """Return how many tasks of a type there are; ValueError where there is no such type."""
        return len(self.job_tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Return the numbers of the tasks of a type; errors as for `num_tasks`."""
        return list(range(self.num_tasks(job_name)))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Return the host of a task; ValueError where there is no such task."""
        tasks = self.job_tasks(job_name)
        if task_index not in range(len(tasks)):
            raise ValueError(
                f"No task with index {task_index!r} in job {job_name!r}: there are {len(tasks)}."
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str]:
        """Return the hosts of the tasks of a type; errors as for `num_tasks`."""
        if job_name not in self._cluster:
            raise ValueError(f"No such job in cluster: {job_name!r}. There are {self.jobs}.")
        return list(self._cluster[job_name])

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._cluster)

    def __eq__(self, other: object) -> bool:
        """Return whether another one, or a dict, says the same."""
        return self._cluster == (other._cluster if isinstance(other, ClusterSpec) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the text that makes it."""
        return f"ClusterSpec({self._cluster!r})"


class WorkerResolver:
    """Says which worker this is, and which there are, as TensorFlow's resolvers do.

    Args:
        workers: The workers.

    Example:
        >>> import mirrored as mr
        >>> resolver = mr.distribute.MultiWorkerMirroredStrategy().cluster_resolver
        >>> resolver.task_type, resolver.task_id
        ('worker', 0)
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    @property
    def task_type(self) -> str:
        """What this is: "worker", as all are. The first one is the chief."""
        return "worker"

    @property
    def task_id(self) -> int:
        """The number of this worker, counted from 0."""
        return self._workers.rank

    def cluster_spec(self) -> ClusterSpec:
        """Return the hosts of the workers, by their numbers."""
        return ClusterSpec({"worker": self._workers.hosts})


def check_resolver(resolver: Any, workers: Workers) -> None:
    """Raise ValueError where a resolver, or `TF_CONFIG`, says something else than MPI.

    Args:
        resolver: An object as TensorFlow's resolvers are; None: `TF_CONFIG` is asked.
        workers: The workers, as MPI connects them.

    Raises:
        ValueError: It names other tasks than workers and a chief, another number of them, or
            another number of this one; or it cannot be read.
    """
    if resolver is None:
        text = os.environ.get(_VARIABLE)
        if text:
            _check(f"`{_VARIABLE}`", *_parsed(text), workers)
        return
    if isinstance(resolver, WorkerResolver):
        return
    if not all(hasattr(resolver, name) for name in ("cluster_spec", "task_type", "task_id")):
        raise ValueError(
            "`cluster_resolver` needs `cluster_spec`, `task_type` and `task_id`, as in "
            f"TensorFlow. Received: {resolver!r}. {_ADVICE}"
        )
    spec = resolver.cluster_spec()
    cluster = spec.as_dict() if hasattr(spec, "as_dict") else dict(spec or {})
    _check("`cluster_resolver`", cluster, resolver.task_type, resolver.task_id, workers)


def _parsed(text: str) -> tuple[dict[str, Any], Any, Any]:
    """Return what `TF_CONFIG` says: addresses by type of task, and our type and number."""
    try:
        config = json.loads(text)
        task = config.get("task", {})
        return dict(config.get("cluster", {})), task.get("type"), task.get("index")
    except (ValueError, AttributeError, TypeError):
        raise ValueError(
            f"`{_VARIABLE}` must be JSON with `cluster` and `task`. Received: {text!r:.200}. "
            f"{_ADVICE}"
        ) from None


def _check(
    what: str, cluster: dict[str, Any], task_type: Any, task_id: Any, workers: Workers
) -> None:
    others = sorted(set(cluster) - {"chief", "worker"})
    if others or task_type not in (None, "", "chief", "worker"):
        raise ValueError(
            f"All tasks must be workers; the first one is the chief. Received: {what} with "
            f"{others or task_type!r}. {_ADVICE}"
        )
    chiefs, count = len(cluster.get("chief", ())), sum(map(len, cluster.values()))
    if cluster and count != workers.count:
        raise ValueError(
            f"{what} and MPI must agree on the number of workers. Received: {count} from {what}, "
            f"and {workers.count} from MPI. {_ADVICE}"
        )
    if not cluster or task_id is None:
        return
    number = int(task_id) + (chiefs if task_type == "worker" else 0)
    if number != workers.rank:
        raise ValueError(
            f"{what} and MPI must agree on the number of this worker. Received: {task_type} "
            f"{task_id} from {what}, which is worker {number}, and worker {workers.rank} from "
            f"MPI. {_ADVICE}"
        )
