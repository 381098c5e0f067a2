"""Steps that a model defines itself: any number of replicas computes what one does."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.errors import NonFiniteLossError

X = np.random.default_rng(5).normal(size=(11, 3))
Y = X.sum(axis=1, keepdims=True) + 0.5
W = np.random.default_rng(6).uniform(0.5, 2.0, size=11)


def on(replicas: int) -> Any:
    """Return a strategy of so many simulated GPUs, of which there are four."""
    if replicas == 1:
        return mr.distribute.OneDeviceStrategy("GPU:0")
    return mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])


@pytest.fixture(autouse=True)
def _four() -> None:
    mr.config.experimental.set_simulated_gpus(4)
    mr.keras.backend.set_floatx("float64")


class Own(mr.Model):
    """A model with a `train_step` as in Keras' guides, whose parts are chosen by the test."""

    parts: frozenset[str] = frozenset()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.tracker = mr.metrics.Mean(name="tracked")
        self.error = mr.metrics.MeanSquaredError(name="error")

    def train_step(self, data: Any) -> dict[str, Any]:
        """Take one step."""
        x, y, weights = mr.keras.utils.unpack_x_y_sample_weight(data)
        with mr.GradientTape() as tape:
            predictions = self(x, training=True)
            if "compute_loss" in self.parts:
                loss = self.compute_loss(x, y, predictions, weights)
            else:
                loss = mr.reduce_mean((predictions - y) ** 2)
            if "penalty" in self.parts:
                loss = loss + mr.add_n(self.losses)
        if "clip" in self.parts:
            self.optimizer.clipnorm = 0.5
        if "minimize" in self.parts:
            self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        elif "apply" in self.parts:
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
        else:
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.tracker.update_state(loss)
        self.error.update_state(y, predictions)
        logs = {"loss": loss, "steps": mr.constant(3), "nested": {"tracked": self.tracker.result()}}
        if "metrics" in self.parts:
            logs |= self.compute_metrics(x, y, predictions, weights)
        return logs


def trained(
    replicas: int,
    kind: Callable[..., mr.Model],
    batch: int,
    *,
    eager: bool = False,
    weights: Any = W,
    epochs: int = 2,
    **options: Any,
) -> tuple[dict[str, list[float]], list[np.ndarray[Any, Any]]]:
    """Return the history and the weights at the end."""
    with on(replicas).scope():
        mr.random.set_seed(4)
        inputs = mr.layers.Input((3,))
        hidden = mr.layers.Dense(4, "tanh", kernel_regularizer="l2", activity_regularizer="l1")(
            inputs
        )
        model = kind(inputs, mr.layers.Dense(1)(hidden))
        model.compile(mr.optim.Adam(0.05), run_eagerly=eager, **options)
    history = model.fit(X, Y, batch, epochs=epochs, sample_weight=weights, verbose=0).history
    return history, model.get_weights()


