"""The plan of a run: its layers and optimizers, and whether its steps are custom."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.training.run_plan import MOST_DECISIONS, RunPlan, optimizers_of


class Counting(mr.layers.Layer):
    """A layer that gets a metric when it is built."""

    def build(self, input_shape: Any) -> None:
        """Make the metric."""
        self.seen = mr.metrics.Mean(name="seen")

    def call(self, inputs: Any) -> Any:
        """Return the inputs."""
        return inputs


class Lossy(mr.Sequential):
    """A model with a loss of its own."""

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """Return that of `compile`."""
        return super().compute_loss(*args, **kwargs)


class Doubling(mr.Sequential):
    """A model that predicts in another way."""

    def predict_step(self, data: Any) -> Any:
        """Return twice the outputs."""
        return super().predict_step(data) * 2.0


class Custom(mr.metrics.Mean):
    """A metric with an update of its own."""

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Count."""


KINDS = ("train", "test", "predict")


@cases(
    ("model", "options", "custom"),
    [
        (mr.Sequential, {"loss": "mse", "metrics": ["mae"]}, ()),
        (mr.Sequential, {}, ("train", "test")),
        (mr.Sequential, {"loss": "mse", "metrics": [Custom]}, ("train", "test")),
        (Lossy, {"loss": "mse"}, ("train", "test")),
        (Doubling, {"loss": "mse"}, ("predict",)),
    ],
)
def test_a_plan_tells_which_steps_are_custom(
    model: Any, options: dict[str, Any], custom: tuple[str, ...]
) -> None:
    built = model([mr.layers.Input((1,)), mr.layers.Dense(1)])
    metrics = [make() if isinstance(make, type) else make for make in options.get("metrics", ())]
    built.compile("sgd", **{**options, "metrics": metrics or None})
    plan = RunPlan(built)
    assert tuple(kind for kind in KINDS if plan.is_custom(kind)) == custom
    assert [layer for layer, _ in plan.layers] == [built, *built.layers]
    assert [variable for _, owned in plan.layers for variable in owned] == built.weights
    assert plan.optimizers == [built.optimizer]


def test_a_plan_has_the_optimizers_of_the_model_alone() -> None:
    model = mr.Sequential([Doubling([mr.layers.Input((1,)), mr.layers.Dense(1)])])
    model.compile("sgd", "mse")
    model.layers[0].compile("adam", "mse")
    model.layers[0].other = mr.optim.SGD()
    model.others = {"again": model.optimizer, "other": mr.optim.SGD()}
    plan = RunPlan(model)
    assert plan.optimizers == optimizers_of(model) == [model.optimizer, model.others["other"]]
    assert not plan.is_custom("train")


def test_a_layer_that_gets_a_metric_when_it_is_built_makes_steps_custom() -> None:
    model = mr.Sequential([Counting(), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    plan = RunPlan(model)
    model.build((None, 1))
    assert plan.is_custom("train")


@cases(
    "change",
    [
        lambda model: setattr(model.layers[0], "trainable", False),
        lambda model: setattr(model, "optimizer", "adam"),
        lambda model: model.compile("sgd", "mae"),
    ],
)
def test_decisions_stay_for_runs_that_are_alike(change: Callable[[mr.Model], None]) -> None:
    model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.arange(4.0).reshape(-1, 1)
    model.fit(x, x, verbose=0)
    decided = RunPlan(model).decided
    assert decided
    model.fit(x, x, verbose=0)
    assert RunPlan(model).decided is decided
    change(model)
    assert RunPlan(model).decided == {}
    model.fit(x, x, verbose=0)


def test_decisions_for_ever_new_shapes_are_not_all_kept() -> None:
    model = mr.Sequential([mr.layers.GlobalAveragePooling1D()])
    for steps in range(1, MOST_DECISIONS + 3):
        model.predict(np.zeros((1, steps, 1), np.float32), verbose=0)
        assert len(RunPlan(model).decided) <= MOST_DECISIONS


def test_targets_are_checked_in_every_run_that_is_alike() -> None:
    model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(3)])
    model.compile("sgd", mr.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = np.arange(3.0).reshape(-1, 1)
    model.fit(x, [0, 1, 2], verbose=0)
    with pytest.raises(ValueError, match="label value of 3"):
        model.fit(x, [0, 1, 3], verbose=0)
