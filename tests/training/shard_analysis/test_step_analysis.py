"""What the analysis of a step says of variables that replicas assign, and of gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


class Counting(mr.layers.Layer):
    """Adds a number to a variable in each step of training."""

    def __init__(self, make: Callable[[Any], Any], **kwargs: Any) -> None:
        super().__init__()
        self.make = make
        self.kwargs = kwargs

    def build(self, input_shape: Any) -> None:
        self.total = self.add_weight(
            name="total", initializer="zeros", trainable=False, **self.kwargs
        )

    def call(self, inputs: Any, training: bool = False) -> Any:
        if training:
            self.total.assign_add(self.make(inputs))
        return inputs


def trained(make: Callable[[Any], Any], **kwargs: Any) -> float:
    """Return the total after two steps on two replicas, whose shards have two examples each."""
    with mr.MirroredStrategy().scope():
        layer = Counting(make, **kwargs)
        model = mr.Sequential([mr.layers.Input((3,)), layer, mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    model.fit(X, X[:, :1], batch_size=4, verbose=0)
    return float(layer.total)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: float(x.shape[0]),
        lambda x: mr.reduce_sum(mr.cast(x[:, 0] > -9.0, "float32")),
    ],
    ids=["number", "count"],
)
def test_a_part_that_is_alike_on_all_replicas(
    simulate: Callable[..., Any], make: Callable[[Any], Any]
) -> None:
    simulate(2)
    with pytest.raises(ValueError, match="depends on the number of examples of a shard"):
        trained(make)


@pytest.mark.parametrize(
    "make",
    [lambda x: 1.0, lambda x: mr.cast(mr.math.is_finite(mr.reduce_mean(x)), "float32")],
    ids=["step", "finite steps"],
)
def test_what_one_device_assigns_too(
    simulate: Callable[..., Any], make: Callable[[Any], Any]
) -> None:
    simulate(2)
    assert trained(make) == 2.0


@pytest.mark.parametrize(
    ("kwargs", "make", "is_reported"),
    [
        ({"aggregation": "sum"}, mr.reduce_sum, False),
        ({"aggregation": "sum"}, mr.reduce_mean, True),
        ({"aggregation": "sum"}, lambda x: mr.ones(()), True),
        ({"aggregation": "mean"}, mr.reduce_mean, False),
        ({"aggregation": "mean"}, lambda x: 1.0, False),
        ({"aggregation": "mean"}, mr.reduce_sum, True),
        ({"aggregation": "mean"}, mr.reduce_max, True),
        ({"aggregation": "only_first_replica"}, lambda x: 1.0, False),
        ({"aggregation": "only_first_replica"}, mr.reduce_mean, True),
        ({"aggregation": "sum", "synchronization": "on_read"}, mr.reduce_sum, False),
        ({"aggregation": "mean", "synchronization": "on_read"}, mr.reduce_mean, True),
    ],
)
def test_what_an_aggregation_makes_of_assigned_values(
    simulate: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
    kwargs: dict[str, str],
    make: Callable[[Any], Any],
    is_reported: bool,
) -> None:
    simulate(2)
    trained(make, **kwargs)
    assert ("VariableAggregation." in caplog.text) is is_reported


@mr.custom_gradient
def normalized_backwards(x: Any) -> Any:
    return mr.identity(x), lambda upstream: upstream / mr.norm(upstream)


@mr.custom_gradient
def limited_backwards(x: Any) -> Any:
    return mr.identity(x), lambda upstream: mr.clip_by_value(upstream, -0.1, 0.1)


@pytest.mark.parametrize(
    ("function", "is_reported"), [(normalized_backwards, True), (limited_backwards, False)]
)
def test_gradients_that_functions_define(
    simulate: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
    function: Callable[[Any], Any],
    is_reported: bool,
) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        layers = [mr.layers.Dense(3), mr.layers.Lambda(function), mr.layers.Dense(1)]
        model = mr.Sequential([mr.layers.Input((3,)), *layers])
        model.compile("sgd", "mse")
    model.fit(X, X[:, :1], batch_size=4, verbose=0)
    assert ("Sqrt in the layer 'lambda" in caplog.text) is is_reported


@pytest.mark.parametrize("metric", [mr.metrics.R2Score, mr.metrics.F1Score])
def test_metrics_without_variables_yet(
    simulate: Callable[..., Any], caplog: pytest.LogCaptureFixture, metric: Callable[[], Any]
) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(3)])
        model.compile("sgd", lambda y, p: mr.reduce_sum((y - p) ** 2) / 4.0, metrics=[metric()])
    model.fit(X, X, batch_size=4, verbose=0)
    assert "could not be recorded" not in caplog.text


def test_hinges_on_replicas_are_not_reported(
    simulate: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1)])
        model.compile("sgd", "hinge")
    model.fit(X, np.sign(X[:, :1]), batch_size=4, verbose=0)
    assert "depends on the number" not in caplog.text


def test_random_numbers_that_are_as_many_as_the_examples_of_a_shard(
    simulate: Callable[..., Any],
) -> None:
    simulate(2)
    found = []
    for count in (1, 2):
        mr.random.set_seed(1)
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(count)]).scope():
            noise = mr.layers.Lambda(lambda x: x + mr.random.normal((2, 1))[1])
            model = mr.Sequential([mr.layers.Input((3,)), noise, mr.layers.Dense(1)])
            model.compile("sgd", "mse")
            model.set_weights([np.ones((3, 1)), np.zeros(1)])
        losses = model.fit(X, X[:, :1], batch_size=4, shuffle=False, verbose=0).history["loss"]
        found.append([*losses, *model.predict(X, batch_size=4, verbose=0).ravel()])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


class Spreading(mr.layers.Layer):
    """Adds the variance over the batch to the loss."""

    def call(self, inputs: Any) -> Any:
        self.add_loss(mr.math.reduce_variance(inputs))
        return inputs


@pytest.mark.parametrize("before", [Spreading, mr.layers.BatchNormalization])
def test_losses_that_layers_add_across_examples(
    simulate: Callable[..., Any], caplog: pytest.LogCaptureFixture, before: Callable[..., Any]
) -> None:
    """They are refused; a mean of what another layer mixed is reported."""
    simulate(2)
    with mr.MirroredStrategy().scope():
        layers = [Spreading(), mr.layers.Dense(1)]
        if before is not Spreading:
            dense = mr.layers.Dense(1, activity_regularizer="l2")
            layers = [before(synchronized=False), dense]
        model = mr.Sequential([mr.layers.Input((3,)), *layers])
        model.compile("sgd", "mse")
    if before is Spreading:
        with pytest.raises(
            ValueError, match="A loss passed to `add_loss` is neither a mean nor a sum"
        ):
            model.fit(X, X[:, :1], batch_size=4, verbose=0)
        return
    model.fit(X, X[:, :1], batch_size=4, verbose=0)
    assert "Give the layer `synchronized=True`" in caplog.text