def same(first: Any, second: Any) -> None:
    """Hold that two runs gave the same, but for the order of sums."""
    assert first[0].keys() == second[0].keys()
    for name, values in first[0].items():
        np.testing.assert_allclose(values, second[0][name], rtol=1e-10, err_msg=name)
    for a, b in zip(first[1], second[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.behaviour("own-steps")
@settings(max_examples=2)
@given(
    parts=st.frozensets(
        st.sampled_from(["compute_loss", "penalty", "clip", "apply", "minimize", "metrics"])
    ),
    batch=st.sampled_from([1, 2, 4, 5, 11]),
    replicas=st.integers(2, 4),
    reduction=st.sampled_from(["mean", "sum", "mean_with_sample_weight"]),
    eager=st.booleans(),
)
def test_replicas_train_as_one_device(
    parts: frozenset[str], batch: int, replicas: int, reduction: str, eager: bool
) -> None:
    kind = type("Drawn", (Own,), {"parts": parts})
    loss = mr.losses.MeanSquaredError(reduction=reduction)
    options = {"loss": loss, "metrics": ["mse"], "weighted_metrics": ["mse"]}
    same(
        trained(1, kind, batch, **options),
        trained(replicas, kind, batch, eager=eager, **options),
    )


class WithLoss(mr.Model):
    """A model whose step is Keras' own, and its loss that of `compile`."""

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None
    ) -> Any:
        """Return the loss; without `training`, as Keras had it before 3.3."""
        return super().compute_loss(x, y, y_pred, sample_weight)


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum"])
@pytest.mark.parametrize("replicas", [1, 3])
def test_the_steps_of_keras_are_those_of_fit(replicas: int, reduction: str) -> None:
    loss = mr.losses.MeanSquaredError(reduction=reduction)
    options = {"loss": loss, "metrics": ["mse"], "weighted_metrics": ["mse"]}
    plain = trained(1, mr.Model, 4, **options)
    assert list(plain[0]) == ["loss", "mse", "weighted_mse"]
    same(plain, trained(replicas, WithLoss, 4, **options))


def test_a_shard_counts_by_its_examples() -> None:
    """As issue reports of Keras have it: batch 5 on 2 replicas, where shards have 3 and 2."""

    class Line(mr.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with mr.GradientTape() as tape:
                loss = mr.reduce_mean((self(x) - y) ** 2)
            self.optimizer.apply(tape.gradient(loss, self.weights), self.weights)
            return {"loss": loss, "examples": mr.cast(mr.shape(x)[0], "float64")}

    x = np.arange(1.0, 6.0).reshape(5, 1)
    results = []
    for replicas in (1, 2):
        with on(replicas).scope():
            inputs = mr.layers.Input((1,))
            dense = mr.layers.Dense(1, use_bias=False, kernel_initializer="ones")
            model = Line(inputs, dense(inputs))
            model.compile(mr.optim.SGD(1.0))
        logs = model.train_on_batch(x, x * 0.0, return_dict=True)
        results.append((logs["loss"], logs["examples"], model.get_weights()[0].item()))
    assert results[0] == (11.0, 5.0, 1.0 - 22.0)
    assert results[1] == pytest.approx(results[0])


def _squares(y: Any, predictions: Any) -> Any:
    return mr.reduce_sum((predictions - y) ** 2, axis=1)


def _replicas() -> Any:
    return mr.distribute.get_strategy().num_replicas_in_sync


# Losses as loops of TensorFlow have them, for batches of 4.
PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "sum by the batch": lambda y, p: mr.reduce_sum(_squares(y, p)) / 4.0,
    "average": lambda y, p: mr.nn.compute_average_loss(_squares(y, p), global_batch_size=4),
    "average by size": lambda y, p: mr.nn.compute_average_loss(_squares(y, p)),
    "sum by the shard": lambda y, p: mr.reduce_sum(_squares(y, p)) / y.shape[0],
    "mean by replicas": lambda y, p: mr.reduce_mean(_squares(y, p)) / _replicas(),
    "sum and a penalty": lambda y, p: (
        mr.reduce_sum(_squares(y, p)) / 4.0
        + mr.nn.scale_regularization_loss(mr.constant(0.5, "float64"))
    ),
    "mean and a penalty": lambda y, p: mr.reduce_mean(_squares(y, p)) + 0.5,
}


# These ask for a replica, of which there is none while a functional model is drawn.
IN_REPLICAS = ("average", "average by size", "sum and a penalty")
QUICK = ("average", "sum by the shard", "mean and a penalty")


@pytest.mark.behaviour("scalar-loss")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in PARTS],
)
def test_losses_of_shards_add_up(name: str) -> None:
    """In a step, as a loss of `compile`, and as what a layer adds."""
    loss = PARTS[name]

    class Step(mr.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with mr.GradientTape() as tape:
                found = loss(y, self(x, training=True))
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(found, weights), weights)
            return {"loss": found, "half": found / 2.0}

    class Adds(mr.layers.Layer):
        def call(self, inputs: Any) -> Any:
            self.add_loss(loss(mr.ones_like(inputs), inputs))
            return inputs

    def adding(inputs: Any, outputs: Any) -> mr.Model:
        return mr.Model(inputs, Adds()(outputs))

    for kind, compiled in ((Step, None), (WithLoss, loss), (mr.Model, loss), (adding, "mse")):
        if kind is adding and name in IN_REPLICAS:
            continue
        options: dict[str, Any] = {"loss": compiled, "weights": None, "epochs": 1}
        same(trained(1, kind, 4, **options), trained(3, kind, 4, eager=kind is Step, **options))


