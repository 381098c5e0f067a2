"""What `reduce` of strategies makes of values of any kind, over replicas and over an axis."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from replica_context import number

import mirrored as mr
from mirrored import devices
from mirrored.distribute import (
    MirroredStrategy,
    PerReplica,
    ReduceOp,
    Strategy,
    get_strategy,
)

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.mark.behaviour("reduce")
@cases(
    ("op", "axis", "expected"),
    [
        ("SUM", None, [[6.0, 8.0], [10.0, 12.0]]),
        ("mean", None, [[3.0, 4.0], [5.0, 6.0]]),
        ("SUM", 0, [16.0, 20.0]),
        ("MEAN", 0, [4.0, 5.0]),
        ("SUM", 1, [14.0, 22.0]),
        ("Mean", -1, [3.5, 5.5]),
        (ReduceOp.SUM, np.int64(0), [16.0, 20.0]),
    ],
)
def test_reduce(simulate: Simulate, op: str, axis: int | None, expected: Any) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    value = strategy.run(lambda: mr.constant([[1.0, 2.0], [3.0, 4.0]]) + 4.0 * float(number()))
    reduced = strategy.reduce(op, value, axis=axis)
    assert reduced.numpy().tolist() == expected
    assert reduced.device == f"{FULL}CPU:0"


@pytest.mark.behaviour("reduce-uneven")
@settings(max_examples=20)
@given(
    data=st.data(),
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    dtype=st.sampled_from(["float32", "float64", "int32", "int64"]),
)
def test_uneven_shards_are_reduced_as_the_whole(
    data: st.DataObject, sizes: list[int], dtype: str
) -> None:
    devices.reset_devices()
    mr.config.experimental.set_simulated_gpus(len(sizes))
    strategy = MirroredStrategy()
    rest = data.draw(st.lists(st.integers(0, 3), max_size=2))
    axis = data.draw(st.integers(-len(rest) - 1, len(rest)))
    place = axis % (len(rest) + 1)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shapes = [(*rest[:place], size, *rest[place:]) for size in sizes]
    parts = [rng.integers(-9, 9, shape).astype(dtype) for shape in shapes]
    whole = np.concatenate(parts, place)
    value = PerReplica([mr.constant(part) for part in parts])
    # Sums of small whole numbers are exact in any order and dtype.
    total = strategy.reduce("sum", value, axis=axis)
    np.testing.assert_array_equal(total.numpy(), whole.sum(place), strict=False)
    assert total.dtype == dtype
    if whole.shape[place]:
        mean = strategy.reduce("mean", value, axis=axis)
        expected = whole.sum(place) / whole.shape[place]
        assert mean.dtype == (dtype if dtype.startswith("float") else "float64")
        np.testing.assert_allclose(mean.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_mean_of_nothing_is_none(simulate: Simulate, dtype: str) -> None:
    simulate(2)
    value = PerReplica([mr.zeros((0, 2), dtype)] * 2)
    with np.errstate(invalid="ignore"):
        assert np.isnan(MirroredStrategy().reduce("mean", value, axis=0).numpy()).all()


@pytest.mark.behaviour("reduce-uneven")
@pytest.mark.parametrize("how", [lambda f: f, mr.function], ids=["eager", "recorded"])
def test_a_sum_over_an_axis_is_not_a_mean_of_means(simulate: Simulate, how: Any) -> None:
    simulate(3)
    strategy = MirroredStrategy()
    value = PerReplica([mr.constant(part) for part in ([1.0, 2.0, 6.0], [4.0], [7.0, 10.0])])

    def reductions(x: Any) -> Any:
        return [strategy.reduce(op, x, axis=0) for op in ("sum", "mean")]

    assert [float(each) for each in how(reductions)(value)] == [30.0, 5.0]


# As TensorFlow 2.21 reduces [200, 3] and [201, 4]: the sum of bytes wraps around before.
@cases(
    ("dtype", "quotients", "mean", "mean_along"),
    [
        ("int32", "float64", [200.5, 3.5], 102.0),
        ("int64", "float64", [200.5, 3.5], 102.0),
        ("uint8", "float32", [72.5, 3.5], 38.0),
    ],
)
def test_means_of_integers_are_floats(
    simulate: Simulate, dtype: str, quotients: str, mean: list[float], mean_along: float
) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()

    def values() -> mr.Tensor:
        number = mr.distribute.get_replica_context().replica_id_in_sync_group
        return mr.constant(np.array([200, 3]).astype(dtype)) + mr.cast(number, dtype)

    parts = strategy.run(values)
    for axis, expected in ((None, mean), (0, mean_along)):
        result = strategy.reduce("mean", parts, axis=axis)
        assert result.dtype == np.dtype(quotients)
        assert result.numpy().tolist() == expected


def test_reduce_of_other_values(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(3.0)
    assert float(strategy.reduce("sum", v)) == 6.0
    assert float(strategy.reduce("mean", v)) == 3.0
    assert float(strategy.reduce("mean", 5.0)) == 5.0
    structure = strategy.reduce("sum", {"a": [PerReplica([1.0, 2.0])], "b": PerReplica([3, 4])})
    assert (float(structure["a"][0]), int(structure["b"])) == (3.0, 7)
    with strategy.scope():
        assert float(strategy.reduce("sum", PerReplica([1.0, 2.0]))) == 3.0


@pytest.mark.parametrize("op", ["sum", "mean"])
def test_reduce_of_one_replica(op: str) -> None:
    strategy = MirroredStrategy(["CPU:0"])
    assert float(strategy.reduce(op, mr.constant(2.0))) == 2.0
    assert float(strategy.reduce(op, mr.constant([2.0, 4.0]), axis=0)) == {"sum": 6, "mean": 3}[op]
    assert float(get_strategy().reduce(op, 2.0)) == 2.0


@pytest.mark.behaviour("reduce")
@cases(
    ("call", "match"),
    [
        (
            lambda s, v: s.reduce("sum", v, axis=2),
            "`axis` = 2 out of range for `value` with rank 2",
        ),
        (lambda s, v: s.reduce("sum", v, axis=-3), "`axis` = -3 out of range .* with rank 2"),
        (lambda s, v: s.reduce("sum", v, axis="x"), "`axis` = 'x' out of range"),
        (lambda s, v: s.reduce("sum", v, axis=1.0), r"`axis` = 1\.0 out of range"),
        (lambda s, v: s.reduce("sum", v, axis=(0, 1)), r"`axis` = \(0, 1\) out of range"),
        (lambda s, v: s.reduce("mean", 5.0, axis=0), "`axis` = 0 out of range .* with rank 0"),
        (
            lambda s, v: s.reduce("sum", 5.0),
            r"A non-DistributedValues value 5\.0 cannot be reduced with the given reduce op "
            r"ReduceOp\.SUM\.",
        ),
        (lambda s, v: s.reduce("sum", PerReplica([1.0] * 3)), "here 2. Received: 3 parts"),
        (
            lambda s, v: s.reduce("sum", PerReplica([[1.0], [1.0, 2.0]])),
            "of the same shape and dtype",
        ),
    ],
)
def test_refused_reductions(
    simulate: Simulate, call: Callable[[Strategy, Any], Any], match: str
) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    value = PerReplica([mr.zeros((2, 3)), mr.zeros((2, 3))])
    with pytest.raises(ValueError, match=match):
        call(strategy, value)
