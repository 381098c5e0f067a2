"""The loops of `evaluate` and `predict`: what they compute and return, and that nothing moves.

Numbers marked so were printed by Keras 3.15.1 on TensorFlow 2.21.0 for the same model and data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from replica_context import ONE_AND_THREE

import mirrored as mr

X = np.arange(4.0, dtype=np.float32)[:, np.newaxis]
Y = 2 * (X + 1)
MakeLine = Callable[..., mr.Model]


# ------------------------------------------------------------------------------ evaluate


@pytest.mark.behaviour("weighted-losses", "evaluate-numbers")
@ONE_AND_THREE
@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 100])
def test_evaluate_the_identity(batch_size: int | None, make_line: MakeLine) -> None:
    """Keras 3.15.1: 13.5, and 10.625 with weights, which divide by the number of examples."""
    model = make_line()
    weights = np.array([0.25, 0.5, 0.75, 1.0])
    assert model.evaluate(X, Y, batch_size, verbose=0) == pytest.approx(13.5)
    for each in (weights, weights[:, np.newaxis], weights.tolist()):
        loss = model.evaluate(X, Y, batch_size, verbose=0, sample_weight=each)
        assert loss == pytest.approx(10.625)


@pytest.mark.behaviour("weighted-losses")
def test_weighted_metrics_divide_by_the_sum_of_weights(make_line: MakeLine) -> None:
    model = make_line(metrics=["mse"], weighted_metrics=["mse"])
    weights = np.array([0.25, 0.5, 0.75, 1.0])
    logs = model.evaluate(X, Y, 3, verbose=0, sample_weight=weights, return_dict=True)
    # Keras 3.15.1, the name of the last one too.
    assert logs == pytest.approx({"loss": 10.625, "mse": 13.5, "weighted_mse": 17.0})


def test_forms_of_evaluate(make_line: MakeLine) -> None:
    model = make_line()
    assert type(model.evaluate(X, Y, verbose=0)) is float
    assert model.evaluate(X, Y, verbose=0, return_dict=True) == {"loss": 13.5}
    assert model.metrics_names == ["loss"]
    model = make_line(metrics=["mse", "accuracy"])
    assert model.evaluate(X, Y, verbose=0) == [13.5, 13.5, 0.0]
    assert model.evaluate(X, Y, verbose=0, return_dict=True) == {
        "loss": 13.5,
        "mse": 13.5,
        "accuracy": 0.0,
    }


def test_evaluate_some_steps(make_line: MakeLine) -> None:
    assert make_line().evaluate(X, Y, batch_size=1, steps=2, verbose=0) == (4 + 9) / 2


def test_evaluate_changes_nothing(make_line: MakeLine) -> None:
    model = make_line()
    model.evaluate(X, Y, verbose=0)
    assert model.get_weights()[0].item() == 1.0
    assert int(model.optimizer.iterations) == 0
    assert model.history is None


# ------------------------------------------------------------------------------ predict


@pytest.mark.behaviour("predict")
@pytest.mark.parametrize("batch_size", [None, 1, 2, 5])
def test_predict_keeps_the_order(batch_size: int | None, make_line: MakeLine) -> None:
    """With fewer examples than replicas too: the replicas that get none add nothing."""
    model = make_line()
    for examples in (1, 2, 7, 32, 33):
        x = np.random.default_rng(0).normal(size=(examples, 1)).astype(np.float32)
        outputs = model.predict(x, batch_size, verbose=0)
        assert outputs.dtype == np.float32
        np.testing.assert_array_equal(outputs, x)


def test_predict_some_steps(make_line: MakeLine) -> None:
    outputs = make_line().predict(X, batch_size=1, steps=3, verbose=0)
    np.testing.assert_array_equal(outputs, X[:3])


def test_predict_without_compile(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Flatten(), mr.layers.Dense(2, "softmax")])
    outputs = model.predict(np.ones((5, 2, 2)), verbose=0)
    assert outputs.shape == (5, 2)
    np.testing.assert_allclose(outputs.sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    "convert",
    [np.ndarray.tolist, mr.constant, lambda x: x.astype(int), lambda x: x.astype(np.uint8)],
    ids=["lists", "tensors", "integers", "bytes"],
)
def test_forms_of_data(convert: Callable[[Any], Any], make_line: MakeLine) -> None:
    model = make_line()
    assert model.evaluate(convert(X), convert(Y), verbose=0) == 13.5
    np.testing.assert_array_equal(model.predict(convert(X), verbose=0), X)
    model.fit(convert(X), convert(Y), validation_data=(convert(X), convert(Y)), verbose=0)


@cases("method", ["fit", "evaluate", "predict"])
def test_loops_are_not_recorded(method: str) -> None:
    """Python runs them, so an error after half of one would leave a model that was changed."""
    model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = [np.ones((4, 2)), np.ones((4, 1))][: 1 if method == "predict" else 2]
    with pytest.raises(RuntimeError, match=f"`{method}` is a Python loop"):
        mr.function(lambda: getattr(model, method)(*data, verbose=0))()
    assert int(model.optimizer.iterations) == 0
