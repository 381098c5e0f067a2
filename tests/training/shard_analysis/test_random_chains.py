"""Random chains of operations: what the analysis takes as right is what shards compute."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import mirrored as mr
from mirrored.training.shard_analysis.shard_recorder import recordings
from mirrored.training.shard_analysis.shard_values import UNIT, Kind, ShardValue

SHARDS, WIDTH = (7, 3, 1), 6
EXAMPLES = sum(SHARDS)
RNG = np.random.default_rng(3)
X, Z = RNG.uniform(0.2, 1.0, (2, EXAMPLES, WIDTH))
WEIGHTS = RNG.uniform(0.2, 1.0, (WIDTH, WIDTH))
# Sizes in the chains' own shapes, which no recording takes for a number of examples.
RESERVED = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 24, 36]
RESHAPES = [(-1, 6), (-1, 2), (6, -1), (2, -1), (-1, 2, 3), (2, -1, 3), (3, 2, -1), (-1, 1, 6)]
EINSUMS = ["ij,ij->i", "ij,ik->jk", "ij,kj->ik", "ij,ij->", "ij,ij->j", "ij,ik->ijk"]


class Step(NamedTuple):
    """One operation of a chain.

    Attributes:
        name: Its name in the table.
        inputs: Which values so far it takes.
        number: Which axis, shape or part it is for.
        flag: Which of two forms it has.
    """

    name: str
    inputs: tuple[int, int]
    number: int
    flag: bool


def axis_of(t: Any, step: Step) -> int:
    assume(len(t.shape) > 0)
    return step.number % len(t.shape)


def part(t: Any, step: Step, index: Any) -> Any:
    axis = axis_of(t, step)
    assume(t.shape[axis] > 1)
    return t[tuple(index if i == axis else slice(None) for i in range(len(t.shape)))]


def half(t: Any, batch: Any, step: Step) -> Any:
    """Return one of several blocks of as many rows as there are examples."""
    size = t.shape[axis_of(t, step)]
    assume(size > batch and size % batch == 0)
    return part(t, step, slice(batch, None) if step.flag else slice(0, batch))


def alike(t: Any, u: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    assume(t.shape == u.shape)
    return function(t, u, *args, **kwargs)


def per_example(t: Any, batch: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Apply a function that also takes the number of examples, to a value of (examples, 6)."""
    assume(tuple(t.shape) == (batch, WIDTH))
    return function(t, batch)


def column(t: Any) -> Any:
    return mr.cast(t[:, 0] * 5, "int32")


