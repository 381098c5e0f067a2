"""What the rules say of an expression is what NumPy-like arithmetic on shards shows."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.ops.op import OPS
from mirrored.training.shard_analysis.rules import RULES
from mirrored.training.shard_analysis.shard_recorder import recordings, sizes_beside
from mirrored.training.shard_analysis.shard_values import Kind, Scale, ShardValue

RNG = np.random.default_rng(3)
SIZES = (3, 2, 1)
X = RNG.uniform(0.2, 1.0, (6, 4))
# A table with a row per class, and weights.
TABLE = RNG.uniform(0.5, 1.5, (5, 4))
SQUARE = RNG.uniform(0.5, 1.5, (4, 4))
Expression = Callable[[Any], Any]
# Windows of 2 x 1, filters for them, and those of each channel.
WINDOWS = {"strides": (1, 1), "padding": ((1, 0), (0, 0)), "dilations": (1, 1)}
FILTERS = RNG.uniform(0.5, 1.5, (2, 1, 2, 2))


def classes(x: Any) -> Any:
    """Return a class per example."""
    return mr.cast(x[:, 0] * 4.9, "int32")


def images(x: Any, *shape: int) -> Any:
    """Return images of two rows, one column and two channels, or of another shape."""
    return mr.reshape(x, shape or (-1, 2, 1, 2))


def op(name: str, *inputs: Any, **attrs: Any) -> Any:
    """Return what an operation with windows of 2 x 1 computes, as rows of four features."""
    result = OPS[name](*map(mr.convert_to_tensor, inputs), **WINDOWS, **attrs)
    return mr.reshape(result, (-1, 4)) if "Filter" not in name else result


def count(x: Any) -> Any:
    """Return the number of examples, as programs ask for it."""
    return mr.cast(mr.shape(x)[0], "float64")


ROWS: dict[str, Expression] = {
    "arithmetic": lambda x: mr.tanh(x * 2.0 + SQUARE[0]) / (x + 1.0) - mr.maximum(x, 0.5),
    "selection": lambda x: mr.where(x > 0.5, x, 0.0),
    "products": lambda x: mr.matmul(mr.matmul(x, SQUARE), SQUARE),
    "a batch of products": lambda x: mr.matmul(x[:, :, None], x[:, None, :]),
    "columns": lambda x: mr.transpose(mr.matmul(SQUARE, x, transpose_b=True)),
    "shapes": lambda x: mr.reshape(mr.transpose(mr.reshape(x, (-1, 2, 2)), (0, 2, 1)), (-1, 4)),
    "joined": lambda x: mr.concat([x, x * x, mr.ones_like(x)], axis=1),
    "stacked": lambda x: mr.stack([x, 2.0 * x], axis=1),
    "features": lambda x: mr.reduce_max(x, axis=1) + mr.reduce_mean(x, axis=-1),
    "kept axes": lambda x: x - mr.reduce_sum(x, axis=1, keepdims=True),
    "softmax": lambda x: mr.nn.softmax(x) + mr.nn.log_softmax(x, axis=1),
    "scans": lambda x: mr.cumsum(x, axis=1),
    "sorted": lambda x: mr.sort(x, axis=1),
    "looked up": lambda x: mr.gather(TABLE, classes(x)),
    "picked": lambda x: mr.gather(x, mr.constant([2, 0]), axis=1),
    "picked by row": lambda x: mr.gather(x, classes(x)[:, None] % 4, batch_dims=1, axis=1),
    "picked by place": lambda x: mr.gather_nd(
        x, mr.stack([mr.range(mr.shape(x)[0]), classes(x) % 4], axis=1)
    ),
    "cross-entropy": lambda x: mr.nn.sparse_softmax_cross_entropy_with_logits(classes(x) % 4, x),
    "slices": lambda x: x[:, 1:] * x[..., :-1],
    "broadcast": lambda x: mr.broadcast_to(x[:, None, :], (x.shape[0], 3, 4)),
    "picked from a flat row": lambda x: mr.gather(
        mr.reshape(x, (-1,)), mr.range(mr.shape(x)[0]) * 4 + classes(x) % 4
    ),
    "features first": lambda x: mr.transpose(
        mr.reshape(mr.tanh(mr.reshape(mr.transpose(x), (-1,))), (4, -1))
    ),
    "two after two": lambda x: mr.reduce_sum(
        mr.reshape(mr.concat([x, x * x], 0) * mr.concat([x, mr.ones_like(x)], 0), (2, -1, 4)), 0
    ),
    "twice as long": lambda x: mr.reduce_sum(
        mr.reshape(mr.repeat(x, 2, axis=0) - mr.repeat(x * x, 2, axis=0), (-1, 2, 4)), axis=1
    ),
    "every other": lambda x: mr.repeat(x, 2, axis=0)[1::2] + x,
    "one by one": lambda x: mr.map_fn(lambda row: row / mr.reduce_sum(row), x),
    "ordered twice": lambda x: mr.reverse(mr.reverse(x, [0]) * 2.0, [1]) * 0.0 + 1.0,
    "one hot": lambda x: mr.one_hot(classes(x), 5),
    "convolutions": lambda x: op("Conv2D", images(x * x), FILTERS),
    "gradients of images": lambda x: (
        op("Conv2DBackpropInput", FILTERS, images(x), sizes=(2, 1, 2))
        + op("DepthwiseConv2dNativeBackpropInput", FILTERS[..., :1], images(x), sizes=(2, 1, 2))
    ),
    "pooling": lambda x: (
        op("MaxPool", images(x), window=(2, 1)) + op("AvgPool", images(x), window=(2, 1))
    ),
    "gradients of pooling": lambda x: (
        op("MaxPoolGrad", images(x), images(x), images(x * x), window=(2, 1))
        + op("AvgPoolGrad", images(x), window=(2, 1), sizes=(2, 1))
    ),
    "convolutions of two batches": lambda x: op(
        "DepthwiseConv2dNative", images(mr.concat([x, x * x], axis=0)), FILTERS[..., :1]
    )[x.shape[0] :],
    "a mean over the batch of weights": lambda x: x * mr.reduce_mean(SQUARE, axis=0),
}
SUMS: dict[str, tuple[Expression, Scale]] = {
    "sum": (lambda x: mr.reduce_sum(x), Scale()),
    "mean": (lambda x: mr.reduce_mean(x * x), Scale(-1)),
    "sum by a literal": (lambda x: mr.reduce_sum(x) / 6.0, Scale()),
    "sum by the count": (lambda x: mr.reduce_sum(x) / count(x), Scale(-1)),
    "sum by a size in Python": (lambda x: mr.reduce_sum(x) * (0.3 / x.shape[0]), Scale(-1)),
    "sum by a size as a tensor": (lambda x: mr.reduce_sum(x) / float(x.shape[0] * 4), Scale(-1)),
    "mean times the count": (lambda x: mr.reduce_mean(x) * count(x), Scale()),
    "sum of parts": (lambda x: 0 + mr.reduce_sum(x[:, 0]) + 2.0 * mr.reduce_sum(x), Scale()),
    "mean and a constant": (lambda x: mr.reduce_mean(x) + mr.reduce_sum(SQUARE), Scale(-1)),
    "by features": (lambda x: mr.linalg.matvec(SQUARE, mr.reduce_sum(x, axis=0)), Scale()),
    "product over examples": (lambda x: mr.matmul(x, x + 1.0, transpose_a=True), Scale()),
    "gradients of filters": (
        lambda x: op("Conv2DBackpropFilter", images(x), images(x * x), sizes=(2, 1, 2, 2)),
        Scale(),
    ),
    "gradients of filters by a mean": (
        lambda x: op(
            "DepthwiseConv2dNativeBackpropFilter",
            images(x),
            images(x / count(x)),
            sizes=(2, 1, 2, 1),
        ),
        Scale(-1),
    ),
    "by class": (lambda x: mr.math.unsorted_segment_sum(x, classes(x), 5), Scale()),
    "in another order": (lambda x: mr.reduce_mean(mr.reverse(x, [0])), Scale(-1)),
    "of two batches": (lambda x: mr.reduce_mean(mr.concat([x, x * x], axis=0)), Scale(-1)),
    "half of two batches": (lambda x: mr.reduce_sum(mr.concat([x, -x], 0)[x.shape[0] :]), Scale()),
    "unused": (lambda x: mr.reduce_mean(x) + 0.0 * mr.reduce_max(x), Scale(-1)),
}
OTHERS: dict[str, Expression] = {
    "root of a mean": lambda x: mr.sqrt(mr.reduce_mean(x)),
    "largest": lambda x: mr.reduce_max(x),
    "quotient of sums": lambda x: mr.reduce_sum(x * x) / mr.reduce_sum(x),
    "sum and a constant": lambda x: mr.reduce_sum(x) + 1.0,
    "sum and mean": lambda x: mr.reduce_sum(x) + mr.reduce_mean(x),
    "one example": lambda x: x[0],
    "product of means": lambda x: mr.reduce_mean(x) * mr.reduce_mean(x),
}
MIXING: dict[str, tuple[Expression, str]] = {
    "mean": (lambda x: x - mr.reduce_mean(x, axis=0), "Mean"),
    "largest": (lambda x: x / mr.reduce_max(x), "Max"),
    "classes by the batch size": (lambda x: mr.cast(x[:, 0] * 5 / count(x), "int32"), "Cast"),
    "softmax": (lambda x: mr.nn.softmax(x, axis=0), "Softmax"),
    "cumsum": (lambda x: mr.cumsum(x, axis=0), "Cumsum"),
    "turned": (lambda x: x + mr.reverse(x, [0]), "StridedSlice"),
    "turned before a product": (
        lambda x: mr.matmul(mr.reverse(x, [0]), SQUARE) + mr.gather(TABLE, classes(x)),
        "StridedSlice",
    ),
    "rolled": (lambda x: mr.roll(x, 1, axis=0), "StridedSlice"),
    "sorted": (lambda x: mr.sort(x, axis=0), "TopKV2"),
    "ranks": (lambda x: mr.gather(x, mr.argsort(x[:, 0])), "GatherV2"),
    "pairs": (lambda x: mr.matmul(x, x, transpose_b=True)[:, :1], "MatMul"),
    "filters by all examples": (
        lambda x: op("Conv2D", images(x), FILTERS * mr.reduce_max(x)),
        "Max",
    ),
    "windows over examples": (
        lambda x: op("Conv2D", images(x, 1, -1, 2, 2), FILTERS),
        "Conv2D",
    ),
    "pooling over examples": (
        lambda x: op("MaxPool", images(x, 1, -1, 4, 1), window=(2, 1)),
        "MaxPool",
    ),
    "differences": (lambda x: mr.reduce_sum(x[:, None] - x[None], axis=1), "Sub"),
    "variance": (lambda x: mr.math.reduce_variance(x, axis=0, keepdims=True) * x, "Mean"),
    "the count": (lambda x: x / count(x), ""),
    "cut along features": (lambda x: mr.transpose(mr.reshape(x, (4, -1))), "Reshape"),
    "neighbours": (
        lambda x: mr.reshape(mr.concat([x, x * x], 0), (-1, 2, 4))[:, 0] * x,
        "Reshape",
    ),
    "a part of a flat row": (lambda x: mr.reshape(x, (-1,))[: mr.shape(x)[0]], "StridedSlice"),
    "repeated otherwise": (lambda x: mr.tile(x, [2, 1]) + mr.repeat(x, 2, axis=0), "AddV2"),
    "summed otherwise": (
        lambda x: mr.matmul(x, mr.matmul(mr.reverse(x, [0]), x, transpose_a=True)),
        "StridedSlice",
    ),
    "as often as there are examples": (
        lambda x: mr.reduce_sum(mr.broadcast_to(x, (mr.shape(x)[0], *x.shape)), axis=0),
        "BroadcastTo",
    ),
    "in a square": (
        lambda x: mr.reduce_sum(x[:, :1] * mr.ones([mr.shape(x)[0]] * 2, "float64"), axis=1),
        "Mul",
    ),
    "places": (lambda x: x * mr.cast(mr.range(mr.shape(x)[0])[:, None], "float64"), "Mul"),
    "the first": (lambda x: mr.where(mr.range(mr.shape(x)[0])[:, None] < 2, x, 0.0), "SelectV2"),
    "by a changed place": (
        lambda x: mr.gather(x, mr.minimum(mr.range(mr.shape(x)[0]) + classes(x), 1)),
        "GatherV2",
    ),
}


def known(expression: Expression) -> ShardValue:
    """Return what is known of an expression of rows of four features."""
    for recorder in recordings([4, 5]):
        with recorder.recording():
            result = expression(recorder.shard(mr.TensorSpec((4,), mr.float64)))
    return recorder.result_known(result)


def on_shards(expression: Expression) -> tuple[Any, list[Any]]:
    """Return what an expression gives for the whole batch, and for each shard."""
    starts = np.cumsum((0, *SIZES))
    shards = [X[start:stop] for start, stop in itertools.pairwise(starts)]
    whole, *parts = [mr.convert_to_tensor(expression(mr.constant(x))).numpy() for x in (X, *shards)]
    return whole, parts


@cases("expression", ROWS.values(), ids=ROWS)
def test_rows(expression: Expression) -> None:
    value = known(expression)
    assert (value.kind, value.axis, value.mixing, value.scale) == (Kind.ROWS, 0, set(), (0, 0))
    whole, parts = on_shards(expression)
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12)


@pytest.mark.behaviour("scalar-loss")
@cases(("expression", "scale"), SUMS.values(), ids=SUMS)
def test_sums_and_means(expression: Expression, scale: Scale) -> None:
    value = known(expression)
    assert (value.kind, value.scale, value.mixing) == (Kind.SUM, scale, set())
    whole, parts = on_shards(expression)
    weights = [(size / 6) ** -scale.examples for size in SIZES]
    total = sum(part * weight for part, weight in zip(parts, weights, strict=True))
    np.testing.assert_allclose(total, whole, rtol=1e-12)


@pytest.mark.behaviour("scalar-loss")
@cases("expression", OTHERS.values(), ids=OTHERS)
def test_what_is_neither(expression: Expression) -> None:
    value = known(expression)
    assert value.kind is Kind.OTHER
    assert value.sources
    whole, parts = on_shards(expression)
    sums = [sum(parts), sum(part * size / 6 for part, size in zip(parts, SIZES, strict=True))]
    assert not any(np.allclose(each, whole) for each in sums)


@cases(("expression", "operation"), MIXING.values(), ids=MIXING)
def test_what_mixes_examples(expression: Expression, operation: str) -> None:
    value = known(expression)
    found = value.mixing | value.reordered | value.sources
    if operation:
        assert operation in {each.name for each in found}
    else:
        assert value.scale != (0, 0)
    whole, parts = on_shards(expression)
    assert not np.allclose(np.concatenate(parts), whole)


def test_every_operation_has_a_rule() -> None:
    """What has none counts as mixing: these shuffle, or call a function of the user."""
    names = {op.name for op in OPS.values() if not op.elementwise}
    assert names - RULES.keys() <= {"StatelessShuffle"}
    assert not RULES.keys() - {op.name for op in OPS.values()}


def test_sizes_divide_no_other_size() -> None:
    for sizes in sizes_beside([41 * 43, 94, 0]):
        assert all(math.gcd(each, 41 * 43 * 94) == 1 for each in sizes)
