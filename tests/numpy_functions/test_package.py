"""`experimental.numpy` beside NumPy, whose numbers and dtypes TensorFlow 2.21 gives for these."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError

M = [[1.0, 2.0], [3.0, 5.0]]
HALVES = np.float32([0.5, -0.25, 0.75])
WHOLE = np.int32([3, 1, 2])
CALLS: dict[str, tuple[Any, ...]] = {
    **{
        name: (HALVES,)
        for name in (
            *("abs", "arcsin", "arccos", "arctan", "arcsinh", "arctanh", "cbrt", "ceil", "cos"),
            *("cosh", "cumprod", "cumsum", "deg2rad", "exp", "exp2", "expm1", "fix", "floor"),
            *("isfinite", "isinf", "isnan", "isneginf", "isposinf", "log1p", "logical_not"),
            *("negative", "positive", "rad2deg", "reciprocal", "sign", "signbit", "sin", "sinc"),
            *("sinh", "sort", "square", "tan", "tanh", "argsort", "argmax", "argmin", "diff"),
        )
    },
    **{
        name: (WHOLE,)
        for name in (
            *("sum", "prod", "mean", "max", "min", "amax", "amin", "ptp", "std", "var", "all"),
            *("any", "exp", "sqrt", "log", "log2", "log10", "arccosh", "average", "count_nonzero"),
            *("ravel", "flip", "atleast_2d", "atleast_3d", "nanmean", "nansum", "nanprod"),
        )
    },
    **{
        name: (WHOLE, 2.5)
        for name in (
            *("add", "subtract", "multiply", "true_divide", "floor_divide", "mod", "power"),
            *("maximum", "minimum", "arctan2", "hypot", "isclose", "allclose", "equal", "less"),
            *("greater", "greater_equal", "less_equal", "not_equal", "logical_and", "append"),
            *("logical_or", "logical_xor", "logaddexp", "logaddexp2", "outer", "dot", "inner"),
            *("heaviside", "nextafter", "kron", "array_equal"),
        )
    },
    "matmul": (M, M),
    "vdot": (M, M),
    "tensordot": (M, M, 1),
    "cross": ([1, 2, 3], [4.0, 5, 6]),
    "einsum": ("ij,j", M, [1, 2]),
    "polyval": ([1.0, 2, 3], [0.5, 2.0]),
    "around": ([1.25, -2.75], 1),
    "clip": (WHOLE, 1.5, 2.5),
    "zeros": (3,),
    "ones": ((2, 1), np.float32),
    "full": ((2,), 3),
    "full_like": (WHOLE, 2.5),
    "zeros_like": (HALVES,),
    "eye": (2, 3, 1),
    "identity": (2,),
    "arange": (1, 7, 2),
    "linspace": (0, 1, 5),
    "geomspace": (1, 16, 5),
    "logspace": (0, 2, 3),
    "tri": (3, 3, -1),
    "tril": (M, -1),
    "triu": (M, 1),
    "diag": ([1, 2], -1),
    "diagonal": (M, 1),
    "diagflat": (M,),
    "vander": ([1.0, 2, 3],),
    "trace": (M, 1),
    "reshape": (M, (4, 1)),
    "expand_dims": (WHOLE, 1),
    "squeeze": ([[1], [2]],),
    "transpose": (M,),
    "swapaxes": (np.zeros((1, 2, 3)), 0, -1),
    "moveaxis": (np.zeros((1, 2, 3)), 0, -1),
    "broadcast_to": (WHOLE, (2, 3)),
    "stack": ([[1, 2], [3.5, 4]], 1),
    "concatenate": ([[1, 2], [3.5]],),
    "hstack": ([[1, 2], [3]],),
    "vstack": ([[1, 2], [3.0, 4]],),
    "dstack": ([[1, 2], [3, 4]],),
    "tile": (M, (2, 1)),
    "repeat": (M, 2, 1),
    "pad": (WHOLE, [[1, 2]], "reflect"),
    "roll": (M, 1),
    "rot90": (M, -1),
    "where": ([True, False], [1, 2], 0.5),
    "select": ([[True, False], [True, True]], [[1, 2], [3.5, 4]]),
    "compress": ([False, True], M, 1),
    "take": (WHOLE, [2, 0]),
    "take_along_axis": (np.float64(M), np.array([[1], [0]]), 1),
}


@cases("name", CALLS)
def test_numbers_and_dtypes_of_numpy(name: str) -> None:
    args = CALLS[name]
    expected = np.asarray(getattr(np, name)(*args))
    found = getattr(mr.experimental.numpy, name)(*args).numpy()
    assert found.dtype == expected.dtype
    rtol = 1e-6 if expected.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-7)


@cases(
    ("name", "args"),
    [
        ("split", ([1, 2, 3, 4], [1, 3])),
        ("hsplit", (np.float64(M), 2)),
        ("meshgrid", ([1, 2], [3.5])),
        ("nonzero", ([[1, 0], [0, 2]],)),
        ("broadcast_arrays", ([1, 2], [[3], [4]])),
        ("divmod", (7, 2)),
        ("ix_", ([0, 1], [2])),
    ],
)
def test_several(name: str, args: tuple[Any, ...]) -> None:
    found = getattr(mr.experimental.numpy, name)(*args)
    for each, expected in zip(found, getattr(np, name)(*args), strict=True):
        assert each.dtype == expected.dtype
        np.testing.assert_array_equal(each.numpy(), expected)


def test_dtypes_that_values_have_together() -> None:
    tnp = mr.experimental.numpy
    x = mr.constant([1.0])
    assert tnp.result_type(x, 2.5) == np.float32
    assert tnp.result_type(mr.constant([1]), x) == np.float64
    assert tnp.array([1.0] * 100).dtype == np.float64
    assert tnp.array(2**63).dtype == np.uint64
    assert tnp.array(x, np.float64).dtype == np.float64
    assert tnp.random.randn(2).dtype == np.float64


def test_gradients_and_recording() -> None:
    tnp = mr.experimental.numpy
    x = mr.Variable([1.0, -2.0])

    @mr.function
    def slope() -> mr.Tensor:
        with mr.GradientTape() as tape:
            y = tnp.sum(tnp.where(tnp.greater(x, 0), tnp.square(x), tnp.maximum(x, 0)))
        return tape.gradient(y, x)

    assert slope().numpy().tolist() == [2.0, 0.0]


@cases(
    ("call", "error"),
    [
        (lambda tnp: tnp.arange(1, 2, 0), ValueError),
        (lambda tnp: tnp.take([1], [2], mode="raise"), ValueError),
        (lambda tnp: tnp.clip([1], None, None), ValueError),
        (lambda tnp: tnp.pad([1.0], [[1, 1]], "edge"), ValueError),
        (lambda tnp: tnp.matmul([[1, 2]], [[1, 2]]), ValueError),
        (lambda tnp: tnp.add([1, 2], [1, 2, 3]), InvalidArgumentError),
        (lambda tnp: tnp.random.randint(3, dtype=float), ValueError),
    ],
)
def test_refused(call: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(mr.experimental.numpy)
