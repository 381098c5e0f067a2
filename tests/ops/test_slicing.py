"""Indexing, against NumPy's."""

import operator
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError
from mirrored.variables import Variable

SHAPES = npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)


@st.composite
def arrays_and_indices(draw: Any) -> tuple[Any, Any]:
    shape = draw(SHAPES)
    array = np.arange(float(np.prod(shape))).reshape(shape)
    return array, draw(npst.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))


@settings(max_examples=30)
@given(arrays_and_indices())
def test_as_numpy(pair: tuple[Any, Any]) -> None:
    array, index = pair
    found = ops.constant(array)[index]
    assert found.shape == array[index].shape
    np.testing.assert_array_equal(found.numpy(), array[index])


@settings(max_examples=30)
@given(arrays_and_indices())
def test_gradient(pair: tuple[Any, Any]) -> None:
    """It is zero but where an element was taken."""
    array, index = pair
    t = ops.constant(array)
    with GradientTape() as tape:
        tape.watch(t)
        taken = t[index]
    expected = np.zeros(array.shape)
    expected[index] = 1.0
    np.testing.assert_array_equal(tape.gradient(taken, t).numpy(), expected)


def test_tensors_as_indices() -> None:
    t = ops.constant([10, 20, 30])
    i = ops.constant(1)
    assert int(t[i]) == 20
    assert t[i : np.int64(3)].numpy().tolist() == [20, 30]
    assert int(t[Variable(2)]) == 30


def test_a_slice_is_a_copy() -> None:
    t = ops.constant([1.0, 2.0])
    assert t[:]._storage is not t._storage


@pytest.mark.behaviour("index-out-of-bounds")
@cases(
    ("index", "text"),
    [
        (5, "slice index 5 of dimension 0 out of bounds."),
        ((0, -4), "slice index -4 of dimension 1 out of bounds."),
        ((Ellipsis, 3), "slice index 3 of dimension 1 out of bounds."),
        ((0, 0, 0), "Index out of range using input dim 2; input has only 2 dims"),
        ((Ellipsis, Ellipsis), "Multiple ellipses in slice spec not allowed"),
        (slice(None, None, 0), "strides[0] must be non-zero"),
    ],
)
def test_bad_indices(index: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ops.zeros((2, 3))[index]
    assert text in str(caught.value)
    assert "[Op:StridedSlice]" in str(caught.value)


@cases(
    "index",
    [
        *(1.0, "a", [0, 1], np.array([0, 1]), slice(0.5, None), np.bool_(True)),
        *(slice(True, None), slice(1.0, None), (1, True), (1.0, 1)),
    ],
)
def test_what_is_no_index(index: Any) -> None:
    """Also where an index of equal numbers was used before."""
    assert ops.zeros((2, 3))[1:].shape == (1, 3)
    assert ops.zeros((2, 3))[1, 1].shape == ()
    with pytest.raises(TypeError, match=r"Only integers, slices .* are valid indices. Received: "):
        operator.getitem(ops.zeros((2, 3)), index)


def test_masks() -> None:
    x = ops.constant([[1, 2], [3, 4]])
    np.testing.assert_array_equal(x[x > 2].numpy(), [3, 4])
    np.testing.assert_array_equal(x[np.array([False, True])].numpy(), [[3, 4]])
    with pytest.raises(ValueError, match="mask cannot be scalar"):
        x[True]
    with pytest.raises(TypeError, match="are valid indices"):
        operator.getitem(x, (ops.constant([True, False]), 0))