def _pairs(p: Any) -> Any:
    return mr.reduce_mean(mr.matmul(p, p, transpose_b=True))


def _mixed_up(p: Any) -> Any:
    return mr.reduce_mean((p + mr.reverse(p, [0])) ** 2)


def _of_four(p: Any) -> Any:
    return mr.reduce_mean(mr.ones((4, 1), "float64")[: p.shape[0]] * p)


# What a step makes of its shard's predictions, and what is said of it: an error, or a warning.
ACROSS: dict[str, tuple[Callable[[Any], Any], type[Exception] | None, str]] = {
    "pairs": (_pairs, ValueError, "Received: a value computed by MatMul in the step."),
    "mixed up": (_mixed_up, None, "StridedSlice in the step combines the examples"),
    "of one size": (_of_four, None, "could not be recorded for shards of other sizes"),
}


@pytest.mark.parametrize(("function", "error", "text"), ACROSS.values(), ids=ACROSS)
def test_steps_that_look_across_their_shard(
    function: Any, error: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Step(mr.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, _ = data
            with mr.GradientTape() as tape:
                loss = function(self(x, training=True))
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    if error is not None:
        with pytest.raises(error, match=re.escape(text)):
            trained(3, Step, 4, weights=None)
        return
    trained(1, Step, 4, weights=None)
    assert text not in caplog.text
    trained(3, Step, 4, weights=None)
    warned = [each.getMessage() for each in caplog.records if text in each.getMessage()]
    assert len(warned) == 1


def test_steps_that_go_over_examples_one_by_one() -> None:
    """A replica without examples has no gradients, and leaves those of the others as they are."""

    class Step(mr.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with mr.GradientTape() as tape:
                errors = mr.map_fn(mr.reduce_sum, (self(x, training=True) - y) ** 2)
                loss = mr.reduce_mean(errors)
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    first, *others = (trained(count, Step, 5, weights=None, epochs=1) for count in (1, 3))
    for other in others:
        same(first, other)


def test_steps_that_gather_the_batch(caplog: pytest.LogCaptureFixture) -> None:
    class Contrast(mr.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, _ = data
            with mr.GradientTape() as tape:
                rows = self(x, training=True)
                context = mr.distribute.get_replica_context()
                everyone = context.all_gather(rows, axis=0)
                likeness = mr.matmul(rows, everyone, transpose_b=True)
                count = mr.shape(rows)[0]
                labels = mr.range(count) + count * context.replica_id_in_sync_group
                loss = mr.reduce_mean(
                    mr.nn.sparse_softmax_cross_entropy_with_logits(labels, likeness)
                )
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    first, other = (trained(count, Contrast, 3, weights=None, epochs=1) for count in (1, 3))
    same(first, other)
    assert "could not be recorded" not in caplog.text


@pytest.mark.behaviour("scalar-loss")
def test_numbers_that_shards_do_not_add_up_to_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Largest(mr.Model):
        def test_step(self, data: Any) -> dict[str, Any]:
            return {"largest": mr.reduce_max(data), "mean": mr.reduce_mean(data)}

    with on(3).scope():
        model = Largest()
        model.compile()
    for _ in range(2):
        model.evaluate(X, batch_size=4, verbose=0)
    warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warned) == 1
    assert (
        "The number 'largest' that a step of 'largest' returns depends on the number" in warned[0]
    )
    assert "computed by Max in the step" in warned[0]


# ------------------------------------------------------------------------------ two optimizers


class Adversaries(mr.Model):
    """Two models with an optimizer each, as in Keras' guide on generators and discriminators."""

    spoilt = False

    def __init__(self, first: mr.Model, second: mr.Model) -> None:
        super().__init__()
        self.first, self.second = first, second

    def compile(self, one: Any, other: Any) -> None:  # type: ignore[override]
        """Take two optimizers."""
        super().compile()
        self.one, self.other = one, other

    def train_step(self, data: Any) -> dict[str, Any]:
        """Update the first model, then the second one by the first as it is then."""
        with mr.GradientTape() as tape:
            first = mr.reduce_mean(mr.nn.softplus(-self.first(data)))
        weights = self.first.trainable_weights
        self.one.apply(tape.gradient(first, weights), weights)
        with mr.GradientTape() as tape:
            second = mr.reduce_mean(mr.nn.softplus(self.first(self.second(data))))
            if self.spoilt:
                second = second + mr.math.log(mr.reduce_min(data) * 0.0 - 1.0)
        weights = self.second.trainable_weights
        self.other.apply(tape.gradient(second, weights), weights)
        return {"first": first, "second": second}


def adversaries(replicas: int) -> Adversaries:
    """Return two models, of which the second has no weights yet."""
    with on(replicas).scope():
        mr.random.set_seed(2)
        first = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1)])
        model = Adversaries(first, mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(3)]))
        model.compile(mr.optim.Adam(0.1), mr.optim.SGD(0.1))
    return model


