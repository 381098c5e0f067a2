"""What layers add to the loss, and the reductions of losses: Keras' numbers on any replicas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.sin(np.arange(33.0)).reshape(11, 3)
Y = np.cos(np.arange(11.0)).reshape(11, 1)
W = 1.0 + np.arange(11.0) % 4.0

layers = mr.layers


class Added(layers.Layer):
    """Returns its inputs, and adds their mean square, and the means of their columns."""

    def call(self, inputs: Any) -> Any:
        """Return the inputs."""
        columns = mr.reduce_mean(inputs, axis=0)
        self.add_loss([0.5 * mr.reduce_mean(inputs**2), {"columns": 0.1 * columns}])
        return inputs


class Whole(layers.Layer):
    """Returns its inputs, and adds an integer."""

    def call(self, inputs: Any) -> Any:
        """Return the inputs."""
        self.add_loss(mr.constant(2))
        return inputs


class Nested(layers.Layer):
    """Layers in a layer, with a loss of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Added()
        self.dense = layers.Dense(3, activity_regularizer="l2", kernel_regularizer="l2")

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        self.dense.build(input_shape)
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        """Call them."""
        self.add_loss(0.1 * mr.reduce_mean(mr.abs(inputs)))
        return self.dense(self.first(inputs))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shape."""
        return input_shape


class Subclassed(mr.Model):
    """A model that adds a loss in its `call`."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = layers.Dense(4, "tanh", activity_regularizer="l1")
        self.last = layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        """Return the outputs."""
        hidden = self.hidden(inputs)
        self.add_loss(0.3 * mr.reduce_mean(hidden))
        return self.last(hidden)


def shared() -> mr.Model:
    """Return a functional model whose one layer is called twice."""
    x, added = layers.Input((3,)), Added()
    return mr.Model(x, layers.Dense(1)(added(layers.Dense(3)(added(x)))))


def chain(*between: mr.layers.Layer) -> mr.Model:
    """Return a model of layers."""
    return mr.Sequential([layers.Input((3,)), *between, layers.Dense(1)])


def subclassed() -> mr.Model:
    """Return a model with weights."""
    model = Subclassed()
    model.build((None, 3))
    return model


def outputs() -> mr.Model:
    """Return a model with two outputs, of which one is penalised."""
    x = layers.Input((3,))
    hidden = Added()(layers.Dense(2, name="h")(x))
    one = layers.Dense(1, activity_regularizer="l2", name="one")(hidden)
    return mr.Model(x, [one, layers.Dense(1, name="other")(hidden)])


REPLICAS = [pytest.param(1, marks=pytest.mark.slow), 3]
MODELS: dict[str, Callable[[], mr.Model]] = {
    "added": lambda: chain(layers.Dense(4, "tanh"), Added()),
    "nested": lambda: chain(Nested()),
    "shared": shared,
    "subclassed": subclassed,
    "outputs": outputs,
    "activity": lambda: chain(
        layers.Dense(4, activity_regularizer="l2"),
        layers.Activation("tanh", activity_regularizer="l1"),
        layers.ActivityRegularization(l1=0.1, l2=0.2),
    ),
    "activity of a function": lambda: chain(
        layers.Flatten(activity_regularizer=lambda x: mr.reduce_max(x) * 0.0 + mr.reduce_sum(x))
    ),
}

BY_WEIGHTS = "mean_with_sample_weight"
# By name: the reduction, and the sample weights.
REDUCTIONS: dict[str, tuple[str, Any]] = {
    "mean": ("mean", W),
    "by weights": (BY_WEIGHTS, W),
    "by no weights": (BY_WEIGHTS, None),
    "by weights of 0": (BY_WEIGHTS, W * (np.arange(11) % 8 > 3)),
}


class WithLoss(mr.Model):
    """A model whose loss is Keras' own, in a step that is not that of `fit`."""

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """Return the loss."""
        return super().compute_loss(*args, **kwargs)


KINDS = [mr.Model, pytest.param(WithLoss, marks=pytest.mark.slow)]


def reduced(
    name: str, kind: type[mr.Model] = mr.Model, *, eager: bool = False
) -> tuple[list[float], float, float]:
    """Return what `run` does of a model with a reduction."""
    reduction, weights = REDUCTIONS[name]
    x = layers.Input((3,))
    hidden = Added()(layers.Dense(2, "tanh", kernel_regularizer="l2")(x))
    model = kind(x, layers.Dense(1)(hidden))
    return run(model, mr.losses.MeanSquaredError(reduction=reduction), weights, eager=eager)


# What `run` returns, by Keras 3.15.1.
KERAS: dict[str, tuple[list[float], float, float]] = {
    "added": ([3.615806, 0.9201778], 0.7562492, 10.80621),
    "nested": ([3.31111, 0.9670582], 0.8969545, 7.123948),
    "shared": ([3.419925, 0.9085995], 0.8222817, 7.01075),
    "subclassed": ([3.440535, 0.7629093], 0.6035152, 10.96752),
    "outputs": ([9.01723, 1.227349], 1.125009, 3.167348),
    "activity": ([3.973461, 1.216239], 1.021351, 10.51754),
    "activity of a function": ([1.401073, 0.9014542], 0.7366241, 1.610623),
    "mean": ([7.109198, 2.359314], 1.77363, 5.587705),
    "by weights": ([3.366637, 1.228195], 0.9560986, 5.72284),
    "by no weights": ([2.875734, 1.160004], 0.9234996, 5.776831),
    "by weights of 0": ([1.259201, 0.7815062], 1.026205, 6.849025),
}


