"""Cross-entropies and their gradients on the emulated card, one by one and both at once."""

from itertools import product
from typing import Any

import kernel_sources
import numpy as np
import pytest
from case_table import cases

from mirrored.backends.cuda.fusion import KERNELS as ELEMENTWISE
from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.softmax_kernels import KERNELS

F32 = np.dtype(np.float32)
TOLERANCES = {"float32": 1e-5, "float64": 1e-13, "bfloat16": 1e-2}
DTYPES = [dtype.name for dtype in kernel_sources.FLOATS if dtype.name in TOLERANCES]
SHAPES = [(9, 10), (3, 1), (5, 33), (3, 300), (2, 5000), (0, 5)]
NAMES = {
    False: ("SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyGrad"),
    True: ("SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyGrad"),
}


def inputs(shape: tuple[int, int], dtype: Any, labels: str) -> tuple[Any, Any, Any]:
    """Return logits, labels and what comes from above; labels are integers or shares."""
    rng = np.random.default_rng(4)
    logits = (4 * rng.normal(size=shape)).astype(dtype)
    shares = rng.random(shape).astype(dtype)
    chosen = shares if labels == "shares" else rng.integers(0, shape[1], shape[:1]).astype(labels)
    return logits, chosen, rng.normal(size=shape[:1]).astype(dtype)


def reference(logits: Any, labels: Any, g: Any) -> tuple[Any, Any]:
    """Return the loss and its gradient, of double precision."""
    x = logits.astype(np.float64)
    if labels.ndim == 1:
        labels = labels[:, None] == np.arange(x.shape[1])
    labels = labels.astype(np.float64)
    shifted = x - x.max(1, keepdims=True)
    log_softmax = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    slopes = np.exp(log_softmax) - labels
    return -(labels * log_softmax).sum(1), slopes * g.astype(np.float64)[:, None]


def apart(card: Any, logits: Any, labels: Any, g: Any) -> tuple[Any, Any]:
    """Return the loss and its gradient, of a kernel each."""
    loss, gradient = NAMES[labels.ndim == 1]
    return (
        card.run(KERNELS[loss], (g.shape, g.dtype), logits, labels),
        card.run(KERNELS[gradient], (logits.shape, g.dtype), logits, labels, g),
    )


def at_once(card: Any, *arrays: Any, bias: Any = None, stores: bool = False) -> list[Any]:
    """Return the loss and its gradient, of one kernel, which may add a bias to the logits first.

    The logits come before them where it stores those.
    """
    logits, labels, g = map(card.array, arrays)
    names, specs = NAMES[arrays[1].ndim == 1], [(g.shape, g.dtype), (logits.shape, g.dtype)]
    inputs = [(logits, labels), (logits, labels, g)]
    if bias is not None:
        names, specs = ("BiasAdd", *names), [specs[1] if stores else None, *specs]
        inputs = [(logits, card.array(bias)), (None, labels), (None, labels, g)]
    return [each for each in card.together(names, specs, inputs) if each is not None]


@pytest.mark.parametrize(
    ("shape", "labels"),
    [*product(SHAPES, ("shares", "int32")), *((shape, "int64") for shape in SHAPES[:2])],
)
@pytest.mark.parametrize(
    "dtype",
    [pytest.param(d, marks=pytest.mark.slow if d == "float64" else ()) for d in DTYPES],
)
def test_values_and_that_both_at_once_have_the_same_bits(
    card: Any, shape: tuple[int, int], dtype: str, labels: str
) -> None:
    arrays = inputs(shape, dtype, labels)
    results = apart(card, *arrays)
    for got, expected in zip(results, reference(*arrays), strict=True):
        tolerance = TOLERANCES[dtype]
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(
            got.astype(np.float64), expected, rtol=tolerance, atol=tolerance * scale
        )
    for one, other in zip(results, at_once(card, *arrays), strict=True):
        assert one.tobytes() == other.tobytes()


@cases(
    ("dtype", "wrong"),
    [("int32", -1), ("int32", 10), ("int64", -(2**63)), ("int64", 2**32), ("int64", 2**40 + 3)],
    clean=False,
)
def test_a_label_that_is_no_class_makes_its_row_nan(card: Any, dtype: str, wrong: int) -> None:
    logits, labels, g = inputs((40, 10), F32, dtype)
    sound = apart(card, logits, labels, g)
    labels[3] = wrong
    spoiled = apart(card, logits, labels, g)
    for before, after in zip(sound, spoiled, strict=True):
        assert np.isnan(after[3]).all()
        np.testing.assert_array_equal(np.delete(after, 3, 0), np.delete(before, 3, 0))
    for one, other in zip(spoiled, at_once(card, logits, labels, g), strict=True):
        assert one.tobytes() == other.tobytes()