def test_two_optimizers() -> None:
    results = []
    for replicas in (1, 3):
        model = adversaries(replicas)
        history = model.fit(X, epochs=2, batch_size=4, verbose=0).history
        results.append((history, model.get_weights()))
    same(*results)


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "recorded"])
def test_a_step_with_two_optimizers_is_whole(eager: bool) -> None:
    """The second loss is NaN, after the first optimizer was asked for its step."""
    model = adversaries(2)
    model.run_eagerly = eager
    before, model.spoilt = model.get_weights(), True
    with pytest.raises(NonFiniteLossError, match="The loss is not finite in step 1 of epoch 1"):
        model.fit(X, verbose=0)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert [int(each.iterations) for each in (model.one, model.other)] == [0, 0]
    assert len(model.one.slots.snapshot()) == 0
    model.spoilt = False
    model.compile(model.one, model.other)  # What a step reads from attributes is recorded.
    model.fit(X, verbose=0)
    assert [int(each.iterations) for each in (model.one, model.other)] == [1, 1]


# ------------------------------------------------------------------------------ other steps


def test_steps_of_evaluation_and_prediction() -> None:
    class Doubled(mr.Model):
        def test_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            return {"b": mr.reduce_mean(y - self(x)), "a": 2.0}

        def predict_step(self, data: Any) -> Any:
            return {"twice": super().predict_step(data) * 2.0, "row": data[:, 0]}

    with on(3).scope():
        inputs = mr.layers.Input((3,))
        model = Doubled(inputs, mr.layers.Dense(1, kernel_initializer="ones")(inputs))
        model.compile()
    logs = model.evaluate(X, Y, batch_size=11, verbose=0, return_dict=True)
    assert logs == pytest.approx({"a": 2.0, "b": 0.5})
    assert model.evaluate(X, Y, batch_size=11, verbose=0) == pytest.approx([2.0, 0.5])
    for found in (model.predict(X, batch_size=4, verbose=0), model.predict_on_batch(X)):
        np.testing.assert_allclose(found["twice"], 2.0 * (Y - 0.5))
        np.testing.assert_array_equal(found["row"], X[:, 0])


def test_steps_are_given_what_the_model_does_not_take() -> None:
    """As pairs are, of which a functional model takes one at a time."""

    class Pairs(mr.Model):
        def test_step(self, data: Any) -> dict[str, Any]:
            (one, other), y = data
            return {"off": mr.reduce_mean(self(one) + self(other) - y)}

    with on(3).scope():
        inputs = mr.layers.Input((3,))
        model = Pairs(inputs, mr.layers.Dense(1, kernel_initializer="ones")(inputs))
        model.compile(loss="mse")
    found = model.evaluate((X, 2.0 * X), Y, batch_size=11, verbose=0)
    assert found == pytest.approx((3.0 * X.sum(1, keepdims=True) - Y).mean())
    with pytest.raises(ValueError, match="`x` must be one array, because the model has one input"):
        model.predict((X, X))


def test_a_loss_that_no_metric_is_told_of_is_that_of_the_last_step() -> None:
    """Keras 3.15.1 shows 0.0 for it after an epoch."""

    class Told(mr.Model):
        def test_step(self, data: Any) -> dict[str, Any]:
            return {"loss": mr.reduce_mean(data)}

    model = Told()
    model.compile()
    assert model.evaluate(X, verbose=0) == pytest.approx(X.mean())


def test_an_override_of_metrics_says_what_is_reported() -> None:
    class Reported(mr.Model):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.seen = mr.metrics.Mean(name="seen")

        @property
        def metrics(self) -> Any:
            return [self.seen]

        def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            self.seen.update_state(x)
            return super().compute_metrics(x, y, y_pred, sample_weight)

    history, _ = trained(3, Reported, 4, loss="mse", metrics=["mse"])
    assert history.keys() == {"seen"}
    np.testing.assert_allclose(history["seen"], [X.mean()] * 2)


