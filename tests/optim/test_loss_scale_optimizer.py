"""Scaled losses: which steps are left out, with whatever takes them, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.optim import SGD, Adam, LossScaleOptimizer, MultiOptimizer, OptimizerMap

X = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(12, 2)
Y = X[:, :1] - X[:, 1:] + 0.5
SPOILED = np.concatenate([X[:4], X[4:8] * np.inf, X[8:]])  # The second of three batches.


class OwnStep(mr.Model):
    """Trains as Keras' guide says."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with mr.GradientTape() as tape:
            loss = mr.reduce_mean(mr.square(self(x, training=True) - y))
            scaled = self.optimizer.scale_loss(loss)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(scaled, weights), weights)
        return {"loss": loss}


def make(optimizer: Callable[[], Any], kind: type[mr.Model], *, eager: bool = False) -> mr.Model:
    x = mr.layers.Input((2,))
    hidden = mr.layers.Dense(3, "tanh", kernel_initializer="glorot_uniform")(x)
    out = mr.layers.Dense(1, kernel_regularizer="l2")(hidden)
    model = kind(x, out)
    model.compile(optimizer(), "mse", run_eagerly=eager)
    return model


def state(model: mr.Model) -> list[Any]:
    return [each.numpy() for each in (*model.variables, *model.optimizer.variables)]


INNER: dict[str, Callable[[], Any]] = {
    "Adam": lambda: Adam(0.1, use_ema=True, ema_momentum=0.5),
    "accumulating": lambda: SGD(0.1, momentum=0.5, gradient_accumulation_steps=2),
    "several": lambda: MultiOptimizer(OptimizerMap(SGD(0.1), {".*kernel": Adam(0.1)})),
}


