"""Arguments in forms that scripts seldom have: TensorFlow 2.21's values for them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

c = mr.constant
NONE = np.zeros((1, 0))

VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "concat, axis as tensor": (lambda: mr.concat([c([[1]]), c([[2]])], c(-1)), [[1, 2]]),
    "concat, axis as list": (lambda: mr.concat([c([[1]]), c([[2]])], [0]), [[1], [2]]),
    "expand_dims, axis as list": (lambda: mr.expand_dims(c([1]), [0]), [[1]]),
    "reduce_sum, axis as tensor": (lambda: mr.reduce_sum(c([[1, 2]]), c(1)), [3]),
    "split, axis as tensor": (lambda: mr.split(c([1, 2]), 2, c(-1))[1], [2]),
    "unstack, axis as tensor": (lambda: mr.unstack(c([[1, 2]]), axis=c(1))[1], [2]),
    "roll, both as tensors": (lambda: mr.roll(c([1, 2]), c(1), c(0)), [2, 1]),
    "linspace, num as tensor": (lambda: mr.linspace(0.0, 1.0, c(3)), [0.0, 0.5, 1.0]),
    "zeros, size as tensor": (lambda: mr.zeros(c(2)), [0.0, 0.0]),
    "squeeze, no axes": (lambda: mr.squeeze(c([[[1, 2]]]), []), [1, 2]),
    "moments, no axes": (lambda: mr.nn.moments(c([[1.0, 2.0]]), [])[0], [1.0, 2.0]),
    "one_hot, axis as tensor": (lambda: mr.one_hot([1, 0], 1, axis=c(0)), [[0.0, 1.0]]),
    "reshape, of nothing": (lambda: mr.reshape(np.zeros((2, 0, 3)), [0, -1]), np.zeros((0, 6))),
    "histogram_fixed_width, float32": (
        lambda: mr.histogram_fixed_width([0.34, 0.35], [-1.0, 2.0])[44:46],
        [2, 0],
    ),
    "histogram_fixed_width, float64": (
        lambda: mr.histogram_fixed_width(np.float64([0.15]), np.float64([0.1, 0.7]), 60)[4:6],
        [0, 1],
    ),
    "gather, batch_dims from behind": (
        lambda: mr.gather(c([[1, 2], [3, 4]]), [1, 0], batch_dims=-1),
        [[2, 1], [4, 3]],
    ),
    "less, empty list": (lambda: mr.less(c(NONE, mr.uint8), [[]]), NONE),
    "logical_or, empty list": (lambda: mr.logical_or(c(NONE, mr.bool), [[]]), NONE),
}


@cases("case", VALUES)
def test_values(case: str) -> None:
    call, expected = VALUES[case]
    np.testing.assert_array_equal(call().numpy(), expected)


# What is 1 in 32 bits.
WIDE = 2**32 + 1
WIDE_VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "in_top_k": (lambda: mr.keras.ops.in_top_k(np.array([WIDE]), [[0.1, 0.9]], 1), [False]),
    "SparseTopKCategoricalAccuracy": (
        lambda: mr.metrics.SparseTopKCategoricalAccuracy(1)(np.array([WIDE]), [[0.1, 0.9]]),
        0.0,
    ),
    "MeanIoU": (lambda: mr.metrics.MeanIoU(2)(np.array([WIDE, 0]), [1, 0]), pytest.approx(1.0)),
    "one_hot": (lambda: mr.one_hot([WIDE], 2), [[0.0, 0.0]]),
    "CategoryEncoding": (
        lambda: mr.layers.CategoryEncoding(2, "count")(np.array([[float(WIDE), 0.0]])),
        [[1.0, 0.0]],
    ),
    "switch": (lambda: mr.keras.ops.switch(WIDE, [lambda: c(0), lambda: c(1), lambda: c(2)]), 2),
    "slice_update": (lambda: mr.keras.ops.slice_update([1, 2, 3], [WIDE], [5]), [1, 2, 5]),
    "diff": (lambda: mr.keras.ops.diff([1.0, 2.0], WIDE), []),
}


@cases("case", WIDE_VALUES)
def test_integers_of_64_bits(case: str) -> None:
    call, expected = WIDE_VALUES[case]
    np.testing.assert_array_equal(call().numpy(), expected)


@cases(
    "call",
    [
        lambda: mr.histogram_fixed_width_bins([1.0], [0.0, 5.0], nbins=WIDE),
        lambda: mr.histogram_fixed_width([1.0], [0.0, 5.0], nbins=WIDE),
        lambda: mr.dynamic_partition([1, 2], [0, WIDE], 2),
        lambda: mr.dynamic_stitch([[0], [WIDE]], [[1], [2]]),
        lambda: mr.scatter_nd([[0]], [1], [WIDE]),
        lambda: mr.math.bincount([1], minlength=WIDE),
        lambda: mr.math.in_top_k([0], [[0.1]], WIDE),
        lambda: mr.shape(mr.layers.Input((WIDE,))),
        lambda: mr.keras.ops.squeeze([1], WIDE),
        lambda: mr.layers.Embedding(3, 2)(np.array([[WIDE]], "uint64")),
    ],
)
def test_integers_of_64_bits_where_there_are_32(call: Callable[[], Any]) -> None:
    with pytest.raises((mr.errors.InvalidArgumentError, TypeError), match=r"int32|[ =]4294967297"):
        call()


@cases("axis", [None, "x", 1.0, [0, 1]])
@cases("function", [mr.expand_dims, mr.cumsum, mr.nn.crelu, mr.unstack])
def test_what_is_no_axis_is_named(function: Any, axis: Any) -> None:
    with pytest.raises(TypeError, match=r"[aA]xis.* integer.*Received"):
        function(c([[1.0]]), axis=axis)


def test_coordinates_of_a_grid_have_one_dtype() -> None:
    with pytest.raises(mr.errors.InvalidArgumentError, match="was expected to be a int32 tensor"):
        mr.meshgrid(c([1]), c([1.0]))


def test_what_would_be_of_another_shape_is_refused() -> None:
    with pytest.raises(mr.errors.InvalidArgumentError, match="must be a permutation of the 2 axes"):
        mr.transpose([[1, 2]], [3, 0])
    with pytest.raises(ValueError, match=r"\(2,\) and \(2, 2\) are incompatible"):
        mr.clip_by_value([1.0, 2.0], [[0.0], [1.0]], 2.0)


# The gradients of the sum of the squares, by the tensor of 2 or the second one.
GRADIENTS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "fill": (lambda x: mr.fill([2, 2], x), 2.0, 16.0),
    "concat": (lambda x: mr.concat([x, x], c(-1)), [[1.0]], [[4.0]]),
    "unsorted_segment_max": (lambda x: mr.math.unsorted_segment_max(x, 1, 2)[1:], 2.0, 4.0),
    "unsorted_segment_mean": (lambda x: mr.math.unsorted_segment_mean(x, 1, 2), 2.0, 4.0),
    "clip_by_norm": (lambda x: mr.clip_by_norm([3.0, 4.0], x), 2.0, 4.0),
    "clip_by_global_norm": (lambda x: mr.clip_by_global_norm([[3.0, 4.0]], x)[0][0], 2.0, 4.0),
    "bias_add": (lambda x: mr.nn.bias_add(mr.zeros((3, 0)), x), np.zeros(0), np.zeros(0)),
}


@cases("recorded", [False, True])
@cases("case", GRADIENTS)
def test_gradients(case: str, recorded: bool) -> None:
    call, at, expected = GRADIENTS[case]

    def gradient(x: Any) -> Any:
        with mr.GradientTape() as tape:
            tape.watch(x)
            total = mr.reduce_sum(mr.square(call(x)))
        return tape.gradient(total, x)

    found = (mr.function(gradient) if recorded else gradient)(c(at, mr.float32))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