def run(
    model: mr.Model, loss: Any, weights: Any = None, *, eager: bool = False
) -> tuple[list[float], float, float]:
    """Return the losses of two epochs, that of an evaluation, and the sum of the weights' sizes."""
    shapes = [each.shape for each in model.get_weights()]
    model.set_weights([np.sin(1.0 + np.arange(np.prod(each))).reshape(each) for each in shapes])
    model.compile(mr.keras.optimizers.SGD(0.1), loss, run_eagerly=eager)
    y = [Y, Y] if len(getattr(model, "outputs", ())) == 2 else Y
    options = {"sample_weight": weights, "verbose": 0}
    history = model.fit(X, y, batch_size=4, epochs=2, shuffle=False, **options).history
    found = model.evaluate(X, y, batch_size=5, **options, return_dict=True)["loss"]
    return history["loss"], found, float(sum(np.abs(each).sum() for each in model.get_weights()))


def on(replicas: int) -> Any:
    """Return a strategy of so many simulated GPUs, of which there are four."""
    return mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])


@pytest.fixture(autouse=True)
def _four() -> None:
    mr.config.experimental.set_simulated_gpus(4)


@pytest.mark.behaviour("added-losses")
@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("name", MODELS)
def test_added_losses_are_keras(name: str, replicas: int) -> None:
    """Batches of 4, 4 and 3 examples, on three replicas: one has two, then all have one."""
    with on(replicas).scope():
        model = MODELS[name]()
        found = run(model, "mse", eager=name == "nested" and replicas > 1)
    for one, other in zip(found, KERAS[name], strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5)


@pytest.mark.behaviour("weighted-losses")
@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_keras(name: str, kind: type[mr.Model], replicas: int) -> None:
    """The first batch of `by weights of 0` has no weight at all, as some shards."""
    with on(replicas).scope():
        found = reduced(name, kind, eager=name == "by weights" and replicas > 1)
    for one, other in zip(found, KERAS[name], strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5)


@pytest.mark.behaviour("added-losses")
@pytest.mark.parametrize("replicas", [1, 3])
def test_a_model_without_a_loss(replicas: int) -> None:
    """It trains on what layers add; a step that finds nothing to train on writes nothing."""
    with on(replicas).scope():
        found = run(chain(Whole(), Added(), layers.Dense(3), Added()), None)
        model = chain()
        model.compile("sgd")
    for one, other in zip(found, ([2.6770744, 2.5885721], 2.5360717, 10.05364), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5)
    before = model.get_weights()
    for use in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="No loss to compute"):
            use(X, Y, verbose=0)
    np.testing.assert_array_equal(before[0], model.get_weights()[0])


class Endpoint(layers.Layer):
    """A layer that is given the targets, as in a guide of Keras'."""

    def __init__(self, reduction: str) -> None:
        super().__init__()
        self.loss = mr.losses.MeanSquaredError(reduction=reduction)

    def call(self, targets: Any, outputs: Any, weights: Any) -> Any:
        """Return the outputs, after adding their loss."""
        self.add_loss(self.loss(targets, outputs, weights))
        return outputs


class Ended(mr.Model):
    """A model with its loss inside."""

    def __init__(self, reduction: str) -> None:
        super().__init__()
        self.dense = layers.Dense(1, kernel_initializer="ones")
        self.end = Endpoint(reduction)

    def call(self, inputs: Any) -> Any:
        """Return the outputs for inputs, targets and weights."""
        x, targets, weights = inputs
        return self.end(targets, self.dense(x), weights)


def ended(reduction: str) -> mr.Model:
    """Return the same as a functional model."""
    parts = [layers.Input((3,)), layers.Input((1,)), layers.Input(())]
    dense = layers.Dense(1, kernel_initializer="ones")
    return mr.Model(parts, Endpoint(reduction)(parts[1], dense(parts[0]), parts[2]))


@pytest.mark.parametrize(
    "reduction",
    [*(pytest.param(each, marks=pytest.mark.slow) for each in ("mean", "sum")), BY_WEIGHTS],
)
def test_a_loss_in_a_layer(reduction: str) -> None:
    """It is built, trained, evaluated and run for its outputs in the scope of any strategy."""
    found: list[Any] = []
    for make, replicas in ((ended, 1), (ended, 3), (Ended, 3)):
        with on(replicas).scope():
            model = make(reduction)
            model.compile("sgd")
        data = [X, Y, W]
        fitted = model.fit(data, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]
        rest = model.evaluate(data, batch_size=5, verbose=0), *model.predict(data, 4, 0)[:, 0]
        found.append([*fitted, *rest])
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_of_several_dtypes(kind: type[mr.Model]) -> None:
    """Their losses, penalties and metrics are put together in the widest of them."""
    found: list[Any] = []
    for dtype, replicas in (("float64", 3), ("float32", 1)):
        with on(replicas).scope():
            x = layers.Input((3,))
            options = {"kernel_initializer": "ones", "kernel_regularizer": "l2"}
            wide = layers.Dense(1, dtype=dtype, activity_regularizer="l1", name="a", **options)(x)
            zero = mr.keras.regularizers.Regularizer()
            last = layers.Dense(1, bias_regularizer=zero, name="b", **options)(x)
            model = kind(x, [wide, last])
            model.compile("sgd", ["mse", "mse"], metrics=[["mse"], ["mse"]])
        logs = model.fit(X, [Y, Y], batch_size=4, shuffle=False, verbose=0).history
        logs |= model.evaluate(X, [Y, Y], verbose=0, return_dict=True)
        found.append([*logs.values(), *np.concatenate(model.get_weights(), axis=None)])
    np.testing.assert_allclose(*found, rtol=1e-5)
