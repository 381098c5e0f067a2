"""Models as scikit-learn's estimators, by its own checks and in its pipelines and searches.

Models start alike and take the examples in order, so that a fit can be compared with another.
"""

import importlib
import pickle
import sys
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

pytest.importorskip("sklearn")
import joblib
import sklearn
from joblib.externals.loky import get_reusable_executor
from matplotlib import pyplot as plt
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.metrics import RocCurveDisplay, get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mirrored as mr
from mirrored.keras.wrappers import SKLearnClassifier, SKLearnRegressor, SKLearnTransformer

pytestmark = pytest.mark.slow  # scikit-learn takes long to import.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
CLASSES = np.array(["a", "b", "c"])[np.argmax(X, axis=1)]
VALUES = X @ [1.0, -2.0, 0.5]


def made(
    X: Any, y: Any, loss: Any = "mse", last: str | None = None, units: int = 4, rate: float = 0.001
) -> mr.Model:
    """Return a model for data, as a function of users' does, which starts alike each time."""
    inputs = mr.layers.Input(shape=X.shape[1:])
    first, second = (mr.keras.initializers.GlorotUniform(seed) for seed in (0, 1))
    hidden = mr.layers.Dense(units, "relu", kernel_initializer=first)(inputs)
    outputs = mr.layers.Dense(y.shape[1], last, kernel_initializer=second)(hidden)
    model = mr.Model(inputs, outputs)
    model.compile(mr.optim.RMSprop(rate), loss)
    return model


def compiled(units: int = 1, loss: Any = "mse", last: str | None = None) -> mr.Model:
    """Return a model for `X`, which starts as it does each time."""
    start = mr.layers.initializers.Constant(0.1)
    model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(units, last, True, start)])
    model.compile(mr.optim.SGD(0.1), loss)
    return model


ALIKE = {"shuffle": False, "verbose": 0}  # Two fits are the same.
LABELS = {"loss": "categorical_crossentropy", "last": "softmax", "rate": 0.1}
CHECKED: list[BaseEstimator] = [
    SKLearnClassifier(made, model_kwargs=LABELS, fit_kwargs=ALIKE),
    SKLearnRegressor(made, fit_kwargs=ALIKE),
    SKLearnTransformer(made, fit_kwargs=ALIKE),
]


@pytest.mark.behaviour("estimators")
@pytest.mark.slow
def test_scikit_learns_own_checks() -> None:
    """What is checked of all estimators is checked once: they share what it is about."""
    from sklearn.utils.estimator_checks import estimator_checks_generator  # It takes seconds.

    passed: set[str] = set()
    failed: dict[str, set[str]] = {}
    for each in CHECKED:
        before = {*passed}
        for estimator, check in estimator_checks_generator(each):
            name = check.func.__name__
            if name in before:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # Of data that are spoiled on purpose.
                    check(estimator)
            except unittest.SkipTest:
                continue
            except AssertionError:
                failed.setdefault(type(each).__name__, set()).add(name)
            else:
                passed.add(name)
    assert failed == {}  # Keras' own test lists some, whose models start otherwise each time.
    assert len(passed) > 45


def test_labels_come_out_as_they_went_in() -> None:
    model = compiled(3, "categorical_crossentropy", "softmax")
    classifier = SKLearnClassifier(model, fit_kwargs={"epochs": 40, "batch_size": 8, **ALIKE})
    assert classifier.epoch_ == 0
    assert classifier.fit(X, CLASSES).score(X, CLASSES) > 0.8
    rows = classifier.decision_function(X)
    assert list(classifier.predict(X)) == [classifier.classes_[each] for each in rows.argmax(1)]
    assert classifier.epoch_ == 40 == len(classifier.history_.history["loss"])
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.decision_function(X), rows)


def classifier(units: int, loss: Any, last: str | None = None) -> SKLearnClassifier:
    """Return a classifier of `X` that trains in five epochs."""
    fit = {"epochs": 5, "batch_size": 8, **ALIKE}
    return SKLearnClassifier(compiled(units, loss, last), fit_kwargs=fit)