@pytest.mark.behaviour("non-finite-loss")
@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ("Adam", OwnStep),
        ("several", mr.Model),
        ("accumulating", mr.Model),
        pytest.param("Adam", mr.Model, marks=pytest.mark.slow),
        pytest.param("several", OwnStep, marks=pytest.mark.slow),
        pytest.param("accumulating", OwnStep, marks=pytest.mark.slow),
    ],
)
def test_fit_goes_on_behind_an_infinite_batch(
    inner: str, kind: type[mr.Model], simulate: Callable[..., Any]
) -> None:
    """It is as if the batch was not there, but for the factor; on several replicas, eagerly too."""

    def trained(x: Any, y: Any, *, eager: bool = False, replicas: int = 1) -> mr.Model:
        mr.random.set_seed(1)
        strategy = mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])
        with strategy.scope():
            model = make(lambda: LossScaleOptimizer(INNER[inner](), 8.0), kind, eager=eager)
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        return model

    simulate(3)
    spoiled = trained(SPOILED, Y)
    if kind is mr.Model:  # The other one shows that of the last batch.
        assert not np.isfinite(spoiled.history.history["loss"]).any()
    optimizer = spoiled.optimizer
    assert (float(optimizer.dynamic_scale), int(optimizer.step_counter)) == (2.0, 1)
    without = trained(*(np.concatenate([each[:4], each[8:]]) for each in (X, Y)))
    for one, other in zip(spoiled.get_weights(), without.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert int(optimizer.iterations) == int(without.optimizer.iterations)
    for options in ({"eager": True}, {"replicas": 3}):
        found = trained(SPOILED, Y, **options)
        for one, other in zip(state(found), state(spoiled), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


def test_one_replica_decides_for_all(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        v, optimizer = mr.Variable([1.0]), LossScaleOptimizer(SGD(1.0), 4.0)

    def step() -> None:
        replica = mr.distribute.get_replica_context().replica_id_in_sync_group
        optimizer.apply_gradients([(mr.constant([np.inf if replica else 4.0]), v)])

    strategy.run(step)
    assert [each.numpy().tolist() for each in v.copies] == [[1.0], [1.0]]
    assert [float(each) for each in optimizer.dynamic_scale.copies] == [2.0, 2.0]


def test_a_finite_loss_whose_scaled_gradient_overflows() -> None:
    model = make(lambda: LossScaleOptimizer(SGD(0.1), 2.0**127), mr.Model)
    before = model.get_weights()
    history = model.fit(X, Y + 1e3, batch_size=12, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert float(model.optimizer.dynamic_scale) == 2.0**125


def test_a_checkpoint_goes_on(tmp_path: Path) -> None:
    def made() -> mr.Model:
        mr.random.set_seed(1)
        return make(lambda: LossScaleOptimizer(INNER["several"](), 8.0), mr.Model)

    model, other = made(), made()
    model.fit(SPOILED, Y, batch_size=4, verbose=0)
    path = mr.train.Checkpoint(model=model).save(str(tmp_path / "c"))
    mr.train.Checkpoint(model=other).restore(path)
    for each in (model, other):
        each.fit(X, Y, batch_size=4, shuffle=False, verbose=0)
    for one, two in zip(state(model), state(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_callbacks_know_what_is_inside(tmp_path: Path) -> None:
    """Rates and averages of the inner one, a loss that is none, and what has no rate of its own."""
    callbacks = mr.callbacks
    model = make(lambda: LossScaleOptimizer(INNER["Adam"](), 8.0), mr.Model)
    known = [callbacks.LearningRateScheduler(lambda _, rate: rate / 2), callbacks.SwapEMAWeights()]
    history = model.fit(X, Y, epochs=2, verbose=0, callbacks=known).history
    assert history["learning_rate"] == pytest.approx([0.05, 0.025])
    stops = [callbacks.TerminateOnNaN()]
    stopped = model.fit(SPOILED, Y, 4, 3, shuffle=False, verbose=0, callbacks=stops).history
    assert stopped["loss"] == pytest.approx([np.nan], nan_ok=True)
    several = make(INNER["several"], mr.Model)
    with pytest.raises(ValueError, match="each optimizer in its `optimizers`"):
        several.fit(X, Y, verbose=0, callbacks=known[:1])

    def fitted(epochs: int) -> mr.Model:
        mr.random.set_seed(2)
        chosen = make(lambda: MultiOptimizer(lambda _: Adam(0.1)), mr.Model)
        backup = callbacks.BackupAndRestore(tmp_path, delete_checkpoint=False)
        chosen.fit(X, Y, 4, epochs, shuffle=False, verbose=0, callbacks=[backup])
        return chosen

    fitted(1)  # As if it was stopped here; the other goes on from it.
    assert int(fitted(2).optimizer.iterations) == 6


def test_a_function_gives_the_optimizer_of_each_variable() -> None:
    slow, fast = SGD(0.25), SGD(0.5, use_ema=True)
    optimizer = MultiOptimizer(lambda each: fast if "bias" in each.name else slow, name="both")
    kernel, bias = mr.Variable(1.0, name="kernel"), mr.Variable(1.0, name="bias")
    assert optimizer.optimizers == []
    optimizer.build([kernel, bias])
    other = MultiOptimizer(OptimizerMap(SGD(0.25), {"kernel": SGD(0.5)}))
    other.build([bias, kernel])
    other.apply([mr.constant(0.0), mr.constant(-1.0)])  # In the order of `build`.
    other.apply([mr.constant(0.0), mr.constant(1.0)])
    assert float(bias) == 1.0
    assert optimizer.optimizers == [slow, fast]
    assert optimizer.built
    optimizer.apply([mr.constant(1.0)] * 2, [kernel, bias])
    assert (float(kernel), float(bias)) == (0.75, 0.5)
    optimizer.optimizers.reverse()  # It is a copy.
    optimizer.apply([mr.constant(1.0), mr.constant(0.0)])
    assert (float(kernel), float(bias)) == (0.5, 0.5)
    assert [each.name for each, _ in optimizer.slots.averages()] == ["bias:0"]
    assert (slow.loss_scale_factor, optimizer.name) == (None, "both")
    optimizer.loss_scale_factor = 2.0
    assert (slow.loss_scale_factor, fast.loss_scale_factor) == (2.0, 2.0)
    with pytest.raises(AttributeError, match="individual sub-optimizers"):
        optimizer.learning_rate  # noqa: B018
    with pytest.raises(AttributeError, match="individual sub-optimizers"):
        optimizer.learning_rate = 0.5


def test_a_map_of_optimizers() -> None:
    default, one, other = SGD(), SGD(), Adam()
    found = OptimizerMap(default)
    found["encoder/.*"] = one
    found["encoder/layer/dense"] = other
    assert found.default_optimizer is found["decoder"] is default
    assert found["encoder/layer/query"] is one
    assert found["encoder/layer/dense"] is other
    found["enc.*"] = other
    with pytest.raises(ValueError, match="Multiple optimizers assigned to variable encoder/a"):
        found["encoder/a"]
    del found["enc.*"]
    assert list(found) == ["encoder/.*", "encoder/layer/dense"]
    assert len(found) == 2


@cases(
    ("make", "error", "text"),
    [
        (lambda: LossScaleOptimizer("sgd"), TypeError, "needs an `Optimizer`. Received: 'sgd'"),
        (lambda: LossScaleOptimizer(SGD(), 0.0), ValueError, "initial_scale"),
        (lambda: LossScaleOptimizer(SGD(), dynamic=False), ValueError, "dynamic=False"),
        (lambda: LossScaleOptimizer(SGD(), clipnorm=1.0), ValueError, "set `clipnorm` on the"),
        (lambda: LossScaleOptimizer(SGD(), use_ema=True), ValueError, "set `use_ema` on the"),
        (lambda: LossScaleOptimizer(SGD(), foo=1), ValueError, "support arguments: `foo`"),
        (lambda: OptimizerMap("sgd"), TypeError, "default_optimizer must be"),
        (lambda: OptimizerMap(SGD(), [SGD()]), TypeError, "must be a dictionary"),
        (lambda: MultiOptimizer(SGD()), TypeError, "`optimizer_map` must be an OptimizerMap"),
        (
            lambda: MultiOptimizer(OptimizerMap(LossScaleOptimizer(SGD()))),
            ValueError,
            "cannot be LossScaleOptimizer",
        ),
        (
            lambda: MultiOptimizer(lambda _: "sgd").build([mr.Variable(1.0)]),
            ValueError,
            "must be an Optimizer instance. Received: 'sgd'",
        ),
        (lambda: OptimizerMap(SGD()).__setitem__(3, SGD()), ValueError, "key must be a string"),
        (lambda: OptimizerMap(SGD(), {"a": 1}).__setitem__("a", SGD()), ValueError, "duplicated"),
        (
            lambda: LossScaleOptimizer(SGD()).exclude_from_weight_decay(var_names=["bias"]),
            ValueError,
            "of the optimizer inside",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_both_are_made_in_one_scope(simulate: Callable[..., Any]) -> None:
    simulate(2)
    inner = SGD()
    with mr.MirroredStrategy().scope(), pytest.raises(ValueError, match="inside the same"):
        LossScaleOptimizer(inner)
    assert LossScaleOptimizer(inner, use_ema=False, weight_decay=None).inner_optimizer is inner