# ------------------------------------------------------------------------------ what is refused

REFUSED: dict[str, tuple[Callable[[mr.Model, Any], Any], type[Exception], str]] = {
    "the root of a mean": (
        lambda model, loss: {} if loss[0].gradient(loss[3], model.weights) else None,
        ValueError,
        "The loss is neither a mean nor a sum over a shard's examples, so adding the replicas' "
        "values does not give the value of the batch. Received: a value computed by Sqrt in the "
        "step.",
    ),
    "clipped gradients": (
        lambda model, loss: model.optimizer.apply(
            mr.clip_by_global_norm(loss[0].gradient(loss[2], model.weights), 0.1)[0], model.weights
        ),
        ValueError,
        "A gradient passed to `apply_gradients` is neither a mean nor a sum over a shard's "
        "examples, so adding the replicas' values",
    ),
    "all-reduce": (
        lambda model, loss: mr.distribute.get_replica_context().all_reduce(
            "sum", loss[0].gradient(loss[2], model.weights)
        ),
        RuntimeError,
        "Received: `all_reduce` of a gradient.",
    ),
    "no dict": (
        lambda model, loss: 3.0,
        TypeError,
        "A step of a model must return a dict from names to numbers",
    ),
    "an example each": (
        lambda model, loss: {"loss": loss[1]},
        TypeError,
        "With several replicas, values per example cannot be returned.",
    ),
    "other shapes": (
        lambda model, loss: {"loss": loss[1][1:]},
        ValueError,
        "A step must return numbers of the same shapes on all replicas. Received: [(3,)]",
    ),
    "a text": (
        lambda model, loss: {"loss": "high"},
        TypeError,
        "Received: 'loss': 'high'.",
    ),
    "a shard's count": (
        lambda model, loss: {"count": mr.shape(loss[1])[0]},
        ValueError,
        "An integer that a step returns must be the same on all replicas.",
    ),
}


@pytest.mark.behaviour("own-steps")
@pytest.mark.parametrize("eager", [True, False], ids=["eager", "recorded"])
@pytest.mark.parametrize(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_step_may_not_do(act: Any, error: Any, message: str, eager: bool) -> None:
    """It is refused before anything is written, on one replica too where it can be seen there."""

    class Refused(mr.Model):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with mr.GradientTape(persistent=True) as tape:
                losses = mr.reduce_mean((self(x) - y) ** 2, axis=1)
                loss = mr.reduce_mean(losses)
                root = mr.sqrt(loss)
            self.optimizer.apply(tape.gradient(loss, self.weights), self.weights)
            return act(self, (tape, losses, loss, root))

    for replicas in (1, 3):
        if replicas == 1 and ("integer" in message or "replicas" in message):
            continue
        with on(replicas).scope():
            inputs = mr.layers.Input((3,))
            model = Refused(inputs, mr.layers.Dense(1)(inputs))
            model.compile("sgd", run_eagerly=eager)
        before = model.get_weights()
        with pytest.raises(error, match=re.escape(message)):
            model.fit(X, Y, batch_size=11, verbose=0)
        for old, new in zip(before, model.get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)
        assert int(model.optimizer.iterations) == 0


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "recorded"])
def test_a_loss_with_a_value_per_example(eager: bool) -> None:
    """Its gradient is that of the sum of its values, over all replicas."""

    class Summed(mr.Model):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with mr.GradientTape() as tape:
                losses = mr.reduce_mean((self(x) - y) ** 2, axis=1)
            gradients = tape.gradient(losses, self.weights)
            self.optimizer.apply(gradients, self.weights)
            return {"loss": mr.reduce_mean(losses)}

    found = []
    for replicas in (1, 3):
        mr.random.set_seed(0)
        with on(replicas).scope():
            inputs = mr.layers.Input((3,))
            model = Summed(inputs, mr.layers.Dense(1)(inputs))
            model.compile(mr.optim.SGD(0.01), run_eagerly=eager)
        model.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
        found.append(model.get_weights())
    for one, three in zip(*found, strict=True):
        np.testing.assert_allclose(three, one, rtol=1e-12)