FOCAL = mr.losses.BinaryFocalCrossentropy(from_logits=True)
SOFT = mr.losses.CategoricalCrossentropy(from_logits=True)


@cases(
    ("loss", "last", "expected"),
    [
        ("categorical_crossentropy", "softmax", lambda z: z),
        ("binary_crossentropy", "sigmoid", lambda z: z / z.sum(1, keepdims=True)),
        (SOFT, None, lambda z: np.exp(z) / np.exp(z).sum(1, keepdims=True)),
        (FOCAL, None, lambda z: 1 / (1 + np.exp(-z)) / (1 / (1 + np.exp(-z))).sum(1)[:, None]),
    ],
)
def test_probabilities(loss: Any, last: str | None, expected: Any) -> None:
    fitted = classifier(3, loss, last).fit(X, CLASSES)
    found, outputs = fitted.predict_proba(X), fitted.decision_function(X)
    assert found.shape == outputs.shape == (24, 3)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected(outputs.astype(np.float64)), rtol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-12)
    assert list(fitted.predict(X)) == [fitted.classes_[each] for each in found.argmax(1)]


def test_outputs_that_are_no_probabilities() -> None:
    fitted = classifier(3, "mse").fit(X, CLASSES)
    assert fitted.decision_function(X).shape == (24, 3)
    with pytest.raises(
        ValueError, match=r"not probabilities. Received: outputs from .* 'mse'. Let"
    ):
        fitted.predict_proba(X)
    zeros = classifier(3, "binary_crossentropy", "relu").fit(X, CLASSES, epochs=1)
    zeros.model_.set_weights([np.zeros((3, 3)), np.zeros(3)])
    np.testing.assert_array_equal(zeros.predict_proba(X), np.full((24, 3), 1 / 3))


def test_what_scikit_learn_makes_of_scores() -> None:
    two = classifier(2, SOFT)
    labels = np.where(X[:, 0] > 0, "b", "a")
    fitted = clone(two).fit(X, labels)
    scores, found = fitted.decision_function(X), fitted.predict_proba(X)
    assert scores.shape == (24,)
    assert list(fitted.predict(X)) == [fitted.classes_[int(score > 0)] for score in scores]
    area = roc_auc_score(labels, found[:, 1])
    assert area == roc_auc_score(labels, scores) == get_scorer("roc_auc")(fitted, X, labels)
    display = RocCurveDisplay.from_estimator(fitted, X, labels, curve_kwargs={"alpha": 0.5})
    assert display.roc_auc == area
    plt.close("all")
    voted = VotingClassifier([("a", two), ("b", two)], voting="soft").fit(X, labels)
    np.testing.assert_allclose(voted.predict_proba(X), found, rtol=1e-6)
    calibrated = CalibratedClassifierCV(two, cv=2).fit(X, labels)
    assert calibrated.score(X, labels) > 0.8
    three = classifier(3, "categorical_crossentropy", "softmax").fit(X, CLASSES)
    assert get_scorer("roc_auc_ovr")(three, X, CLASSES) > 0.6


@pytest.mark.behaviour("estimators")
def test_a_fit_trains_a_clone_and_a_warm_start_goes_on() -> None:
    """The given weights stay as they are, but for a warm start, whose clones have their own."""
    model = compiled()
    start = model.get_weights()[0]
    cold = SKLearnRegressor(model, fit_kwargs=ALIKE)
    first = cold.fit(X, VALUES).predict(X)
    np.testing.assert_array_equal(cold.fit(X, VALUES, epochs=1).predict(X), first)
    np.testing.assert_array_equal(model.get_weights()[0], start)
    assert cold.fit_kwargs == ALIKE

    warm = SKLearnRegressor(model, warm_start=True, fit_kwargs=cold.fit_kwargs)
    other = clone(warm)
    assert other.get_params() == {**warm.get_params(), "model": other.model}
    np.testing.assert_array_equal(warm.fit(X, VALUES).predict(X), first)
    warm.fit(X, VALUES)
    assert warm.model_ is model
    np.testing.assert_array_equal(other.model.get_weights()[0], start)
    np.testing.assert_array_equal(other.fit(X, VALUES).fit(X, VALUES).predict(X), warm.predict(X))
    assert cold.fit(X, VALUES).model_.optimizer.iterations.numpy() == 1  # And not those of `model`.


