"""Every optimizer, setting and schedule against Keras, on one device and recorded on three."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from tests.support import optimizer_values
from tests.support.optimizer_values import CASES, GRADIENTS, NAMES, START

KERAS: dict[str, Any] = json.loads(optimizer_values.FILE.read_text())


def test_the_table_has_every_case() -> None:
    assert KERAS.keys() == CASES.keys()
    tried = {kind for kind, _ in CASES.values()}
    assert tried | {"Optimizer"} == {each for each in mr.optim.__all__ if each[0].isupper()}
    schedules = {each for each in mr.optim.schedules.__all__ if each != "LearningRateSchedule"}
    assert schedules == {kind for kind, _ in optimizer_values.SCHEDULES}


def variable(value: Any, name: str) -> mr.Variable:
    return mr.Variable(value, name=name)


def check(found: Any, name: str, tolerance: float) -> None:
    for one, other in zip(found, KERAS[name], strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_eagerly(name: str) -> None:
    # Keras rounds its settings to float32, hence the tolerance.
    mr.keras.backend.set_floatx("float64")
    check(optimizer_values.after_steps(mr.keras, name, variable, mr.constant), name, 5e-6)


@pytest.mark.parametrize("name", CASES)
def test_recorded_on_three_replicas(name: str, simulate: Callable[..., Any]) -> None:
    mr.keras.backend.set_floatx("float64")
    simulate(3)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        variables = [variable(*each) for each in zip(START, NAMES, strict=True)]
        optimizer = optimizer_values.make(mr.keras, name, variables)

    @mr.function
    def step(gradients: list[Any]) -> None:
        # A third of the gradient in each replica: they add up.
        parts = [each / 3.0 for each in gradients]
        strategy.run(lambda: optimizer.apply_gradients(zip(parts, variables, strict=True)))

    for gradients in GRADIENTS:
        step([mr.constant(each) for each in gradients])
    assert step.experimental_get_tracing_count() == 1
    check([each.numpy() for each in variables], name, 5e-6)
    for each in variables:
        first, *others = [copy.numpy() for copy in each.copies]
        for other in others:
            np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize(("kind", "arguments"), optimizer_values.SCHEDULES, ids=str)
def test_a_schedule_is_made_anew_from_its_configuration(
    kind: str, arguments: dict[str, Any]
) -> None:
    schedule = optimizer_values.schedule(mr.keras, kind, arguments)
    again = type(schedule).from_config(schedule.get_config())
    assert again.get_config() == schedule.get_config()
    assert arguments.items() <= schedule.get_config().items()
    assert [float(again(step)) for step in range(9)] == [float(schedule(step)) for step in range(9)]
