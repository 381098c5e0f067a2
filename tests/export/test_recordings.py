"""Sizes and constants of a function by what they were in a few recordings of it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.export.onnx_file import RULES
from mirrored.export.recordings import GraphInput, Trace, traced
from mirrored.export.sizes import Band, Counted, Numbers, Repeated, Samples, Size, constant_of

SAMPLES = Samples.of(["batch", "steps"], (5, 2, 11, 521), exact=False)
EVEN = Samples.of(["batch", "steps"], (12, 24, 36, 48), exact=True)
Numbered = Callable[[int, int], Any]


@cases(
    ("samples", "number"),
    [
        (SAMPLES, lambda n, t: 7),
        (SAMPLES, lambda n, t: n),
        (SAMPLES, lambda n, t: 3 * t),
        (SAMPLES, lambda n, t: 2 * n * t * t),
        (SAMPLES, lambda n, t: 4 - n),
        (SAMPLES, lambda n, t: n + 2 * t + 1),
        (EVEN, lambda n, t: n // 4),
    ],
)
def test_a_number_of_other_sizes(samples: Samples, number: Numbered) -> None:
    found = samples.fitted([number(*run) for run in samples.runs])
    sizes = (24, 60)
    assert (found.value(sizes) if isinstance(found, Size) else found) == number(*sizes)


@cases(
    "number",
    [lambda n, t: n // 2, lambda n, t: min(n, 9), lambda n, t: n * t + 1, lambda n, t: n**t],
)
def test_a_number_that_is_no_sum_of_products(number: Numbered) -> None:
    assert SAMPLES.fitted([number(*run) for run in SAMPLES.runs]) is None


@cases(
    ("array", "kind"),
    [
        (lambda n, t: np.ones((n, 3), np.float32), Repeated),
        (lambda n, t: np.broadcast_to(np.array([1.0, 2.0]), (n, t, 2)), Repeated),
        (lambda n, t: np.arange(t)[None, :], Counted),
        (lambda n, t: np.arange(n, dtype=np.float32) * 0.5 - 1, Counted),
        (lambda n, t: np.tri(t, dtype=np.bool_)[None], Band),
        (lambda n, t: np.where(np.tri(t, t + 2, 2), 0.0, -1e9), Band),
        (lambda n, t: np.tri(n, t, -1), Band),
        (lambda n, t: np.eye(t, n, dtype=np.float32), Band),
        (lambda n, t: np.tri(t, t, 1) - np.tri(t, t, -1), Band),
        (lambda n, t: np.array([n, 3, 2 * t]), Numbers),
        (lambda n, t: np.float32(n), Numbers),
        (lambda n, t: np.float32(1 / n), type(None)),
        (lambda n, t: np.arange(n) ** 2, type(None)),
        (lambda n, t: np.ones(n // 2), type(None)),
        (lambda n, t: np.triu(np.ones((t, t))) * np.arange(t), type(None)),
    ],
)
def test_a_constant_that_grows(array: Numbered, kind: type) -> None:
    arrays = [np.asarray(array(*run)) for run in SAMPLES.runs]
    assert type(constant_of(arrays, SAMPLES)) is kind


PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "export.md"


def test_the_page_lists_the_operations() -> None:
    cells = re.findall(r"^\| .* \| (`.*`) \|$", PAGE.read_text(), re.MULTILINE)
    assert sorted(name.strip("`") for cell in cells for name in cell.split()) == sorted(RULES)


def trace(function: Callable[[mr.Tensor], Any], *shape: int | str) -> Trace:
    """Return what a function of one input is."""
    given = GraphInput("x", shape or ("batch", 6), np.dtype(np.float32))
    return traced(lambda tensors: [function(tensors[0])], [given], RULES)


def test_what_has_no_part_in_the_results_is_left_out() -> None:
    def function(x: mr.Tensor) -> mr.Tensor:
        mr.math.lgamma(x)
        return x[:, ::-1] + 1.0

    assert [step.op for step in trace(function).steps] == ["StridedSlice", "AddV2"]


def test_sizes_that_a_function_takes_alone() -> None:
    """Only even numbers of examples can be halved, so the half is one."""
    found = trace(lambda x: mr.reshape(x, (2, -1, 6)))
    (size,) = {each for each in found.results[0].shape if isinstance(each, Size)}
    assert size.value((8,)) == 4


class Writing(mr.layers.Layer):
    """Counts its calls."""

    def build(self, input_shape: Any) -> None:
        self.count = self.add_weight(shape=(), initializer="zeros", trainable=False, name="count")

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        self.count.assign_add(1.0)
        return inputs


def _checking(x: mr.Tensor) -> mr.Tensor:
    mr.debugging.check_numerics(x, "not finite")
    return x


@cases(
    ("function", "text"),
    [
        (mr.layers.Lambda(mr.math.lgamma, name="gamma"), "'Lgamma'.* in the layer 'gamma'"),
        (mr.layers.Lambda(_checking), "'CheckNumerics'"),
        (lambda x: x + mr.random.normal((6,)), "'RandomStandardNormal'"),
        (Writing(), r"new value for the variable .*/count:0"),
        (
            lambda x: x * (1 / len(x)),
            "computes another constant as an argument of 'Mul' in the fun",
        ),
        (mr.squeeze, r"returns shape \(6,\) if the size of batch is 1, and \(1, 6\)"),
        (lambda x: mr.exp(x) if len(x) > 9 else x, "another number of operations in the func"),
        (mr.layers.Lambda(lambda x: sum(x[i] for i in range(len(x))), name="sum"), "'sum'"),
        (lambda x: mr.exp(x) if len(x) > 9 else mr.sin(x), "something else than 'Sin'"),
        (lambda x: mr.math.cumsum(x, axis=int(len(x) > 9)), "another setting of 'Cumsum'"),
    ],
)
def test_what_is_refused(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(NotImplementedError, match=text):
        trace(function)
