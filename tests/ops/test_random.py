"""Random numbers: reproducible, indexed by position, and of the right distribution."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given
from hypothesis import strategies as st

from mirrored import ops
from mirrored.ops import rng_state as random_module

FLOATS = ["float32", "float64"]
DRAWS = ["uniform", "normal"]


def equal(a: Any, b: Any) -> bool:
    return bool((np.asarray(a) == np.asarray(b)).all())


@cases("draw", [ops.random_uniform, ops.random_normal])
@cases("dtype", FLOATS)
def test_set_seed_restarts_the_streams(draw: Any, dtype: str) -> None:
    def two() -> list[Any]:
        return [draw((50,), dtype=dtype).numpy() for _ in range(2)]

    ops.set_seed(5)
    first, second = two()
    ops.set_seed(5)
    assert equal(two(), [first, second])
    assert not equal(first, second)
    ops.set_seed(6)
    assert not equal(two()[0], first)
    assert first.dtype == np.dtype(dtype)


def test_a_seed_is_any_integer() -> None:
    seeds = [0, 1, -1, 2**62 + 1, 2**62 + 2, 2**63, np.int64(7)]
    drawn = []
    for seed in seeds:
        ops.set_seed(seed)
        drawn.append(tuple(ops.random_uniform((4,), dtype="float64").numpy()))
    assert len(set(drawn)) == len(seeds)
    for bad in (1.0, "1", None, True):
        with pytest.raises(TypeError, match="A seed must be an integer"):
            ops.set_seed(bad)  # type: ignore[arg-type]


def test_large_seeds_are_told_apart_by_generators_too() -> None:
    seeds = [0, 1, 2**53, 2**53 + 1, 2**62 + 1, 2**62 + 2, 2**64 - 1]
    drawn = {tuple(ops.SeedGenerator(seed).uniform((4,)).numpy()) for seed in seeds}
    assert len(drawn) == len(seeds)


def test_op_seeds_give_streams_of_their_own() -> None:
    ops.set_seed(1)
    first = [ops.random_uniform((5,), seed=3).numpy() for _ in range(2)]
    ops.set_seed(1)
    ops.random_uniform((5,))  # Draws of the global stream do not move it,
    ops.random_normal((5,), seed=4)  # nor those of another seed.
    again = [ops.random_uniform((5,), seed=3).numpy() for _ in range(2)]
    assert equal(first, again)
    assert not equal(first[0], first[1])
    ops.set_seed(2)
    assert not equal(ops.random_uniform((5,), seed=3).numpy(), first[0])


def test_streams_are_independent() -> None:
    """Correlations of 20,000 numbers have a standard deviation of 0.007."""
    ops.set_seed(1)
    generators = [ops.SeedGenerator(seed) for seed in (1, 2)]
    streams = [
        ops.random_uniform((20000,)).numpy(),
        ops.random_uniform((20000,)).numpy(),
        ops.random_uniform((20000,), seed=1).numpy(),
        *[each.uniform((20000,)).numpy() for each in generators],
        generators[0].uniform((20000,)).numpy(),
        ops.SeedGenerator().uniform((20000,)).numpy(),
    ]
    off_diagonal = np.corrcoef(streams) - np.eye(len(streams))
    assert np.abs(off_diagonal).max() < 0.035


def test_generators_without_a_seed_come_from_the_global_stream() -> None:
    ops.set_seed(9)
    a, b = ops.SeedGenerator(), ops.SeedGenerator()
    drawn = [each.normal((8,)).numpy() for each in (a, b)]
    ops.set_seed(9)
    assert equal([ops.SeedGenerator().normal((8,)).numpy() for _ in range(2)], drawn)
    assert not equal(drawn[0], drawn[1])


@cases("dtype", FLOATS)
@cases("draw", DRAWS)
@cases("row", [(), (1,), (3,), (2, 5), (8,)])
@cases("sizes", [(7,), (3, 4), (4, 3), (1, 5, 1), (3, 0, 2, 2), (2, 1, 2, 1, 1)])
def test_shards_draw_what_one_device_would(
    dtype: str, draw: str, row: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    def drawn(generator: ops.SeedGenerator, count: int) -> Any:
        make = getattr(generator, draw)
        return make((count, *row), dtype=dtype, per_example=True).numpy()

    whole, sharded = ops.SeedGenerator(3), ops.SeedGenerator(3)
    for _ in range(2):  # Two steps, so that the draws are counted by step and replica.
        run, first, parts = object(), 0, []
        for replica, size in enumerate(sizes):
            with ops.shard_position(ops.ShardPosition(run, replica, first)):
                parts.append(drawn(sharded, size))
            first += size
        np.testing.assert_array_equal(np.concatenate(parts), drawn(whole, sum(sizes)))


@given(
    total=st.integers(1, 5000),
    cut=st.integers(0, 5000),
    row=st.integers(1, 3),
    draw=st.sampled_from(DRAWS),
    dtype=st.sampled_from(FLOATS),
)
def test_any_cut_continues_the_whole(total: int, cut: int, row: int, draw: str, dtype: str) -> None:
    """Across the rounds in which kernels draw, and from odd places."""
    cut %= total
    whole = getattr(ops.SeedGenerator(1), draw)((total, row), dtype=dtype).numpy()
    with ops.shard_position(ops.ShardPosition(object(), 1, cut)):
        part = getattr(ops.SeedGenerator(1), draw)(
            (total - cut, row), dtype=dtype, per_example=True
        ).numpy()
    np.testing.assert_array_equal(part, whole[cut:])


def test_without_per_example_every_replica_draws_the_same() -> None:
    generator, run = ops.SeedGenerator(1), object()
    parts = []
    for replica in range(2):
        with ops.shard_position(ops.ShardPosition(run, replica, replica * 3)):
            parts.append([generator.uniform((3,)).numpy(), generator.uniform((3,)).numpy()])
    assert equal(parts[0], parts[1])
    assert not equal(parts[0][0], parts[0][1])


def test_replicas_that_draw_more_do_not_make_others_repeat() -> None:
    generator, seen = ops.SeedGenerator(1), []
    for run, counts in ((object(), (1, 3)), (object(), (1, 1)), (None, (2,))):
        for replica, count in enumerate(counts):
            with ops.shard_position(ops.ShardPosition(run, replica, 0)):
                seen += [tuple(generator.uniform((3,)).numpy()) for _ in range(count)]
    # The first draws of two replicas of one run are the same one; all others differ.
    assert len(seen) == 8
    assert len(set(seen)) == 6


def test_shard_position_is_restored() -> None:
    position = ops.ShardPosition(object(), 1, 5)
    with ops.shard_position(position):
        assert random_module.current_position() is position
    with pytest.raises(KeyError), ops.shard_position(position):
        raise KeyError
    assert random_module.current_position() == ops.ShardPosition()


def kolmogorov_smirnov(sample: Any, distribution: Any) -> float:
    """Return the largest distance between the sample's distribution and the given one."""
    ordered = distribution(np.sort(np.asarray(sample, np.float64)))
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_distribution(dtype: str) -> None:
    n = 100_000
    sample = ops.random_uniform((n,), dtype=dtype).numpy()
    assert 0.0 <= sample.min() < 1e-4
    assert 1.0 - 1e-4 < sample.max() < 1.0
    assert sample.mean() == pytest.approx(0.5, abs=4 / math.sqrt(12 * n))
    assert sample.var() == pytest.approx(1 / 12, rel=0.02)
    assert kolmogorov_smirnov(sample, lambda x: x) < 1.95 / math.sqrt(n)  # A chance of 0.1%.


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_distribution(dtype: str) -> None:
    n = 100_000
    sample = ops.random_normal((n,), dtype=dtype).numpy()
    normal = np.vectorize(lambda x: 0.5 * (1.0 + math.erf(x / math.sqrt(2.0))))
    assert sample.mean() == pytest.approx(0.0, abs=4 / math.sqrt(n))
    assert sample.var() == pytest.approx(1.0, rel=0.02)
    assert kolmogorov_smirnov(sample, normal) < 1.95 / math.sqrt(n)
    neighbours = np.corrcoef(sample[:-1], sample[1:])[0, 1]
    assert abs(neighbours) < 4 / math.sqrt(n)


