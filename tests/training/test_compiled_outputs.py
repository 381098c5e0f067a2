"""Losses, weights and metrics of models with several outputs, under Keras' names."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.training.compiled_outputs import compile_outputs

X = np.random.default_rng(3).normal(size=(7, 2))
A, B = X.sum(axis=1, keepdims=True), X[:, :1] * 2.0
W = np.arange(1.0, 8.0)


def made(replicas: int, form: str, **options: Any) -> Any:
    """Return a compiled model of two outputs, in a list or in a dict."""
    devices = [f"GPU:{i}" for i in range(replicas)]
    with mr.MirroredStrategy(devices).scope():
        mr.random.set_seed(1)
        inputs = mr.layers.Input((2,))
        ones: dict[str, Any] = {"kernel_initializer": "ones"}
        a = mr.layers.Dense(1, name="a", **ones)(inputs)
        b = mr.layers.Dense(1, name="b", **ones)(inputs)
        outputs: Any = [a, b] if form == "list" else {"a": a, "b": b}
        model = mr.Model(inputs, outputs)
        model.compile(mr.optim.SGD(0.1), **options)
    return model


@pytest.fixture(autouse=True)
def _three() -> None:
    mr.config.experimental.set_simulated_gpus(3)
    mr.keras.backend.set_floatx("float64")


@pytest.mark.parametrize("form", ["list", "dict"])
@pytest.mark.parametrize("replicas", [1, 3])
def test_what_is_shown(form: str, replicas: int) -> None:
    model = made(
        replicas,
        form,
        loss=["mse", "mse"] if form == "list" else {"a": "mse", "b": "mse"},
        loss_weights=[1.0, 0.5] if form == "list" else {"a": 1.0, "b": 0.5},
        metrics={"b": ["mse"]},
        weighted_metrics=[["mse"], None] if form == "list" else {"a": ["mse"]},
    )
    targets: Any = [A + 1.0, B] if form == "list" else {"b": B, "a": A + 1.0}
    logs = model.evaluate(X, targets, sample_weight=W, batch_size=3, verbose=0, return_dict=True)
    second = (B - A) ** 2
    weighted = (W[:, None] * second).mean()
    assert logs == pytest.approx(
        {
            "loss": W.mean() + 0.5 * weighted,
            "a_loss": W.mean(),
            "b_loss": weighted,
            "b_mse": second.mean(),
            "a_mse": 1.0,
        }
    )
    predicted = model.predict(X, verbose=0)
    assert type(predicted) is (list if form == "list" else dict)
    np.testing.assert_allclose(predicted[1 if form == "list" else "b"], A)


def test_order_of_values_without_names() -> None:
    metrics = {"b": ["mse"], "a": ["mae"]}
    model = made(1, "list", loss={"a": "mse", "b": "mae"}, metrics=metrics)
    logs = model.evaluate(X, [A + 2.0, B], verbose=0, return_dict=True)
    assert len({*logs.values()}) == 5
    ordered = ["loss", "a_loss", "b_loss", "a_mae", "b_mse"]  # As in Keras 3.15.
    assert model.evaluate(X, [A + 2.0, B], verbose=0) == [logs[name] for name in ordered]
    single = mr.Sequential([mr.layers.Dense(1)])
    single.compile("sgd", "mse", metrics=["mse", "mae"], weighted_metrics=["mae"])
    logs = single.evaluate(X, B, verbose=0, return_dict=True)
    ordered = ["loss", "mse", "mae", "mae", "weighted_mae"]
    assert single.test_on_batch(X, B) == [logs[name] for name in ordered]


def test_losses_whose_names_look_numbered() -> None:
    losses = [mr.losses.MeanSquaredError(name=name) for name in ("a_2", "a", "a")]
    outputs = compile_outputs([(None, 1)] * 3, None, [0, 1, 2], losses, None, None, None)
    assert [tracker.name for tracker in outputs.trackers] == ["a_2_loss", "a_loss", "a_3_loss"]


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "recorded"])
def test_replicas_train_as_one(eager: bool) -> None:
    results = []
    for replicas in (1, 3):
        model = made(replicas, "list", loss=["mse", None], metrics=[["mse"], ["mse"]])
        model.run_eagerly = eager
        history = model.fit(X, [A + 1.0, B], batch_size=4, epochs=2, verbose=0).history
        results.append(([*history.values()], model.get_weights()))
        assert list(history) == ["a_mse", "b_mse", "loss"]  # As Keras has them.
    for first, second in zip(*results, strict=True):
        for one, other in zip(first, second, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_targets_by_name_and_of_some_outputs() -> None:
    model = made(1, "list", loss={"a": "mse", "b": None})
    expected = model.evaluate(X, [A, B], verbose=0)
    assert model.evaluate(X, {"a": A, "b": B}, verbose=0) == expected
    assert model.evaluate(X, [A], verbose=0) == expected


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "losses": ({"loss": ["mse"]}, r"`loss` should match the model's 2 outputs, \['a', 'b'\]"),
    "names": ({"loss": {"a": "mse", "c": "mse"}}, r"Expected keys \['a', 'b'\] in loss dict"),
    "metrics": ({"loss": "mse", "metrics": ["mse"]}, "`metrics` should match the model's 2 out"),
    "weights": ({"loss": "mse", "loss_weights": 2.0}, "`loss_weights` should match the model's"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(1, "list", **options)


@pytest.mark.parametrize("targets", [A, [A, B, B], {"a": A, "c": B}])
def test_targets_that_do_not_fit(targets: Any) -> None:
    model = made(1, "list", loss="mse")
    with pytest.raises(ValueError, match="y_true and y_pred have different structures"):
        model.fit(X, targets, verbose=0)
    model.fit(X, [A, B], verbose=0)
