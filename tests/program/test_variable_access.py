"""Variables that recorded functions make: in the first call, or not at all, as in TensorFlow."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.program import variable_access

REFUSED = re.escape(
    "mr.function only supports singleton mr.Variables created on the first call. Make sure the "
    "mr.Variable is only created once or created outside mr.function."
)


def makes_a_variable() -> Any:
    return mr.Variable(1.0).assign_add(1.0)


def keeps_all(kept: list[Any] = []) -> Any:  # noqa: B006
    kept.append(mr.Variable(1.0))
    return kept[-1] + 1.0


def trains_with_a_new_optimizer() -> Any:
    v = mr.Variable(1.0)
    mr.optim.SGD(0.1).apply_gradients([(mr.ones(()), v)])
    return v


MAKERS: dict[str, Callable[[], Any]] = {
    "a variable": makes_a_variable,
    "a variable that is kept": keeps_all,
    "a layer": lambda: mr.layers.Dense(2)(mr.ones((1, 3))),
    "a layer with a seed": lambda: mr.layers.Dropout(0.5, seed=1)(mr.ones((1, 3)), training=True),
    "a metric": lambda: mr.metrics.Mean()(mr.ones((3,))),
    "an optimizer": trains_with_a_new_optimizer,
    "a recorded function": lambda: mr.function(makes_a_variable)(),
}


@pytest.mark.behaviour("function-variables")
@cases("make", MAKERS.values(), ids=MAKERS)
def test_what_is_made_in_every_call(make: Callable[[], Any]) -> None:
    recorded = mr.function(make)
    for _ in range(2):
        with pytest.raises(ValueError, match=REFUSED):
            recorded()


@cases("make", MAKERS.values(), ids=MAKERS)
def test_what_is_made_in_every_call_beside_a_tape(make: Callable[[], Any]) -> None:
    """Python runs there: the first call is as in Python, and the next one is refused."""
    recorded = mr.function(make)
    with mr.GradientTape():
        recorded()
        for call in (recorded, recorded):
            with pytest.raises(ValueError, match=REFUSED):
                call()
    with pytest.raises(ValueError, match=REFUSED):
        recorded()


class Counter:
    """TensorFlow's own example: made where there is none yet."""

    def __init__(self, start: Any = 1.0) -> None:
        self.v: Any = None
        self.start = start
        self.runs = 0

    @mr.function
    def add(self, x: Any) -> Any:
        self.runs += 1
        if self.v is None:
            self.v = mr.Variable(self.start)
        return self.v.assign_add(x)


@pytest.mark.behaviour("function-variables")
@pytest.mark.parametrize("tape", [False, True])
def test_what_is_made_once(tape: bool) -> None:
    for _ in range(2):  # Each object has a first call of its own.
        counter = Counter()
        for expected in (2.0, 3.0, 4.0):
            if tape:
                with mr.GradientTape():
                    assert float(counter.add(mr.constant(1.0))) == expected
            else:
                assert float(counter.add(mr.constant(1.0))) == expected
        assert counter.runs == (3 if tape else 2)  # The second run makes sure that none is made.
        assert float(counter.add(2)) == 6.0
        assert float(counter.v) == 6.0


@pytest.mark.behaviour("function-variables")
def test_another_variable_in_a_later_call() -> None:
    kept: list[Any] = []

    @mr.function
    def total(x: Any) -> Any:
        if not kept or kept[-1].shape != x.shape:
            kept.append(mr.Variable(mr.zeros(x.shape)))
        return kept[-1].assign_add(x)

    assert total(mr.ones((2,))).numpy().tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=REFUSED):
        total(mr.ones((3,)))
    assert total(mr.ones((2,))).numpy().tolist() == [2.0, 2.0]
    assert len(kept) == 1


def test_a_first_call_that_fails_is_none() -> None:
    kept: list[Any] = []
    failing = [True]

    @mr.function
    def scaled(x: Any) -> Any:
        if failing:
            raise KeyError("why")
        if not kept:
            kept.append(mr.Variable(2.0))
        return x * kept[0]

    with pytest.raises(KeyError):
        scaled(mr.constant(3.0))
    failing.clear()
    assert float(scaled(mr.constant(3.0))) == 6.0


