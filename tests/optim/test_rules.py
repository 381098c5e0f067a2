"""Every optimizer, setting and schedule against Keras, on one device and recorded on three."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras_names
import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from tests.support import optimizer_values
from tests.support.optimizer_values import CASES, GRADIENTS

KERAS: dict[str, Any] = json.loads(optimizer_values.FILE.read_text())


def test_the_table_has_every_case() -> None:
    assert KERAS.keys() == CASES.keys()
    tried = {kind for kind, _ in CASES.values()}
    tried -= {"Momentum", "Means", "Doubled"}  # Those of users.
    tried |= {"LossScaleOptimizer", "MultiOptimizer", "OptimizerMap", "Optimizer"}
    keras = set(json.loads(keras_names.FILE.read_text())["keras.optimizers"])
    assert tried == {each for each in mr.optim.__all__ if each[0].isupper()} & keras
    schedules = {each for each in mr.optim.schedules.__all__ if not each.islower()}
    schedules -= {"LearningRateSchedule"}
    assert schedules == {kind for kind, _ in optimizer_values.SCHEDULES}


def variable(value: Any, name: str, constraint: Any) -> mr.Variable:
    return mr.Variable(value, name=name, constraint=constraint)


def check(found: Any, name: str, tolerance: float) -> None:
    *values, sums = KERAS[name]
    for one, other in zip(found[:-1], values, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    # Those of means of squares, which are of larger numbers.
    np.testing.assert_allclose(found[-1], sums, rtol=4.0 * tolerance, atol=tolerance)


@cases("name", CASES)
def test_eagerly(name: str) -> None:
    # Keras rounds its settings to float32, hence the tolerance.
    mr.keras.backend.set_floatx("float64")
    check(optimizer_values.after_steps(mr.keras, name, variable, mr.constant), name, 5e-6)


@cases("name", CASES)
def test_recorded_on_three_replicas(name: str, simulate: Callable[..., Any]) -> None:
    mr.keras.backend.set_floatx("float64")
    simulate(3)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        variables = optimizer_values.make_variables(mr.keras, name, variable)
        optimizer = optimizer_values.make(mr.keras, name, variables)

    @mr.function
    def step(gradients: list[Any]) -> None:
        # A third of the gradient in each replica: they add up.
        parts = [each / 3.0 for each in gradients]
        strategy.run(lambda: optimizer.apply_gradients(zip(parts, variables, strict=True)))

    for gradients in optimizer_values.gradients_of(name):
        step([mr.constant(each) for each in gradients])
    assert step.experimental_get_tracing_count() == 1
    check(optimizer_values.found_after(optimizer, variables), name, 5e-6)
    for each in variables:
        first, *others = [copy.numpy() for copy in each.copies]
        for other in others:
            np.testing.assert_array_equal(first, other)


@cases(("kind", "arguments"), optimizer_values.SCHEDULES, ids=str)
def test_a_schedule_is_made_anew_from_its_configuration(
    kind: str, arguments: dict[str, Any]
) -> None:
    schedule = optimizer_values.schedule(mr.keras, kind, arguments)
    again = type(schedule).from_config(schedule.get_config())
    assert again.get_config() == schedule.get_config()
    assert arguments.items() <= schedule.get_config().items()
    assert [float(again(step)) for step in range(9)] == [float(schedule(step)) for step in range(9)]


@pytest.mark.parametrize(
    "name",
    [
        "Nadam {'gradient_accumulation_steps': 2}",
        "Adafactor {}",
        "RMSprop {'rho': 0.5, 'momentum': 0.9}",
        "SGD accumulates",
    ],
)
def test_a_checkpoint_has_all_that_a_step_needs(name: str, tmp_path: Path) -> None:
    """Numbers for all variables, slots of other shapes, gradients that are summed, and no rate."""

    def made() -> tuple[Any, list[mr.Variable], mr.train.Checkpoint]:
        variables = optimizer_values.make_variables(mr.keras, name, variable)
        optimizer = optimizer_values.make(mr.keras, name, variables)
        return optimizer, variables, mr.train.Checkpoint(optimizer=optimizer, variables=variables)

    def step(optimizer: Any, variables: list[mr.Variable], gradients: Any) -> None:
        parts = [mr.constant(each) for each in gradients]
        optimizer.apply_gradients(zip(parts, variables, strict=True))

    mr.keras.backend.set_floatx("float64")
    optimizer, variables, checkpoint = made()
    for gradients in GRADIENTS[:3]:
        step(optimizer, variables, gradients)
    path = checkpoint.save(str(tmp_path / "after"))
    other, others, restored = made()
    restored.restore(path)
    for gradients in GRADIENTS[3:]:
        step(optimizer, variables, gradients)
        step(other, others, gradients)
    for one, two in zip(variables, others, strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_a_function_gives_the_learning_rate() -> None:
    rate = mr.Variable(0.5)
    optimizer = mr.optim.SGD(lambda: rate * 2.0)
    v = mr.Variable(0.0)

    @mr.function
    def step() -> None:
        optimizer.apply_gradients([(mr.constant(-1.0), v)])

    step()
    rate.assign(0.25)
    step()
    assert float(v) == 1.5
    assert float(optimizer.learning_rate) == 0.5
    with pytest.raises(TypeError, match="hence its learning rate is not settable"):
        optimizer.learning_rate = 0.1
    optimizer.learning_rate = lambda: 2.0
    optimizer.apply_gradients([(mr.constant(-1.0), v)])
    assert float(v) == 3.5


def test_another_schedule_is_recorded_anew() -> None:
    model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1, kernel_initializer="zeros")])
    constant = mr.optim.schedules.PiecewiseConstantDecay
    model.compile(mr.optim.SGD(constant([100], [0.5, 0.0])), "mse")
    x, y = np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)
    model.fit(x, y, verbose=0)
    assert model.get_weights()[1].tolist() == [1.0]
    model.optimizer.learning_rate = constant([100], [0.25, 0.0])
    model.fit(x, y + 1, verbose=0)
    assert model.get_weights()[1].tolist() == [1.5]
