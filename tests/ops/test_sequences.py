"""Sequences of several lengths; the numbers and errors are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("lengths", "along", "batch"), [([2, 3], 2, 0), ([2, 0, 1, 2], 0, 2), ([1, 3], 1, None)]
)
def test_reverse_sequence(lengths: list[int], along: int, batch: int | None) -> None:
    """Eagerly and with lengths that are fed; turned twice it is what it was, gradients as well."""
    expected = X.copy()
    for number, length in enumerate(lengths):
        sequence = np.moveaxis(expected, (batch or 0, along), (0, 1))[number]
        sequence[:length] = sequence[:length][::-1].copy()
    x = ops.constant(X)
    with mr.GradientTape() as tape:
        tape.watch(x)
        found = mr.reverse_sequence(x, lengths, along, batch)
        total = ops.reduce_sum(found * expected)
    recorded = mr.function(lambda x, n: mr.reverse_sequence(x, n, along, batch))
    for each in (found, recorded(x, ops.constant(lengths))):
        np.testing.assert_array_equal(each.numpy(), expected)
    np.testing.assert_array_equal(tape.gradient(total, x).numpy(), X)


@pytest.mark.parametrize(
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
def test_what_does_not_fit(lengths: Any, axes: tuple[int, int], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        mr.reverse_sequence(X, lengths, *axes)
    assert text in str(caught.value)


def test_the_axis_has_no_default() -> None:
    with pytest.raises(TypeError, match="'seq_dim' not None"):
        mr.reverse_sequence(X, [1, 2])
