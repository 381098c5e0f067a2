"""`CheckReplicas` compares copies after some steps, and ends `fit` where they differ."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import ReplicasDifferError

X = np.ones((10, 2), np.float32)
Make = Callable[..., mr.Model]


@pytest.fixture
def make(simulate: Any) -> Make:
    """Return a function that makes a model on two replicas."""

    def made(**options: Any) -> mr.Model:
        simulate(2)
        with mr.MirroredStrategy().scope():
            model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1, name="d")])
            model.compile(mr.optim.SGD(0.1, momentum=0.5, name="sgd"), "mse", **options)
        return model

    return made


@pytest.mark.behaviour("check-replicas")
@cases(
    ("every", "fit", "options", "expected"),
    [
        (2, {}, {}, [2, 4, 5]),
        (5, {"epochs": 2}, {}, [5, 10]),
        (3, {"epochs": 2}, {}, [3, 6, 9, 10]),
        (100, {"epochs": 3}, {}, [15]),
        (2, {}, {"run_eagerly": True}, [2, 4, 5]),
        (2, {"epochs": 2}, {"steps_per_execution": 5}, [5, 10]),
        (4, {"epochs": 2, "initial_epoch": 1}, {}, [4, 5]),
        (1, {"epochs": 0}, {}, []),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_after_which_steps(
    every: int,
    fit: dict[str, Any],
    options: dict[str, Any],
    expected: list[int],
    stream: bool,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, seen = make(**options), []
    monkeypatch.setattr(
        type(model.distribute_strategy),
        "check_replicas",
        lambda strategy, variables, *, step: seen.append(step),
    )
    dataset = mr.data.Dataset.from_tensor_slices((X, X[:, :1])).batch(2)
    data = (dataset.filter(lambda x, y: True),) if stream else (X, X[:, :1])
    size = {} if stream else {"batch_size": 2}
    check = mr.callbacks.CheckReplicas(every)
    for _ in range(2):  # Each `fit` counts from 0 again.
        model.fit(*data, callbacks=[check], verbose=0, **size, **fit)
    assert seen == [0, *expected] * 2


@pytest.mark.behaviour("check-replicas")
@pytest.mark.parametrize(
    ("hook", "eager"),
    [
        ("on_train_batch_end", False),
        ("on_train_batch_end", True),
        ("on_train_batch_begin", True),  # A recorded step would write all copies.
    ],
)
@pytest.mark.parametrize("number", range(4))
def test_any_variable_ends_fit(number: int, hook: str, eager: bool, make: Make) -> None:
    model = make(run_eagerly=eager)
    model.fit(X, X[:, :1], verbose=0)
    momenta = [v for v in model.optimizer.variables if "momentum" in v.name]
    variables = [*model.variables, *momenta]
    variable = variables[number]

    def spoil(batch: int, logs: Any) -> None:
        if batch == 3:
            copy = model.distribute_strategy.experimental_local_results(variable)[1]
            copy.assign(copy + 1.0)

    callbacks = [
        mr.callbacks.LambdaCallback(**{hook: spoil}),
        mr.callbacks.CheckReplicas(every=2),
    ]
    with pytest.raises(ReplicasDifferError) as raised:
        model.fit(X, X[:, :1], batch_size=2, callbacks=callbacks, verbose=0)
    assert (raised.value.step, raised.value.replicas) == (4, (1,))
    spoilt = variables[number % 2 if hook == "on_train_batch_begin" else number]
    assert raised.value.variable == spoilt.name  # A slot spoils its weight in the step.


def test_optimizers_in_attributes_count(make: Make) -> None:
    model = make()
    with model.distribute_strategy.scope():
        model.other = mr.optim.Adam()
        model.other.build(model.trainable_variables)
    model.other.variables[-1].copies[1].assign(mr.ones_like(model.other.variables[-1]))
    with pytest.raises(ReplicasDifferError, match="velocity"):
        model.fit(X, X[:, :1], callbacks=[mr.callbacks.CheckReplicas()], verbose=0)


def test_a_model_without_a_strategy() -> None:
    model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, X[:, :1], callbacks=[mr.callbacks.CheckReplicas(1)], verbose=0)


@pytest.mark.parametrize("every", [0, -1, 1.0, "2", None, True])
def test_wrong_numbers_of_steps(every: Any) -> None:
    text = "Received an invalid value for `every`, expected a positive integer. Received: every="
    with pytest.raises(ValueError, match=text):
        mr.callbacks.CheckReplicas(every)
