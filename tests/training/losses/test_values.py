"""The small parts that losses and metrics share; the formulas are held by the losses' tests."""

from typing import Any

import numpy as np
import pytest

from mirrored import ops
from mirrored.training import losses
from mirrored.training.losses import values as maths


def tensor(shape: tuple[int, ...], dtype: str = "float32") -> ops.Tensor:
    return ops.constant(np.arange(np.prod(shape)).reshape(shape), dtype=dtype)


@pytest.mark.parametrize(
    ("y_shape", "p_shape", "expected"),
    [
        ((3,), (3, 1), (3, 1)),
        ((3, 1), (3,), (3,)),
        ((3, 2), (3, 2, 1), (3, 2, 1)),
        ((3, 2, 1), (3, 2), (3, 2)),
        ((0,), (0, 1), (0, 1)),
        ((3, 2), (3, 2), (3, 2)),
        ((3,), (3, 2), (3,)),  # What does not fit is left for the loss to refuse.
        ((3, 2), (3,), (3, 2)),
    ],
)
def test_aligned(y_shape: Any, p_shape: Any, expected: Any) -> None:
    y = tensor(y_shape)
    result = maths.aligned(y, tensor(p_shape))
    assert result.shape == expected
    np.testing.assert_array_equal(result.numpy().ravel(), y.numpy().ravel())


@pytest.mark.parametrize(
    ("shape", "expected"), [((4,), [0, 1, 2, 3]), ((2, 2), [0.5, 2.5]), ((2, 1, 2), [0.5, 2.5])]
)
def test_mean_of_rest(shape: Any, expected: list[float]) -> None:
    assert maths.mean_of_rest(tensor(shape)).numpy().tolist() == expected


@pytest.mark.parametrize(("y_shape", "dtype"), [((3,), "int32"), ((3, 1), "int64")])
def test_class_indices_keep_integers(y_shape: Any, dtype: str) -> None:
    indices = maths.class_indices(tensor(y_shape, dtype), tensor((3, 4)))
    assert indices.shape == (3,)
    assert indices.dtype == dtype


def test_class_indices_from_floats() -> None:
    assert maths.class_indices(tensor((3,)), tensor((3, 4))).dtype == "int64"


@pytest.mark.parametrize(("y_shape", "p_shape"), [((3, 4), (3, 4)), ((2,), (3, 4)), ((), ())])
def test_class_indices_refused(y_shape: Any, p_shape: Any) -> None:
    with pytest.raises(ValueError, match=r"Labels must have the shape of the predictions without"):
        maths.class_indices(tensor(y_shape), tensor(p_shape))


@pytest.mark.parametrize(("given", "shape"), [([1, 2], (2,)), ([[1.0], [2.0]], (2,)), (3, ())])
def test_example_weights(given: Any, shape: Any) -> None:
    weights = maths.example_weights(given, tensor((2, 5), "float64"))
    assert weights.shape == shape
    assert weights.dtype == "float64"


def test_cast_makes_no_op_where_none_is_needed() -> None:
    x = tensor((2,))
    assert maths.cast(x, ops.float32) is x
    assert maths.cast(x, ops.float64).dtype == "float64"


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4)])
def test_functions_reduce_the_last_axis_only(shape: Any) -> None:
    p = np.full(shape, 0.25)
    for function in (losses.mean_squared_error, losses.binary_crossentropy):
        assert function(p, p).shape == shape[:-1]
    assert losses.categorical_crossentropy(p, p).shape == shape[:-1]
    labels = np.zeros(shape[:-1], np.int64)
    assert losses.sparse_categorical_crossentropy(labels, p).shape == shape[:-1]
