"""Random numbers as TensorFlow 1 draws them: each draw is an operation, and what follows others."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.compat.v1.drawn_calls import computes, named_call
from mirrored.compat.v1.graph import Graph, drawing
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.listing import named
from mirrored.compat.v1.operands import constant_in
from mirrored.compat.v1.sources import converted
from mirrored.graph import placeholders
from mirrored.ops.random_draws import random_truncated_normal
from mirrored.ops.spec import as_dtype


def random_uniform(
    shape: ShapeLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Return random numbers of a uniform distribution.

    Args:
        shape: The shape.
        minval: The least number.
        maxval: What all are below; None: 1, for floats.
        dtype: Their dtype.
        seed: A seed of the operation's own, beside the graph's.
        name: Its name.

    Raises:
        ValueError: Of integers `maxval` is not given.
    """
    wanted = as_dtype(dtype)
    whole = wanted.kind in "iu"
    if maxval is None and whole:
        raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
    low: Any = minval
    high: Any = 1 if maxval is None else maxval
    if computes(shape, low, high):
        return ops.random_uniform(shape, low, high, wanted, seed)
    # As there, floats of these values are drawn as any others.
    from_zero = isinstance(low, int) and low == 0
    to_one = isinstance(high, int) and high == 1
    with drawing(name or "random_uniform", shape, low, high) as (graph, scope):
        shown = _shown(graph, shape, "shape")
        if whole:
            shown += _shown(graph, low, "min") + _shown(graph, high, "max")
            args = (shape, low, high, wanted, seed)
            return graph.draw(
                ops.random_uniform, args, kind="RandomUniformInt", name=scope, shown=shown
            ).outputs[0]
        if not (from_zero and to_one):
            low, high = converted(low, wanted, "min"), converted(high, wanted, "max")
        args = (shape, 0, 1, wanted, seed)
        kind = "RandomUniform"
        drawn = graph.draw(ops.random_uniform, args, kind=kind, name=kind, shown=shown)
        numbers: Any = drawn.outputs[0]
        if from_zero and to_one:
            return numbers
        if from_zero:
            return named_call("multiply")(numbers, high)
        return named_call("add")(numbers * (high - low), low, name=scope)


def _normal(
    called: str, function: Callable[..., Any], kind: str, numbers: str, deviation: str
) -> Callable[..., Any]:
    """Return a function that draws numbers of a normal distribution.

    Args:
        called: Its name.
        function: Draws the numbers of mean 0 and standard deviation 1.
        kind: The type of the operation that calls it.
        numbers: What the function returns.
        deviation: What its standard deviation is.
    """

    def draw(
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        seed: int | None = None,
        name: str | None = None,
    ) -> Any:
        """Return random {numbers}.

        Args:
            shape: The shape.
            mean: The mean.
            stddev: The standard deviation{deviation}.
            dtype: A float.
            seed: A seed of the operation's own, beside the graph's.
            name: Its name.
        """
        wanted = as_dtype(dtype)
        if computes(shape, mean, stddev):
            return function(shape, mean, stddev, wanted, seed)
        with drawing(name or called, shape, mean, stddev) as (graph, scope):
            shown = _shown(graph, shape, "shape")
            center, spread = converted(mean, wanted, "mean"), converted(stddev, wanted, "stddev")
            args = (shape, 0.0, 1.0, wanted, seed)
            drawn = graph.draw(function, args, kind=kind, name=kind, shown=shown)
            return named_call("add")(drawn.outputs[0] * spread, center, name=scope)

    return named(draw, called, numbers=numbers, deviation=deviation)


random_normal = _normal(
    "random_normal",
    ops.random_normal,
    "RandomStandardNormal",
    "numbers of a normal distribution",
    "",
)
truncated_normal = _normal(
    "truncated_normal",
    random_truncated_normal,
    "TruncatedNormal",
    "normal numbers within two standard deviations of the mean",
    ", before values further away are drawn again",
)


def _shown(graph: Graph, value: Any, name: str) -> list[Tensor]:
    """Return an argument as a constant of the graph, where no tensor is in it."""
    return [] if placeholders(value) else [constant_in(graph, np.array(value, np.int32), name)]


def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Any:
    """Return a tensor with its elements limited to an interval.

    Args:
        t: The tensor.
        clip_value_min: The least number.
        clip_value_max: The largest one.
        name: Its name.
    """
    if computes(t, clip_value_min, clip_value_max):
        return ops.maximum(ops.minimum(t, clip_value_max), clip_value_min)
    with drawing(name or "clip_by_value", t, clip_value_min, clip_value_max) as (_, scope):
        below = named_call("minimum")(t, clip_value_max)
        return named_call("maximum")(below, clip_value_min, name=scope)
