"""One worker that has no others, and what every worker refuses."""

import numpy as np
import pytest
from case_table import cases

from mirrored.errors import WorkerError
from mirrored.workers import connect
from mirrored.workers.worker import Workers


def test_without_a_launcher_there_is_one(caplog: pytest.LogCaptureFixture) -> None:
    workers = connect()
    assert workers is connect()
    assert (workers.rank, workers.count, workers.local_rank) == (0, 1, 0)
    assert workers.is_chief
    assert len(workers.hosts) == 1


def test_one_worker_has_what_it_gives() -> None:
    workers, vector = Workers(), np.arange(3.0)
    total = np.zeros(3)
    workers.sum_in_order(vector, total, "it")
    assert total.tolist() == [0.0, 1.0, 2.0]
    workers.sum_in_order(vector, vector, "in its place")
    assert vector.tolist() == [0.0, 1.0, 2.0]
    assert workers.gather("it", "it") == ["it"]
    (array,) = workers.gather_arrays(vector, "it")
    assert array.tolist() == vector.tolist()
    assert array is not vector
    workers.broadcast([vector], "it")
    workers.barrier("it")
    workers.failed(ValueError("it"), "step 3")
    workers.close()
    assert vector.tolist() == [0.0, 1.0, 2.0]


@cases(
    ("vector", "out", "said"),
    [
        (np.zeros(3), np.zeros(4), r"shape \(3,\), out=float64 of shape \(4,\)"),
        (np.zeros(3), np.zeros(3, np.float32), "float64 of shape .*, out=float32"),
        (np.zeros((2, 3)).T, np.zeros((3, 2)), "contiguous"),
        (np.zeros(3), np.zeros(6)[::2], "contiguous"),
    ],
)
def test_what_cannot_be_summed_is_refused(vector: np.ndarray, out: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Workers().sum_in_order(vector, out, "it")


def test_one_worker_neither_grows_nor_leaves() -> None:
    with pytest.raises(ValueError, match=r"Received: 1 worker\(s\), on_worker_failure='raise'"):
        Workers().grow(1)
    with pytest.raises(ValueError, match=r"Received: release\(0\) of 1 worker\(s\)"):
        Workers().release(0)


def test_workers_release_one_that_is_there_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(hosts=("a", "b"))
    workers.on_failure = "replace"
    for rank in (-1, 2, 0.5):
        with pytest.raises(ValueError, match=rf"Received: release\({rank}\) of 2 worker\(s\)"):
            workers.release(rank)  # type: ignore[arg-type]
    monkeypatch.setattr(workers, "gather", lambda value, label: [value, value + 1])
    with pytest.raises(WorkerError, match=r"release the same one\. Received: by worker, \[0, 1\]"):
        workers.release(0)
    with pytest.raises(WorkerError, match=r"same number of processes\. .* by worker, \[2, 3\]"):
        workers.grow(2)
    assert workers.vacant == 0