def test_rows_without_classes(card: Any) -> None:
    logits, g = np.zeros((3, 0), F32), np.ones(3, F32)
    assert [each.tolist() for each in apart(card, logits, logits, g)] == [[0, 0, 0], [[]] * 3]
    loss, _ = apart(card, logits, np.zeros(3, np.int32), g)
    assert np.isnan(loss).all()  # No label is a class.


@pytest.mark.parametrize("labels", ["shares", "int32"])
def test_large_logits_do_not_overflow(card: Any, labels: str) -> None:
    logits = np.array([[1e4, 0], [-3e38, -3e38]], F32)
    classes = np.array([0, 1], np.int32)
    chosen = np.eye(2, dtype=F32)[classes] if labels == "shares" else classes
    loss, gradient = apart(card, logits, chosen, np.ones(2, F32))
    np.testing.assert_allclose(loss, [0, np.log(2)], rtol=1e-6)
    assert gradient.tolist() == [[0, 0], [0.5, -0.5]]


@pytest.mark.parametrize("labels", ["shares", "int32"])
def test_a_small_grid_goes_round(card: Any, monkeypatch: pytest.MonkeyPatch, labels: str) -> None:
    arrays = inputs((100, 10), F32, labels)
    expected = [each.tobytes() for each in at_once(card, *arrays)]
    monkeypatch.setattr(teams, "_MOST_BLOCKS", 3)
    assert [each.tobytes() for each in at_once(card, *arrays)] == expected


@cases("labels", ["shares", "int64"], clean=False)
@cases("dtype", [d for d in DTYPES if d != "float64"], clean=False)
def test_a_bias_that_the_kernel_adds(card: Any, dtype: str, labels: str) -> None:
    """Whether it stores the logits, which others may read, or not."""
    x, chosen, g = inputs((9, 33), dtype, labels)
    bias = np.random.default_rng(7).normal(size=33).astype(dtype)
    logits = card.run(ELEMENTWISE["BiasAdd"], (x.shape, x.dtype), x, bias)
    expected = [each.tobytes() for each in (logits, *apart(card, logits, chosen, g))]
    stored = at_once(card, x, chosen, g, bias=bias, stores=True)
    assert [each.tobytes() for each in stored] == expected
    passed = at_once(card, x, chosen, g, bias=bias)
    assert [each.tobytes() for each in passed] == expected[1:]


@cases("before", [(), ("BiasAdd",), ("Cast",), ("BiasAdd", "Cast")], clean=False)
@cases("behind", [(), ("Cast",)], clean=False)
@cases("labels", ["shares", "int64"], clean=False)
def test_casts_that_the_kernel_does(
    card: Any, before: tuple[str, ...], behind: tuple[str, ...], labels: str
) -> None:
    """Bits are those of kernels one by one, which round where these do."""
    narrow = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    logits, chosen, g = inputs((9, 33), F32, labels)
    x = logits.astype(narrow if "Cast" in before else F32)
    bias = np.random.default_rng(7).normal(size=33).astype(x.dtype)
    added = card.run(ELEMENTWISE["BiasAdd"], (x.shape, x.dtype), x, bias)
    logits = (added if "BiasAdd" in before else x).astype(F32)
    loss, gradient = apart(card, logits, chosen, g)
    shape, names = (logits.shape, F32), (*before, *NAMES[chosen.ndim == 1], *behind)
    specs = [*[None, shape][2 - len(before) :], (g.shape, F32), None if behind else shape]
    specs += [(logits.shape, narrow)] * len(behind)
    first = (card.array(x), card.array(bias)) if "BiasAdd" in before else (card.array(x),)
    read = None if before else card.array(x)
    arrays = [first, (None,)][: len(before)]
    arrays += [(read, card.array(chosen)), (read, card.array(chosen), card.array(g))]
    found = card.together(names, specs, [*arrays, *[(None,)] * len(behind)])
    found = [each for each in found if each is not None]
    expected = [logits] * bool(before) + [loss, gradient.astype(narrow) if behind else gradient]
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
