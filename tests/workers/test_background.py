"""Sums that go on while a worker computes: their order, their errors, and what keeps arrays."""

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from mirrored.workers.background import Background
from mirrored.workers.worker import Workers


def test_they_are_made_in_the_order_in_which_they_were_begun() -> None:
    made: list[str] = []
    goes_on = threading.Event()

    def compute(vector: Any, out: Any, what: str) -> None:
        goes_on.wait(30)
        made.append(what)

    background = Background(compute)
    pending = [background.begin(np.zeros(1), np.zeros(1), str(each)) for each in range(5)]
    assert made == []
    goes_on.set()
    background.drain()
    assert made == ["0", "1", "2", "3", "4"]
    for each in pending:
        each.wait()
    background.close()


def test_an_error_is_raised_where_the_sum_is_waited_for() -> None:
    def compute(vector: Any, out: Any, what: str) -> None:
        raise ValueError(what)

    background = Background(compute)
    first, second = (background.begin(np.zeros(1), np.zeros(1), what) for what in ("one", "two"))
    with pytest.raises(ValueError, match="two"):
        second.wait()
    with pytest.raises(ValueError, match="one"):
        first.wait()
    with pytest.raises(ValueError, match="two"):
        background.drain()
    background.close()


def test_what_was_summed_is_not_kept() -> None:
    background = Background(lambda vector, out, what: None)
    vector = np.zeros(5)
    kept = weakref.ref(vector)
    background.begin(vector, vector, "it").wait()
    background.drain()
    background.close()
    del vector
    gc.collect()
    assert kept() is None


def test_one_worker_is_done_at_once() -> None:
    total = np.zeros(2)
    Workers().begin_sum(np.ones(2), total, "it").wait()
    assert total.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="shape"):
        Workers().begin_sum(np.ones(2), np.zeros(3), "it")
