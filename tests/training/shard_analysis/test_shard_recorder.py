"""Whether a function computes a value per example from that example alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
from case_table import cases

import mirrored as mr
from mirrored.training.shard_analysis.shard_recorder import is_by_example

ROWS = np.zeros((4, 3), "float32")


@cases(
    ("function", "expected"),
    [
        (mr.losses.mean_squared_error, True),
        (mr.losses.categorical_crossentropy, True),
        (lambda t, p: mr.reduce_sum(t * p, axis=-1) / mr.reduce_sum(t + p, axis=-1), True),
        (lambda t, p: mr.cast(mr.equal(mr.argmax(t, -1), mr.argmax(p, -1)), "float32"), True),
        (lambda t, p: mr.reduce_mean(t - p), False),
        (lambda t, p: mr.reduce_max(p, axis=0), False),
        (lambda t, p: mr.abs(p - mr.reduce_mean(p, axis=0)), False),
        (lambda t, p: mr.reduce_mean(t - p, axis=-1) / mr.cast(mr.shape(t)[0], "float32"), False),
        (lambda t, p: p[::-1], False),
        (lambda t, p: mr.transpose(p), False),
        (lambda t, p: mr.range(mr.shape(p)[0]) * 2, False),
        (lambda t, p: p.numpy(), False),
        (lambda t, p: 1.0, False),
        (mr.losses.dice, False),
    ],
)
def test_functions(function: Callable[..., Any], expected: bool) -> None:
    tensors = [mr.constant(ROWS)] * 2
    assert is_by_example(function, tensors) is expected


def test_of_vectors_the_only_axis_is_that_of_the_examples() -> None:
    vectors = [mr.constant(ROWS[:, 0])] * 2
    assert is_by_example(lambda t, p: mr.abs(t - p), vectors)
    assert not is_by_example(mr.losses.mean_squared_error, vectors)


def test_the_random_state_stays_as_it_is() -> None:
    mr.random.set_seed(1)
    expected = mr.random.uniform((2,)).numpy()
    mr.random.set_seed(1)
    is_by_example(lambda t, p: mr.random.uniform(p.shape), [mr.constant(ROWS)] * 2)
    np.testing.assert_array_equal(mr.random.uniform((2,)).numpy(), expected)
