"""Every formula in the advice on absent names is computed, beside NumPy in double precision.

The numbers are those at which a formula goes wrong first: large and small ones, zeros, infinities
and NaN. Gradients of some of them are in `tests/ops/test_hard_values.py`.
"""

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import mirrored as mr
from mirrored._absent import tables

Array = np.ndarray[Any, Any]
INF, NAN = np.inf, np.nan

# Expressions that compute no number from numbers.
OTHERS = {
    "Activation('relu')",
    "Activation('softmax')",
    "GradientTape()",
    "MirroredStrategy(executor=...)",
    "cast(x, float32)",
    "cast(x, int32)",
    "check_numerics(x, message)",
    "compile(run_eagerly=True)",
    "device('GPU:1')",
    "fit(verbose=1)",
    "from_config(get_config())",
    "get_memory_info(device)['current']",
    "is_built_with_cuda()",
    "is_gpu_available()",
    "isinstance(x, (Tensor, Variable))",
    "keras.initializers.TruncatedNormal()(shape)",
    "logging.getLogger('mirrored')",
    "model.summary()",
    "numpy.linalg.eig(x.numpy())",
    "profiler.trace(filepath)",
    "x.assign(value)",
    "x.numpy()",
}

LARGE = 1e19  # Of float32 larger ones have squares that overflow, in TensorFlow's functions too.
ROWS = np.array(
    [
        [3.0, -4.0, 0.0],
        [0.0, -0.0, 0.0],
        [LARGE, -LARGE, 1.0],
        [1e-18, -1e-18, 0.0],
        [INF, 1.0, 0.0],
        [-INF, 1.0, 0.0],
        [NAN, 1.0, 0.0],
        [16777217.0, 1.0, 1.0],
        [6.0, 7.0, -1e-30],
    ],
    np.float32,
)


class Formula(NamedTuple):
    """What a formula computes: in double precision, and from which values of its names."""

    expected: Callable[..., Any]
    values: Sequence[dict[str, Any]]


def each_row(**more: Any) -> list[dict[str, Any]]:
    return [{"x": ROWS[i : i + 1], **more} for i in range(len(ROWS))]


def normalized(x: Array, n: Array) -> Array:
    """Return what Keras' `normalize` does: zeros stay zeros."""
    return np.asarray(x / np.where(n == 0, 1, n))


FORMULAS: dict[str, Formula] = {
    "x / (n + (n == 0))": Formula(
        normalized,
        [{**each, "n": np.linalg.norm(each["x"], axis=-1, keepdims=True)} for each in each_row()],
    ),
}
ON_ARRAYS = {"x / (n + (n == 0))"}  # As Keras' own function does.


def expressions() -> set[str]:
    """Return all that the advice quotes and that computes something."""
    rows = (*tables().absent, *tables().older)
    advice = [row.advice for row in rows if row.homes[0] in tables().modules]
    quoted = {each for text in advice for each in re.findall("`([^`]+)`", text)}
    return {each for each in quoted if _computes(each)}


def _computes(text: str) -> bool:
    try:
        body = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    return not isinstance(body, ast.Name | ast.Attribute | ast.Constant)


@pytest.mark.behaviour("formulas")
def test_every_formula_is_here() -> None:
    assert expressions() - OTHERS == FORMULAS.keys()


def tensor_of(value: Any) -> Any:
    return mr.constant(value) if isinstance(value, np.ndarray | np.generic) else value


def wide(value: Any) -> Any:
    is_float = isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f"
    return value.astype(np.float64) if is_float else value


@pytest.mark.behaviour("formulas")
@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_computes_what_it_stands_for(text: str) -> None:
    expected, cases = FORMULAS[text]
    for values in cases:
        given = values if text in ON_ARRAYS else {k: tensor_of(v) for k, v in values.items()}
        with np.errstate(all="ignore"):
            found = np.asarray(eval(text, {**dict(inspect.getmembers(mr)), "np": np, **given}))
            right = np.asarray(expected(*(wide(each) for each in values.values())))
        np.testing.assert_allclose(found, right, rtol=2e-6, atol=1e-37, err_msg=f"{values}")