def test_a_loss_with_several_values_in_a_step_of_one_batch_size() -> None:
    """Where it is not known how sums of shards add up, it is refused before anything is written."""

    class Fixed(mr.Model):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with mr.GradientTape() as tape:
                losses = (self(x) - y) * mr.ones((4, 1), "float64")
            tape.gradient(losses, self.weights)
            return {"loss": 1.0}

    with on(2).scope():
        inputs = mr.layers.Input((3,))
        model = Fixed(inputs, mr.layers.Dense(1)(inputs))
        model.compile("sgd")
    with pytest.raises(ValueError, match=r"Received: a loss of shape \(4, 1\)\."):
        model.fit(X[:8], Y[:8], batch_size=8, verbose=0)


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_step_that_calls_the_model_on_all_columns(replicas: int) -> None:
    """As in Keras' Siamese networks, whose batches are pairs or triples of inputs."""

    class Pairs(mr.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = mr.layers.Dense(2, kernel_initializer="ones")

        def call(self, inputs: Any) -> Any:
            first, second = (self.dense(columns) for columns in inputs)
            return mr.reduce_sum((first - second) ** 2, axis=-1)

        def train_step(self, data: Any) -> Any:
            with mr.GradientTape() as tape:
                loss = mr.reduce_mean(self(data))
            self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
            return {"loss": loss}

    with on(replicas).scope():
        model = Pairs()
        model.compile(mr.optimizers.SGD(0.01))
    pairs = mr.data.Dataset.from_tensor_slices((X, X[::-1])).batch(5)
    losses = model.fit(pairs, epochs=2, verbose=0).history["loss"]
    kernel = np.ones((3, 2))
    for _ in range(2):
        for place in (0, 5, 10):
            apart = X[place : place + 5] - X[::-1][place : place + 5]
            kernel = kernel - 0.02 * apart.T @ apart @ kernel / len(apart)
    np.testing.assert_allclose(model.dense.get_weights()[0], kernel, rtol=1e-12)
    assert losses[1] < losses[0]


def test_without_an_optimizer_or_a_loss() -> None:
    inputs = mr.layers.Input((3,))
    model = mr.Model(inputs, mr.layers.Dense(1)(inputs))
    model.compile(None, loss="mse")
    with pytest.raises(ValueError, match=r"No optimizer to train with\. Provide an `optimizer`"):
        model.fit(X, Y, verbose=0)
    assert model.evaluate(X, Y, verbose=0) > 0
    model = mr.Model(inputs, model.outputs)
    model.compile("sgd")
    for use in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch):
        with pytest.raises(ValueError, match=r"No loss to compute\. Provide a `loss` argument"):
            use(X, Y)


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "recorded"])
@pytest.mark.parametrize("replicas", [1, 3])
def test_metrics_of_several_numbers(replicas: int, eager: bool) -> None:
    """As Keras they are arrays in logs; also where a shard has as many examples as there are."""

    class Scored(mr.Model):
        def train_step(self, data: Any) -> Any:
            return {**super().train_step(data), "means": mr.reduce_mean(data[1], axis=0)[:2]}

    with on(replicas).scope():
        inputs = mr.layers.Input((3,))
        model = Scored(inputs, mr.layers.Dense(3, "softmax", kernel_initializer="ones")(inputs))
        score = mr.metrics.F1Score(name="score")
        model.compile("sgd", "mse", metrics=[score, "accuracy"], run_eagerly=eager)
    x = np.linspace(-1.0, 1.0, 33).reshape(11, 3)
    y = np.eye(3)[np.arange(11) % 3]
    history = model.fit(x, y, batch_size=9, epochs=1, shuffle=False, verbose=0).history
    assert [np.shape(history[name]) for name in ("score", "means")] == [(1, 3), (1, 2)]
    np.testing.assert_allclose(history["means"][0], y[9:, :2].mean(0))
    found = model.evaluate(x, y, verbose=0, return_dict=True)
    alone = mr.metrics.F1Score()
    alone.update_state(y, model.predict(x, verbose=0))
    np.testing.assert_allclose(found["score"], alone.result().numpy())
    assert found["score"].shape == (3,)
    assert isinstance(found["accuracy"], float)
