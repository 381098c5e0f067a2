"""What TensorFlow's resolvers and TF_CONFIG say is held against what MPI says."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from mirrored.distribute.worker_resolver import ClusterSpec, WorkerResolver, check_resolver
from mirrored.workers.worker import Workers

WORKERS = Workers(1, ("a", "b"))
BOTH = ["a:1", "b:1"]


def resolver(cluster: Any, kind: str, number: int) -> Any:
    return SimpleNamespace(cluster_spec=lambda: cluster, task_type=kind, task_id=number)


AGREE = {
    "workers": ({"worker": BOTH}, "worker", 1),
    "a chief": ({"chief": ["a:1"], "worker": ["b:1"]}, "worker", 0),
    "no cluster": ({}, "", None),
}
DIFFER = {
    "number": (({"worker": BOTH}, "worker", 0), "which is worker 0, and worker 1 from MPI"),
    "count": (({"worker": [*BOTH, "c:1"]}, "worker", 1), "3 from .*, and 2 from MPI"),
    "other tasks": (({"worker": BOTH, "ps": ["c:1"]}, "worker", 1), r"with \['ps'\]"),
    "another task": (({"worker": BOTH}, "evaluator", 0), "with 'evaluator'"),
}


@pytest.mark.parametrize("given", AGREE.values(), ids=AGREE.keys())
def test_what_agrees_is_taken(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_resolver(resolver(*given), WORKERS)
    cluster, kind, number = given
    config = {"cluster": cluster, "task": {"type": kind, "index": number}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    check_resolver(None, WORKERS)


@pytest.mark.behaviour("workers-resolver")
@pytest.mark.parametrize(("given", "text"), DIFFER.values(), ids=DIFFER.keys())
def test_what_differs_is_refused(given: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=f"`cluster_resolver`.*|{text}") as caught:
        check_resolver(resolver(*given), WORKERS)
    assert re.search(text, str(caught.value))
    cluster, kind, number = given
    config = {"cluster": cluster, "task": {"type": kind, "index": number}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with pytest.raises(ValueError, match=text):
        check_resolver(None, WORKERS)


@pytest.mark.parametrize("text", ["{", "[]", '{"task": 3}'])
def test_what_cannot_be_read_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match="must be JSON with `cluster` and `task`"):
        check_resolver(None, WORKERS)


def test_what_is_no_resolver_is_refused() -> None:
    with pytest.raises(ValueError, match="`cluster_resolver` needs `cluster_spec`"):
        check_resolver("tpu", WORKERS)


def test_ours_says_what_mpi_says() -> None:
    ours = WorkerResolver(WORKERS)
    assert (ours.task_type, ours.task_id) == ("worker", 1)
    assert ours.cluster_spec() == {"worker": ["a", "b"]}
    assert "chief" not in ours.cluster_spec().as_dict()
    check_resolver(ours, WORKERS)


@pytest.mark.behaviour("workers-resolver")
def test_a_cluster_is_asked_as_tensorflows() -> None:
    spec = ClusterSpec({"chief": ["a:1"], "worker": ["b:1", "c:1"]})
    assert (spec.num_tasks("worker"), spec.task_indices("worker")) == (2, [0, 1])
    assert (spec.job_tasks("chief"), spec.task_address("worker", 1)) == (["a:1"], "c:1")
    assert spec == ClusterSpec(spec.as_dict())
    assert spec != ClusterSpec({})
    assert spec
    assert not ClusterSpec({})
    with pytest.raises(ValueError, match="No such job in cluster: 'ps'"):
        spec.num_tasks("ps")
    for index in (2, -1):
        with pytest.raises(ValueError, match=f"No task with index {index} in job 'worker'"):
            spec.task_address("worker", index)
    check_resolver(resolver(spec, "worker", 0), Workers(1, ("a", "b", "c")))
