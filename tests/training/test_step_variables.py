"""One step: which variables move, which do not, and whose slots they are."""

import logging
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.distribute import MirroredVariable

FEATURES = np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2)
VALUES = FEATURES @ np.array([[1.0], [2.0]], dtype=np.float32) + np.float32(0.5)


def copies_are_equal(model: mr.Model) -> bool:
    variables = [*model.variables, *model.optimizer.variables]
    assert all(isinstance(variable, MirroredVariable) for variable in variables)
    return all(
        copy.numpy().tobytes() == variable.numpy().tobytes()
        for variable in variables
        for copy in variable.copies
    )


def test_frozen_layers_do_not_move(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        x = mr.layers.Input(shape=(2,))
        frozen = mr.layers.Dense(3, name="frozen", kernel_regularizer="l2")
        model = mr.Model(x, mr.layers.Dense(1)(frozen(x)))
        frozen.trainable = False
        model.compile(mr.optim.SGD(0.1, momentum=0.9, weight_decay=0.1), "mse")
    before = model.get_weights()
    model.fit(FEATURES, VALUES, epochs=2, verbose=0)
    after = model.get_weights()
    moved = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert moved == [False, False, True, True]
    assert len(model.optimizer.variables) == 4  # No slots for what does not move.
    frozen.trainable = True
    model.fit(FEATURES, VALUES, epochs=1, verbose=0)
    assert not np.array_equal(model.get_weights()[0], before[0])


class HalfUsed(mr.Model):
    """A model with a layer that its output does not depend on."""

    def __init__(self) -> None:
        super().__init__()
        self.used = mr.layers.Dense(1, name="used")
        self.unused = mr.layers.Dense(1, name="unused")

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        self.unused(inputs)
        return self.used(inputs)


class TwoHeads(mr.layers.Layer):
    """A layer with a second head that helps in training alone."""

    def __init__(self) -> None:
        super().__init__()
        ones = {"kernel_initializer": "ones"}
        self.head = mr.layers.Dense(1, **ones)
        self.helper = mr.layers.Dense(1, kernel_regularizer="l2", **ones)

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        return self.head(inputs) + self.helper(inputs) if training else self.head(inputs)


class LastMean(mr.layers.Layer):
    """Keeps the mean of its last batch."""

    def build(self, input_shape: Any) -> None:
        mean = mr.VariableAggregation.MEAN
        self.mean = self.add_weight(input_shape[-1:], "zeros", trainable=False, aggregation=mean)

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        if training:
            self.mean.assign(mr.reduce_mean(inputs, axis=0))
        return inputs


@pytest.mark.parametrize("eagerly", [False, True])
@pytest.mark.parametrize("batch_size", [5, 4])
def test_means_that_layers_keep_count_replicas_by_their_examples(
    strategy: mr.MirroredStrategy, batch_size: int, eagerly: bool
) -> None:
    """Five are shards of two, two and one; of a batch of one two replicas have nothing."""
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((2,)), LastMean(), mr.layers.Dense(1)])
        model.compile(mr.optim.SGD(0.1), "mse", run_eagerly=eagerly)
    model.fit(FEATURES, VALUES, batch_size=batch_size, shuffle=False, verbose=0)
    last = FEATURES[4:] if batch_size == 4 else FEATURES
    kept = model.layers[0].mean
    np.testing.assert_allclose(kept.numpy(), last.mean(axis=0), atol=1e-7)
    assert copies_are_equal(model)


@pytest.mark.parametrize("eagerly", [False, True])
def test_a_layer_that_training_alone_uses_is_trained_from_the_first_step(
    strategy: mr.MirroredStrategy, eagerly: bool
) -> None:
    with strategy.scope():
        model = mr.Sequential([TwoHeads()])
        model.compile(mr.optim.SGD(0.1), "mse", run_eagerly=eagerly)
    history = model.fit(FEATURES, VALUES, batch_size=5, epochs=2, verbose=0).history
    assert history["loss"] == pytest.approx([0.7885185, 0.3295992], rel=1e-5)
    head, helper = (each.get_weights() for each in (model.layers[0].head, model.layers[0].helper))
    values = np.concatenate([*head, *helper], axis=None)
    expected = [0.8456689, 0.8888574, 0.1943484, 0.8418581, 0.8849923, 0.1943484]  # Keras 3.15's.
    assert values == pytest.approx(expected, rel=1e-5)


def test_unused_variables_are_named_once(
    strategy: mr.MirroredStrategy, caplog: pytest.LogCaptureFixture
) -> None:
    with strategy.scope():
        model = HalfUsed()
        model.compile("sgd", "mse")
    model.build((None, 2))
    before = model.unused.get_weights()
    with caplog.at_level(logging.WARNING, logger="mirrored"):
        model.fit(FEATURES, VALUES, batch_size=2, epochs=2, verbose=0)
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "unused/kernel" in warnings[0]
    assert "'used/kernel" not in warnings[0]
    assert [w.tobytes() for w in model.unused.get_weights()] == [w.tobytes() for w in before]


def test_dropout_drops_in_training_only(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dropout(0.5), mr.layers.Flatten()])
        model.compile("sgd", "mse")
    x = np.ones((8, 8), dtype=np.float32)
    np.testing.assert_array_equal(model.predict(x, verbose=0), x)
    assert model.evaluate(x, x, verbose=0) == 0.0
    assert model.fit(x, x, verbose=0).history["loss"] == [1.0]  # |0 - 1| and |2 - 1|.


def test_two_models_share_one_optimizer(strategy: mr.MirroredStrategy) -> None:
    """The slots of each are its own; the step count is the optimizer's."""
    with strategy.scope():
        optimizer = mr.optim.SGD(0.05, momentum=0.9)
        alone = mr.optim.SGD(0.05, momentum=0.9)
        models = []
        for each in (optimizer, optimizer, alone):
            x = mr.layers.Input(shape=(2,))
            model = mr.Model(x, mr.layers.Dense(1, kernel_initializer="ones")(x))
            model.compile(each, "mse")
            models.append(model)
    first, second, reference = models
    options: dict[str, Any] = {"batch_size": 2, "shuffle": False, "verbose": 0}
    for _ in range(2):
        first.fit(FEATURES, VALUES, **options)
        second.fit(FEATURES, -VALUES, **options)
        reference.fit(FEATURES, VALUES, **options)
    assert int(optimizer.iterations) == 2 * int(alone.iterations) == 12
    for a, b in zip(first.get_weights(), reference.get_weights(), strict=True):
        assert a.tobytes() == b.tobytes()
    assert not np.array_equal(first.get_weights()[0], second.get_weights()[0])


def test_one_optimizer_goes_on_where_it_was(strategy: mr.MirroredStrategy) -> None:
    """Two calls of `fit` are one of twice the epochs, momentum included."""
    results = []
    for calls, epochs in ((2, 1), (1, 2)):
        with strategy.scope():
            x = mr.layers.Input(shape=(2,))
            model = mr.Model(x, mr.layers.Dense(1, kernel_initializer="ones")(x))
            model.compile(mr.optim.Adam(0.1), "mse")
        for _ in range(calls):
            model.fit(FEATURES, VALUES, 2, epochs=epochs, shuffle=False, verbose=0)
        results.append(b"".join(each.numpy().tobytes() for each in model.variables))
        assert copies_are_equal(model)
    assert results[0] == results[1]
