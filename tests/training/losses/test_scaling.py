"""What a replica's loss is divided by, so that the gradients add up to the global batch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored import devices
from mirrored.distribute import OneDeviceStrategy

average, scale = mr.nn.compute_average_loss, mr.nn.scale_regularization_loss


def test_outside_all_scopes_there_is_one_replica() -> None:
    assert float(average([1.0, 3.0])) == 2.0
    assert float(average([1.0, 3.0], global_batch_size=8)) == 0.5
    assert float(scale([1.0, 2.0])) == 3.0
    assert average([1.0]).dtype == mr.float32
    assert average(np.ones(2)).dtype == mr.float64


@pytest.mark.behaviour("average-loss")
@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "recorded"])
@pytest.mark.parametrize(
    ("given_size", "expected"), [(None, 1.0), (6, 1.0), (12, 0.5), (np.int64(3), 2.0)]
)
def test_replicas_parts_add_up(
    strategy: mr.MirroredStrategy, recorded: bool, given_size: Any, expected: float
) -> None:
    """By default each has as many examples as the others; 1 is the mean of 1, ..., 1."""
    batch = np.ones(6, np.float32)
    (losses,) = strategy.experimental_distribute_dataset([batch])
    function: Any = lambda x: strategy.reduce(  # noqa: E731
        "sum", strategy.run(average, (x,), {"global_batch_size": given_size}), axis=None
    )
    total = (mr.function(function) if recorded else function)(losses)
    assert float(total) == pytest.approx(expected)


@pytest.mark.behaviour("average-loss")
@settings(max_examples=30)
@given(
    examples=st.integers(1, 9),
    replicas=st.integers(1, 4),
    rest=st.lists(st.integers(1, 3), max_size=2),
    weighted=st.booleans(),
)
def test_the_global_batch_is_what_counts(
    examples: int, replicas: int, rest: list[int], weighted: bool
) -> None:
    """Uneven and empty shards included; further axes are summed, as TensorFlow does."""
    devices.reset_devices()
    mr.config.experimental.set_simulated_gpus(replicas)
    strategy = mr.MirroredStrategy()
    rng = np.random.default_rng(examples)
    losses, weights = rng.normal(size=(examples, *rest)), rng.uniform(size=examples)
    (batch,) = strategy.experimental_distribute_dataset([(losses, weights)])

    def replica(x: Any, w: Any) -> Any:
        return average(x, w if weighted else None, global_batch_size=examples)

    total = strategy.reduce("sum", strategy.run(replica, batch), axis=None)
    by_example = losses.reshape(examples, -1).sum(1) * (weights if weighted else 1.0)
    assert float(total) == pytest.approx(by_example.sum() / examples, rel=1e-12)


@cases("shape", [(), (1,), (2,), (2, 1), (1, 3), (2, 3), (2, 1, 1), (2, 3, 1)])
def test_weights_that_broadcast_to_the_losses(shape: Any) -> None:
    """As TensorFlow 2.21: 3 losses of 1 an example, each of weight 2."""
    assert float(average(np.ones((2, 3)), sample_weight=np.full(shape, 2.0))) == 6.0


@cases(
    ("weights", "expected"),
    [(None, 3.0), (0.5, 1.5), ([0.0, 1.0], 2.0), ([[0.0], [1.0]], 2.0), (np.float64([1, 0]), 1.0)],
)
def test_weights(weights: Any, expected: float) -> None:
    assert float(average([2.0, 4.0], sample_weight=weights)) == expected


@pytest.mark.behaviour("average-loss")
@pytest.mark.parametrize("size", [None, 4])
def test_an_empty_batch_gives_nothing(size: int | None) -> None:
    for shape in ((0,), (0, 3)):
        losses = mr.zeros(shape)
        with mr.GradientTape() as tape:
            tape.watch(losses)
            loss = average(losses, global_batch_size=size)
        assert float(loss) == 0.0
        assert tape.gradient(loss, losses).shape == shape


@pytest.mark.behaviour("average-loss")
def test_penalties_are_added_by_each_replica(strategy: mr.MirroredStrategy) -> None:
    for penalties in ([1.0, 2.0], [[1.0], [2.0]], mr.constant(3.0), [mr.constant(3.0)]):
        parts = strategy.run(scale, (penalties,))
        shares = [float(each) for each in strategy.experimental_local_results(parts)]
        assert sum(shares) == pytest.approx(3.0)
        assert len(set(shares)) == 1


# The row of behaviour.md: w x against y, every replica given both examples.


@pytest.mark.behaviour("same-batch-numbers")
@cases("replicas", [1, 2, 3, 4])
@cases("recorded", [False, True], ids=["eager", "recorded"])
def test_squared_error_of_a_line(
    simulate: Callable[..., Any], replicas: int, recorded: bool
) -> None:
    simulate(replicas)
    strategy = mr.MirroredStrategy()
    x, y = mr.constant([2.0, 7.0]), mr.constant([6.0, 21.0])

    def trained(loss_of: Callable[[Any], Any]) -> float:
        with strategy.scope():
            w = mr.Variable(2.0)
            optimizer = mr.optim.SGD(0.001)

        def replica() -> None:
            with mr.GradientTape() as tape:
                loss = loss_of((w * x - y) ** 2.0)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])

        step: Any = lambda: strategy.run(replica)  # noqa: E731
        (mr.function(step) if recorded else step)()
        (value,) = {float(copy) for copy in strategy.experimental_local_results(w)}
        return value

    assert trained(mr.reduce_sum) == pytest.approx(2 + 0.106 * replicas)
    assert trained(average) == pytest.approx(2.053)
    assert trained(lambda losses: mr.reduce_mean(losses) / replicas) == pytest.approx(2.053)


def test_a_gradient_of_one_from_each(simulate: Callable[..., Any]) -> None:
    """1 on two replicas, gradients of 1, summed, a rate of a quarter: one half."""
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(1.0)
        optimizer = mr.optim.SGD(0.25)
    strategy.run(lambda: optimizer.apply_gradients([(mr.constant(1.0), v)]))
    assert [float(copy) for copy in v.copies] == [0.5, 0.5]


# What is refused


@pytest.mark.behaviour("average-loss-context")
@pytest.mark.parametrize("function", [average, scale])
def test_the_cross_replica_context(strategy: mr.MirroredStrategy, function: Any) -> None:
    message = (
        f"You are calling `{function.__name__}` in cross replica context, while it was expected to "
        "be called in replica context."
    )
    for each in (strategy, OneDeviceStrategy("GPU:0")):
        with each.scope(), pytest.raises(RuntimeError, match=message):
            function([1.0])


@cases(
    ("size", "error", "match"),
    [
        (0, ValueError, "global_batch_size must be positive. Received: global_batch_size=0"),
        (-3, ValueError, "Received: global_batch_size=-3"),
        (2.0, TypeError, "global_batch_size must be an integer. Received: global_batch_size=2.0"),
        ("8", TypeError, "Received: global_batch_size='8'"),
    ],
)
def test_a_batch_size_that_cannot_be(size: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        average([1.0, 2.0], global_batch_size=size)


def test_a_loss_that_was_averaged_already() -> None:
    with pytest.raises(ValueError, match=r"Expected a tensor with at least rank 1\. Received: the"):
        average(mr.constant(3.0))


def test_weights_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"sample_weight with shape \(3,\)"):
        average([1.0, 2.0], sample_weight=[1.0, 2.0, 3.0])