def test_a_warm_start_keeps_what_a_function_returned() -> None:
    warm = SKLearnRegressor(made, warm_start=True, fit_kwargs=ALIKE).fit(X, VALUES)
    model = warm.model_
    assert warm.fit(X, VALUES).model_ is model
    assert clone(warm).fit(X, VALUES).model_ is not model


def test_replicas_train_the_clone_too(simulated_gpus: Callable[[int], None]) -> None:
    simulated_gpus(3)
    alone = SKLearnRegressor(compiled(), fit_kwargs=ALIKE)
    with mr.MirroredStrategy().scope():
        three = SKLearnRegressor(compiled(), fit_kwargs=ALIKE)
    mr.random.set_seed(5)
    one = alone.fit(X, VALUES, epochs=3).predict(X)
    mr.random.set_seed(5)
    found = three.fit(X, VALUES, epochs=3).predict(X)
    # One that is near zero is a difference of larger ones, by which its rounding goes.
    np.testing.assert_allclose(found, one, rtol=0, atol=1e-5 * np.abs(one).max())
    assert three.model_.distribute_strategy.num_replicas_in_sync == 3


@cases(
    ("estimator", "y", "error", "text"),
    [
        (SKLearnRegressor(mr.Sequential([mr.layers.Dense(1)])), VALUES, RuntimeError, "compiled"),
        (SKLearnRegressor(made, fit_kwargs={"epoch": 1}), VALUES, TypeError, "Did you mean"),
        (SKLearnClassifier(made), VALUES, ValueError, "binary and multiclass .* continuous"),
        (SKLearnClassifier(made), ["a"] * 24, ValueError, "only one class"),
        (SKLearnTransformer(made), np.ones((24, 2)), ValueError, "1d array"),
    ],
)
def test_what_cannot_be_fitted(estimator: Any, y: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        estimator.fit(X, y)
    assert not hasattr(estimator, "model_")


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "mirrored.training.sklearn_wrappers")
    with pytest.raises(ImportError, match=r"need the package scikit-learn.* extra `sklearn`"):
        importlib.import_module("mirrored.training.sklearn_wrappers")


def test_a_pipeline_hands_on_what_was_requested() -> None:
    weights = np.arange(24) % 2
    regressor = SKLearnRegressor(compiled(), fit_kwargs=ALIKE)
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        regressor.set_fit_request(sample_weight=True)
    with sklearn.config_context(enable_metadata_routing=True):
        regressor.set_fit_request(sample_weight=True)
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), clone(regressor)
        )
        pipeline.fit(X, VALUES, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    weighted = regressor.fit(scaled, VALUES, sample_weight=weights).predict(scaled)
    np.testing.assert_array_equal(pipeline.predict(X), weighted)
    assert (regressor.fit(scaled, VALUES).predict(scaled) != weighted).any()


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_searches_run_side_by_side(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found on threads and in processes is what one after the other finds."""
    # As a script's, it is sent itself: processes need not import what this file does.
    monkeypatch.setattr(made, "__module__", "__main__")
    settings = {"model_kwargs": [{"rate": rate} for rate in (1e-5, 0.1)]}
    regressor = SKLearnRegressor(made, fit_kwargs={"epochs": 3, **ALIKE})
    alone = GridSearchCV(regressor, settings, cv=2).fit(X, VALUES)
    with joblib.parallel_config(backend, n_jobs=2):
        search = GridSearchCV(regressor, settings, cv=2).fit(X, VALUES)
    if backend == "loky":  # Its processes, and the threads that look after them, wait for more.
        get_reusable_executor().shutdown(wait=True)
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(scores, alone.cv_results_["mean_test_score"], rtol=1e-6)
    assert search.best_params_["model_kwargs"] == settings["model_kwargs"][scores.argmax()]
