"""Buckets: every tensor is in one, in order, comes out as it went in, and costs no copy twice."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.distribute.cross_device_ops.buckets import (
    BUCKET_BYTES,
    BucketedBatch,
    Buckets,
    alike,
    bucket_bytes,
    bucket_ranges,
    by_replica,
    described,
    nbytes,
    packed,
)
from mirrored.ops import TensorSpec

SIZES = st.lists(st.integers(0, 100), max_size=20)
SOME = settings(max_examples=40)


@pytest.mark.behaviour("packs")
@SOME
@given(SIZES, st.integers(0, 300))
def test_every_tensor_once_and_in_order(sizes: list[int], least: int) -> None:
    buckets = bucket_ranges(sizes, least)
    assert [place for bucket in buckets for place in bucket] == list(range(len(sizes)))
    assert all(buckets)
    held = [[sizes[place] for place in bucket] for bucket in buckets]
    assert all(sum(each) >= least for each in held[:-1])
    # None goes on after it is full.
    assert all(sum(each[:-1]) < least for each in held if len(each) > 1)


@pytest.mark.behaviour("packs")
@SOME
@given(SIZES, st.integers(2, 10))
def test_num_packs(sizes: list[int], num_packs: int) -> None:
    """At most so many; each is of about equal size, as far as whole tensors allow."""
    least = bucket_bytes(sum(sizes), num_packs, 0)
    buckets = bucket_ranges(sizes, least)
    if sum(sizes):
        assert len(buckets) <= num_packs
    share, largest = sum(sizes) / num_packs, max(sizes, default=0)
    assert all(sum(sizes[place] for place in each) <= share + 1 + largest for each in buckets)


@SOME
@given(SIZES)
def test_without_packs_each_tensor_is_alone(sizes: list[int]) -> None:
    assert bucket_ranges(sizes, bucket_bytes(sum(sizes), 0, 0)) == [
        range(i, i + 1) for i in range(len(sizes))
    ]


@pytest.mark.behaviour("packs")
@cases(
    ("num_packs", "bytes_per_pack", "expected"),
    [(1, 0, BUCKET_BYTES), (2, 0, 500), (3, 0, 334), (0, 0, 0), (0, 7, 7), (1, 7, 7), (4, 7, 7)],
)
def test_how_large(num_packs: int, bytes_per_pack: int, expected: int) -> None:
    assert bucket_bytes(1000, num_packs, bytes_per_pack) == expected


@cases(
    ("spec", "expected"),
    [
        (TensorSpec((), np.dtype(np.float64)), "8 bytes of float64"),
        (TensorSpec((262143,), np.dtype(np.int32)), "1048572 bytes of int32"),
        (TensorSpec((262144,), np.dtype(np.int32)), "1.0 MB of int32"),
        (TensorSpec((3, 1 << 20), np.dtype(np.float32)), "12.0 MB of float32"),
    ],
)
def test_what_errors_call_them(spec: TensorSpec, expected: str) -> None:
    assert described(1, 5, spec) == f"bucket 2 of 5 ({expected})"
    assert nbytes(spec) == np.zeros(spec.shape, spec.dtype).nbytes


SHAPES = pytest.mark.parametrize("shapes", [[()], [(2, 3), (), (0, 2), (4,)], [(0,)]])


def filled(shapes: Sequence[tuple[int, ...]]) -> list[mr.Tensor]:
    rng = np.random.default_rng(0)
    return [mr.constant(rng.normal(size=shape)) for shape in shapes]


def bucket(tensors: Sequence[mr.Tensor], numbers: Sequence[int]) -> Buckets:
    result = Buckets()
    (vector,) = packed([[each] for each in tensors])
    result.add(numbers, vector, [each.shape for each in tensors])
    return result


@pytest.mark.behaviour("packs")
@SHAPES
def test_vectors_and_back(shapes: list[tuple[int, ...]]) -> None:
    tensors = filled(shapes)
    numbers = range(5, 5 + len(tensors))
    buckets = bucket(tensors, numbers)
    assert list(buckets) == list(numbers)
    for number, tensor in zip(numbers, tensors, strict=True):
        assert buckets.spec(number) == tensor.spec
        np.testing.assert_array_equal(buckets[number].numpy(), tensor.numpy())
    elements = np.concatenate([each.numpy().ravel() for each in tensors])
    np.testing.assert_array_equal(buckets.vector(numbers).numpy(), elements)


def test_what_is_packed_together() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    with mr.device("GPU:0"):
        a, b = mr.constant(1.0), mr.constant(1)
    with mr.device("GPU:1"):
        c, d = mr.constant([1.0, 2.0]), mr.constant([1])
    batch = [[a, c], [b, d], [a, c], [c, a], [a], [b, d]]
    assert alike(batch) == [[0, 2], [1, 5], [3], [4]]


@cases(
    ("numbers", "changed"),
    [([2, 0, 1], []), ([0, 1], []), ([1, 2, 0], [0]), ([2, 0, 1], [0, 1, 2])],
)
def test_a_vector_of_any_of_them(record: Any, numbers: list[int], changed: list[int]) -> None:
    """Whatever lies in a bucket, was changed since, or comes in another order; in a program too."""
    arrays = [each.numpy() for each in filled([(2, 3), (4,), ()])]

    def function(*tensors: mr.Tensor) -> list[mr.Tensor]:
        buckets = bucket([tensors[2], tensors[0], tensors[1]], [2, 0, 1])
        new = buckets.updated({i: buckets[i] * 2.0 for i in changed})
        return [new.vector(numbers), buckets.vector(numbers) + 0.0]

    factors = [2.0 if i in changed else 1.0 for i in numbers]
    expected = [f * arrays[i].ravel() for f, i in zip(factors, numbers, strict=True)]
    for run in (function, record(function, arrays)):
        new, old = run(*(mr.constant(each) if run is function else each for each in arrays))
        np.testing.assert_array_equal(np.asarray(new), np.concatenate(expected))
        np.testing.assert_array_equal(
            np.asarray(old), np.concatenate([arrays[i].ravel() for i in numbers])
        )


def test_other_numbers() -> None:
    buckets = Buckets(filled([(1,), (2,), (3,)]))
    new = buckets.renumbered({0: 2, 7: 0})
    assert {number: new[number].shape for number in new} == {0: (3,), 7: (1,)}


def test_by_replica_and_back() -> None:
    a, b, c = filled([(1,), (2,), (3,)])
    batch = BucketedBatch([Buckets([a, b]), Buckets([b, c])])
    assert list(batch) == [[a, b], [b, c]]
    assert (batch[-1], batch[:1]) == ([b, c], [[a, b]])
    with pytest.raises(IndexError, match="has no value 2"):
        batch[2]
    assert by_replica(batch, 2) is batch.replicas
    assert [dict(each) for each in by_replica([[a, b], [b, c]], 2)] == [{0: a, 1: b}, {0: b, 1: c}]
    assert [dict(each) for each in by_replica([], 2)] == [{}, {}]