def test_scale_and_offset() -> None:
    ops.set_seed(1)
    plain = ops.random_uniform((100,), dtype="float64").numpy()
    ops.set_seed(1)
    np.testing.assert_allclose(
        ops.random_uniform((100,), -2.0, 6.0, "float64").numpy(), plain * 8.0 - 2.0
    )
    ops.set_seed(1)
    plain = ops.random_normal((100,)).numpy()
    ops.set_seed(1)
    np.testing.assert_allclose(
        ops.random_normal((100,), 5.0, 2.0).numpy(), plain * 2.0 + 5.0, rtol=1e-6
    )
    generator = ops.SeedGenerator(1)
    assert generator.uniform((100,), 3.0, 4.0).numpy().min() >= 3.0
    assert abs(float(ops.reduce_mean(generator.normal((1000,), 10.0, 0.1))) - 10.0) < 0.05


@cases("dtype", ["int32", "int64"])
@cases(("low", "high"), [(0, 2), (-3, 4), (5, 6), (-(2**31), 2**31 - 1)])
def test_integers(dtype: str, low: int, high: int) -> None:
    sample = ops.random_uniform((5000,), low, high, dtype).numpy()
    assert sample.dtype == np.dtype(dtype)
    assert low <= sample.min()
    assert sample.max() < high
    if high - low < 10:
        counts = np.bincount(sample - low)
        assert len(counts) == high - low
        assert counts.min() > 0.8 * 5000 / (high - low)


