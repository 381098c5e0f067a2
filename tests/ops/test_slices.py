"""Slices as functions, held to indices, and to TensorFlow's errors."""

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
    "slice": (lambda x: mr.slice(x, [0, 1, 2], [1, 2, -1]), lambda x: x[:1, 1:3, 2:]),
    "slice to nothing": (lambda x: mr.slice(x, [2, 0, 0], [0, 3, 1]), lambda x: x[2:, :, :1]),
    "strided": (
        lambda x: mr.strided_slice(x, [0, -1], [9, 0], [1, -2]),
        lambda x: x[:, :0:-2],
    ),
    "to the ends": (
        lambda x: mr.strided_slice(x, [1, 1, 9], [1, 1, 9], [1, 1, -1], 5, 6),
        lambda x: x[:1, 1:, ::-1],
    ),
    "numbers": (
        lambda x: mr.strided_slice(x, [1, 7, -1], [0, 0, 0], ellipsis_mask=2, shrink_axis_mask=5),
        lambda x: x[1, ..., -1],
    ),
    "new axes": (
        lambda x: mr.strided_slice(x, [0, 1, 0], [0, 2, 0], new_axis_mask=5),
        lambda x: x[None, 1:2, None],
    ),
}


@cases("name", SAME)
def test_as_an_index(name: str) -> None:
    function, reference = SAME[name]
    x = ops.constant(X)
    for found in (function(x), mr.function(function)(x)):
        np.testing.assert_array_equal(found.numpy(), reference(X))


@cases(
    ("call", "error", "text"),
    [
        (lambda: mr.slice([1, 2], [1], [2]), InvalidArgumentError, "size[0] in [0, 1], but got 2"),
        (lambda: mr.slice([1, 2], [1], [-2]), InvalidArgumentError, "but got -2"),
        (lambda: mr.slice([1, 2], [3], [0]), InvalidArgumentError, "begin[0] in [0, 2], but got 3"),
        (lambda: mr.slice([1, 2], 1, 1), InvalidArgumentError, "size 1, but got shapes [] and []"),
        (lambda: mr.slice([1, 2], [1.0], [1]), InvalidArgumentError, "attr 'Index' of float"),
        (lambda: mr.strided_slice([1], [0, 0], [1]), InvalidArgumentError, "1D equal size"),
        (lambda: mr.strided_slice([1], [0], [1], [0]), InvalidArgumentError, "must be non-zero"),
        (
            lambda: mr.strided_slice([1], [0], [1], [-1], shrink_axis_mask=1),
            InvalidArgumentError,
            "only stride 1 allowed",
        ),
        (lambda: mr.strided_slice([1], [0], [1], var=1), NotImplementedError, "takes no `var`"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