def test_an_initial_value_of_the_function() -> None:
    counter = Counter(lambda: mr.random.uniform(()))
    assert 1.0 <= float(counter.add(mr.constant(1.0))) < 2.0
    made: list[Any] = []

    @mr.function
    def first(x: Any) -> Any:
        if not made:
            made.append(mr.Variable(x))
        return made[0] * 1.0

    with pytest.raises(TypeError, match=r"initial value .*, which a recorded function computes in"):
        first(mr.constant(5.0))


@pytest.fixture
def strategy(simulate: Any) -> mr.MirroredStrategy:
    simulate(2)
    return mr.MirroredStrategy()


@pytest.mark.parametrize("outer", [True, False], ids=["around run", "given to run"])
def test_layers_metrics_and_optimizers_under_a_strategy(
    strategy: mr.MirroredStrategy, outer: bool
) -> None:
    """A layer makes its weights in replicas, once for all of them; slots with the first step."""
    held: dict[str, Any] = {}
    with strategy.scope():
        layer = mr.layers.Dense(1, kernel_initializer="ones")
        optimizer = mr.optim.Adam(0.1)

    def replica(x: Any) -> Any:
        with mr.GradientTape() as tape:
            loss = mr.reduce_sum(layer(x))
        found = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply_gradients(zip(found, layer.trainable_variables, strict=True))
        return loss

    def step(x: Any) -> Any:
        if "seen" not in held:
            with strategy.scope():
                held["seen"] = mr.metrics.Mean()
        losses = strategy.run(replica, (x,))
        held["seen"].update_state(strategy.reduce("sum", losses, axis=None))
        return held["seen"].result()

    if not outer:
        recorded = mr.function(replica)
        losses = [strategy.run(recorded, (mr.ones((1, 2)),)).values[0] for _ in range(2)]
    else:
        train = mr.function(step)
        losses = [train(mr.ones((1, 2))) for _ in range(2)]
        assert type(held["seen"].variables[0]).__name__ == "SyncOnReadVariable"
    assert float(losses[0]) == (4.0 if outer else 2.0)
    assert float(losses[1]) < float(losses[0])
    assert len(layer.weights) == 2
    assert int(optimizer.iterations.numpy()) == 2


@pytest.mark.parametrize("inside", ["a scope", "a replica", "a layer in replicas"])
def test_what_is_made_in_every_call_under_a_strategy(
    strategy: mr.MirroredStrategy, inside: str
) -> None:
    def scoped() -> Any:
        with strategy.scope():
            return mr.Variable(1.0).assign_add(1.0)

    made, kind, text = {
        "a scope": (scoped, ValueError, REFUSED),
        "a replica": (lambda: strategy.run(lambda: mr.Variable(1.0) * 2.0), ValueError, REFUSED),
        "a layer in replicas": (
            lambda: strategy.run(lambda: mr.layers.Dense(2)(mr.ones((1, 3)))),
            RuntimeError,
            "once for all replicas. Received: the layer 'dense_1', created inside a replica",
        ),
    }[inside]
    with pytest.raises(kind, match=text):
        mr.function(made)()


class Forgetful(mr.layers.Layer):
    """Makes a variable in every call."""

    def call(self, inputs: Any) -> Any:
        return inputs * mr.Variable(1.0).assign_add(1.0)


class Late(mr.layers.Layer):
    """Makes a layer in its first call."""

    inner: Any = None

    def call(self, inputs: Any) -> Any:
        if self.inner is None:
            self.inner = mr.layers.Dense(1, kernel_initializer="ones")
        return self.inner(inputs)


@pytest.mark.behaviour("function-variables")
@cases("method", ["fit", "evaluate", "predict"])
def test_a_recorded_step_of_a_model(method: str) -> None:
    """A step of `fit` is a recorded function too: there the variable lived from step to step."""
    x, y = np.ones((6, 3), np.float32), np.ones((6, 3), np.float32)
    for layer in (Forgetful(), Late()):
        model = mr.Sequential([mr.layers.Input((3,)), layer])
        model.compile("sgd", "mse")
        data = (x,) if method == "predict" else (x, y if layer.name != "late" else y[:, :1])
        if isinstance(layer, Forgetful):
            with pytest.raises(ValueError, match=REFUSED):
                getattr(model, method)(*data, batch_size=4, verbose=0)
        else:
            getattr(model, method)(*data, batch_size=4, verbose=0)
            assert len(model.weights) == 2


def test_nobody_is_asked_outside_of_functions() -> None:
    assert not variable_access.is_ruled()
    for _ in range(2):
        assert float(makes_a_variable()) == 2.0
