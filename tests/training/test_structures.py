"""Inputs in lists, tuples and dicts: they reach a model that takes them as they were given."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

RNG = np.random.default_rng(5)
A = RNG.normal(size=(10, 3)).astype(np.float32)
B = RNG.integers(0, 5, size=(10, 3))
Y = A @ np.ones((3, 1), np.float32)
WEIGHTS = np.linspace(0, 1, 10)


class Sums(mr.Model):
    """Adds its two inputs up, whatever they are nested in."""

    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.dense = mr.layers.Dense(1)
        vars(self)["seen"] = seen  # An attribute that is assigned is a copy, as in Keras.

    def build(self, input_shape: Any) -> None:
        self.seen.append(input_shape)
        super().build(input_shape)

    def call(self, inputs: Any) -> mr.Tensor:
        self.seen.append(mr.nest.map_structure(lambda each: each.dtype.name, inputs))
        first, second = mr.nest.flatten(inputs)
        return self.dense(first + mr.cast(second, "float32"))


FORMS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "a dict": (
        lambda a, b: {"first": a, "second": b},
        {"first": (None, 3), "second": (None, 3)},
        {"first": "float32", "second": "int64"},
    ),
    "a list": (lambda a, b: [a, b], [(None, 3), (None, 3)], ["float32", "int64"]),
    "nested": (
        lambda a, b: {"x": (a,), "y": [b]},
        {"x": ((None, 3),), "y": [(None, 3)]},
        {"x": ("float32",), "y": ["int64"]},
    ),
}


@pytest.mark.parametrize("strategy", [1, 3], indirect=True)
@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize(("form", "shapes", "dtypes"), FORMS.values(), ids=FORMS)
def test_structures_reach_the_model(
    form: Callable[[Any, Any], Any],
    shapes: Any,
    dtypes: Any,
    eager: bool,
    strategy: mr.MirroredStrategy,
) -> None:
    seen: list[Any] = []

    def results(x: Any, y: Any, **given: Any) -> list[Any]:
        mr.keras.utils.set_random_seed(1)
        with strategy.scope():
            model = Sums(seen)
            model.compile("sgd", "mse", metrics=["mse"], run_eagerly=eager)
        history = model.fit(x, y, epochs=2, verbose=0, **given)
        found = [history.history, model.predict(form(A, B), 4, verbose=0).tolist()]
        return [*found, *[weight.tolist() for weight in model.get_weights()]]

    pair = form(A.astype(np.float64), B)
    arrays = {"batch_size": 4, "shuffle": False, "validation_split": 0.2}
    expected = results(pair, [Y], sample_weight=WEIGHTS, **arrays)
    assert all(each in (shapes, dtypes) for each in seen)
    assert shapes in seen
    assert dtypes in seen
    rows = [(form(A[i : i + 4], B[i : i + 4]), Y[i : i + 4], WEIGHTS[i : i + 4]) for i in (0, 4)]
    held = (form(A[8:], B[8:]), Y[8:], WEIGHTS[8:])
    batches = (each for each in rows * 2)
    assert expected == results(batches, None, steps_per_epoch=2, validation_data=held)
