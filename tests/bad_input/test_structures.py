"""Dicts and lists of inputs, targets and weights that do not fit a model of several of them.

The text says so before anything changes, or tells the batch; the next call works.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
A, B = X[:, :1] * 2.0, X[:, 1:3]
INPUTS, TARGETS = {"one": X, "other": X}, {"a": A, "b": B}
ONES = np.ones(12)
_models: dict[mr.MirroredStrategy, mr.Model] = {}


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices and models stay from row to row."""


def made(strategy: mr.MirroredStrategy, **options: Any) -> mr.Model:
    """Return a compiled model of two inputs and two outputs, by names."""
    with strategy.scope():
        one, other = mr.layers.Input((5,), name="one"), mr.layers.Input((5,), name="other")
        hidden = mr.layers.Dense(4, "tanh")(mr.layers.Concatenate()([one, other]))
        outputs = {"a": mr.layers.Dense(1)(hidden), "b": mr.layers.Dense(2)(hidden)}
        model = mr.Model({"one": one, "other": other}, outputs)
        model.compile(**{"optimizer": mr.optim.SGD(0.1, momentum=0.9), "loss": "mse", **options})
    return model


@pytest.fixture
def model(strategy: mr.MirroredStrategy) -> mr.Model:
    """Return a model that the rows of this file share."""
    if strategy not in _models:
        _models[strategy] = made(strategy)
        _models[strategy].fit(INPUTS, TARGETS, verbose=0)
    return _models[strategy]


def check(model: mr.Model, act: Callable[[], Any], message: str, steps: int = 0) -> None:
    """Hold that `act` raises after so many steps, and changes nothing beside them."""
    variables = [*model.variables, *model.optimizer.variables[2:]]
    before = [each.numpy() for each in variables]
    count = int(model.optimizer.iterations)
    with pytest.raises(ValueError, match=re.escape(message)):
        act()
    assert int(model.optimizer.iterations) == count + steps
    after = [each.numpy() for each in variables]
    same = [np.array_equal(old, new) for old, new in zip(before, after, strict=True)]
    assert same == [steps == 0] * len(same)
    losses = model.fit(INPUTS, TARGETS, verbose=0).history
    assert list(losses) == ["a_loss", "b_loss", "loss"]
    assert np.isfinite(losses["loss"]).all()


OTHERS = "y_true and y_pred have different structures"
WEIGHTS = "You should provide one `sample_weight` array per output in `y`"
GIVEN: dict[str, tuple[dict[str, Any], str]] = {
    "a target is missing": ({"y": {"a": A}}, OTHERS),
    "a target too many": ({"y": {**TARGETS, "c": A}}, OTHERS),
    "a target of another name": ({"y": {"a": A, "c": B}}, OTHERS),
    "other names inside": ({"y": {"a": {"c": A}, "b": B}}, OTHERS),
    "one target": ({"y": A}, OTHERS),
    "None as a target": ({"y": {"a": A, "b": None}}, "Received: none for the output 'b'"),
    "targets in another order": ({"y": [B, A]}, "must have the model's output shape (None, 1)"),
    "weights of another name": ({"sample_weight": {"a": ONES, "c": ONES}}, WEIGHTS),
    "a weight is missing": ({"sample_weight": {"a": ONES}}, WEIGHTS),
    "weights of classes": ({"class_weight": {0: 1.0}}, "only supported for Models with a single"),
    "an input of another name": ({"x": {"one": X, "more": X}}, 'Missing data for input "other"'),
}


@cases(("given", "message"), GIVEN.values(), ids=GIVEN, clean=False)
def test_arrays(given: dict[str, Any], message: str, model: mr.Model) -> None:
    data = {"x": INPUTS, "y": TARGETS, **given}
    check(model, lambda: model.fit(**data, verbose=0), message)
    if "class_weight" not in given:
        check(model, lambda: model.evaluate(**data, verbose=0), message)


CHANGED = "a structure different from the first batch"
SECOND: dict[str, tuple[Any, str]] = {
    "a target is missing": ((INPUTS, {"a": A}), f"Its y has {CHANGED}"),
    "a target too many": ((INPUTS, {**TARGETS, "c": A}), f"Its y has {CHANGED}"),
    "targets in a list": ((INPUTS, [A, B]), f"Its y has {CHANGED}"),
    "an input is missing": (({"one": X}, TARGETS), f"Its x has {CHANGED}"),
    "an input too many": (({**INPUTS, "more": X}, TARGETS), f"Its x has {CHANGED}"),
    "an input of another shape": (({**INPUTS, "other": X[:, :3]}, TARGETS), "name 'other' of lay"),
}


@cases(("second", "message"), SECOND.values(), ids=SECOND, clean=False)
def test_a_batch_that_is_unlike_the_first(second: Any, message: str, model: mr.Model) -> None:
    first = (INPUTS, TARGETS)
    assert "Batch 1 of the data" not in message
    for method, steps in (("fit", 1), ("evaluate", 0)):
        data = iter([first, second, first])
        check(model, lambda m=method, d=data: getattr(model, m)(d, verbose=0), message, steps)


@cases("loss", [{}, {"a": None, "b": None}], ids=repr, clean=False)
def test_outputs_without_any_loss(loss: Any, strategy: mr.MirroredStrategy) -> None:
    model = made(strategy, loss=loss)
    before = model.get_weights()
    for method in (model.fit, model.evaluate, model.train_on_batch):
        with pytest.raises(ValueError, match=r"No loss to compute\. Provide a `loss` argument"):
            method(INPUTS, TARGETS)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert model.predict(INPUTS, verbose=0)["a"].shape == (12, 1)


def test_an_output_without_a_loss(strategy: mr.MirroredStrategy) -> None:
    """Its targets may be there or not; those of an output with one may not be missing."""
    model = made(strategy, loss={"a": "mse"})
    expected = model.evaluate(INPUTS, TARGETS, verbose=0)
    assert model.evaluate(INPUTS, {"a": A}, verbose=0) == expected
    for y in ({"b": A}, {"c": A}):
        with pytest.raises(ValueError, match=OTHERS):
            model.fit(INPUTS, y, verbose=0)
    assert model.evaluate(INPUTS, TARGETS, verbose=0) == expected


def test_targets_of_the_only_output(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        inputs = mr.layers.Input((5,))
        model = mr.Model(inputs, mr.layers.Dense(1, name="only")(inputs))
        model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=OTHERS):
        model.fit(X, {"other": A}, verbose=0)
    expected = model.evaluate(X, A, verbose=0)
    assert model.evaluate(X, {"only": A}, verbose=0) == expected