def test_integers_reach_the_ends_of_their_dtype() -> None:
    sample = ops.random_uniform((10,), 2**31 - 1, 2**31, "int32").numpy()
    assert (sample == 2**31 - 1).all()


@cases(
    ("arguments", "error", "text"),
    [
        ({"dtype": "int32"}, ValueError, "Must specify maxval for integer dtype int32"),
        ({"minval": 2, "maxval": 2, "dtype": "int64"}, ValueError, "Need minval < maxval"),
        ({"maxval": 2**40, "dtype": "int32"}, ValueError, "The range does not fit int32"),
        ({"maxval": 2, "dtype": "bool"}, ValueError, "invalid value bool"),
        ({"shape": (-1,)}, ValueError, r">= 0. Received: \(-1,\)"),
        ({"shape": 1.5}, TypeError, "A shape must be"),
        ({"seed": 1.5}, TypeError, "A seed must be an integer"),
        ({"minval": "a"}, ValueError, "could not convert string"),
    ],
)
def test_bad_arguments_draw_nothing(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    ops.set_seed(1)
    expected = ops.random_uniform((3,)).numpy()
    ops.set_seed(1)
    with pytest.raises(error, match=text):
        ops.random_uniform(**{"shape": (3,), **arguments})
    assert equal(ops.random_uniform((3,)).numpy(), expected)
    with pytest.raises(TypeError, match="dtype=int32"):
        ops.random_normal((3,), dtype="int32")
    with pytest.raises(TypeError, match="A seed must be an integer"):
        ops.SeedGenerator("a")  # type: ignore[arg-type]


def test_default_dtype_of_a_generator_is_floatx() -> None:
    assert ops.SeedGenerator(1).uniform((2,)).dtype == ops.float32
    ops.set_floatx("float64")
    assert ops.SeedGenerator(1).normal((2,)).dtype == ops.float64


def test_permutation() -> None:
    generator = ops.SeedGenerator(4)
    orders = [generator.permutation(100) for _ in range(3)]
    for order in orders:
        assert sorted(order) == list(range(100))
    for one, other in pairwise(orders):
        assert not equal(one, other)
    assert equal(ops.SeedGenerator(4).permutation(100), orders[0])
    assert len(ops.SeedGenerator(4).permutation(0)) == 0


def test_device_does_not_change_the_numbers(simulate: Any) -> None:
    simulate(1)
    ops.set_seed(1)
    on_gpu = ops.random_normal((5,))
    ops.set_seed(1)
    with ops.shard_position(ops.ShardPosition()):
        again = ops.random_normal((5,))
    assert on_gpu.device.endswith("GPU:0")
    assert equal(on_gpu.numpy(), again.numpy())
