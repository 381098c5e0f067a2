"""Processes with batches of their own go on together, until none of them has any left."""

from typing import Any

import numpy as np
import pytest

from mirrored.data.passes import passes_of
from mirrored.data.worker_passes import PassesOfWorkers

X = np.arange(6.0).reshape(3, 2)


def beside(counts: list[int], shape: tuple[int, ...] = (2,)) -> PassesOfWorkers:
    """Return passes over two batches, beside another process with batches of so many examples."""
    others = iter(counts)

    def gather(told: Any, what: str) -> list[Any]:
        count = next(others)
        return [told, ((count,), (("float64", shape),) if count else None)]

    own = passes_of([X[:2], X[2:]], "predict", None)
    return PassesOfWorkers(own, lambda count: (count,), gather)


def test_a_pass_goes_on_until_no_process_has_more() -> None:
    passes = beside([3, 1, 4, 0, 2, 0, 0])
    first = list(iter(lambda: passes.read(9), None))
    assert [span.sizes for span in first] == [(2, 3), (1, 1), (0, 4)]
    assert [batch.x.tolist() for span in first for batch in span] == [
        X[:2].tolist(),
        X[2:].tolist(),
        [],
    ]
    assert [span.count for span in first] == [1, 1, 1]
    assert (passes.is_open, passes.batches_read) == (False, 0)
    assert passes.has_next()
    assert passes.has_next()  # They met for it once.
    second = list(iter(lambda: passes.read(9), None))
    assert [span.sizes for span in second] == [(2, 2), (1, 0)]


def test_a_pass_that_is_left_begins_anew() -> None:
    passes = beside([1, 1, 1])
    assert passes.checked(lambda arrays: arrays.copied()).read(1) is not None
    assert passes.has_next()
    assert (passes.is_open, passes.batches_read) == (True, 1)
    passes.close()
    assert (passes.is_open, passes.batches_read) == (False, 0)
    span = passes.read(1)
    assert span is not None
    assert next(iter(span)).x.tolist() == X[:2].tolist()


def test_examples_of_other_shapes() -> None:
    with pytest.raises(ValueError, match=r"\('float64', \(3,\)\).*`padded_shapes`"):
        beside([1], (3,)).read(1)
    # Who has ended takes the shape that the others have.
    passes = beside([0, 0, 5], (3,))
    assert [span.sizes for span in (passes.read(1), passes.read(1)) if span] == [(2, 0), (1, 0)]
    last = passes.read(1)
    assert last is not None
    assert next(iter(last)).x.shape == (0, 3)
