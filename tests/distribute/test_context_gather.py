"""What replicas get when they gather each other's values, and the gradients through it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from replica_context import context

import mirrored as mr
from mirrored import devices
from mirrored.distribute import MirroredStrategy, PerReplica
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


def parts_of(value: Any) -> list[Any]:
    """Return the parts of a per-replica value as arrays."""
    return [part.numpy() for part in value.values]


@pytest.mark.behaviour("gather-numbers")
@cases("how", [lambda f: f, mr.function], ids=["eager", "recorded"])
@cases(
    ("axis", "shape"),
    [
        (0, (4, 2, 3)),
        (1, (1, 8, 3)),
        (2, (1, 2, 12)),
        (-1, (1, 2, 12)),
        (-3, (4, 2, 3)),
        (np.int64(1), (1, 8, 3)),
    ],
)
def test_shapes_over_four_replicas(
    simulate: Simulate, how: Any, axis: int, shape: tuple[int, ...]
) -> None:
    simulate(4)
    strategy = MirroredStrategy()
    whole = np.arange(24.0).reshape(4, 1, 2, 3)
    value = PerReplica([mr.constant(part) for part in whole])
    run = how(lambda x: strategy.run(lambda part: context().all_gather(part, axis), (x,)))
    gathered = run(value)
    expected = np.concatenate(list(whole), axis)
    assert expected.shape == shape
    for i, part in enumerate(gathered.values):
        assert part.device == f"{FULL}GPU:{i}"
        np.testing.assert_array_equal(part.numpy(), expected)
    joined = how(lambda x: strategy.gather(x, axis))(value)
    np.testing.assert_array_equal(joined.numpy(), expected)


@pytest.mark.behaviour("gather", "replica-context")
@settings(max_examples=15)
@given(data=st.data(), sizes=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_uneven_shards_are_concatenated(data: st.DataObject, sizes: list[int]) -> None:
    """By replicas and outside of them, as NumPy does; and the gradient is that of the parts."""
    devices.reset_devices()
    mr.config.experimental.set_simulated_gpus(len(sizes))
    strategy = MirroredStrategy()
    rest = data.draw(st.lists(st.integers(0, 3), max_size=2))
    axis = data.draw(st.integers(-len(rest) - 1, len(rest)))
    place = axis % (len(rest) + 1)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    parts = [rng.normal(size=(*rest[:place], size, *rest[place:])) for size in sizes]
    expected = np.concatenate(parts, axis)
    # Each replica weighs what it gathered in its own way.
    weights = rng.normal(size=(len(sizes), *expected.shape))
    x = PerReplica([mr.constant(part) for part in parts])
    w = PerReplica([mr.constant(weight) for weight in weights])

    def replica(part: Any, weight: Any) -> Any:
        with mr.GradientTape() as tape:
            tape.watch(part)
            gathered = context().all_gather(part, axis)
            loss = mr.reduce_sum(gathered * weight)
        return gathered, tape.gradient(loss, part)

    result = strategy.run(replica, (x, w))
    gathered, gradients = (strategy.experimental_local_results(each) for each in result)
    bounds = np.cumsum([0, *sizes])
    for i, (whole, gradient) in enumerate(zip(gathered, gradients, strict=True)):
        np.testing.assert_array_equal(whole.numpy(), expected)
        own = np.take(weights.sum(0), range(bounds[i], bounds[i + 1]), place)
        np.testing.assert_allclose(gradient.numpy(), own, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(strategy.gather(x, axis).numpy(), expected)


def test_structures(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()

    def replica() -> Any:
        mine = mr.constant([context().replica_id_in_sync_group])
        return context().all_gather({"b": mine, "a": (mine * 2, [mine + 1])}, 0)

    found = strategy.run(replica)
    assert list(found) == ["b", "a"]
    for value, expected in [
        (found["b"], [0, 1]),
        (found["a"][0], [0, 2]),
        (found["a"][1][0], [1, 2]),
    ]:
        assert [part.tolist() for part in parts_of(value)] == [expected] * 2


def test_a_tensor_that_all_share_counts_once_a_replica(simulate: Simulate) -> None:
    simulate(3)
    shared = mr.constant([1.0])
    found = MirroredStrategy().run(lambda: context().all_gather(shared, 0))
    assert [part.tolist() for part in parts_of(found)] == [[1.0] * 3] * 3


def test_one_replica_and_none() -> None:
    value = mr.constant([1.0, 2.0])
    alone = MirroredStrategy(["CPU:0"])
    for gathered in (
        alone.run(lambda: context().all_gather(value, 0)),
        context().all_gather(value, -1),
        alone.gather(value, 0),
    ):
        assert gathered.numpy().tolist() == [1.0, 2.0]


def test_a_gradient_of_a_gradient(simulate: Simulate) -> None:
    simulate(2)

    def replica(x: Any) -> Any:
        with mr.GradientTape() as outer:
            outer.watch(x)
            with mr.GradientTape() as inner:
                inner.watch(x)
                loss = mr.reduce_sum(context().all_gather(x, 0) ** 3.0)
            first = inner.gradient(loss, x)
        return first, outer.gradient(first, x)

    first, second = MirroredStrategy().run(
        replica, (PerReplica([mr.constant([1.0]), mr.constant([2.0])]),)
    )
    # The loss of both replicas together is 2 (x0^3 + x1^3).
    assert [part.tolist() for part in parts_of(first)] == [[6.0], [24.0]]
    assert [part.tolist() for part in parts_of(second)] == [[12.0], [24.0]]


# What is refused

REFUSED: list[tuple[Any, Any, type[Exception], str]] = [
    ((), 0, ValueError, "`axis` = 0 out of range for `value` with rank 0"),
    ((2,), 1, ValueError, "`axis` = 1 out of range for `value` with rank 1"),
    ((2,), -2, ValueError, "`axis` = -2 out of range for `value` with rank 1"),
    ((2,), "0", ValueError, "`axis` = '0' out of range for `value` with rank 1"),
    ((2,), None, ValueError, "`axis` = None out of range for `value` with rank 1"),
    ((2,), 0.0, ValueError, r"`axis` = 0\.0 out of range for `value` with rank 1"),
    ((2, 2), (0, 1), ValueError, r"`axis` = \(0, 1\) out of range for `value` with rank 2"),
]


@pytest.mark.behaviour("gather")
@pytest.mark.usefixtures("no_deadlock", "no_thread_left")
@cases(("shape", "axis", "error", "match"), REFUSED)
def test_an_axis_that_is_not_there(
    simulate: Simulate, shape: Any, axis: Any, error: type[Exception], match: str
) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    value = PerReplica([mr.ones(shape), mr.ones(shape)])
    with pytest.raises(error, match=match):
        strategy.gather(value, axis)
    if not isinstance(axis, tuple):  # One is a structure of values, which replicas regroup.
        with pytest.raises(error, match=match):
            strategy.run(lambda x: context().all_gather(x, axis), (value,))


@pytest.mark.usefixtures("no_deadlock", "no_thread_left")
@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ([(2, 1), (2, 2)], r"only along axis 0\. Received: shapes \(2, 1\) from replica 0 and"),
        (
            [(2, 1), (2,)],
            r"rank, which must be at least 1\. Received: shapes \(2, 1\) from replica 0",
        ),
    ],
)
def test_shapes_that_do_not_join(simulate: Simulate, parts: Any, match: str) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    value = PerReplica([mr.ones(shape) for shape in parts])
    with pytest.raises(InvalidArgumentError, match=match):
        strategy.gather(value, 0)
    with pytest.raises(InvalidArgumentError, match=match):
        strategy.run(lambda x: context().all_gather(x, 0), (value,))


@pytest.mark.usefixtures("no_deadlock", "no_thread_left")
def test_what_replicas_do_not_agree_on(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    mixed = PerReplica([mr.ones((1,)), mr.ones((1,), "int32")])
    with pytest.raises(
        InvalidArgumentError, match=r"the same dtype\. Received: float32 from replica 0"
    ):
        strategy.run(lambda x: context().all_gather(x, 0), (mixed,))
    square = mr.ones((2, 2))
    with pytest.raises(ValueError, match="out of range for `value` with rank 2"):
        strategy.run(lambda: context().all_gather(square, context().replica_id_in_sync_group))
    with pytest.raises(ValueError, match=r"differ at \[1\]: replica 0 has a list of 1"):
        strategy.run(
            lambda: context().all_gather([square] * (1 + context().replica_id_in_sync_group), 0)
        )
    found = strategy.run(lambda: context().all_gather(square, 0))
    assert [part.shape for part in found.values] == [(4, 2)] * 2