OPERATIONS: dict[str, Callable[[Any, Any, Any, Step], Any]] = {
    "tanh": lambda t, u, n, s: mr.tanh(t),
    "shift": lambda t, u, n, s: t + 0.3,
    "add": lambda t, u, n, s: alike(t, u, mr.add),
    "divide": lambda t, u, n, s: alike(t, u, lambda t, u: t / (u * u + 1.0)),
    "larger": lambda t, u, n, s: alike(t, u, mr.maximum),
    "select": lambda t, u, n, s: alike(t, u, lambda t, u: mr.where(t > 0.5, u, 0.0)),
    "sum": lambda t, u, n, s: mr.reduce_sum(t, axis=axis_of(t, s), keepdims=s.flag),
    "mean": lambda t, u, n, s: mr.reduce_mean(t, axis=axis_of(t, s), keepdims=s.flag),
    "largest": lambda t, u, n, s: mr.reduce_max(t, axis=axis_of(t, s), keepdims=s.flag),
    "total": lambda t, u, n, s: mr.reduce_sum(t),
    "softmax": lambda t, u, n, s: mr.nn.softmax(t, axis=axis_of(t, s)),
    "cumsum": lambda t, u, n, s: mr.cumsum(t, axis=axis_of(t, s)),
    "reverse": lambda t, u, n, s: mr.reverse(t, [axis_of(t, s)]),
    "roll": lambda t, u, n, s: mr.roll(t, 1, axis=axis_of(t, s)),
    "transpose": lambda t, u, n, s: mr.transpose(t),
    "reshape": lambda t, u, n, s: mr.reshape(t, RESHAPES[s.number % len(RESHAPES)]),
    "flatten": lambda t, u, n, s: mr.reshape(t, (-1,)),
    "concat": lambda t, u, n, s: alike(t, u, lambda t, u: mr.concat([t, u], axis_of(t, s))),
    "stack": lambda t, u, n, s: alike(t, u, lambda t, u: mr.stack([t, u], int(s.flag))),
    "repeat": lambda t, u, n, s: mr.repeat(t, 2, axis=axis_of(t, s)),
    "tile": lambda t, u, n, s: mr.tile(t, [2, *[1] * (len(t.shape) - 1)] if t.shape else []),
    "expand": lambda t, u, n, s: mr.expand_dims(t, s.number % (len(t.shape) + 1)),
    "half": lambda t, u, n, s: half(t, n, s),
    "evens": lambda t, u, n, s: part(t, s, slice(int(s.flag), None, 2)),
    "first": lambda t, u, n, s: part(t, s, 0 if s.flag else slice(0, 1)),
    "product": lambda t, u, n, s: alike(t, u, mr.matmul, s.flag, not s.flag),
    "weights": lambda t, u, n, s: per_example(t, n, lambda t, n: mr.matmul(t, WEIGHTS)),
    "places": lambda t, u, n, s: per_example(t, n, lambda t, n: mr.gather(t, mr.range(n))),
    "numbered": lambda t, u, n, s: per_example(
        t, n, lambda t, n: t * mr.cast(mr.range(n)[:, None], "float64")
    ),
    "picked": lambda t, u, n, s: per_example(
        t, n, lambda t, n: mr.gather_nd(t, mr.stack([mr.range(n), column(t)], 1))
    ),
    "classes": lambda t, u, n, s: per_example(
        t, n, lambda t, n: mr.math.unsorted_segment_sum(t, column(t), 5)
    ),
    "per count": lambda t, u, n, s: t / mr.cast(n, "float64"),
    "einsum": lambda t, u, n, s: per_example(
        t, n, lambda t, n: alike(t, u, lambda t, u: mr.einsum(EINSUMS[s.number % 6], t, u))
    ),
}
CHAINS = st.lists(
    st.builds(
        Step,
        st.sampled_from(sorted(OPERATIONS)),
        st.tuples(st.integers(0, 7), st.integers(0, 7)),
        st.integers(0, 11),
        st.booleans(),
    ),
    min_size=2,
    max_size=5,
)


def run(chain: list[Step], x: Any, z: Any) -> Any:
    values = [x, z]
    for step in chain:
        first, second = (values[-1 - index % len(values)] for index in step.inputs)
        try:
            values.append(OPERATIONS[step.name](first, second, x.shape[0], step))
        except (ValueError, IndexError):  # The shapes do not fit: another chain is tried.
            assume(False)
    return values[-1]


def known(chain: list[Step]) -> ShardValue:
    for recording in recordings(RESERVED):
        with recording.recording():
            specs = [mr.TensorSpec((WIDTH,), mr.float64)] * 2
            result = run(chain, *map(recording.shard, specs))
    return recording.result_known(result)


def is_taken_as_right(value: ShardValue) -> bool:
    """Return whether a value of this kind is put together from replicas without a word."""
    if value.kind is Kind.ROWS:
        plain = value.blocks in (1, None) and not value.step and not value.reordered
        return plain and not value.mixing and value.scale == UNIT
    if value.kind is Kind.SUM:
        return not value.mixing and value.scale is not None
    return value.kind is Kind.SAME and value.scale == UNIT


def together(value: ShardValue, parts: list[Any]) -> Any:
    """Put the values of shards together as replicas do."""
    if value.kind is Kind.ROWS:
        return np.concatenate(parts, axis=value.axis)
    if value.kind is Kind.SAME:
        return parts[0]
    assert value.scale is not None
    shares = [(size / EXAMPLES) ** -value.scale.examples for size in SHARDS]
    return sum(share * part for share, part in zip(shares, parts, strict=True))


@given(CHAINS)
def test_what_is_taken_as_right_is_right(chain: list[Step]) -> None:
    value = known(chain)
    assume(is_taken_as_right(value))
    edges = itertools.pairwise(np.cumsum((0, *SHARDS)))
    whole = run(chain, mr.constant(X), mr.constant(Z)).numpy()
    parts = [run(chain, mr.constant(X[a:b]), mr.constant(Z[a:b])).numpy() for a, b in edges]
    np.testing.assert_allclose(together(value, parts), whole, rtol=1e-9, atol=1e-12)
