"""Data that do not fit, given to a model with steps of its own, which sees batches as they come.

What can be known before a step is refused there; what the step itself trips over writes nothing.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import NonFiniteLossError

X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
Y = X[:, :1] * 2.0
_models: dict[mr.MirroredStrategy, mr.Model] = {}


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices and models stay from row to row."""


class Own(mr.Model):
    """A model whose steps are as in Keras' guides."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with mr.GradientTape() as tape:
            loss = mr.reduce_mean((self(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}

    def test_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        return {"loss": mr.reduce_mean((self(x) - y) ** 2)}


@pytest.fixture
def model(strategy: mr.MirroredStrategy) -> mr.Model:
    """Return a model that the rows of this file share."""
    if strategy not in _models:
        with strategy.scope():
            inputs = mr.layers.Input((5,))
            model = Own(inputs, mr.layers.Dense(1)(mr.layers.Dense(4)(inputs)))
            model.compile(mr.optim.SGD(0.01, momentum=0.9))
        model.fit(X, Y, verbose=0)
        _models[strategy] = model
    return _models[strategy]


def batches(*second: Any) -> Any:
    return iter([(X, Y), second, (X, Y)])


Case = tuple[Callable[[], tuple[Any, ...]], int, type[Exception], str]
CASES: dict[str, Case] = {
    "strings": (lambda: (X.astype(str), Y), 0, ValueError, "`x` must hold numbers"),
    "lengths": (lambda: (X, Y[:5]), 0, ValueError, "Data cardinality is ambiguous"),
    "a shape": (lambda: (X[:, :3], Y), 0, ValueError, "found shape=(None, 3)"),
    "no examples": (lambda: (X[:0], Y[:0]), 0, ValueError, "needs at least one example"),
    "no targets": (lambda: (X,), 0, ValueError, "too many values to unpack"),
    "then strings": (
        lambda: (batches(X.astype(str), Y),),
        1,
        ValueError,
        "Batch 1 of the data (counted from 0): `x` must hold numbers",
    ),
    "then a dict": (
        lambda: (batches({"a": X}, Y),),
        1,
        ValueError,
        "Its x has a structure different",
    ),
    "then a shape": (lambda: (batches(X[:, :3], Y),), 1, ValueError, "is incompatible with the la"),
    "then no examples": (lambda: (batches(X[:0], Y[:0]),), 1, ValueError, "at least one example"),
    "then NaN": (
        lambda: (batches(X * np.nan, Y),),
        1,
        NonFiniteLossError,
        "The loss is not finite in step 2 of epoch 1",
    ),
}


@cases(("given", "steps", "error", "message"), CASES.values(), ids=CASES, clean=False)
def test_what_does_not_fit(
    given: Callable[[], tuple[Any, ...]],
    steps: int,
    error: type[Exception],
    message: str,
    model: mr.Model,
) -> None:
    variables = [*model.variables, *model.optimizer.variables]
    before = [each.numpy() for each in variables]
    with pytest.raises(error, match=re.escape(message)):
        model.fit(*given(), verbose=0)
    after = [each.numpy() for each in variables]
    if steps:  # As without what came behind the first batch.
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)
        model.fit(X, Y, shuffle=False, verbose=0)
        before = [each.numpy() for each in variables]
    for one, same in zip(after, before, strict=True):
        np.testing.assert_array_equal(one, same)
    if error is ValueError:
        with pytest.raises(error, match=re.escape(message)):
            model.evaluate(*given(), verbose=0)
    assert np.isfinite(model.fit(X, Y, verbose=0).history["loss"][0])
