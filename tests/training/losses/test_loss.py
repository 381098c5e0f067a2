"""Losses whose `__call__` is overridden."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.training.losses import Loss


def _by_a_call(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
    return ops.reduce_mean(ops.square(ops.subtract(y_pred, y_true))) * 3.0


def _around_another(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
    return 2.0 * Loss.__call__(self, y_true, y_pred, sample_weight)


@pytest.mark.parametrize("call", [_by_a_call, _around_another])
def test_a_call_that_is_overridden(call: Any, simulate: Callable[..., Any]) -> None:
    simulate(3)
    squares = {"call": lambda self, y_true, y_pred: ops.reduce_mean((y_pred - y_true) ** 2, -1)}
    kind = type("Own", (Loss,), {"__call__": call, **squares})
    x, y = np.arange(14.0).reshape(7, 2) / 14, np.ones((7, 1))
    found = []
    for replicas in (1, 3):
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            model = mr.Sequential([mr.layers.Dense(1, kernel_initializer="ones")])
            model.compile(mr.optim.SGD(0.1), kind())
        model.fit(x, y, batch_size=7, epochs=2, verbose=0)
        found.append(model.get_weights()[0])
    factor = 3.0 if call is _by_a_call else 2.0
    assert float(kind()([[1.0]], [[0.0]])) == factor
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    assert not np.allclose(found[0], 1.0)


def test_a_call_returns_one_number() -> None:
    kind = type("Own", (Loss,), {"__call__": lambda self, *given: given[1]})
    model = mr.Sequential([mr.layers.Dense(1)])
    model.compile("sgd", kind())
    with pytest.raises(ValueError, match="must return one number for the batch"):
        model.fit(np.ones((2, 1)), np.ones((2, 1)), verbose=0)
