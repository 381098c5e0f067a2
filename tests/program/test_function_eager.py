"""Recorded functions that run Python: in every call, also below a strategy and in `fit`."""

from collections.abc import Iterator
from typing import Any

import pytest

import mirrored as mr


@pytest.fixture
def eagerly() -> Iterator[None]:
    mr.config.run_functions_eagerly(True)
    yield
    mr.config.run_functions_eagerly(False)


@pytest.mark.usefixtures("eagerly")
def test_python_runs_in_every_call(simulate: Any) -> None:
    simulate(2)
    seen: list[float] = []

    @mr.function
    def half(x: Any) -> Any:
        seen.append(float(x))
        return x / 2.0

    assert mr.config.functions_run_eagerly()
    assert float(half(half(mr.constant(8.0)))) == 2.0
    mr.MirroredStrategy().run(half, (mr.constant(6.0),))
    assert seen == [8.0, 4.0, 6.0, 6.0]
    mr.config.run_functions_eagerly(False)
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError):
        half(mr.constant(8.0))


@pytest.mark.usefixtures("eagerly")
def test_fit_follows() -> None:
    model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    traces = len(model.__state__.traces)
    model.fit([[1.0]], [[1.0]], verbose=0)
    assert len(model.__state__.traces) == traces == 0
