"""Single steps: on one batch, and on what an iterator gives next."""

import pickle
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import OutOfRangeError

X = np.random.default_rng(5).normal(size=(11, 3))
Y = X.sum(axis=1, keepdims=True) + 0.5
W = np.random.default_rng(6).uniform(0.5, 2.0, size=11)


def strategy(replicas: int) -> Any:
    """Return a strategy of so many simulated GPUs, of which there are four."""
    return mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])


@pytest.fixture(autouse=True)
def _four() -> None:
    mr.config.experimental.set_simulated_gpus(4)
    mr.keras.backend.set_floatx("float64")


def test_one_batch() -> None:
    with strategy(3).scope():
        inputs = mr.layers.Input((3,))
        model = mr.Model(inputs, mr.layers.Dense(1, kernel_initializer="zeros")(inputs))
        model.compile(mr.optim.SGD(0.1), "mse", metrics=["mse"])
    expected = float((Y**2).mean())
    assert model.test_on_batch(X, Y) == pytest.approx([expected, expected])
    logs = model.train_on_batch(X, Y, sample_weight=W, return_dict=True)
    assert logs == pytest.approx({"loss": float((W[:, None] * Y**2).mean()), "mse": expected})
    assert model.train_on_batch(X, Y)[0] < expected
    assert int(model.optimizer.iterations) == 2
    assert model.predict_on_batch(X).shape == (11, 1)


def dense(kind: type[mr.Model] = mr.Model, **options: Any) -> mr.Model:
    """Return a compiled model on three replicas."""
    with strategy(3).scope():
        inputs = mr.layers.Input((3,))
        model = kind(inputs, mr.layers.Dense(1, kernel_initializer="ones")(inputs))
        model.compile(mr.optim.SGD(0.1), "mse", metrics=["mse"], **options)
    return model


class Stepped(mr.Model):
    """A model with a step of its own, which is that of Keras."""

    def train_step(self, data: Any) -> Any:
        """Take a step."""
        return super().train_step(data)


def batches() -> mr.data.Dataset:
    """Return batches of 4, 4 and 3 examples."""
    return mr.data.Dataset.from_tensor_slices((X, Y, W)).batch(4)


@pytest.mark.behaviour("step-functions")
@pytest.mark.parametrize("kind", [mr.Model, Stepped])
def test_steps_on_what_an_iterator_gives(kind: type[mr.Model]) -> None:
    """They are those of `fit`, and metrics go on from one to the next, as in Keras 3.15.1."""
    fitted = dense(kind)
    logs: list[Any] = []
    note = mr.keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, its: logs.append(its))
    fitted.fit(batches(), verbose=0, callbacks=[note])
    model = dense(kind)
    assert model.train_function is None
    step = model.make_train_function()
    assert step is model.train_function is model.make_train_function()
    iterator = iter(batches())
    for expected in logs:
        assert step(iterator) == pytest.approx(expected)
    with pytest.raises(OutOfRangeError):
        step(iterator)
    np.testing.assert_allclose(model.get_weights()[0], fitted.get_weights()[0])
    model.reset_metrics()
    assert step(iter([(X, Y)]))["mse"] == pytest.approx(fitted.evaluate(X, Y, verbose=0)[1])
    assert step(iter([(X, Y)]))["mse"] != model.test_on_batch(X, Y)[1]


@pytest.mark.behaviour("step-functions")
def test_evaluation_and_prediction_on_batches() -> None:
    model = dense(steps_per_execution=2)
    evaluate, predict = model.make_test_function(), model.make_predict_function()
    iterator = iter(batches())
    assert evaluate(iterator) == pytest.approx(
        model.evaluate(X[:8], Y[:8], 4, 0, W[:8], return_dict=True)
    )
    model.reset_metrics()
    expected = model.evaluate(X[8:], Y[8:], 4, 0, W[8:], return_dict=True)
    model.reset_metrics()
    assert evaluate(iterator) == pytest.approx(expected)
    with pytest.raises(StopIteration):
        evaluate(iter([]))
    np.testing.assert_allclose(predict([(X[:4],), X[4:]]), model.predict(X, verbose=0))
    copy = pickle.loads(pickle.dumps(model))
    copy.reset_metrics()
    assert copy.test_function(iter([(X, Y)])) == pytest.approx(
        copy.test_on_batch(X, Y, return_dict=True)
    )
    for wrong in (batches(), [(X, Y)]):
        with pytest.raises(
            TypeError, match="`test_function` takes an iterator over global batches"
        ):
            evaluate(wrong)
    with strategy(3).scope():
        given = iter(model.distribute_strategy.experimental_distribute_dataset(batches()))
    with pytest.raises(TypeError, match="splits the batches over the replicas"):
        evaluate(given)


@pytest.mark.behaviour("step-functions")
def test_a_function_that_is_forgotten_is_made_anew() -> None:
    """Steps are recorded anew then, and see attributes as they are."""

    class Scaled(mr.Model):
        factor = 1.0

        def test_step(self, data: Any) -> Any:
            return {"factor": mr.constant(self.factor)}

    model = dense(Scaled)
    found = [model.test_on_batch(X, Y)]
    model.factor = 2.0
    found.append(model.test_on_batch(X, Y))
    model.test_function = None
    found.append(model.test_on_batch(X, Y))
    model.factor = 3.0
    found.append(model.make_test_function(force=True)(iter([(X, Y)]))["factor"])
    assert found == [1.0, 1.0, 2.0, 3.0]
    model.test_function = model.test_function
    with pytest.raises(
        TypeError, match="`test_function` must be the result of `make_test_function`, or"
    ):
        model.test_function = len
    model.compile()
    assert model.test_function is None
