"""Buckets: every tensor is in one, in order, and each but the last is as large as was asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrored.distribute.cross_device_ops.buckets import (
    BUCKET_BYTES,
    bucket_bytes,
    cut,
    described,
    nbytes,
)
from mirrored.ops import TensorSpec

SIZES = st.lists(st.integers(0, 100), max_size=20)


@given(SIZES, st.integers(0, 300))
def test_every_tensor_once_and_in_order(sizes: list[int], least: int) -> None:
    buckets = cut(sizes, least)
    assert [place for bucket in buckets for place in bucket] == list(range(len(sizes)))
    assert all(buckets)
    held = [[sizes[place] for place in bucket] for bucket in buckets]
    assert all(sum(each) >= least for each in held[:-1])
    # None goes on after it is full.
    assert all(sum(each[:-1]) < least for each in held if len(each) > 1)


@given(SIZES, st.integers(2, 10))
def test_num_packs(sizes: list[int], num_packs: int) -> None:
    """At most so many; each is of about equal size, as far as whole tensors allow."""
    least = bucket_bytes(sum(sizes), num_packs, 0)
    buckets = cut(sizes, least)
    if sum(sizes):
        assert len(buckets) <= num_packs
    share, largest = sum(sizes) / num_packs, max(sizes, default=0)
    assert all(sum(sizes[place] for place in each) <= share + 1 + largest for each in buckets)


@given(SIZES)
def test_without_packs_each_tensor_is_alone(sizes: list[int]) -> None:
    assert cut(sizes, bucket_bytes(sum(sizes), 0, 0)) == [
        range(i, i + 1) for i in range(len(sizes))
    ]


@pytest.mark.parametrize(
    ("num_packs", "bytes_per_pack", "expected"),
    [(1, 0, BUCKET_BYTES), (2, 0, 500), (3, 0, 334), (0, 0, 0), (0, 7, 7), (1, 7, 7), (4, 7, 7)],
)
def test_how_large(num_packs: int, bytes_per_pack: int, expected: int) -> None:
    assert bucket_bytes(1000, num_packs, bytes_per_pack) == expected


@pytest.mark.parametrize(
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
