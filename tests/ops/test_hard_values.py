"""Results and gradients at hard values are TensorFlow's: zeros, infinities, NaN, extremes, ties.

The table is `hard_values.json`; `hard_values.py` beside it says how it was made.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hard_values import CASES, differentiated, inputs_of, table

import mirrored as mr
from mirrored import ops
from mirrored.ops.hooks import add_listener, remove_listener

Array = np.ndarray[Any, Any]
EXPECTED = table()
SMALLEST = float(np.finfo(np.float32).tiny)  # TensorFlow takes smaller numbers for 0.

# Sums of numbers that cancel, which leave the rounding of an order of additions.
ROUNDED = {
    "softmax",
    "log_softmax",
    "l2_normalize",
    "clip_by_norm",
    "sigmoid_cross_entropy",
    "eigvalsh",
    "svd",
}
ROUNDED |= {"normalize"}

# Where ours is another number on purpose, by case, upstream gradient and which result:
# the elements, and what they are.
OTHERWISE: dict[tuple[str, str, int], dict[int, float]] = {
    # TensorFlow divides by x twice before it looks at what flows in, and overflows.
    ("one over x", "0", 1): {12: 0.0, 13: 0.0},
    # The factor is one number a row here, so that what is within the norm keeps its bits.
    ("clip_by_norm", "1", 1): dict.fromkeys((42, 43, 44), np.nan),
    # TensorFlow divides by the norm, also by 0.
    **{
        (f"clip_by_global_norm of {parts}", upstream, number): dict.fromkeys(
            range(3 - number), float(upstream)
        )
        for parts in ("zeros", "underflow")
        for upstream in ("0", "1")
        for number in (1, 2)
    },
    # The quotient is smaller than numbers that TensorFlow takes for others than 0.
    **{("floordiv", upstream, 0): {39: -1.0} for upstream in ("0", "1")},
    ("floormod", "1", 2): {39: 1.0},
    # TensorFlow adds 1 to x, which has no digits left.
    **{("erfinv", upstream, 0): {12: 1.7724535e-38, 13: -1.7724535e-38} for upstream in ("0", "1")},
    # TensorFlow computes exp(x) - 1 there, which has no digits left.
    **{("elu", upstream, 0): {13: -2e-38} for upstream in ("0", "1")},
    **{("selu", upstream, 0): {13: -3.5161988e-38} for upstream in ("0", "1")},
    ("selu", "1", 1): {13: 1.7580993},  # There x is below 0.
    # TensorFlow divides by the quotient of the norm, 0 or NaN, and of what flows in.
    ("reduce_euclidean_norm", "0", 1): dict.fromkeys((0, 1, 2, 37, 38, 39, 48, 49, 50), 0.0),
    # The largest logit is added before the others are subtracted, and hides the digits behind it.
    **{
        (f"softmax_cross_entropy{labels}", upstream, 0): {14: 0.0}
        for labels in ("", " of several")
        for upstream in ("0", "1")
    },
}

# Where a product overflows and the sum does not: kernels that round once (FMA) give the sum, others
# the infinity. Which one BLAS has is the machine's.
EITHER = {"matmul": {14: (-np.inf, -3e38)}, "matmul of batches": {14: (-np.inf, -3e38)}}


def expected(name: str, upstream: str) -> list[Array]:
    """Return what the results of a case have to be."""
    arrays = [np.array(each) for each in EXPECTED[name][upstream]]
    for number, array in enumerate(arrays):
        for element, value in OTHERWISE.get((name, upstream, number), {}).items():
            assert not np.array_equal(array[element], value, equal_nan=True)
            array[element] = value
    return arrays


def check(name: str, upstream: str, results: Sequence[ops.Tensor], signs: bool = True) -> None:
    """Compare a case's results with TensorFlow's, the signs of a result's zeros included."""
    atol = 2e-7 if name in ROUNDED else SMALLEST
    found = [each.numpy().reshape(-1) for each in results]
    for number, (ours, theirs) in enumerate(zip(found, expected(name, upstream), strict=True)):
        what = f"{name}, {'gradient' if number else 'result'}, where {upstream} flows in"
        for element, values in EITHER.get(name, {}).items() if number == 0 else ():
            assert ours[element] in np.array(values, ours.dtype), what
            theirs[element] = ours[element]
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=atol, err_msg=what)
        if signs and number == 0:
            known = ~np.isnan(theirs)
            np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(theirs)[known], what)


class Names:
    """Notes the names of the ops that run."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def on_op(self, op: ops.Op, *_: Any) -> None:
        self.seen.add(op.name)

    def on_read(self, *_: Any) -> None:
        pass


@pytest.mark.behaviour("hard-gradients", "norm-not-finite")
def test_eagerly() -> None:
    """And every op with a gradient is among those that run, forward or back."""
    names = Names()
    add_listener(names)
    try:
        for name, case in CASES.items():
            for upstream in EXPECTED[name]:
                flow = mr.constant(float(upstream))
                check(name, upstream, differentiated(mr, case, inputs_of(mr, case), flow))
    finally:
        remove_listener(names)
    differentiable = {name for name, op in ops.OPS.items() if op.gradient is not None}
    assert differentiable - names.seen == set()


def check_recorded(names: Iterable[str], signs: bool) -> None:
    """Hold one recorded function of several cases to the table."""

    @mr.function
    def results_of(inputs: dict[str, list[ops.Tensor]], flow: ops.Tensor) -> dict[str, Any]:
        return {name: differentiated(mr, CASES[name], inputs[name], flow) for name in inputs}

    inputs = {name: inputs_of(mr, CASES[name]) for name in names}
    for upstream in ("0", "1", "0"):
        for name, results in results_of(inputs, mr.constant(float(upstream))).items():
            check(name, upstream, results, signs)


@pytest.mark.behaviour("hard-gradients", "norm-not-finite")
@pytest.mark.slow
def test_recorded() -> None:
    check_recorded(CASES, signs=True)


@pytest.mark.behaviour("hard-gradients")
def test_recorded_on_the_emulated_card(emulated_cuda: Callable[..., Any]) -> None:
    """What is composed of several kernels; `test_expressions.py` has every elementwise one."""
    emulated_cuda()
    names = ("sqrt", "reduce_min", "reduce_prod", "log_softmax")
    check_recorded(names, signs=False)


def test_the_table_is_of_these_cases() -> None:
    assert EXPECTED.keys() == CASES.keys()
