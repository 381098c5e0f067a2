"""Joining, taking apart, repeating, turning and surrounding, by their public names."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

SAME: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "stack": (lambda x: ops.stack([x, x + 1.0]), lambda x: np.stack([x, x + 1])),
    "stack behind": (lambda x: ops.stack([x, x + 1.0], -1), lambda x: np.stack([x, x + 1], -1)),
    "stack of rows": (lambda x: ops.stack(x, axis=1), lambda x: np.stack(list(x), axis=1)),
    "unstack": (lambda x: ops.unstack(x, axis=-2)[1], lambda x: x[:, 1]),
    "split evenly": (lambda x: ops.split(x, 2, axis=2)[1], lambda x: x[..., 2:]),
    "split by sizes": (lambda x: ops.split(x, [1, -1], axis=1)[1], lambda x: x[:, 1:]),
    "tile": (lambda x: ops.tile(x, [2, 1, 3]), lambda x: np.tile(x, (2, 1, 3))),
    "tile to nothing": (lambda x: ops.tile(x, [1, 0, 1]), lambda x: x[:, :0]),
    "reverse": (lambda x: ops.reverse(x, [0, -1]), lambda x: x[::-1, :, ::-1]),
    "roll": (lambda x: ops.roll(x, [1, -6], [1, 2]), lambda x: np.roll(x, (1, -6), (1, 2))),
    "roll twice": (lambda x: ops.roll(x, [1, 1], [1, 1]), lambda x: np.roll(x, 2, 1)),
    "space to depth": (
        lambda x: ops.space_to_depth(ops.reshape(x, (1, 2, 6, 2)), 2),
        lambda x: np.concatenate(
            [x.reshape(1, 2, 6, 2)[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], axis=-1
        ),
    ),
    "depth to space": (
        lambda x: ops.space_to_depth(
            ops.depth_to_space(ops.reshape(x, (1, 12, 1, 2)), 2, "NCHW"), 2, "NCHW"
        ),
        lambda x: x.reshape(1, 12, 1, 2),
    ),
    "pad": (
        lambda x: ops.pad(x, [[0, 0], [1, 0], [2, 3]], constant_values=7),
        lambda x: np.pad(x, ((0, 0), (1, 0), (2, 3)), constant_values=7),
    ),
    "pad by reflection": (
        lambda x: ops.pad(x, [[1, 0], [2, 2], [0, 3]], "REFLECT"),
        lambda x: np.pad(x, ((1, 0), (2, 2), (0, 3)), "reflect"),
    ),
    "pad symmetrically": (
        lambda x: ops.pad(x, [[2, 2], [0, 3], [4, 1]], "symmetric"),
        lambda x: np.pad(x, ((2, 2), (0, 3), (4, 1)), "symmetric"),
    ),
}


@cases("name", SAME)
def test_as_in_numpy(name: str) -> None:
    """Eagerly and recorded; and the gradient brings each element back to its place."""
    function, reference = SAME[name]
    expected = reference(X)
    for found in (function(ops.constant(X)), mr.function(function)(ops.constant(X))):
        np.testing.assert_array_equal(found.numpy(), expected)
    x = ops.constant(X)
    weights = np.random.default_rng(0).integers(1, 9, expected.shape).astype(np.float32)
    with mr.GradientTape() as tape:
        tape.watch(x)
        total = ops.reduce_sum(function(x) * weights)
    # Linear functions: the change of the total for a step of one element is its gradient.
    unit = np.eye(X.size, dtype=np.float32).reshape(X.size, *X.shape)
    slopes = [np.sum((reference(X + each) - expected) * weights) for each in unit]
    np.testing.assert_array_equal(tape.gradient(total, x).numpy().reshape(-1), slopes)


def test_lists_of_numbers() -> None:
    assert ops.stack([1, 2.5]).numpy().tolist() == [1.0, 2.5]
    assert ops.stack([ops.constant(1.0), 2]).dtype == ops.float32
    assert ops.unstack(ops.zeros((0, 2))) == []
    assert ops.stack([]).shape == (0,)
    assert int(ops.stack(3)) == 3
    sizes = ops.constant([1, 3])
    assert [each.shape for each in ops.split([1, 2, 3, 4], sizes)] == [(1,), (3,)]
    assert len(ops.split([[1, 2]], 1)) == 1
    assert ops.pad([True], [[1, 0]]).numpy().tolist() == [False, True]


@cases(
    ("call", "error", "message"),
    [
        (lambda: ops.stack([], 1), ValueError, "at least one tensor"),
        (lambda: ops.stack([[1, 2], [3]]), InvalidArgumentError, r"\[2\] != values\[1\]"),
        (lambda: ops.stack([[1], [2]], 3), ValueError, r"`axis` = 3 not in range \[-2, 2\)"),
        (lambda: ops.stack([[1, 2], [3]], 1), InvalidArgumentError, r"\[2\] != values\[1\]"),
        (lambda: ops.unstack(3), ValueError, r"`axis` = 0 not in range \[0, 0\)"),
        (lambda: ops.unstack([1, 2], 3), InvalidArgumentError, r"must equal 3, got shape \[2\]"),
        (lambda: ops.split([1, 2, 3], 2), InvalidArgumentError, r"\(size = 3\) and num_split 2"),
        (lambda: ops.split([1, 2, 3], 0), InvalidArgumentError, "should be > 0"),
        (lambda: ops.split([1, 2, 3], [1, 1]), InvalidArgumentError, "Got: 2, for a size of 3"),
        (lambda: ops.split([1, 2, 3], [-1, -1]), InvalidArgumentError, "Determined shape"),
        (lambda: ops.split([1, 2, 3], [4, -1]), InvalidArgumentError, "Determined shape"),
        (lambda: ops.split([1, 2], 1, axis=1), InvalidArgumentError, r"axis 1 .*\[Op:Split\]"),
        (
            lambda: ops.split([1, 2], [1, 1], num=3),
            InvalidArgumentError,
            "same elements as outputs",
        ),
        (lambda: ops.split([1, 2], 2.0), ValueError, "Rank-0 tensors"),
        (lambda: ops.tile([1, 2], 2), InvalidArgumentError, "to be 1-D"),
        (lambda: ops.reverse([1, 2], 0), InvalidArgumentError, "must be 1-dimension"),
        (lambda: ops.split([1, 2], ops.constant(2)), ValueError, "Rank-0 tensors"),
        (lambda: ops.tile([1, 2], [2, 2]), InvalidArgumentError, "of length 1 but got length 2"),
        (lambda: ops.tile([1, 2], [-1]), InvalidArgumentError, r"multiples\[0\] >= 0"),
        (lambda: ops.reverse([1, 2], [0, -1]), InvalidArgumentError, "more than once"),
        (lambda: ops.reverse([1, 2], [1]), InvalidArgumentError, r"axis 1 .*\[Op:ReverseV2\]"),
        (lambda: ops.roll([1, 2], [1, 1], [0]), InvalidArgumentError, "must have the same size"),
        (lambda: ops.roll([1, 2], 1, 1), InvalidArgumentError, r"axis 1 .*\[Op:Roll\]"),
        (lambda: ops.pad([1, 2], [[1, 1]], "EDGE"), ValueError, "Received `mode` = 'EDGE'"),
        (lambda: ops.pad([1, 2], [[1, -1]]), InvalidArgumentError, "must be non-negative"),
        (lambda: ops.pad([1, 2], [[1, 1], [0, 0]]), InvalidArgumentError, "the rank of inputs"),
        (lambda: ops.pad([1, 2], [[2, 0]], "REFLECT"), InvalidArgumentError, "size less 1"),
        (lambda: ops.pad([1, 2], [[3, 0]], "SYMMETRIC"), InvalidArgumentError, "no greater than"),
        (lambda: ops.pad([1, 2], [[1, 1]], constant_values=2.5), TypeError, "Cannot convert 2.5"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


_SEQUENCES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@cases(("lengths", "along", "batch"), [([2, 3], 2, 0), ([2, 0, 1, 2], 0, 2), ([1, 3], 1, None)])
def test_reverse_sequence(lengths: list[int], along: int, batch: int | None) -> None:
    """Eagerly and with lengths that are fed; turned twice it is what it was, gradients as well."""
    expected = _SEQUENCES.copy()
    for number, length in enumerate(lengths):
        sequence = np.moveaxis(expected, (batch or 0, along), (0, 1))[number]
        sequence[:length] = sequence[:length][::-1].copy()
    x = ops.constant(_SEQUENCES)
    with mr.GradientTape() as tape:
        tape.watch(x)
        found = mr.reverse_sequence(x, lengths, along, batch)
        total = ops.reduce_sum(found * expected)
    recorded = mr.function(lambda x, n: mr.reverse_sequence(x, n, along, batch))
    for each in (found, recorded(x, ops.constant(lengths))):
        np.testing.assert_array_equal(each.numpy(), expected)
    np.testing.assert_array_equal(tape.gradient(total, x).numpy(), _SEQUENCES)


@cases(
    ("lengths", "axes", "text"),
    [
        ([2, 5], (2, 0), "indices[1,0] = 4 is not in [0, 4)"),
        ([2, -1], (2, 0), "is not in [0, 4)"),
        ([2], (2, 0), "Length of seq_lengths != input.dims(0), (1 vs. 2)"),
        ([[2, 1]], (2, 0), "must be 1-dim, not 2"),
        ([2, 1], (1, 1), "batch_dim == seq_dim == 1"),
        ([2, 1], (3, 0), "seq_dim must be < input rank"),
        ([2, 1], (1, -1), "Invalid batch_dim -1"),
        ([2.0, 1.0], (1, 0), "attr 'Tlen' of float"),
    ],
)
def test_lengths_that_do_not_fit(lengths: Any, axes: tuple[int, int], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        mr.reverse_sequence(_SEQUENCES, lengths, *axes)
    assert text in str(caught.value)


def test_the_axis_has_no_default() -> None:
    with pytest.raises(TypeError, match="'seq_dim' not None"):
        mr.reverse_sequence(_SEQUENCES, [1, 2])


@cases(
    ("call", "match"),
    [
        (lambda x: ops.space_to_depth(x, 1), "'block_size' of 1 must be at least minimum 2"),
        (lambda x: ops.space_to_depth(x, 3), "width 4 and height 4 should be divisible .* 3"),
        (lambda x: ops.space_to_depth(x[0], 2), "Input rank should be 4 instead of 3"),
        (lambda x: ops.space_to_depth(x, 2, "NCHW_VECT_C"), "'data_format' of 'NCHW_VECT_C'"),
        (lambda x: ops.depth_to_space(x, 2), "depth dimension 2 should be divisible by: 4"),
    ],
)
def test_blocks_that_are_wrong(call: Callable[[Any], Any], match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        call(ops.ones((1, 4, 4, 2)))


def test_blocks_of_placeholders() -> None:
    images = mr.layers.Input((4, None, 4))
    assert mr.keras.ops.space_to_depth(images, 2).shape == (None, 2, None, 16)
    assert mr.keras.ops.depth_to_space(images, 2).shape == (None, 8, None, 1)
