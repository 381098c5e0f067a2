"""Epochs: how datasets and arrays are read, pass after pass."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.data.arguments import DataArguments
from mirrored.data.arrays import Arrays, adapt


def rows() -> mr.data.Dataset:
    return mr.data.Dataset.from_tensor_slices((np.arange(7.0), np.arange(7)))


PIPELINES: dict[str, Any] = {
    "in order": lambda: rows().batch(3),
    "shuffled": lambda: rows().shuffle(7, seed=1).batch(3),
    "through a small buffer": lambda: rows().shuffle(4, seed=1).batch(3),
    "always the same order": lambda: rows().shuffle(7, 1, False).batch(3).repeat(2),
    "whole batches alone": lambda: rows().shuffle(7, seed=1).batch(3, drop_remainder=True),
    "passes of batches": lambda: rows().shuffle(7, seed=1).batch(3).repeat(3),
    "passes of rows": lambda: rows().shuffle(7, seed=1).repeat(3).batch(3),
    "shuffled passes": lambda: rows().repeat(2).shuffle(7, seed=1).batch(3),
    "without end": lambda: rows().shuffle(7, seed=1).repeat().batch(3),
    "some rows": lambda: rows().skip(1).take(5).batch(2).repeat(2),
    "batches of batches": lambda: rows().batch(3, drop_remainder=True).batch(2),
}


def taken(data: mr.data.Dataset, steps: int | None, goes_on: bool, most: int | None) -> list[Any]:
    """Return the batches of three epochs, and what is known of the epochs after each."""
    arguments = DataArguments(
        use="fit" if goes_on else "evaluate", x=data, batch_size=None, steps=steps
    )
    epochs = arguments.epochs()
    seen: list[Any] = []
    for _ in range(3):
        seen.append([epochs.begin()])
        for span in epochs.spans(most):
            assert span.count <= (most or 100)
            seen[-1] += [(batch.x.tolist(), batch.y.tolist()) for batch in span]
        seen[-1].append((epochs.steps, epochs.ran_out))
    epochs.close()
    return seen


@cases("make", PIPELINES.values(), ids=PIPELINES)
@cases(
    ("steps", "goes_on", "most"), [(None, True, None), (2, True, None), (4, True, 3), (2, False, 1)]
)
def test_rows_are_read_as_elements_are(
    make: Any, steps: int | None, goes_on: bool, most: int | None
) -> None:
    """Datasets that only order and batch rows are read as row numbers; `prefetch` hides that."""
    steps = 4 if steps is None and make().cardinality() < 0 else steps
    expected = taken(make().prefetch(1), steps, goes_on, most)
    assert taken(make(), steps, goes_on, most) == expected


def test_what_is_wrong_with_rows_is_said_of_their_batch() -> None:
    def check(arrays: Arrays) -> Arrays:
        if arrays.y.max() > 4:
            raise ValueError("Too much.")
        return arrays

    arguments = DataArguments(use="fit", x=None, batch_size=2, steps=4)
    epochs = dataclasses.replace(arguments, x=rows().batch(2), steps=None).epochs()
    epochs.check_with(check)
    assert epochs.begin()
    spans = epochs.spans(1)
    assert [next(spans).count for _ in range(2)] == [1, 1]
    with pytest.raises(ValueError, match=r"^Batch 2 of the data \(counted from 0\): Too much.$"):
        next(spans)
    whole = arguments.of_arrays(adapt(np.arange(7.0), np.arange(7)))
    with pytest.raises(ValueError, match=r"^Too much.$"):
        whole.check_with(check)


def test_each_pass_over_arrays_is_in_another_order_by_the_global_seed() -> None:
    def orders() -> list[list[float]]:
        arguments = DataArguments(use="fit", x=None, batch_size=2, steps=3, shuffle=True)
        epochs = arguments.of_arrays(adapt(np.arange(7.0), np.arange(7)))
        seen = []
        for _ in range(6):  # Every other one has the last batch alone.
            assert epochs.begin()
            seen += [each for span in epochs.spans(None) for batch in span for each in batch.x]
        return [seen[:7], seen[7:14], seen[14:21]]

    mr.random.set_seed(3)
    seeds = ops.SeedGenerator()
    expected = [seeds.permutation(7).tolist() for _ in range(3)]
    mr.random.set_seed(3)
    assert orders() == expected
