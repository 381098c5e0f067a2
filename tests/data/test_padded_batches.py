"""Batches of elements of several sizes, and of other sizes; TensorFlow 2.21 gives what is expected.

But for some classes of errors, which are InvalidArgumentError here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Dataset = mr.data.Dataset
Listed = Callable[[mr.data.Dataset], list[Any]]
UNKNOWN = mr.data.UNKNOWN_CARDINALITY
I8 = mr.int64


def ragged() -> mr.data.Dataset:
    """Return [1], [2, 2], [3, 3, 3], ..., of which only a call tells what they are."""
    return Dataset.range(1, 6).map(lambda x: mr.fill([int(x)], x))


def generated() -> mr.data.Dataset:
    """Return such rows with a signature."""
    spec = mr.TensorSpec([None], mr.float32)
    return Dataset.from_generator(lambda: [[1.0, 2.0], [3.0]], output_signature=spec)


def columns() -> mr.data.Dataset:
    return Dataset.from_tensor_slices(([[1, 2], [3, 4]], {"b": [5.0, 6.0]}))


# What is done, the elements, their structure, and the number of elements that is known before.
METHODS: dict[str, tuple[Callable[[], mr.data.Dataset], list[Any], Any, int]] = {
    "the largest size of a batch": (
        lambda: ragged().padded_batch(2),
        [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]], [[5, 5, 5, 5, 5]]],
        mr.TensorSpec([None, None], I8),
        3,
    ),
    "a shape": (
        lambda: ragged().take(2).padded_batch(2, [3], drop_remainder=True),
        [[[1, 0, 0], [2, 2, 0]]],
        mr.TensorSpec([2, 3], I8),
        1,
    ),
    "a value": (
        lambda: ragged().skip(3).padded_batch(2, [-1], np.int64(9)),
        [[[4, 4, 4, 4, 9], [5, 5, 5, 5, 5]]],
        mr.TensorSpec([None, None], I8),
        1,
    ),
    "whole batches": (
        lambda: ragged().padded_batch(4, drop_remainder=True).map(mr.reduce_sum),
        [30],
        mr.TensorSpec([], I8),
        1,
    ),
    "a signature": (
        lambda: generated().padded_batch(2, padding_values=-1.0),
        [[[1, 2], [3, -1]]],
        mr.TensorSpec([None, None], mr.float32),
        UNKNOWN,
    ),
    "a structure": (
        lambda: columns().padded_batch(2, ([3], {"b": []}), (7, {"b": None})),
        [([[1, 2, 7], [3, 4, 7]], {"b": [5, 6]})],
        (mr.TensorSpec([None, 3], mr.int32), {"b": mr.TensorSpec([None], mr.float32)}),
        1,
    ),
    "batches of batches": (
        lambda: ragged().take(3).padded_batch(2).padded_batch(2),
        [[[[1, 0, 0], [2, 2, 0]], [[3, 3, 3], [0, 0, 0]]]],
        mr.TensorSpec([None, None, None], I8),
        1,
    ),
    "scalars": (
        lambda: Dataset.range(3).padded_batch(2, []),
        [[0, 1], [2]],
        mr.TensorSpec([None], I8),
        2,
    ),
    "windows": (
        lambda: ragged().take(3).window(2).flat_map(lambda window: window.padded_batch(2)),
        [[[1, 0], [2, 2]], [[3, 3, 3]]],
        mr.TensorSpec([None, None], I8),
        UNKNOWN,
    ),
    "buckets": (
        lambda: ragged().bucket_by_sequence_length(len, [3, 5], [2, 2, 2]),
        [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]], [[5, 5, 5, 5, 5]]],
        mr.TensorSpec([None, None], I8),
        UNKNOWN,
    ),
    "whole buckets": (
        lambda: ragged().bucket_by_sequence_length(len, [3], [3, 2], drop_remainder=True),
        [[[3, 3, 3, 0], [4, 4, 4, 4]]],
        mr.TensorSpec([3, None], I8),
        UNKNOWN,
    ),
    "buckets padded to their ends": (
        lambda: ragged().bucket_by_sequence_length(
            len, [2, 6], [1, 4, 1], padding_values=np.int64(9), pad_to_bucket_boundary=True
        ),
        [[[1]], [[n] * n + [9] * (5 - n) for n in range(2, 6)]],
        mr.TensorSpec([None, 1], I8),
        UNKNOWN,
    ),
    "buckets without padding": (
        lambda: (
            Dataset.zip(ragged(), ragged())
            .take(2)
            .bucket_by_sequence_length(lambda x, y: len(x), [2], [2, 1], no_padding=True)
        ),
        [([[2, 2]], [[2, 2]]), ([[1]], [[1]])],
        (mr.TensorSpec([None, 1], I8),) * 2,
        UNKNOWN,
    ),
    "rebatch": (
        lambda: Dataset.range(7).batch(3).rebatch(2),
        [[0, 1], [2, 3], [4, 5], [6]],
        mr.TensorSpec([None], I8),
        UNKNOWN,
    ),
    "rebatch to larger ones": (
        lambda: Dataset.range(5).batch(2).rebatch(4, drop_remainder=True),
        [[0, 1, 2, 3]],
        mr.TensorSpec([4], I8),
        UNKNOWN,
    ),
    "rebatch by turns": (
        lambda: Dataset.zip(Dataset.range(6), Dataset.range(6)).batch(4).rebatch([2, 1]),
        [([0, 1], [0, 1]), ([2], [2]), ([3, 4], [3, 4]), ([5], [5])],
        (mr.TensorSpec([None], I8),) * 2,
        UNKNOWN,
    ),
    "rebatch of whole batches": (
        lambda: Dataset.range(4).batch(4, True).rebatch(2),
        [[0, 1], [2, 3]],
        mr.TensorSpec([2], I8),
        UNKNOWN,
    ),
}


@cases(("make", "expected", "spec", "size"), METHODS.values(), ids=METHODS)
def test_methods(
    make: Callable[[], mr.data.Dataset], expected: list[Any], spec: Any, size: int, listed: Listed
) -> None:
    dataset = make()
    assert (int(dataset.cardinality()), dataset.element_spec) == (size, spec)
    assert listed(dataset) == listed(dataset) == expected


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    **{
        f"shapes of {shapes}": (
            lambda shapes=shapes: (
                columns().map(lambda x, y: x).padded_batch(2, shapes).element_spec
            ),
            error,
            message,
        )
        for shapes, error, message in (
            ([1, 2], ValueError, "is not compatible with the shape"),
            ([], ValueError, "is not compatible with the shape"),
            ("a", ValueError, "must be a shape"),
            (([None],), ValueError, "must be a shape"),
            ([1.5], TypeError, "must be a shape"),
        )
    },
    "a shape that is known to be too small": (
        lambda: columns().padded_batch(2, ([1], {"b": []})),
        ValueError,
        r"The padded shape \(1,\) is not compatible with the shape \(2,\)",
    ),
    "a shape that is too small": (
        lambda: list(generated().padded_batch(2, [1])),
        mr.errors.InvalidArgumentError,
        "Attempted to pad to a smaller size than the input element",
    ),
    "elements of several ranks": (
        lambda: list(ragged().concatenate(Dataset.range(2)).padded_batch(9)),
        mr.errors.InvalidArgumentError,
        "must have the same rank",
    ),
    "no structure": (
        lambda: columns().padded_batch(2, [3]),
        TypeError,
        "don't have the same nested structure",
    ),
    "other names": (
        lambda: columns().padded_batch(2, ([3], {"c": []})),
        ValueError,
        "don't have the same nested structure",
    ),
    "a value of another dtype": (
        lambda: list(ragged().padded_batch(2, padding_values=-1)),
        TypeError,
        "values type int32 does not match type int64",
    ),
    "a value that is none": (
        lambda: list(ragged().padded_batch(2, padding_values=[1])),
        ValueError,
        "values should be scalars",
    ),
    "no rank": (
        lambda: Dataset.from_generator(list, mr.int32).padded_batch(2),
        ValueError,
        "You must provide `padded_shapes` argument because component 0 has unknown rank",
    ),
    "windows": (
        lambda: Dataset.range(3).window(2).padded_batch(2),
        TypeError,
        "`padded_batch` is not supported for datasets of datasets",
    ),
    "no size": (lambda: ragged().padded_batch(0), mr.errors.InvalidArgumentError, "batch_size=0"),
    "buckets without sizes": (
        lambda: ragged().bucket_by_sequence_length(len, [3], [2]),
        ValueError,
        r"must equal `len\(bucket_boundaries\) \+ 1`",
    ),
    "the last bucket": (
        lambda: list(
            ragged().bucket_by_sequence_length(len, [3], [1, 1], pad_to_bucket_boundary=True)
        ),
        mr.errors.InvalidArgumentError,
        r"elements must have length < max\(bucket_boundaries\)",
    ),
    "scalars to other batches": (
        lambda: Dataset.range(3).rebatch(2),
        ValueError,
        "found a dataset with scalar elements",
    ),
    **{
        f"rebatch to {sizes}": (
            lambda sizes=sizes: Dataset.range(3).batch(2).rebatch(sizes),
            mr.errors.InvalidArgumentError,
            "batch_size",
        )
        for sizes in (0, [2, -1], [], [[1]])
    },
}


@cases(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        act()
    assert type(caught.value) is error
