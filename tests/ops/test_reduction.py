"""Reductions by their public names."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError

X = np.arange(24.0).reshape(2, 3, 4) % 7
PAIRS = [
    (ops.reduce_sum, np.sum),
    (ops.reduce_mean, np.mean),
    (ops.reduce_max, np.max),
    (ops.reduce_min, np.min),
    (ops.reduce_prod, np.prod),
]


@cases(("function", "reference"), PAIRS)
@cases("axis", [None, 0, -1, (0, 2), [1, -1], (), np.int64(1)])
@cases("keepdims", [False, True])
def test_axes(function: Any, reference: Any, axis: Any, keepdims: bool) -> None:
    plain = tuple(axis) if isinstance(axis, list) else axis
    expected = reference(X, axis=plain, keepdims=keepdims)
    found = function(X, axis=axis, keepdims=keepdims).numpy()
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@cases("function", [pair[0] for pair in PAIRS])
def test_bad_axes(function: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\(3 for input with 3 dimension\(s\) \[Op:"):
        function(X, axis=3)
    with pytest.raises(InvalidArgumentError, match=r"duplicate dimension: \[0, -3\]"):
        function(X, axis=[0, -3])
    with pytest.raises(TypeError, match="an integer or a sequence of integers"):
        function(X, axis=1.0)


# As TensorFlow 2.21 computes them.
@pytest.mark.behaviour("integer-means")
@cases(
    ("values", "mean"),
    [
        ([-1, -2], -1),
        ([1, 2], 1),
        ([2**31 - 1] * 3, 2**31 - 1),
        ([-(2**31)] * 3, -(2**31)),
        ([2**60 + 1] * 2, 2**60 + 1),
        ([2**62] * 3, -1537228672809129301),
        (np.uint8([200] * 3), 200),
        (np.uint8([200, 3, 0, 255]), 114),
    ],
)
def test_means_of_integers_are_of_sums_in_64_bits(values: Any, mean: int, record: Any) -> None:
    x = ops.constant(values)
    result = ops.reduce_mean(x)
    assert result.dtype == x.dtype
    assert int(result) == mean
    assert int(record(lambda x: [ops.reduce_mean(x)], [x.numpy()])(x.numpy())[0]) == mean


@pytest.mark.behaviour("integer-means")
def test_of_nothing() -> None:
    empty = np.zeros((0, 2), np.float32)
    np.testing.assert_array_equal(ops.reduce_sum(empty, axis=0).numpy(), [0.0, 0.0])
    np.testing.assert_array_equal(ops.reduce_mean(empty, axis=0).numpy(), [np.nan, np.nan])
    np.testing.assert_array_equal(ops.reduce_max(empty, axis=0).numpy(), [-np.inf, -np.inf])
    assert int(ops.reduce_max(np.zeros(0, np.int32))) == np.iinfo(np.int32).min
    np.testing.assert_array_equal(ops.reduce_min(empty, axis=0).numpy(), [np.inf, np.inf])
    assert int(ops.reduce_min(np.zeros(0, np.uint8))) == 255
    np.testing.assert_array_equal(ops.reduce_prod(empty, axis=0).numpy(), [1.0, 1.0])
    with pytest.raises(InvalidArgumentError, match=r"The mean of 0 integers.*\(0,\)"):
        ops.reduce_mean(np.zeros(0, np.int32))
    with pytest.raises(InvalidArgumentError, match=r"Reduction axis 0 is empty in shape \(0, 2\)"):
        ops.argmax(empty, axis=0)


@cases("axis", [None, 0, 1, -1])
@cases("dtype", ["int32", "int64"])
@cases(("function", "reference"), [(ops.argmax, np.argmax), (ops.argmin, np.argmin)])
def test_places(axis: int | None, dtype: str, function: Any, reference: Any) -> None:
    found = function(X, axis, dtype)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found.numpy(), reference(X, axis=axis or 0))


def test_places_are_the_first_of_several() -> None:
    assert int(ops.argmax([1.0, 3.0, 3.0])) == 1
    assert int(ops.argmin([3.0, 1.0, 1.0])) == 1


@cases("dtype", [np.int32, np.int64, np.uint8])
def test_extremes_of_integers(dtype: Any) -> None:
    """Those whose negative is not among them, too."""
    ends = np.iinfo(dtype)
    x = np.array([1, ends.min, ends.max], dtype)
    assert int(ops.reduce_min(x)) == ends.min
    assert int(ops.argmin(x)) == 1


def test_gradient_of_a_product() -> None:
    """That of each element is the product of the others, where there are zeros too."""
    for values in ([2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0], [5.0], [1.0, 2, 3, 4, 5]):
        x = ops.constant(values)
        with GradientTape() as tape:
            tape.watch(x)
            product = ops.reduce_prod(x)
        others = [np.prod(np.delete(values, i)) for i in range(len(values))]
        np.testing.assert_array_equal(tape.gradient(product, x).numpy(), others)


def test_argmax_arguments() -> None:
    for op, dtype in [(ops.argmax, "float32"), (ops.argmax, "int8"), (ops.argmin, "int16")]:
        with pytest.raises(InvalidArgumentError, match="attr 'output_type' of"):
            op(X, 0, dtype)
    last = np.arange(40_000.0)  # TensorFlow's wrap around too.
    given = [ops.argmax(last, output_type=each) for each in ("int16", "uint16")]
    assert [(each.dtype, int(each)) for each in given] == [("int16", -25537), ("uint16", 39999)]
    with pytest.raises(InvalidArgumentError, match=r"Invalid axis 3 .* \[Op:ArgMax\]"):
        ops.argmax(X, 3)


def test_equal_maxima_share_the_gradient() -> None:
    x = ops.constant([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]])
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.reduce_max(x, axis=1)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])


@pytest.mark.behaviour("deterministic")
def test_order_is_fixed() -> None:
    x = np.random.default_rng(0).standard_normal((1000, 37)).astype(np.float32)
    first = ops.reduce_sum(x, axis=0).numpy()
    for _ in range(3):
        assert (ops.reduce_sum(x, axis=0).numpy() == first).all()
